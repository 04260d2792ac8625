"""A pod fits a node of a pool that accepts it, and a gang fits the nodes that the pool can have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from gpuyard.manifests import Rendered
from gpuyard.manifests.data import below
from gpuyard.manifests.quantity import format_resource
from gpuyard.model.environment import GPU, Environment
from gpuyard.model.jobs import Job
from gpuyard.rules import Context, Hit, Rule
from policies.shared.declared import as_written, declared_jobs, size_field, title
from policies.shared.gangs import Gang, Role, gangs
from policies.shared.pods import Amounts, pod_resources
from policies.shared.pools import Nodes, Pods, nodes_by_pool

Shape = tuple[tuple[str, ...], tuple[tuple[str, Decimal], ...]]
"""The pools that accept a pod, and what it asks for."""

SHOWN = 4
"""Pools that one message explains; the nearest come first."""

FIELDS = {"cpu": "cpu", "memory": "memory"}
"""The field of a job file behind a resource; GPUs, and the interfaces that come with them, are `gpus`."""


class Case(NamedTuple):
    """One object to judge, the job that it comes from, and the nodes that there are."""

    rendered: Rendered
    job: Job | None
    environment: Environment
    pools: Mapping[str, Nodes]

    def accepting(self, pod: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(name for name, nodes in self.pools.items() if not nodes.refusal(pod))

    def hit(self, path: str, problem: str, lines: Iterable[str], fix: str, field: str) -> Hit:
        message = "\n".join([f"{title(self.rendered, self.job)} {problem}", *lines])
        if not self.job:
            return Hit(self.rendered, path, message, fix=fix)
        origin = self.environment.origin("jobs", self.job.name, field)
        return Hit(self.rendered, path, message, origin, fix, as_written(self.environment, self.job, field))


def check(context: Context) -> Iterator[Hit]:
    environment = context.environment
    pools, jobs, of = nodes_by_pool(environment), declared_jobs(context), gangs(context)
    fitting: set[tuple[Any, ...]] = set()
    for rendered in context.objects:
        if gang := of.get(id(rendered)):
            if gang.shape not in fitting:
                found = list(_gang(gang, Case(rendered, jobs.get(rendered.identity[2:]), environment, pools)))
                yield from found
                fitting.update(() if found else [gang.shape])
            continue
        for path, pod in rendered.pods:
            amounts = pod_resources(rendered, pod)
            if amounts.get(GPU):
                case = Case(rendered, None, environment, pools)
                yield from _one_pod(case, below("", *path), "a pod", amounts, case.accepting(pod), pod)


def _gang(gang: Gang, case: Case) -> Iterator[Hit]:
    members = [(role, count) for role, count in gang.members if count]
    shapes: dict[Shape, list[int]] = {}
    for index, (role, _) in enumerate(members):
        amounts = pod_resources(gang.rendered, role.pod)
        shapes.setdefault((case.accepting(role.pod), tuple(amounts.items())), []).append(index)
    yield from _shapes(case, members, shapes)


def _shapes(case: Case, members: Sequence[tuple[Role, int]], shapes: Mapping[Shape, Sequence[int]]) -> Iterator[Hit]:
    together: dict[tuple[str, ...], list[tuple[int, Amounts]]] = {}
    for (accepting, items), indexes in shapes.items():
        amounts, (first, _) = dict(items), members[indexes[0]]
        fitting = tuple(name for name in accepting if not case.pools[name].excess(amounts))
        if not fitting:
            pods = f"a pod ({', '.join(members[index][0].name for index in indexes)})"
            yield from _one_pod(case, below("", *first.path), pods, amounts, accepting, first.pod)
            continue
        together.setdefault(fitting, []).append((sum(members[index][1] for index in indexes), amounts))
    for fitting, pods in together.items():
        yield from _all_pods(case, fitting, pods)


def _one_pod(
    case: Case, path: str, called: str, amounts: Amounts, accepting: Sequence[str], pod: Mapping[str, Any]
) -> Iterator[Hit]:
    """Compare one pod with one node of every pool that accepts it."""
    pools = case.pools
    large = [name for name in pools if not pools[name].excess(amounts)]
    if not accepting:
        nearest = [*large, *(name for name in pools if name not in large)][:SHOWN]
        lines = [f"pool {name}: {pools[name].refusal(pod)}" for name in nearest]
        fix = "select a pool by its labels and tolerate its taints"
        yield case.hit(path, "may run on no pool", lines, fix, "pools")
    elif not set(accepting) & set(large):
        nearest = sorted(accepting, key=lambda name: pools[name].distance(amounts))[:SHOWN]
        lines = [f"{called} {_comparison(amounts, pools[name])}" for name in nearest]
        closest = pools[nearest[0]]
        worst = {resource: closest.has(resource) for resource in closest.excess(amounts)}
        if lacking := [resource for resource, has in worst.items() if not has]:
            fix = f"run it on nodes with {', '.join(lacking)}"
        else:
            fix = f"ask for at most {_shown(worst)} in a pod" + (f", or run it on {large[0]}" if large else "")
        yield case.hit(path, "fits no node", lines, fix, FIELDS.get(next(iter(worst)), "gpus"))


def _comparison(amounts: Amounts, nodes: Nodes) -> str:
    excess = nodes.excess(amounts)
    asked = _shown({resource: amounts[resource] for resource in excess})
    offered = _shown({resource: nodes.has(resource) for resource in excess})
    return f"asks for {asked}; a node of {nodes.pool} ({nodes.machine}) has {offered}"


def _shown(amounts: Mapping[str, Decimal | None]) -> str:
    return ", ".join(f"{format_resource(each, amount or Decimal(0))} {each}" for each, amount in amounts.items())


def _all_pods(case: Case, fitting: Sequence[str], pods: Pods) -> Iterator[Hit]:
    """Compare the nodes that pods surely need with what one pool can have: a gang runs on one kind of node."""
    short = {name: case.pools[name].needed(pods) - case.pools[name].maximum for name in fitting}
    if any(missing <= 0 for missing in short.values()):
        return
    nearest = sorted(fitting, key=lambda name: short[name])
    lines: list[str] = []
    for nodes in (case.pools[name] for name in nearest[:SHOWN]):
        packed = " and ".join(f"{count} pods, {nodes.pods_per_node(amounts)} to a node," for count, amounts in pods)
        place = case.environment.origin("pools", nodes.pool, "nodes", "max")
        need = nodes.maximum + short[nodes.pool]
        lines.append(f"{packed} need {need} nodes; pool {nodes.pool} has at most {nodes.maximum} ({place})")
    closest = case.pools[nearest[0]]
    size = size_field(case.environment, case.job) if case.job else ""
    fewer = "fewer pods"
    if len(pods) == 1:
        most = closest.pods_per_node(pods[0][1]) * closest.maximum
        fewer = f"nodes: {most}" if size == "nodes" else f"at most {most} of these pods"
    fix = f"{fewer}, or raise nodes.max of {closest.pool} to {closest.maximum + short[closest.pool]}"
    yield case.hit("spec", "needs more nodes than a pool has", lines, fix, size)


RULE = Rule(
    id="gpu-fits-node",
    scope="render",
    severity="error",
    why="A pod that asks for more than any node has, or selects no node, pends for ever, and its gang holds the queue.",
    fix="ask for what one node of the pool has, and for no more nodes than the pool can have",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/",
    check=check,
)
