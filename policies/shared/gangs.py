"""The pods of a training job, read off its custom resource.

Source: kubeflow/trainer v1.9.4, pkg/apis/kubeflow.org/v1 (types and defaults) and pkg/controller.v1/common (PodGroup).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gpuyard.manifests import Rendered
from gpuyard.manifests.data import at, below, is_map
from gpuyard.rules import Context

API_VERSION = "kubeflow.org/v1"
REPLICAS = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
}
"""The field of `spec` that holds the pods of each kind, by role."""

POLICY = ("spec", "runPolicy", "schedulingPolicy")


class Role(NamedTuple):
    """Pods of one template: the role as the object spells it, how many there are, and where their spec is."""

    name: str
    replicas: int
    pod: Mapping[str, Any]
    path: tuple[str, ...]


class Gang(NamedTuple):
    """The pods of one training job.

    policy:  its runPolicy.schedulingPolicy; None where it has none.
    minimum: of an elastic job, the pods that it can start with; None of any other.
    total:   number of its pods.
    shape:   equal for gangs with the same policy and the same roles, whose pods ask for the same on the same nodes.
             Jobs of one pool share these parts, so a rule that found one of them good need not look at the next.
    """

    rendered: Rendered
    roles: tuple[Role, ...]
    policy: Mapping[str, Any] | None
    minimum: int | None
    total: int
    shape: tuple[Any, ...]

    @property
    def counts(self) -> str:
        """`Master 1 + Worker 3 = 4 pods`"""
        parts = " + ".join(f"{role.name} {role.replicas}" for role in self.roles)
        return f"{parts} = {self.total} pod{'' if self.total == 1 else 's'}"

    @property
    def members(self) -> list[tuple[Role, int]]:
        """Roles with as many pods as must start together: all of them; of an elastic job the first `minimum`."""
        left = self.total if self.minimum is None else self.minimum
        members: list[tuple[Role, int]] = []
        for role in self.roles:
            members.append((role, min(role.replicas, left)))
            left -= members[-1][1]
        return members


def whole_number(value: Any) -> int | None:
    """Return a count as an integer; it may come as a float. None for what is no count: the schema says that."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def gangs(context: Context) -> dict[int, Gang]:
    """Return the gangs of a render by `id` of their object, in its order. Most rules about jobs ask for them."""
    return context.once(_read_gangs)


def _read_gangs(context: Context) -> dict[int, Gang]:
    return {id(rendered): gang for rendered in context.objects if (gang := read_gang(rendered))}


def read_gang(rendered: Rendered) -> Gang | None:
    """Return the pods of a training job, or None for any other object and for one whose counts cannot be read."""
    manifest = rendered.manifest
    field = REPLICAS.get(manifest["kind"])
    if not field or manifest["apiVersion"] != API_VERSION:
        return None
    spec = manifest.get("spec")
    specs = at(spec, field)
    roles: list[Role] = []
    for name, role in specs.items() if is_map(specs) else ():
        replicas, pod = at(role, "replicas"), at(role, "template", "spec")
        if replicas is None:
            replicas = 0 if (manifest["kind"], name) == ("MPIJob", "Worker") else 1
        count = whole_number(replicas)
        if count is None or not is_map(pod):
            return None
        roles.append(Role(name, count, pod, ("spec", field, name, "template", "spec")))
    if not roles:
        return None
    policy, minimum = at(spec, *POLICY[1:]), _minimum(spec, roles)
    if not is_map(policy):
        policy = None
    total = sum([role.replicas for role in roles])
    return Gang(rendered, tuple(roles), policy, minimum, total, _shape(roles, policy, minimum))


def _shape(roles: list[Role], policy: Mapping[str, Any] | None, minimum: int | None) -> tuple[Any, ...]:
    parts: list[Any] = [id(policy), minimum]
    last: Mapping[str, Any] = {}
    for name, replicas, pod, _ in roles:
        parts += [name, replicas]
        if pod is not last:
            parts += [pod.get("schedulerName"), id(pod.get("nodeSelector")), id(at(pod, "affinity", "nodeAffinity"))]
            parts += [id(pod.get("tolerations")), id(pod.get("overhead")), id(pod.get("initContainers"))]
            parts += [id(one.get("resources")) for one in pod.get("containers") or ()]
        last = pod
    return tuple(parts)


def _minimum(spec: Any, roles: list[Role]) -> int | None:
    """minReplicas and maxReplicas default to each other, then to the number of workers."""
    elastic = at(spec, "elasticPolicy")
    if not is_map(elastic):
        return None
    for field in ("minReplicas", "maxReplicas"):
        if (number := whole_number(at(elastic, field))) is not None:
            return number
    return sum(role.replicas for role in roles if role.name == "Worker")


def policy_path(*field: str) -> str:
    """Return the JSON path of a field of schedulingPolicy."""
    return below("", *POLICY, *field)
