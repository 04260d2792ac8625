"""Without gang scheduling, jobs of several pods must not be able to take each other's GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from gpuyard.manifests.data import below
from gpuyard.model.environment import Environment
from gpuyard.model.jobs import Job
from gpuyard.rules import Context, Hit, Rule
from policies.shared.declared import declared_jobs
from policies.shared.gangs import REPLICAS


def check(context: Context) -> Iterator[Hit]:
    environment = context.environment
    if environment.scheduling.gang != "none":
        return
    objects = {(rendered.identity.namespace, rendered.identity.name): rendered for rendered in context.objects
               if rendered.identity.kind in REPLICAS}  # fmt: skip
    rivals: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    jobs = declared_jobs(context)
    for place, job in jobs.items():
        if job.gpu_pods > 1 and place in objects:
            rivals.setdefault(tuple(sorted(environment.job_pools(job))), []).append(place)
    for pools, places in rivals.items():
        rendered = objects[places[0]]
        message = _deadlock(environment, pools, [jobs[place] for place in places])
        if message:
            path = below("", "spec", REPLICAS[rendered.identity.kind])
            origin = environment.origin("scheduling", "gang")
            yield Hit(rendered, path, message, origin, written="gang: none")


def _deadlock(environment: Environment, pools: tuple[str, ...], jobs: list[Job]) -> str:
    """Return what can happen when jobs ask for more than these pools have, "" when all of them fit at once."""
    need = sum(job.gpu_pods * job.gpus for job in jobs)
    has = sum(environment.pools[pool].gpus for pool in pools)
    if len(jobs) < 2 or need <= has:
        return ""
    names = [job.name for job in jobs]
    parts = " + ".join(f"{job.gpu_pods} pods x {job.gpus}" for job in jobs)
    where = f"pools {', '.join(pools)} have" if len(pools) > 1 else f"pool {''.join(pools)} has"
    return (
        f"jobs {', '.join(names[:-1])} and {names[-1]} can wait for each other for ever\n"
        f"{parts} = {need} GPUs; {where} {has}, and each job can hold a part of them"
    )


RULE = Rule(
    id="gang-scheduler-missing",
    scope="render",
    severity="error",
    why="Two jobs that each hold some of the GPUs the other needs wait for ever, and the GPUs stand idle.",
    fix="scheduling.gang: volcano, or fewer GPUs",
    source="https://volcano.sh/en/docs/gang_scheduling/",
    check=check,
)
