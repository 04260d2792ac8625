"""Fields that the API server never changes: an object with another value there is another object.

Each row names the function of kubernetes/kubernetes that refuses the change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Path = Sequence[str | int]


class Immutable(NamedTuple):
    """fields: what cannot change, with everything below. but: what can, although it is below one of the fields."""

    source: str
    fields: tuple[tuple[str, ...], ...]
    but: tuple[tuple[str, ...], ...] = ()


class Refusal(NamedTuple):
    """What a rule of a CRD says against a change: the steps to the value that it is about, and its message."""

    steps: tuple[str | int, ...]
    message: str


class Unknown(NamedTuple):
    """A rule of a CRD that may be against a change and cannot be run: the steps to the value, its text, and why."""

    steps: tuple[str | int, ...]
    rule: str
    reason: str


_SELECTOR = (("spec", "selector"),)
_SPEC = (("spec",),)
_ROLE = (("roleRef",),)

IMMUTABLE: dict[tuple[str, str], Immutable] = {
    ("apps", "Deployment"): Immutable("pkg/registry/apps/deployment/strategy.go ValidateUpdate", _SELECTOR),
    ("apps", "DaemonSet"): Immutable("pkg/registry/apps/daemonset/strategy.go ValidateUpdate", _SELECTOR),
    ("apps", "ReplicaSet"): Immutable("pkg/registry/apps/replicaset/strategy.go ValidateUpdate", _SELECTOR),
    ("apps", "StatefulSet"): Immutable(
        "pkg/apis/apps/validation/validation.go ValidateStatefulSetUpdate",
        _SPEC,
        tuple(
            ("spec", name)
            for name in (
                "replicas",
                "ordinals",
                "template",
                "updateStrategy",
                "revisionHistoryLimit",
                "persistentVolumeClaimRetentionPolicy",
                "minReadySeconds",
            )
        ),
    ),
    ("batch", "Job"): Immutable(
        "pkg/apis/batch/validation/validation.go ValidateJobSpecUpdate",
        tuple(
            ("spec", name)
            for name in (
                "selector",
                "template",
                "completions",
                "completionMode",
                "podFailurePolicy",
                "successPolicy",
                "backoffLimitPerIndex",
                "managedBy",
            )
        ),
    ),
    ("", "PersistentVolumeClaim"): Immutable(
        "pkg/apis/core/validation/validation.go ValidatePersistentVolumeClaimUpdate",
        _SPEC,
        (("spec", "resources", "requests", "storage"), ("spec", "volumeAttributesClassName")),
    ),
    ("", "Service"): Immutable(
        "pkg/apis/core/validation/validation.go ValidateServiceUpdate", (("spec", "clusterIP"), ("spec", "clusterIPs"))
    ),
    ("", "Secret"): Immutable("pkg/apis/core/validation/validation.go ValidateSecretUpdate", (("type",),)),
    ("storage.k8s.io", "StorageClass"): Immutable(
        "pkg/apis/storage/validation/validation.go ValidateStorageClassUpdate",
        (("parameters",), ("provisioner",), ("reclaimPolicy",), ("volumeBindingMode",)),
    ),
    ("scheduling.k8s.io", "PriorityClass"): Immutable(
        "pkg/apis/scheduling/validation/validation.go ValidatePriorityClassUpdate", (("value",), ("preemptionPolicy",))
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): Immutable(
        "pkg/apis/rbac/validation/validation.go ValidateRoleBindingUpdate", _ROLE
    ),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): Immutable(
        "pkg/apis/rbac/validation/validation.go ValidateClusterRoleBindingUpdate", _ROLE
    ),
    ("node.k8s.io", "RuntimeClass"): Immutable(
        "pkg/apis/node/validation/validation.go ValidateRuntimeClassUpdate", (("handler",),)
    ),
    ("networking.k8s.io", "IngressClass"): Immutable(
        "pkg/apis/networking/validation/validation.go ValidateIngressClassUpdate", (("spec", "controller"),)
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Immutable(
        "staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go "
        "ValidateCustomResourceDefinitionUpdate",
        (("spec", "group"), ("spec", "scope"), ("spec", "names", "kind"), ("spec", "names", "plural")),
    ),
}
"""By group and kind."""

_SEALED = ("data", "binaryData", "stringData", "immutable")
"""Of a ConfigMap or Secret that says `immutable: true` (ValidateConfigMapUpdate and ValidateSecretUpdate)."""


def is_immutable(before: Mapping[str, Any], path: Path) -> bool:
    """Return whether the API server refuses a change of the field at `path` of an object that exists."""
    group = str(before["apiVersion"]).rpartition("/")[0]
    if before.get("immutable") is True and before["kind"] in ("ConfigMap", "Secret") and path[0] in _SEALED:
        return True
    row = IMMUTABLE.get((group, before["kind"]))
    if row is None:
        return False
    return any(_below(path, field) for field in row.fields) and not any(_below(path, field) for field in row.but)


def _below(path: Path, field: tuple[str, ...]) -> bool:
    return tuple(path[: len(field)]) == field
