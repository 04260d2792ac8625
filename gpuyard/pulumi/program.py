"""The Pulumi program of a project: what stands between a stack and its cluster, and what the stack registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pulumi

from gpuyard.manifests import LAYERS, Layer, Rendered
from gpuyard.manifests.graph import Graph
from gpuyard.pulumi.cluster import Cluster, check_crds, check_engine
from gpuyard.pulumi.component import Component
from gpuyard.pulumi.identity import check_cluster, record_cluster, recorded
from gpuyard.pulumi.register import provider_version, register
from gpuyard.pulumi.stacks import stack_name, target


def deploy(
    stack: str,
    *,
    stacks: Path,
    environments: Iterable[str],
    render: Callable[[str], list[Rendered]],
    components: Mapping[str, type[Component[Any]]],
    cluster: Cluster,
) -> None:
    """Register the objects of a stack, after making sure that this is its cluster and has the CRDs it needs.

    render:     environment -> all its objects; it never goes on without a missing source.
    components: the class of each component.
    """
    environment, layer = target(stack, environments)
    graph = Graph(render(environment))
    uid = cluster.uid()
    known = recorded(stacks)
    check_cluster(uid, [stack_name(environment, one) for one in LAYERS], known)
    check_engine(cluster)
    if layer != "crds":
        crds = [rendered for rendered in graph.objects.values() if rendered.layer == "crds"]
        check_crds(crds, cluster, stack_name(environment, "crds"))
    if not pulumi.runtime.is_dry_run() and all(record.stack != stack for record in known):
        record_cluster(uid, stacks, stack)
    register_platform(graph, layer, components, uid)


def register_platform(
    graph: Graph, layer: Layer, components: Mapping[str, type[Component[Any]]], uid: str
) -> dict[str, Component[Any]]:
    """Register the objects of one layer below one resource for each component; return these."""
    provider = pulumi.ProviderResource(
        "kubernetes",
        "kubernetes",
        # The identifier keeps Pulumi from replacing everything when only the kubeconfig changes. The provider takes
        # its settings as text.
        {"clusterIdentifier": uid, "enableServerSideApply": "true"},
        pulumi.ResourceOptions(version=provider_version()),
    )
    names = sorted({rendered.component for rendered in graph.objects.values() if rendered.layer == layer})
    unknown = [name for name in names if name not in components]
    if unknown:
        raise LookupError(f"no Pulumi class for {', '.join(unknown)}: write components/<package>/resource.py")
    parts = {name: components[name].part(name, pulumi.ResourceOptions(providers=[provider])) for name in names}
    for name, resources in register(graph, [layer], parts).items():
        parts[name].expose(resources)
    return parts
