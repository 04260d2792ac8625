"""PriorityClasses."""

from __future__ import annotations

import pytest

from components.priorities import priority_classes
from gpuyard.errors import InputError, Origin
from tests.components.clusters import cluster


def test_each_priority_is_a_class_that_nobody_has_by_default() -> None:
    research, batch = priority_classes(cluster(), None)
    assert research.manifest == {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "research", "labels": {"app.kubernetes.io/managed-by": "gpuyard"}},
        "value": 500,
        "globalDefault": False,
        "preemptionPolicy": "PreemptLowerPriority",
        "description": "Training jobs of priority research; those that name no pool prefer the newest GPUs.",
    }
    assert batch.manifest["value"] == 100
    assert batch.origin is not None
    assert batch.origin.file == "environment.yaml"
    assert batch.layer == "platform"


def test_the_names_of_kubernetes_are_refused() -> None:
    environment = cluster(scheduling={"priorities": {"system-fast": {"value": 1}}})
    with pytest.raises(InputError) as caught:
        list(priority_classes(environment, None))
    (problem,) = caught.value.problems
    assert problem.title == "reserved name"
    assert problem.field == "scheduling.priorities.system-fast"
    assert problem.origin == environment.origin("scheduling", "priorities", "system-fast")
    assert isinstance(problem.origin, Origin)
