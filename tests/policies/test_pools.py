"""Which pods the nodes of a pool accept, and how many nodes pods need."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from policies.shared.pools import Nodes, nodes_by_pool
from tests.rules.cases import small_environment

POOLS = {
    "l4": {
        "machine": "g6.12xlarge",
        "nodes": 4,
        "labels": {"rack": "7"},
        "taints": [{"key": "spot", "value": "yes"}, {"key": "slow", "effect": "PreferNoSchedule"}],
    },
    "cpu": {"machine": "m7i.8xlarge", "nodes": 2},
}


def nodes(name: str) -> Nodes:
    return nodes_by_pool(small_environment({"pools": POOLS}))[name]


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


def wants(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"nodeSelector": {"node.kubernetes.io/instance-type": "m7i.8xlarge", "kubernetes.io/os": "linux"}},
        {"nodeSelector": {"gpuyard.dev/pool": "cpu", "topology.kubernetes.io/zone": "any"}},
        affinity(wants("gpuyard.dev/pool", "In", "l4", "cpu")),
        affinity(wants("gpuyard.dev/pool", "In", "l4"), wants("gpuyard.dev/pool", "NotIn", "l4")),
        affinity(wants("nvidia.com/gpu.product", "DoesNotExist")),
        affinity(wants("kubernetes.io/hostname", "In", "node-7")),
    ],
)
def test_accepted(pod: dict[str, Any]) -> None:
    assert nodes("cpu").refusal(pod) == ""


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        ({"nodeSelector": {"disk": "fast"}}, "the node selector wants disk=fast"),
        (affinity(wants("gpuyard.dev/pool", "In", "l4")), "no term of the node affinity matches its labels"),
        (affinity(wants("gpuyard.dev/pool", "NotIn", "cpu")), "no term of the node affinity matches its labels"),
        (affinity(wants("nvidia.com/gpu.product", "Exists")), "no term of the node affinity matches its labels"),
        (affinity(wants("kubernetes.io/os", "DoesNotExist")), "no term of the node affinity matches its labels"),
        (affinity(wants("rack", "Gt", "5")), "no term of the node affinity matches its labels"),
        (affinity({}), "no term of the node affinity matches its labels"),
    ],
)
def test_refused(pod: dict[str, Any], reason: str) -> None:
    assert nodes("cpu").refusal(pod) == reason


@pytest.mark.parametrize(("operator", "than", "accepted"), [("Gt", "5", True), ("Gt", "7", False), ("Lt", "8", True)])
def test_labels_that_are_numbers_can_be_compared(operator: str, than: str, accepted: bool) -> None:
    pod = affinity(wants("rack", operator, than)) | {"tolerations": [{"operator": "Exists"}]}

    assert (nodes("l4").refusal(pod) == "") is accepted


GPU, SPOT = {"key": "nvidia.com/gpu", "operator": "Exists"}, {"key": "spot", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("tolerations", "reason"),
    [
        ([GPU, SPOT], ""),
        ([{"operator": "Exists"}], ""),
        ([{"key": "nvidia.com/gpu", "value": "present"}, SPOT], ""),
        ([], "the taint nvidia.com/gpu:NoSchedule is not tolerated"),
        ([GPU], "the taint spot=yes:NoSchedule is not tolerated"),
        ([GPU, SPOT | {"value": "no"}], "the taint spot=yes:NoSchedule is not tolerated"),
        ([GPU, SPOT | {"effect": "NoExecute"}], "the taint spot=yes:NoSchedule is not tolerated"),
    ],
)
def test_taints_keep_pods_away(tolerations: list[dict[str, str]], reason: str) -> None:
    assert nodes("l4").refusal({"tolerations": tolerations}) == reason


ONE_GPU = {"nvidia.com/gpu": Decimal(1), "cpu": Decimal(4)}
FAT = {"nvidia.com/gpu": Decimal(1), "cpu": Decimal(30)}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([(4, ONE_GPU)], 1),
        ([(5, ONE_GPU)], 2),
        ([(2, FAT)], 2),  # 2 x 30 of 45 CPUs
        ([(3, ONE_GPU), (2, {"cpu": Decimal(1)})], 1),  # they share a node
        ([(3, ONE_GPU), (1, FAT), (1, ONE_GPU)], 2),  # 5 of 4 GPUs
        ([(1, {"ephemeral-storage": Decimal(10**12)})], 1),  # disks are not described
    ],
)
def test_nodes_needed_however_pods_are_packed(pods: list[tuple[int, dict[str, Decimal]]], expected: int) -> None:
    assert nodes("l4").needed(pods) == expected
