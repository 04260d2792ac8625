"""The training operator as a Pulumi component."""

from __future__ import annotations

import pulumi

from components import training_operator
from components.training_operator.settings import TrainingOperatorSettings
from gpuyard.pulumi.component import Component


class TrainingOperator(Component[TrainingOperatorSettings]):
    """The operator of the training jobs: its namespace and its Deployment."""

    component = "training-operator"
    content = staticmethod(training_operator.register)
    exposes = {"namespaces": "Namespace", "deployments": "Deployment"}

    namespaces: pulumi.Output[list[str]]
    deployments: pulumi.Output[list[str]]
