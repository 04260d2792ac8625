"""What a run of the rules prints, for people and for programs, and the exit code that it ends with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuyard.manifests.credentials import Hidden
from gpuyard.rules.rule import Finding, Unjudged

_LONGEST = 60
"""Characters of a value in a text."""


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 1 when there is an error among the findings, else 0: warnings stop nobody."""
    return int(any(finding.severity == "error" for finding in findings))


def as_json(findings: Sequence[Finding], summary: Mapping[str, Any]) -> str:
    """Return one JSON object: `findings` and `summary`.

    `file` and `line` are null where no file caused a finding, `value` where there is none or no one value is wrong.
    """
    found = [
        {
            "rule": finding.rule,
            "severity": finding.severity,
            "object": finding.object,
            "path": finding.path,
            "message": finding.message,
            "fix": finding.fix,
            "value": finding.value,
            "file": finding.origin.file if finding.origin else None,
            "line": finding.origin.line if finding.origin else None,
        }
        for finding in findings
    ]
    return json.dumps({"findings": found, "summary": summary}, indent=2, ensure_ascii=False, default=str)


def as_text(findings: Sequence[Finding], unjudged: Sequence[Unjudged] = ()) -> str:
    """Return findings as a person reads them, a blank line between two, then what could not be judged. No colour."""
    blocks = [_block(finding) for finding in findings]
    if unjudged:
        blocks.append("\n".join(["not judged", *(f"  {one.rule}  {one.object}: {one.reason}" for one in unjudged)]))
    return "\n\n".join(blocks)


def _block(finding: Finding) -> str:
    title, *details = finding.message.splitlines()
    what = finding.written or f"{finding.object}  {finding.path}".rstrip()
    if finding.value is not None and not finding.written:
        what += f": {_shown(finding.value)}"
    place = f"{finding.origin}   {what}" if finding.origin else what
    fix = [f"fix: {finding.fix}"] if finding.fix else []
    return "\n".join([f"{finding.severity}  {title}", *(f"  {line}" for line in (place, *details, *fix))])


def _shown(value: Any) -> str:
    """Return a value in one short line."""
    if isinstance(value, str) and value.isprintable():
        text = value
    elif isinstance(value, Hidden):
        text = str(value)
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
