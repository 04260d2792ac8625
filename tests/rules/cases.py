"""Cases of the rules as YAML files: what a good file has, a bad file breaks in one place.

A good file: `environment` (a small one; what it leaves out has a default), `objects`, and nothing to find.
A bad file:  `base` names the good file; `break` names an object (or `environment`), the path of one field in it and its
new `value` (without `value` the field is taken away, without `field` the whole object); `finds` is the exact text that
a person reads. An unjudged file is the same, with `skipped`: the sources that were left out.
"""

from __future__ import annotations

import copy
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gpuyard.errors import Origin
from gpuyard.manifests import declare, identity
from gpuyard.model.environment import Cluster, Environment, Pool, Scheduling, Storage, Team
from gpuyard.model.jobs import Job
from gpuyard.model.layers import Written
from gpuyard.rules import Context


class Case(NamedTuple):
    context: Context
    finds: str


class FixtureJob(Job):
    """A job of any kind: `nodes` pods with GPUs, or `replicas` by role of which `ps` has none."""

    nodes: int = 1
    replicas: dict[str, int] | None = None

    @cached_property
    def pods(self) -> dict[str, int]:
        return self.replicas or {"worker": self.nodes}

    @property
    def cpu_roles(self) -> frozenset[str]:
        return frozenset({"ps"})

    @cached_property
    def object_name(self) -> str:
        return f"{self.name}-5c1f2a"


def read_case(path: Path) -> Case:
    """Return what the rules look at in a good or bad file, and what they are to find."""
    written = yaml.safe_load(path.read_text())
    if "base" not in written:
        return Case(_context(written, ()), "")
    data = yaml.safe_load((path.parent / written["base"]).read_text())
    if "break" in written:
        _break(data, **written["break"])
    return Case(_context(data, tuple(written.get("skipped", ()))), written["finds"].rstrip("\n"))


def _break(data: dict[str, Any], object: str, field: list[str | int] | None = None, **value: Any) -> None:
    if object == "environment":
        target: Any = data["environment"]
    else:
        (target,) = [each for each in data["objects"] if str(identity(each)) == object]
    if field is None:
        data["objects"].remove(target)
        return
    for step in field[:-1]:
        target = target[step]
    before = copy.deepcopy(target)
    if "value" in value:
        target[field[-1]] = value["value"]
    else:
        del target[field[-1]]
    assert target != before, "a bad file must change something"


def _context(data: dict[str, Any], skipped: tuple[str, ...]) -> Context:
    environment = small_environment(data.get("environment", {}))
    by_object = {(job.team, job.object_name): job.name for job in environment.jobs.values()}
    objects = [
        declare(manifest, origin=environment.origin("jobs", name) if name else None)
        for manifest in data["objects"]
        for name in [by_object.get((identity(manifest).namespace, identity(manifest).name))]
    ]
    return Context(tuple(objects), environment, skipped)


def small_environment(data: dict[str, Any]) -> Environment:
    """Return an environment, written as one block-style file for each job and team and one for the rest."""
    return Environment(
        name="test",
        cluster=Cluster.model_validate({"name": "test", "provider": "eks", "kubernetes": "1.34"}),
        pools={name: Pool.model_validate(pool) for name, pool in data.get("pools", {}).items()},
        scheduling=Scheduling.model_validate(data.get("scheduling", {})),
        storage=Storage(),
        addons={},
        teams={name: Team.model_validate({"name": name, **team}) for name, team in data.get("teams", {}).items()},
        jobs={name: _job(name, job) for name, job in data.get("jobs", {}).items()},
        written=_places(data),
    )


def _job(name: str, data: dict[str, Any]) -> Job:
    return FixtureJob.model_validate({"name": name, "team": "vision", "kind": "fixture", "image": "train", **data})


def _places(data: dict[str, Any]) -> dict[tuple[str | int, ...], list[Written]]:
    lines: dict[str, int] = {}
    places: dict[tuple[str | int, ...], list[Written]] = {}

    def place(file: str, path: tuple[str, ...], value: Any) -> None:
        lines[file] = lines.get(file, 0) + 1
        places[path] = [Written(Origin(file, lines[file]), value)]
        inside(file, path, value)

    def inside(file: str, path: tuple[str, ...], value: Any) -> None:
        for key, child in value.items() if isinstance(value, dict) else ():
            place(file, (*path, key), child)

    for top, value in data.items():
        if top not in ("jobs", "teams"):
            place("stacks/test/environment.yaml", (top,), value)
            continue
        for name, content in value.items():
            places[top, name] = [Written(Origin(f"stacks/test/{top}/{name}.yaml", 1), content)]
            inside(f"stacks/test/{top}/{name}.yaml", (top, name), content)
    return places
