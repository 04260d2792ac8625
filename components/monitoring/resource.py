"""Monitoring as a Pulumi component."""

from __future__ import annotations

import pulumi

from components import monitoring
from components.monitoring.settings import MonitoringSettings
from gpuyard.pulumi.component import Component


class Monitoring(Component[MonitoringSettings]):
    """Prometheus: its namespace, the servers, and the alerts."""

    component = "monitoring"
    content = staticmethod(monitoring.register)
    exposes = {"namespaces": "Namespace", "prometheuses": "Prometheus", "rules": "PrometheusRule"}

    namespaces: pulumi.Output[list[str]]
    prometheuses: pulumi.Output[list[str]]
    rules: pulumi.Output[list[str]]
