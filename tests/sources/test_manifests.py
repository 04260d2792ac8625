"""Reading upstream manifests: order, scalars, what is stripped, and the cache of what was parsed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuyard.errors import InputError
from gpuyard.manifests import Manifest
from gpuyard.sources import Cache, Lock
from gpuyard.sources.pull import pull
from gpuyard.sources.upstream import strip_descriptions
from tests.sources.conftest import TINY, FakeGo

Write = Callable[[str], Lock]


@pytest.fixture
def sources(lock: Write, go: FakeGo) -> Cache:
    """The module of conftest.py, pulled."""
    pinned = lock(TINY)
    pull(pinned, ["tiny"])
    return Cache(pinned)


def names(objects: list[Manifest]) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in objects]


def test_a_folder_is_read_in_the_order_of_its_names(sources: Cache) -> None:
    assert names(sources.open("tiny").manifests("manifests")) == ["a", "a2", "b"]
    assert names(sources.open("tiny").manifests("manifests/b.yaml")) == ["b"]


def test_scalars_are_read_as_kubectl_reads_them(sources: Cache) -> None:
    a2 = sources.open("tiny").manifests("manifests/a.yaml")[1]

    assert a2["data"] == {"switch": "12:30", "at": "12:30:45", "mode": "="}


def test_what_is_returned_belongs_to_the_caller(sources: Cache) -> None:
    first = sources.open("tiny").manifests("manifests")
    first[0]["metadata"]["name"] = "changed"

    assert names(sources.open("tiny").manifests("manifests")) == ["a", "a2", "b"]


def test_the_cached_parse_is_the_fresh_one(sources: Cache, go: FakeGo) -> None:
    fresh = sources.open("tiny").manifests("manifests")
    for file in (go.module / "manifests").iterdir():
        file.unlink()

    assert sources.open("tiny").manifests("manifests") == fresh


@pytest.mark.parametrize("damage", [b"", b"[{", b"\xff"])
def test_a_damaged_cache_file_is_made_again(sources: Cache, cache: Path, damage: bytes) -> None:
    fresh = sources.open("tiny").manifests("manifests")
    (stored,) = (cache / "parsed").iterdir()
    whole = stored.read_bytes()
    stored.write_bytes(damage)

    assert sources.open("tiny").manifests("manifests") == fresh
    assert stored.read_bytes() == whole


@pytest.mark.parametrize("path", ["manifests/c.yaml", "nowhere", "empty"])
def test_a_path_that_this_version_does_not_have(sources: Cache, path: str) -> None:
    with pytest.raises(InputError) as caught:
        sources.open("tiny").manifests(path)

    assert str(caught.value) == (
        "error  no such manifests in this version\n"
        "  gpuyard.lock.yaml:2   tiny\n"
        f"  v1.0.0 has no YAML at {path}\n"
        "  fix: look where this version keeps them, and change the component that reads them"
    )


def test_a_document_that_is_no_object(sources: Cache) -> None:
    with pytest.raises(InputError) as caught:
        sources.open("tiny").manifests("patches")

    assert str(caught.value) == (
        "error  not a Kubernetes object\n  tiny v1.0.0: patches/rules.yaml\n  a document without apiVersion or kind"
    )


def test_a_module_is_no_chart(sources: Cache) -> None:
    with pytest.raises(ValueError, match="tiny is no chart: it is a GoModule"):
        sources.open("tiny").chart(release="a", namespace="a", kubernetes="1.34", values={})


def test_descriptions_leave_a_crd_and_properties_of_that_name_stay() -> None:
    text = {"type": "string", "description": "prose"}
    schema = {
        "description": "prose",
        "type": "object",
        "properties": {
            "description": text,
            "items": {"type": "array", "items": {"description": "prose", "anyOf": [text, {"type": "integer"}]}},
            "labels": {"type": "object", "additionalProperties": text},
            "open": {"type": "object", "additionalProperties": True, "x-kubernetes-preserve-unknown-fields": True},
            "given": {"type": "object", "default": {"description": "a value"}, "enum": [{"description": "a value"}]},
        },
    }
    columns = [{"name": "Age", "type": "date", "description": "kept"}]
    crd = {
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": "example.com",
            "versions": [
                {"name": "v1", "schema": {"openAPIV3Schema": schema}, "additionalPrinterColumns": columns},
                {"name": "v2"},
            ],
        },
    }

    stripped = strip_descriptions(crd)

    assert stripped["spec"]["group"] == "example.com"
    first, second = stripped["spec"]["versions"]
    assert first["additionalPrinterColumns"] == columns
    assert second == {"name": "v2"}
    assert first["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "properties": {
            "description": {"type": "string"},
            "items": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "open": {"type": "object", "additionalProperties": True, "x-kubernetes-preserve-unknown-fields": True},
            "given": {"type": "object", "default": {"description": "a value"}, "enum": [{"description": "a value"}]},
        },
    }
    assert schema["description"] == "prose", "the argument is left as it was"
