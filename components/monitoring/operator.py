"""The Prometheus operator: upstream's bundle, moved to a namespace of its own."""

from __future__ import annotations

from collections.abc import Iterator

from components.monitoring.settings import MonitoringSettings
from components.namespaces import addon_namespace
from components.upstream import Path, Upstream, mirrored
from gpuyard.manifests import Manifest, Rendered, declare
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Source

NAMESPACE = "monitoring"

_NAME = "prometheus-operator"
_IMAGE = "quay.io/prometheus-operator/prometheus-operator"
_RELOADER = "quay.io/prometheus-operator/prometheus-config-reloader"
_CONTAINER: Path = ("spec", "template", "spec", "containers", 0)


def namespace(environment: Environment, settings: MonitoringSettings) -> Iterator[Rendered]:
    """Yield the namespace of all monitoring."""
    yield from addon_namespace(environment, NAMESPACE, "restricted", environment.origin("addons", "monitoring"))


def prometheus_operator(environment: Environment, settings: MonitoringSettings, source: Source) -> Iterator[Rendered]:
    """Yield the operator and its CRDs."""
    origin = environment.origin("addons", "monitoring")
    file = Upstream(_NAME, source, "bundle.yaml")
    for manifest in file.take_all("CustomResourceDefinition"):
        yield declare(manifest, origin=origin)
    binding = file.take("ClusterRoleBinding", _NAME)
    file.expect(binding, ("subjects", 0, "name"), _NAME)
    file.replace(binding, ("subjects", 0, "namespace"), NAMESPACE)
    deployment = _deployment(environment, file)
    account, service = file.take("ServiceAccount", _NAME), file.take("Service", _NAME)
    for manifest in (deployment, account, service):
        file.replace(manifest, ("metadata", "namespace"), NAMESPACE)
    for manifest in (file.take("ClusterRole", _NAME), binding, account, service, deployment):
        yield declare(manifest, origin=origin)
    file.finish()


def _deployment(environment: Environment, file: Upstream) -> Manifest:
    manifest = file.take("Deployment", _NAME)
    file.set_image(manifest, _CONTAINER, _IMAGE, mirrored(environment, file.image(_IMAGE)))
    reloader = mirrored(environment, file.image(_RELOADER))
    arguments: Path = (*_CONTAINER, "args")
    file.set_flag(manifest, arguments, "--prometheus-config-reloader", reloader)
    # With this flag the operator keeps a Service and Endpoints in kube-system that nobody would delete.
    file.expect(manifest, (*arguments, 0), "--kubelet-service=kube-system/kubelet")
    file.remove(manifest, (*arguments, 0))
    return manifest
