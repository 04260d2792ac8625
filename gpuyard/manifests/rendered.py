"""The one currency of gpuyard: a Kubernetes object as a plain dict, with what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from gpuyard.errors import Origin
from gpuyard.manifests.identity import Identity, identity
from gpuyard.manifests.pods import Path, pod_specs
from gpuyard.manifests.references import Known, Reference, references

Manifest: TypeAlias = dict[str, Any]
Layer: TypeAlias = Literal["crds", "platform", "jobs"]

LAYERS: tuple[Layer, ...] = ("crds", "platform", "jobs")
"""In the order of deployment; each is a stack of its own."""


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """How an object lives once it is deployed.

    protect: refuse to delete it until that is said explicitly.
    retain:  leave it in the cluster when it leaves the render.
    replace: "delete-first" for objects with a fixed name; "never" for runs, which are never replaced.
    ignore:  property paths that controllers write after us, in Pulumi's syntax: "webhooks[*].clientConfig.caBundle".
    wait:    wait until it is ready before what depends on it.
    """

    protect: bool = False
    retain: bool = False
    replace: Literal["delete-first", "never"] = "delete-first"
    ignore: tuple[str, ...] = ()
    wait: bool = True


@dataclass(frozen=True)
class Rendered:
    """One object of a platform and where it came from. Only `manifest` is ever written out.

    A manifest is never changed once it is wrapped: what is known of it is worked out once, and equal parts of it, or of
    two manifests, may be one object.

    id:        stable over runs: two runs of one job share it, though their names differ.
    component: the package that made it: "volcano".
    layer:     the stack it is deployed in.
    origin:    the file and line that caused it; None for what every environment has.
    """

    manifest: Manifest
    id: str
    component: str = ""
    layer: Layer = "platform"
    origin: Origin | None = None
    lifecycle: Lifecycle = field(default_factory=Lifecycle)

    @cached_property
    def identity(self) -> Identity:
        return identity(self.manifest)

    @cached_property
    def pods(self) -> tuple[tuple[Path, Mapping[str, Any]], ...]:
        """Path and spec of every pod template inside the object, see `pod_specs`."""
        return tuple(pod_specs(self.manifest))

    @cached_property
    def references(self) -> list[Reference]:
        """What the object names, see `gpuyard.manifests.references`."""
        return references(self.identity, self.manifest, self.pods, {})

    def read_references(self, known: Known) -> list[Reference]:
        """Return `references`, read at once with those of other objects; see `gpuyard.manifests.references`."""
        if "references" not in self.__dict__:
            self.__dict__["references"] = references(self.identity, self.manifest, self.pods, known)
        return self.references

    def of(self, component: str) -> Rendered:
        """Return the same object, signed by the component that made it."""
        signed = object.__new__(Rendered)
        # With all that is known of the object; `replace` would forget it.
        signed.__dict__.update(self.__dict__, component=component)
        return signed


RETAINED_CRD = Lifecycle(retain=True, replace="never")
"""Deleting a CRD deletes every object of its kind in every namespace, so no command of ours does it."""


RUN = Lifecycle(retain=True, replace="never", ignore=("spec",), wait=False)
"""A run of a training job is never changed, replaced or deleted by us, and nothing waits for its end."""


def declare(
    manifest: Manifest,
    *,
    id: str | None = None,
    layer: Layer | None = None,
    origin: Origin | None = None,
    lifecycle: Lifecycle | None = None,
) -> Rendered:
    """Wrap a manifest. Left out, the id is `Kind/namespace/name`, and a CustomResourceDefinition goes to layer `crds`.

    The component is filled in by `gpuyard.model.registry.build`.
    """
    is_crd = manifest["kind"] == "CustomResourceDefinition"
    return Rendered(
        manifest=manifest,
        id=id or "/".join(part for part in identity(manifest)[1:] if part),
        layer=layer or ("crds" if is_crd else "platform"),
        origin=origin,
        lifecycle=lifecycle or (RETAINED_CRD if is_crd else Lifecycle()),
    )
