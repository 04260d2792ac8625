"""What looks like a credential, and objects with their credentials hidden."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gpuyard.manifests.data import at, is_list, is_map

_NAME = re.compile(r"(?:^|[_.-])(?:TOKEN|PASSWORD|PASSWD|SECRET|KEY)$", re.IGNORECASE)
# `re` compiles what is only text when it is first used: most runs use none of it.
_REFERENCE = r"\$\([A-Za-z_][A-Za-z0-9_]*\)"  # Kubernetes puts the value of that variable here.
_VALUES = [
    # (text that is always there, the whole pattern, what it is)
    ("AKIA", r"\bAKIA[0-9A-Z]{12,}", "an AWS access key"),
    ("ghp_", r"\bghp_[A-Za-z0-9]{16,}", "a GitHub token"),
    ("hf_", r"\bhf_[A-Za-z0-9]{16,}", "a Hugging Face token"),
    ("PRIVATE KEY-----", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----", "a private key"),
    ("://", r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:(?!\$)[^\s/@]+@", "a URL with a password"),
]
_ASSIGNED = (
    r"(?i:password|passwd|token|api[-_]?key|client[-_]?secret|secret[-_]?(?:access[-_]?)?key)"
    r"[\"']?\s*[=:]\s*[\"']?[^\s\"'$]"
)


_OPEN = r"(?:apiVersion|kind|type|immutable|metadata\.(?:name|namespace|labels))(?![\w-])"
"""Paths of a Secret or a ConfigMap that hold nothing secret."""
_VARIABLE = r"\benv\[\d+\]\.(?!(?:name|valueFrom)(?![\w-]))|\.value$"
# Not a map: somebody wrote `NAME=value`.
_TEXT_VARIABLE = r"\benv(?:\[\d+\])?$"
_LAST = r"([\w-]+)(?:\[\d+\])*$|\[\"([^\"]*)\"\](?:\[\d+\])*$"
"""The last key of a path."""


def credential(name: str, value: Any) -> str:
    """Return what is wrong with a value, without a part of it in the text; "" when nothing is."""
    if not value or not isinstance(value, str):
        return ""
    for mark, pattern, what in _VALUES:
        if mark in value and re.search(pattern, value):
            return f"{name or 'it'} holds {what}"
    if name and _NAME.search(name) and not re.fullmatch(_REFERENCE, value):
        return f"{name} has a literal value"
    return ""


class Hidden:
    """A value that is compared but never shown: its text is "(hidden)"."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hidden) and self._value == other._value

    def __hash__(self) -> int:
        return hash(str(self._value))

    def __repr__(self) -> str:
        return "(hidden)"


def hide(value: Any) -> Any:
    """Return a copy of any part of an object in which every value that may be a credential is `Hidden`.

    That is a variable with the name or the look of a credential, and any other text with the look of one, such as
    `--password=...` among arguments. Hidden too often is safe.
    """
    if isinstance(value, str):
        return Hidden(value) if _is_suspicious(value) else value
    if is_map(value):
        return {key: hide(child) for key, child in hide_variable(value).items()}
    if is_list(value):
        return [hide(child) for child in value]
    return value


def hide_variable(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a map with `name` and `value` with the value hidden where the name is that of a credential."""
    name = value.get("name")
    if isinstance(name, str) and credential(name, value.get("value")):
        return {**value, "value": Hidden(value["value"])}
    return value


def hide_data(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object with all values of a Secret hidden, and those of a ConfigMap that may be credentials."""
    kind = manifest["kind"]
    if kind not in ("Secret", "ConfigMap"):
        return manifest
    hidden = dict(manifest)
    for field in ("data", "stringData", "binaryData"):
        values = manifest.get(field)
        if is_map(values):
            hidden[field] = {
                key: Hidden(value) if kind == "Secret" or credential(key, value) else value
                for key, value in values.items()
            }
    annotations = at(manifest, "metadata", "annotations")
    if kind == "Secret" and is_map(annotations):
        # `kubectl apply` repeats the whole object in one of them.
        metadata = {**manifest["metadata"], "annotations": {key: Hidden(value) for key, value in annotations.items()}}
        hidden["metadata"] = metadata
    return hidden


def hide_at(kind: str, path: str, value: Any) -> Any:
    """Return a value that stands at a JSON path of an object of a kind as `hide` does, its place and its keys counted.

    What its neighbours would tell is not known here: all that a variable, a Secret or a ConfigMap holds is hidden.
    """
    if value is None:
        return None
    if (kind in ("ConfigMap", "Secret") and not re.match(_OPEN, path)) or re.search(_VARIABLE, path):
        return Hidden(value)
    if isinstance(value, str) and re.search(_TEXT_VARIABLE, path):
        return Hidden(value)
    word = re.search(_LAST, path)
    return _hide_named(word[1] or word[2] if word else "", value)


def _hide_named(name: str, value: Any) -> Any:
    if is_map(value):
        return {key: _hide_named(key, child) for key, child in hide_variable(value).items()}
    if is_list(value):
        return [_hide_named(name, child) for child in value]
    # The key of a label, a taint or a field of a Secret is a name.
    return Hidden(value) if name != "key" and credential(name, str(value)) else hide(value)


@lru_cache(maxsize=65536)
def _is_suspicious(text: str) -> bool:
    return bool(credential("", text) or re.search(_ASSIGNED, text))
