"""Which parts of the GPU stack the operator brings on which kind of nodes.

A driver, a container toolkit or a device plugin that is managed twice breaks the node, one that is managed by nobody
leaves it without GPUs; so only combinations that are known to work are accepted.

Sources: NVIDIA's pages on the operator for each cloud, and the providers' own pages.
"""

from __future__ import annotations

from typing import NamedTuple

from components.gpu_operator.settings import GpuOperatorSettings
from gpuyard.errors import InputError, Problem
from gpuyard.model.environment import Environment, Provider


class Stack(NamedTuple):
    """What the operator runs on GPU nodes.

    driver, toolkit: whether it installs them.
    exporter:        whether GPUs answer for metrics; imitated ones do not.
    driver_root:     where the driver's files are on a node.
    toolkit_root:    where the toolkit is installed.
    toolkit_env:     environment of the toolkit.
    """

    driver: bool
    toolkit: bool
    exporter: bool = True
    driver_root: str = "/run/nvidia/driver"
    toolkit_root: str = "/usr/local/nvidia"
    toolkit_env: tuple[tuple[str, str], ...] = ()


_INSTALLED = Stack(driver=True, toolkit=True)
_BAKED_IN = Stack(driver=False, toolkit=False)
_DRIVER_BAKED_IN = Stack(driver=False, toolkit=True)
_GKE = "/home/kubernetes/bin/nvidia"

STACKS: dict[tuple[Provider, str], Stack] = {
    # Amazon's accelerated images bring driver and toolkit; EFA wants that driver. Ubuntu images bring neither.
    ("eks", "preinstalled"): _BAKED_IN,
    ("eks", "operator"): _INSTALLED,
    # Google's driver installer puts everything under one writable folder of its read-only system. Node pools need the
    # label gke-no-default-nvidia-gpu-device-plugin=true, or Google's device plugin runs beside the operator's.
    ("gke", "preinstalled"): Stack(
        driver=False,
        toolkit=True,
        driver_root=_GKE,
        toolkit_root=_GKE,
        toolkit_env=(("RUNTIME_CONFIG_SOURCE", "file"),),
    ),
    # Ubuntu nodes, pools made with gpu-driver-version=disabled.
    ("gke", "operator"): _INSTALLED,
    # Pools made with --gpu-driver none; beside Azure's own driver the operator is not supported.
    ("aks", "operator"): _INSTALLED,
    ("oci", "preinstalled"): _BAKED_IN,
    ("on-prem", "preinstalled"): _DRIVER_BAKED_IN,
    ("on-prem", "operator"): _INSTALLED,
    ("kubeadm", "preinstalled"): _DRIVER_BAKED_IN,
    ("kubeadm", "operator"): _INSTALLED,
    # GPUs are imitated: nothing to install, nothing to measure.
    ("kind", "preinstalled"): Stack(driver=False, toolkit=False, exporter=False),
}


def stack(environment: Environment, settings: GpuOperatorSettings) -> Stack:
    """Return what the operator runs. Raises InputError for a combination that is not known to work."""
    provider = environment.cluster.provider
    found = STACKS.get((provider, settings.driver))
    if found is None:
        accepted = [driver for known, driver in STACKS if known == provider]
        raise InputError(
            Problem(
                "driver does not fit the provider",
                environment.origin("addons", "gpu-operator", "driver"),
                "addons.gpu-operator.driver",
                f"{settings.driver}; on {provider} nodes the driver is {' or '.join(accepted)}",
                f"driver: {accepted[0]}",
            )
        )
    return found
