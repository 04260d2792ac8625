"""A small cluster for tests of components: pools of two generations, CPU nodes, storage, and whatever a test adds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from components.jobs.pytorch import PyTorchJob
from components.jobs.tensorflow import TensorFlowJob
from gpuyard.errors import Origin
from gpuyard.model.environment import Cluster, Environment, Path, Pool, Scheduling, Storage, Team, Written

KINDS = {"pytorch": PyTorchJob, "tensorflow": TensorFlowJob}

SECTIONS: dict[str, dict[str, Any]] = {
    "cluster": {"name": "acme-test", "provider": "eks", "kubernetes": "1.34", "protect": True},
    "pools": {
        "h100": {"machine": "p5.48xlarge", "nodes": 32, "fabric": "efa"},
        "a100": {"machine": "p4d.24xlarge", "nodes": 8, "fabric": "efa"},
        "a10g": {"machine": "g5.48xlarge", "nodes": 4},
        "l4": {"machine": "g6.12xlarge", "nodes": {"min": 0, "max": 20}, "capacity": "spot"},
        "cpu": {"machine": "m7i.8xlarge", "nodes": 3},
    },
    "scheduling": {"priorities": {"research": {"value": 500}, "batch": {"value": 100, "prefer": "oldest"}}},
    "storage": {
        "classes": {
            "block": {"type": "ebs-gp3", "default": True},
            "shared": {"type": "efs", "file-system": "fs-1"},
        },
        "datasets": {"imagenet": {"class": "shared", "size": "2400Gi"}},
        "checkpoints": "shared",
    },
}

VISION: dict[str, Any] = {"name": "vision", "quota": {"h100": 64, "a100": 32, "l4": 8, "a10g": 8}}


def cluster(*, team: dict[str, Any] | None = None, job: dict[str, Any] | None = None, **changes: Any) -> Environment:
    """Return the cluster; `changes` are laid over its sections, key by key.

    Places are counted as if each key stood on a line of its own: the first key of a file on line 1, the first key
    inside it on line 2.
    """
    sections = {name: content | changes.get(name, {}) for name, content in SECTIONS.items()}
    a_team = VISION | (team or {})
    environment = Environment(
        name="test",
        cluster=Cluster.model_validate(sections["cluster"]),
        pools={name: Pool.model_validate(pool) for name, pool in sections["pools"].items()},
        scheduling=Scheduling.model_validate(sections["scheduling"]),
        storage=Storage.model_validate(sections["storage"]),
        addons={},
        teams={a_team["name"]: Team.model_validate(a_team)},
        jobs={job["name"]: KINDS[job["kind"]].model_validate(job)} if job else {},
    )
    files: list[tuple[str, Path, dict[str, Any]]] = [("environment.yaml", (), sections)]
    files.append((f"teams/{a_team['name']}.yaml", ("teams", a_team["name"]), a_team))
    if job:
        files.append((f"jobs/{job['name']}.yaml", ("jobs", job["name"]), job))
    for file, prefix, data in files:
        if prefix:
            environment.written[prefix] = [Written(Origin(file), data)]
        for line, (path, value) in enumerate(_values(prefix, data), start=1):
            environment.written[path] = [Written(Origin(file, line), value)]
    return environment


def _values(prefix: Path, data: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    for key, value in data.items():
        yield (*prefix, key), value
        if isinstance(value, dict):
            yield from _values((*prefix, key), value)
