"""A component class used alone, in somebody's own Pulumi program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import pulumi
import pytest

from components.jobs.resource import Jobs
from components.priorities.resource import Priorities
from gpuyard.errors import InputError
from gpuyard.manifests import Rendered, declare
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Component as Content
from gpuyard.model.registry import Registry
from gpuyard.model.settings import Settings
from gpuyard.pulumi.component import Component
from gpuyard.pulumi.testing import run
from tests.components.clusters import cluster
from tests.pulumi.small import crd, kubernetes, named


class NoSources:
    """A cache in which nothing is."""

    def missing(self, names: Iterable[str]) -> list[str]:
        return list(names)

    def open(self, name: str) -> Any:
        raise AssertionError(f"{name} is opened though it is missing")

    def pin(self, name: str) -> Any:
        raise AssertionError(f"no component here is pinned to {name}")


class EchoSettings(Settings):
    """Settings of the add-on below."""

    replicas: int = 1


def register(registry: Registry) -> None:
    content = Content("echo", settings=EchoSettings)

    @content.part
    def echo(environment: Environment, settings: EchoSettings) -> list[Rendered]:
        deployment = named(
            "apps/v1", "Deployment", "echo", "echo", spec={"replicas": settings.replicas, "template": {}}
        )
        return [declare(named("v1", "Namespace", "echo")), declare(deployment), declare(crd())]

    registry.add(content)


class Echo(Component[EchoSettings]):
    """An add-on of objects in two layers."""

    component = "echo"
    content = staticmethod(register)
    exposes: ClassVar = {"namespaces": "Namespace", "deployments": "Deployment"}

    namespaces: pulumi.Output[list[str]]
    deployments: pulumi.Output[list[str]]


def test_typed_settings_in_objects_of_all_layers_out() -> None:
    done = run(lambda: Echo("echo", EchoSettings(replicas=3), cluster(), NoSources()), stack="mine")

    objects = kubernetes(done.resources)
    assert set(objects) == {
        "CustomResourceDefinition/pytorchjobs.kubeflow.org",
        "Deployment/echo/echo",
        "Namespace/echo",
    }
    assert objects["Deployment/echo/echo"].props["spec"]["replicas"] == 3
    assert objects["Deployment/echo/echo"].dependencies == (objects["Namespace/echo"].urn,)


def test_names_are_outputs_and_whoever_uses_one_waits_for_the_object() -> None:
    def program() -> None:
        echo = Echo("echo", EchoSettings(), cluster(), NoSources())
        pulumi.CustomResource("kubernetes:core/v1:ConfigMap", "mine", {"data": {"at": echo.deployments[0]}})

    done = run(program, stack="mine")

    objects = kubernetes(done.resources)
    assert objects["mine"].props == {"data": {"at": "echo/echo"}}
    assert objects["mine"].dependencies == (objects["Deployment/echo/echo"].urn,)
    assert [outputs for urn, outputs in done.outputs.items() if urn.endswith("::echo")] == [
        {"deployments": ["echo/echo"], "namespaces": ["echo"]}
    ]


def test_resource_options_go_to_the_component_and_its_objects() -> None:
    def program() -> None:
        provider = pulumi.ProviderResource("kubernetes", "theirs", {})
        Echo("echo", EchoSettings(), cluster(), NoSources(), pulumi.ResourceOptions(providers=[provider]))

    objects = kubernetes(run(program, stack="mine").resources).values()

    assert {one.provider.split("::")[-2] for one in objects} == {"theirs"}


def test_a_component_without_settings() -> None:
    done = run(lambda: Priorities("priorities", None, cluster(), NoSources()), stack="mine")

    assert [(one.type, one.name) for one in done.resources if not one.custom] == [
        ("gpuyard:priorities:Priorities", "priorities")
    ]
    assert set(kubernetes(done.resources)) == {"PriorityClass/batch", "PriorityClass/research"}


def test_a_platform_of_priorities_has_no_jobs_and_jobs_have_no_priorities() -> None:
    job = {
        "name": "resnet50",
        "team": "vision",
        "kind": "pytorch",
        "image": "registry.acme.com/vision/resnet:1",
        "command": ["train"],
        "nodes": 2,
        "gpus": 8,
        "pools": ["a100"],
    }
    done = run(lambda: Jobs("jobs", None, cluster(job=job), NoSources()), stack="mine")

    (name,) = kubernetes(done.resources)
    assert name.startswith("PyTorchJob/vision/resnet50/resnet50-")


def test_a_missing_source_is_an_error() -> None:
    from components.volcano.resource import Volcano
    from components.volcano.settings import VolcanoSettings

    with pytest.raises(InputError) as error:
        run(lambda: Volcano("volcano", VolcanoSettings(), cluster(), NoSources()), stack="mine")

    assert str(error.value).startswith("error  1 source is not in the cache\n  gpuyard.lock.yaml\n  volcano\n")
