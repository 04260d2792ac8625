"""Network policies that let more through than before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuyard.diff.facts import Fact, Told, View
from gpuyard.diff.state import State
from gpuyard.manifests import Manifest
from gpuyard.manifests.diff import Change

_PEERS = {"Ingress": "from", "Egress": "to"}


def _policy(change: Change, view: View) -> Iterator[Told]:
    if change.identity.namespace in view.new_namespaces | view.lost_namespaces:
        return
    before = change.before.manifest if change.before else None
    after = change.after.manifest if change.after else None
    for direction in _PEERS:
        if before and direction in _types(before):
            yield from _stops_isolating(before, after, direction, view)
        if after and direction in _types(after):
            yield from _lets_through(before, after, direction, view)


def _stops_isolating(before: Manifest, after: Manifest | None, direction: str, view: View) -> Iterator[Told]:
    if after and direction in _types(after) and _selector(after) == _selector(before):
        return
    field = direction.lower()
    if not _isolated(before, direction, view.after):
        where = before["metadata"].get("namespace")
        yield Told("high", f"{field} of the pods that it selected in {where} is open to everybody")
    elif after is None:
        yield Told("low", f"{field} that it allowed is refused from now on")


def _lets_through(before: Manifest | None, after: Manifest, direction: str, view: View) -> Iterator[Told]:
    field, peers = direction.lower(), _PEERS[direction]
    isolated = before is not None and direction in _types(before)
    old = _rules(before, field) if before and isolated else []
    new = [rule for rule in _rules(after, field) if not any(_covers(one, rule, peers) for one in old)]
    more = f"lets more through: {field} {'; '.join(_words(rule, peers) for rule in new)}"
    if isolated or (before is None and _isolated(after, direction, view.before)):
        yield from [Told("high" if isolated else "medium", more)] if new else []
    else:
        yield Told("medium", f"{field} of the pods that it selects is refused, except what a policy allows")


def _rules(policy: Manifest, field: str) -> list[Mapping[str, Any]]:
    return policy["spec"].get(field) or []


def _types(policy: Manifest) -> list[str]:
    """Return the directions in which a policy isolates; left out, ingress, and egress where it has rules for that."""
    spec = policy["spec"]
    return spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _selector(policy: Manifest) -> Mapping[str, Any]:
    return policy["spec"].get("podSelector") or {}


def _isolated(policy: Manifest, direction: str, state: State) -> bool:
    """Return whether another policy of a render isolates all pods that this one selects, as far as can be told."""
    return any(
        other["metadata"]["name"] != policy["metadata"]["name"]
        and other["metadata"].get("namespace") == policy["metadata"].get("namespace")
        and direction in _types(other)
        and _selector(other) in ({}, _selector(policy))
        for other in state.by_kind.get("NetworkPolicy", ())
    )


def _covers(old: Mapping[str, Any], new: Mapping[str, Any], peers: str) -> bool:
    """Return whether the older rule lets through all that the newer one does. A rule without a list allows all."""
    return all(
        not old.get(field) or (new.get(field) and all(one in old[field] for one in new[field]))
        for field in (peers, "ports")
    )


def _words(rule: Mapping[str, Any], peers: str) -> str:
    who = ", ".join(_peer(one) for one in rule.get(peers) or ()) or "everybody"
    ports = ", ".join(_port(one) for one in rule.get("ports") or ()) or "every port"
    return f"{peers} {who} at {ports}"


def _peer(peer: Mapping[str, Any]) -> str:
    if block := peer.get("ipBlock"):
        return str(block["cidr"])
    parts = [
        f"{noun} {_labels(selector)}"
        for noun, selector in (("namespaces", peer.get("namespaceSelector")), ("pods", peer.get("podSelector")))
        if selector is not None
    ]
    return " and ".join(parts)


def _labels(selector: Mapping[str, Any]) -> str:
    labels: Mapping[str, str] = selector.get("matchLabels") or {}
    expressions: list[Mapping[str, Any]] = selector.get("matchExpressions") or []
    parts = [f"{key}={value}" for key, value in labels.items()]
    parts += [f"{one['key']} {one['operator']} {','.join(one.get('values') or [])}".rstrip() for one in expressions]
    return " ".join(parts) or "of any label"


def _port(port: Mapping[str, Any]) -> str:
    end = f"-{port['endPort']}" if "endPort" in port else ""
    return f"{port.get('protocol', 'TCP')} {port.get('port', 'any')}{end}"


FACTS = (
    Fact(
        "network-policy",
        frozenset({"NetworkPolicy"}),
        "https://kubernetes.io/docs/concepts/services-networking/network-policies/",
        _policy,
    ),
)
