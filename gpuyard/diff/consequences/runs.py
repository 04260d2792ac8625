"""Runs of training jobs: a changed job is a new run beside the old one, which keeps its GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from gpuyard.diff.consequences.lifecycle import is_run
from gpuyard.diff.consequences.quotas import gpus_of_queue
from gpuyard.diff.facts import Fact, Told, View, count
from gpuyard.errors import listed
from gpuyard.manifests import Rendered
from gpuyard.manifests.data import at
from gpuyard.manifests.diff import Change
from gpuyard.manifests.pods import pod_specs


def _run(change: Change, view: View) -> Iterator[Told]:
    if not is_run(change):
        return
    who = change.identity
    old, new = view.before.jobs_by_run, view.after.jobs_by_run
    if change.verb == "removed":
        job = old.get((who.namespace, who.name))
        if who.namespace in view.lost_namespaces:
            yield Told("high", "the run is deleted with its namespace")
        else:
            yield Told("medium", f"the run stays in the cluster{_keeps(job.total if job else 0)}")
    elif change.verb == "added" and change.former is None:
        job = new.get((who.namespace, who.name))
        yield Told("low", f"new run: {job.product} GPUs in queue {job.queue}" if job and job.total else "new run")
    elif change.verb == "added" and change.former:
        former = change.former.identity
        job, running = new.get((who.namespace, who.name)), old.get((former.namespace, former.name))
        held = running.total if running else 0
        yield Told("low", f"new run; {former.name} stays beside it{_keeps(held)}")
        if job and held and (has := gpus_of_queue(view.after, job.queue)) is not None and held + job.total > has:
            yield Told(
                "medium", f"the new run may wait for it: {held} + {job.total} GPUs, and queue {job.queue} has {has}"
            )
        if shared := sorted(_written(change.rendered) & _written(change.former)):
            yield Told("medium", f"both write to {listed(shared)} as long as the former one runs")
    elif all(one.ignored for one in change.fields):
        yield Told("low", "the run is not touched: its spec holds for runs that start later")


def _keeps(gpus: int) -> str:
    return f" and keeps its {count(gpus, 'GPU')} until it ends" if gpus else " until it ends"


def _written(run: Rendered) -> set[str]:
    """Return the volume claims that a run may write to."""
    return {
        at(volume, "persistentVolumeClaim", "claimName")
        for _, pod in pod_specs(run.manifest)
        for volume in pod.get("volumes") or ()
        if volume.get("persistentVolumeClaim") and not volume["persistentVolumeClaim"].get("readOnly")
    }


FACTS = (Fact("run", frozenset(), "", _run),)
