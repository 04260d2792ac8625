"""The alerts: what a person must know, when, and what to do then.

Thresholds are first judgements; they are meant to be changed here. `critical` means somebody acts now, `warning` that
somebody looks within a day.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from components.monitoring.operator import NAMESPACE
from components.monitoring.settings import MonitoringSettings
from components.monitoring.targets import CONTROLLERS, GPUS, OPERATOR, SCHEDULER, Target, targets
from gpuyard.manifests import Manifest, Rendered, declare
from gpuyard.model.environment import Environment


class Alert(NamedTuple):
    """One alert.

    expr:        fires while it has a result; uses metrics of its target only.
    after:       how long the expression must hold, as Prometheus writes it.
    summary:     what is wrong, in one line.
    description: what it means and what to do.
    """

    name: str
    target: Target
    expr: str
    after: str
    severity: Literal["critical", "warning"]
    summary: str
    description: str


XID_NODE = (48, 54, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158)
"""XID codes of a GPU, its memory, its links or its driver: the node needs a reset, a restart or a repair."""

XID_JOB = (13, 31, 94, 126)
"""XID codes that a program brings about: the job's owner looks at it, the node goes on."""


def new_xid(codes: tuple[int, ...]) -> str:
    """Return an expression for codes that came up within 15 minutes.

    The metric holds the last code for ever, so a code counts only while 15 minutes ago it was not yet there.
    """
    metric = "DCGM_FI_DEV_XID_ERRORS"
    return " or ".join(f"({metric} == {code} unless on (UUID) {metric} offset 15m == {code})" for code in codes)


def gone(target: Target) -> str:
    """Return an expression for a target of which no pod answers."""
    return f'absent(up{{job="{target.service}"}} == 1)'


ALERTS = (
    Alert(
        name="GpuXidNode",
        target=GPUS,
        expr=new_xid(XID_NODE),
        after="0m",
        severity="critical",
        summary="GPU {{ $labels.gpu }} of {{ $labels.node }} reports XID {{ $value }}",
        description="The hardware or its driver failed; the job on it is lost or about to be. Cordon the node, let the "
        "job restart elsewhere, then reset the GPU, or restart the machine for 54 and 79. Report a GPU that does it "
        "again.",
    ),
    Alert(
        name="GpuXidJob",
        target=GPUS,
        expr=new_xid(XID_JOB),
        after="0m",
        severity="warning",
        summary="pod {{ $labels.exported_namespace }}/{{ $labels.exported_pod }} caused XID {{ $value }}",
        description="The program on GPU {{ $labels.gpu }} of {{ $labels.node }} made a bad memory access or similar. "
        "The owner of the pod debugs it; the node needs nothing unless other programs fail on it too.",
    ),
    Alert(
        name="GpuMissing",
        target=GPUS,
        expr="count by (node) (DCGM_FI_DEV_GPU_TEMP) < max_over_time(count by (node) (DCGM_FI_DEV_GPU_TEMP)[1d:5m])",
        after="10m",
        severity="critical",
        summary="{{ $labels.node }} has {{ $value }} GPUs left",
        description="A GPU that was there within the last day no longer answers, mostly after XID 79 (fallen off the "
        "bus). Gangs that take whole nodes no longer fit. Cordon the node and restart the machine.",
    ),
    Alert(
        name="GpuRowRemapFailure",
        target=GPUS,
        expr="DCGM_FI_DEV_ROW_REMAP_FAILURE > 0",
        after="0m",
        severity="critical",
        summary="GPU {{ $labels.gpu }} of {{ $labels.node }} can no longer replace bad memory rows",
        description="The spare rows are used up: the next memory error ends a job. Cordon the node and have the GPU "
        "exchanged.",
    ),
    Alert(
        name="GpuMemoryRowsRemapped",
        target=GPUS,
        expr="increase(DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS[1h]) > 0",
        after="0m",
        severity="warning",
        summary="GPU {{ $labels.gpu }} of {{ $labels.node }} replaced memory rows after uncorrectable errors",
        description="The job on it was hit. Replaced rows take effect at the next reset of the GPU: drain the node "
        "when its jobs allow, and reset it.",
    ),
    Alert(
        name="GpuHot",
        target=GPUS,
        expr="DCGM_FI_DEV_GPU_TEMP > 85",
        after="10m",
        severity="warning",
        summary="GPU {{ $labels.gpu }} of {{ $labels.node }} is at {{ $value }} degrees Celsius",
        description="It slows itself down, and every other rank of its job with it. Look at the cooling of the node; "
        "when neighbours are hot too, at that of the rack.",
    ),
    Alert(
        name="GpuMemoryHot",
        target=GPUS,
        expr="DCGM_FI_DEV_MEMORY_TEMP > 95",
        after="10m",
        severity="warning",
        summary="memory of GPU {{ $labels.gpu }} of {{ $labels.node }} is at {{ $value }} degrees Celsius",
        description="It slows itself down, and its memory fails sooner. Look at the cooling of the node.",
    ),
    Alert(
        name="GpuIdle",
        target=GPUS,
        expr='avg_over_time(DCGM_FI_DEV_GPU_UTIL{exported_pod!=""}[30m]) < 10',
        after="30m",
        severity="warning",
        summary="pod {{ $labels.exported_namespace }}/{{ $labels.exported_pod }} holds a GPU and does not use it",
        description="Below 10 % for an hour: the job waits for data, hangs, or was forgotten. Ask its owner; look at "
        "its log for a rank that waits for another.",
    ),
    Alert(
        name="SchedulerDown",
        target=SCHEDULER,
        expr=gone(SCHEDULER),
        after="5m",
        severity="critical",
        summary="no Volcano scheduler answers",
        description="No gang starts; running jobs go on. Look at the pods and the log of Deployment volcano-scheduler: "
        "a mistake in its configuration stops it.",
    ),
    Alert(
        name="SchedulerStuck",
        target=SCHEDULER,
        expr="rate(volcano_e2e_scheduling_latency_milliseconds_count[5m]) == 0",
        after="10m",
        severity="critical",
        summary="the Volcano scheduler runs but completes no cycle",
        description="It completes one a second as a rule. Restart Deployment volcano-scheduler and keep its log.",
    ),
    Alert(
        name="GangNotPlaced",
        target=SCHEDULER,
        expr="volcano_unschedule_task_count > 0",
        after="15m",
        severity="warning",
        summary="{{ $value }} pods of job {{ $labels.job_id }} find no place",
        description="Its queue let the gang in, and the nodes do not hold it: too few free GPUs on single nodes, a "
        "selector or a taint that nothing matches, or nodes that do not come up. The conditions of its PodGroup name "
        "the reason.",
    ),
    Alert(
        name="ControllersDown",
        target=CONTROLLERS,
        expr=gone(CONTROLLERS),
        after="5m",
        severity="critical",
        summary="no Volcano controller answers",
        description="Queues do not open and PodGroups of plain pods are not made. Look at Deployment "
        "volcano-controllers; it waits until all CRDs of Volcano are there.",
    ),
    Alert(
        name="QueueStalled",
        target=CONTROLLERS,
        expr="volcano_queue_pod_group_pending_count > 0 "
        "and on (queue_name) volcano_queue_pod_group_running_count == 0 "
        "and on (queue_name) volcano_queue_pod_group_inqueue_count == 0 "
        "and on (queue_name) volcano_queue_pod_group_unknown_count == 0",
        after="15m",
        severity="warning",
        summary="{{ $value }} jobs wait in queue {{ $labels.queue_name }}, and none of it runs",
        description="With nothing running, nothing of the queue's own stands in their way: each gang is larger than "
        "the queue's capability or than the nodes that are up, or the queue is closed. Events of the PodGroups name "
        "the resource that is short.",
    ),
    Alert(
        name="GangBroken",
        target=CONTROLLERS,
        expr="volcano_queue_pod_group_unknown_count > 0",
        after="15m",
        severity="warning",
        summary="{{ $value }} jobs of queue {{ $labels.queue_name }} run without some of their pods",
        description="They were evicted for a queue or a job that came first, or their node went. The rest keeps its "
        "GPUs and waits for them. Free what is missing, or stop the job so that it waits whole.",
    ),
    Alert(
        name="TrainingOperatorDown",
        target=OPERATOR,
        expr=gone(OPERATOR),
        after="5m",
        severity="critical",
        summary="no training operator answers",
        description="New jobs are refused, because their webhook does not answer; running pods go on, failed ones are "
        "not replaced. Look at Deployment training-operator.",
    ),
    Alert(
        name="TrainingJobsFail",
        target=OPERATOR,
        expr="sum by (job_namespace, framework) (increase(training_operator_jobs_failed_total[1h])) >= 3",
        after="0m",
        severity="warning",
        summary="jobs of kind {{ $labels.framework }} in {{ $labels.job_namespace }} fail one after the other",
        description="One failure is the job's; several in a row are an image, a dataset or a node. Compare the nodes "
        "of the failed pods.",
    ),
    Alert(
        name="TrainingJobsRestart",
        target=OPERATOR,
        expr="sum by (job_namespace, framework) (increase(training_operator_jobs_restarted_total[1h])) >= 5",
        after="0m",
        severity="warning",
        summary="jobs of kind {{ $labels.framework }} in {{ $labels.job_namespace }} restart again and again",
        description="Each restart goes back to the last checkpoint. Look for pods that are evicted, run out of memory "
        "or always fail on the same node.",
    ),
)

_ABSENT = Alert(
    name="GpuMetricsMissing",
    target=GPUS,
    expr="absent(DCGM_FI_DEV_GPU_TEMP)",
    after="15m",
    severity="critical",
    summary="no GPU of the cluster reports anything",
    description="All alerts on GPUs are blind. Look at DaemonSet nvidia-dcgm-exporter and at ClusterPolicy "
    "cluster-policy, which says which part is not ready.",
)


def alerts(environment: Environment) -> list[Alert]:
    """Return the alerts whose target the environment has.

    Missing GPU metrics are an alert only where some GPU node is always there.
    """
    always = any(pool.machine.gpus and pool.nodes.min for pool in environment.pools.values())
    known = targets(environment)
    return [alert for alert in (*ALERTS, *([_ABSENT] if always else [])) if alert.target in known]


def prometheus_rules(environment: Environment, settings: MonitoringSettings) -> Iterator[Rendered]:
    """Yield one PrometheusRule for each add-on that has alerts."""
    by_addon: dict[str, list[Alert]] = {}
    for alert in alerts(environment):
        by_addon.setdefault(alert.target.addon, []).append(alert)
    for addon, some in by_addon.items():
        yield declare(prometheus_rule(addon, some), origin=environment.origin("addons", "monitoring"))


def prometheus_rule(name: str, some: list[Alert]) -> Manifest:
    """Return a PrometheusRule with one group of alerts."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "groups": [
                {
                    "name": name,
                    "rules": [
                        {
                            "alert": alert.name,
                            "expr": alert.expr,
                            "for": alert.after,
                            "labels": {"severity": alert.severity},
                            "annotations": {"summary": alert.summary, "description": alert.description},
                        }
                        for alert in some
                    ],
                }
            ]
        },
    }
