"""The parts of a ClusterPolicy (nvidia.com/v1) that are used here, typed: no field can be written that does not exist.

Source: config/crd/bases/nvidia.com_clusterpolicies.yaml of gpu-operator v26.7.0.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from gpuyard.manifests import Manifest


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel, validate_by_name=True)


class EnvVar(_Part):
    """A variable of a container."""

    name: str
    value: str


class Toleration(_Part):
    """A taint that the operator's DaemonSets put up with."""

    key: str
    operator: Literal["Exists", "Equal"]
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Switch(_Part):
    """A part of the stack that is only switched on or off."""

    enabled: bool


class Image(_Part):
    """An image; the operator wants all three parts or none."""

    repository: str | None = None
    image: str | None = None
    version: str | None = None


class Operand(Image):
    """A DaemonSet of the operator."""

    enabled: bool


class Toolkit(Operand):
    """The container toolkit."""

    install_dir: str | None = None
    env: list[EnvVar] | None = None


class Eviction(_Part):
    """How GPU pods are moved off a node before its driver is replaced; times in seconds."""

    force: bool
    timeout_seconds: int
    delete_empty_dir: bool


class Drain(Eviction):
    """How all pods are moved off it."""

    enable: bool


class Completion(_Part):
    """How long running jobs are waited for, in seconds; 0 is without end."""

    timeout_seconds: int


class UpgradePolicy(_Part):
    """How a new driver version reaches the nodes."""

    auto_upgrade: bool
    max_parallel_upgrades: int
    max_unavailable: str
    wait_for_completion: Completion
    pod_deletion: Eviction
    drain: Drain


class Driver(Operand):
    """The GPU driver."""

    kernel_module_type: Literal["auto", "open", "proprietary"] | None = None
    manager: Image | None = None
    upgrade_policy: UpgradePolicy | None = None


class ServiceMonitor(_Part):
    """The operator's own ServiceMonitor of the exporter."""

    enabled: bool


class Exporter(Operand):
    """The exporter of GPU metrics."""

    service_monitor: ServiceMonitor


class RollingUpdate(_Part):
    """How many nodes lose a DaemonSet's pod at a time; a number or a share as text."""

    max_unavailable: str


class DaemonSets(_Part):
    """What all DaemonSets of the operator have in common."""

    tolerations: list[Toleration]
    priority_class_name: str
    update_strategy: Literal["RollingUpdate", "OnDelete"]
    rolling_update: RollingUpdate


class HostPaths(_Part):
    """Where things are on a node."""

    root_fs: str = Field(serialization_alias="rootFS")
    driver_install_dir: str


class Operator(_Part):
    """The RuntimeClass that GPU pods of the operator run with."""

    runtime_class: str


class Mig(_Part):
    """How a GPU that is cut into instances is offered to pods."""

    strategy: Literal["none", "single", "mixed"]


class ClusterPolicy(_Part):
    """The spec of a ClusterPolicy."""

    operator: Operator
    host_paths: HostPaths
    daemonsets: DaemonSets
    validator: Image
    driver: Driver
    toolkit: Toolkit
    device_plugin: Operand
    gfd: Operand
    dcgm: Switch
    dcgm_exporter: Exporter
    mig: Mig
    mig_manager: Switch
    node_status_exporter: Switch
    cdi: Switch
    psa: Switch
    sandbox_workloads: Switch

    def manifest(self, name: str) -> Manifest:
        """Return the object; what is not set is left to the CRD's own defaults."""
        spec: dict[str, Any] = self.model_dump(by_alias=True, exclude_none=True)
        return {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": name}, "spec": spec}
