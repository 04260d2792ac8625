"""Pools as simulated nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gpuyard.model.environment import Pool
from gpuyard.sandbox.nodes import node, nodes


def pool(machine: str = "g6.12xlarge", **settings: Any) -> Pool:
    return Pool.model_validate({"machine": machine, "nodes": 1, **settings})


def names(most: int, **pools: Pool) -> list[str]:
    environment: Any = SimpleNamespace(pools=pools)
    return [one["metadata"]["name"] for one in nodes(environment, most)]


def test_as_many_as_the_minimum_but_no_more_than_asked() -> None:
    fixed = pool(nodes=3)
    assert names(4, gpu=fixed) == ["gpu-0", "gpu-1", "gpu-2"]
    assert names(2, gpu=fixed) == ["gpu-0", "gpu-1"]


def test_a_pool_that_may_be_empty_has_one_node() -> None:
    assert names(4, spot=pool(nodes={"min": 0, "max": 20}, capacity="spot")) == ["spot-0"]


def test_a_gpu_node() -> None:
    made = node("gpu-0", "gpu", pool(taints=[{"key": "team", "value": "vision"}]))
    assert made["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert made["metadata"]["labels"]["gpuyard.dev/pool"] == "gpu"
    assert made["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "g6.12xlarge"
    assert made["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert made["status"]["allocatable"] == made["status"]["capacity"]
    assert made["spec"]["taints"] == [
        {"key": "team", "value": "vision", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
    ]


def test_a_cpu_node_has_no_gpu_and_no_taint() -> None:
    made = node("cpu-0", "cpu", pool("m7i.8xlarge"))
    assert "nvidia.com/gpu" not in made["status"]["allocatable"]
    assert made["spec"]["taints"] == []


def test_fabric_interfaces_are_offered() -> None:
    made = node("h100-0", "h100", pool("p5.48xlarge", fabric="efa"))
    assert made["status"]["allocatable"]["vpc.amazonaws.com/efa"] == "32"
    assert made["status"]["allocatable"]["hugepages-2Mi"] == "5Gi"
