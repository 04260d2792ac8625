"""The GPU Operator's objects: its chart without the ClusterPolicy, and a typed ClusterPolicy of our own.

The operator refuses an operand without an image. The chart writes them into its ClusterPolicy; ours takes them from the
lock file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from components.gpu_operator.providers import Stack, stack
from components.gpu_operator.settings import GpuOperatorSettings
from components.namespaces import addon_namespace
from components.upstream import image_tag, mirrored
from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests import Rendered, declare
from gpuyard.model.environment import GPU, Environment
from gpuyard.model.registry import Pin, Source

if TYPE_CHECKING:
    from components.gpu_operator.policy import ClusterPolicy, Driver, Image, Switch, Toleration, Toolkit

NAMESPACE = "gpu-operator"
POLICY = "cluster-policy"

_NAME = "gpu-operator"
_VALIDATOR = "nvcr.io/nvidia/gpu-operator"
_DRIVER = "nvcr.io/nvidia/driver"
_DRIVER_MANAGER = "nvcr.io/nvidia/cloud-native/k8s-driver-manager"
_TOOLKIT = "nvcr.io/nvidia/k8s/container-toolkit"
_DEVICE_PLUGIN = "nvcr.io/nvidia/k8s-device-plugin"
_DCGM_EXPORTER = "nvcr.io/nvidia/k8s/dcgm-exporter"

_PODS_PER_NODE = 16
"""Critical pods of the operator and of node feature discovery on one GPU node, with room for a rolling update."""


def namespace(environment: Environment, settings: GpuOperatorSettings) -> Iterator[Rendered]:
    """Yield the namespace; the operator's pods load kernel modules and write to the nodes."""
    nodes = sum(pool.nodes.max for pool in environment.pools.values())
    origin = environment.origin("addons", "gpu-operator")
    yield from addon_namespace(environment, NAMESPACE, "privileged", origin, critical_pods=_PODS_PER_NODE * (nodes + 1))


def chart(environment: Environment, settings: GpuOperatorSettings, source: Source) -> Iterator[Rendered]:
    """Yield the operator, node feature discovery and their CRDs."""
    objects = source.chart(
        release="gpu-operator",
        namespace=NAMESPACE,
        kubernetes=environment.cluster.kubernetes,
        values=chart_values(environment),
    )
    for manifest in objects:
        yield declare(manifest, origin=environment.origin("addons", "gpu-operator"))


def chart_values(environment: Environment) -> dict[str, Any]:
    """Return the values in which this cluster differs from the chart's own."""
    values: dict[str, Any] = {"clusterPolicy": {"deployCR": False}}
    discovery: dict[str, Any] = {}
    if environment.cluster.registry:
        values["operator"] = {"repository": _repository(environment, _VALIDATOR)}
        values["validator"] = {"repository": _repository(environment, _VALIDATOR)}
        values["driver"] = {"manager": {"repository": _repository(environment, _DRIVER_MANAGER)}}
        discovery["image"] = {"repository": mirrored(environment, "registry.k8s.io/nfd/node-feature-discovery")}
    own = tolerations(environment)
    if len(own) > 1:
        control_plane = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
        discovery["worker"] = {"tolerations": [control_plane, *own]}
    return values | ({"node-feature-discovery": discovery} if discovery else {})


def cluster_policy(environment: Environment, settings: GpuOperatorSettings, pin: Pin) -> Iterator[Rendered]:
    """Yield the ClusterPolicy of this provider. Raises InputError when the locked images are another release's."""
    own = image_tag(_NAME, pin, _VALIDATOR)
    if own != pin.version:
        raise InputError(
            Problem(
                "images of another release",
                Origin("gpuyard.lock.yaml"),
                f"{_NAME}.images",
                f"{_VALIDATOR} is {own}, and {_NAME} is {pin.version}",
                f"take all of them from deployments/gpu-operator/values.yaml at the tag {pin.version}",
            )
        )
    policy = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": POLICY},
        "spec": _policy(environment, settings, stack(environment, settings), pin),
    }
    yield declare(policy, origin=environment.origin("addons", "gpu-operator"))


def tolerations(environment: Environment) -> list[Toleration]:
    """Return what it takes to run on every GPU node: the taint of all of them, and those of single pools."""
    found: list[Toleration] = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    for _, pool in sorted(environment.pools.items()):
        for taint in pool.taints if pool.machine.gpus else ():
            toleration: Toleration = {
                "key": taint.key,
                "operator": "Equal",
                "value": taint.value,
                "effect": taint.effect,
            }
            if toleration not in found:
                found.append(toleration)
    return found


def _repository(environment: Environment, image: str) -> str:
    """Return where an image is pulled from, without its own name."""
    return mirrored(environment, image.rpartition("/")[0])


def _policy(environment: Environment, settings: GpuOperatorSettings, parts: Stack, pin: Pin) -> ClusterPolicy:
    def image(name: str) -> Image:
        """Return an image in the three parts in which the ClusterPolicy takes it."""
        return {
            "repository": _repository(environment, name),
            "image": name.rpartition("/")[2],
            "version": image_tag(_NAME, pin, name),
        }

    # Prometheus has a ServiceMonitor of the exporter in the render, where it can be reviewed; a second one would count
    # everything twice.
    monitor: Switch = {"enabled": False}
    return {
        "operator": {"runtimeClass": "nvidia"},
        "hostPaths": {"rootFS": "/", "driverInstallDir": parts.driver_root},
        "daemonsets": {
            "tolerations": tolerations(environment),
            "priorityClassName": "system-node-critical",
            "updateStrategy": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "1"},
        },
        "validator": image(_VALIDATOR),
        "driver": _driver(environment, settings, image(_DRIVER), image(_DRIVER_MANAGER))
        if parts.driver
        else {"enabled": False},
        "toolkit": _toolkit(parts, image(_TOOLKIT)) if parts.toolkit else {"enabled": False},
        "devicePlugin": {**image(_DEVICE_PLUGIN), "enabled": True},
        # Feature discovery is a part of the device plugin's image.
        "gfd": {**image(_DEVICE_PLUGIN), "enabled": True},
        # The exporter brings an engine of its own.
        "dcgm": {"enabled": False},
        "dcgmExporter": {**image(_DCGM_EXPORTER), "enabled": True, "serviceMonitor": monitor}
        if parts.exporter
        else {"enabled": False, "serviceMonitor": monitor},
        # Training takes whole GPUs: instances of one cannot talk to others over NVLink.
        "mig": {"strategy": "single"},
        "migManager": {"enabled": False},
        "nodeStatusExporter": {"enabled": False},
        "cdi": {"enabled": True},
        # The namespace is ours, its Pod Security labels too.
        "psa": {"enabled": False},
        "sandboxWorkloads": {"enabled": False},
    }


def _driver(environment: Environment, settings: GpuOperatorSettings, image: Image, manager: Image) -> Driver:
    automatic = not environment.cluster.protect if settings.auto_upgrade is None else settings.auto_upgrade
    return {
        **image,
        "version": settings.driver_version or image["version"],
        "enabled": True,
        "kernelModuleType": "auto",
        "manager": manager,
        # The operator takes each of these as given and has no defaults of its own: they are the chart's.
        "upgradePolicy": {
            "autoUpgrade": automatic,
            "maxParallelUpgrades": 1,
            "maxUnavailable": "25%",
            "waitForCompletion": {"timeoutSeconds": 0},
            "podDeletion": {"force": False, "timeoutSeconds": 300, "deleteEmptyDir": False},
            "drain": {"force": False, "timeoutSeconds": 300, "deleteEmptyDir": False, "enable": False},
        },
    }


def _toolkit(parts: Stack, image: Image) -> Toolkit:
    toolkit: Toolkit = {**image, "enabled": True, "installDir": parts.toolkit_root}
    if parts.toolkit_env:
        toolkit["env"] = [{"name": name, "value": value} for name, value in parts.toolkit_env]
    return toolkit
