"""What the API server lets in: webhooks, kinds, Pod Security levels, priorities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuyard.diff.facts import Fact, Told, View
from gpuyard.errors import listed
from gpuyard.manifests import Rendered
from gpuyard.manifests.data import at, map_at, maps_at, text_at, texts_at
from gpuyard.manifests.diff import Change

_LEVELS = ("privileged", "baseline", "restricted")
_ENFORCE = "pod-security.kubernetes.io/enforce"


def _webhooks(change: Change, view: View) -> Iterator[Told]:
    old, new = _by_name(change.before), _by_name(change.after)
    for name, webhook in new.items():
        former = old.get(name)
        service = map_at(webhook, "clientConfig", "service")
        who = f"Service {service.get('namespace')}/{service.get('name')}" if service else "its server"
        strict = webhook.get("failurePolicy", "Fail") == "Fail"
        down = f"{'refused' if strict else 'not checked'} while {who} does not answer"
        if former is None:
            yield Told("medium" if strict else "low", f"{name} checks {_what(webhook)} from now on; {down}")
        elif former.get("failurePolicy", "Fail") != webhook.get("failurePolicy", "Fail"):
            yield Told("medium" if strict else "high", f"{name}: {_what(webhook)} are {down}")
        elif _what(former) != _what(webhook):
            yield Told("medium", f"{name} checks {_what(webhook)}; before, {_what(former)}")
    for name, webhook in old.items():
        if name not in new:
            yield Told("medium", f"{name} no longer checks {_what(webhook)}")


def _by_name(rendered: Rendered | None) -> dict[str, Mapping[str, Any]]:
    return {text_at(one, "name"): one for _, one in maps_at(rendered.manifest, "webhooks")} if rendered else {}


def _what(webhook: Mapping[str, Any]) -> str:
    return listed({resource for _, rule in maps_at(webhook, "rules") for resource in texts_at(rule, "resources")})


def _kinds(change: Change, view: View) -> Iterator[Told]:
    if change.before is None:
        return
    kind = text_at(change.before.manifest, "spec", "names", "kind")
    if change.after is None:
        if change.before.lifecycle.retain:
            yield Told("low", f"stays in the cluster with every {kind}; nobody upgrades it any more")
        else:
            yield Told("high", f"every {kind} of every namespace is deleted")
        return
    old, new = (
        [text_at(one, "name") for _, one in maps_at(side.manifest, "spec", "versions") if one.get("served")]
        for side in (change.before, change.after)
    )
    if gone := [name for name in old if name not in new]:
        yield Told("high", f"{listed(gone)} of {kind} is no longer served: clients that ask for it fail")


def _pod_security(change: Change, view: View) -> Iterator[Told]:
    if change.before is None or change.after is None:
        return
    old, new = (
        at(one.manifest, "metadata", "labels", _ENFORCE) or "privileged" for one in (change.before, change.after)
    )
    if old == new or old not in _LEVELS or new not in _LEVELS:
        return
    if _LEVELS.index(new) < _LEVELS.index(old):
        yield Told("high", f"Pod Security goes down from {old} to {new}: pods here may do more on their nodes")
    else:
        yield Told("medium", f"new pods here that need more than {new} are refused; those that run stay")


def _priority(change: Change, view: View) -> Iterator[Told]:
    if change.before and change.after and change.touched("value"):
        old, new = change.before.manifest.get("value"), change.after.manifest.get("value")
        yield Told("medium", f"pods that exist keep their priority of {old}; new ones get {new}")
    elif change.before and change.after is None:
        yield Told("medium", "pods that exist keep their priority; new ones that name it are refused")
    if change.after and change.touched("globalDefault") and change.after.manifest.get("globalDefault"):
        yield Told("medium", "new pods that name no priority get this one")


_REFERENCE = "https://kubernetes.io/docs/"

FACTS = (
    Fact(
        "webhook",
        frozenset({"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}),
        _REFERENCE + "reference/access-authn-authz/extensible-admission-controllers/#failure-policy",
        _webhooks,
    ),
    Fact(
        "crd",
        frozenset({"CustomResourceDefinition"}),
        _REFERENCE + "tasks/extend-kubernetes/custom-resources/custom-resource-definitions/",
        _kinds,
    ),
    Fact(
        "pod-security",
        frozenset({"Namespace"}),
        _REFERENCE + "concepts/security/pod-security-admission/",
        _pod_security,
    ),
    Fact(
        "priority-class",
        frozenset({"PriorityClass"}),
        _REFERENCE + "concepts/scheduling-eviction/pod-priority-preemption/",
        _priority,
    ),
)
