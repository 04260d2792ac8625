"""The two halves of the deadlock scenario: what differs between them, and how samples become verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from gpuyard.manifests import Rendered, declare
from gpuyard.sandbox import scenario
from gpuyard.sandbox.scenario import Sample, Track


def track(job: str, *held: int, last: str = "") -> Track:
    """Return a job of four GPUs that held so many at 0, 1, 2 ... seconds; `last`: its state at the end."""
    states = ["runs whole" if count == 4 else "holds part" if count else "waits" for count in held]
    states[-1] = last or states[-1]
    pairs = enumerate(zip(held, states, strict=True))
    return Track(job, 4, tuple(Sample(float(t), count, state) for t, (count, state) in pairs))


def stuck(*tracks: Track, hold: float = 2) -> tuple[str, ...]:
    return scenario._stuck(tracks, hold)[1]


def one_after_the_other(*tracks: Track) -> tuple[str, ...]:
    return scenario._one_after_the_other(tracks)[1]


def test_two_parts_that_stay_are_a_deadlock() -> None:
    assert stuck(track("a", 0, 3, 3, 3), track("b", 0, 1, 1, 1)) == ()


def test_a_job_that_runs_whole_is_no_deadlock() -> None:
    assert stuck(track("a", 0, 4, 4, 4), track("b", 0, 0, 0, 0)) == (
        "a holds 4 of 4 GPUs, and not a part of them",
        "a had all its GPUs at some time",
        "b holds 0 of 4 GPUs, and not a part of them",
    )


def test_a_deadlock_has_to_last() -> None:
    assert stuck(track("a", 0, 1, 2, 3), track("b", 0, 1, 1, 1)) == (
        "it changed 0 s before the end, and not 2 s or more",
    )


def test_one_after_the_other() -> None:
    first, second = track("a", 0, 4, 0, 0, 0, last="finished"), track("b", 0, 0, 4, 4, 0, last="finished")
    assert one_after_the_other(first, second) == ()


def test_a_moment_in_which_both_hold_gpus_is_no_gang() -> None:
    first, second = track("a", 3, 4, 0, 0, last="finished"), track("b", 1, 0, 4, 0, last="finished")
    assert one_after_the_other(first, second) == ("both held GPUs at 0 s",)


def test_a_job_that_never_runs_is_told() -> None:
    assert one_after_the_other(track("a", 4, 0, last="finished"), track("b", 0, 0)) == (
        "b never held all its 4 GPUs",
        "b did not finish",
    )


def test_the_state_at_a_time_is_the_last_one_sampled() -> None:
    assert track("a", 0, 2, 4).at(1.9) == Sample(1.0, 2, "holds part")


def tfjob() -> Rendered:
    pod: dict[str, Any] = {"schedulerName": "volcano", "containers": [{"name": "tensorflow", "image": "a"}]}
    policy = {"schedulingPolicy": {"minAvailable": 1, "queue": "q"}, "cleanPodPolicy": "Running"}
    spec = {"runPolicy": policy, "tfReplicaSpecs": {"Worker": {"replicas": 1, "template": {"spec": pod}}}}
    metadata = {"name": "a", "namespace": "n"}
    return declare({"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": metadata, "spec": spec})


def operator(*arguments: str, image: str = "training-operator:v1") -> Rendered:
    containers = [{"image": image, "args": list(arguments)}]
    spec = {"template": {"spec": {"containers": containers}}}
    metadata = {"name": "operator", "namespace": "n"}
    return declare({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})


def arguments(rendered: Rendered) -> list[str]:
    return rendered.manifest["spec"]["template"]["spec"]["containers"][0]["args"]


def test_without_gang_a_job_loses_scheduler_and_policy_and_nothing_else() -> None:
    before, after = tfjob(), scenario._without_gang(tfjob())
    expected = before.manifest
    del expected["spec"]["runPolicy"]["schedulingPolicy"]
    del expected["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"]
    assert after.manifest == expected


def test_without_gang_the_operator_loses_one_flag() -> None:
    rendered = operator("--gang-scheduler-name=volcano", "--controller-threads=4", "--enable-scheme=tfjob")
    assert arguments(scenario._without_gang(rendered)) == ["--controller-threads=4", "--enable-scheme=tfjob"]


@pytest.mark.parametrize("before", [(), ("--controller-threads=1",), ("--controller-threads=4",)])
def test_both_halves_have_the_same_threads(before: tuple[str, ...]) -> None:
    assert arguments(scenario._with_threads(operator(*before))) == ["--controller-threads=4"]


def test_other_deployments_are_left_alone() -> None:
    other = operator("--controller-threads=1", image="acme/other")
    assert scenario._with_threads(other) is other
