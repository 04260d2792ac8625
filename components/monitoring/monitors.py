"""ServiceMonitors: one for each Service that has metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from components.monitoring.operator import NAMESPACE
from components.monitoring.settings import MonitoringSettings
from components.monitoring.targets import Target, targets
from gpuyard.manifests import Manifest, Rendered, declare
from gpuyard.model.environment import Environment


def service_monitors(environment: Environment, settings: MonitoringSettings) -> Iterator[Rendered]:
    """Yield a ServiceMonitor for every target of the environment."""
    for target in targets(environment):
        yield declare(service_monitor(target), origin=environment.origin("addons", "monitoring"))


def service_monitor(target: Target) -> Manifest:
    """Return the ServiceMonitor of a target.

    Samples get the label `node`: exporters name their own pod, and a person looks for the machine. A label of the
    target that clashes with the exporter's own wins, so the pod that holds a GPU is `exported_pod`.
    """
    node = {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}
    endpoint: dict[str, Any] = {"port": target.port, "path": "/metrics", "relabelings": [node]}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": target.service, "namespace": NAMESPACE},
        "spec": {
            "namespaceSelector": {"matchNames": [target.namespace]},
            "selector": {"matchLabels": dict(target.labels)},
            "endpoints": [endpoint],
        },
    }
