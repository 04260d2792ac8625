"""The nodes of each pool as a scheduler sees them: which pods they accept, and how many of them they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from gpuyard.manifests.scheduling import GPU, Taint, refusal
from gpuyard.model.environment import Environment
from policies.shared.pods import Amounts

_NOTHING = Decimal(0)

Pods = Sequence[tuple[int, Amounts]]
"""Groups of equal pods: how many, and what each asks for."""


class Nodes(NamedTuple):
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
        return refusal(pod, self.labels, self.taints, has_gpus=GPU in self.offer)

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
    return {
        name: Nodes(
            pool=name,
            machine=pool.machine.name,
            maximum=pool.nodes.max,
            offer=pool.node,
            labels=environment.node_labels(name),
            taints=environment.node_taints(name),
        )
        for name, pool in environment.pools.items()
    }
