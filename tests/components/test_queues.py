"""Shared queues, and the number that a queue has in common with a ResourceQuota."""

from __future__ import annotations

from decimal import Decimal

import pytest

from components.queues import format_amounts, queue, quota_amounts, shared_queues, team_quota
from gpuyard.errors import InputError
from tests.components.clusters import cluster

OVERFLOW = {"queues": {"overflow": {"quota": {"a100": 16}, "share": 2}}}


def test_a_shared_queue_has_its_quota_in_every_resource_of_the_cluster() -> None:
    (overflow,) = shared_queues(cluster(scheduling=OVERFLOW), None)
    two_nodes = {
        "cpu": "180",
        "hugepages-2Mi": "10Gi",
        "memory": "2118Gi",
        "nvidia.com/gpu": "16",
        "vpc.amazonaws.com/efa": "8",
    }
    assert overflow.manifest["metadata"]["name"] == "overflow"
    assert overflow.manifest["spec"] == {
        "parent": "root",
        "weight": 2,
        "reclaimable": True,
        "capability": two_nodes,
        "deserved": two_nodes,
    }
    assert overflow.lifecycle.protect
    assert overflow.lifecycle.wait


def test_a_queue_is_not_protected_where_the_cluster_is_not() -> None:
    (overflow,) = shared_queues(cluster(scheduling=OVERFLOW, cluster={"protect": False}), None)
    assert not overflow.lifecycle.protect


def test_without_volcano_there_are_no_queues() -> None:
    assert list(shared_queues(cluster(scheduling=OVERFLOW | {"gang": "none"}), None)) == []


def test_a_resource_without_quota_is_zero_and_not_unlimited() -> None:
    amounts = quota_amounts(cluster(), {"l4": 4})
    assert amounts["nvidia.com/gpu"] == 4
    assert amounts["vpc.amazonaws.com/efa"] == 0
    assert amounts["hugepages-2Mi"] == 0


def test_part_of_an_interface_counts_as_a_whole_one() -> None:
    assert format_amounts({"vpc.amazonaws.com/efa": Decimal("0.5"), "cpu": Decimal("11.25")}) == {
        "vpc.amazonaws.com/efa": "1",
        "cpu": "11250m",
    }


@pytest.mark.parametrize(("teams", "expected"), [(None, 48), (["vision"], 48), (["ads"], 32)])
def test_what_a_team_may_use_includes_the_shared_queues_open_to_it(teams: list[str] | None, expected: int) -> None:
    environment = cluster(scheduling={"queues": {"overflow": {"quota": {"a100": 16}, "teams": teams}}})
    assert team_quota(environment, "vision")["a100"] == expected
    assert environment.teams["vision"].quota["a100"] == 32


def test_a_queue_of_nothing_is_refused() -> None:
    environment = cluster(scheduling={"queues": {"empty": {"quota": {"a100": 0}}}})
    with pytest.raises(InputError) as caught:
        list(shared_queues(environment, None))
    assert str(caught.value) == (
        "error  quota of nothing\n"
        f"  {environment.origin('scheduling', 'queues', 'empty', 'quota')}   scheduling.queues.empty.quota\n"
        "  queue empty would be without a limit: Volcano reads zero as unlimited\n"
        "  fix: give it at least one GPU of a pool, or CPUs of a pool without GPUs"
    )


@pytest.mark.parametrize("name", ["default", "root"])
def test_the_queues_of_volcano_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}: Volcano makes queues called default and root itself"):
        queue(cluster(), name, {"h100": 8}, 1, ("scheduling", "queues", name))
