"""What tests of add-ons share: a cluster that has some of them, and the locked upstream sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import components.gpu_operator
import components.monitoring
import components.training_operator
import components.volcano
from gpuyard.errors import Origin
from gpuyard.manifests import Rendered
from gpuyard.manifests.pods import pod_specs
from gpuyard.model.environment import Environment, Written
from gpuyard.model.registry import Registry
from gpuyard.sources import Cache, Lock, OpenSource, read_lock
from gpuyard.sources.lock import GoModule
from gpuyard.sources.pull import pull
from gpuyard.sources.store import module_dir
from infra.assemble import LOCK
from tests.components.clusters import cluster

REGISTRY = Registry()
for package in (components.gpu_operator, components.monitoring, components.training_operator, components.volcano):
    package.register(REGISTRY)


def with_addons(addons: dict[str, dict[str, Any]], **changes: Any) -> Environment:
    """Return the test cluster with these add-ons; each setting stands on a line of its own, from line 101."""
    environment = cluster(**changes)
    line = 100
    for name, settings in addons.items():
        model = REGISTRY.addons[name].settings
        assert model is not None
        environment.addons[name] = model.model_validate(settings)
        for path in [("addons", name), *(("addons", name, key) for key in settings)]:
            line += 1
            environment.written[path] = [Written(Origin("environment.yaml", line), None)]
    return environment


@cache
def lock() -> Lock:
    return read_lock(LOCK)


@cache
def source(name: str) -> OpenSource:
    """Return a locked source, fetched when it is not in the cache."""
    pull(lock(), [name])
    return Cache(lock()).open(name)


def rendered(environment: Environment, name: str) -> list[Rendered]:
    """Return what an add-on makes of an environment; parts that read a chart are left out."""
    settings = environment.addons[name]
    objects: list[Rendered] = []
    for part in REGISTRY.addons[name].parts:
        if part.source != "gpu-operator":
            more: list[Any] = [source(part.source)] if part.source else [lock()[part.pin]] if part.pin else []
            objects += part.function(environment, settings, *more)
    return objects


def manifests(objects: Iterable[Rendered], kind: str) -> dict[str, dict[str, Any]]:
    """Return the manifests of one kind by name."""
    return {one.identity.name: one.manifest for one in objects if one.identity.kind == kind}


def pods(objects: Iterable[Rendered]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (what, pod spec) for every pod template."""
    for one in objects:
        for _, pod in pod_specs(one.manifest):
            yield str(one.identity), pod


def images(objects: Iterable[Rendered]) -> list[str]:
    """Return every image of every container, sorted."""
    return sorted(container["image"] for _, pod in pods(objects) for container in pod["containers"])


def keys(value: Any) -> Iterator[str]:
    """Yield every key of nested maps, except names of properties in a schema."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield key
            for inner in child.values() if key == "properties" and isinstance(child, dict) else [child]:
                yield from keys(inner)
    elif isinstance(value, list):
        for child in value:
            yield from keys(child)


def assert_restricted(objects: Iterable[Rendered]) -> None:
    """Check what the restricted Pod Security level asks of pods. https://kubernetes.io/docs/concepts/security/"""
    found = 0
    for what, pod in pods(objects):
        found += 1
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, what
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys(), what
        assert all({"configMap", "emptyDir", "secret"} & volume.keys() for volume in pod.get("volumes", ())), what
        for container in pod["containers"]:
            security = pod["securityContext"] | container["securityContext"]
            assert security["runAsNonRoot"] is True, what
            assert security["allowPrivilegeEscalation"] is False, what
            assert security["capabilities"] == {"drop": ["ALL"]}, what
    assert found


def assert_sound(objects: list[Rendered]) -> None:
    """Check what holds for every add-on: namespaces, webhooks, Secrets, CRDs, and where things came from."""
    namespaces = manifests(objects, "Namespace")
    services = {(one.identity.namespace, one.identity.name) for one in objects if one.identity.kind == "Service"}
    cluster_kinds = ("Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "ClusterPolicy")
    webhooks = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    for one in objects:
        kind = one.identity.kind
        assert (one.identity.namespace == "") == (kind in (*cluster_kinds, *webhooks)), one.id
        assert not one.identity.namespace or one.identity.namespace in namespaces, one.id
        assert one.origin is not None, one.id
        assert not any("helm.sh/" in key for key in keys(one.manifest)), one.id
        if kind == "CustomResourceDefinition":
            assert (one.layer, one.lifecycle.retain) == ("crds", True), one.id
            schemas = [version["schema"]["openAPIV3Schema"] for version in one.manifest["spec"]["versions"]]
            assert "description" not in set(keys(schemas)), one.id
        if kind == "Secret":
            assert not {"data", "stringData"} & one.manifest.keys(), one.id
            assert one.lifecycle.ignore == ("data",), one.id
        if kind in webhooks:
            assert one.lifecycle.ignore == ("webhooks[*].clientConfig.caBundle",), one.id
            for webhook in one.manifest["webhooks"]:
                service = webhook["clientConfig"]["service"]
                assert (service["namespace"], service["name"]) in services, one.id
                assert "caBundle" not in webhook["clientConfig"], one.id


def pod_security(namespace: dict[str, Any]) -> dict[str, str]:
    """Return the labels of a Namespace without their common prefix."""
    prefix = "pod-security.kubernetes.io/"
    return {label.removeprefix(prefix): value for label, value in namespace["metadata"]["labels"].items()}


def level(name: str) -> dict[str, str]:
    """Return the Pod Security labels of one level on the test cluster."""
    modes = dict.fromkeys(("enforce", "audit", "warn"), name)
    return modes | {f"{mode}-version": "v1.34" for mode in modes}


Change = Callable[[dict[str, Any]], None]


class Altered:
    """A locked source in which upstream has changed one object."""

    def __init__(self, name: str, kind: str, object_name: str, change: Change) -> None:
        self._source, self._kind, self._name, self._change = source(name), kind, object_name, change
        self.version, self.images = self._source.version, self._source.images

    def manifests(self, path: str) -> list[dict[str, Any]]:
        found = self._source.manifests(path)
        for manifest in found:
            if (manifest["kind"], manifest.get("metadata", {}).get("name")) == (self._kind, self._name):
                self._change(manifest)
        return found

    def chart(self, **_: Any) -> list[dict[str, Any]]:
        raise AssertionError("is no chart")


def code(name: str, path: str) -> str:
    """Return a file of a locked Go module, or all Go files of a folder of it."""
    source(name)
    entry = lock()[name]
    assert isinstance(entry, GoModule)
    folder = module_dir(entry)
    assert folder is not None
    top = folder / path
    return "".join(file.read_text() for file in ([top] if top.is_file() else sorted(top.glob("*.go"))))
