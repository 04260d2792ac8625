"""What is hidden of a value when only its place is known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuyard.manifests.credentials import hide_at


@pytest.mark.parametrize(
    ("kind", "path", "value", "shown"),
    [
        ("Pod", "spec.containers[0].imagee", "train:1", "train:1"),
        ("Pod", "spec.replicas", 3, 3),
        ("Pod", "spec.containers[0].env[0].value", "0123", "(hidden)"),
        ("Pod", "spec.containers[0].env[0].value", 123, "(hidden)"),
        ("Pod", "spec.containers[0].env[0].valu", "0123", "(hidden)"),
        ("Pod", "spec.containers[0].env[0].name", "A B", "A B"),
        ("Pod", "spec.containers[0].env[0].valueFrom.secretKeyRef.kay", "token", "token"),
        ("Pod", "spec.containers[0].env[0]", {"name": "HF_TOKEN", "value": "0123"},
         {"name": "HF_TOKEN", "value": "(hidden)"}),
        ("Pod", "spec.tolerations[0].key", "a b", "a b"),
        ("Pod", "spec.containers[0].args[1]", "--password=0123", "(hidden)"),
        ("Pod", 'metadata.annotations["acme.com/api-token"]', 123, "(hidden)"),
        ("Secret", "data.a", "MDEyMw==", "(hidden)"),
        ("Secret", "stringDat", {"a": "0123"}, "(hidden)"),
        ("Secret", "typo", "0123", "(hidden)"),
        ("Secret", "metadata.annotations.a", 123, "(hidden)"),
        ("Secret", "metadata.name", "A", "A"),
        ("Secret", "type", 5, 5),
        ("Secret", "data.a", None, None),
        ("ConfigMap", "data.level", 27, "(hidden)"),
        ("Cluster", "spec", {"admin": {"password": "0123", "pins": [1]}, "hosts": [{"token": 99}]},
         {"admin": {"password": "(hidden)", "pins": [1]}, "hosts": [{"token": "(hidden)"}]}),
        ("Cluster", "spec.tokens[0].token[1]", "0123", "(hidden)"),
    ],
)  # fmt: skip
def test_what_is_hidden(kind: str, path: str, value: Any, shown: Any) -> None:
    assert json.loads(json.dumps(hide_at(kind, path, value), default=str)) == shown
