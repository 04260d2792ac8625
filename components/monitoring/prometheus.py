"""Prometheus itself: one object for the operator, what it may read, and a Service to reach it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from components.monitoring.operator import NAMESPACE
from components.monitoring.settings import MonitoringSettings
from components.upstream import image_tag, mirrored
from gpuyard.errors import InputError, Problem, listed, nearest
from gpuyard.manifests import Lifecycle, Manifest, Rendered, declare
from gpuyard.manifests.quantity import parse_quantity
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Pin

NAME = "platform"

_IMAGE = "quay.io/prometheus/prometheus"
_ACCOUNT = "prometheus"
_SELECTED_KINDS = ("serviceMonitor", "podMonitor", "probe", "scrapeConfig", "rule")


def prometheus(environment: Environment, settings: MonitoringSettings, pin: Pin) -> Iterator[Rendered]:
    """Yield the Prometheus object, its account and permissions, and its Service."""
    origin = environment.origin("addons", "monitoring")
    for manifest in [*_access(), _service()]:
        yield declare(manifest, origin=origin)
    version = image_tag("prometheus-operator", pin, _IMAGE)
    keep = Lifecycle(protect=environment.cluster.protect)
    yield declare(_prometheus(environment, settings, version), origin=origin, lifecycle=keep)


def _prometheus(environment: Environment, settings: MonitoringSettings, version: str) -> Manifest:
    claim: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": settings.size}},
    }
    if settings.storage_class is not None:
        claim["storageClassName"] = _block_class(environment, settings.storage_class)
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "Prometheus",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "version": version,
            "image": mirrored(environment, f"{_IMAGE}:{version}"),
            "serviceAccountName": _ACCOUNT,
            "serviceDiscoveryRole": "EndpointSlice",
            # An empty selector takes all; left out, it takes none.
            **{f"{kind}Selector": {} for kind in _SELECTED_KINDS},
            **{f"{kind}NamespaceSelector": {} for kind in _SELECTED_KINDS},
            "scrapeInterval": "30s",
            "evaluationInterval": "30s",
            "retention": settings.retention,
            "retentionSize": _retention_size(settings.size),
            "storage": {"volumeClaimTemplate": {"spec": claim}},
            "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"cpu": "4", "memory": "8Gi"}},
            "securityContext": {
                "fsGroup": 2000,
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    }


def _retention_size(size: str) -> str:
    """Return 85 % of a volume in GiB: the write-ahead log and a block in the making need the rest."""
    return f"{int(parse_quantity(size) * 85 / 100 / 2**30)}GiB"


def _block_class(environment: Environment, name: str) -> str:
    """Return the name of a storage class if it exists and is fit for a database."""
    classes = environment.storage.classes
    origin = environment.origin("addons", "monitoring", "storage-class")
    field = "addons.monitoring.storage-class"
    if name not in classes:
        detail = f"{name}; storage.classes has {listed(classes)}"
        raise InputError(Problem("no such storage class", origin, field, detail, nearest(name, classes)))
    if classes[name].shared:
        detail = f"{name} is of type {classes[name].type}, a network file system; Prometheus loses data on those"
        raise InputError(Problem("storage class does not fit", origin, field, detail, "name a class of a block device"))
    return name


def _service() -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "prometheus", "namespace": NAMESPACE, "labels": {"app.kubernetes.io/name": "prometheus"}},
        "spec": {
            "selector": {"operator.prometheus.io/name": NAME},
            "ports": [{"name": "web", "port": 9090, "targetPort": "web"}],
        },
    }


def _access() -> Iterator[Manifest]:
    """Yield the account and what service discovery reads; nothing of it is a Secret's content."""
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": _ACCOUNT, "namespace": NAMESPACE}}
    read = ["get", "list", "watch"]
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"{NAMESPACE}-prometheus"},
        "rules": [
            {"apiGroups": [""], "resources": ["services", "pods"], "verbs": read},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read},
            {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        ],
    }
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{NAMESPACE}-prometheus"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": f"{NAMESPACE}-prometheus",
        },
        "subjects": [{"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": NAMESPACE}],
    }
