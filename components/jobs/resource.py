"""Training jobs as a Pulumi component."""

from __future__ import annotations

import pulumi

from components import jobs
from gpuyard.pulumi.component import Component


class Jobs(Component[None]):
    """The runs of an environment's jobs, and their checkpoint volumes."""

    component = "jobs"
    content = staticmethod(jobs.register)
    exposes = {"pytorch_jobs": "PyTorchJob", "tf_jobs": "TFJob", "claims": "PersistentVolumeClaim"}

    pytorch_jobs: pulumi.Output[list[str]]
    tf_jobs: pulumi.Output[list[str]]
    claims: pulumi.Output[list[str]]
