"""No credential stands in an object; what is found is told by its place alone, never by its value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpuyard.manifests import Rendered
from gpuyard.manifests.pods import pod_specs
from gpuyard.manifests.violations import below
from gpuyard.model.environment import Environment
from gpuyard.rules import Context, Hit, Rule
from policies.shared.declared import declared_jobs

_NAME = re.compile(r"(?:^|[_.-])(?:TOKEN|PASSWORD|PASSWD|SECRET|KEY)$", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\([A-Za-z_][A-Za-z0-9_]*\)")  # Kubernetes puts the value of that variable here.
_VALUES = [
    # (text that is always there, the whole pattern, what it is)
    ("AKIA", re.compile(r"\bAKIA[0-9A-Z]{12,}"), "an AWS access key"),
    ("ghp_", re.compile(r"\bghp_[A-Za-z0-9]{16,}"), "a GitHub token"),
    ("hf_", re.compile(r"\bhf_[A-Za-z0-9]{16,}"), "a Hugging Face token"),
    ("PRIVATE KEY-----", re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----"), "a private key"),
    ("://", re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:(?!\$)[^\s/@]+@"), "a URL with a password"),
]


def check(rendered: Rendered, context: Context) -> Iterator[Hit]:
    manifest = rendered.manifest
    if manifest["kind"] == "Secret":
        for field in ("data", "stringData"):
            if manifest.get(field):
                yield Hit(rendered, field, f"a Secret with its values\n{len(manifest[field])} in {field}", fix=_OUTSIDE)
    elif manifest["kind"] == "ConfigMap":
        data: Mapping[str, Any] = manifest.get("data") or {}
        for key, value in data.items():
            if found := _credential(key, value):
                yield Hit(rendered, below("", "data", key), f"a credential in the open\n{found}", fix=_OUTSIDE)
    for path, pod in pod_specs(manifest):
        for group in ("initContainers", "containers"):
            for index, container in enumerate(pod.get(group) or ()):
                yield from _container(rendered, container, (*path, group, index), context.environment)


def _container(
    rendered: Rendered, container: Mapping[str, Any], path: tuple[str | int, ...], environment: Environment
) -> Iterator[Hit]:
    for index, variable in enumerate(container.get("env") or ()):
        name = variable.get("name") or ""
        if found := _credential(name, variable.get("value")):
            message = f"a credential in the open\n{found}"
            job = declared_jobs(environment).get((rendered.identity.namespace, rendered.identity.name))
            origin = environment.origin("jobs", job.name, "env", name) if job else None
            yield Hit(rendered, below("", *path, "env", index, "value"), message, origin)
    for field in ("command", "args"):
        for index, word in enumerate(container.get(field) or ()):
            if found := _credential("", word):
                yield Hit(rendered, below("", *path, field, index), f"a credential in the open\n{found}", fix=_VARIABLE)


def _credential(name: str, value: Any) -> str:
    """Return what is wrong with a value, without a part of it in the text; "" when nothing is."""
    if not value or not isinstance(value, str):
        return ""
    for mark, pattern, what in _VALUES:
        if mark in value and pattern.search(value):
            return f"{name or 'it'} holds {what}"
    if name and _NAME.search(name) and not _REFERENCE.fullmatch(value):
        return f"{name} has a literal value"
    return ""


_OUTSIDE = "create a Secret outside of gpuyard and name it where it is used"
_VARIABLE = "put it into a Secret, that into an environment variable, and write $(NAME) here"

RULE = Rule(
    id="secret-not-inline",
    scope="object",
    severity="error",
    why="What stands in an object also stands in the repository, the diff, the state file and the cluster's audit log.",
    fix="keep it in a Secret and name that: env: {NAME: {secret: ..., key: ...}}",
    source="https://kubernetes.io/docs/concepts/security/secrets-good-practices/, "
    "https://media.defense.gov/2022/Aug/29/2003066362/-1/-1/0/CTR_KUBERNETES_HARDENING_GUIDANCE_1.2_20220829.PDF",
    check=check,
)
