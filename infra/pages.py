"""Writes the generated pages and schemas: `make docs`. A test fails when one of them is stale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpuyard.cache import write_atomically
from gpuyard.model.json_schema import environment_schema, job_schema, team_schema
from gpuyard.rules.document import rules_page
from infra.assemble import ROOT, registry, rules


def pages() -> dict[Path, str]:
    """Return every generated file of the project by its path, relative to the root."""
    schemas: dict[str, dict[str, Any]] = {
        "environment": environment_schema(registry()),
        "team": team_schema(),
        "job": job_schema(registry()),
    }
    found = {
        Path("stacks", ".schema", f"{name}.json"): json.dumps(schema, indent=2, sort_keys=True) + "\n"
        for name, schema in schemas.items()
    }
    return {Path("docs", "reference", "rules.md"): rules_page(rules()), **found}


if __name__ == "__main__":
    for path, text in pages().items():
        write_atomically(ROOT / path, text.encode())
        print(path)
