"""Hands Rendered objects to Pulumi: one resource each, with the options that its lifecycle and the graph ask for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import version

import pulumi

from gpuyard.manifests import Identity, Layer, Manifest, Rendered
from gpuyard.manifests.graph import Graph

PROVIDER_PACKAGE = "pulumi-kubernetes"

SKIP_AWAIT = "pulumi.com/skipAwait"
"""The provider reads only an annotation; it is the one thing that is registered without being rendered."""


def provider_version() -> str:
    """Return the version of the Kubernetes provider: that of the installed package, which the lock file pins."""
    return version(PROVIDER_PACKAGE)


def resource_type(rendered: Rendered) -> str:
    """Return the type token: `kubernetes:apps/v1:Deployment`, `kubernetes:core/v1:Service`."""
    api_version: str = rendered.manifest["apiVersion"]
    group_version = api_version if "/" in api_version else f"core/{api_version}"
    return f"kubernetes:{group_version}:{rendered.manifest['kind']}"


def resource_name(rendered: Rendered) -> str:
    """Return the Pulumi name: the stable id, with the object's name behind it where the id does not end in it.

    So two runs of one job are two resources, and a one-shot Job with a version in its name is a new one per version.
    """
    name = rendered.identity.name
    return rendered.id if rendered.id.rpartition("/")[2] == name else f"{rendered.id}/{name}"


def inputs(rendered: Rendered) -> Manifest:
    """Return what is registered for an object: its manifest, and the annotation that says not to wait for it.

    A Service is there once it is made. The provider would wait for its pods, and those of a webhook may wait for the
    webhook's configuration, which needs the Service. What needs the pods depends on their Deployment.
    """
    if rendered.lifecycle.wait and rendered.identity.kind != "Service":
        return rendered.manifest
    metadata: Manifest = rendered.manifest["metadata"]
    annotations: dict[str, str] = {**(metadata.get("annotations") or {}), SKIP_AWAIT: "true"}
    return {**rendered.manifest, "metadata": {**metadata, "annotations": annotations}}


def options(rendered: Rendered, parent: pulumi.Resource, depends_on: list[pulumi.Resource]) -> pulumi.ResourceOptions:
    """Return the resource options of an object."""
    lifecycle = rendered.lifecycle
    return pulumi.ResourceOptions(
        parent=parent,
        depends_on=depends_on,
        protect=lifecycle.protect,
        retain_on_delete=lifecycle.retain,
        # The names are fixed: created first, the new object would meet the old one.
        delete_before_replace=lifecycle.replace == "delete-first",
        ignore_changes=list(lifecycle.ignore),
        version=provider_version(),
    )


def register(
    graph: Graph, layers: Collection[Layer], parents: Mapping[str, pulumi.Resource]
) -> dict[str, dict[Identity, pulumi.Resource]]:
    """Register the objects of some layers in the order of their dependencies; return the resources by component.

    parents: by component. What an object needs from another layer is there already: that stack is deployed before.
    """
    made: dict[str, dict[Identity, pulumi.Resource]] = {component: {} for component in parents}
    resources: dict[Identity, pulumi.Resource] = {}
    for rendered in graph.order():
        if rendered.layer not in layers:
            continue
        who = rendered.identity
        depends_on = [resources[other] for other in graph.dependencies.get(who, ()) if other in resources]
        resources[who] = made[rendered.component][who] = pulumi.CustomResource(
            resource_type(rendered),
            resource_name(rendered),
            inputs(rendered),
            options(rendered, parents[rendered.component], depends_on),
        )
    return made
