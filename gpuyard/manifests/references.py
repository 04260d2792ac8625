"""References from one object to another by name, and which of the things they name a cluster has without us."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from gpuyard.manifests.data import at
from gpuyard.manifests.pods import first_equals, pod_specs
from gpuyard.manifests.rendered import Identity, identity

Step = str | int


class Reference(NamedTuple):
    """Where an object names another one, which, and why. `namespace` is empty for kinds without one.

    needed: whether the object cannot do without; what is marked optional can.
    """

    path: tuple[Step, ...]
    kind: str
    namespace: str
    name: str
    reason: str
    needed: bool = True

    @property
    def target(self) -> tuple[str, str, str]:
        return self.kind, self.namespace, self.name

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


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
_VOLUME_CLAIMS: dict[str, tuple[Step, ...]] = {
    "PersistentVolumeClaim": ("spec",),
    "Prometheus": ("spec", "storage", "volumeClaimTemplate", "spec"),
}
_GANG = ("spec", "runPolicy", "schedulingPolicy")
_WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def is_built_in(reference: Reference) -> bool:
    """Return whether every cluster, or Volcano from its start, has the thing of its own accord."""
    prefixes = _BUILT_IN_PREFIXES.get(reference.kind, ())
    return reference.name in _BUILT_IN.get(reference.kind, ()) or reference.name.startswith(prefixes)


def references(manifest: Mapping[str, Any]) -> Iterator[Reference]:
    """Yield what an object names, as Kubernetes and the training operators read it."""
    who = identity(manifest)
    if who.namespace:
        yield Reference(("metadata", "namespace"), "Namespace", "", who.namespace, "lives in the namespace")
    pods = list(pod_specs(manifest))
    of_pods: list[list[Reference]] = []
    for (path, pod), first in zip(pods, first_equals([pod for _, pod in pods]), strict=True):
        of_pods.append(of_pods[first] if first < len(of_pods) else list(_of_pod((), pod, who.namespace)))
        for one in of_pods[-1]:
            yield Reference(path + one.path, *one[1:])
    for path in _claims(manifest):
        if name := at(manifest, *path, "storageClassName"):
            yield Reference((*path, "storageClassName"), "StorageClass", "", name, "is of the class")
    if who.kind == "Queue" and (name := at(manifest, "spec", "parent")):
        yield Reference(("spec", "parent"), "Queue", "", name, "is below")
    gang = at(manifest, *_GANG)
    if name := at(gang, "queue"):
        yield Reference((*_GANG, "queue"), "Queue", "", name, "waits in the queue")
    if name := at(gang, "priorityClass"):
        yield Reference((*_GANG, "priorityClass"), "PriorityClass", "", name, "has the priority")
    if who.kind in ("RoleBinding", "ClusterRoleBinding"):
        role = manifest["roleRef"]
        namespace = who.namespace if role["kind"] == "Role" else ""
        yield Reference(("roleRef", "name"), role["kind"], namespace, role["name"], "grants")
        for index, subject in enumerate(manifest.get("subjects") or ()):
            if subject["kind"] == "ServiceAccount":
                # A binding for an account that does not exist yet is fine: it takes effect when the account comes.
                path = ("subjects", index, "name")
                account, place = subject["name"], subject.get("namespace", who.namespace)
                yield Reference(path, "ServiceAccount", place, account, "is for", needed=False)
    if who.kind == "ServiceAccount":
        for index, secret in enumerate(manifest.get("imagePullSecrets") or ()):
            yield Reference(
                ("imagePullSecrets", index, "name"), "Secret", who.namespace, secret["name"], "pulls images with"
            )
    if who.kind in _WEBHOOKS:
        for index, webhook in enumerate(manifest.get("webhooks") or ()):
            if service := at(webhook, "clientConfig", "service"):
                path = ("webhooks", index, "clientConfig", "service", "name")
                yield Reference(path, "Service", service["namespace"], service["name"], "calls")


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


def _claims(manifest: Mapping[str, Any]) -> Iterator[tuple[Step, ...]]:
    if path := _VOLUME_CLAIMS.get(manifest["kind"]):
        yield path
    if manifest["kind"] == "StatefulSet":
        for index in range(len(at(manifest, "spec", "volumeClaimTemplates") or ())):
            yield "spec", "volumeClaimTemplates", index, "spec"


def _of_pod(path: tuple[Step, ...], pod: Mapping[str, Any], namespace: str) -> Iterator[Reference]:
    if name := pod.get("serviceAccountName"):
        yield Reference((*path, "serviceAccountName"), "ServiceAccount", namespace, name, "runs as")
    if name := pod.get("priorityClassName"):
        yield Reference((*path, "priorityClassName"), "PriorityClass", "", name, "has the priority")
    for index, secret in enumerate(pod.get("imagePullSecrets") or ()):
        yield Reference(
            (*path, "imagePullSecrets", index, "name"), "Secret", namespace, secret["name"], "pulls images with"
        )
    for index, volume in enumerate(pod.get("volumes") or ()):
        yield from _of_volume((*path, "volumes", index), volume, namespace)
    for group in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(group) or ()):
            yield from _of_container((*path, group, index), container, namespace)


def _of_volume(path: tuple[Step, ...], volume: Mapping[str, Any], namespace: str) -> Iterator[Reference]:
    if name := at(volume, "persistentVolumeClaim", "claimName"):
        yield Reference(
            (*path, "persistentVolumeClaim", "claimName"), "PersistentVolumeClaim", namespace, name, "mounts"
        )
    yield from _named(path, volume, "configMap", "name", "ConfigMap", namespace, "mounts")
    yield from _named(path, volume, "secret", "secretName", "Secret", namespace, "mounts")
    for index, source in enumerate(at(volume, "projected", "sources") or ()):
        inside = (*path, "projected", "sources", index)
        yield from _named(inside, source, "configMap", "name", "ConfigMap", namespace, "mounts")
        yield from _named(inside, source, "secret", "name", "Secret", namespace, "mounts")


def _of_container(path: tuple[Step, ...], container: Mapping[str, Any], namespace: str) -> Iterator[Reference]:
    for index, variable in enumerate(container.get("env") or ()):
        if source := variable.get("valueFrom"):
            inside = (*path, "env", index, "valueFrom")
            yield from _named(inside, source, "configMapKeyRef", "name", "ConfigMap", namespace, "reads")
            yield from _named(inside, source, "secretKeyRef", "name", "Secret", namespace, "reads")
    for index, source in enumerate(container.get("envFrom") or ()):
        inside = (*path, "envFrom", index)
        yield from _named(inside, source, "configMapRef", "name", "ConfigMap", namespace, "reads")
        yield from _named(inside, source, "secretRef", "name", "Secret", namespace, "reads")


def _named(
    path: tuple[Step, ...], value: Mapping[str, Any], field: str, key: str, kind: str, namespace: str, reason: str
) -> Iterator[Reference]:
    source = value.get(field)
    if source and source.get(key):
        needed = not source.get("optional")
        yield Reference((*path, field, key), kind, namespace, source[key], reason, needed)
