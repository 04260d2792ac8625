"""Patches of upstream files: what fits, and what a person reads when upstream has changed."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from components.upstream import Upstream, mirrored
from gpuyard.errors import InputError
from tests.components.clusters import cluster

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "scheduler", "namespace": "system"},
    "spec": {"replicas": 1, "containers": [{"image": "docker.io/acme/scheduler:v1", "args": ["--leader-elect=false"]}]},
}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "scheduler", "namespace": "system"}}


class Acme:
    """An upstream system with one file."""

    version = "v2"
    images = {"docker.io/acme/scheduler": "v2.1"}

    def manifests(self, path: str) -> list[dict[str, Any]]:
        return deepcopy([DEPLOYMENT, SERVICE])

    def chart(self, **_: Any) -> list[dict[str, Any]]:
        raise AssertionError("has no chart")


def upstream() -> tuple[Upstream, dict[str, Any]]:
    file = Upstream("acme", Acme(), "all.yaml")
    return file, file.take("Deployment", "scheduler")


def test_patches_that_fit() -> None:
    file, manifest = upstream()
    container = ("spec", "containers", 0)
    file.expect(manifest, ("metadata", "namespace"), "system")
    file.replace(manifest, ("spec", "replicas"), 2)
    file.add(manifest, ("spec", "strategy"), {"type": "Recreate"})
    file.remove(manifest, ("metadata", "namespace"))
    file.set_flag(manifest, (*container, "args"), "--leader-elect", "true")
    file.set_image(manifest, container, "docker.io/acme/scheduler", file.image("docker.io/acme/scheduler"))
    assert manifest["metadata"] == {"name": "scheduler"}
    assert manifest["spec"] == {
        "replicas": 2,
        "strategy": {"type": "Recreate"},
        "containers": [{"image": "docker.io/acme/scheduler:v2.1", "args": ["--leader-elect=true"]}],
    }
    assert file.take_all("Service") == [SERVICE]
    file.finish()


@pytest.mark.parametrize(
    ("patch", "what"),
    [
        (
            lambda file, one: file.replace(one, ("spec", "template", "spec"), {}),
            "Deployment system/scheduler, spec.template: nothing is there",
        ),
        (
            lambda file, one: file.remove(one, ("spec", "containers", 1)),
            "Deployment system/scheduler, spec.containers.1: nothing is there",
        ),
        (
            lambda file, one: file.add(one, ("spec", "replicas"), 2),
            "Deployment system/scheduler, spec.replicas: upstream sets 1 by now",
        ),
        (
            lambda file, one: file.expect(one, ("spec", "replicas"), 2),
            "Deployment system/scheduler, spec.replicas: expected 2, found 1",
        ),
        (
            lambda file, one: file.set_flag(one, ("spec", "containers", 0, "args"), "--leader", "true"),
            "Deployment system/scheduler, spec.containers.0.args: --leader= is there 0 times",
        ),
        (
            lambda file, one: file.set_image(one, ("spec", "containers", 0), "docker.io/acme/other", "x"),
            "Deployment system/scheduler, spec.containers.0.image: "
            "expected an image of docker.io/acme/other, found docker.io/acme/scheduler:v1",
        ),
        (lambda file, one: file.take("Deployment", "scheduler"), "Deployment scheduler: is not in the file"),
        (lambda file, one: file.take_all("Secret", "Role"), "Secret or Role: is not in the file"),
        (lambda file, one: file.finish(), "Service system/scheduler: is in the file and is neither used nor dropped"),
    ],
)
def test_patches_that_do_not_fit(patch: Callable[[Upstream, dict[str, Any]], object], what: str) -> None:
    with pytest.raises(InputError) as error:
        patch(*upstream())
    assert str(error.value) == (
        "error  a patch does not fit its upstream file\n"
        "  acme v2, all.yaml\n"
        f"  {what}\n"
        "  fix: read what changed upstream and change the component that patches it, or lock the former version"
    )


def test_an_image_that_is_not_locked() -> None:
    file, _ = upstream()
    with pytest.raises(InputError) as error:
        file.image("docker.io/acme/webhooks")
    assert str(error.value) == (
        "error  no tag for this image\n"
        "  gpuyard.lock.yaml   acme.images\n"
        "  docker.io/acme/webhooks\n"
        "  fix: add the image, with the tag that belongs to acme v2"
    )


@pytest.mark.parametrize(
    ("image", "pulled"),
    [
        ("docker.io/volcanosh/vc-scheduler:v1", "mirror.acme.com/hub/volcanosh/vc-scheduler:v1"),
        ("quay.io/prometheus/prometheus:v3", "mirror.acme.com/hub/prometheus/prometheus:v3"),
        ("localhost:5000/vision/resnet", "mirror.acme.com/hub/vision/resnet"),
        ("nvcr.io/nvidia", "mirror.acme.com/hub/nvidia"),
        ("volcanosh/vc-scheduler:v1", "mirror.acme.com/hub/volcanosh/vc-scheduler:v1"),
        ("alpine:3.10", "mirror.acme.com/hub/library/alpine:3.10"),
    ],
)
def test_images_through_a_mirror(image: str, pulled: str) -> None:
    assert mirrored(cluster(cluster={"registry": "mirror.acme.com/hub/"}), image) == pulled
    assert mirrored(cluster(), image) == image
