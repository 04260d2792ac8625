"""A folder that `render --out` wrote, read back as one side of a diff.

It holds manifests and nothing else. What only the model knows is taken from where it shows: the stable id of a run from
its labels, that of any other object from the name of its file, jobs from their runs. How an object lives, and which
pools there are, is taken from the render of today: neither can show as a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuyard.cli.gitops import CONTROLLERS, without_annotations
from gpuyard.cli.tree import INCOMPLETE, MARK, object_paths
from gpuyard.diff.state import JobState, PoolState, State
from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests import RUN, Lifecycle, Manifest, Rendered, declare
from gpuyard.manifests.data import at, is_map
from gpuyard.manifests.pods import pod_specs
from gpuyard.manifests.quantity import parse_quantity
from gpuyard.manifests.scheduling import GPU
from gpuyard.manifests.yaml.read import read_documents

_JOB = "gpuyard.dev/job"
"""Label of a run: the job that it is a run of."""

_JOBS = "jobs"
"""What the objects of jobs have as component and as layer."""


def is_committed(folder: Path) -> bool:
    """Return whether a folder is one that `render --out` wrote."""
    return (folder / MARK).is_file()


def read_committed(folder: Path, today: State) -> State:
    """Return the state that a folder holds. today: the render that it is compared with.

    Raises InputError for a file that is missing or holds something else than one object, and for a folder that was
    rendered with a source that the render of today goes without.
    """
    lines = (folder / MARK).read_text(encoding="utf-8").splitlines()
    skipped = [line.removeprefix(INCOMPLETE).partition(",")[0] for line in lines if line.startswith(INCOMPLETE)]
    if missing := sorted({*today.skipped}.difference(skipped)):
        raise InputError(
            Problem(
                "the base has objects of sources that are not in the cache",
                Origin(str(folder)),
                detail=f"it was rendered with {', '.join(missing)}; without, their objects would look removed",
                fix=f"gpuyard sources pull {' '.join(missing)}",
            )
        )
    paths = [line for line in lines if not line.startswith("#")]
    is_gitops = any(path.startswith(CONTROLLERS) for path in paths)
    known = _Known(today)
    objects: list[Rendered] = []
    for path in paths:
        if path.startswith(CONTROLLERS):
            continue
        manifest = _read(folder, path)
        name = path.rpartition(".")[0]
        if is_gitops:
            # There the first folder is what is applied together.
            manifest, name = without_annotations(manifest), name.partition("/")[2]
        objects.append(known.rendered(manifest, name, Origin(str(folder / path))))
    return State(tuple(objects), today.pools, tuple(_jobs(objects, today.pools)), tuple(skipped))


def _read(folder: Path, path: str) -> Manifest:
    file = folder / path
    # A folder comes with somebody's branch: neither its list nor a symlink in it may show what is beside it.
    if not file.resolve().is_relative_to(folder.resolve()):
        raise InputError(
            Problem(
                "a file outside of the folder",
                Origin(str(folder / MARK)),
                path,
                "it leads out of the folder, and a render writes only inside",
                "render again",
            )
        )
    if not file.is_file():
        raise InputError(
            Problem("a file of the render is missing", Origin(str(file)), detail=f"{MARK} lists it", fix="render again")
        )
    documents = read_documents(file.read_bytes(), str(file))
    metadata = documents[0].get("metadata") if len(documents) == 1 else None
    if not is_map(metadata) or not all(
        isinstance(text, str) and text
        for text in (documents[0].get("apiVersion"), documents[0].get("kind"), metadata.get("name"))
    ):
        raise InputError(
            Problem(
                "not one object",
                Origin(str(file)),
                detail="a file of a render is one map with apiVersion, kind and metadata.name",
                fix="render again",
            )
        )
    return documents[0]


class _Known:
    """What the render of today tells about the objects of a folder."""

    def __init__(self, today: State) -> None:
        self._by_identity = today.by_identity
        self._by_id = {_stable(one): one for one in today.objects}
        self._by_path = dict(zip(object_paths(today.objects), today.objects, strict=True))
        self._lives: dict[tuple[str, str, str], set[Lifecycle]] = {}
        for one in today.objects:
            self._lives.setdefault((one.identity.group, one.identity.kind, one.component), set()).add(one.lifecycle)

    def rendered(self, manifest: Manifest, path: str, origin: Origin) -> Rendered:
        """Return an object of the folder. path: as `object_paths` writes it."""
        declared = declare(manifest, origin=origin).of(path.partition("/")[0])
        who = declared.identity
        job = _job(manifest)
        if job:
            declared = replace(declared, id=f"{who.kind}/{who.namespace}/{job}")
        twin = self._by_identity.get(who) or self._by_id.get(_stable(declared))
        if twin is None and (there := self._by_path.get(path)) and there.identity[:3] == who[:3]:
            # An object with a version in its name: its file is called by what stays the same.
            twin = there
        if twin:
            return replace(declared, id=twin.id, component=twin.component, layer=twin.layer, lifecycle=twin.lifecycle)
        if declared.component == _JOBS:
            declared = replace(declared, layer=_JOBS)
        # It is gone: it lives as those of its kind do that are still there.
        lives = self._lives.get((who.group, who.kind, declared.component), set())
        if job:
            return replace(declared, lifecycle=RUN)
        return replace(declared, lifecycle=next(iter(lives))) if len(lives) == 1 else declared


def _stable(rendered: Rendered) -> tuple[str, str, str]:
    who = rendered.identity
    return who.group, who.kind, rendered.id


def _job(manifest: Manifest) -> str:
    """Return the name of the job that an object is a run of; "" for any other object."""
    name = at(manifest, "metadata", "labels", _JOB)
    return name if isinstance(name, str) and next(pod_specs(manifest), None) else ""


def _jobs(objects: Sequence[Rendered], pools: Sequence[PoolState]) -> Iterator[JobState]:
    """Yield what runs tell of their jobs."""
    for one in objects:
        manifest = one.manifest
        if not (name := _job(manifest)):
            continue
        who = one.identity
        counts: list[int] = []
        gpus = 0
        usable: list[str] = []
        for path, pod in pod_specs(manifest):
            if has := _gpus(pod):
                # Beside the template stands how many there are.
                replicas = at(manifest, *path[:-2], "replicas")
                counts.append(1 if replicas is None else int(replicas))
                gpus = has
                usable = [pool.name for pool in pools if pool.gpus >= has and pool.accepts(pod)]
        queue = at(manifest, "spec", "runPolicy", "schedulingPolicy", "queue")
        yield JobState(name, who.namespace, who.name, queue or who.namespace, sum(counts), gpus, tuple(usable))


def _gpus(pod: Mapping[str, Any]) -> int:
    return sum(int(parse_quantity(at(one, "resources", "limits", GPU) or 0)) for one in pod["containers"])
