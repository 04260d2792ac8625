"""One typed job specification; a job kind adds how its pods are counted and turns it into its custom resource."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from gpuyard.model.settings import Dns1035Label, Duration, Quantity, Settings

HASH_LENGTH = 6
"""Characters of the run hash in an object's name."""

ROOM_FOR_INDEX = len("-worker-99")
"""What an operator appends at least to a job's name for a pod: DNS labels end at 63 characters, so it is reserved."""


class SecretKey(Settings):
    """A key of a Secret that exists in the team's namespace."""

    secret: str
    key: str


class Checkpoint(Settings):
    """A volume that outlives runs, mounted at /checkpoints. `every`: how often the job promises to save."""

    size: Quantity
    class_: str | None = Field(default=None, alias="class")
    every: Duration | None = None


class Job(Settings):
    """What a researcher writes. `gpus`, `cpu` and `memory` are of one pod."""

    name: Dns1035Label
    team: str
    kind: str
    image: Annotated[str, Field(min_length=1)]
    command: list[str] = Field(default_factory=list[str])
    args: list[str] = Field(default_factory=list[str])
    env: dict[str, str | SecretKey] = Field(default_factory=dict)
    gpus: Annotated[int, Field(ge=0)] = 0
    cpu: Quantity | None = None
    memory: Quantity | None = None
    pools: list[str] = Field(default_factory=list[str])
    data: list[str] = Field(default_factory=list[str])
    checkpoint: Checkpoint | None = None
    priority: str | None = None
    queue: str | None = None
    retries: Annotated[int, Field(ge=0)] = 3
    time_limit: Duration | None = None
    user: Annotated[int, Field(ge=1)] | None = None
    _run: str = PrivateAttr(default="")

    @model_validator(mode="wrap")
    @classmethod
    def remember_what_was_written(cls, written: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        job = handler(written)
        job._run = run_hash(written)
        return job

    @cached_property
    def pods(self) -> dict[str, int]:
        """Number of pods by role in lower case, for example {"chief": 1, "worker": 6, "ps": 2}."""
        raise TypeError(f"job kind {self.kind} does not say how its pods are counted")

    @property
    def cpu_roles(self) -> frozenset[str]:
        """Roles whose pods hold no GPU even when the job has some."""
        return frozenset()

    @cached_property
    def gpu_pods(self) -> int:
        """Number of pods that hold GPUs."""
        return sum(count for role, count in self.pods.items() if role not in self.cpu_roles) if self.gpus else 0

    @cached_property
    def object_name(self) -> str:
        """Name of this run's objects: the job's name and the hash of its file."""
        return f"{self.name}-{self._run}"


def run_hash(written: Mapping[str, Any]) -> str:
    """Return the hash of a job file's content. Comments, order of keys and platform defaults do not change it."""
    canonical = json.dumps(written, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:HASH_LENGTH]
