"""The training operator: its arguments, and upstream's manifests as they are rendered."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from components.training_operator import TrainingOperatorSettings
from components.training_operator.objects import KINDS, arguments
from gpuyard.manifests import Rendered
from tests.components.addons import (
    assert_restricted,
    assert_sound,
    code,
    images,
    level,
    lock,
    manifests,
    pod_security,
    rendered,
    source,
    with_addons,
)
from tests.components.clusters import cluster

IMAGE = "ghcr.io/kubeflow/training-v1/training-operator"
SCHEMES = [f"--enable-scheme={kind}" for kind in ("jaxjob", "paddlejob", "pytorchjob", "tfjob", "xgboostjob")]


def objects(settings: dict[str, Any] | None = None, **changes: Any) -> list[Rendered]:
    return rendered(with_addons({"training-operator": settings or {}}, **changes), "training-operator")


def test_gangs_are_handed_to_volcano() -> None:
    assert arguments(cluster(), TrainingOperatorSettings(), lock()["training-operator"]) == [
        "--gang-scheduler-name=volcano",
        "--controller-threads=4",
        *SCHEMES,
        "--pytorch-init-container-image=alpine:3.10",
    ]


def test_without_a_gang_scheduler_there_is_no_such_argument() -> None:
    environment = cluster(scheduling={"gang": "none"})
    found = arguments(environment, TrainingOperatorSettings(threads=8), lock()["training-operator"])
    assert found == ["--controller-threads=8", *SCHEMES, "--pytorch-init-container-image=alpine:3.10"]


@pytest.mark.parametrize(
    ("settings", "registry", "image"),
    [
        ({}, "", "alpine:3.10"),
        ({}, "mirror.acme.com", "mirror.acme.com/library/alpine:3.10"),
        # An image that somebody names is theirs, wherever it is.
        ({"init-image": "registry.acme.com/tools:1"}, "mirror.acme.com", "registry.acme.com/tools:1"),
    ],
)
def test_the_image_that_workers_wait_in(settings: dict[str, Any], registry: str, image: str) -> None:
    environment = cluster(cluster={"registry": registry})
    found = arguments(environment, TrainingOperatorSettings.model_validate(settings), lock()["training-operator"])
    assert found[-1] == f"--pytorch-init-container-image={image}"


@pytest.mark.parametrize("settings", [{"threads": 0}, {"threads": 65}, {"init-image": ""}, {"leader": True}])
def test_settings_that_are_refused(settings: dict[str, Any]) -> None:
    pattern = f"1 validation error for TrainingOperatorSettings\n{next(iter(settings))}"
    with pytest.raises(ValidationError, match=pattern):
        TrainingOperatorSettings.model_validate(settings)


@pytest.mark.sandbox
class TestUpstream:
    def test_every_object_is_sound(self) -> None:
        assert_sound(objects())

    def test_all_kinds_but_the_one_that_another_operator_owns(self) -> None:
        crds = manifests(objects(), "CustomResourceDefinition")
        assert sorted(crds) == sorted(f"{kind}s.kubeflow.org" for kind in KINDS)
        assert "mpijobs.kubeflow.org" not in crds

    def test_the_image_is_the_locked_one(self) -> None:
        tag = lock()["training-operator"].images[IMAGE]
        assert images(objects()) == [f"{IMAGE}:{tag}"]
        mirrored = images(objects(cluster={"registry": "mirror.acme.com"}))
        assert mirrored == [f"mirror.acme.com/kubeflow/training-v1/training-operator:{tag}"]

    def test_the_locked_images_are_those_that_upstream_sets(self) -> None:
        [overlay] = source("training-operator").manifests("manifests/overlays/standalone/kustomization.yaml")
        tags = {image["name"]: image["newTag"] for image in overlay["images"]}
        [default] = re.findall(
            r'PyTorchInitContainerImageDefault = "(.+)"', code("training-operator", "pkg/config/config.go")
        )
        image, _, tag = default.partition(":")
        assert lock()["training-operator"].images == tags | {image: tag}

    def test_every_kind_is_checked_by_a_webhook(self) -> None:
        # The operator writes its CA into the configuration of this name.
        name = "validator.training-operator.kubeflow.org"
        webhooks = manifests(objects(), "ValidatingWebhookConfiguration")[name]["webhooks"]
        services = [webhook["clientConfig"]["service"] for webhook in webhooks]
        assert services == [
            {"name": "training-operator", "namespace": "kubeflow", "path": f"/validate-kubeflow-org-v1-{kind}"}
            for kind in KINDS
        ]
        assert {webhook["failurePolicy"] for webhook in webhooks} == {"Fail"}

    def test_the_operator_finds_the_empty_secret_that_it_fills(self) -> None:
        found = objects()
        assert manifests(found, "Secret") == {
            "training-operator-webhook-cert": {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "training-operator-webhook-cert", "namespace": "kubeflow"},
                "type": "Opaque",
            }
        }
        pod = manifests(found, "Deployment")["training-operator"]["spec"]["template"]["spec"]
        assert [volume["secret"]["secretName"] for volume in pod["volumes"]] == ["training-operator-webhook-cert"]

    def test_the_deployment(self) -> None:
        environment = with_addons({"training-operator": {"threads": 2}})
        found = rendered(environment, "training-operator")
        deployment = manifests(found, "Deployment")["training-operator"]
        # Two of it would work against each other: it elects no leader.
        assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (1, {"type": "Recreate"})
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        settings = TrainingOperatorSettings(threads=2)
        assert container["args"] == arguments(environment, settings, lock()["training-operator"])
        assert container["resources"]["requests"].keys() == container["resources"]["limits"].keys() == {"cpu", "memory"}
        assert_restricted(found)
        namespaces = manifests(found, "Namespace")
        assert {name: pod_security(one) for name, one in namespaces.items()} == {"kubeflow": level("restricted")}

    def test_the_account_may_what_the_role_says(self) -> None:
        found = objects()
        binding = manifests(found, "ClusterRoleBinding")["training-operator"]
        account = {"kind": "ServiceAccount", "name": "training-operator", "namespace": "kubeflow"}
        assert binding["subjects"] == [account]
        [podgroups] = [
            rule
            for rule in manifests(found, "ClusterRole")["training-operator"]["rules"]
            if rule["apiGroups"] == ["scheduling.volcano.sh"]
        ]
        assert "create" in podgroups["verbs"]
