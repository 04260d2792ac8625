"""Training jobs: one pod template, and one module for each kind that turns a job into its custom resource."""

from __future__ import annotations

from components.jobs import pytorch, tensorflow
from gpuyard.model.registry import JobKind, Registry

__all__ = ["RESOURCES", "register"]

RESOURCES = (pytorch.RESOURCE, tensorflow.RESOURCE)
"""Plural names of the kinds in the API group kubeflow.org, as roles name them."""


def register(registry: Registry) -> None:
    """Add the job kinds."""
    registry.add(
        JobKind("pytorch", pytorch.PyTorchJob, pytorch.pytorch_run, addon="training-operator"),
        JobKind("tensorflow", tensorflow.TensorFlowJob, tensorflow.tensorflow_run, addon="training-operator"),
    )
