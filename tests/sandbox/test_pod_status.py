"""What pods say about the process in their place, and how a failure is read off them again."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gpuyard.sandbox.pod_status import (
    CANNOT_START,
    CRASHED,
    NOT_READY,
    READY,
    Failure,
    Report,
    failure,
    is_made_from,
    status,
)

SCHEDULED = {"type": "PodScheduled", "status": "True"}
POD: dict[str, Any] = {
    "metadata": {"name": "operator-1", "uid": "17"},
    "spec": {"containers": [{"name": "main", "image": "training-operator"}]},
    "status": {"phase": "Pending", "conditions": [SCHEDULED]},
}
CRASH = Report(CRASHED, "controller operator stopped\n/logs/operator.log\nno such flag", 1_700_000_000.6)


def told(pod: dict[str, Any], report: Report) -> dict[str, Any]:
    return {**pod, "status": status(pod, report)}


def ready(pod: dict[str, Any]) -> dict[str, Any]:
    (found,) = [one for one in pod["status"]["conditions"] if one["type"] == "Ready"]
    return found


def test_a_pod_of_a_ready_process_is_ready() -> None:
    pod = told(POD, Report(READY))
    assert pod["status"]["phase"] == "Running"
    assert ready(pod)["status"] == "True"
    assert pod["status"]["containerStatuses"][0]["ready"]
    assert SCHEDULED in pod["status"]["conditions"], "what others wrote stays"


def test_a_pod_whose_process_waits_says_for_what_and_has_an_address() -> None:
    pod = told(POD, Report(NOT_READY, "it waits for its health check"))
    assert (ready(pod)["status"], ready(pod)["message"]) == ("False", "it waits for its health check")
    assert not pod["status"]["containerStatuses"][0]["ready"]
    assert pod["status"]["podIP"].startswith("198.18.")


@pytest.mark.parametrize("report", [Report(READY), Report(NOT_READY, "why"), CRASH])
def test_what_is_said_already_is_not_said_again(report: Report) -> None:
    assert status(told(POD, report), report) == {}


def test_the_time_of_a_change_is_that_of_the_change() -> None:
    pod = told(POD, Report(READY))
    for condition in pod["status"]["conditions"]:
        condition["lastTransitionTime"] = "2020-01-01T00:00:00Z"
    assert ready(told(pod, CRASH))["lastTransitionTime"] > "2026"
    waits = told(pod, CRASH)
    ready(waits)["lastTransitionTime"] = "2021-01-01T00:00:00Z"
    assert ready(told(waits, Report(NOT_READY, "other")))["lastTransitionTime"] == "2021-01-01T00:00:00Z"


def test_a_failed_try_is_read_as_it_was_told() -> None:
    pod = told(POD, CRASH)
    assert failure(pod) == Failure("controller operator stopped", "/logs/operator.log\nno such flag", 1_700_000_000)
    assert pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert failure(POD) is None
    assert failure(told(POD, Report(NOT_READY, "why"))) is None


def test_the_next_failed_try_is_another_one() -> None:
    pod = told(POD, Report(CANNOT_START, "why", 100))
    again = told(pod, Report(CANNOT_START, "why", 102))
    assert [found.when for found in (failure(pod), failure(again)) if found] == [100, 102]


def test_a_replica_set_is_of_the_template_that_its_deployment_has_now() -> None:
    deployment: Any = {"spec": {"template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": []}}}}
    replica_set = copy.deepcopy(deployment)
    replica_set["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = "5d9cd7f797"
    assert is_made_from(replica_set, deployment)
    deployment["spec"]["template"]["spec"]["containers"].append({"name": "main"})
    assert not is_made_from(replica_set, deployment)
