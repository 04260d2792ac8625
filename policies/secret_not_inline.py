"""No credential stands in an object; what is found is told by its place alone, never by its value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from gpuyard.manifests import Rendered
from gpuyard.manifests.credentials import credential
from gpuyard.manifests.data import below, is_map, maps_at
from gpuyard.manifests.pods import Path
from gpuyard.rules import Context, Hit, Rule
from policies.shared.declared import declared_jobs

_credential = lru_cache(maxsize=65536)(credential)
"""Jobs say the same words over and over."""


def check(rendered: Rendered, context: Context) -> Iterator[Hit]:
    if rendered.manifest["kind"] in ("ConfigMap", "Secret"):
        yield from _data(rendered)
    for path, pod in rendered.pods:
        good = context.once(_good)
        if id(pod) not in good:
            found = [
                hit
                for group in ("initContainers", "containers")
                for index, container in maps_at(pod, group)
                for hit in _container(rendered, container, (*path, group, index), context, good)
            ]
            yield from found
            good.update(() if found else [id(pod)])


def _good(context: Context) -> set[int]:
    """Return the `id` of pods and variables that were looked at and found good; many objects share them."""
    return set()


def _data(rendered: Rendered) -> Iterator[Hit]:
    manifest = rendered.manifest
    if manifest["kind"] == "Secret":
        for field in ("data", "stringData"):
            if manifest.get(field):
                yield Hit(rendered, field, f"a Secret with its values\n{len(manifest[field])} in {field}", fix=_OUTSIDE)
        return
    data: Mapping[str, Any] = manifest.get("data") or {}
    for key, value in data.items():
        if found := credential(key, value):
            yield Hit(rendered, below("", "data", key), f"a credential in the open\n{found}", fix=_OUTSIDE)


def _container(
    rendered: Rendered, container: Mapping[str, Any], path: Path, context: Context, good: set[int]
) -> list[Hit]:
    hits: list[Hit] = []
    variables: Sequence[Any] = container.get("env") or ()
    for index, variable in enumerate(variables):
        if id(variable) in good or not is_map(variable):
            continue
        name, value = variable.get("name") or "", variable.get("value")
        if isinstance(value, str) and (found := _credential(name, value)):
            job = declared_jobs(context).get(rendered.identity[2:])
            origin = context.environment.origin("jobs", job.name, "env", name) if job else None
            where = below("", *path, "env", index, "value")
            hits.append(Hit(rendered, where, f"a credential in the open\n{found}", origin))
        else:
            good.add(id(variable))
    for field in ("command", "args"):
        words: Sequence[Any] = container.get(field) or ()
        for index, word in enumerate(words):
            if isinstance(word, str) and (found := _credential("", word)):
                where = below("", *path, field, index)
                hits.append(Hit(rendered, where, f"a credential in the open\n{found}", fix=_VARIABLE))
    return hits


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
