"""Monitoring: Prometheus, what it scrapes, and alerts on GPUs, queues and jobs."""

from __future__ import annotations

from components.monitoring.alerts import prometheus_rules
from components.monitoring.monitors import service_monitors
from components.monitoring.operator import namespace, prometheus_operator
from components.monitoring.prometheus import prometheus
from components.monitoring.settings import MonitoringSettings
from gpuyard.model.registry import Component, Registry


def register(registry: Registry) -> None:
    """Add the add-on `monitoring`."""
    component = Component("monitoring", settings=MonitoringSettings)
    component.part(namespace)
    component.sourced("prometheus-operator")(prometheus_operator)
    component.pinned("prometheus-operator")(prometheus)
    component.part(service_monitors)
    component.part(prometheus_rules)
    registry.add(component)
