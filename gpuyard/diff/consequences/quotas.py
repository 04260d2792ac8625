"""Queues and quotas that shrink below what is declared on them, with the arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuyard.diff.facts import Fact, Told, View, count
from gpuyard.diff.state import JobState, State
from gpuyard.errors import listed
from gpuyard.manifests import Manifest
from gpuyard.manifests.data import at, map_at
from gpuyard.manifests.diff import Change
from gpuyard.manifests.quantity import parse_quantity
from gpuyard.manifests.scheduling import GPU
from gpuyard.manifests.schemas.amounts import amount_problem

_HARD_GPU = f"requests.{GPU}"


def gpus_of_queue(state: State, name: str) -> int | None:
    """Return the GPUs that a queue may use; None for no queue and for one without a limit."""
    for queue in state.by_kind.get("Queue", ()):
        if queue["metadata"]["name"] == name and GPU in (has := _amounts(queue, "capability")):
            return int(parse_quantity(has[GPU]))
    return None


def _queue(change: Change, view: View) -> Iterator[Told]:
    name = change.identity.name
    jobs = [job for job in view.after.jobs if job.queue == name and job.total]
    if change.verb == "removed":
        if jobs:
            yield Told("high", f"{_declared(jobs)} can never start without it")
        return
    if change.before is None:
        return
    before, after = change.before.manifest, change.rendered.manifest
    yield from _shrinks(_amounts(before, "capability"), _amounts(after, "capability"), GPU, jobs, "the queue")
    deserved = _amounts(after, "deserved")
    if GPU in _less(_amounts(before, "deserved"), deserved) and at(after, "spec", "reclaimable") is not False:
        own = int(parse_quantity(deserved[GPU]))
        if _sum(jobs) > own:
            yield Told("medium", f"other queues may evict what runs here beyond {count(own, 'GPU')}")


def _quota(change: Change, view: View) -> Iterator[Told]:
    namespace = change.identity.namespace
    if namespace in view.new_namespaces:
        return
    if change.before is None:
        yield Told("medium", f"pods of {namespace} beyond it are refused from now on")
    elif change.after is None:
        yield Told("medium", f"nothing limits the pods of {namespace} any more, unless another quota does")
    else:
        before, after = _amounts(change.before.manifest, "hard"), _amounts(change.after.manifest, "hard")
        jobs = [job for job in view.after.jobs if job.team == namespace and job.total]
        yield from _shrinks(before, after, _HARD_GPU, jobs, "the quota")


def _shrinks(
    before: Mapping[str, Any], after: Mapping[str, Any], gpu: str, jobs: list[JobState], what: str
) -> Iterator[Told]:
    less = _less(before, after)
    if gpu in less:
        has = int(parse_quantity(after[gpu]))
        alone = [job for job in jobs if job.total > has]
        if alone:
            yield Told("high", f"{_declared(alone)} can never start: {what} has {count(has, 'GPU')}")
        if _sum(jobs) > has and jobs != alone:
            total = f", in all {_sum(jobs)}" if len(jobs) > 1 else ""
            yield Told("medium", f"{count(has, 'GPU')} is below what is declared on it: {_declared(jobs)}{total}")
        elif not alone:
            yield Told("low", f"still holds what is declared on it: {_declared(jobs) if jobs else 'nothing'}")
    elif less:
        yield Told("low", f"shrinks in {listed(less)}")


def _amounts(manifest: Manifest, field: str) -> Mapping[str, Any]:
    """Return the amounts of a field by resource; what is no amount is the schema's business."""
    return {key: amount for key, amount in map_at(manifest, "spec", field).items() if not amount_problem(amount)}


def _less(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the resources that have a smaller limit, or a limit for the first time."""
    return [
        resource
        for resource, amount in after.items()
        if resource not in before or parse_quantity(amount) < parse_quantity(before[resource])
    ]


def _sum(jobs: list[JobState]) -> int:
    return sum(job.total for job in jobs)


def _declared(jobs: list[JobState]) -> str:
    return listed(job.product for job in jobs)


FACTS = (
    Fact(
        "queue", frozenset({"Queue"}), "https://volcano.sh/en/docs/queue/, https://volcano.sh/en/docs/capacity/", _queue
    ),
    Fact(
        "resource-quota",
        frozenset({"ResourceQuota"}),
        "https://kubernetes.io/docs/concepts/policy/resource-quotas/",
        _quota,
    ),
)
