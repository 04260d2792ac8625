"""The framework's own rules against their cases: one folder per rule, as in `tests/policies`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuyard.rules import Rules
from gpuyard.rules.builtin import BUILTIN
from gpuyard.rules.report import as_text
from tests.rules.cases import read_case

FOLDER = Path(__file__).parent
CASES = sorted(FOLDER.glob("*/*.yaml"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_rule_finds_what_its_case_says(path: Path) -> None:
    case = read_case(path)
    (rule,) = [rule for rule in BUILTIN if rule.id == path.parent.name]

    assert as_text(*Rules({rule.id: rule}).judge(case.context)) == case.finds


@pytest.mark.parametrize("rule", [rule.id for rule in BUILTIN])
def test_each_rule_has_a_good_and_a_bad_case(rule: str) -> None:
    kinds = {path.name.split("-")[0] for path in CASES if path.parent.name == rule}

    assert kinds >= {"good", "bad"}
