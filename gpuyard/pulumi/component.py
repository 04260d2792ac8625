"""The base of the component classes: one Pulumi resource for each capability, the parent of its objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar, Generic, Self, TypeVar

import pulumi

from gpuyard.manifests import LAYERS, Identity
from gpuyard.manifests.graph import Graph
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Registry, Sources, build
from gpuyard.model.settings import Settings
from gpuyard.pulumi.register import register

S = TypeVar("S", bound=Settings | None)


class Component(pulumi.ComponentResource, Generic[S]):
    """A capability of the platform as a Pulumi component. Its type token is `gpuyard:<component>:<Class>`.

    Used alone, `Volcano("volcano", VolcanoSettings(), environment, sources)` renders the component and registers all
    its objects. In a whole platform the objects of all components are registered together, in the order of their
    dependencies: there `part` makes the parent, and `expose` fills in the outputs afterwards.

    component: the name that signs the objects.
    content:   the `register` of the component's package.
    exposes:   outputs by attribute; each holds the names of the component's objects of one kind.
    """

    component: ClassVar[str]
    content: ClassVar[Callable[[Registry], None]]
    exposes: ClassVar[Mapping[str, str]]

    def __init__(
        self,
        name: str,
        settings: S,
        environment: Environment,
        sources: Sources,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        self._open(name, opts)
        registry = Registry()
        type(self).content(registry)
        alone = replace(
            environment,
            addons={**environment.addons, self.component: settings} if settings else environment.addons,
            jobs=environment.jobs if registry.kinds else {},
        )
        graph = Graph(build(registry, alone, sources).objects)
        self.expose(register(graph, LAYERS, {self.component: self})[self.component])

    @classmethod
    def part(cls, name: str, opts: pulumi.ResourceOptions | None = None) -> Self:
        """Return the component without objects."""
        self = cls.__new__(cls)
        self._open(name, opts)
        return self

    def expose(self, resources: Mapping[Identity, pulumi.Resource]) -> None:
        """Set the outputs from the component's registered objects."""
        outputs = {attribute: _names(kind, resources) for attribute, kind in self.exposes.items()}
        for attribute, names in outputs.items():
            setattr(self, attribute, names)
        self.register_outputs(outputs)

    def _open(self, name: str, opts: pulumi.ResourceOptions | None) -> None:
        super().__init__(f"gpuyard:{self.component}:{type(self).__name__}", name, None, opts)


def _names(kind: str, resources: Mapping[Identity, pulumi.Resource]) -> pulumi.Output[list[str]]:
    """Return the names of the objects of a kind, in namespaces as namespace/name.

    What uses the output waits for these objects.
    """
    chosen = [who for who in sorted(resources) if who.kind == kind]
    names = [f"{who.namespace}/{who.name}" if who.namespace else who.name for who in chosen]
    return pulumi.Output.all(*(resources[who].urn for who in chosen)).apply(lambda _: names)
