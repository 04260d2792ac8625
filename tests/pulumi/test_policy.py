"""The rules inside Pulumi say what the rules say anywhere else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pulumi_policy import (
    EnforcementLevel,
    PolicyCustomTimeouts,
    PolicyResource,
    PolicyResourceOptions,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy

import policies as project_policies
from gpuyard.manifests import LAYERS, Layer, Rendered
from gpuyard.pulumi.policy import UNKNOWN, manifest, policies
from gpuyard.pulumi.register import inputs, resource_name, resource_type
from gpuyard.pulumi.stacks import stack_name
from gpuyard.rules import Context, Hit, Rule, Rules
from gpuyard.rules.builtin import BUILTIN
from gpuyard.rules.report import as_text
from tests.pulumi.small import job, named, objects
from tests.rules.cases import read_case, small_environment

TESTS = Path(__file__).parent.parent
CASES = sorted([*TESTS.glob("policies/*/*.yaml"), *TESTS.glob("rules/*/*.yaml")])
"""Those of the project's rules and those of the framework's, in a folder named as the rule."""


def as_floats(value: Any) -> Any:
    """Return properties as they arrive: the protocol has no integers."""
    if isinstance(value, dict):
        return {key: as_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_floats(item) for item in value]
    return float(value) if type(value) is int else value


def resource(type_: str, name: str, properties: dict[str, Any], stack: str) -> PolicyResource:
    """Return a resource of a stack as a policy gets it."""
    options = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])
    urn = f"urn:pulumi:{stack}::gpuyard::{type_}::{name}"
    return PolicyResource(type_, unknown_checking_proxy(as_floats(properties)), urn, name, options, None, None, [], {})


def resources(rendered: Iterable[Rendered], stack: str) -> list[PolicyResource]:
    return [resource(resource_type(one), resource_name(one), inputs(one), stack) for one in rendered]


def verdict(
    rules: Rules, context: Context, found: list[PolicyResource], environment: str = "prod"
) -> dict[str, list[tuple[str, str | None]]]:
    """Return the violations that Pulumi shows, by enforcement level: message and URN."""
    shown: dict[str, list[tuple[str, str | None]]] = {}
    for policy in policies(rules, lambda: [environment], lambda _: context):
        assert isinstance(policy, StackValidationPolicy)
        violations = shown.setdefault(EnforcementLevel(policy.enforcement_level).name, [])
        policy.validate(
            StackValidationArgs(found), lambda message, urn=None, into=violations: into.append((message, urn))
        )
    return shown


def rules_of(*rules: Rule) -> Rules:
    found = Rules()
    found.add(*rules)
    return found


def all_rules() -> Rules:
    found = rules_of(*BUILTIN)
    project_policies.register(found)
    return found


def few_replicas(rendered: Rendered, context: Context) -> Iterable[Hit]:
    replicas = rendered.manifest.get("spec", {}).get("replicas")
    if replicas is not None and replicas < 3:
        yield Hit(rendered, "spec.replicas", f"too few replicas\nspec.replicas is {replicas}")


def any_jobs(context: Context) -> Iterable[Hit]:
    for one in context.by_kind.get("PyTorchJob", []):
        yield Hit(one, "", "a job")


ALL_RULES = all_rules()
FEW = Rule("few-replicas", "object", "error", "It stops.", "add some", "", few_replicas)
JOBS = Rule("any-jobs", "render", "warning", "It costs.", "think", "", any_jobs)
CONTEXT = Context(tuple(objects()), small_environment({}))


def test_errors_are_mandatory_and_warnings_advisory() -> None:
    run = job()
    found = resources([run], "prod-jobs")

    assert verdict(rules_of(FEW, JOBS), CONTEXT, found) == {
        "MANDATORY": [
            (
                "few-replicas\nerror  too few replicas\n"
                "  Deployment operator/operator  spec.replicas\n  spec.replicas is 2\n  fix: add some",
                None,
            )
        ],
        "ADVISORY": [
            (
                "any-jobs\nwarning  a job\n"
                "  stacks/prod/jobs/resnet50.yaml:1   PyTorchJob vision/resnet50-5c1f2a\n  fix: think",
                "urn:pulumi:prod-jobs::gpuyard::kubernetes:kubeflow.org/v1:PyTorchJob::"
                "PyTorchJob/vision/resnet50/resnet50-5c1f2a",
            )
        ],
    }


def test_no_policy_without_a_rule() -> None:
    assert [policy.name for policy in policies(rules_of(JOBS), list, lambda _: CONTEXT)] == ["gpuyard-warnings"]


def test_the_objects_of_this_stack_are_those_that_pulumi_has() -> None:
    deployment = named("apps/v1", "Deployment", "operator", "operator", spec={"replicas": 3})
    mine = [resource("kubernetes:apps/v1:Deployment", "mine", deployment, "prod")]

    assert verdict(rules_of(FEW), CONTEXT, mine) == {"MANDATORY": []}


def test_objects_that_no_render_knows_are_judged_too() -> None:
    extra = named("apps/v1", "Deployment", "extra", "operator", spec={"replicas": 1})
    mine = [resource("kubernetes:apps/v1:Deployment", "extra", extra, "prod")]

    ((message, urn),) = verdict(rules_of(FEW), CONTEXT, mine)["MANDATORY"]

    assert "Deployment operator/extra  spec.replicas" in message
    assert urn == "urn:pulumi:prod::gpuyard::kubernetes:apps/v1:Deployment::extra"


def test_the_objects_of_other_layers_come_from_the_render() -> None:
    found = verdict(rules_of(JOBS), CONTEXT, resources(objects()[:1], "prod-crds"))

    assert len(found["ADVISORY"]) == 1


def test_a_stack_without_kubernetes_objects_is_none_of_ours() -> None:
    bucket = resource("aws:s3:Bucket", "b", {}, "whatever")

    assert verdict(rules_of(FEW), CONTEXT, [bucket]) == {"MANDATORY": []}


def test_what_cannot_be_rendered_is_refused_and_shown_as_a_person_reads_it() -> None:
    found = verdict(rules_of(FEW), CONTEXT, resources([job()], "prod-job"))

    assert found == {
        "MANDATORY": [
            ("error  unknown stack\n  prod-job; did you mean prod-jobs?\n  fix: pulumi stack select", None),
        ]
    }


def test_numbers_come_back_whole() -> None:
    (one,) = resources([job()], "prod-jobs")

    assert repr(manifest(one.props)) == repr(inputs(job()))


def test_what_was_asked_for_counts_not_what_the_server_made_of_it() -> None:
    asked = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "cert"}}
    state = {**asked, "data": {"tls.key": "x"}, "status": {}, "__initialApiVersion": "v1", "__inputs": asked}

    assert manifest(state) == asked


def test_extensions_of_a_crd_s_schema_get_their_dashes_back() -> None:
    assert manifest({"__inputs": {"a": [{"x_kubernetes_preserve_unknown_fields": True, "b_c": 1.0}]}}) == {
        "a": [{"x-kubernetes-preserve-unknown-fields": True, "b_c": 1}]
    }


def test_an_unknown_value_becomes_a_marker_and_the_rules_still_run() -> None:
    deployment = named("apps/v1", "Deployment", "x", "y", spec={"replicas": 1, "paused": UNKNOWN_STRING_VALUE})
    one = resource("kubernetes:apps/v1:Deployment", "x", {**deployment, "list": [UNKNOWN_STRING_VALUE, 1]}, "prod")

    assert manifest(one.props)["spec"] == {"replicas": 1, "paused": UNKNOWN}
    assert manifest(one.props)["list"] == [UNKNOWN, 1]
    assert len(verdict(rules_of(FEW), CONTEXT, [one])["MANDATORY"]) == 1


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.parametrize("layer", LAYERS)
def test_the_verdict_on_every_case_of_every_rule_is_that_of_a_check(path: Path, layer: Layer) -> None:
    context = read_case(path).context
    context = replace(context, objects=tuple(replace(one, layer=layer) for one in context.objects))
    rules = rules_of(ALL_RULES.rules[path.parent.name])
    expected = [(finding.severity, f"{finding.rule}\n{as_text([finding])}") for finding in rules.run(context)]

    found = verdict(rules, context, resources(context.objects, stack_name("prod", layer)))

    levels = {"MANDATORY": "error", "ADVISORY": "warning"}
    assert sorted((levels[level], message) for level, shown in found.items() for message, _ in shown) == sorted(
        expected
    )
