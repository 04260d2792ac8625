"""A cluster in memory: enough of the API for what apply decides."""

from __future__ import annotations

import copy
from typing import Any

from gpuyard.manifests import Identity, identity
from gpuyard.sandbox.api import Api, ApiError


class FakeApi(Api):
    """Keeps what is applied; `log` is what was done, in order."""

    def __init__(self) -> None:
        self.objects: dict[Identity, dict[str, Any]] = {}
        self.log: list[str] = []
        self.refuses: dict[str, ApiError] = {}

    def apply(self, manifest: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        who = identity(manifest)
        if who.name in self.refuses:
            raise self.refuses[who.name]
        if not dry_run:
            self.log.append(f"apply {who}")
            status = self.objects.get(who, {}).get("status") or _ready(who.kind)
            self.objects[who] = copy.deepcopy(manifest) | {"status": status}
            self.objects[who]["metadata"]["generation"] = 1
        return manifest

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        return self.objects.get(Identity(api_version.rpartition("/")[0], kind, namespace, name))

    def list(self, api_version: str, kind: str, namespace: str = "", selector: str = "") -> list[dict[str, Any]]:
        group, wanted = api_version.rpartition("/")[0], dict(one.split("=") for one in selector.split(",") if one)
        return [
            found
            for who, found in self.objects.items()
            if (who.group, who.kind) == (group, kind) and namespace in ("", who.namespace)
            if wanted.items() <= (found["metadata"].get("labels") or {}).items()
        ]

    def merge(self, manifest: dict[str, Any], patch: Any, subresource: str = "") -> dict[str, Any]:
        found = self.objects[identity(manifest)]
        found["status"] = {**found["status"], **patch["status"]}
        return found

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> None:
        who = Identity(api_version.rpartition("/")[0], kind, namespace, name)
        self.log.append(f"delete {who}")
        self.objects.pop(who, None)


def _ready(kind: str) -> dict[str, Any]:
    true = {"status": "True"}
    return {
        "CustomResourceDefinition": {"conditions": [{"type": "Established", **true}]},
        "Deployment": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
        "Queue": {"state": "Open"},
    }.get(kind, {})
