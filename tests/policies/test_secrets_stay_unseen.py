"""No report shows a value that a rule takes for a credential."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gpuyard.rules import Rules
from gpuyard.rules.builtin import BUILTIN
from gpuyard.rules.report import as_json, as_text
from policies.secret_not_inline import RULE
from tests.rules.cases import read_case

CASES = sorted(Path(__file__).parent.glob("secret-not-inline/bad-*.yaml"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_value_is_in_the_object_and_in_no_report(path: Path) -> None:
    context = read_case(path).context
    rules = Rules()
    rules.add(*BUILTIN, RULE)
    found, unjudged = rules.judge(context)
    value = str(yaml.safe_load(path.read_text())["break"]["value"])
    hidden = [word for word in ("not-for-your-eyes", "notforyoureyes", "NOTYOUREYES", "bm90LWZv") if word in value]

    assert len(hidden) == 1
    assert hidden[0] in str(context.objects)
    assert hidden[0] not in as_text(found, unjudged) + as_json(found, {}) + repr(found)
