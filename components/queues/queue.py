"""The Volcano Queue of a team or a shared quota, and the one number that it shares with the ResourceQuota."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Manifest
from gpuyard.manifests.quantity import format_resource
from gpuyard.model.environment import Environment, Path

RESERVED = ("default", "root")
"""Queues that Volcano makes itself."""


def queue(environment: Environment, name: str, quota: dict[str, int], share: int, path: Path) -> Manifest:
    """Return a Queue below the root with `quota` in GPUs of each pool as its limit and as what it may claim back.

    path: where it is written, for errors. Raises InputError for a reserved name and for a quota of nothing: Volcano
    reads a capability of zero CPUs as unlimited (pkg/scheduler/plugins/capacity/capacity.go).
    `guarantee` is left out: it would keep GPUs idle that their owner can claim back through `deserved` anyway.
    `parent` is written out because the queue controller adds it otherwise.
    """
    field = ".".join(map(str, path[2:] if path[0] == "teams" else path))
    if name in RESERVED:
        raise InputError(
            Problem(
                "reserved name",
                environment.origin(*path, "name"),
                field or "name",
                f"{name}: Volcano makes queues called {' and '.join(RESERVED)} itself",
                "choose another name",
            )
        )
    if not any(quota.values()):
        raise InputError(
            Problem(
                "quota of nothing",
                environment.origin(*path, "quota"),
                f"{field}.quota" if field else "quota",
                f"queue {name} would be without a limit: Volcano reads zero as unlimited",
                "give it at least one GPU of a pool, or CPUs of a pool without GPUs",
            )
        )
    amounts = format_amounts(quota_amounts(environment, quota))
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "gpuyard"}},
        "spec": {
            "parent": "root",
            "weight": share,
            "reclaimable": True,
            "capability": amounts,
            "deserved": dict(amounts),
        },
    }


def team_quota(environment: Environment, team: str) -> dict[str, int]:
    """Return what pods of a team can come to, in GPUs (CPUs) of each pool: its own quota and the queues it may use."""
    total = dict(environment.teams[team].quota)
    for name in environment.usable_queues(team)[1:]:
        for pool, count in environment.scheduling.queues[name].quota.items():
            total[pool] = total.get(pool, 0) + count
    return total


def quota_amounts(environment: Environment, quota: dict[str, int]) -> dict[str, Decimal]:
    """Return a quota in every resource that some node of the cluster offers, zero where it has none.

    Whoever leaves a resource out leaves it without a limit, in a Queue as in a ResourceQuota.
    """
    nothing = dict.fromkeys(sorted({name for pool in environment.pools.values() for name in pool.node}), Decimal(0))
    return nothing | environment.quota_resources(quota)


def format_amounts(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    """Return amounts as Kubernetes writes them, cards and interfaces in whole pieces.

    Half an interface, the share of an odd number of GPUs, is refused by Volcano's webhook; a part counts as one more.
    """
    return {
        name: format_resource(name, value.to_integral_value(rounding="ROUND_CEILING") if "/" in name else value)
        for name, value in amounts.items()
    }
