"""A job of several pods starts whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuyard.manifests import Rendered
from gpuyard.manifests.data import at, below
from gpuyard.rules import Context, Hit, Rule
from policies.shared.gangs import Gang, gangs, policy_path, whole_number

# The schedulerName of pods under each value of `scheduling.gang`.
SCHEDULERS = {"volcano": "volcano", "none": "default-scheduler"}

# A label with which another system takes the whole job into its own queue.
FOREIGN_LABELS = {"kueue.x-k8s.io/queue-name": "Kueue", "kai.scheduler/queue": "KAI", "runai/queue": "Run:ai"}


def check(rendered: Rendered, context: Context) -> Iterator[Hit]:
    gang = gangs(context).get(id(rendered))
    if not gang:
        return
    mode, good = context.environment.scheduling.gang, context.once(_good)
    labels: Mapping[str, str] = at(rendered.manifest, "metadata", "labels") or {}
    alike = *gang.shape, *labels
    if alike not in good:
        found = [*_other_owners(gang, labels, mode), *_size(gang, mode)]
        yield from found
        good.update(() if found else [alike])


def _good(context: Context) -> set[tuple[Any, ...]]:
    """Return what the gangs that were found good have in common, see `Gang.shape`."""
    return set()


def _size(gang: Gang, mode: str) -> Iterator[Hit]:
    if gang.policy is not None:
        yield from _minimum(gang, gang.policy.get("minAvailable"))
    elif mode != "none" and gang.total > 1:
        yield Hit(
            gang.rendered,
            policy_path(),
            f"a job of {gang.total} pods starts without a gang\n"
            "runPolicy.schedulingPolicy is missing: some pods can hold GPUs while the others wait for ever",
            fix=f"set runPolicy.schedulingPolicy with minAvailable: {_expected(gang)} and the queue",
        )


def _expected(gang: Gang) -> int:
    return gang.total if gang.minimum is None else gang.minimum


def _minimum(gang: Gang, written: object) -> Iterator[Hit]:
    path, expected = policy_path("minAvailable"), _expected(gang)
    if written is None:
        if gang.total > 1:
            message = f"a gang without a size\nminAvailable is missing; {gang.counts}"
            yield Hit(gang.rendered, path, message, fix=f"minAvailable: {expected}")
        return
    minimum = whole_number(written)
    if minimum is None:
        return
    if not 1 <= minimum <= gang.total:
        message = f"a gang that can never be whole\nminAvailable is {minimum}; {gang.counts}"
        fix = (
            f"minAvailable: {expected}" if 1 <= expected <= gang.total else "elasticPolicy.minReplicas within the pods"
        )
        yield Hit(gang.rendered, path, message, fix=fix)
    elif minimum != expected:
        what = gang.counts if gang.minimum is None else f"elasticPolicy starts with {expected}"
        message = f"a gang of the wrong size\nminAvailable is {minimum}; {what}"
        yield Hit(gang.rendered, path, message, fix=f"minAvailable: {expected}")


def _other_owners(gang: Gang, labels: Mapping[str, str], mode: str) -> Iterator[Hit]:
    for label, owner in FOREIGN_LABELS.items():
        if label in labels and mode != "none":
            yield Hit(
                gang.rendered,
                below("", "metadata", "labels", label),
                f"two systems would start this gang\nthe label hands the job to {owner}; "
                f"this environment's gang scheduler is {mode}",
                fix="take the label away",
            )
    own = SCHEDULERS[mode]
    for role in gang.roles:
        name = role.pod.get("schedulerName")
        if name and name != own:
            yield Hit(
                gang.rendered,
                below("", *role.path, "schedulerName"),
                f"pods of another scheduler\nschedulerName is {name}; this environment's scheduler for jobs is {own}",
                fix=f"schedulerName: {own}, or leave it out",
            )


RULE = Rule(
    id="gang-min-available",
    scope="object",
    severity="error",
    why="Two jobs that each start in part can hold each other's GPUs for ever.",
    fix="set runPolicy.schedulingPolicy.minAvailable to the number of pods",
    source="https://github.com/kubeflow/trainer/issues/1825, https://github.com/kubeflow/trainer/issues/1515",
    check=check,
)
