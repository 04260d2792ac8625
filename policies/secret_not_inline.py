"""No credential stands in an object; what is found is told by its place alone, never by its value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from gpuyard.manifests import Rendered
from gpuyard.manifests.credentials import credential
from gpuyard.manifests.data import below
from gpuyard.manifests.pods import Path
from gpuyard.model.environment import Environment
from gpuyard.rules import Context, Hit, Rule
from policies.shared.declared import declared_jobs

_known = lru_cache(maxsize=65536)(credential)


def _credential(name: str, value: Any) -> str:
    """Return what is wrong with a value; jobs say the same words over and over."""
    return _known(name, value) if isinstance(value, str) else ""


def check(rendered: Rendered, context: Context) -> Iterator[Hit]:
    manifest = rendered.manifest
    if manifest["kind"] == "Secret":
        for field in ("data", "stringData"):
            if manifest.get(field):
                yield Hit(rendered, field, f"a Secret with its values\n{len(manifest[field])} in {field}", fix=_OUTSIDE)
    elif manifest["kind"] == "ConfigMap":
        data: Mapping[str, Any] = manifest.get("data") or {}
        for key, value in data.items():
            if found := credential(key, value):
                yield Hit(rendered, below("", "data", key), f"a credential in the open\n{found}", fix=_OUTSIDE)
    clean = context.once(_clean)
    for path, pod in rendered.pods:
        if id(pod) not in clean:
            found = list(_pod(rendered, pod, path, context.environment, clean))
            yield from found
            clean.update(() if found else [id(pod)])


def _clean(context: Context) -> set[int]:
    """Return the `id` of pods and variables that were looked at and found good; many objects share them."""
    return set()


def _pod(
    rendered: Rendered, pod: Mapping[str, Any], path: Path, environment: Environment, clean: set[int]
) -> Iterator[Hit]:
    for group in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(group) or ()):
            yield from _variables(rendered, container, (*path, group, index), environment, clean)
            yield from _words(rendered, container, (*path, group, index))


def _variables(
    rendered: Rendered, container: Mapping[str, Any], path: Path, environment: Environment, clean: set[int]
) -> Iterator[Hit]:
    for index, variable in enumerate(container.get("env") or ()):
        if id(variable) in clean:
            continue
        name = variable.get("name") or ""
        if found := _credential(name, variable.get("value")):
            message = f"a credential in the open\n{found}"
            job = declared_jobs(environment).get((rendered.identity.namespace, rendered.identity.name))
            origin = environment.origin("jobs", job.name, "env", name) if job else None
            yield Hit(rendered, below("", *path, "env", index, "value"), message, origin)
        else:
            clean.add(id(variable))


def _words(rendered: Rendered, container: Mapping[str, Any], path: Path) -> Iterator[Hit]:
    for field in ("command", "args"):
        for index, word in enumerate(container.get(field) or ()):
            if found := _credential("", word):
                yield Hit(rendered, below("", *path, field, index), f"a credential in the open\n{found}", fix=_VARIABLE)


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
