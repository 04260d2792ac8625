"""Volumes: deleted or kept, larger or smaller; and namespaces, which take everything in them along."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuyard.diff.facts import Fact, Told, View, count
from gpuyard.manifests import Manifest
from gpuyard.manifests.data import at
from gpuyard.manifests.diff import Change
from gpuyard.manifests.quantity import parse_quantity

_SIZE = ("spec", "resources", "requests", "storage")


def _claim(change: Change, view: View) -> Iterator[Told]:
    if change.before is None:
        return
    name: str = at(change.before.manifest, "spec", "storageClassName") or ""
    if change.after is None:
        kept = at(_class(view.before.by_kind.get("StorageClass", ()), name), "reclaimPolicy") == "Retain"
        if change.identity.namespace in view.lost_namespaces:
            yield Told("medium" if kept else "high", "is deleted with its namespace")
        elif change.before.lifecycle.retain:
            yield Told("low", "the volume stays in the cluster with its data; nobody manages it any more")
        elif kept:
            yield Told("medium", f"the claim is deleted; its data stay, because class {name} has reclaimPolicy Retain")
        else:
            yield Told("high", "the volume is deleted with its data")
        return
    if not change.touched(*_SIZE):
        return
    old, new = (parse_quantity(at(one.manifest, *_SIZE) or 0) for one in (change.before, change.after))
    expands = at(_class(view.after.by_kind.get("StorageClass", ()), name), "allowVolumeExpansion")
    if new == old:
        return  # another way to write the same size
    if new < old:
        yield Told("medium", "the deploy fails: a volume never becomes smaller")
    elif expands is False:
        yield Told("medium", f"the deploy fails: class {name} does not allow volumes to grow")
    else:
        yield Told("low", "the volume grows; what mounts it goes on")


def _class(classes: Iterable[Manifest], name: str) -> Manifest | None:
    return next((one for one in classes if one["metadata"]["name"] == name), None)


def _storage_class(change: Change, view: View) -> Iterator[Told]:
    if change.verb == "replaced":
        yield Told("low", "volumes that exist keep what they were made with")
    elif change.verb == "removed":
        claims = [
            one
            for one in view.after.by_kind.get("PersistentVolumeClaim", ())
            if at(one, "spec", "storageClassName") == change.identity.name
        ]
        if claims:
            yield Told("medium", f"{count(len(claims), 'claim')} of this class can no longer get a volume")


def _namespace(change: Change, view: View) -> Iterator[Told]:
    if change.before is None or change.after is not None:
        return
    inside = [one for one in view.before.objects if one.identity.namespace == change.identity.name]
    claims = sum(one.manifest["kind"] == "PersistentVolumeClaim" for one in inside)
    runs = sum(one.layer == "jobs" and one.manifest["kind"] != "PersistentVolumeClaim" for one in inside)
    what = " and ".join(count(number, noun) for number, noun in ((claims, "volume claim"), (runs, "run")) if number)
    everything = f"everything in it is deleted, what is retained too{': ' if what else ''}{what}"
    if change.identity.name in view.lost_namespaces:
        yield Told("high", everything)
    elif change.before.lifecycle.protect:
        yield Told("medium", f"once it is unprotected, {everything}")


FACTS = (
    Fact(
        "volume-claim",
        frozenset({"PersistentVolumeClaim"}),
        "https://kubernetes.io/docs/concepts/storage/persistent-volumes/#reclaiming",
        _claim,
    ),
    Fact(
        "storage-class",
        frozenset({"StorageClass"}),
        "https://kubernetes.io/docs/concepts/storage/storage-classes/",
        _storage_class,
    ),
    Fact(
        "namespace",
        frozenset({"Namespace"}),
        "https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/",
        _namespace,
    ),
)
