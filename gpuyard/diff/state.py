"""What is compared of one render: its objects, and what their consequences need to know of the environment.

It can be written as JSON and read back: an older revision renders itself by its own code and tells the result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpuyard.errors import Origin
from gpuyard.manifests import Identity, Lifecycle, Manifest, Rendered
from gpuyard.manifests.data import is_list
from gpuyard.manifests.scheduling import Taint, refusal

if TYPE_CHECKING:
    from gpuyard.model.environment import Environment
    from gpuyard.model.registry import Build

FORMAT = 1
"""Raised when a reader could misunderstand what an older writer wrote; what is only added does not raise it."""


@dataclass(frozen=True, slots=True)
class PoolState:
    """Nodes of one kind. gpus: of one node. taints: (key, value, effect) of those that keep pods away."""

    name: str
    nodes_min: int
    nodes_max: int
    gpus: int
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]

    def accepts(self, pod: Mapping[str, Any]) -> bool:
        return not refusal(pod, self.labels, self.taints, has_gpus=self.gpus > 0)


@dataclass(frozen=True, slots=True)
class JobState:
    """A declared job. pods: those with GPUs. gpus: of one of them. run: the name of its object."""

    name: str
    team: str
    run: str
    queue: str
    pods: int
    gpus: int
    pools: tuple[str, ...]

    @property
    def total(self) -> int:
        return self.pods * self.gpus

    @property
    def product(self) -> str:
        """`resnet50 4 x 8 = 32`"""
        return f"{self.name} {self.pods} x {self.gpus} = {self.total}"


@dataclass(frozen=True)
class State:
    """One render. skipped: names of the sources that it had to go without."""

    objects: tuple[Rendered, ...] = ()
    pools: tuple[PoolState, ...] = ()
    jobs: tuple[JobState, ...] = ()
    skipped: tuple[str, ...] = ()

    @cached_property
    def by_identity(self) -> dict[Identity, Rendered]:
        return {one.identity: one for one in self.objects}

    @cached_property
    def by_kind(self) -> dict[str, list[Manifest]]:
        """Manifests by kind, each list in the order of the render."""
        kinds: dict[str, list[Manifest]] = {}
        for one in self.objects:
            kinds.setdefault(one.manifest["kind"], []).append(one.manifest)
        return kinds

    @cached_property
    def jobs_by_run(self) -> dict[tuple[str, str], JobState]:
        return {(job.team, job.run): job for job in self.jobs}

    def jobs_on(self, pools: Iterable[PoolState]) -> list[JobState]:
        """Return the declared jobs whose pods with GPUs may run on one of the pools."""
        names = {pool.name for pool in pools}
        return [job for job in self.jobs if job.total and names.intersection(job.pools)]


def describe(environment: Environment, build: Build) -> State:
    """Return the state of a render."""
    pools = [
        PoolState(
            name,
            pool.nodes.min,
            pool.nodes.max,
            pool.machine.gpus,
            environment.node_labels(name),
            environment.node_taints(name),
        )
        for name, pool in environment.pools.items()
    ]
    jobs = [
        JobState(
            job.name,
            job.team,
            job.object_name,
            job.queue or job.team,
            job.gpu_pods,
            job.gpus,
            tuple(environment.job_pools(job)) if job.gpus else (),
        )
        for job in environment.jobs.values()
    ]
    return State(tuple(build.objects), tuple(pools), tuple(jobs), build.skipped)


def to_json(state: State) -> str:
    """Return a state as one line of JSON."""
    objects = [
        {
            "manifest": one.manifest,
            "id": one.id,
            "component": one.component,
            "layer": one.layer,
            "origin": [one.origin.file, one.origin.line] if one.origin else None,
            "lifecycle": asdict(one.lifecycle),
        }
        for one in state.objects
    ]
    pools, jobs = [asdict(pool) for pool in state.pools], [asdict(job) for job in state.jobs]
    return json.dumps({"format": FORMAT, "objects": objects, "pools": pools, "jobs": jobs, "skipped": state.skipped})


def from_json(written: Mapping[str, Any]) -> State:
    """Return the state that `to_json` wrote. The caller has looked at its `format`."""
    return State(
        tuple(_rendered(one) for one in written["objects"]),
        tuple(PoolState(**_known(PoolState, one)) for one in written["pools"]),
        tuple(JobState(**_known(JobState, one)) for one in written["jobs"]),
        tuple(written["skipped"]),
    )


def _rendered(one: Mapping[str, Any]) -> Rendered:
    return Rendered(
        manifest=one["manifest"],
        id=one["id"],
        component=one["component"],
        layer=one["layer"],
        origin=Origin(*one["origin"]) if one["origin"] else None,
        lifecycle=Lifecycle(**_known(Lifecycle, one["lifecycle"])),
    )


def _known(of: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of those fields that this revision knows, lists as the tuples that they were."""
    names = {one.name for one in fields(of)}
    return {name: _frozen(value) for name, value in values.items() if name in names}


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if is_list(value) else value
