"""What a training program and a volume provisioner do in a real cluster; runs beside the sandbox's other processes.

Rendezvous: the pods of a training job wait for each other and then run together for a while. So a pod is told to end
only once all pods of its job run at the same time. A job that never has them all never ends, whoever scheduled it.
Volumes: every claim gets a volume, since no provisioner runs.

    python -m gpuyard.sandbox.pods --kubeconfig FILE --run-for SECONDS
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gpuyard.manifests import Manifest
from gpuyard.sandbox.api import Api, ApiError
from gpuyard.sandbox.stages import ENDS_AFTER, RUN_FOR

JOB_LABEL = "training.kubeflow.org/job-name"
ROLE_LABEL = "training.kubeflow.org/replica-type"
_SERVES = ("ps",)
"""Roles that serve the others and never end by themselves; the operator removes them when the job is done."""
_VOLUME_LABEL = "sandbox.gpuyard.dev/volume"
_PERIOD = 0.4


def expected_pods(job: Manifest) -> int:
    """Return how many pods a job of the training operator has: the sum over its `...ReplicaSpecs`."""
    replica_specs: list[dict[str, Any]] = [value for key, value in job["spec"].items() if key.endswith("ReplicaSpecs")]
    return sum(role.get("replicas", 1) for specs in replica_specs for role in specs.values())


def to_end(pods: Iterable[Manifest], expected: int) -> list[Manifest]:
    """Return the pods of one job that may be told to end: none before all of them run at the same time."""
    present = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
    running = [pod for pod in present if pod["status"].get("phase") == "Running"]
    # A pod that was told and has ended took part in a rendezvous; its fellows that were missed are told now.
    ended = [pod for pod in present if pod["status"].get("phase") == "Succeeded" and _told(pod)]
    if not running or len(running) + len(ended) < expected:
        return []
    return [pod for pod in running if not _told(pod) and pod["metadata"]["labels"].get(ROLE_LABEL) not in _SERVES]


def run_length(job: Manifest, pod: Manifest, default: str) -> str:
    """Return how long the pod runs after the rendezvous: the pod template's word, then the job's, then the default."""
    for words in (_annotations(pod), _annotations(job)):
        if RUN_FOR in words:
            return words[RUN_FOR]
    return default


def volume(claim: Manifest) -> Manifest:
    """Return a volume made for one claim. Its path is never touched: the pods that mount it are simulated."""
    metadata: dict[str, Any] = claim["metadata"]
    spec: dict[str, Any] = claim["spec"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"sandbox-{metadata['uid']}", "labels": {_VOLUME_LABEL: "true"}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
            },
            "hostPath": {"path": f"/var/lib/gpuyard-sandbox/{metadata['uid']}"},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": spec.get("storageClassName", ""),
            "volumeMode": spec.get("volumeMode", "Filesystem"),
        },
    }


def _annotations(manifest: Manifest) -> Mapping[str, str]:
    return manifest["metadata"].get("annotations") or {}


def _told(pod: Manifest) -> bool:
    return ENDS_AFTER in _annotations(pod)


def _meet(api: Api, default: str) -> None:
    jobs: dict[tuple[str, str, str, str], list[Manifest]] = {}
    for pod in api.list("v1", "Pod", selector=JOB_LABEL):
        for owner in pod["metadata"].get("ownerReferences", ()):
            key = (owner["apiVersion"], owner["kind"], pod["metadata"]["namespace"], owner["name"])
            jobs.setdefault(key, []).append(pod)
    for (api_version, kind, namespace, name), pods in jobs.items():
        # Read only when something may be due: most jobs wait or run most of the time.
        if not to_end(pods, 1):
            continue
        job = api.get(api_version, kind, name, namespace)
        for pod in to_end(pods, expected_pods(job)) if job else ():
            patch = {"metadata": {"annotations": {ENDS_AFTER: run_length(job or {}, pod, default)}}}
            api.merge({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]}, patch)


def _bind(api: Api) -> None:
    made = {one["metadata"]["name"]: one for one in api.list("v1", "PersistentVolume", selector=_VOLUME_LABEL)}
    for claim in api.list("v1", "PersistentVolumeClaim"):
        wanted = volume(claim)
        if claim["status"].get("phase") == "Pending" and wanted["metadata"]["name"] not in made:
            api.apply(wanted)
    for name, one in made.items():
        if one["status"].get("phase") == "Released":
            api.delete("v1", "PersistentVolume", name)


def main() -> None:
    """Work until stopped. What the API server answers while it changes under us is printed and tried again."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--run-for", required=True)
    options = parser.parse_args()
    api = Api(options.kubeconfig)
    while True:
        for step in (lambda: _meet(api, options.run_for), lambda: _bind(api)):
            try:
                step()
            except ApiError as error:
                print(error, file=sys.stderr, flush=True)
        time.sleep(_PERIOD)


if __name__ == "__main__":
    main()
