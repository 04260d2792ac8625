"""What a training program and a volume provisioner do in a real cluster.

Rendezvous: the pods of a training job wait for each other and then run together for a while. So a pod is told to end
only once all pods of its job run at the same time. A job that never has them all never ends, whoever scheduled it.
Volumes: every claim gets a volume, since no provisioner runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpuyard.manifests import Manifest
from gpuyard.sandbox.api import Api
from gpuyard.sandbox.stages import ENDS_AFTER, RUN_FOR

JOB_LABEL = "training.kubeflow.org/job-name"
ROLE_LABEL = "training.kubeflow.org/replica-type"
_SERVES = ("ps",)
"""Roles that serve the others and never end by themselves; the operator removes them when the job is done."""
_VOLUME_LABEL = "sandbox.gpuyard.dev/volume"


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


def meet(api: Api, default: str) -> None:
    """Tell the pods of every job that runs whole to end; default: how long they run."""
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
            api.merge(pod, patch)


def bind(api: Api) -> None:
    """Make a volume for every claim that waits for one, and take away those whose claims are gone."""
    made = {one["metadata"]["name"]: one for one in api.list("v1", "PersistentVolume", selector=_VOLUME_LABEL)}
    for claim in api.list("v1", "PersistentVolumeClaim"):
        wanted = volume(claim)
        if claim["status"].get("phase") == "Pending" and wanted["metadata"]["name"] not in made:
            api.apply(wanted)
    for name, one in made.items():
        if one["status"].get("phase") == "Released":
            api.delete("v1", "PersistentVolume", name)
