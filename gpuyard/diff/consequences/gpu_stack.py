"""The GPU Operator's ClusterPolicy: a new driver evicts GPU pods, a new toolkit restarts the container runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuyard.diff.facts import Fact, Told, View, jobs_there, nodes_text
from gpuyard.manifests.data import at, map_at
from gpuyard.manifests.diff import Change

_DRIVER_IMAGES = ("/driver:", "/driver@", "/k8s-driver-manager:", "/k8s-driver-manager@")


def is_driver(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod loads the GPU driver of its node; its driver manager evicts GPU pods first."""
    containers = [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]
    return any(mark in str(one.get("image", "")) for one in containers for mark in _DRIVER_IMAGES)


def _driver(change: Change, view: View) -> Iterator[Told]:
    if change.verb != "changed":
        return
    driver = map_at(change.rendered.manifest, "spec", "driver")
    fields = [one for one in change.touched("spec", "driver") if one.path[:3] != ("spec", "driver", "upgradePolicy")]
    pools = [pool for pool in view.after.pools if pool.gpus]
    if not fields or not pools:
        return
    nodes, jobs = nodes_text(pools), jobs_there(view.before.jobs_on(pools))
    if not driver.get("enabled", True):
        yield Told("high", f"removes the driver from {nodes}: GPU pods fail there; {jobs}")
    elif at(driver, "upgradePolicy", "autoUpgrade"):
        parallel = at(driver, "upgradePolicy", "maxParallelUpgrades")
        pace = f", {parallel} at a time" if parallel else ""
        yield Told("high", f"rolls the driver on {nodes}{pace}; running GPU pods are evicted, {jobs}")
    else:
        yield Told(
            "medium", f"rolls nothing by itself; on {nodes} each driver pod stays until somebody deletes it, {jobs}"
        )


def _toolkit(change: Change, view: View) -> Iterator[Told]:
    pools = [pool for pool in view.after.pools if pool.gpus]
    if change.verb == "changed" and change.touched("spec", "toolkit") and pools:
        nodes, jobs = nodes_text(pools), jobs_there(view.before.jobs_on(pools))
        yield Told("high", f"restarts the container runtime on {nodes}; running GPU pods may fail, {jobs}")


def _device_plugin(change: Change, view: View) -> Iterator[Told]:
    pools = [pool for pool in view.after.pools if pool.gpus]
    if change.verb == "changed" and change.touched("spec", "devicePlugin") and pools:
        yield Told("medium", f"rolls the device plugin on {nodes_text(pools)}; no GPU pod starts on a node meanwhile")


_POLICY = frozenset({"ClusterPolicy"})

FACTS = (
    Fact(
        "gpu-driver",
        _POLICY,
        "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-driver-upgrades.html",
        _driver,
    ),
    Fact(
        "container-toolkit",
        _POLICY,
        "https://github.com/NVIDIA/gpu-operator/issues/991, https://github.com/NVIDIA/gpu-operator/issues/596",
        _toolkit,
    ),
    Fact(
        "device-plugin",
        _POLICY,
        "https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/",
        _device_plugin,
    ),
)
