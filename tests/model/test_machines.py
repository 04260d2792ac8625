"""The machine catalogue, as pools use it."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import ValidationError

from gpuyard.model.environment import Pool
from gpuyard.model.machines import MACHINES


def test_every_machine_names_its_source() -> None:
    assert [name for name, machine in MACHINES.items() if not machine.source.startswith("https://")] == []


@pytest.mark.parametrize(
    ("machine", "gpus", "gpu", "nics"),
    [
        ("p5.48xlarge", 8, "H100", {"efa": 32}),
        ("p4d.24xlarge", 8, "A100", {"efa": 4}),
        ("g5.48xlarge", 8, "A10G", {}),
        ("g6.12xlarge", 4, "L4", {}),
        ("a3-ultragpu-8g", 8, "H200", {}),
        ("Standard_ND96isr_H100_v5", 8, "H100", {"infiniband": 8}),
        ("DGX H100", 8, "H100", {}),
        ("m7i.8xlarge", 0, "", {}),
    ],
)
def test_what_a_machine_has(machine: str, gpus: int, gpu: str, nics: dict[str, int]) -> None:
    found = MACHINES[machine]
    assert (found.gpus, found.gpu, found.nics) == (gpus, gpu, nics)


def test_pods_get_less_than_the_node_has() -> None:
    p5 = MACHINES["p5.48xlarge"]
    assert p5.allocatable_cpu == Decimal(180)
    assert p5.allocatable_memory / 2**30 == Decimal(1884)
    small = MACHINES["m7i.2xlarge"]
    assert (small.allocatable_cpu, small.allocatable_memory / 2**30) == (Decimal(7), Decimal(29))


def test_a_pool_offers_its_fabric() -> None:
    pool = Pool.model_validate({"machine": "p5.48xlarge", "nodes": 2, "fabric": "efa"})
    assert {name: str(value) for name, value in pool.node.items()} == {
        "cpu": "180",
        "memory": str(1884 * 2**30),
        "nvidia.com/gpu": "8",
        "vpc.amazonaws.com/efa": "32",
        "hugepages-2Mi": str(5120 * 2**20),
    }


def test_a_pool_may_describe_its_own_machine() -> None:
    machine = {"name": "rack-7", "cpu": 64, "memory": "512Gi", "gpus": 4, "gpu": "A100"}
    pool = Pool.model_validate({"machine": machine, "nodes": 3, "labels": {"rack": "r7"}})
    assert (pool.gpus, pool.selector) == (12, {"rack": "r7"})


def test_a_name_with_a_space_is_a_machine_like_any_other() -> None:
    pool = Pool.model_validate({"machine": "DGX H100", "nodes": 4})
    assert pool.selector == {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    with pytest.raises(ValidationError, match=r"is called DGX-H100; did you mean DGX H100\?"):
        Pool.model_validate({"machine": "DGX-H100", "nodes": 4})


def test_a_name_that_nodes_carry_as_a_label_has_no_space() -> None:
    machine = {"name": "rack 7", "cpu": 64, "memory": "512Gi"}
    assert Pool.model_validate({"machine": machine, "nodes": 3, "labels": {"rack": "r7"}}).machine.name == "rack 7"
    with pytest.raises(ValidationError, match="is a label of nodes, but `rack 7` must be a label value"):
        Pool.model_validate({"machine": {**machine, "instance_type": True}, "nodes": 3})


def test_nodes_that_nothing_tells_apart_are_refused() -> None:
    machine = {"name": "rack-7", "cpu": 64, "memory": "512Gi"}
    with pytest.raises(ValidationError, match="give the labels that they all carry"):
        Pool.model_validate({"machine": machine, "nodes": 3})


def test_a_range_of_nodes_is_ordered() -> None:
    with pytest.raises(ValidationError, match="min 4 is larger than max 2"):
        Pool.model_validate({"machine": "p5.48xlarge", "nodes": {"min": 4, "max": 2}})
