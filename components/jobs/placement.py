"""Which nodes the pods of a job may run on, and how a pod says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import combinations
from typing import Any

from components.jobs.refuse import refusal
from gpuyard.manifests import Manifest
from gpuyard.model.environment import GPU, Environment, Pool
from gpuyard.model.fabrics import Fabric
from gpuyard.model.jobs import Job

GIB, MIB = Decimal(2**30), Decimal(2**20)

MARGIN = Decimal("0.9")
"""Of a GPU's share of its node. The rest of the team's quota is left for pods without GPUs beside them."""

CPU_POD = Decimal(4), 16 * GIB
"""Cores and bytes of a pod without GPUs whose job does not say."""


@dataclass(frozen=True)
class Placement:
    """Where the pods of one role may run.

    pools:  the preferred one first.
    gpus:   of one pod.
    fabric: the fabric that the pod uses, None when it needs none or its nodes have none.
    gang:   roles of the pods that have to stand on one kind of node with it; empty where that is so anyway.
    key:    the node label that tells those kinds of nodes apart.
    """

    pools: dict[str, Pool]
    gpus: int
    fabric: Fabric | None = None
    gang: tuple[str, ...] = ()
    key: str = ""

    @cached_property
    def share(self) -> tuple[Decimal, Decimal]:
        """Cores and bytes that the pod's GPUs bring on the smallest node it may run on, less the margin."""
        if not self.gpus:
            return CPU_POD
        nodes = [pool.node for pool in self.pools.values()]
        cpu = min(node["cpu"] * MARGIN * self.gpus / node[GPU] for node in nodes)
        memory = min(node["memory"] * MARGIN * self.gpus / node[GPU] for node in nodes)
        return round_down(cpu, Decimal(1), Decimal("0.1")), round_down(memory, GIB, MIB)

    @cached_property
    def tolerations(self) -> list[Manifest]:
        """What a pod tolerates: the taint that keeps others off GPU nodes, and those of its pools."""
        found: list[Manifest] = []
        if self.gpus:
            found.append({"key": GPU, "operator": "Exists", "effect": "NoSchedule"})
        for pool in self.pools.values():
            for taint in pool.taints:
                value = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
                toleration = {"key": taint.key, **value, "effect": taint.effect}
                if toleration not in found:
                    found.append(toleration)
        return found

    @cached_property
    def affinity(self) -> Manifest:
        """The pod's affinity to its pools, the first before the second."""
        terms: list[Manifest] = [
            {
                "matchExpressions": [
                    {"key": key, "operator": "In", "values": [value]} for key, value in pool.selector.items()
                ]
            }
            for pool in self.pools.values()
        ]
        node: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        if len(terms) > 1 and self.gpus:
            node["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": max(100 - 10 * place, 1), "preference": term} for place, term in enumerate(terms)
            ]
        return {"nodeAffinity": node}

    @cached_property
    def container_security(self) -> Manifest:
        """The security context of a container: nothing but what the fabric needs."""
        capabilities: dict[str, list[str]] = {"drop": ["ALL"]}
        if self.fabric and self.fabric.capabilities:
            capabilities["add"] = list(self.fabric.capabilities)
        return {"allowPrivilegeEscalation": False, "capabilities": capabilities}


def round_down(value: Decimal, unit: Decimal, small: Decimal) -> Decimal:
    """Return the value in whole units, or in the smaller unit what is less than one."""
    step = unit if value >= unit else small
    return value - value % step


def place(environment: Environment, job: Job) -> dict[str, Placement]:
    """Return where the pods of each role may run.

    Whether they fit there is for the rules to say. Raises InputError when no pool is left for a role, and when pods
    that talk over a fabric could not.
    """
    key = ("place", job.kind, job.team, job.queue, job.priority, job.gpus, *job.pools, *job.pods.items())
    return environment.share(key, lambda: _place(environment, job))


def _place(environment: Environment, job: Job) -> dict[str, Placement]:
    _check_names(environment, job)
    places: dict[str, Placement] = {}
    roles = job.pods
    with_gpus = tuple(role for role in roles if job.gpus and role not in job.cpu_roles)
    if with_gpus:
        key = (job.team, job.queue, job.priority, tuple(job.pools), job.gpus, job.gpu_pods == 1, with_gpus)
        placement = environment.share(("gpus", *key), lambda: _on_gpu_pools(environment, job, with_gpus))
        places |= dict.fromkeys(with_gpus, placement)
    without = [role for role in roles if role not in places]
    if without:
        named = [name for name in job.pools if not environment.pools[name].machine.gpus]
        names = named or environment.cpu_pools()
        if not names:
            raise refusal(
                environment,
                job,
                ("pools",),
                "no pool without GPUs",
                f"{' and '.join(without)} pods hold no GPU and stay off GPU nodes; {environment.name} has no other",
                "add a pool of a machine without GPUs",
            )
        placement = environment.share(
            ("cpus", *names), lambda: Placement({name: environment.pools[name] for name in names}, 0)
        )
        places |= dict.fromkeys(without, placement)
    return {role: places[role] for role in roles}


def _check_names(environment: Environment, job: Job) -> None:
    """Refuse a pool that no pod of the job can use."""
    for index, name in enumerate(job.pools):
        has_gpus = environment.pools[name].machine.gpus > 0
        if has_gpus and not job.gpu_pods:
            detail = f"{name}: its nodes are kept for pods with GPUs, and this job has none"
        elif not has_gpus and job.gpu_pods == sum(job.pods.values()):
            detail = f"{name}: its nodes have no GPUs, and every pod of this job takes {job.gpus}"
        else:
            continue
        raise refusal(environment, job, ("pools", index), "pool of the wrong kind", detail, f"take {name} out")


def _on_gpu_pools(environment: Environment, job: Job, roles: Sequence[str]) -> Placement:
    pools = {
        name: environment.pools[name] for name in environment.job_pools(job) if environment.pools[name].machine.gpus
    }
    if not pools:
        quota = environment.teams[job.team].quota
        cards = [f"{name} {environment.pools[name].machine.gpus}" for name, count in quota.items() if count]
        raise refusal(
            environment,
            job,
            ("pools",) if job.pools else ("gpus",),
            "no pool for this job",
            f"a pod takes {job.gpus} GPUs; nodes that team {job.team} has a quota for: {', '.join(cards) or 'none'}",
            "name a pool with GPUs, or give the team a quota in one",
        )
    if job.gpu_pods == 1:
        return Placement(pools, job.gpus)
    fabric = _common_fabric(environment, job, pools)
    key = _key_of_kind(environment, job, pools)
    return Placement(pools, job.gpus, fabric, tuple(roles) if key else (), key)


def _common_fabric(environment: Environment, job: Job, pools: Mapping[str, Pool]) -> Fabric | None:
    """Return the fabric that the pods talk over. Raises InputError when they could not."""
    shapes = {name: environment.fabric_shape(name) for name in pools}
    first = next(iter(pools))
    for name, (fabric, count) in shapes.items():
        if (fabric, count) != shapes[first]:
            texts = [f"{one} has {number} {kind}" if number else f"{one} has none"
                     for one, (kind, number) in ((first, shapes[first]), (name, (fabric, count)))]  # fmt: skip
            raise refusal(
                environment,
                job,
                ("pools",),
                "pools with different interfaces",
                f"{', '.join(texts)} per node; {job.gpu_pods} pods of one job cannot talk over both",
                f"name pools with the same interfaces, or {_one_pod(job)}",
            )
    fabric = pools[first].fabric
    for name, pool in pools.items():
        if fabric and job.gpus < pool.machine.gpus:
            raise refusal(
                environment,
                job,
                ("gpus",),
                "part of a node with a fabric",
                f"{job.gpu_pods} pods of {job.gpus} GPUs on pool {name}, whose nodes have {pool.machine.gpus} GPUs and "
                f"{shapes[name][1]} {fabric.name} interfaces; a pod takes all interfaces of a node or none",
                f"gpus: {pool.machine.gpus}, or {_one_pod(job)}, or name pools without a fabric",
            )
    return fabric


def _one_pod(job: Job) -> str:
    """Return how a job of this kind says that a single pod holds its GPUs."""
    return "nodes: 1" if "nodes" in type(job).model_fields else "replicas: {worker: 1}"


def _key_of_kind(environment: Environment, job: Job, pools: Mapping[str, Pool]) -> str:
    """Return a label that all nodes of these pools have and that differs between machines; "" for one machine.

    A gang is as fast as its slowest GPU, so it must not spread over two kinds of node. Which kind it gets is open
    until it is scheduled: its pods are drawn to each other by this label, not by the name of a pool.
    """
    machines = {pool.machine.name for pool in pools.values()}
    if len(machines) == 1:
        return ""
    labels = {name: pool.machine.node_labels | pool.labels for name, pool in pools.items()}
    for key in labels[next(iter(pools))]:
        if all(key in known for known in labels.values()) and all(
            labels[one][key] != labels[other][key]
            for one, other in combinations(pools, 2)
            if pools[one].machine.name != pools[other].machine.name
        ):
            return key
    raise refusal(
        environment,
        job,
        ("pools",),
        "pools that no label tells apart",
        f"nodes of {' and '.join(pools)} are of {len(machines)} kinds, and a job of {job.gpu_pods} pods runs on one",
        "name one pool, or give the pools a label with different values",
    )


def affinity(job: Job, placement: Placement) -> Manifest:
    """Return the affinity of a pod: its pools and no other node, the first pool before the second.

    The job's own label is the operator's, not the job's name, because two runs of a job have nothing to do with each
    other. The first pod of a gang finds no other one and goes where it fits best; the rest follow it
    (k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity, which Volcano runs too).
    """
    if not placement.key:
        return placement.affinity
    selector: Manifest = {
        "matchLabels": {"training.kubeflow.org/job-name": job.object_name},
        # Without the roles on CPU nodes, which stand on another kind of node.
        "matchExpressions": [
            {"key": "training.kubeflow.org/replica-type", "operator": "In", "values": sorted(placement.gang)}
        ],
    }
    together = [{"labelSelector": selector, "topologyKey": placement.key}]
    return {**placement.affinity, "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": together}}
