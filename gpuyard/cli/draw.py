"""The dependency graph of a render as text, for Graphviz, as Mermaid and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gpuyard.cli.console import counted
from gpuyard.manifests import Identity, Rendered
from gpuyard.manifests.graph import Edge, Graph


class View(NamedTuple):
    """A part of a graph, and the direction in which it is read.

    objects: in the order to apply them or, reversed, to delete them. edges: those between these objects.
    """

    title: str
    objects: list[Rendered]
    edges: list[Edge]
    reverse: bool


def view(title: str, graph: Graph, chosen: Iterable[Identity], *, reverse: bool) -> View:
    """Return the chosen objects with all that must be there before them or, reversed, must be gone before them."""
    following: dict[Identity, list[Identity]] = {}
    for edge in graph.edges:
        later, earlier = (edge.dependency, edge.dependent) if reverse else (edge.dependent, edge.dependency)
        following.setdefault(later, []).append(earlier)
    reached: set[Identity] = set()
    new = list(chosen)
    while new:
        one = new.pop()
        if one not in reached:
            reached.add(one)
            new += following.get(one, [])
    ordered = graph.order()[::-1] if reverse else graph.order()
    return View(
        title,
        [rendered for rendered in ordered if rendered.identity in reached],
        [edge for edge in graph.edges if edge.dependent in reached and edge.dependency in reached],
        reverse,
    )


def as_text(shown: View, *, why: bool) -> str:
    """Return one line for each object by layer and component, numbered in order; `why` adds what each waits for."""
    reasons: dict[Identity, list[str]] = {}
    for dependent, dependency, reason in shown.edges if why else ():
        who, line = (
            (dependency, f"after {dependent}: {reason}") if shown.reverse else (dependent, f"{reason} {dependency}")
        )
        reasons.setdefault(who, []).append(line)
    blocks: dict[str, dict[str, list[str]]] = {}
    width = len(str(len(shown.objects)))
    for number, rendered in enumerate(shown.objects, start=1):
        block = blocks.setdefault(rendered.layer, {}).setdefault(rendered.component, [])
        block.append(f"    {number:>{width}}  {rendered.identity}")
        block += [f"    {'':>{width}}    {reason}" for reason in reasons.get(rendered.identity, ())]
    what = f"{counted(len(shown.objects), 'objects')}, {counted(len(shown.edges), 'edges')}"
    lines = [f"{shown.title}: {what}, numbered in the order to {'delete' if shown.reverse else 'apply'}"]
    for layer, components in blocks.items():
        lines += ["", layer]
        for component, block in components.items():
            lines += [f"  {component}", *block]
    return "\n".join(lines)


def as_json(shown: View) -> str:
    """Return one object with the objects in order, and the edges by the ids of the objects."""
    name = {rendered.identity: rendered.id for rendered in shown.objects}
    objects = [
        {
            "id": rendered.id,
            "apiVersion": rendered.manifest["apiVersion"],
            "kind": rendered.identity.kind,
            "namespace": rendered.identity.namespace,
            "name": rendered.identity.name,
            "component": rendered.component,
            "layer": rendered.layer,
        }
        for rendered in shown.objects
    ]
    edges = [
        {"dependent": name[edge.dependent], "dependency": name[edge.dependency], "reason": edge.reason}
        for edge in shown.edges
    ]
    return json.dumps({"environment": shown.title, "objects": objects, "edges": edges}, indent=2)


def as_dot(shown: View, *, why: bool) -> str:
    """Return the graph for Graphviz; an arrow points at what has to come first."""
    node = _nodes(shown)
    lines = [f"digraph {_dot(shown.title)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for number, (component, objects) in enumerate(_by_component(shown).items()):
        lines += [f"  subgraph cluster_{number} {{", f"    label={_dot(component)};"]
        lines += [f"    {node[one.identity]} [label={_dot(str(one.identity))}];" for one in objects]
        lines.append("  }")
    for later, earlier, reason in _arrows(shown):
        label = f" [label={_dot(reason)}]" if why else ""
        lines.append(f"  {node[later]} -> {node[earlier]}{label};")
    return "\n".join([*lines, "}"])


def as_mermaid(shown: View, *, why: bool) -> str:
    """Return the graph as a Mermaid flowchart; an arrow points at what has to come first."""
    node = _nodes(shown)
    lines = ["flowchart LR"]
    for number, (component, objects) in enumerate(_by_component(shown).items()):
        lines.append(f"  subgraph c{number}[{_mermaid(component)}]")
        lines += [f"    {node[one.identity]}[{_mermaid(str(one.identity))}]" for one in objects]
        lines.append("  end")
    for later, earlier, reason in _arrows(shown):
        label = f"|{_mermaid(reason)}|" if why else ""
        lines.append(f"  {node[later]} -->{label} {node[earlier]}")
    return "\n".join(lines)


def _nodes(shown: View) -> Mapping[Identity, str]:
    return {rendered.identity: f"n{number}" for number, rendered in enumerate(shown.objects)}


def _by_component(shown: View) -> dict[str, list[Rendered]]:
    groups: dict[str, list[Rendered]] = {}
    for rendered in shown.objects:
        groups.setdefault(rendered.component, []).append(rendered)
    return groups


def _arrows(shown: View) -> list[tuple[Identity, Identity, str]]:
    """Return (later, earlier, reason) once for each pair of objects."""
    reasons: dict[tuple[Identity, Identity], list[str]] = {}
    for dependent, dependency, reason in shown.edges:
        pair = (dependency, dependent) if shown.reverse else (dependent, dependency)
        reasons.setdefault(pair, []).append(reason)
    return [(later, earlier, ", ".join(words)) for (later, earlier), words in reasons.items()]


def _dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _mermaid(text: str) -> str:
    return '"' + text.replace('"', "#quot;") + '"'
