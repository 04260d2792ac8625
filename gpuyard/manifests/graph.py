"""What depends on what, read off the objects themselves: the order to apply and delete them, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from gpuyard.errors import InputError, Problem
from gpuyard.manifests.data import map_at, maps_at, text_at, texts_at
from gpuyard.manifests.references import RUNS_AS, Known
from gpuyard.manifests.rendered import LAYERS, Identity, Rendered

_FIRST = ("Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass", "ResourceQuota", "LimitRange",
          "ServiceAccount", "Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "ClusterRole",
          "ClusterRoleBinding", "Role", "RoleBinding", "NetworkPolicy", "Service", "Deployment")  # fmt: skip
_RANK = {kind: rank for rank, kind in enumerate(_FIRST)}
_WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")
_CHECKED = "is checked by the webhook"
_LISTENS = "waits for a server that listens once it has"


class Edge(NamedTuple):
    """`dependent` needs `dependency` to be there first, because of `reason`."""

    dependent: Identity
    dependency: Identity
    reason: str


class _Need(NamedTuple):
    """What an object needs to be there first, and why."""

    dependency: Identity
    reason: str


_Needs = tuple[_Need, ...]
"""Sorted. Objects with the same needs share them: ten thousand runs of a team name the same things."""


class Graph:
    """The dependency graph of one render; objects that are not in the render are no part of it."""

    def __init__(self, objects: Iterable[Rendered]) -> None:
        self.objects: dict[Identity, Rendered] = {}
        for rendered in objects:
            other = self.objects.setdefault(rendered.identity, rendered)
            if other is not rendered:
                places = " and ".join(f"{r.component} ({r.origin or 'built in'})" for r in (other, rendered))
                raise InputError(
                    Problem("two objects with one name", rendered.origin, str(rendered.identity), f"made by {places}")
                )
        self._needs = _needs(self.objects)
        # Objects with the same needs have them as one object.
        once: dict[int, list[Identity]] = {}
        self.dependencies: dict[Identity, list[Identity]] = {}
        for who, needs in self._needs.items():
            if needs:
                known = once.get(id(needs))
                if known is None:
                    known = once[id(needs)] = list(dict.fromkeys(need.dependency for need in needs))
                self.dependencies[who] = known

    @cached_property
    def edges(self) -> list[Edge]:
        """All edges, sorted."""
        return [Edge(who, *need) for who in sorted(self._needs) for need in self._needs[who]]

    @cached_property
    def custom_kinds(self) -> frozenset[tuple[str, str]]:
        """(group, kind) of every CustomResourceDefinition in the render."""
        return frozenset(_definitions(self.objects))

    def order(self) -> list[Rendered]:
        """Return all objects in the order to apply them; reversed, it is the order to delete them.

        Raises InputError with the cycle when the objects need each other.
        """
        places = sorted(self.objects, key=lambda one: _place(one, self.objects[one]))
        place = {one: number for number, one in enumerate(places)}
        done: dict[Identity, bool] = {}
        ordered: list[Rendered] = []
        for start in places:
            # A stack of our own: chains of objects can be longer than Python's recursion limit.
            stack: list[tuple[Identity, Iterator[Identity]]] = []
            if start in done:
                continue
            if all(done.get(one) for one in self.dependencies.get(start, ())):
                # As for nearly all: what comes earlier by itself is all it needs.
                done[start] = True
                ordered.append(self.objects[start])
            else:
                done[start] = False
                stack.append((start, self._dependencies_by(place, start)))
            while stack:
                current, rest = stack[-1]
                following = next(rest, None)
                if following is None:
                    stack.pop()
                    done[current] = True
                    ordered.append(self.objects[current])
                elif following not in done:
                    done[following] = False
                    stack.append((following, self._dependencies_by(place, following)))
                elif not done[following]:
                    path = [node for node, _ in stack]
                    cycle = [*path[path.index(following) :], following]
                    raise InputError(
                        Problem(
                            "objects need each other",
                            self.objects[following].origin,
                            detail=" -> ".join(str(node) for node in cycle),
                            fix="take one of these references away",
                        )
                    )
        return ordered

    def _dependencies_by(self, place: Mapping[Identity, int], one: Identity) -> Iterator[Identity]:
        return iter(sorted(self.dependencies.get(one, ()), key=place.__getitem__))


def _place(who: Identity, rendered: Rendered) -> tuple[int, int, Identity]:
    """Where an object stands when nothing else decides: layer, usual order of kinds, name."""
    return LAYERS.index(rendered.layer), _RANK.get(who.kind, len(_RANK)), who


def _needs(objects: Mapping[Identity, Rendered]) -> dict[Identity, _Needs]:
    """Return what each object needs."""
    crds = _definitions(objects)
    named: dict[tuple[str, str, str], list[Identity]] = {}
    for who in objects:
        # A reference names no group: two kinds of one name are told apart by nothing.
        named.setdefault(who[1:], []).append(who)
    bindings = _bindings(objects)
    read: Known = {}
    known: dict[tuple[str, str, int], tuple[_Needs, frozenset[Identity]]] = {}
    needs: dict[Identity, _Needs] = {}
    for who, rendered in objects.items():
        references = rendered.read_references(read)
        key = who.group, who.kind, id(references)
        if key not in known:
            wanted = [(reference.target, reference.reason) for reference in references]
            found = {_Need(other, reason) for target, reason in wanted for other in named.get(target, ())}
            found |= {
                _Need(binding, "has the rights of")
                for target, reason in wanted
                if reason == RUNS_AS
                for binding in bindings.get(target, ())
            }
            if (definition := crds.get((who.group, who.kind))) is not None:
                found.add(_Need(definition, "is of the kind"))
            known[key] = tuple(sorted(found)), frozenset(need.dependency for need in found)
        needs[who], dependencies = known[key]
        if who in dependencies:
            needs[who] = tuple(need for need in needs[who] if need.dependency != who)
    if guards := _guards(objects, named, crds):
        needs |= _with_guards(objects, crds, guards, needs)
    return needs


def _definitions(objects: Mapping[Identity, Rendered]) -> dict[tuple[str, str], Identity]:
    """Return the CustomResourceDefinition of each (group, kind)."""
    return {
        (text_at(rendered.manifest, "spec", "group"), text_at(rendered.manifest, "spec", "names", "kind")): who
        for who, rendered in objects.items()
        if who.kind == "CustomResourceDefinition"
    }


def _bindings(objects: Mapping[Identity, Rendered]) -> dict[tuple[str, str, str], list[Identity]]:
    """Return the bindings for each ServiceAccount: without its rights, what runs as it starts and does not work."""
    bindings: dict[tuple[str, str, str], list[Identity]] = {}
    for who, rendered in objects.items():
        if who.kind in ("RoleBinding", "ClusterRoleBinding"):
            for reference in rendered.references:
                if reference.kind == "ServiceAccount":
                    bindings.setdefault(reference.target, []).append(who)
    return bindings


class _Guard(NamedTuple):
    """What must be there before an object is sent, each with the reason. It comes up as a whole or not at all."""

    owners: tuple[tuple[Identity, str], ...]


_Guards = dict[tuple[str, str], dict[_Guard, None]]
"""By (group, plural) as a rule names them, `*` included; the inner maps are sets that keep their order."""


def _guards(
    objects: Mapping[Identity, Rendered],
    named: Mapping[tuple[str, str, str], list[Identity]],
    crds: Mapping[tuple[str, str], Identity],
) -> _Guards:
    """Return what must be there before objects of a kind: webhook configurations, and the pods that answer for them.

    A server of webhooks may listen only once all its configurations exist, as Volcano's does. Whoever waits for the
    server therefore needs all of them, whichever kinds they are about.
    """
    workloads = [one for one in objects if one.kind in _WORKLOADS]
    servers: dict[tuple[str, str, str], list[Identity]] = {}

    def behind(service: Mapping[str, Any]) -> list[Identity]:
        key = ("Service", text_at(service, "namespace"), text_at(service, "name"))
        if key not in servers:
            servers[key] = [one for who in named.get(key, ()) for one in _behind(objects[who], workloads, objects)]
        return servers[key]

    hooks = [
        (who, webhook, behind(map_at(webhook, "clientConfig", "service")))
        for who, rendered in objects.items()
        if who.kind in _WEBHOOKS
        for _, webhook in maps_at(rendered.manifest, "webhooks")
    ]
    configurations: dict[Identity, dict[Identity, None]] = {}
    for who, _, answering in hooks:
        for server in answering:
            configurations.setdefault(server, {})[who] = None
    guards: _Guards = {}
    for who, webhook, answering in hooks:
        reasons = {one: _LISTENS for server in answering for one in configurations[server]}
        reasons |= dict.fromkeys((who, *answering), _CHECKED)
        for _, rule in maps_at(webhook, "rules"):
            for group in texts_at(rule, "apiGroups"):
                for resource in texts_at(rule, "resources"):
                    name, _, part = resource.partition("/")
                    # A rule on `pods/binding` says nothing about creating a pod.
                    if part in ("", "*"):
                        guards.setdefault((group, name), {})[_Guard(tuple(reasons.items()))] = None
    for (group, _), who in crds.items():
        manifest = objects[who].manifest
        for server in behind(map_at(manifest, "spec", "conversion", "webhook", "clientConfig", "service")):
            kind = group, text_at(manifest, "spec", "names", "plural")
            guards.setdefault(kind, {})[_Guard(((server, "is converted by"),))] = None
    return guards


def _with_guards(
    objects: Mapping[Identity, Rendered],
    crds: Mapping[tuple[str, str], Identity],
    guards: _Guards,
    needs: Mapping[Identity, _Needs],
) -> dict[Identity, _Needs]:
    """Return what each object needs, what guards its kind included."""
    # What something needs in order to be there is not what it waits for.
    closures = {guard: _closure((owner for owner, _ in guard.owners), needs) for of in guards.values() for guard in of}
    by_kind: dict[tuple[str, str, str, str], tuple[list[_Guard], frozenset[Identity]]] = {}
    known: dict[tuple[int, int], _Needs] = {}
    found: dict[Identity, _Needs] = {}
    for who, rendered in objects.items():
        kind = who.group, who.kind, rendered.layer, rendered.component
        if kind not in by_kind:
            plural = _plural(objects, crds, who)
            keys = ((who.group, plural), (who.group, "*"), ("*", plural), ("*", "*"))
            waits_for = [
                guard
                for key in keys
                for guard in guards.get(key, ())
                if _can_wait(rendered, [objects[owner] for owner, _ in guard.owners], is_custom=kind[:2] in crds)
            ]
            by_kind[kind] = waits_for, frozenset().union(*(closures[guard] for guard in waits_for))
        waits_for, before = by_kind[kind]
        if who in before:
            found[who] = _guarded(needs[who], [guard for guard in waits_for if who not in closures[guard]])
        else:
            key = id(needs[who]), id(waits_for)
            if key not in known:
                known[key] = _guarded(needs[who], waits_for)
            found[who] = known[key]
    return found


def _guarded(needs: _Needs, guards: Iterable[_Guard]) -> _Needs:
    """Return the needs of an object, and what guards it."""
    reasons: dict[Identity, str] = {}
    for guard in guards:
        for owner, reason in guard.owners:
            # To be checked by it says more than to wait for its server.
            reasons[owner] = reason if reason != _LISTENS else reasons.get(owner, reason)
    return tuple(sorted({*needs, *(_Need(owner, reason) for owner, reason in reasons.items())}))


def _can_wait(rendered: Rendered, owners: Iterable[Rendered], *, is_custom: bool) -> bool:
    """Return whether an object can wait for what guards its kind.

    A layer never waits for a later one. What brings the guard up cannot wait for it: beside what it refers to, that
    is all of its component (a Service of metrics, say), custom resources aside.
    """
    return all(
        LAYERS.index(rendered.layer) >= LAYERS.index(owner.layer)
        and (is_custom or (rendered.component, rendered.layer) != (owner.component, owner.layer))
        for owner in owners
    )


def _closure(start: Iterable[Identity], needs: Mapping[Identity, _Needs]) -> set[Identity]:
    """Return some objects and all that they need, however indirectly."""
    found = set(start)
    new = list(found)
    while new:
        fresh = {need.dependency for need in needs.get(new.pop(), ())} - found
        found |= fresh
        new += fresh
    return found


def _behind(service: Rendered, workloads: Iterable[Identity], objects: Mapping[Identity, Rendered]) -> list[Identity]:
    """Return the workloads whose pods a Service selects."""
    wanted = map_at(service.manifest, "spec", "selector")
    found: list[Identity] = []
    for who in workloads:
        if who.namespace == service.identity.namespace and wanted:
            labels = map_at(objects[who].manifest, "spec", "template", "metadata", "labels")
            if wanted.items() <= labels.items():
                found.append(who)
    return found


def _plural(objects: Mapping[Identity, Rendered], crds: Mapping[tuple[str, str], Identity], who: Identity) -> str:
    """Return the resource of a kind. Built-in kinds follow the English rules, and Endpoints is a plural already."""
    if crd := crds.get((who.group, who.kind)):
        return text_at(objects[crd].manifest, "spec", "names", "plural")
    kind = who.kind.lower()
    if kind == "endpoints":
        return kind
    if kind.endswith("y"):
        return kind[:-1] + "ies"
    return kind + ("es" if kind.endswith("s") else "s")
