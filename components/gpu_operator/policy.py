"""The parts of a ClusterPolicy (nvidia.com/v1) that are used here, typed: no field can be written that does not exist.

They are plain maps at run time; the type checker refuses a field that is unknown or missing, or is of another type.

Source: config/crd/bases/nvidia.com_clusterpolicies.yaml of gpu-operator v26.7.0.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class EnvVar(TypedDict):
    """A variable of a container."""

    name: str
    value: str


class Toleration(TypedDict):
    """A taint that the operator's DaemonSets put up with."""

    key: str
    operator: Literal["Exists", "Equal"]
    value: NotRequired[str]
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Switch(TypedDict):
    """A part of the stack that is only switched on or off."""

    enabled: bool


class Image(TypedDict):
    """An image."""

    repository: str
    image: str
    version: str


class Operand(TypedDict):
    """A DaemonSet of the operator; it wants all three parts of an image or none."""

    repository: NotRequired[str]
    image: NotRequired[str]
    version: NotRequired[str]
    enabled: bool


class Toolkit(Operand):
    """The container toolkit."""

    installDir: NotRequired[str]
    env: NotRequired[list[EnvVar]]


class Eviction(TypedDict):
    """How GPU pods are moved off a node before its driver is replaced; times in seconds."""

    force: bool
    timeoutSeconds: int
    deleteEmptyDir: bool


class Drain(Eviction):
    """How all pods are moved off it."""

    enable: bool


class Completion(TypedDict):
    """How long running jobs are waited for, in seconds; 0 is without end."""

    timeoutSeconds: int


class UpgradePolicy(TypedDict):
    """How a new driver version reaches the nodes."""

    autoUpgrade: bool
    maxParallelUpgrades: int
    maxUnavailable: str
    waitForCompletion: Completion
    podDeletion: Eviction
    drain: Drain


class Driver(Operand):
    """The GPU driver."""

    kernelModuleType: NotRequired[Literal["auto", "open", "proprietary"]]
    manager: NotRequired[Image]
    upgradePolicy: NotRequired[UpgradePolicy]


class Exporter(Operand):
    """The exporter of GPU metrics; the operator can bring a ServiceMonitor of it."""

    serviceMonitor: Switch


class RollingUpdate(TypedDict):
    """How many nodes lose a DaemonSet's pod at a time; a number or a share as text."""

    maxUnavailable: str


class DaemonSets(TypedDict):
    """What all DaemonSets of the operator have in common."""

    tolerations: list[Toleration]
    priorityClassName: str
    updateStrategy: Literal["RollingUpdate", "OnDelete"]
    rollingUpdate: RollingUpdate


class HostPaths(TypedDict):
    """Where things are on a node."""

    rootFS: str
    driverInstallDir: str


class Operator(TypedDict):
    """The RuntimeClass that GPU pods of the operator run with."""

    runtimeClass: str


class Mig(TypedDict):
    """How a GPU that is cut into instances is offered to pods."""

    strategy: Literal["none", "single", "mixed"]


class ClusterPolicy(TypedDict):
    """The spec of a ClusterPolicy; what is left out is left to the CRD's own defaults."""

    operator: Operator
    hostPaths: HostPaths
    daemonsets: DaemonSets
    validator: Image
    driver: Driver
    toolkit: Toolkit
    devicePlugin: Operand
    gfd: Operand
    dcgm: Switch
    dcgmExporter: Exporter
    mig: Mig
    migManager: Switch
    nodeStatusExporter: Switch
    cdi: Switch
    psa: Switch
    sandboxWorkloads: Switch
