"""Every stack of every environment: what Pulumi registers is what is rendered."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from gpuyard.manifests import LAYERS, Layer, Rendered
from gpuyard.manifests.graph import Graph
from gpuyard.model.load import environments
from gpuyard.pulumi.program import register_platform
from gpuyard.pulumi.register import inputs, resource_name, resource_type
from gpuyard.pulumi.stacks import stack_name
from gpuyard.pulumi.testing import Registered, run
from infra import assemble
from infra.resources import component_classes
from tests.pulumi.small import UID

ENVIRONMENTS = environments(assemble.ROOT / "stacks")
STACKS = [(name, layer) for name in ENVIRONMENTS for layer in LAYERS]


@cache
def graph(environment: str) -> Graph:
    """Return the whole render. A source that is not in the cache is left out here as it is there."""
    return Graph(assemble.build(assemble.load(environment), allow_missing=True).objects)


@cache
def registered(environment: str, layer: Layer) -> list[Registered]:
    """Return what the Pulumi program registers."""
    whole = graph(environment)
    return run(
        lambda: register_platform(whole, layer, component_classes(), UID), stack=stack_name(environment, layer)
    ).resources


def pairs(environment: str, layer: Layer) -> list[tuple[Rendered, Registered]]:
    """Return every rendered object of a stack with what was registered for it."""
    objects = {
        (one.type, one.name): one for one in registered(environment, layer) if one.type.startswith("kubernetes:")
    }
    rendered = [one for one in graph(environment).objects.values() if one.layer == layer]
    keys = [(resource_type(one), resource_name(one)) for one in rendered]
    assert Counter(keys) == Counter(list(objects)), "the same objects, each once"
    return [(one, objects[key]) for one, key in zip(rendered, keys, strict=True)]


def test_there_are_four_environments() -> None:
    assert ENVIRONMENTS == ["dev", "prod", "sandbox", "staging"]


@pytest.mark.parametrize(("environment", "layer"), STACKS)
def test_every_object_is_registered_as_it_is_rendered(environment: str, layer: Layer) -> None:
    for rendered, resource in pairs(environment, layer):
        assert resource.props == inputs(rendered), resource.name


@pytest.mark.parametrize(("environment", "layer"), STACKS)
def test_every_object_lies_below_its_component_in_the_stack(environment: str, layer: Layer) -> None:
    components = {one.urn: one for one in registered(environment, layer) if one.type.startswith("gpuyard:")}
    classes = component_classes()
    for rendered, resource in pairs(environment, layer):
        parent = components[resource.parent]
        assert parent.type == f"gpuyard:{rendered.component}:{classes[rendered.component].__name__}"
        assert parent.name == rendered.component
    assert {one.parent for one in components.values()} <= {
        f"urn:pulumi:{stack_name(environment, layer)}::gpuyard::pulumi:pulumi:Stack::gpuyard-"
        f"{stack_name(environment, layer)}"
    }


@pytest.mark.parametrize(("environment", "layer"), STACKS)
def test_every_object_waits_for_what_it_needs_in_the_same_stack(environment: str, layer: Layer) -> None:
    urns = {rendered.identity: resource.urn for rendered, resource in pairs(environment, layer)}
    for rendered, resource in pairs(environment, layer):
        needed = graph(environment).dependencies.get(rendered.identity, [])
        assert resource.dependencies == tuple(sorted(urns[one] for one in needed if one in urns)), resource.name


@pytest.mark.parametrize(("environment", "layer"), STACKS)
def test_every_object_lives_as_its_lifecycle_says(environment: str, layer: Layer) -> None:
    for rendered, resource in pairs(environment, layer):
        lifecycle = rendered.lifecycle
        assert resource.protect == lifecycle.protect, resource.name
        assert resource.retain_on_delete == lifecycle.retain, resource.name
        assert resource.delete_before_replace == (lifecycle.replace == "delete-first"), resource.name
        assert resource.ignore_changes == lifecycle.ignore, resource.name


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_namespaces_queues_and_volumes_are_protected_where_the_environment_says_so(environment: str) -> None:
    kinds = ("Namespace", "Queue", "PersistentVolumeClaim")
    wanted = assemble.load(environment).cluster.protect
    for layer in LAYERS:
        for rendered, resource in pairs(environment, layer):
            if rendered.identity.kind in kinds:
                assert resource.protect == wanted, resource.name
    assert wanted == (environment == "prod")


def test_every_component_has_a_class() -> None:
    assert set(component_classes()) == {*assemble.registry().components, "jobs"}
