"""What a deploy does to any object: it is replaced, stays, is protected, or is left to its controller."""

from __future__ import annotations

from collections.abc import Iterator

from gpuyard.diff.facts import Fact, Told, View
from gpuyard.errors import listed
from gpuyard.manifests.data import below
from gpuyard.manifests.diff import Change

_OWN_WORDS = frozenset({"CustomResourceDefinition", "PersistentVolumeClaim"})
"""Kinds whose own facts say what stays."""


def is_run(change: Change) -> bool:
    """Return whether the object is a run of a training job: nothing that changes in its spec reaches it."""
    return change.rendered.layer == "jobs" and "spec" in change.rendered.lifecycle.ignore


def _replaced(change: Change, view: View) -> Iterator[Told]:
    if change.verb != "replaced" or change.before is None:
        return
    if change.before.identity != change.identity:
        yield Told("low", f"takes the place of {change.before.identity.name}")
        return
    reasons = [f"{listed(str(one) for one in change.immutable)} cannot change"] if change.immutable else []
    reasons += [f"its CRD refuses {below('', *one.steps) or 'this'}: {one.message}" for one in change.refused]
    why = "; ".join(reasons)
    if change.before.lifecycle.replace == "never":
        yield Told("medium", f"the deploy fails: {why}, and this object is never replaced")
    elif change.before.lifecycle.protect:
        yield Told("medium", f"the deploy stops: {why}, and this object is protected from deletion")
    else:
        yield Told("medium", f"is deleted and created again, because {why}")


def _unknown(change: Change, view: View) -> Iterator[Told]:
    for one in change.unknown:
        where = below("", *one.steps) or "this"
        yield Told("low", f"its CRD may refuse {where}: a rule cannot be run here, {one.reason}: {one.rule}")


def _removed(change: Change, view: View) -> Iterator[Told]:
    if change.verb != "removed" or change.before is None:
        return
    if change.before.lifecycle.protect:
        yield Told("medium", "protected: the deploy stops until somebody unprotects it")
    elif change.identity.namespace in view.lost_namespaces:
        return
    elif change.before.lifecycle.retain and change.identity.kind not in _OWN_WORDS and not is_run(change):
        yield Told("low", "stays in the cluster; nobody manages it any more")


def _unprotected(change: Change, view: View) -> Iterator[Told]:
    for field in change.touched("lifecycle"):
        if field.before is True and field.path == ("lifecycle", "protect"):
            yield Told("medium", "is no longer protected: a later change of a file can delete it")
        elif field.before is True:
            yield Told("medium", "no longer stays in the cluster when it leaves the render")


def _ignored(change: Change, view: View) -> Iterator[Told]:
    if change.verb == "changed" and not is_run(change) and all(one.ignored for one in change.fields):
        yield Told("low", "a deploy leaves this alone: a controller writes it")


_PULUMI = "https://www.pulumi.com/docs/iac/concepts/options/"

FACTS = (
    Fact("immutable", frozenset(), "gpuyard/manifests/immutable.py, gpuyard/manifests/transitions.py", _replaced),
    Fact("rule-not-run", frozenset(), "gpuyard/manifests/transitions.py", _unknown),
    Fact("removed", frozenset(), _PULUMI + "protect/, " + _PULUMI + "retainondelete/", _removed),
    Fact("unprotected", frozenset(), _PULUMI + "protect/", _unprotected),
    Fact("ignored", frozenset(), _PULUMI + "ignorechanges/", _ignored),
)
