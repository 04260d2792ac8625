"""What is compared of one render: its objects, and what their consequences need to know of the environment.

It can be written as JSON and read back: an older revision renders itself by its own code and tells the result.
"""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpuyard.errors import Origin
from gpuyard.manifests import Identity, Lifecycle, Manifest, Rendered
from gpuyard.manifests.data import is_list
from gpuyard.manifests.pods import Path
from gpuyard.manifests.scheduling import Taint, refusal

if TYPE_CHECKING:
    from gpuyard.model.environment import Environment
    from gpuyard.model.registry import Build

FORMAT = 2
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


def to_lines(state: State) -> Iterator[str]:
    """Yield a state as lines of JSON: what is not an object, then two lines for each object, the second its manifest.

    The digest in the first of them tells a reader with the same manifest that it need not read the second.
    """
    lives = list(dict.fromkeys(one.lifecycle for one in state.objects))
    numbers = {life: number for number, life in enumerate(lives)}
    yield json.dumps(
        {
            "format": FORMAT,
            "pools": [asdict(pool) for pool in state.pools],
            "jobs": [asdict(job) for job in state.jobs],
            "skipped": state.skipped,
            "lifecycles": [asdict(life) for life in lives],
        }
    )
    for one in state.objects:
        origin = [one.origin.file, one.origin.line] if one.origin else None
        yield json.dumps([digest(one), one.id, one.component, one.layer, numbers[one.lifecycle], origin])
        yield json.dumps(one.manifest)


def from_lines(lines: Iterable[str], like: Iterable[Rendered] = ()) -> State:
    """Return the state that `to_lines` wrote. What is the same as in `like` is the same object.

    Raises ValueError for another format.
    """
    rest = iter(lines)
    first: dict[str, Any] = json.loads(next(rest))
    if first["format"] != FORMAT:
        raise ValueError(f"it tells its state in format {first['format']}; this one reads {FORMAT}")
    known = {digest(one): one for one in like}
    lives: list[Lifecycle] = [Lifecycle(**_known(Lifecycle, one)) for one in first["lifecycles"]]
    objects: list[Rendered] = []
    for header in rest:
        written, (its_digest, id, component, layer, life, place) = next(rest), json.loads(header)
        origin, lifecycle = Origin(*place) if place else None, lives[int(life)]
        same = known.get(its_digest)
        told = id, component, layer, origin, lifecycle
        if same and (same.id, same.component, same.layer, same.origin, same.lifecycle) == told:
            objects.append(same)
        else:
            objects.append(Rendered(same.manifest if same else json.loads(written), *told))
    return State(
        tuple(objects),
        tuple(PoolState(**_known(PoolState, one)) for one in first["pools"]),
        tuple(JobState(**_known(JobState, one)) for one in first["jobs"]),
        tuple(first["skipped"]),
    )


def digest(one: Rendered) -> str:
    """Return a digest of an object's manifest, keys in their order. Two that are equal may have different ones."""
    manifest: Any = one.manifest
    for number, (path, pod) in enumerate(one.pods):
        if number and pod is one.pods[0][1]:
            # Roles of a job mostly have one and the same pod. Nothing of a manifest is `bytes`.
            manifest = _with(manifest, path, b"as the first")
    # Of all that Python brings, marshal is the fastest by far; version 2 of its format does not tell shared parts.
    return hashlib.blake2b(marshal.dumps(manifest, 2), digest_size=16).hexdigest()


def _with(value: Any, path: Path, new: object) -> Any:
    """Return a manifest with another value at a path; nothing is changed, and the rest is shared."""
    step, *rest = path
    copy = value.copy()
    copy[step] = _with(value[step], tuple(rest), new) if rest else new
    return copy


def _known(of: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of those fields that this revision knows, lists as the tuples that they were."""
    names = {one.name for one in fields(of)}
    return {name: _frozen(value) for name, value in values.items() if name in names}


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if is_list(value) else value
