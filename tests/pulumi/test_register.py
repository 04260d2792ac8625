"""What Pulumi is told about each object: its type, its name, its parent, what it waits for, and how it lives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuyard.manifests import Lifecycle, declare
from gpuyard.manifests.graph import Graph
from gpuyard.pulumi.register import SKIP_AWAIT, inputs, provider_version, resource_name, resource_type
from tests.pulumi.small import UID, job, kubernetes, named, objects, registered


@pytest.mark.parametrize(
    ("api_version", "kind", "token"),
    [
        ("v1", "Namespace", "kubernetes:core/v1:Namespace"),
        ("apps/v1", "Deployment", "kubernetes:apps/v1:Deployment"),
        ("scheduling.volcano.sh/v1beta1", "Queue", "kubernetes:scheduling.volcano.sh/v1beta1:Queue"),
    ],
)
def test_the_type_is_group_version_and_kind(api_version: str, kind: str, token: str) -> None:
    assert resource_type(declare(named(api_version, kind, "x"))) == token


def test_the_name_is_the_stable_id() -> None:
    assert resource_name(declare(named("apps/v1", "Deployment", "operator", "kubeflow"))) == (
        "Deployment/kubeflow/operator"
    )


def test_the_name_of_a_run_contains_its_object_s_name() -> None:
    assert resource_name(job("5c1f2a")) == "PyTorchJob/vision/resnet50/resnet50-5c1f2a"


def test_two_runs_of_one_job_are_two_resources() -> None:
    both = kubernetes(registered("jobs", [job("5c1f2a"), job("09be77")]))

    assert set(both) == {
        "PyTorchJob/vision/resnet50/resnet50-5c1f2a",
        "PyTorchJob/vision/resnet50/resnet50-09be77",
    }


@pytest.mark.parametrize("layer", ["crds", "platform", "jobs"])
def test_what_is_registered_is_what_is_rendered(layer) -> None:
    rendered = {resource_name(one): inputs(one) for one in objects() if one.layer == layer}

    assert {name: one.props for name, one in kubernetes(registered(layer)).items()} == rendered


def test_the_one_addition_is_the_annotation_not_to_wait() -> None:
    run = job()

    assert inputs(run)["metadata"]["annotations"] == {SKIP_AWAIT: "true"}
    assert inputs(replace(run, lifecycle=Lifecycle())) is run.manifest
    assert "annotations" not in run.manifest["metadata"], "the manifest itself stays as it was rendered"


def test_a_service_is_not_waited_for() -> None:
    service = declare({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}})

    assert inputs(service)["metadata"]["annotations"] == {SKIP_AWAIT: "true"}


def test_annotations_that_are_there_stay() -> None:
    noted = declare(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "annotations": {"a": "b"}}},
        lifecycle=Lifecycle(wait=False),
    )

    assert inputs(noted)["metadata"]["annotations"] == {"a": "b", SKIP_AWAIT: "true"}


def test_every_object_lies_below_its_component() -> None:
    platform = registered("platform")
    types = {one.urn: one.type for one in platform}

    assert {one.name: types[one.parent] for one in kubernetes(platform).values()} == {
        "Deployment/operator/operator": "gpuyard:operator:Operator",
        "Namespace/operator": "gpuyard:operator:Operator",
        "Namespace/vision": "gpuyard:team:Teams",
        "ResourceQuota/vision/team": "gpuyard:team:Teams",
        "Service/operator/operator": "gpuyard:operator:Operator",
        "ServiceAccount/operator/operator": "gpuyard:operator:Operator",
        "ValidatingWebhookConfiguration/operator": "gpuyard:operator:Operator",
    }


def test_every_object_waits_for_what_it_needs_also_across_components() -> None:
    platform = kubernetes(registered("platform"))
    names = {one.urn: name for name, one in platform.items()}

    assert {name: {names[urn] for urn in one.dependencies} for name, one in platform.items()} == {
        "Deployment/operator/operator": {"Namespace/operator", "ServiceAccount/operator/operator"},
        "Namespace/operator": set(),
        "Namespace/vision": set(),
        "ResourceQuota/vision/team": {
            "Namespace/vision",
            "ValidatingWebhookConfiguration/operator",
            "Deployment/operator/operator",
        },
        "Service/operator/operator": {"Namespace/operator"},
        "ServiceAccount/operator/operator": {"Namespace/operator"},
        "ValidatingWebhookConfiguration/operator": {"Service/operator/operator"},
    }


def test_what_is_needed_from_another_layer_is_left_to_that_layer_s_stack() -> None:
    (run,) = kubernetes(registered("jobs")).values()

    assert run.dependencies == ()


def test_components_may_need_objects_of_each_other() -> None:
    account = declare(named("v1", "ServiceAccount", "operator", "vision")).of("operator")
    bound = {"kind": "ServiceAccount", "name": "operator", "namespace": "operator"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}
    binding = declare(
        named("rbac.authorization.k8s.io/v1", "RoleBinding", "x", "vision", subjects=[bound], roleRef=role)
    ).of("team")

    platform = kubernetes(registered("platform", [*objects(), account, binding]))

    assert platform["Namespace/vision"].urn in platform["ServiceAccount/vision/operator"].dependencies
    assert platform["ServiceAccount/operator/operator"].urn in platform["RoleBinding/vision/x"].dependencies


def test_crds_are_kept_and_never_replaced() -> None:
    (crd,) = kubernetes(registered("crds")).values()

    assert (crd.protect, crd.retain_on_delete, crd.delete_before_replace) == (False, True, False)


def test_fixed_names_are_deleted_first_and_protection_is_passed_on() -> None:
    platform = kubernetes(registered("platform"))

    assert all(one.delete_before_replace and not one.retain_on_delete for one in platform.values())
    assert {name for name, one in platform.items() if one.protect} == {"Namespace/operator", "Namespace/vision"}


def test_what_controllers_write_is_ignored() -> None:
    platform = kubernetes(registered("platform"))

    assert {name: one.ignore_changes for name, one in platform.items() if one.ignore_changes} == {
        "ValidatingWebhookConfiguration/operator": ("webhooks[*].clientConfig.caBundle",)
    }


def test_a_run_is_kept_never_replaced_never_changed_and_never_awaited() -> None:
    (run,) = kubernetes(registered("jobs")).values()

    assert (run.protect, run.retain_on_delete, run.delete_before_replace) == (False, True, False)
    assert run.ignore_changes == ("spec",)
    assert run.props["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}


def test_all_objects_share_one_provider_that_is_bound_to_the_cluster() -> None:
    platform = registered("platform")
    (provider,) = (one for one in platform if one.type == "pulumi:providers:kubernetes")

    assert provider.props == {"clusterIdentifier": UID, "enableServerSideApply": "true"}
    assert provider.version == provider_version()
    assert {one.provider for one in kubernetes(platform).values()} == {f"{provider.urn}::kubernetes-id"}
    assert {one.version for one in kubernetes(platform).values()} == {provider_version()}


def test_the_graph_may_hold_more_than_the_layer() -> None:
    assert len(Graph(objects()).objects) == 9
    assert [len(kubernetes(registered(layer))) for layer in ("crds", "platform", "jobs")] == [1, 7, 1]
