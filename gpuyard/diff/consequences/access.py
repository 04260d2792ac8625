"""Who may do more than before: new verbs and resources of a role, new subjects of a binding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gpuyard.diff.facts import Fact, Risk, Told, View
from gpuyard.diff.state import State
from gpuyard.errors import listed
from gpuyard.manifests import Manifest
from gpuyard.manifests.data import at, map_at, maps_at, text_at, texts_at
from gpuyard.manifests.diff import Change


class Grant(NamedTuple):
    """One verb on one resource. name: of the only object it is for; "" for all. A URL path stands as the resource."""

    group: str
    resource: str
    verb: str
    name: str = ""

    def covers(self, other: Grant) -> bool:
        return (
            self.group in ("*", other.group)
            and (self.resource == other.resource or (self.resource == "*" and not other.resource.startswith("/")))
            and self.verb in ("*", other.verb)
            and self.name in ("", other.name)
        )


_DANGEROUS: tuple[tuple[frozenset[str], frozenset[str]], ...] = (
    # (resources, verbs): who has one of these can come to more than was granted. "*" is one of each.
    (frozenset({"*"}), frozenset({"create", "update", "patch", "delete", "get", "list", "watch"})),
    (frozenset({"secrets"}), frozenset({"get", "list", "watch"})),
    (frozenset({"roles", "clusterroles"}), frozenset({"escalate", "bind"})),
    (frozenset({"users", "groups", "serviceaccounts"}), frozenset({"impersonate"})),
    (frozenset({"serviceaccounts/token", "nodes/proxy", "persistentvolumes"}), frozenset({"create", "get"})),
    (
        frozenset({"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}),
        frozenset({"create", "update", "patch"}),
    ),
)


def _role(change: Change, view: View) -> Iterator[Told]:
    if change.before is None or change.after is None:
        return
    old = set(_grants(change.before.manifest))
    more = [one for one in _grants(change.after.manifest) if not any(known.covers(one) for known in old)]
    if more:
        holders = _holders(change.after.manifest, view.after)
        held = f"held by {listed(holders)}" if holders else "nobody of this render holds it"
        yield Told(_risk(more) if holders else "low", f"grants more: {_words(more)}; {held}")


def _binding(change: Change, view: View) -> Iterator[Told]:
    manifest = change.rendered.manifest
    if change.after is None or change.identity.namespace in view.new_namespaces:
        return
    role = map_at(manifest, "roleRef")
    same_role = change.before is not None and at(change.before.manifest, "roleRef") == role
    old = set(_subjects(change.before.manifest)) if change.before and same_role else set[str]()
    new = [one for one in _subjects(manifest) if one not in old]
    if new:
        kind, name = text_at(role, "kind"), text_at(role, "name")
        grants = _granted(kind, name, change.identity.namespace, view.after)
        risk = "high" if name == "cluster-admin" else _risk(grants)
        yield Told(risk, f"gives {listed(new)} the {kind} {name}{_most(grants)}")


def _most(grants: Iterable[Grant]) -> str:
    dangerous = [one for one in grants if _is_dangerous(one)]
    return f", with {_words(dangerous)}" if dangerous else ""


def _grants(role: Manifest) -> Iterator[Grant]:
    for _, rule in maps_at(role, "rules"):
        for verb in texts_at(rule, "verbs"):
            for path in texts_at(rule, "nonResourceURLs"):
                yield Grant("", path, verb)
            for group in texts_at(rule, "apiGroups"):
                for resource in texts_at(rule, "resources"):
                    for name in texts_at(rule, "resourceNames") or ("",):
                        yield Grant(group, resource, verb, name)


def _granted(kind: str, name: str, namespace: str, state: State) -> list[Grant]:
    where = namespace if kind == "Role" else ""
    return [
        grant
        for one in state.by_kind.get(kind, ())
        if one["metadata"]["name"] == name and one["metadata"].get("namespace", "") == where
        for grant in _grants(one)
    ]


def _holders(role: Manifest, state: State) -> list[str]:
    namespace = role["metadata"].get("namespace", "")
    found: list[str] = []
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for binding in state.by_kind.get(kind, ()):
            wanted = text_at(binding, "roleRef", "kind"), text_at(binding, "roleRef", "name")
            if wanted == (role["kind"], role["metadata"]["name"]) and (
                role["kind"] == "ClusterRole" or binding["metadata"].get("namespace", "") == namespace
            ):
                found += _subjects(binding)
    return list(dict.fromkeys(found))


def _subjects(binding: Manifest) -> list[str]:
    """Return `Group vision`, `ServiceAccount monitoring/prometheus`."""
    return [
        f"{text_at(one, 'kind')} {'/'.join(filter(None, (text_at(one, 'namespace'), text_at(one, 'name'))))}"
        for _, one in maps_at(binding, "subjects")
    ]


def _risk(grants: Iterable[Grant]) -> Risk:
    return "high" if any(_is_dangerous(one) for one in grants) else "medium"


def _is_dangerous(grant: Grant) -> bool:
    return any(
        (grant.resource == "*" or grant.resource in resources) and (grant.verb == "*" or grant.verb in verbs)
        for resources, verbs in _DANGEROUS
    )


def _words(grants: Iterable[Grant]) -> str:
    """Return `create, delete on pods; get on secrets of core`."""
    by_resource: dict[str, list[str]] = {}
    for one in grants:
        group = f".{one.group}" if one.group else ""
        name = f" {one.name}" if one.name else ""
        by_resource.setdefault(f"{one.resource}{group}{name}", []).append(one.verb)
    by_verbs: dict[str, list[str]] = {}
    for resource, verbs in by_resource.items():
        by_verbs.setdefault(listed(set(verbs)), []).append(resource)
    return "; ".join(f"{verbs} on {listed(resources, limit=6)}" for verbs, resources in sorted(by_verbs.items()))


_SOURCE = "https://kubernetes.io/docs/concepts/security/rbac-good-practices/"

FACTS = (
    Fact("role", frozenset({"Role", "ClusterRole"}), _SOURCE, _role),
    Fact("role-binding", frozenset({"RoleBinding", "ClusterRoleBinding"}), _SOURCE, _binding),
)
