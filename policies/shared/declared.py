"""From a training job's object back to the job that its author wrote."""

from __future__ import annotations

from gpuyard.manifests import Rendered
from gpuyard.manifests.data import is_list, is_map
from gpuyard.model.environment import Environment
from gpuyard.model.jobs import Job
from gpuyard.rules import Context


def declared_jobs(context: Context) -> dict[tuple[str, str], Job]:
    """Return the environment's jobs by namespace and name of their object."""
    return context.once(_by_object)


def _by_object(context: Context) -> dict[tuple[str, str], Job]:
    return {(job.team, job.object_name): job for job in context.environment.jobs.values()}


def title(rendered: Rendered, job: Job | None) -> str:
    """Return what a person calls the job: `job resnet50`, or for an object of another origin `PyTorchJob vision/x`."""
    return f"job {job.name}" if job else str(rendered.identity)


def size_field(environment: Environment, job: Job) -> str:
    """Return the field with which the author said how many pods the job has: `nodes`, `replicas`, else `gpus`."""
    return next((name for name in ("nodes", "replicas") if ("jobs", job.name, name) in environment.written), "gpus")


def as_written(environment: Environment, job: Job, name: str) -> str:
    """Return a field of a job as it stands in its file: `nodes: 12`. Empty where it was left out."""
    places = environment.written.get(("jobs", job.name, name))
    if not places:
        return ""
    value = places[-1].value
    if is_map(value):
        value = f"{{{', '.join(f'{key}: {each}' for key, each in value.items())}}}"
    elif is_list(value):
        value = f"[{', '.join(map(str, value))}]"
    return f"{name}: {value}"
