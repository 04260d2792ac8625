"""Network policies that let more through than before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuyard.diff.facts import Fact, Told, View
from gpuyard.diff.state import State
from gpuyard.manifests import Manifest
from gpuyard.manifests.data import is_map, map_at, maps_at, text_at, texts_at
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
    return [rule for _, rule in maps_at(policy, "spec", field)]


def _types(policy: Manifest) -> list[str]:
    """Return the directions in which a policy isolates; left out, ingress, and egress where it has rules for that."""
    return texts_at(policy, "spec", "policyTypes") or ["Ingress", *(["Egress"] if _rules(policy, "egress") else [])]


def _selector(policy: Manifest) -> Mapping[str, Any]:
    return map_at(policy, "spec", "podSelector")


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
    for field in (peers, "ports"):
        allowed, wanted = maps_at(old, field), maps_at(new, field)
        if allowed and not (wanted and all(any(one == other for _, other in allowed) for _, one in wanted)):
            return False
    return True


def _words(rule: Mapping[str, Any], peers: str) -> str:
    who = ", ".join(_peer(one) for _, one in maps_at(rule, peers)) or "everybody"
    ports = ", ".join(_port(one) for _, one in maps_at(rule, "ports")) or "every port"
    return f"{peers} {who} at {ports}"


def _peer(peer: Mapping[str, Any]) -> str:
    if block := text_at(peer, "ipBlock", "cidr"):
        return block
    parts = [
        f"{noun} {_labels(selector)}"
        for noun, selector in (("namespaces", peer.get("namespaceSelector")), ("pods", peer.get("podSelector")))
        if is_map(selector)
    ]
    return " and ".join(parts)


def _labels(selector: Mapping[str, Any]) -> str:
    parts = [f"{key}={value}" for key, value in map_at(selector, "matchLabels").items()]
    parts += [
        f"{text_at(one, 'key')} {text_at(one, 'operator')} {','.join(texts_at(one, 'values'))}".rstrip()
        for _, one in maps_at(selector, "matchExpressions")
    ]
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
