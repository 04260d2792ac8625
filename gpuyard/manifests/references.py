"""References from one object to another by name, and which of the things they name a cluster has without us."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from gpuyard.manifests.data import at, is_list, is_map, map_at, maps_at, text_at, texts_at
from gpuyard.manifests.identity import Identity, identity
from gpuyard.manifests.pods import Path, different, pod_specs

Target: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name of an object; the namespace is empty for kinds without one."""


class Reference(NamedTuple):
    """Where an object names another one, which, and why.

    needed: whether the object cannot do without; what is marked optional can.
    """

    path: Path
    target: Target
    reason: str
    needed: bool = True

    @property
    def kind(self) -> str:
        return self.target[0]

    @property
    def namespace(self) -> str:
        return self.target[1]

    @property
    def name(self) -> str:
        return self.target[2]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


RUNS_AS = "runs as"
"""The reason for which a pod names its ServiceAccount."""

_BUILT_IN: dict[str, frozenset[str]] = {
    "Namespace": frozenset({"default", "kube-system", "kube-public", "kube-node-lease"}),
    "ServiceAccount": frozenset({"default"}),
    "ConfigMap": frozenset({"kube-root-ca.crt"}),
    "ClusterRole": frozenset({"admin", "cluster-admin", "edit", "view"}),
    "Role": frozenset({"extension-apiserver-authentication-reader"}),
    "Queue": frozenset({"default", "root"}),
}
_BUILT_IN_PREFIXES: dict[str, tuple[str, ...]] = {
    "ClusterRole": ("system:",),
    "PriorityClass": ("system-",),
    "Role": ("system:",),
}
_VOLUME_CLAIMS: dict[str, Path] = {
    "PersistentVolumeClaim": ("spec",),
    "Prometheus": ("spec", "storage", "volumeClaimTemplate", "spec"),
}
_Fields = Mapping[str, tuple[str, str]]
"""The fields of a source that name an object: its kind, and the key of its name."""

_VOLUMES: _Fields = {
    "persistentVolumeClaim": ("PersistentVolumeClaim", "claimName"),
    "configMap": ("ConfigMap", "name"),
    "secret": ("Secret", "secretName"),
}
_PROJECTED: _Fields = {"configMap": ("ConfigMap", "name"), "secret": ("Secret", "name")}
_VARIABLES: _Fields = {"configMapKeyRef": ("ConfigMap", "name"), "secretKeyRef": ("Secret", "name")}
_ENVIRONMENTS: _Fields = {"configMapRef": ("ConfigMap", "name"), "secretRef": ("Secret", "name")}
_CONTAINERS = ("initContainers", "containers")
_NAMING = ("serviceAccountName", "priorityClassName", "imagePullSecrets", "volumes")
"""Fields of a pod that name things, beside its containers."""

_NAMESPACE = ("metadata", "namespace")
_GANG = ("spec", "runPolicy", "schedulingPolicy")
_WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_KINDS = frozenset(
    {"ClusterRoleBinding", "Queue", "RoleBinding", "ServiceAccount", "StatefulSet", *_VOLUME_CLAIMS, *_WEBHOOKS}
)
"""Kinds with references of their own."""


def is_built_in(reference: Reference) -> bool:
    """Return whether every cluster, or Volcano from its start, has the thing of its own accord."""
    prefixes = _BUILT_IN_PREFIXES.get(reference.kind, ())
    return reference.name in _BUILT_IN.get(reference.kind, ()) or reference.name.startswith(prefixes)


Pods = Sequence[tuple[Path, Mapping[str, Any]]]

Known = dict[tuple[Any, ...], list[Reference]]
"""What objects with pods name, by the parts of them that say it; good while all objects that it was read off exist."""


def references(who: Identity, manifest: Mapping[str, Any], pods: Pods, known: Known) -> list[Reference]:
    """Return what an object names, as Kubernetes and the training operators read it; of equal pods, from the first.

    pods:  those inside the object, see `pod_specs`.
    known: filled, and read: objects that share these parts, as the runs of a team do, have one list.
    """
    if not pods or who.kind in _KINDS:
        return _references(who, manifest, pods)
    key = *_parts(pods), id(at(manifest, *_GANG)), who.namespace
    found = known.get(key)
    if found is None:
        found = known[key] = _references(who, manifest, pods)
    return found


def _parts(pods: Pods) -> list[Any]:
    """Return what tells pods apart that name different things, or name them at different places."""
    parts: list[Any] = []
    last: Mapping[str, Any] = {}
    for path, pod in pods:
        if pod is last:
            continue
        last = pod
        parts += [path, *map(id, map(pod.get, _NAMING))]
        for group in _CONTAINERS:
            for index, container in maps_at(pod, group) if group in pod else ():
                parts += [group, index, id(container.get("envFrom"))]
                if is_list(variables := container.get("env")):
                    parts += [
                        (number, id(one)) for number, one in enumerate(variables) if is_map(one) and "valueFrom" in one
                    ]
    return parts


def _references(who: Identity, manifest: Mapping[str, Any], pods: Pods) -> list[Reference]:
    found: list[Reference] = []
    if who.namespace:
        found.append(Reference(_NAMESPACE, ("Namespace", "", who.namespace), "lives in the namespace"))
    for path, pod in different(pods):
        _of_pod(found, path, pod, who.namespace)
    if name := text_at(manifest, *_GANG, "queue"):
        found.append(Reference((*_GANG, "queue"), ("Queue", "", name), "waits in the queue"))
    if name := text_at(manifest, *_GANG, "priorityClass"):
        found.append(Reference((*_GANG, "priorityClass"), ("PriorityClass", "", name), "has the priority"))
    if who.kind in _KINDS:
        found += _of_kind(who, manifest)
    return found


def _of_kind(who: Identity, manifest: Mapping[str, Any]) -> Iterator[Reference]:
    """Yield what only some kinds name."""
    for path in _claims(manifest):
        if name := text_at(manifest, *path, "storageClassName"):
            yield Reference((*path, "storageClassName"), ("StorageClass", "", name), "is of the class")
    if who.kind == "Queue" and (name := text_at(manifest, "spec", "parent")):
        yield Reference(("spec", "parent"), ("Queue", "", name), "is below")
    if who.kind in ("RoleBinding", "ClusterRoleBinding"):
        role = text_at(manifest, "roleRef", "kind")
        if name := text_at(manifest, "roleRef", "name"):
            yield Reference(("roleRef", "name"), (role, who.namespace if role == "Role" else "", name), "grants")
        for index, subject in maps_at(manifest, "subjects"):
            name = text_at(subject, "name")
            if subject.get("kind") == "ServiceAccount" and name:
                # A binding for an account that does not exist yet is fine: it takes effect when the account comes.
                account = ("ServiceAccount", text_at(subject, "namespace") or who.namespace, name)
                yield Reference(("subjects", index, "name"), account, "is for", needed=False)
    if who.kind == "ServiceAccount":
        yield from _pull_secrets((), manifest, who.namespace)
    if who.kind in _WEBHOOKS:
        for index, webhook in maps_at(manifest, "webhooks"):
            service = map_at(webhook, "clientConfig", "service")
            if name := text_at(service, "name"):
                path = ("webhooks", index, "clientConfig", "service", "name")
                yield Reference(path, ("Service", text_at(service, "namespace"), name), "calls")


def _pull_secrets(path: Path, value: Mapping[str, Any], namespace: str) -> Iterator[Reference]:
    for index, secret in maps_at(value, "imagePullSecrets"):
        if name := text_at(secret, "name"):
            yield Reference(
                (*path, "imagePullSecrets", index, "name"), ("Secret", namespace, name), "pulls images with"
            )


def made_in_cluster(manifest: Mapping[str, Any]) -> Iterator[Identity]:
    """Yield Secrets that are not rendered because an object of the render makes them in the cluster.

    They are the Secret of a cert-manager Certificate, and one that a Job names in its arguments: certificate Jobs of
    charts take `--secret NAME` or `--secret-name=NAME`.
    """
    who = identity(manifest)
    if who.kind == "Certificate":
        yield Identity("", "Secret", who.namespace, text_at(manifest, "spec", "secretName"))
    if who.kind == "Job":
        for _, pod in pod_specs(manifest):
            for _, container in maps_at(pod, "containers"):
                words = [word for field in ("command", "args") for word in texts_at(container, field)]
                for flag, value in pairwise(" ".join(words).replace("=", " ").split()):
                    if flag.lstrip("-") in ("secret", "secret-name"):
                        yield Identity("", "Secret", who.namespace, value)


def _claims(manifest: Mapping[str, Any]) -> Iterator[Path]:
    if path := _VOLUME_CLAIMS.get(manifest["kind"]):
        yield path
    if manifest["kind"] == "StatefulSet":
        for index, _ in maps_at(manifest, "spec", "volumeClaimTemplates"):
            yield "spec", "volumeClaimTemplates", index, "spec"


def _of_pod(found: list[Reference], path: Path, pod: Mapping[str, Any], namespace: str) -> None:
    if name := text_at(pod, "serviceAccountName"):
        found.append(Reference((*path, "serviceAccountName"), ("ServiceAccount", namespace, name), RUNS_AS))
    if name := text_at(pod, "priorityClassName"):
        found.append(Reference((*path, "priorityClassName"), ("PriorityClass", "", name), "has the priority"))
    found += _pull_secrets(path, pod, namespace)
    for index, volume in maps_at(pod, "volumes"):
        found += _of_source((*path, "volumes", index), volume, namespace, _VOLUMES, "mounts")
        for number, source in maps_at(volume, "projected", "sources"):
            inside = (*path, "volumes", index, "projected", "sources", number)
            found += _of_source(inside, source, namespace, _PROJECTED, "mounts")
    for group in _CONTAINERS:
        for index, container in maps_at(pod, group):
            for number, variable in maps_at(container, "env"):
                inside = (*path, group, index, "env", number, "valueFrom")
                found += _of_source(inside, map_at(variable, "valueFrom"), namespace, _VARIABLES, "reads")
            for number, each in maps_at(container, "envFrom"):
                found += _of_source((*path, group, index, "envFrom", number), each, namespace, _ENVIRONMENTS, "reads")


def _of_source(
    path: Path, value: Mapping[str, Any], namespace: str, fields: _Fields, reason: str
) -> Iterator[Reference]:
    """Yield what a volume, or a source of variables, names; it has one of the fields."""
    for field in value:
        if field in fields:
            kind, key = fields[field]
            if name := text_at(value, field, key):
                needed = not at(value, field, "optional")
                yield Reference((*path, field, key), (kind, namespace, name), reason, needed)
