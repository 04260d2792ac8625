"""Apply a render by server-side apply, in dependency order, waiting where the next object needs the one before."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from gpuyard.errors import InputError, Problem
from gpuyard.manifests import LAYERS, Identity, Layer, Manifest, Rendered
from gpuyard.manifests.data import has, is_list, unshared
from gpuyard.manifests.graph import Graph
from gpuyard.sandbox.api import Api, ApiError, has_condition
from gpuyard.sandbox.inventory import Entry, Inventory, read_inventory
from gpuyard.sandbox.pod_status import failure, is_made_from
from gpuyard.sandbox.state import Progress

_PATIENCE = 90
_THREADS = 4


@dataclass
class Applied:
    """What one apply did. `kept` were in the inventory, left the render, and stay because their lifecycle says so."""

    applied: list[Identity] = field(default_factory=list[Identity])
    untouched: list[Identity] = field(default_factory=list[Identity])
    deleted: list[Identity] = field(default_factory=list[Identity])
    kept: list[Identity] = field(default_factory=list[Identity])


def apply_objects(
    api: Api,
    objects: Sequence[Rendered],
    *,
    environment: str,
    progress: Progress,
    layers: Sequence[Layer] = LAYERS,
    only: Callable[[Rendered], bool] | None = None,
) -> Applied:
    """Apply the objects of some layers and delete what left the render.

    objects: the whole render; dependencies are read from all of it. layers: whose objects are applied and pruned.
    only: applies those it says yes to, and deletes nothing.
    Raises InputError for a refused object, one that does not become ready, or a cluster that belongs to another engine.
    """
    graph = Graph(objects)
    chosen = [one for one in graph.order() if one.layer in layers and (only is None or only(one))]
    before = read_inventory(api, environment)
    before.add(chosen)
    before.write(api)
    work = _Work(api, graph, progress)
    for layer in layers:
        of_layer = [one for one in chosen if one.layer == layer]
        for batch in batches(of_layer, graph):
            work.apply(batch)
        work.wait_for_layer(of_layer)
        if of_layer:
            progress(f"{layer}: {len(of_layer)} objects applied")
    if only is None:
        _prune(api, before, {one.identity for one in chosen}, layers, work.done)
    return work.done


def batches(ordered: Iterable[Rendered], graph: Graph) -> Iterator[list[Rendered]]:
    """Yield runs of neighbours of one kind of which none needs another."""
    batch: list[Rendered] = []
    for rendered in ordered:
        needs = graph.dependencies.get(rendered.identity, ())
        same_kind = batch and batch[-1].identity.kind == rendered.identity.kind
        if batch and (not same_kind or any(one.identity in needs for one in batch)):
            yield batch
            batch = []
        batch.append(rendered)
    if batch:
        yield batch


def dry_run(api: Api, objects: Iterable[Rendered]) -> list[tuple[Rendered, str]]:
    """Return the objects that the API server refuses and why, without changing anything; namespaces must exist.

    A kind whose CRD is not installed is refused as well, with "the server serves no kind".
    """

    def refused(rendered: Rendered) -> tuple[Rendered, str] | None:
        try:
            api.apply(rendered.manifest, dry_run=True)
        except ApiError as error:
            return rendered, error.message
        return None

    with ThreadPoolExecutor(_THREADS) as pool:
        return [found for found in pool.map(refused, list(objects)) if found]


@dataclass
class _Work:
    api: Api
    graph: Graph
    progress: Progress
    ready: set[Identity] = field(default_factory=set[Identity])
    done: Applied = field(default_factory=Applied)

    def apply(self, batch: Sequence[Rendered]) -> None:
        """Apply objects that do not need each other, several at a time: large CRDs keep a server busy for a while."""
        for rendered in batch:
            for needed in self.graph.dependencies.get(rendered.identity, ()):
                self.wait(self.graph.objects[needed])
        with ThreadPoolExecutor(_THREADS) as pool:
            sent = list(pool.map(self._apply_one, batch))
        for rendered, is_applied in zip(batch, sent, strict=True):
            (self.done.applied if is_applied else self.done.untouched).append(rendered.identity)

    def _apply_one(self, rendered: Rendered) -> bool:
        """Apply an object; a run that exists is not touched, and False returned."""
        manifest = rendered.manifest
        life = rendered.lifecycle
        is_run = rendered.layer == "jobs" and life.replace == "never"
        live = self.api.get_like(manifest) if is_run or life.ignore else None
        if live and is_run:
            return False
        self._send(rendered, keep_live(manifest, live, life.ignore) if live else manifest)
        return True

    def _send(self, rendered: Rendered, manifest: Manifest) -> None:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                self.api.apply(manifest)
            except ApiError as error:
                # A webhook of the same component that is on its way up; any other refusal is final.
                if error.status == 500 and "failed calling webhook" in error.message and time.monotonic() < end:
                    time.sleep(0.2)
                    continue
                raise InputError(
                    Problem("the API server refuses an object", rendered.origin, str(rendered.identity), error.message)
                ) from error
            return

    def wait(self, rendered: Rendered) -> None:
        """Wait until an object is ready to be built upon, once."""
        who = rendered.identity
        if who in self.ready or who.kind not in ("CustomResourceDefinition", "Deployment", "Queue"):
            return
        since = time.time()
        while not _is_ready(live := self.api.get_like(rendered.manifest) or {}):
            if who.kind == "Deployment":
                self._check_pods(rendered, live, since)
            if time.time() > since + _PATIENCE:
                told = "\n".join([f"after {_PATIENCE} s its status is {live.get('status')}", *self._told_by_pods(live)])
                raise InputError(Problem("an object does not become ready", rendered.origin, str(who), told))
            time.sleep(0.1)
        self.ready.add(who)

    def wait_for_layer(self, objects: Iterable[Rendered]) -> None:
        """Wait for what a later layer, or a person, takes for granted: CRDs, Deployments and queues."""
        for rendered in objects:
            self.wait(rendered)

    def _check_pods(self, rendered: Rendered, live: Manifest, since: float) -> None:
        """Raise InputError for a controller that failed to run as its Deployment says now."""
        for pod in self._pods(live):
            # In whole seconds, so one of the second in which we began may be from before.
            failed = failure(pod)
            if failed and failed.when >= since and self._is_of(pod, live):
                raise InputError(Problem(failed.title, rendered.origin, str(rendered.identity), failed.detail))

    def _is_of(self, pod: Manifest, deployment: Manifest) -> bool:
        """Return whether a pod has the template that its Deployment has now."""
        owner: str = pod["metadata"]["ownerReferences"][0]["name"]
        replica_set = self.api.get("apps/v1", "ReplicaSet", owner, pod["metadata"]["namespace"])
        return bool(replica_set and is_made_from(replica_set, deployment))

    def _told_by_pods(self, live: Manifest) -> list[str]:
        """Return what the conditions of a Deployment's pods say."""
        return [
            f"pod {pod['metadata']['name']}: {condition['message']}"
            for pod in self._pods(live)
            for condition in pod.get("status", {}).get("conditions") or ()
            if condition["status"] == "False" and condition.get("message")
        ]

    def _pods(self, live: Manifest) -> list[Manifest]:
        if live.get("kind") != "Deployment":
            return []
        labels: dict[str, str] = live["spec"]["selector"].get("matchLabels") or {}
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        return self.api.list("v1", "Pod", live["metadata"]["namespace"], selector)


def _is_ready(live: Manifest) -> bool:
    if live.get("kind") == "Queue":
        return live.get("status", {}).get("state") == "Open"
    if live.get("kind") == "Deployment":
        # As `kubectl rollout status`: "Available" alone may still be about the pods of the template before.
        status: Manifest = live.get("status") or {}
        wanted = live["spec"].get("replicas", 1)
        is_seen = status.get("observedGeneration", 0) >= live["metadata"]["generation"]
        counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
        return is_seen and counts == [wanted] * 3
    return has_condition(live, "Established")


def _prune(api: Api, inventory: Inventory, wanted: set[Identity], layers: Sequence[Layer], done: Applied) -> None:
    """Delete what left the render, the last applied first; protected objects and unfinished runs stay."""
    for who, entry in reversed(list(inventory.entries.items())):
        if who in wanted or entry.layer not in layers:
            continue
        if entry.protect or (entry.run and not _finished(api, entry)):
            done.kept.append(who)
        elif entry.retain and not entry.run:
            done.kept.append(who)
            del inventory.entries[who]
        else:
            api.delete(entry.api_version, who.kind, who.name, who.namespace)
            done.deleted.append(who)
            del inventory.entries[who]
    if done.deleted or done.kept:
        inventory.write(api)


def _finished(api: Api, entry: Entry) -> bool:
    who = entry.identity
    live = api.get(entry.api_version, who.kind, who.name, who.namespace) or {}
    return not live or has_condition(live, "Succeeded", "Failed")


def keep_live(manifest: Manifest, live: Manifest, paths: Iterable[str]) -> Manifest:
    """Return the manifest with the fields at some paths as they are in the cluster.

    paths: `webhooks[*].clientConfig.caBundle`. A field that was never rendered is not sent: it stays the controller's.
    """
    kept = unshared(manifest)
    for path in paths:
        steps: list[str | int] = []
        for name, index in re.findall(r"([^.\[\]]+)|\[(\*|\d+)\]", path):
            steps.append(name or (index if index == "*" else int(index)))
        _copy(kept, live, steps)
    return kept


def _copy(into: Any, live: Any, steps: list[str | int]) -> None:
    step, rest = steps[0], steps[1:]
    if step == "*":
        for index in range(len(into) if is_list(into) else 0):
            _copy(into, live, [index, *rest])
    elif has(into, step):
        if not has(live, step):
            del into[step]
        elif rest:
            _copy(into[step], live[step], rest)
        else:
            into[step] = live[step]
