"""What Prometheus scrapes in an environment, and which metrics come from there without further configuration.

An alert on a metric that nobody exports is silent for ever, so every target names the metrics that alerts may use, and
where that was read.
"""

from __future__ import annotations

from typing import NamedTuple

from components.gpu_operator.objects import NAMESPACE as GPU_OPERATOR
from components.training_operator.objects import NAMESPACE as TRAINING_OPERATOR
from components.volcano.objects import NAMESPACE as VOLCANO
from gpuyard.model.environment import Environment


class Target(NamedTuple):
    """A Service whose pods are scraped.

    addon:   the add-on that brings the Service.
    service: its name; Prometheus calls the job by it.
    labels:  what tells it from other Services of its namespace.
    port:    name of the port.
    metrics: exported by default.
    source:  where the names were read.
    """

    addon: str
    namespace: str
    service: str
    labels: tuple[tuple[str, str], ...]
    port: str
    metrics: frozenset[str]
    source: str


SCHEDULER = Target(
    addon="volcano",
    namespace=VOLCANO,
    service="volcano-scheduler-service",
    labels=(("app", "volcano-scheduler"),),
    port="metrics",
    metrics=frozenset(
        {
            "volcano_e2e_scheduling_latency_milliseconds_count",
            "volcano_queue_allocated_scalar_resources",
            "volcano_queue_deserved_scalar_resources",
            "volcano_queue_request_scalar_resources",
            "volcano_total_preemption_attempts",
            "volcano_unschedule_job_count",
            "volcano_unschedule_task_count",
        }
    ),
    source="volcano v1.14.1, pkg/scheduler/metrics",
)
CONTROLLERS = Target(
    addon="volcano",
    namespace=VOLCANO,
    service="volcano-controllers-service",
    labels=(("app", "volcano-controller"),),
    port="metrics",
    metrics=frozenset(
        {
            "volcano_queue_pod_group_inqueue_count",
            "volcano_queue_pod_group_pending_count",
            "volcano_queue_pod_group_running_count",
            "volcano_queue_pod_group_unknown_count",
        }
    ),
    source="volcano v1.14.1, pkg/controllers/metrics",
)
OPERATOR = Target(
    addon="training-operator",
    namespace=TRAINING_OPERATOR,
    service="training-operator",
    labels=(("app", "training-operator"),),
    port="monitoring-port",
    metrics=frozenset(
        {
            "training_operator_jobs_created_total",
            "training_operator_jobs_failed_total",
            "training_operator_jobs_restarted_total",
        }
    ),
    source="training operator v1.9.4, pkg/common/metrics.go",
)
GPUS = Target(
    addon="gpu-operator",
    namespace=GPU_OPERATOR,
    service="nvidia-dcgm-exporter",
    labels=(("app", "nvidia-dcgm-exporter"),),
    port="gpu-metrics",
    metrics=frozenset(
        {
            "DCGM_FI_DEV_GPU_TEMP",
            "DCGM_FI_DEV_GPU_UTIL",
            "DCGM_FI_DEV_MEMORY_TEMP",
            "DCGM_FI_DEV_ROW_REMAP_FAILURE",
            "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
            "DCGM_FI_DEV_XID_ERRORS",
        }
    ),
    source="dcgm-exporter 4.6.0-4.8.3, etc/default-counters.csv, lines that are not commented out",
)
TARGETS = (SCHEDULER, CONTROLLERS, OPERATOR, GPUS)


def targets(environment: Environment) -> list[Target]:
    """Return what an environment has to scrape."""
    return [
        target
        for target in TARGETS
        if target.addon in environment.addons and not (target is GPUS and environment.cluster.provider == "kind")
    ]
