"""What depends on what, read off the objects themselves: the order to apply and delete them, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpuyard.errors import InputError, Problem
from gpuyard.manifests.data import at
from gpuyard.manifests.references import references
from gpuyard.manifests.rendered import LAYERS, Identity, Rendered

_FIRST = ("Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass", "ResourceQuota", "LimitRange",
          "ServiceAccount", "Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "ClusterRole",
          "ClusterRoleBinding", "Role", "RoleBinding", "NetworkPolicy", "Service", "Deployment")  # fmt: skip
_RANK = {kind: rank for rank, kind in enumerate(_FIRST)}
_WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


@dataclass(frozen=True, slots=True)
class Edge:
    """`dependent` needs `dependency` to be there first, because of `reason`."""

    dependent: Identity
    dependency: Identity
    reason: str


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
        self.edges: list[Edge] = sorted(
            set(_edges(self.objects)), key=lambda edge: (edge.dependent, edge.dependency, edge.reason)
        )
        self.dependencies: dict[Identity, list[Identity]] = {}
        for edge in self.edges:
            known = self.dependencies.setdefault(edge.dependent, [])
            if edge.dependency not in known:
                known.append(edge.dependency)

    def order(self) -> list[Rendered]:
        """Return all objects in the order to apply them; reversed, it is the order to delete them.

        Raises InputError with the cycle when the objects need each other.
        """
        done: dict[Identity, bool] = {}
        ordered: list[Rendered] = []
        for start in sorted(self.objects, key=lambda one: _place(self.objects[one])):
            # A stack of our own: chains of objects can be longer than Python's recursion limit.
            stack: list[tuple[Identity, Iterator[Identity]]] = []
            if start not in done:
                done[start] = False
                stack.append((start, iter(self._sorted_dependencies(start))))
            while stack:
                current, rest = stack[-1]
                following = next(rest, None)
                if following is None:
                    stack.pop()
                    done[current] = True
                    ordered.append(self.objects[current])
                elif following not in done:
                    done[following] = False
                    stack.append((following, iter(self._sorted_dependencies(following))))
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

    def _sorted_dependencies(self, one: Identity) -> list[Identity]:
        return sorted(self.dependencies.get(one, ()), key=lambda other: _place(self.objects[other]))


def _place(rendered: Rendered) -> tuple[int, int, Identity]:
    """Where an object stands when nothing else decides: layer, usual order of kinds, name."""
    who = rendered.identity
    return LAYERS.index(rendered.layer), _RANK.get(who.kind, len(_RANK)), who


def _edges(objects: Mapping[Identity, Rendered]) -> Iterator[Edge]:
    names: dict[tuple[str, str, str], Identity] = {(who.kind, who.namespace, who.name): who for who in objects}
    crds = {
        (rendered.manifest["spec"]["group"], rendered.manifest["spec"]["names"]["kind"]): who
        for who, rendered in objects.items()
        if who.kind == "CustomResourceDefinition"
    }
    guards = _guards(objects, names)
    for who, rendered in objects.items():
        if (who.group, who.kind) in crds:
            yield Edge(who, crds[who.group, who.kind], "is of the kind")
        for owner in _guarding(guards, who.group, _plural(objects, crds, who)):
            if owner != who and not _same_owner(objects[owner], rendered):
                yield Edge(who, owner, "is checked by the webhook")
        for reference in references(rendered.manifest):
            other = names.get(reference.target)
            if other and other != who:
                yield Edge(who, other, reference.reason)


def _guards(
    objects: Mapping[Identity, Rendered], names: Mapping[tuple[str, str, str], Identity]
) -> dict[tuple[str, str], list[Identity]]:
    """Return what must be there before objects of (group, plural): webhook configurations and their Deployments."""
    guards: dict[tuple[str, str], list[Identity]] = {}
    for who, rendered in objects.items():
        if who.kind not in _WEBHOOKS:
            continue
        for webhook in rendered.manifest.get("webhooks") or ():
            owners = [who]
            service = at(webhook, "clientConfig", "service")
            if service and ("Service", service.get("namespace", ""), service["name"]) in names:
                backend = objects[names["Service", service.get("namespace", ""), service["name"]]]
                owners += _behind(backend, objects)
            for rule in webhook.get("rules") or ():
                for group in rule.get("apiGroups") or ():
                    for resource in rule.get("resources") or ():
                        known = guards.setdefault((group, resource.split("/")[0]), [])
                        known += [owner for owner in owners if owner not in known]
    return guards


def _guarding(guards: Mapping[tuple[str, str], list[Identity]], group: str, plural: str) -> list[Identity]:
    """Return who guards a resource; a webhook may name it by a wildcard."""
    named = ((group, plural), (group, "*"), ("*", plural), ("*", "*"))
    return [owner for key in named for owner in guards.get(key, ())]


def _behind(service: Rendered, objects: Mapping[Identity, Rendered]) -> list[Identity]:
    """Return the Deployments whose pods a Service selects."""
    wanted: Mapping[str, str] = service.manifest["spec"].get("selector") or {}
    found: list[Identity] = []
    for who, rendered in objects.items():
        if who.kind == "Deployment" and who.namespace == service.identity.namespace and wanted:
            labels: Mapping[str, str] = rendered.manifest["spec"]["template"]["metadata"].get("labels") or {}
            if wanted.items() <= labels.items():
                found.append(who)
    return found


def _plural(objects: Mapping[Identity, Rendered], crds: Mapping[tuple[str, str], Identity], who: Identity) -> str:
    """Return the resource of a kind. Built-in kinds follow the English rules, and Endpoints is a plural already."""
    if crd := crds.get((who.group, who.kind)):
        return objects[crd].manifest["spec"]["names"]["plural"]
    kind = who.kind.lower()
    if kind == "endpoints":
        return kind
    if kind.endswith("y"):
        return kind[:-1] + "ies"
    return kind + ("es" if kind.endswith("s") else "s")


def _same_owner(one: Rendered, other: Rendered) -> bool:
    """A webhook's own component brings it up; it cannot wait for itself."""
    return one.component == other.component and one.layer == other.layer
