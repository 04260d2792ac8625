"""Parts of a component: what each kind of them is given, and which are left out while a source is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from gpuyard.errors import InputError
from gpuyard.manifests import Rendered, declare
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Component, Pin, Registry, Source, build
from tests.components.clusters import cluster


@dataclass
class Locked:
    """What is locked of a source."""

    version: str
    images: dict[str, str]


class Sources:
    """Sources that are all at v1; those that are `ready` are in the cache."""

    def __init__(self, *ready: str) -> None:
        self.ready = ready

    def missing(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.ready]

    def open(self, name: str) -> Any:
        assert name in self.ready
        return Locked(f"{name} v1", {})

    def pin(self, name: str) -> Locked:
        return Locked(f"{name} v1", {"acme/agent": "v7"})


def echo(name: str, text: str) -> Rendered:
    metadata = {"name": name, "namespace": "default"}
    return declare({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}})


def registry() -> Registry:
    component = Component("echo")

    @component.part
    def plain(environment: Environment, settings: None) -> list[Rendered]:
        return [echo("plain", environment.name)]

    @component.sourced("acme")
    def sourced(environment: Environment, settings: None, source: Source) -> list[Rendered]:
        return [echo("sourced", source.version)]

    @component.pinned("acme")
    def pinned(environment: Environment, settings: None, pin: Pin) -> list[Rendered]:
        return [echo("pinned", f"{pin.version}, agent {pin.images['acme/agent']}")]

    found = Registry()
    found.add(component)
    return found


def test_each_part_gets_what_it_registered_for() -> None:
    built = build(registry(), cluster(), Sources("acme"))

    assert {one.identity.name: one.manifest["data"]["text"] for one in built.objects} == {
        "plain": "test",
        "sourced": "acme v1",
        "pinned": "acme v1, agent v7",
    }
    assert built.skipped == ()


def test_a_pinned_part_is_never_skipped() -> None:
    built = build(registry(), cluster(), Sources(), allow_missing=True)

    assert {one.identity.name for one in built.objects} == {"plain", "pinned"}
    assert built.skipped == ("acme",)


def test_a_source_of_which_only_the_pin_is_needed_may_be_missing() -> None:
    component = Component("echo")
    component.pinned("acme")(lambda environment, settings, pin: [echo("pinned", pin.version)])
    found = Registry()
    found.add(component)

    assert [one.identity.name for one in build(found, cluster(), Sources()).objects] == ["pinned"]


def test_a_missing_source_stops_the_build() -> None:
    with pytest.raises(InputError) as error:
        build(registry(), cluster(), Sources())

    assert str(error.value) == (
        "error  1 source is not in the cache\n"
        "  gpuyard.lock.yaml\n"
        "  acme\n"
        "  fix: gpuyard sources pull acme, or go on without with --allow-missing-sources"
    )
