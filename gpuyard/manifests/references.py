"""References from one object to another by name, and which of the things they name a cluster has without us."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from gpuyard.manifests.data import at
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
        parts += [path, pod.get("serviceAccountName"), pod.get("priorityClassName")]
        parts += [id(pod.get("imagePullSecrets")), id(pod.get("volumes"))]
        for group in ("initContainers", "containers"):
            containers: Sequence[Mapping[str, Any]] = pod.get(group) or ()
            for container in containers:
                variables: Sequence[Mapping[str, Any]] = container.get("env") or ()
                parts += [group, id(container.get("envFrom"))]
                parts += [(number, id(one)) for number, one in enumerate(variables) if "valueFrom" in one]
    return parts


def _references(who: Identity, manifest: Mapping[str, Any], pods: Pods) -> list[Reference]:
    found: list[Reference] = []
    if who.namespace:
        found.append(Reference(_NAMESPACE, ("Namespace", "", who.namespace), "lives in the namespace"))
    for path, pod in different(pods):
        _of_pod(found, path, pod, who.namespace)
    gang = at(manifest, *_GANG)
    if gang:
        if name := gang.get("queue"):
            found.append(Reference((*_GANG, "queue"), ("Queue", "", name), "waits in the queue"))
        if name := gang.get("priorityClass"):
            found.append(Reference((*_GANG, "priorityClass"), ("PriorityClass", "", name), "has the priority"))
    if who.kind in _KINDS:
        found += _of_kind(who, manifest)
    return found


def _of_kind(who: Identity, manifest: Mapping[str, Any]) -> Iterator[Reference]:
    """Yield what only some kinds name."""
    for path in _claims(manifest):
        if name := at(manifest, *path, "storageClassName"):
            yield Reference((*path, "storageClassName"), ("StorageClass", "", name), "is of the class")
    if who.kind == "Queue" and (name := at(manifest, "spec", "parent")):
        yield Reference(("spec", "parent"), ("Queue", "", name), "is below")
    if who.kind in ("RoleBinding", "ClusterRoleBinding"):
        role = manifest["roleRef"]
        namespace = who.namespace if role["kind"] == "Role" else ""
        yield Reference(("roleRef", "name"), (role["kind"], namespace, role["name"]), "grants")
        for index, subject in enumerate(manifest.get("subjects") or ()):
            if subject["kind"] == "ServiceAccount":
                # A binding for an account that does not exist yet is fine: it takes effect when the account comes.
                path = ("subjects", index, "name")
                account, place = subject["name"], subject.get("namespace", who.namespace)
                yield Reference(path, ("ServiceAccount", place, account), "is for", needed=False)
    if who.kind == "ServiceAccount":
        for index, secret in enumerate(manifest.get("imagePullSecrets") or ()):
            yield Reference(
                ("imagePullSecrets", index, "name"), ("Secret", who.namespace, secret["name"]), "pulls images with"
            )
    if who.kind in _WEBHOOKS:
        for index, webhook in enumerate(manifest.get("webhooks") or ()):
            if service := at(webhook, "clientConfig", "service"):
                path = ("webhooks", index, "clientConfig", "service", "name")
                yield Reference(path, ("Service", service["namespace"], service["name"]), "calls")


def made_in_cluster(manifest: Mapping[str, Any]) -> Iterator[Identity]:
    """Yield Secrets that are not rendered because an object of the render makes them in the cluster.

    They are the Secret of a cert-manager Certificate, and one that a Job names in its arguments: certificate Jobs of
    charts take `--secret NAME` or `--secret-name=NAME`.
    """
    who = identity(manifest)
    if who.kind == "Certificate":
        yield Identity("", "Secret", who.namespace, manifest["spec"]["secretName"])
    if who.kind == "Job":
        for _, pod in pod_specs(manifest):
            for container in pod["containers"]:
                words = " ".join([*(container.get("command") or ()), *(container.get("args") or ())])
                arguments = words.replace("=", " ").split()
                for flag, value in pairwise(arguments):
                    if flag.lstrip("-") in ("secret", "secret-name"):
                        yield Identity("", "Secret", who.namespace, value)


def _claims(manifest: Mapping[str, Any]) -> Iterator[Path]:
    if path := _VOLUME_CLAIMS.get(manifest["kind"]):
        yield path
    if manifest["kind"] == "StatefulSet":
        for index in range(len(at(manifest, "spec", "volumeClaimTemplates") or ())):
            yield "spec", "volumeClaimTemplates", index, "spec"


def _of_pod(found: list[Reference], path: Path, pod: Mapping[str, Any], namespace: str) -> None:
    if name := pod.get("serviceAccountName"):
        found.append(Reference((*path, "serviceAccountName"), ("ServiceAccount", namespace, name), RUNS_AS))
    if name := pod.get("priorityClassName"):
        found.append(Reference((*path, "priorityClassName"), ("PriorityClass", "", name), "has the priority"))
    for index, secret in enumerate(pod.get("imagePullSecrets") or ()):
        inside = (*path, "imagePullSecrets", index, "name")
        found.append(Reference(inside, ("Secret", namespace, secret["name"]), "pulls images with"))
    for index, volume in enumerate(pod.get("volumes") or ()):
        _of_source(found, (*path, "volumes", index), volume, namespace, _VOLUMES, "mounts")
        for number, source in enumerate(at(volume, "projected", "sources") or ()) if "projected" in volume else ():
            inside = (*path, "volumes", index, "projected", "sources", number)
            _of_source(found, inside, source, namespace, _PROJECTED, "mounts")
    for group in ("initContainers", "containers"):
        containers: Sequence[Mapping[str, Any]] = pod.get(group) or ()
        for index, container in enumerate(containers):
            variables: Sequence[Mapping[str, Any]] = container.get("env") or ()
            sources: Sequence[Mapping[str, Any]] = container.get("envFrom") or ()
            for number, variable in enumerate(variables):
                if "valueFrom" in variable and (source := variable["valueFrom"]):
                    inside = (*path, group, index, "env", number, "valueFrom")
                    _of_source(found, inside, source, namespace, _VARIABLES, "reads")
            for number, each in enumerate(sources):
                _of_source(found, (*path, group, index, "envFrom", number), each, namespace, _ENVIRONMENTS, "reads")


def _of_source(
    found: list[Reference], path: Path, value: Mapping[str, Any], namespace: str, fields: _Fields, reason: str
) -> None:
    """Add what a volume, or a source of variables, names; it has one of the fields."""
    for field, source in value.items():
        if field in fields and source:
            kind, key = fields[field]
            if name := source.get(key):
                needed = not source.get("optional")
                found.append(Reference((*path, field, key), (kind, namespace, name), reason, needed))
