"""Every compare case gives exactly the report that its folder expects."""

from __future__ import annotations

import pytest

from gpuyard.diff.report import Report, as_text
from tests.diff.cases import CASES, case_outcomes

NAMES = sorted(folder.name for folder in CASES.iterdir() if (folder / "before.yaml").is_file())


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str) -> None:
    report = as_text(Report("prod", "origin/main (3f2a1bc)", case_outcomes(CASES / name)))
    assert report + "\n" == (CASES / name / "expected.txt").read_text()
