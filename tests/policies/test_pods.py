"""What a pod asks for, as the scheduler counts it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

import pytest

from gpuyard.errors import InputError, Origin
from gpuyard.manifests import declare
from policies.shared.pods import pod_resources

POD = declare(
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": "vision"}}, origin=Origin("a.yaml", 3)
)


def container(requests: dict[str, Any], limits: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "main", "resources": {"requests": requests, "limits": limits or {}}, **more}


def cpus(*containers: dict[str, Any], init: list[dict[str, Any]] | None = None, **more: Any) -> Decimal:
    return pod_resources(POD, {"containers": list(containers), "initContainers": init or [], **more})["cpu"]


def test_containers_add_up() -> None:
    assert cpus(container({"cpu": "1500m"}), container({"cpu": 2})) == Decimal("3.5")


def test_the_largest_init_container_counts_only_when_it_is_larger() -> None:
    assert cpus(container({"cpu": 4}), init=[container({"cpu": 3}), container({"cpu": 2})]) == 4
    assert cpus(container({"cpu": 4}), init=[container({"cpu": 8}), container({"cpu": 2})]) == 8


def test_a_sidecar_stays_beside_the_containers_and_the_init_containers_after_it() -> None:
    sidecar = container({"cpu": 1}, restartPolicy="Always")

    assert cpus(container({"cpu": 4}), init=[sidecar]) == 5
    assert cpus(container({"cpu": 4}), init=[sidecar, container({"cpu": 8})]) == 9
    assert cpus(container({"cpu": 4}), init=[container({"cpu": 8}), sidecar]) == 8


def test_overhead_comes_on_top() -> None:
    assert cpus(container({"cpu": 4}), overhead={"cpu": "250m"}) == Decimal("4.25")


@pytest.mark.parametrize(
    ("field", "expected"),
    [("requests", {"nvidia.com/gpu": 8, "cpu": 4, "memory": 2**30}), ("limits", {"nvidia.com/gpu": 8, "cpu": 16})],
)
def test_a_limit_is_the_request_where_there_is_none(
    field: Literal["requests", "limits"], expected: dict[str, int]
) -> None:
    one = container({"cpu": 4, "memory": "1Gi"}, {"cpu": 16, "nvidia.com/gpu": 8.0})

    assert pod_resources(POD, {"containers": [one]}, field) == expected


def test_what_is_no_quantity_is_an_error_of_the_input() -> None:
    with pytest.raises(InputError) as caught:
        cpus(container({"cpu": "4 cores"}))

    assert str(caught.value) == (
        "error  bad quantity\n"
        "  a.yaml:3   Pod vision/one main resources\n"
        "  a quantity is a number with an optional unit: 500m, 4, 2.5, 100M, 64Gi, 2Ti"
    )
