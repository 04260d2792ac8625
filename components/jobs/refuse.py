"""What is said when a job cannot be rendered."""

from __future__ import annotations

from gpuyard.errors import InputError, Problem
from gpuyard.model.environment import Environment
from gpuyard.model.jobs import Job


def refusal(
    environment: Environment, job: Job, path: tuple[str | int, ...], title: str, detail: str, fix: str
) -> InputError:
    """Return the error about one field of a job's file."""
    origin = environment.origin("jobs", job.name, *path)
    return InputError(Problem(title, origin, ".".join(map(str, path)), detail, fix))
