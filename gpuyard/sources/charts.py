"""Charts, expanded by the pinned Helm into plain objects: without a cluster, twice, and the two compared."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Manifest, identity
from gpuyard.manifests.data import is_list, is_map
from gpuyard.sources.lock import Chart, Lock
from gpuyard.sources.progress import Progress
from gpuyard.sources.store import file_of
from gpuyard.sources.upstream import cached, objects

HOOK = "helm.sh/hook"

_CLUSTER_SCOPED = frozenset(
    {
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("certificates.k8s.io", "ClusterTrustBundle"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("networking.k8s.io", "IPAddress"),
        ("networking.k8s.io", "IngressClass"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("node.k8s.io", "RuntimeClass"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "ResourceSlice"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("storage.k8s.io", "VolumeAttributesClass"),
    }
)
"""Built-in kinds without a namespace, of Kubernetes 1.36 (`kubectl api-resources --namespaced=false`)."""


@dataclass(frozen=True)
class Expansion:
    """What a chart expands to.

    hooks: `Kind namespace/name` of what Helm would run around an installation; nobody runs it here, so it is dropped.
    """

    objects: list[Manifest]
    hooks: list[str]


@dataclass(frozen=True)
class Inputs:
    """Everything that an expansion depends on beside the chart: nothing of this machine, nothing of a cluster."""

    release: str
    namespace: str
    kubernetes: str
    values: Mapping[str, Any]
    api_versions: tuple[str, ...] = ()


def expand(lock: Lock, chart: Chart, inputs: Inputs, progress: Progress) -> Expansion:
    """Expand a chart, CRDs included. The same inputs come from the cache.

    Raises InputError when Helm refuses, when two runs differ, and when a Secret with data comes out.
    """
    key = [chart.digest, lock["helm"].digest, asdict(inputs)]
    return Expansion(**cached("charts", key, lambda: asdict(_expand(lock, chart, inputs, progress))))


def _expand(lock: Lock, chart: Chart, inputs: Inputs, progress: Progress) -> Expansion:
    from gpuyard.sources.build import binaries

    helm = binaries(lock, ["helm"], progress)["helm"]
    first, second = (_run(helm, chart, inputs) for _ in range(2))
    kept = [manifest for manifest in first if HOOK not in _annotations(manifest)]
    _refuse_secrets(chart, kept)
    _compare(chart, kept, [manifest for manifest in second if HOOK not in _annotations(manifest)])
    hooks = sorted(str(identity(manifest)) for manifest in first if HOOK in _annotations(manifest))
    _set_namespaces(kept, inputs.namespace)
    return Expansion(kept, hooks)


def _annotations(manifest: Manifest) -> Mapping[str, Any]:
    return manifest["metadata"].get("annotations") or {}


def _run(helm: Path, chart: Chart, inputs: Inputs) -> list[Manifest]:
    from gpuyard.manifests.yaml.read import read_documents

    with tempfile.TemporaryDirectory() as home:
        values = Path(home, "values.json")
        values.write_text(json.dumps(inputs.values, sort_keys=True))
        # The stored file has a bare digest as its name; Helm takes it for an archive by its content.
        # A cluster always tells its patch version too, and templates may rely on that.
        kubernetes = inputs.kubernetes if inputs.kubernetes.count(".") == 2 else f"{inputs.kubernetes}.0"
        command = [str(helm), "template", inputs.release, str(file_of(chart.digest)), "--namespace", inputs.namespace,
                   "--include-crds", "--kube-version", kubernetes, "--values", str(values)]  # fmt: skip
        for version in inputs.api_versions:
            command += ["--api-versions", version]
        # Plugins, repositories and the cluster of the person who runs this are not inputs.
        environment = {"HOME": home, "PATH": os.defpath, "KUBECONFIG": os.devnull}
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        # Above the error stand log lines that say the same.
        told = f"\n{result.stderr}".partition("\nError: ")[2] or result.stderr
        raise _refused(chart, "Helm cannot expand the chart", told.strip())
    name = f"{chart.name} {chart.version}"
    return objects(read_documents(result.stdout, name), name)


def _refuse_secrets(chart: Chart, manifests: list[Manifest]) -> None:
    for manifest in manifests:
        if manifest["kind"] == "Secret" and (manifest.get("data") or manifest.get("stringData")):
            keys = ", ".join([*(manifest.get("data") or ()), *(manifest.get("stringData") or ())])
            raise _refused(
                chart,
                "the chart makes a Secret",
                f"{identity(manifest)} holds {keys}; no secret is ever in a render",
                "set the chart's value that names an existing Secret, or the one that turns this off",
            )


def _compare(chart: Chart, first: list[Manifest], second: list[Manifest]) -> None:
    """Raise InputError with the first field in which two expansions differ."""
    for one, other in zip(first, second, strict=False):
        path = _difference(one, other)
        if path is not None:
            raise _unstable(chart, f"{identity(one)}: {path}")
    if len(first) != len(second):
        raise _unstable(chart, f"{len(first)} objects, then {len(second)}")


def _difference(one: Any, other: Any, path: str = "") -> str | None:
    """Return the path of the first difference: "spec.ports[0].port"; None when there is none."""
    if is_map(one) and is_map(other):
        steps = [(f"{path}.{key}".lstrip("."), one.get(key), other.get(key)) for key in sorted({*one, *other})]
    elif is_list(one) and is_list(other) and len(one) == len(other):
        steps = [(f"{path}[{index}]", *pair) for index, pair in enumerate(zip(one, other, strict=True))]
    else:
        return None if one == other else path
    return next((found for step, a, b in steps if (found := _difference(a, b, step)) is not None), None)


def _unstable(chart: Chart, what: str) -> InputError:
    return _refused(
        chart,
        "two expansions of the chart differ",
        f"{what}\nthe chart makes something up (a password, a certificate, a time)",
        "set the value that this field comes from",
    )


def _set_namespaces(manifests: list[Manifest], namespace: str) -> None:
    """Write the release's namespace into namespaced objects that have none: Helm leaves that to the API server."""
    ours = {
        (manifest["spec"]["group"], manifest["spec"]["names"]["kind"])
        for manifest in manifests
        if manifest["kind"] == "CustomResourceDefinition" and manifest["spec"]["scope"] == "Cluster"
    }
    for manifest in manifests:
        who = identity(manifest)
        if not who.namespace and (who.group, who.kind) not in _CLUSTER_SCOPED | ours:
            manifest["metadata"]["namespace"] = namespace


def _refused(chart: Chart, title: str, detail: str, fix: str = "") -> InputError:
    return InputError(Problem(title, chart.origin, chart.name, detail, fix))
