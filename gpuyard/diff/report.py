"""What a person reads of a diff, on a terminal or in a pull request, and what a program reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpuyard.diff.facts import RISKS, Consequence, Outcome, count
from gpuyard.diff.values import Line, field_lines, headline
from gpuyard.errors import listed
from gpuyard.manifests.diff import MISSING, Verb, path_text

SIGNS: dict[Verb, str] = {"added": "+", "removed": "-", "changed": "~", "replaced": "±"}

_FIELDS_SHOWN = 4
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]|~#"} | {sign: f"&#{ord(sign)};" for sign in "<>&@"})
_LONGEST_DETAILS = 100
_LONGEST_COMMENT = 60_000
"""Characters; GitHub takes 65,536."""


@dataclass(frozen=True)
class Report:
    """A diff of one environment.

    base:    what it is compared with, as the user knows it: `origin/main (3f2a1bc)`.
    skipped: sources that both sides went without.
    """

    environment: str
    base: str
    outcomes: Sequence[Outcome]
    skipped: Sequence[str] = ()

    @property
    def title(self) -> str:
        """`3 objects change against origin/main (3f2a1bc)`"""
        number = len(self.outcomes)
        what = "nothing changes" if not number else "1 object changes" if number == 1 else f"{number} objects change"
        return f"{what} against {self.base}"


@dataclass(frozen=True)
class Entry:
    """Equal outcomes of several objects of one kind, told once."""

    outcomes: tuple[Outcome, ...]

    @property
    def first(self) -> Outcome:
        return self.outcomes[0]

    @property
    def sign(self) -> str:
        return SIGNS[self.first.change.verb]

    @property
    def kind(self) -> str:
        return self.first.change.identity.kind

    @property
    def names(self) -> str:
        names = [_name(one) for one in self.outcomes]
        return names[0] if len(names) == 1 else f"{len(names)}: {listed(names, limit=4)}"


def as_text(report: Report) -> str:
    """Return the report for a terminal or a log, biggest risk first, equal changes of several objects as one."""
    entries = _entries(report.outcomes)
    kinds, names = (max((len(text) for text in column), default=0) for column in _columns(entries))
    blocks: list[str] = []
    for entry in entries:
        lines = _lines(entry)
        head, rest = headline(lines)
        told = [_told(one) for one in entry.first.consequences]
        if not head and told:
            head = told.pop(0)
        what = f"{entry.sign} {entry.kind:<{kinds}}  {entry.names:<{min(names, 40)}}"
        blocks.append(f"{what}  {head}".rstrip())
        blocks += [f"    {line}" for line in rest[: _FIELDS_SHOWN - 1]]
        if len(rest) > _FIELDS_SHOWN - 1:
            blocks.append(f"    and {count(len(rest) - _FIELDS_SHOWN + 1, 'more field')}")
        blocks += [f"    {text}" for text in told]
    return _harmless("\n".join([f"{report.environment}: {report.title}", *([""] if blocks else []), *blocks]))


def as_json(report: Report) -> str:
    """Return the report as one JSON object with every object and field. A field that is not there has no key."""
    verbs = [one.change.verb for one in report.outcomes]
    written = {
        "environment": report.environment,
        "base": report.base,
        "summary": {
            "changes": len(verbs),
            **{verb: verbs.count(verb) for verb in SIGNS},
            "risks": {risk: sum(one.risk == risk for one in report.outcomes) for risk in RISKS},
        },
        "skipped": list(report.skipped),
        "changes": [_object(one) for one in report.outcomes],
    }
    return json.dumps(written, indent=2, ensure_ascii=False, default=str)


def as_markdown(report: Report) -> str:
    """Return one comment for a pull request. Its first line never changes, so that the next one can take its place."""
    parts = [f"<!-- gpuyard diff {report.environment} -->", f"### {report.environment}: {_plain(report.title)}"]
    if report.skipped:
        parts.append(f"Incomplete: both sides are rendered without {_plain(listed(report.skipped))}.")
    entries = _entries(report.outcomes)
    size = sum(map(len, parts))
    for shown, entry in enumerate(entries):
        block = _markdown_block(entry)
        if size + len(block) > _LONGEST_COMMENT:
            parts.append(f"and {len(entries) - shown} more; `gpuyard diff {report.environment}` shows all of them")
            break
        size += len(block) + 2
        parts.append(block)
    return _harmless("\n\n".join(parts))


def _entries(outcomes: Iterable[Outcome]) -> list[Entry]:
    """Put equal outcomes together: the same fields, values and consequences, or nothing but added or removed."""
    groups: dict[tuple[Any, ...], list[Outcome]] = {}
    for one in outcomes:
        change = one.change
        fields = tuple(sorted(f"{field!r}" for field in change.fields))
        # What is added or removed is told by its kind and the component that makes it.
        of = change.rendered.component if not fields else ""
        key = one.risk, change.verb, change.identity.kind, of, fields, one.consequences
        groups.setdefault(key, []).append(one)
    return [Entry(tuple(group)) for group in groups.values()]


def _columns(entries: Sequence[Entry]) -> tuple[list[str], list[str]]:
    return [entry.kind for entry in entries], [entry.names for entry in entries]


def _name(outcome: Outcome) -> str:
    who = outcome.change.identity
    return f"{who.namespace}/{who.name}" if who.namespace else who.name


def _lines(entry: Entry) -> list[Line]:
    change = entry.first.change
    # A run beside another one is a new object: what it has in other words than the former one is for those who look.
    if change.former:
        return []
    # What a controller writes is told only where nothing else changes.
    fields = [field for field in change.fields if not field.ignored] or change.fields
    return [line for field in fields for line in field_lines(field)]


def _told(consequence: Consequence) -> str:
    return consequence.text if consequence.risk == "low" else f"{consequence.risk}: {consequence.text}"


def _object(outcome: Outcome) -> dict[str, Any]:
    change = outcome.change
    origin = change.rendered.origin
    return {
        "object": str(change.identity),
        "verb": change.verb,
        "risk": outcome.risk,
        "id": change.rendered.id,
        "component": change.rendered.component,
        "layer": change.rendered.layer,
        "file": origin.file if origin else None,
        "line": origin.line if origin else None,
        "former": str(change.former.identity) if change.former else None,
        "fields": [
            {
                "path": path_text(field.path),
                **{
                    side: value
                    for side, value in (("before", field.before), ("after", field.after))
                    if value is not MISSING
                },
                "reordered": field.reordered,
                "ignored": field.ignored,
            }
            for field in change.fields
        ],
        "consequences": [one._asdict() for one in outcome.consequences],
    }


def _markdown_block(entry: Entry) -> str:
    head, _ = headline(_lines(entry))
    lines = [f"**{entry.sign} {_plain(entry.kind)} {_plain(entry.names)}** {_plain(head)}".rstrip()]
    lines += [f"- {_plain(_told(one))}" for one in entry.first.consequences]
    details = list(_details(entry))
    if len(details) > _LONGEST_DETAILS:
        details[_LONGEST_DETAILS:] = [f"  and {len(details) - _LONGEST_DETAILS} more"]
    if details:
        body = "\n".join(details)
        fence = "`" * max(3, _longest_run(body) + 1)
        summary = f"{len(details)} line{'' if len(details) == 1 else 's'}"
        lines.append(f"\n<details><summary>{summary}</summary>\n\n{fence}diff\n{body}\n{fence}\n\n</details>")
    return "\n".join(lines)


def _details(entry: Entry) -> Iterator[str]:
    if len(entry.outcomes) > 1:
        yield from (f"  {_name(one)}" for one in entry.outcomes)
    for field in entry.first.change.fields:
        for line in field_lines(field):
            yield from ([f"- {line.path} {line.before}"] if line.before else [])
            yield from ([f"+ {line.path} {line.after}"] if line.after else [])


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, and that calls nobody by name."""
    return text.translate(_ESCAPES)


def _harmless(text: str) -> str:
    """Return text without the signs that move a cursor or turn the direction of writing; names are not ours."""
    return _CONTROL.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def _longest_run(text: str) -> int:
    longest = current = 0
    for character in text:
        current = current + 1 if character == "`" else 0
        longest = max(longest, current)
    return longest
