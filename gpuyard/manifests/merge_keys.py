"""Which items of two lists are the same thing: Kubernetes merges its lists by the fields below.

Source: x-kubernetes-patch-merge-key and x-kubernetes-list-map-keys of the Kubernetes OpenAPI document. Custom resources
follow the same habits, and things with a `name` are told apart by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuyard.manifests.data import at, is_map

_NAME = ("name",)
_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "conditions": (("type",),),
    "hostAliases": (("ip",),),
    # A container's ports, then a Service's.
    "ports": (("containerPort", "protocol"), ("port", "protocol")),
    "subjects": (("kind", "namespace", "name"),),
    "topologySpreadConstraints": (("topologyKey", "whenUnsatisfiable"),),
    "volumeClaimTemplates": (("metadata.name",),),
    "volumeDevices": (("devicePath",),),
    "volumeMounts": (("mountPath",),),
}
_DEFAULTS = {"protocol": "TCP"}
"""What a field of a key means when it is left out; it is left out of the key's text, too."""


def item_keys(field: str, before: Sequence[Any], after: Sequence[Any]) -> tuple[list[str], list[str]] | None:
    """Return the key of every item of two lists under `field`; None when nothing tells the items apart."""
    if not all(is_map(item) for item in (*before, *after)):
        return None
    for fields in (*_KEYS.get(field, ()), _NAME):
        keys = [_key(fields, item) for item in before], [_key(fields, item) for item in after]
        if all(all(side) and len(set(side)) == len(side) for side in keys):
            return keys
    return None


def _key(fields: tuple[str, ...], item: Any) -> str:
    """Return the text of an item's key: `train`, `8080`, `53/UDP`. "" for an item without one."""
    values = {field: at(item, *field.split(".")) for field in fields}
    if not any(value for field, value in values.items() if field not in _DEFAULTS):
        return ""
    return "/".join(str(value) for field, value in values.items() if value and value != _DEFAULTS.get(field))
