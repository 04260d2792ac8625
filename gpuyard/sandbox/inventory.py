"""What was applied to a cluster, by which engine and for which environment: one ConfigMap, written first."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Identity, Layer, Rendered
from gpuyard.manifests.ownership import INVENTORY_NAME as NAME
from gpuyard.manifests.ownership import INVENTORY_NAMESPACE as NAMESPACE
from gpuyard.sandbox.api import Api

ENGINE = "apply"


@dataclass(frozen=True, slots=True)
class Entry:
    """An applied object: what is needed to find it again, and whether it may be deleted."""

    api_version: str
    identity: Identity
    layer: Layer
    protect: bool
    retain: bool
    run: bool

    @staticmethod
    def of(rendered: Rendered) -> Entry:
        life = rendered.lifecycle
        run = rendered.layer == "jobs" and life.replace == "never"
        return Entry(rendered.manifest["apiVersion"], rendered.identity, rendered.layer, life.protect, life.retain, run)


@dataclass
class Inventory:
    """The entries in the order in which they were applied."""

    environment: str
    engine: str = ENGINE
    entries: dict[Identity, Entry] = field(default_factory=dict[Identity, Entry])

    def add(self, objects: Iterable[Rendered]) -> None:
        for rendered in objects:
            self.entries.pop(rendered.identity, None)
            self.entries[rendered.identity] = Entry.of(rendered)

    def write(self, api: Api) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        if not api.get_like(namespace):
            api.apply(namespace)
        rows = [
            [entry.api_version, *entry.identity, entry.layer, entry.protect, entry.retain, entry.run]
            for entry in self.entries.values()
        ]
        api.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": NAME, "namespace": NAMESPACE},
                "data": {
                    "engine": self.engine,
                    "environment": self.environment,
                    "objects": "\n".join(json.dumps(row) for row in rows),
                },
            }
        )


def read_inventory(api: Api, environment: str) -> Inventory:
    """Return the cluster's inventory, an empty one on a new cluster.

    Raises InputError when another engine or another environment owns the cluster.
    """
    live = api.get("v1", "ConfigMap", NAME, NAMESPACE)
    if not live:
        return Inventory(environment)
    data: dict[str, str] = live["data"]
    for what, found, ours in (("engine", data["engine"], ENGINE), ("environment", data["environment"], environment)):
        if found != ours:
            raise InputError(
                Problem(
                    f"this cluster belongs to another {what}",
                    field=f"ConfigMap {NAMESPACE}/{NAME}: {what}",
                    detail=f"found {found}; this command is for {ours}",
                    fix=f"go on with {what} {found}, or start an empty cluster: gpuyard sandbox down",
                )
            )
    inventory = Inventory(environment)
    for line in data["objects"].splitlines():
        row: list[Any] = json.loads(line)
        entry = Entry(row[0], Identity(*row[1:5]), *row[5:])
        inventory.entries[entry.identity] = entry
    return inventory
