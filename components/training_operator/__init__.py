"""The training operator: runs PyTorchJob, TFJob and the other kinds of kubeflow.org/v1."""

from __future__ import annotations

from components.training_operator.objects import training_operator
from components.training_operator.settings import TrainingOperatorSettings
from gpuyard.model.registry import Component, Registry


def register(registry: Registry) -> None:
    """Add the add-on `training-operator`."""
    component = Component("training-operator", settings=TrainingOperatorSettings)
    component.sourced("training-operator")(training_operator)
    registry.add(component)
