"""What a pod mounts: shared memory, datasets, and the checkpoints that outlive it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from components.jobs.placement import Placement
from components.jobs.refuse import refusal
from components.jobs.resources import shared_memory
from components.storage import claim, dataset_volume
from gpuyard.manifests import Manifest, Rendered
from gpuyard.model.environment import Environment
from gpuyard.model.jobs import Job

CHECKPOINTS = "/checkpoints"
SHARED_MEMORY = "/dev/shm"


def _claim_name(job: Job) -> str:
    """Return the name of the claim for a job's checkpoints; without the run, because runs continue each other."""
    return f"{job.name}-checkpoint"


def checkpoint_claim(environment: Environment, job: Job) -> Iterator[Rendered]:
    """Yield the claim for a job's checkpoints, if it has some."""
    if job.checkpoint:
        yield claim(
            environment,
            job.team,
            _claim_name(job),
            _checkpoint_class(environment, job),
            job.checkpoint.size,
            layer="jobs",
            origin=environment.origin("jobs", job.name, "checkpoint"),
        )


def checkpoint_volume(job: Job) -> Manifest:
    """Return the volume of a job's checkpoints."""
    return {"name": "checkpoints", "persistentVolumeClaim": {"claimName": _claim_name(job)}}


def volumes(job: Job, placement: Placement) -> list[Manifest]:
    """Return the volumes of a pod beside that of its checkpoints."""
    return [
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": shared_memory(job, placement)}},
        *(
            {
                "name": dataset_volume(dataset),
                "persistentVolumeClaim": {"claimName": dataset_volume(dataset), "readOnly": True},
            }
            for dataset in dict.fromkeys(job.data)
        ),
    ]


def mounts(environment: Environment, job: Job) -> list[Manifest]:
    """Return where a container sees the volumes; a dataset has the same path in every pod and environment."""
    found: list[Manifest] = [{"name": "shm", "mountPath": SHARED_MEMORY}]
    for dataset in dict.fromkeys(job.data):
        path = environment.storage.datasets[dataset].mount or f"/data/{dataset}"
        found.append({"name": dataset_volume(dataset), "mountPath": path, "readOnly": True})
    if job.checkpoint:
        found.append({"name": "checkpoints", "mountPath": CHECKPOINTS})
    return found


def check_volumes(environment: Environment, job: Job, places: Mapping[str, Placement]) -> None:
    """Raise InputError when two volumes have one path, or pods on several nodes mount a volume of one node."""
    kept = job.checkpoint and _checkpoint_class(environment, job)
    environment.share(("mountable", id(places), kept, *job.data), lambda: _check_volumes(environment, job, places))


def _check_volumes(environment: Environment, job: Job, places: Mapping[str, Placement]) -> None:
    taken: dict[str, str] = {}
    for mount in mounts(environment, job):
        other = taken.setdefault(mount["mountPath"], mount["name"])
        if other != mount["name"]:
            raise refusal(
                environment,
                job,
                ("data",),
                "two volumes at one path",
                f"{other} and {mount['name']} are both mounted at {mount['mountPath']}",
                "give the dataset another path with mount: under storage.datasets",
            )
    pods = sum(job.pods.values())
    pools = {name: pool for placement in places.values() for name, pool in placement.pools.items()}
    # Pods on one node share a volume of that node.
    if pods == 1 or sum(pool.nodes.max for pool in pools.values()) == 1:
        return
    shared = [name for name, options in environment.storage.classes.items() if options.shared]
    used: list[tuple[tuple[str | int, ...], str, str]] = [
        (("data", index), dataset, environment.storage.datasets[dataset].class_)
        for index, dataset in enumerate(job.data)
    ]
    if job.checkpoint:
        used.append((("checkpoint",), "checkpoints", _checkpoint_class(environment, job)))
    for path, what, class_name in used:
        if class_name not in shared:
            raise refusal(
                environment,
                job,
                path,
                "volume of one node",
                f"{pods} pods mount {what}; class {class_name} ({environment.storage.classes[class_name].type}) can be "
                "mounted on one node at a time",
                f"use a shared class: {', '.join(shared) or 'add one of type efs, fsx-lustre or nfs'}",
            )


def _checkpoint_class(environment: Environment, job: Job) -> str:
    assert job.checkpoint
    name = job.checkpoint.class_ or environment.storage.checkpoints
    if not name:
        raise refusal(
            environment,
            job,
            ("checkpoint",),
            "no storage class for checkpoints",
            f"neither the job nor storage.checkpoints of {environment.name} names one",
            "add class: under checkpoint, or checkpoints: under storage",
        )
    return name
