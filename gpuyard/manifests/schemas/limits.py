"""Limits of values that OpenAPI leaves out, in the words of JSON Schema, so that checking them costs nothing.

Source: k8s.io/kubernetes/pkg/apis/*/validation for the limits of fields; for `format` the OpenAPI data types, as
k8s.io/kube-openapi/pkg/validation/strfmt reads them.
"""

from __future__ import annotations

from typing import Any

FORMATS: dict[str, dict[str, Any]] = {
    "int32": {"minimum": -(2**31), "maximum": 2**31 - 1},
    "int64": {"minimum": -(2**63), "maximum": 2**63 - 1},
    "byte": {
        "pattern": r"^(?:[A-Za-z0-9+/]{4}[\r\n]*)*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?[\r\n]*$",
    },
    "date": {"pattern": r"^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])$"},
    "date-time": {
        "pattern": (
            r"^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
            r"(?:[.,][0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})$"
        )
    },
}
QUANTITY = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2}|[KMGTPE]i|[numkMGTPE]?)$"

_IN_CRDS = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""A quantity, as controller-gen writes it into every CRD."""

_NO_QUANTITY = "no quantity: a quantity is a number with an optional unit: 500m, 4, 2.5, 100M, 64Gi, 2Ti"

WORDS: dict[str, str] = {
    FORMATS["byte"]["pattern"]: "no base64 text; must be base64, in groups of four characters",
    FORMATS["date"]["pattern"]: "no date; must be such as 2026-01-31",
    FORMATS["date-time"]["pattern"]: "no time; must be such as 2026-01-31T12:00:00Z",
    QUANTITY: _NO_QUANTITY,
    _IN_CRDS: _NO_QUANTITY,
}
"""What a value is that does not match a pattern which tells a person nothing."""

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_CHOICES: dict[str, tuple[str, ...]] = {
    "Container.imagePullPolicy": ("Always", "Never", "IfNotPresent"),
    "Container.terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
    "ContainerPort.protocol": _PROTOCOLS,
    "CronJobSpec.concurrencyPolicy": ("Allow", "Forbid", "Replace"),
    "DaemonSetUpdateStrategy.type": ("OnDelete", "RollingUpdate"),
    "DeploymentStrategy.type": ("Recreate", "RollingUpdate"),
    "HTTPGetAction.scheme": ("HTTP", "HTTPS"),
    "HTTPIngressPath.pathType": ("Exact", "Prefix", "ImplementationSpecific"),
    "JobSpec.completionMode": ("NonIndexed", "Indexed"),
    "LimitRangeItem.type": ("Container", "Pod", "PersistentVolumeClaim"),
    "MutatingWebhook.failurePolicy": ("Fail", "Ignore"),
    "MutatingWebhook.matchPolicy": ("Equivalent", "Exact"),
    "MutatingWebhook.reinvocationPolicy": ("IfNeeded", "Never"),
    "MutatingWebhook.sideEffects": ("None", "NoneOnDryRun"),
    "NetworkPolicyPort.protocol": _PROTOCOLS,
    "NetworkPolicySpec.policyTypes": ("Egress", "Ingress"),
    "NodeSelectorRequirement.operator": ("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"),
    "PersistentVolumeClaimSpec.accessModes": _MODES,
    "PersistentVolumeClaimSpec.volumeMode": ("Block", "Filesystem"),
    "PersistentVolumeSpec.accessModes": _MODES,
    "PersistentVolumeSpec.persistentVolumeReclaimPolicy": ("Delete", "Recycle", "Retain"),
    "PersistentVolumeSpec.volumeMode": ("Block", "Filesystem"),
    "PodSpec.dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "PodSpec.preemptionPolicy": ("Never", "PreemptLowerPriority"),
    "PodSpec.restartPolicy": ("Always", "Never", "OnFailure"),
    "PriorityClass.preemptionPolicy": ("Never", "PreemptLowerPriority"),
    "RuleWithOperations.operations": ("*", "CONNECT", "CREATE", "DELETE", "UPDATE"),
    "SeccompProfile.type": ("Localhost", "RuntimeDefault", "Unconfined"),
    "ServicePort.protocol": _PROTOCOLS,
    "ServiceSpec.externalTrafficPolicy": ("Cluster", "Local"),
    "ServiceSpec.internalTrafficPolicy": ("Cluster", "Local"),
    "ServiceSpec.sessionAffinity": ("ClientIP", "None"),
    "ServiceSpec.type": ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"),
    "StatefulSetSpec.podManagementPolicy": ("OrderedReady", "Parallel"),
    "StatefulSetUpdateStrategy.type": ("OnDelete", "RollingUpdate"),
    "StorageClass.reclaimPolicy": ("Delete", "Retain"),
    "StorageClass.volumeBindingMode": ("Immediate", "WaitForFirstConsumer"),
    "Taint.effect": _EFFECTS,
    "Toleration.effect": _EFFECTS,
    "TopologySpreadConstraint.whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "ValidatingWebhook.failurePolicy": ("Fail", "Ignore"),
    "ValidatingWebhook.matchPolicy": ("Equivalent", "Exact"),
    "ValidatingWebhook.sideEffects": ("None", "NoneOnDryRun"),
}
_BOUNDS: dict[str, tuple[int, int]] = {
    "ConfigMapVolumeSource.defaultMode": (0, 0o777),
    "DownwardAPIVolumeSource.defaultMode": (0, 0o777),
    "HorizontalPodAutoscalerSpec.maxReplicas": (1, 2**31 - 1),
    "JobSpec.activeDeadlineSeconds": (1, 2**63 - 1),
    "KeyToPath.mode": (0, 0o777),
    "PodSpec.activeDeadlineSeconds": (1, 2**31 - 1),
    "PodSecurityContext.fsGroup": (0, 2**31 - 1),
    "PodSecurityContext.runAsGroup": (0, 2**31 - 1),
    "PodSecurityContext.runAsUser": (0, 2**31 - 1),
    "PreferredSchedulingTerm.weight": (1, 100),
    "ProjectedVolumeSource.defaultMode": (0, 0o777),
    "SecretVolumeSource.defaultMode": (0, 0o777),
    "SecurityContext.runAsGroup": (0, 2**31 - 1),
    "SecurityContext.runAsUser": (0, 2**31 - 1),
    "TopologySpreadConstraint.maxSkew": (1, 2**31 - 1),
    "WeightedPodAffinityTerm.weight": (1, 100),
}
_NOT_NEGATIVE = frozenset(
    ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds", "backoffLimit", "parallelism",
     "completions", "ttlSecondsAfterFinished", "startingDeadlineSeconds", "successfulJobsHistoryLimit",
     "failedJobsHistoryLimit", "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
     "failureThreshold", "minReplicas"]
)  # fmt: skip
_PROBED = ("Spec", "Probe")


def limits_of(definition: str, field: str) -> dict[str, Any]:
    """Return the limits of a field of a built-in type, such as `io.k8s.api.core.v1.Container`, as keywords.

    The limits of a list's items stand under `items`.
    """
    if not definition.startswith("io.k8s.api."):
        return {}
    name = definition.rpartition(".")[2]
    key = f"{name}.{field}"
    if key in _CHOICES:
        # Nothing and "" are the default.
        choice: dict[str, Any] = {"enum": [*_CHOICES[key], "", None]}
        return {"items": choice} if field in ("accessModes", "operations", "policyTypes") else choice
    if key in _BOUNDS:
        low, high = _BOUNDS[key]
        return {"minimum": low, "maximum": high}
    if field in _NOT_NEGATIVE and name.endswith(_PROBED):
        return {"minimum": 0}
    return {}
