"""The framework's own rules against their cases: one folder per rule, as in `tests/policies`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuyard.errors import InputError
from gpuyard.manifests import declare
from gpuyard.rules import Context, Rules
from gpuyard.rules.builtin import BUILTIN, SCHEMA
from gpuyard.rules.report import as_text
from tests.rules.cases import read_case, small_environment

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


def test_an_object_whose_crd_was_left_out_is_still_checked() -> None:
    policy = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy"},
        "spec": {"dcgmExporter": {"resources": {"limits": {"memory": "1 GB"}}}},
    }
    context = Context((declare(policy),), small_environment({}), skipped=("gpu-operator",))

    findings, unjudged = Rules({SCHEMA.id: SCHEMA}).judge(context)

    assert [finding.path for finding in findings] == ["spec.dcgmExporter.resources.limits.memory"]
    assert [each.object for each in unjudged] == ["ClusterPolicy cluster-policy"]


def test_a_version_without_schemas_is_an_error_where_it_was_written() -> None:
    environment = small_environment({"cluster": {"kubernetes": "1.99"}})
    environment.cluster = environment.cluster.model_copy(update={"kubernetes": "1.99"})

    with pytest.raises(InputError) as caught:
        Rules({SCHEMA.id: SCHEMA}).judge(Context((), environment))
    assert str(caught.value) == (
        "error  unknown Kubernetes version\n  stacks/test/environment.yaml:2   cluster.kubernetes\n"
        "  1.99; schemas are known for 1.25 to 1.37\n"
        "  fix: write one of these minor versions, or install a newer kubernetes-validate"
    )
