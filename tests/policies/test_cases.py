"""Every rule against its cases: one folder per rule, named as the rule."""

from __future__ import annotations

from pathlib import Path

import pytest

import policies
from gpuyard.rules import Rules
from gpuyard.rules.report import as_text
from tests.rules.cases import read_case

FOLDER = Path(__file__).parent
CASES = sorted(FOLDER.glob("*/*.yaml"))


def project_rules() -> Rules:
    rules = Rules()
    policies.register(rules)
    return rules


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_rule_finds_what_its_case_says(path: Path) -> None:
    case = read_case(path)
    rules = Rules({path.parent.name: project_rules().rules[path.parent.name]})

    findings, unjudged = rules.judge(case.context)

    assert as_text(findings, unjudged) == case.finds


@pytest.mark.parametrize("rule", project_rules().rules)
def test_each_rule_has_a_good_and_a_bad_case(rule: str) -> None:
    names = [path.name for path in CASES if path.parent.name == rule]

    assert any(name.startswith("good-") for name in names)
    assert any(name.startswith("bad-") for name in names)


@pytest.mark.parametrize("path", [path for path in CASES if path.name.startswith("bad-")], ids=lambda path: path.stem)
def test_a_bad_case_finds_something(path: Path) -> None:
    assert read_case(path).finds.startswith(("error  ", "warning  "))
