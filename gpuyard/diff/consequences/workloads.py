"""Which pods restart: those of a changed template, on how many nodes; and which only read a changed file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuyard.diff.consequences.gpu_stack import is_driver
from gpuyard.diff.facts import Fact, Told, View, count, jobs_there, nodes_text
from gpuyard.errors import listed
from gpuyard.manifests import Manifest
from gpuyard.manifests.data import at
from gpuyard.manifests.diff import Change
from gpuyard.manifests.pods import pod_specs

_TEMPLATE = ("spec", "template")
_RELOADED = {
    # Key of a ConfigMap -> who reads it again when it changes, and what follows.
    "volcano-scheduler.conf": "Volcano's scheduler reloads it without a restart: it holds for every queue from then on",
}
_ARGUMENTS = ("image", "version", "resources", "retention", "retentionSize", "affinity", "securityContext")
"""Fields of a Prometheus that end up in its pods; the others are written to a file that it reloads."""


def _deployment(change: Change, view: View) -> Iterator[Told]:
    if change.before is None:
        return
    before, after = (_replicas(one.manifest) if one else 0 for one in (change.before, change.after))
    if change.after is None:
        yield Told("medium", f"its {count(before, 'pod')} stop{'s' if before == 1 else ''}")
    elif change.verb == "replaced":
        yield Told("medium", f"no pod of it runs until the new ones start ({before} -> {after})")
    elif change.touched(*_TEMPLATE) and after:
        if at(change.after.manifest, "spec", "strategy", "type") == "Recreate":
            yield Told("medium", f"all pods of it stop before the new ones start ({before} -> {after})")
        elif change.identity.kind == "StatefulSet":
            yield Told("medium", f"rolls {count(after, 'pod')}, one after the other")
        else:
            yield Told("medium", f"rolls {count(after, 'pod')}")
    if change.after and before != after:
        yield Told("low", f"{before} -> {count(after, 'pod')}")


def _replicas(manifest: Manifest) -> int:
    replicas = at(manifest, "spec", "replicas")
    return 1 if replicas is None else int(replicas)


def _daemon_set(change: Change, view: View) -> Iterator[Told]:
    if change.verb == "added" or (not change.touched(*_TEMPLATE) and change.verb == "changed"):
        return
    manifest = change.rendered.manifest
    pod: Mapping[str, Any] = at(manifest, *_TEMPLATE, "spec") or {}
    pools = [pool for pool in view.after.pools if pool.accepts(pod)]
    nodes = nodes_text(pools)
    if not pools:
        yield Told("low", "no pool of this environment has nodes for it")
    elif change.verb == "removed":
        yield Told("medium", f"its pods stop on {nodes}")
    elif at(manifest, "spec", "updateStrategy", "type") == "OnDelete" and change.verb == "changed":
        yield Told("low", f"restarts nothing: on {nodes} each pod stays until somebody deletes it (OnDelete)")
    elif is_driver(pod):
        jobs = jobs_there(view.before.jobs_on(pools))
        yield Told("high", f"rolls {nodes}; running GPU pods are evicted, {jobs}")
    else:
        yield Told("medium", f"rolls its pods on {nodes}")


def _job(change: Change, view: View) -> Iterator[Told]:
    if change.verb == "replaced":
        yield Told("low", "runs once more")


def _config_map(change: Change, view: View) -> Iterator[Told]:
    keys = {str(one.path[1]) for one in (*change.touched("data"), *change.touched("binaryData")) if len(one.path) > 1}
    if change.verb not in ("changed", "replaced") or not keys:
        return
    known = sorted(keys & _RELOADED.keys())
    if known:
        yield from (Told("medium", _RELOADED[key]) for key in known)
        return
    mounted, read = _users(change.identity.namespace, change.identity.name, view)
    if mounted:
        yield Told("low", f"its files change in the pods of {listed(mounted)} within minutes, without a restart")
    if read:
        yield Told("low", f"{listed(read)} reads it at its start only, so nothing changes until a restart")


def _users(namespace: str, name: str, view: View) -> tuple[list[str], list[str]]:
    """Return the workloads that mount a ConfigMap as files that follow it, and those that read it once."""
    mounted: list[str] = []
    read: list[str] = []
    for kind in ("Deployment", "StatefulSet", "DaemonSet"):
        for manifest in view.after.by_kind.get(kind, ()):
            if manifest["metadata"].get("namespace", "") == namespace:
                label = f"{kind} {manifest['metadata']['name']}"
                for _, pod in pod_specs(manifest):
                    mounted += [label] if _mounts(pod, name) else []
                    read += [label] if _reads(pod, name) else []
    return mounted, read


def _mounts(pod: Any, name: str) -> bool:
    volumes = {one["name"] for one in pod.get("volumes") or () if at(one, "configMap", "name") == name}
    return any(mount["name"] in volumes and "subPath" not in mount for mount in _all(pod, "volumeMounts"))


def _reads(pod: Any, name: str) -> bool:
    volumes = {one["name"] for one in pod.get("volumes") or () if at(one, "configMap", "name") == name}
    return (
        any(mount["name"] in volumes and "subPath" in mount for mount in _all(pod, "volumeMounts"))
        or any(at(one, "valueFrom", "configMapKeyRef", "name") == name for one in _all(pod, "env"))
        or any(at(one, "configMapRef", "name") == name for one in _all(pod, "envFrom"))
    )


def _all(pod: Any, field: str) -> Iterator[Any]:
    for group in ("initContainers", "containers"):
        for container in pod.get(group) or ():
            yield from container.get(field) or ()


def _prometheus(change: Change, view: View) -> Iterator[Told]:
    if change.verb in ("changed", "replaced") and any(change.touched("spec", name) for name in _ARGUMENTS):
        replicas = _replicas(change.rendered.manifest)
        gap = "; nothing is measured or alerted until it is back" if replicas == 1 else ""
        yield Told("medium", f"its operator restarts {count(replicas, 'pod')} of Prometheus{gap}")


_WORKLOADS = "https://kubernetes.io/docs/concepts/workloads/controllers/"

FACTS = (
    Fact("deployment", frozenset({"Deployment"}), _WORKLOADS + "deployment/#updating-a-deployment", _deployment),
    Fact("stateful-set", frozenset({"StatefulSet"}), _WORKLOADS + "statefulset/#rolling-updates", _deployment),
    Fact(
        "daemon-set",
        frozenset({"DaemonSet"}),
        "https://kubernetes.io/docs/tasks/manage-daemon/update-daemon-set/, https://github.com/NVIDIA/k8s-driver-manager",
        _daemon_set,
    ),
    Fact("one-shot-job", frozenset({"Job"}), _WORKLOADS + "job/", _job),
    Fact(
        "config-map",
        frozenset({"ConfigMap"}),
        "https://kubernetes.io/docs/concepts/configuration/configmap/#mounted-configmaps-are-updated-automatically, "
        "volcano-sh/volcano pkg/scheduler/scheduler.go watchSchedulerConf",
        _config_map,
    ),
    Fact(
        "prometheus",
        frozenset({"Prometheus"}),
        "prometheus-operator/prometheus-operator pkg/prometheus/server/statefulset.go",
        _prometheus,
    ),
)
