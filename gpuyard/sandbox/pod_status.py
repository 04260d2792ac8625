"""What a pod's status says about the local process in its place: how kubectl, apply and Pulumi learn how it goes."""

from __future__ import annotations

import copy
import datetime
import hashlib
import time
from typing import Any, NamedTuple

from gpuyard.manifests import Manifest

READY = "Ready"
NOT_READY = "ContainersNotReady"
CRASHED = "CrashLoopBackOff"
CANNOT_START = "CreateContainerConfigError"

_OURS = ("Initialized", "Ready", "ContainersReady")
_SAID = ("status", "reason", "message", "lastProbeTime")


class Report(NamedTuple):
    """How a process goes.

    message: empty when ready; of a failure, the first line is what failed. when: the failed try was, in seconds.
    """

    reason: str
    message: str = ""
    when: float = 0.0


class Failure(NamedTuple):
    """A failed try to run a process, and when it was, in seconds."""

    title: str
    detail: str
    when: float


def is_made_from(replica_set: Manifest, deployment: Manifest) -> bool:
    """Return whether a ReplicaSet has the template that its Deployment has now."""
    made = copy.deepcopy(replica_set["spec"]["template"])
    made["metadata"]["labels"].pop("pod-template-hash", None)
    return made == deployment["spec"]["template"]


def status(pod: Manifest, report: Report) -> Manifest:
    """Return the new status of a scheduled pod; an empty one when it says this already."""
    now = _time(time.time())
    current: Manifest = pod.get("status") or {}
    before: dict[str, dict[str, Any]] = {one["type"]: one for one in current.get("conditions") or ()}
    is_ready = report.reason == READY
    ready: dict[str, Any] = {"type": "Ready", "status": "True" if is_ready else "False"}
    if not is_ready:
        ready |= {"reason": report.reason, "message": report.message}
    if report.when:
        # So that a failure from before a correction is told from one after it.
        ready["lastProbeTime"] = _time(report.when)
    said = before.get("Ready", {})
    if current.get("phase") == "Running" and all(said.get(key) == ready.get(key) for key in _SAID):
        return {}
    conditions = [one for kind, one in before.items() if kind not in _OURS]
    for condition in ({"type": "Initialized", "status": "True"}, ready, {**ready, "type": "ContainersReady"}):
        old = before.get(condition["type"], {})
        same = old.get("status") == condition["status"]
        conditions.append({**condition, "lastTransitionTime": old["lastTransitionTime"] if same else now})
    since = current.get("startTime") or now
    state: dict[str, Any] = {"running": {"startedAt": since}}
    if report.when:
        state = {"waiting": {"reason": report.reason, "message": report.message}}
    address = _address(pod["metadata"]["uid"])
    return {
        "phase": "Running",
        "startTime": since,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": conditions,
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": is_ready,
                "started": is_ready,
                "restartCount": 0,
                "state": state,
            }
            for container in pod["spec"]["containers"]
        ],
    }


def failure(pod: Manifest) -> Failure | None:
    """Return the failed try that a pod's status tells of."""
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition["type"] == "Ready" and condition.get("reason") in (CRASHED, CANNOT_START):
            title, _, detail = condition["message"].partition("\n")
            when = datetime.datetime.fromisoformat(condition["lastProbeTime"].replace("Z", "+00:00"))
            return Failure(title, detail, when.timestamp())
    return None


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _address(uid: str) -> str:
    """Return an address for a pod, of the range for benchmarks (RFC 2544): it is never dialled."""
    digest = hashlib.sha256(uid.encode()).digest()
    return f"198.18.{digest[0]}.{digest[1]}"
