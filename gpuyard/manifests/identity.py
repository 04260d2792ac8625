"""What the API server calls an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Identity(NamedTuple):
    """What the API server calls one object. The version is left out: two versions of a kind are one object."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`Kind namespace/name`, as a person writes it."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def identity(manifest: Mapping[str, Any]) -> Identity:
    """Return the identity of a manifest; a missing namespace or group is the empty string."""
    api_version: str = manifest["apiVersion"]
    metadata: Mapping[str, Any] = manifest["metadata"]
    group = api_version.rpartition("/")[0]
    return Identity(group, manifest["kind"], metadata.get("namespace", ""), metadata["name"])
