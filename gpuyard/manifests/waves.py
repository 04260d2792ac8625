"""Waves: the fewest steps in which a controller that waits between steps can apply a layer."""

from __future__ import annotations

from gpuyard.manifests.graph import Edge, Graph
from gpuyard.manifests.rendered import Identity, Rendered

_READY_FIRST = frozenset(
    [
        "CustomResourceDefinition",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "Deployment",
        "StatefulSet",
        "DaemonSet",
    ]
)


def waves(graph: Graph) -> dict[Identity, int]:
    """Return the wave of each object, counted from 0 within its layer.

    What a wave needs ready stands in an earlier one: definitions, webhooks and their servers, and custom resources that
    others name, such as a queue's parent. What pods merely wait for (accounts, ConfigMaps, volumes) may share the wave:
    controllers apply namespaces and such before workloads.

    Nothing is held up without need: custom resources, whose controllers take their time, and what is never waited for,
    such as a volume that binds with its first pod, come as late as what depends on them allows.
    """
    ordered = graph.order()
    wave = {rendered.identity: 0 for rendered in ordered}
    inside = _inside_layers(graph)
    for rendered in ordered:
        who = rendered.identity
        for edge in inside.get(who, ()):
            wave[who] = max(wave[who], wave[edge.dependency] + _step(graph, edge))
    last = {rendered.layer: 0 for rendered in ordered}
    for rendered in ordered:
        last[rendered.layer] = max(last[rendered.layer], wave[rendered.identity])
    latest = {rendered.identity: last[rendered.layer] for rendered in ordered}
    for rendered in reversed(ordered):
        who = rendered.identity
        if _may_be_late(graph, rendered):
            wave[who] = latest[who]
        for edge in inside.get(who, ()):
            latest[edge.dependency] = min(latest[edge.dependency], wave[who] - _step(graph, edge))
    return wave


def _inside_layers(graph: Graph) -> dict[Identity, list[Edge]]:
    """Return the edges by dependent; what another layer holds is there before the layer starts."""
    inside: dict[Identity, list[Edge]] = {}
    for edge in graph.edges:
        if graph.objects[edge.dependent].layer == graph.objects[edge.dependency].layer:
            inside.setdefault(edge.dependent, []).append(edge)
    return inside


def _step(graph: Graph, edge: Edge) -> int:
    needed = edge.dependency
    return int(needed.kind in _READY_FIRST or (needed.group, needed.kind) in graph.custom_kinds)


def _may_be_late(graph: Graph, rendered: Rendered) -> bool:
    who = rendered.identity
    return not rendered.lifecycle.wait or (who.group, who.kind) in graph.custom_kinds
