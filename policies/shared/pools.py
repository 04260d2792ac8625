"""The nodes of each pool as a scheduler sees them: which pods they accept, and how many of them they hold.

Source: kubernetes/kubernetes v1.34, staging/src/k8s.io/component-helpers/scheduling/corev1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpuyard.manifests.data import at
from gpuyard.model.environment import GPU, POOL_LABEL, Environment, Pool, Taint
from policies.shared.pods import Amounts

_UNKNOWN = frozenset(
    {"kubernetes.io/arch", "kubernetes.io/hostname", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"}
)
"""Labels that every node has with values that an environment does not tell: what selects by them is not judged."""

_NOTHING = Decimal(0)

Pods = Sequence[tuple[int, Amounts]]
"""Groups of equal pods: how many, and what each asks for."""


@dataclass(frozen=True)
class Nodes:
    """The nodes of one pool.

    offer:   what one node has, by resource.
    labels:  those that are known of every node.
    taints:  those that keep pods away which do not tolerate them.
    maximum: how many nodes there can be.
    """

    pool: str
    machine: str
    maximum: int
    offer: Amounts
    labels: dict[str, str]
    taints: tuple[Taint, ...]

    def refusal(self, pod: Mapping[str, Any]) -> str:
        """Return why no node accepts the pod, whatever it asks for; "" when they do."""
        selector: Mapping[str, str] = pod.get("nodeSelector") or {}
        for key, value in selector.items():
            if key not in _UNKNOWN and self.labels.get(key) != value:
                return f"the node selector wants {key}={value}"
        required = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
        terms: Sequence[Mapping[str, Any]] | None = at(pod, *required)
        if terms is not None and not any(_matches(term, self.labels) for term in terms):
            return "no term of the node affinity matches its labels"
        for taint in self.taints:
            if not any(_tolerates(toleration, taint) for toleration in pod.get("tolerations") or ()):
                return (
                    f"the taint {taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect} is not tolerated"
                )
        return ""

    def has(self, resource: str) -> Decimal | None:
        """Return what a node has of a resource; None for one that an environment does not describe, such as disk."""
        described = "/" in resource or resource.startswith("hugepages-")
        return self.offer.get(resource, _NOTHING if described else None)

    def excess(self, amounts: Amounts) -> list[str]:
        """Return the resources of which a pod asks for more than a whole node has."""
        return [each for each, amount in amounts.items() if (has := self.has(each)) is not None and amount > has]

    def distance(self, amounts: Amounts) -> tuple[int, Decimal]:
        """Return how far a pod is from fitting: the resources that a node lacks altogether, then the largest ratio."""
        offers = {resource: self.has(resource) for resource in self.excess(amounts)}
        ratios = [amounts[resource] / has for resource, has in offers.items() if has]
        return len(offers) - len(ratios), max(ratios, default=_NOTHING)

    def pods_per_node(self, amounts: Amounts) -> int:
        """Return how many equal pods one node holds; 1 where nothing that is described limits them."""
        rooms = [has // amount for each, amount in amounts.items() if amount and (has := self.has(each)) is not None]
        return int(min(rooms, default=Decimal(1)))

    def needed(self, pods: Pods) -> int:
        """Return a number of nodes below which these pods cannot run, however they are packed. Each fits a node."""
        needed = max(-(-count // self.pods_per_node(amounts)) for count, amounts in pods)
        for resource in {resource for _, amounts in pods for resource in amounts} if len(pods) > 1 else ():
            if has := self.has(resource):
                total = sum((count * amounts.get(resource, _NOTHING) for count, amounts in pods), _NOTHING)
                needed = max(needed, int((total / has).to_integral_value(rounding="ROUND_CEILING")))
        return needed


def nodes_by_pool(environment: Environment) -> dict[str, Nodes]:
    """Return the nodes of every pool, in the order in which the environment names the pools."""
    return {name: _nodes(name, pool) for name, pool in environment.pools.items()}


def _nodes(name: str, pool: Pool) -> Nodes:
    labels = {"kubernetes.io/os": "linux", POOL_LABEL: name}
    if pool.machine.product:
        labels["nvidia.com/gpu.product"] = pool.machine.product
    own = [taint for taint in pool.taints if taint.effect != "PreferNoSchedule"]
    return Nodes(
        pool=name,
        machine=pool.machine.name,
        maximum=pool.nodes.max,
        offer=pool.node,
        labels=labels | pool.machine.node_labels | pool.labels,
        taints=(*([Taint(key=GPU)] if pool.machine.gpus else ()), *own),
    )


def _tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    if toleration.get("effect") not in (None, "", taint.effect):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.key)
    # Clouds give the GPU taint different values, so its value is not known and any will do.
    return toleration.get("key") == taint.key and (taint.key == GPU or (toleration.get("value") or "") == taint.value)


def _matches(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    expressions = term.get("matchExpressions") or ()
    # A term without any requirement matches no node.
    return bool(expressions or term.get("matchFields")) and all(_holds(each, labels) for each in expressions)


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator = expression["key"], expression["operator"]
    values: Sequence[str] = expression.get("values") or []
    if key in _UNKNOWN:
        return True
    value = labels.get(key)
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if value is None or not value.isdigit():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
