"""A platform small enough to read at once: one operator with its CRD and webhook, one team, one run of one job."""

from __future__ import annotations

from typing import Any

from gpuyard.errors import Origin
from gpuyard.manifests import Layer, Lifecycle, Manifest, Rendered, declare
from gpuyard.manifests.graph import Graph
from gpuyard.pulumi.component import Component
from gpuyard.pulumi.program import register_platform
from gpuyard.pulumi.stacks import stack_name
from gpuyard.pulumi.testing import Registered, run

UID = "0b5c7d0a-3f0e-4e6c-9a57-6a2f2f9d1c11"


class Operator(Component[None]):
    """What runs the jobs."""

    component = "operator"
    exposes = {"namespaces": "Namespace", "deployments": "Deployment"}


class Teams(Component[None]):
    """Who has jobs."""

    component = "team"
    exposes = {"namespaces": "Namespace"}


class Jobs(Component[None]):
    """The jobs."""

    component = "jobs"
    exposes = {"runs": "PyTorchJob"}


CLASSES: dict[str, type[Component[Any]]] = {"operator": Operator, "team": Teams, "jobs": Jobs}


def named(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Manifest:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def crd(**schema: Any) -> Manifest:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", **schema}},
    }
    names = {"kind": "PyTorchJob", "plural": "pytorchjobs"}
    return named(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "pytorchjobs.kubeflow.org",
        spec={"group": "kubeflow.org", "names": names, "scope": "Namespaced", "versions": [version]},
    )


def job(hash_: str = "5c1f2a") -> Rendered:
    """Return one run of job resnet50."""
    template = {"spec": {"containers": [{"name": "pytorch", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}}
    return declare(
        named(
            "kubeflow.org/v1",
            "PyTorchJob",
            f"resnet50-{hash_}",
            "vision",
            spec={"pytorchReplicaSpecs": {"Worker": {"replicas": 4, "template": template}}},
        ),
        id="PyTorchJob/vision/resnet50",
        layer="jobs",
        origin=Origin("stacks/prod/jobs/resnet50.yaml", 1),
        lifecycle=Lifecycle(retain=True, replace="never", ignore=("spec",), wait=False),
    ).of("jobs")


def objects() -> list[Rendered]:
    """Return all objects, in no particular order."""
    labels = {"app": "operator"}
    pod = {"metadata": {"labels": labels}, "spec": {"serviceAccountName": "operator", "containers": [{"name": "main"}]}}
    rule = {"apiGroups": [""], "resources": ["resourcequotas"], "apiVersions": ["v1"], "operations": ["CREATE"]}
    service = {"name": "operator", "namespace": "operator"}
    operator = [
        declare(crd()),
        declare(named("v1", "Namespace", "operator"), lifecycle=Lifecycle(protect=True)),
        declare(named("v1", "ServiceAccount", "operator", "operator")),
        declare(named("v1", "Service", "operator", "operator", spec={"selector": labels, "ports": [{"port": 443}]})),
        declare(
            named(
                "apps/v1",
                "Deployment",
                "operator",
                "operator",
                spec={"replicas": 2, "selector": {"matchLabels": labels}, "template": pod},
            )
        ),
        declare(
            named(
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
                "operator",
                webhooks=[{"name": "quota.operator.dev", "clientConfig": {"service": service}, "rules": [rule]}],
            ),
            lifecycle=Lifecycle(ignore=("webhooks[*].clientConfig.caBundle",)),
        ),
    ]
    team = [
        declare(named("v1", "Namespace", "vision"), lifecycle=Lifecycle(protect=True)),
        declare(named("v1", "ResourceQuota", "team", "vision", spec={"hard": {"requests.nvidia.com/gpu": "64"}})),
    ]
    return [*(one.of("operator") for one in operator), *(one.of("team") for one in team), job()]


def registered(layer: Layer, rendered: list[Rendered] | None = None) -> list[Registered]:
    """Return what the Pulumi program registers for one layer."""
    graph = Graph(objects() if rendered is None else rendered)
    return run(lambda: register_platform(graph, layer, CLASSES, UID), stack=stack_name("prod", layer)).resources


def kubernetes(resources: list[Registered]) -> dict[str, Registered]:
    """Return the Kubernetes objects among the resources, by Pulumi name."""
    return {one.name: one for one in resources if one.type.startswith("kubernetes:")}
