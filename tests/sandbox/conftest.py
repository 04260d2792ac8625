"""One sandbox for all tests that look at a live one, and the pieces of a render to change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuyard.manifests import Rendered, identity
from gpuyard.model.environment import Environment
from gpuyard.sandbox.api import Api

NAME = f"test-{os.getpid()}"


@dataclass
class Live:
    """A running sandbox and what it was made from."""

    environment: Environment
    objects: list[Rendered]
    binaries: dict[str, Path]
    sources: Any
    said: list[str]
    name: str = NAME

    @property
    def api(self) -> Api:
        from gpuyard.sandbox.state import Home

        return Api(Home(self.name).kubeconfig)

    def up(self, objects: list[Rendered] | None = None, **options: Any) -> Any:
        from gpuyard import sandbox

        self.said.clear()
        rendered = self.objects if objects is None else objects
        return sandbox.up(
            self.environment,
            rendered,
            self.binaries,
            self.sources,
            progress=self.said.append,
            name=self.name,
            **options,
        )

    def apply(self, objects: list[Rendered], **options: Any) -> Any:
        from gpuyard import sandbox

        return sandbox.apply(self.environment.name, objects, progress=self.said.append, name=self.name, **options)

    def find(self, kind: str, name: str) -> Rendered:
        (found,) = [one for one in self.objects if one.identity.kind == kind and one.identity.name.startswith(name)]
        return found

    def with_changed(self, *changed: Rendered) -> list[Rendered]:
        """Return the render with some objects in another form."""
        by_identity = {one.identity: one for one in changed}
        return [by_identity.pop(one.identity, one) for one in self.objects] + list(by_identity.values())

    def without(self, kind: str, name: str) -> list[Rendered]:
        gone = self.find(kind, name).identity
        return [one for one in self.objects if identity(one.manifest) != gone]


@pytest.fixture(scope="session")
def live() -> Iterator[Live]:
    from gpuyard import sandbox
    from gpuyard.sources import read_lock
    from gpuyard.sources.build import binaries
    from infra import assemble

    environment = assemble.load("sandbox")
    objects = assemble.build(environment).objects
    built = binaries(read_lock(assemble.LOCK), sandbox.BINARIES, lambda name, state: None)
    live = Live(environment, objects, dict(built), assemble.open_sources(), [])
    try:
        live.up()
        yield live
    finally:
        sandbox.down(progress=live.said.append, name=NAME)
