"""Which nodes accept a pod, where not every label of a node is known."""

from __future__ import annotations

from typing import Any

import pytest

from gpuyard.manifests.scheduling import GPU, Taint, refusal

LABELS = {"rack": "7", "owner": "vision"}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


def wants(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("pod", "with_gpus", "without"),
    [
        ({}, True, True),
        ({"nodeSelector": {"rack": "7"}}, True, True),
        ({"nodeSelector": {"rack": "8"}}, False, False),
        ({"nodeSelector": {"node-role.kubernetes.io/control-plane": ""}}, False, False),
        # Every node has a zone, and those with GPUs have what operators find on them.
        ({"nodeSelector": {"topology.kubernetes.io/zone": "b"}}, True, True),
        ({"nodeSelector": {"nvidia.com/gpu.present": "true"}}, True, False),
        (affinity(wants("nvidia.com/gpu.present", "NotIn", "true")), True, True),
        (affinity(wants("feature.node.kubernetes.io/pci-10de.present", "In", "true")), True, False),
        (affinity(wants("kubernetes.io/hostname", "In", "node-7")), True, True),
        (affinity(wants("rack", "In", "8"), wants("rack", "In", "7")), True, True),
        (affinity(wants("rack", "NotIn", "7")), False, False),
        (affinity(wants("disk", "Exists")), False, False),
        (affinity(wants("disk", "DoesNotExist")), True, True),
        (affinity(wants("rack", "DoesNotExist")), False, False),
        (affinity(wants("rack", "Gt", "6")), True, True),
        (affinity(wants("rack", "Lt", "7")), False, False),
        (affinity(wants("owner", "Gt", "1")), False, False),
        (affinity({}), False, False),
        (affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}), True, True),
    ],
)
def test_what_labels_decide(pod: dict[str, Any], with_gpus: bool, without: bool) -> None:
    assert (refusal(pod, LABELS, (), has_gpus=True) == "") is with_gpus
    assert (refusal(pod, LABELS, (), has_gpus=False) == "") is without


def test_a_label_that_is_known_is_judged_wherever_it_comes_from() -> None:
    pod = {"nodeSelector": {"topology.kubernetes.io/zone": "b"}}
    assert refusal(pod, {"topology.kubernetes.io/zone": "a"}, (), has_gpus=False) == (
        "the node selector wants topology.kubernetes.io/zone=b"
    )


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "owner", "operator": "Exists"}, True),
        ({"key": "owner", "value": "vision"}, True),
        ({"key": "owner", "value": "vision", "effect": "NoExecute"}, True),
        ({"key": "owner", "value": "ads"}, False),
        ({"key": "owner"}, False),
        ({"key": "owner", "value": "vision", "effect": "NoSchedule"}, False),
    ],
)
def test_taints(toleration: dict[str, str], tolerated: bool) -> None:
    taints: list[Taint] = [("owner", "vision", "NoExecute")]
    reason = refusal({"tolerations": [toleration]}, {}, taints, has_gpus=False)
    assert reason == ("" if tolerated else "the taint owner=vision:NoExecute is not tolerated")


@pytest.mark.parametrize("value", ["present", "true", ""])
def test_the_taint_of_gpus_is_tolerated_with_any_value(value: str) -> None:
    pod = {"tolerations": [{"key": GPU, "value": value}]}
    assert refusal(pod, {}, [(GPU, "", "NoSchedule")], has_gpus=True) == ""
