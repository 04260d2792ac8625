"""`render --for argocd|flux`: what a GitOps controller needs beside the objects, and on them.

The same for both: definitions first and never removed, the platform in as few waves as it needs, runs last, created
once and from then on left alone, as a deployment by Pulumi does. Shapes follow the definitions of Argo CD 3.6
(manifests/crds), Flux's kustomize-controller 1.10 and its source-controller 1.10 (config/crd/bases).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuyard.cli.repository import Location
from gpuyard.cli.tree import object_paths
from gpuyard.manifests import LAYERS, Layer, Manifest, Rendered
from gpuyard.manifests.graph import Graph
from gpuyard.manifests.waves import waves

Entry = tuple[str, Manifest]
"""The path of a file without its suffix, and the object in it."""

_FLUX_ANNOTATION = "kustomize.toolkit.fluxcd.io"
CONTROLLERS = ("argocd/", "flux/")
"""Folders of a tree with the objects that are for the controller alone."""

_ANNOTATIONS = frozenset(
    {
        "argocd.argoproj.io/compare-options",
        "argocd.argoproj.io/sync-options",
        "argocd.argoproj.io/sync-wave",
        f"{_FLUX_ANNOTATION}/prune",
        f"{_FLUX_ANNOTATION}/ssa",
    }
)
"""All that is put on objects for a controller."""

_AWAITED = ("Deployment", "StatefulSet", "DaemonSet", "Job")


def argocd_tree(environment: str, cluster: str, objects: Sequence[Rendered], location: Location) -> list[Entry]:
    """Return the objects with their sync waves, and an Application for each layer.

    cluster: the name under which Argo CD knows the cluster; no other is touched. Applications wait for each other only
    under a parent Application and with the health check for Applications that Argo CD's documentation gives
    (operator-manual/health.md); without, the later ones are retried until the earlier ones are there.
    """
    wave = waves(Graph(objects))
    entries: list[Entry] = []
    for number, layer in enumerate(LAYERS):
        if not (of_layer := [one for one in objects if one.layer == layer]):
            continue
        for rendered, path in zip(of_layer, object_paths(of_layer), strict=True):
            annotations = _argocd_annotations(rendered, wave[rendered.identity])
            entries.append((f"{layer}/{path}", _annotated(rendered.manifest, annotations)))
        name = stack_name(environment, layer)
        application = _application(name, number, cluster, location, layer, of_layer)
        entries.append((f"argocd/application-{name}", application))
    return entries


def flux_tree(environment: str, objects: Sequence[Rendered], location: Location) -> list[Entry]:
    """Return the objects, a Kustomization for each wave of each layer, and the GitRepository they come from."""
    wave = waves(Graph(objects))
    entries: list[Entry] = [(f"flux/gitrepository-{environment}", _git_repository(environment, location))]
    before = ""
    for layer in LAYERS:
        of_layer = [one for one in objects if one.layer == layer]
        for number in sorted({wave[one.identity] for one in of_layer}):
            stage = [one for one in of_layer if wave[one.identity] == number]
            suffix = f"-{number + 1}" if number else ""
            folder, name = layer + suffix, stack_name(environment, layer) + suffix
            for rendered, path in zip(stage, object_paths(stage), strict=True):
                entries.append((f"{folder}/{path}", _annotated(rendered.manifest, _flux_annotations(rendered))))
            kustomization = _kustomization(name, environment, _below(location, folder), before, stage)
            entries.append((f"flux/kustomization-{name}", kustomization))
            before = name
    return entries


def stack_name(environment: str, layer: Layer) -> str:
    """Return what the stack of a layer is called, in Pulumi as here: prod-crds, prod, prod-jobs."""
    return environment if layer == "platform" else f"{environment}-{layer}"


def _is_run(rendered: Rendered) -> bool:
    """Return whether an object is made once for a run and never touched again."""
    return rendered.layer == "jobs" and rendered.lifecycle.replace == "never"


def _is_kept(rendered: Rendered) -> bool:
    """Return whether an object stays in the cluster when it leaves the render."""
    return rendered.lifecycle.retain or rendered.lifecycle.protect


def _annotated(manifest: Manifest, annotations: Mapping[str, str]) -> Manifest:
    if not annotations:
        return manifest
    metadata: Manifest = manifest["metadata"]
    own: dict[str, str] = metadata.get("annotations") or {}
    return {**manifest, "metadata": {**metadata, "annotations": {**own, **annotations}}}


def without_annotations(manifest: Manifest) -> Manifest:
    """Return an object of a tree as it was before it got the annotations for its controller."""
    metadata: Manifest = manifest["metadata"]
    own: dict[str, str] = metadata.get("annotations") or {}
    if _ANNOTATIONS.isdisjoint(own):
        return manifest
    kept = {key: value for key, value in own.items() if key not in _ANNOTATIONS}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**manifest, "metadata": {**rest, "annotations": kept} if kept else rest}


def _argocd_annotations(rendered: Rendered, wave: int) -> dict[str, str]:
    annotations: dict[str, str] = {}
    if _is_run(rendered):
        # A run that left the render keeps its record; the Application is in sync all the same.
        annotations["argocd.argoproj.io/compare-options"] = "IgnoreExtraneous"
    if _is_kept(rendered):
        annotations["argocd.argoproj.io/sync-options"] = "Prune=false,Delete=false"
    if wave:
        annotations["argocd.argoproj.io/sync-wave"] = str(wave)
    return annotations


def _application(
    name: str, number: int, cluster: str, location: Location, layer: Layer, objects: Sequence[Rendered]
) -> Manifest:
    ignored = _ignored(objects)
    options = ["ServerSideApply=true", "ApplyOutOfSyncOnly=true"]
    if layer != "crds":
        # The definitions are another Application's: on an empty cluster they may come a moment later.
        options.append("SkipDryRunOnMissingResource=true")
    if ignored:
        options.append("RespectIgnoreDifferences=true")
    spec: Manifest = {
        "project": "default",
        "source": {
            "repoURL": location.url,
            "targetRevision": location.revision,
            "path": _below(location, layer),
            "directory": {"recurse": True},
        },
        "destination": {"name": cluster},
        "syncPolicy": {
            "automated": {"prune": layer == "platform", "selfHeal": layer != "jobs"},
            "syncOptions": options,
            # Until the layers before are there: about 20 minutes.
            "retry": {"limit": 10, "backoff": {"duration": "10s", "factor": 2, "maxDuration": "3m"}},
        },
    }
    if ignored:
        spec["ignoreDifferences"] = ignored
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": name,
            "namespace": "argocd",
            "annotations": {"argocd.argoproj.io/sync-wave": str(number)},
        },
        "spec": spec,
    }


def _ignored(objects: Iterable[Rendered]) -> list[Manifest]:
    """Return which fields controllers write: one entry for a kind whose objects agree, else one for each object."""
    by_kind: dict[tuple[str, str], list[Rendered]] = {}
    for rendered in objects:
        by_kind.setdefault((rendered.identity.group, rendered.identity.kind), []).append(rendered)
    entries: list[Manifest] = []
    for (group, kind), of_kind in sorted(by_kind.items()):
        head: Manifest = {**({"group": group} if group else {}), "kind": kind}
        if len({one.lifecycle.ignore for one in of_kind}) == 1:
            if paths := of_kind[0].lifecycle.ignore:
                entries.append({**head, "jqPathExpressions": [_jq(path) for path in paths]})
            continue
        for one in of_kind:
            if paths := one.lifecycle.ignore:
                who = {key: value for key in ("name", "namespace") if (value := getattr(one.identity, key))}
                entries.append({**head, **who, "jqPathExpressions": [_jq(path) for path in paths]})
    return entries


def _jq(path: str) -> str:
    """Return a path of a lifecycle as jq writes it; `[]?` takes no offence at a list that is missing."""
    return "." + path.replace("[*]", "[]?")


def _flux_annotations(rendered: Rendered) -> dict[str, str]:
    annotations: dict[str, str] = {}
    if _is_kept(rendered):
        annotations[f"{_FLUX_ANNOTATION}/prune"] = "disabled"
    if _is_run(rendered):
        annotations[f"{_FLUX_ANNOTATION}/ssa"] = "IfNotPresent"
    return annotations


def _git_repository(environment: str, location: Location) -> Manifest:
    is_reference = location.revision.startswith("refs/")
    spec: dict[str, Any] = {
        "interval": "1m",
        "url": location.url,
        "ref": {"name" if is_reference else "branch": location.revision},
    }
    if location.url.startswith("ssh://"):
        # Flux takes no ssh repository without one; `flux create secret git` makes it.
        spec["secretRef"] = {"name": environment}
    return {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": environment, "namespace": "flux-system"},
        "spec": spec,
    }


def _kustomization(name: str, repository: str, path: str, before: str, objects: Sequence[Rendered]) -> Manifest:
    layer = objects[0].layer
    spec: dict[str, Any] = {
        "interval": "10m",
        "retryInterval": "1m",
        "timeout": "10m",
        "sourceRef": {"kind": "GitRepository", "name": repository},
        "path": f"./{path}",
        "prune": layer == "platform",
    }
    if before:
        spec["dependsOn"] = [{"name": before}]
    # Not all of them: a volume that binds with its first pod would hold up everything behind it.
    awaited = [one for one in objects if one.lifecycle.wait and one.identity.kind in _AWAITED]
    if layer == "crds":
        spec["wait"] = True
    elif awaited:
        spec["healthChecks"] = [
            {
                "apiVersion": one.manifest["apiVersion"],
                "kind": one.identity.kind,
                "name": one.identity.name,
                "namespace": one.identity.namespace,
            }
            for one in awaited
        ]
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": name, "namespace": "flux-system"},
        "spec": spec,
    }


def _below(location: Location, folder: str) -> str:
    return f"{location.path}/{folder}" if location.path else folder
