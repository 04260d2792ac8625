"""A gang fits its quota: as its author counts, in GPUs of a pool, and as the cluster counts, in every resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal

from gpuyard.errors import listed, nearest
from gpuyard.manifests import Rendered
from gpuyard.manifests.data import at, below, map_at
from gpuyard.manifests.quantity import format_resource, parse_quantity
from gpuyard.model.environment import Environment
from gpuyard.model.jobs import Job
from gpuyard.rules import Context, Hit, Rule
from policies.shared.declared import as_written, declared_jobs, size_field, title
from policies.shared.gangs import REPLICAS, Gang, gangs, policy_path
from policies.shared.pods import Amounts, pod_resources

BUILT_IN_QUEUES = ("default", "root")


def check(context: Context) -> Iterator[Hit]:
    environment = context.environment
    jobs = declared_jobs(context)
    queues = {queue.identity.name: queue for queue in context.by_kind.get("Queue", ())}
    quotas: dict[str, list[Rendered]] = {}
    for quota in context.by_kind.get("ResourceQuota", ()):
        quotas.setdefault(quota.identity.namespace, []).append(quota)
    fitting: set[tuple[Any, ...]] = set()
    for gang in gangs(context).values():
        rendered = gang.rendered
        job = jobs.get(rendered.identity[2:])
        wants = job and (job.team, job.queue, job.priority, job.gpus, job.gpu_pods, *job.pools)
        alike = rendered.identity.namespace, wants, *gang.shape
        if alike in fitting:
            continue
        if job and (hit := _declared(rendered, job, environment)):
            # Said once, in the words of the job's author; the objects follow from the same numbers.
            yield hit
            continue
        demand = Demand(gang, title(rendered, job))
        found = list(_queue(demand, queues, environment)) if gang.policy is not None else []
        found = found or list(_resource_quotas(demand, quotas.get(rendered.identity.namespace, ())))
        yield from found
        if not found:
            fitting.add(alike)


def _declared(rendered: Rendered, job: Job, environment: Environment) -> Hit | None:
    """Compare a job's GPUs with what its team, or the shared queue that it names, may use of each of its pools."""
    named = environment.job_pools(job)
    pools = [name for name in named if environment.pools[name].machine.gpus]
    if not job.gpu_pods or (named and not pools):
        return None
    shared = environment.scheduling.queues.get(job.queue or "")
    holder, whose = (f"queue {job.queue}", f"queue {job.queue}'s") if shared else (f"team {job.team}", "its team's")
    quota = shared.quota if shared else environment.teams[job.team].quota
    place = ("scheduling", "queues", str(job.queue), "quota") if shared else ("teams", job.team, "quota")
    need = job.gpu_pods * job.gpus
    if any(quota.get(pool, 0) >= need for pool in pools):
        return None
    size = size_field(environment, job)
    lines = [
        f"{_product(job, size)} = {need} {pool} GPUs; {holder} may use {quota.get(pool, 0) or 'none'} "
        f"of {environment.pools[pool].gpus} ({environment.origin(*place, pool)})"
        for pool in pools
    ]
    if not lines:
        each = f"{job.gpus} GPU{'s' if job.gpus > 1 else ''}"
        lines = [f"{holder} has no quota of a pool whose nodes have {each} ({environment.origin(*place)})"]
    return Hit(
        rendered,
        below("", "spec", REPLICAS[rendered.manifest["kind"]]),
        "\n".join([f"job {job.name} does not fit {whose} quota", *lines]),
        environment.origin("jobs", job.name, size),
        _way_out(job, size, {pool: quota.get(pool, 0) for pool in pools}, environment),
        as_written(environment, job, size),
    )


def _product(job: Job, size: str) -> str:
    noun = "node" if size == "nodes" else "pod"
    return f"{job.gpu_pods} {noun}{'s' if job.gpu_pods > 1 else ''} x {job.gpus} GPU{'s' if job.gpus > 1 else ''}"


def _way_out(job: Job, size: str, quota: Mapping[str, int], environment: Environment) -> str:
    need = job.gpu_pods * job.gpus
    ways: list[str] = []
    most = max((count // job.gpus for count in quota.values()), default=0)
    if most:
        ways.append(f"nodes: {most}" if size == "nodes" else f"at most {most} pod{'s' if most > 1 else ''} with GPUs")
    large_enough = [pool for pool in quota if environment.pools[pool].gpus >= need]
    if large_enough:
        which = f" of {large_enough[0]}" if len(quota) > 1 else ""
        ways.append(f"raise the quota{which} to at least {need}")
    return ", or ".join(ways) or "ask for fewer GPUs, or name another pool"


@dataclass(frozen=True)
class Demand:
    """What a gang asks for when it starts."""

    gang: Gang
    who: str

    @cached_property
    def requests(self) -> list[tuple[int, Amounts]]:
        """(number of pods, what each asks for), by role."""
        return self._amounts("requests")

    @cached_property
    def limits(self) -> list[tuple[int, Amounts]]:
        """(number of pods, the limit of each), by role."""
        return self._amounts("limits")

    def _amounts(self, field: Literal["requests", "limits"]) -> list[tuple[int, Amounts]]:
        rendered = self.gang.rendered
        return [(count, pod_resources(rendered, role.pod, field)) for role, count in self.gang.members if count]


def _queue(demand: Demand, queues: Mapping[str, Rendered], environment: Environment) -> Iterator[Hit]:
    gang, path = demand.gang, policy_path("queue")
    name = (gang.policy or {}).get("queue")
    if not name or name in BUILT_IN_QUEUES:
        said = f"queue is {name}" if name else "schedulingPolicy.queue is missing, which means `default`"
        message = f"{demand.who} waits in no queue of its team\n{said}: it goes past every quota"
        namespace = gang.rendered.identity.namespace
        yield Hit(gang.rendered, path, message, fix=f"queue: {namespace}" if namespace in environment.teams else "")
    elif name not in queues:
        message = (
            f"{demand.who} waits in a queue that does not exist\nqueue is {name}; this render has {listed(queues)}"
        )
        yield Hit(gang.rendered, path, message, fix=nearest(name, queues) or f"declare {name} under scheduling.queues")
    else:
        capability: Mapping[str, Any] | None = at(queues[name].manifest, "spec", "capability")
        if capability:  # A queue without any caps nothing.
            yield from _compare(demand, f"queue {name}", path, _in_queue(demand, capability))


Line = tuple[str, Decimal | None, list[tuple[int, Decimal]]]
"""A resource, how much of it there is (None: it is not listed), and what is asked as (pods, amount of each)."""


def _in_queue(demand: Demand, capability: Mapping[str, Any]) -> Iterator[Line]:
    asked = demand.requests
    for resource in dict.fromkeys(resource for _, amounts in asked for resource in amounts):
        has = parse_quantity(capability[resource]) if resource in capability else None
        yield resource, has, [(count, amounts.get(resource, Decimal(0))) for count, amounts in asked]


def _resource_quotas(demand: Demand, quotas: Iterable[Rendered]) -> Iterator[Hit]:
    path = below("", "spec", REPLICAS[demand.gang.rendered.manifest["kind"]])
    for quota in quotas:
        spec = map_at(quota.manifest, "spec")
        # A quota with scopes counts only some pods, so it is not compared.
        if not spec.get("scopes") and not spec.get("scopeSelector"):
            yield from _compare(demand, str(quota.identity), path, _in_quota(demand, map_at(spec, "hard")))


def _in_quota(demand: Demand, hard: Mapping[str, Any]) -> Iterator[Line]:
    for key, has in hard.items():
        if has is None:
            continue
        prefix, _, rest = key.partition(".")
        resource = rest if prefix in ("requests", "limits") else key
        asked = demand.limits if prefix == "limits" else demand.requests
        if key in ("pods", "count/pods"):
            yield key, parse_quantity(has), [(count, Decimal(1)) for count, _ in asked]
        elif any(resource in amounts for _, amounts in asked):
            yield key, parse_quantity(has), [(count, amounts.get(resource, Decimal(0))) for count, amounts in asked]


def _compare(demand: Demand, holder: str, path: str, lines: Iterable[Line]) -> Iterator[Hit]:
    details: list[str] = []
    room: list[int] = []
    for resource, has, asked in lines:
        total = sum((count * amount for count, amount in asked), Decimal(0))
        if not total or (has is not None and total <= has):
            continue
        has_text = f"has {_amount(resource, has)}" if has is not None else "does not list it"
        details.append(f"{resource}: {_sum(resource, asked)} = {_amount(resource, total)}; {holder} {has_text}")
        pods = {amount for _, amount in asked}
        room.append(int((has or 0) // pods.pop()) if len(pods) == 1 else 0)
    if details:
        most = min(room)
        fewer = f"at most {most} pod{'s' if most > 1 else ''} of this size" if most else "ask for less"
        message = "\n".join([f"{demand.who} does not fit {holder}", *details])
        yield Hit(demand.gang.rendered, path, message, fix=f"{fewer}, or raise what {holder} has")


def _sum(resource: str, asked: Iterable[tuple[int, Decimal]]) -> str:
    pods: dict[Decimal, int] = {}
    for count, amount in asked:
        if amount:
            pods[amount] = pods.get(amount, 0) + count
    return " + ".join(f"{count} x {_amount(resource, amount)}" for amount, count in pods.items())


def _amount(resource: str, value: Decimal) -> str:
    return format_resource(resource.removeprefix("requests.").removeprefix("limits."), value)


RULE = Rule(
    id="queue-fits-gang",
    scope="render",
    severity="error",
    why="A gang that is larger than its quota is never admitted: it waits for ever, without a single pod to show it.",
    fix="name a queue of the team; ask for less, or raise the quota",
    source="https://github.com/volcano-sh/volcano/issues/2416, https://github.com/volcano-sh/volcano/issues/3426",
    check=check,
)
