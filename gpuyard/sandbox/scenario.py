"""Two training jobs that each need all GPUs of a node, submitted at once: with and without gang scheduling.

Both halves run on one cluster with the same nodes, operator binary, operator threads, stages and rendezvous. The first
takes the gang flag from the operator, and the scheduler's name and the scheduling policy from the jobs; nothing else
differs. What happens is sampled from the API server; the verdicts are computed from the samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Identity, Manifest, Rendered
from gpuyard.manifests.data import unshared
from gpuyard.manifests.graph import Graph
from gpuyard.model.environment import GPU, Environment
from gpuyard.model.registry import Sources
from gpuyard.sandbox.api import Api, has_condition
from gpuyard.sandbox.pods import JOB_LABEL
from gpuyard.sandbox.programs import PROGRAMS, repository
from gpuyard.sandbox.sandbox import apply, down, up
from gpuyard.sandbox.state import Progress

THREADS = 4
"""Jobs that the operator works on at a time, in both halves. With its default of 1 it happens to serialize two jobs."""

_GANG_FLAG = "--gang-scheduler-name"
_THREADS_FLAG = "--controller-threads"
_PERIOD = 0.5


@dataclass(frozen=True, slots=True)
class Sample:
    """What a job holds `t` seconds after both were submitted.

    state: `waits`, `holds part`, `runs whole`, `finished`.
    """

    t: float
    held: int
    state: str


@dataclass(frozen=True, slots=True)
class Track:
    """One job over time; it needs `needs` GPUs at once."""

    job: str
    needs: int
    samples: tuple[Sample, ...]

    def at(self, t: float) -> Sample:
        """Return the last sample taken up to a time."""
        return [sample for sample in self.samples if sample.t <= t][-1]


@dataclass(frozen=True, slots=True)
class Half:
    """Both jobs under one scheduler. `broken`: what was expected and did not happen; empty when all of it did."""

    scheduler: str
    tracks: tuple[Track, ...]
    verdict: str
    broken: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Both halves. `held_still`: seconds for which nothing changed in the first one before it was stopped."""

    gpus: int
    threads: int
    held_still: float
    without_gang: Half
    with_gang: Half

    @property
    def proven(self) -> bool:
        return not (self.without_gang.broken or self.with_gang.broken)


def deadlock(
    environment: Environment,
    objects: Sequence[Rendered],
    binaries: Mapping[str, Path],
    sources: Sources,
    *,
    progress: Progress,
    hold: float = 40,
    run_for: str = "15s",
    name: str = "deadlock",
) -> Deadlock:
    """Run both halves in a sandbox of their own, which is gone afterwards.

    objects: a whole render with exactly two TFJobs that ask for all GPUs. hold: seconds for which the first half must
    not change to count as stuck. run_for: how long a job runs once all its pods do.
    """
    gang = [_with_threads(rendered) for rendered in objects]
    plain = [_without_gang(rendered) for rendered in gang]
    jobs = [rendered for rendered in gang if rendered.identity.kind == "TFJob"]
    if len(jobs) != 2:
        raise InputError(
            Problem(
                "the scenario needs two TFJobs",
                detail=f"environment {environment.name} has {len(jobs)}",
                fix="run it on the environment sandbox",
            )
        )
    down(progress=progress, name=name)
    try:
        sandbox = up(environment, plain, binaries, sources, progress=progress, name=name, most_nodes=1, run_for=run_for)
        api = Api(sandbox.kubeconfig)
        progress("first half: default scheduler, no gang")
        submitted = _submit(api, plain, jobs)
        tracks = _watch(api, jobs, submitted, until=_still_for(hold), patience=hold + 60)
        still = _held_still(tracks)
        without = Half("default-scheduler", tracks, *_stuck(tracks, hold))
        _withdraw(api, jobs)
        progress("second half: the same jobs as gpuyard declares them, Volcano")
        apply(environment.name, gang, progress=lambda _: None, name=name, layers=("crds", "platform"))
        submitted = _submit(api, gang, jobs)
        tracks = _watch(api, jobs, submitted, until=_all_finished, patience=180)
        with_gang = Half("volcano", tracks, *_one_after_the_other(tracks))
    finally:
        down(progress=progress, name=name)
    return Deadlock(max(track.needs for track in tracks), THREADS, still, without, with_gang)


def _with_threads(rendered: Rendered) -> Rendered:
    """Return the operator's Deployment with the scenario's number of threads; anything else as it is."""
    return _operator_with(rendered, lambda arguments: [*_drop(arguments, _THREADS_FLAG), f"{_THREADS_FLAG}={THREADS}"])


def _without_gang(rendered: Rendered) -> Rendered:
    """Return the operator without its gang flag and a TFJob without scheduler and policy; anything else as it is."""
    if rendered.identity.kind == "TFJob":
        manifest = unshared(rendered.manifest)
        manifest["spec"]["runPolicy"].pop("schedulingPolicy", None)
        for role in manifest["spec"]["tfReplicaSpecs"].values():
            role["template"]["spec"].pop("schedulerName", None)
        return replace(rendered, manifest=manifest)
    return _operator_with(rendered, lambda arguments: _drop(arguments, _GANG_FLAG))


def _operator_with(rendered: Rendered, change: Callable[[list[str]], list[str]]) -> Rendered:
    if rendered.identity.kind != "Deployment":
        return rendered
    manifest = unshared(rendered.manifest)
    for container in manifest["spec"]["template"]["spec"]["containers"]:
        if PROGRAMS.get(repository(container["image"])) is PROGRAMS["training-operator"]:
            container["args"] = change(container.get("args", []))
            return replace(rendered, manifest=manifest)
    return rendered


def _drop(arguments: list[str], flag: str) -> list[str]:
    return [argument for argument in arguments if argument.partition("=")[0] != flag]


def _submit(api: Api, objects: Sequence[Rendered], jobs: Sequence[Rendered]) -> float:
    """Create what the jobs need and then both jobs at the same time; return when that was."""
    graph = Graph(objects)
    wanted: list[Identity] = [job.identity for job in jobs]
    for one in wanted:  # grows while it is read
        wanted += [other for other in graph.dependencies.get(one, ()) if other not in wanted]
    chosen = [one for one in graph.order() if one.identity in wanted and one.layer == "jobs"]
    together = [one for one in chosen if one.identity.kind == "TFJob"]
    for one in chosen:
        if one not in together:
            api.apply(one.manifest)
    submitted = time.monotonic()
    with ThreadPoolExecutor(len(together)) as pool:
        list(pool.map(api.apply, [one.manifest for one in together]))
    return submitted


def _withdraw(api: Api, jobs: Sequence[Rendered]) -> None:
    """Delete the jobs and wait until nothing is left of them."""
    for job in jobs:
        api.delete(job.manifest["apiVersion"], "TFJob", job.identity.name, job.identity.namespace)
    end = time.monotonic() + 60
    while any(_pods(api, job) for job in jobs):
        if time.monotonic() > end:
            raise InputError(Problem("deleted jobs keep their pods", detail="after 60 s"))
        time.sleep(_PERIOD)


def _pods(api: Api, job: Rendered) -> list[Manifest]:
    return api.list("v1", "Pod", job.identity.namespace, f"{JOB_LABEL}={job.identity.name}")


def _watch(
    api: Api,
    jobs: Sequence[Rendered],
    submitted: float,
    *,
    until: Callable[[tuple[Track, ...]], bool],
    patience: float,
) -> tuple[Track, ...]:
    """Sample both jobs until a condition holds or the patience ends."""
    tracks = tuple(Track(job.identity.name, _gpus(job.manifest), ()) for job in jobs)
    while True:
        # One list for both: two would be two moments, and a GPU could change hands between them.
        pods = api.list("v1", "Pod", selector=JOB_LABEL)
        t = time.monotonic() - submitted
        tracks = tuple(
            replace(track, samples=(*track.samples, _sample(api, job, track, pods, t)))
            for job, track in zip(jobs, tracks, strict=True)
        )
        if until(tracks) or t > patience:
            return tracks
        time.sleep(_PERIOD)


def _sample(api: Api, job: Rendered, track: Track, pods: Sequence[Manifest], t: float) -> Sample:
    who = job.identity
    held = sum(
        int(container.get("resources", {}).get("limits", {}).get(GPU, 0))
        for pod in pods
        if pod["metadata"]["labels"][JOB_LABEL] == who.name and pod["metadata"]["namespace"] == who.namespace
        if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ("Succeeded", "Failed")
        for container in pod["spec"]["containers"]
    )
    if has_condition(api.get_like(job.manifest) or {}, "Succeeded"):
        return Sample(t, held, "finished")
    return Sample(t, held, "runs whole" if held >= track.needs else "holds part" if held else "waits")


def _gpus(job: Manifest) -> int:
    """Return how many GPUs a job's pods ask for together."""
    return sum(
        role.get("replicas", 1) * int(container.get("resources", {}).get("limits", {}).get(GPU, 0))
        for role in job["spec"]["tfReplicaSpecs"].values()
        for container in role["template"]["spec"]["containers"]
    )


def _held_still(tracks: tuple[Track, ...]) -> float:
    """Return for how many seconds up to the last sample nothing has changed."""
    moments = list(zip(*(track.samples for track in tracks), strict=True))
    last = [(sample.held, sample.state) for sample in moments[-1]]
    since = moments[-1][0].t
    for moment in reversed(moments):
        if [(sample.held, sample.state) for sample in moment] != last:
            break
        since = moment[0].t
    return moments[-1][0].t - since


def _still_for(seconds: float) -> Callable[[tuple[Track, ...]], bool]:
    """Return whether both jobs hold GPUs and nothing has changed for a while, or one of them has ended."""

    def condition(tracks: tuple[Track, ...]) -> bool:
        last = [track.samples[-1] for track in tracks]
        ended = any(sample.state == "finished" for sample in last)
        return ended or (all(sample.held for sample in last) and _held_still(tracks) >= seconds)

    return condition


def _all_finished(tracks: tuple[Track, ...]) -> bool:
    return all(track.samples[-1].state == "finished" for track in tracks)


def _stuck(tracks: tuple[Track, ...], hold: float) -> tuple[str, tuple[str, ...]]:
    """Judge the first half: both hold some GPUs, none holds all, nothing changes any more."""
    broken: list[str] = []
    for track in tracks:
        last = track.samples[-1]
        if not 0 < last.held < track.needs:
            broken.append(f"{track.job} holds {last.held} of {track.needs} GPUs, and not a part of them")
        if any(sample.state in ("runs whole", "finished") for sample in track.samples):
            broken.append(f"{track.job} had all its GPUs at some time")
    if (still := _held_still(tracks)) < hold:
        broken.append(f"it changed {still:.0f} s before the end, and not {hold:.0f} s or more")
    return "neither ever completes", tuple(broken)


def _one_after_the_other(tracks: tuple[Track, ...]) -> tuple[str, tuple[str, ...]]:
    """Judge the second half: one runs whole while the other holds nothing, then the other runs, both finish."""
    broken: list[str] = []
    for track in tracks:
        if not any(sample.state == "runs whole" for sample in track.samples):
            broken.append(f"{track.job} never held all its {track.needs} GPUs")
        if track.samples[-1].state != "finished":
            broken.append(f"{track.job} did not finish")
    for moment in zip(*(track.samples for track in tracks), strict=True):
        if all(sample.held for sample in moment):
            broken.append(f"both held GPUs at {moment[0].t:.0f} s")
            break
    return "one runs whole while the other waits whole, then the other runs; both finish", tuple(broken)
