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


GPU, SPOT = {"key": "nvidia.com/gpu", "operator": "Exists"}, {"key": "spot", "value": "yes", "effect": "NoSchedule"}


def nodes(name: str) -> Nodes:
    return nodes_by_pool(small_environment({"pools": POOLS}))[name]


@pytest.mark.parametrize(
    ("pool", "pod", "reason"),
    [
        ("cpu", {}, ""),
        ("cpu", {"nodeSelector": {"node.kubernetes.io/instance-type": "m7i.8xlarge", "kubernetes.io/os": "linux"}}, ""),
        ("cpu", {"nodeSelector": {"gpuyard.dev/pool": "l4"}}, "the node selector wants gpuyard.dev/pool=l4"),
        ("l4", {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100"}},
         "the node selector wants nvidia.com/gpu.product=NVIDIA-A100"),
        ("l4", {"nodeSelector": {"rack": "8"}}, "the node selector wants rack=8"),
        ("l4", {}, "the taint nvidia.com/gpu:NoSchedule is not tolerated"),
        ("l4", {"tolerations": [GPU]}, "the taint spot=yes:NoSchedule is not tolerated"),
        # A taint that only says what is preferred keeps nobody away.
        ("l4", {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L4", "rack": "7"}, "tolerations": [GPU, SPOT]}, ""),
    ],
)  # fmt: skip
def test_nodes_are_known_by_what_the_environment_says(pool: str, pod: dict[str, Any], reason: str) -> None:
    assert nodes(pool).refusal(pod) == reason


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
