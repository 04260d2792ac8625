"""CustomResourceDefinitions that are small and ours."""

from __future__ import annotations

from typing import Any


def crd(kind: str, plural: str, open_api: dict[str, Any], *older: dict[str, Any]) -> dict[str, Any]:
    """Return the definition of a kind of acme.com/v1; `older`: versions before that one."""
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": open_api}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.acme.com"},
        "spec": {
            "group": "acme.com",
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [*older, served],
        },
    }
