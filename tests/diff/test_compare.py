"""Objects and fields that belong together, and what is left out of a diff because it is the same."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from gpuyard.diff.state import PoolState, State, from_lines, to_lines
from gpuyard.errors import Origin
from gpuyard.manifests import Lifecycle, declare
from gpuyard.manifests.credentials import Hidden, hide
from gpuyard.manifests.diff import MISSING, compare, compare_manifests
from gpuyard.manifests.immutable import is_immutable


def changes(before: Any, after: Any, field: str = "spec") -> dict[str, tuple[Any, Any]]:
    """Return the changed fields of two objects that differ in one top-level field, by path."""
    head = {"apiVersion": "v1", "kind": "Any", "metadata": {"name": "a"}}
    found = compare_manifests({**head, field: before}, {**head, field: after})
    return {str(one): (one.before, one.after) for one in found}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"containers": [{"name": "a"}]}, {"containers": [{"name": "a", "image": "x"}]},
         {"spec.containers[a].image": (MISSING, "x")}),
        ({"ports": [{"port": 53}]}, {"ports": [{"port": 53, "protocol": "UDP"}]},
         {"spec.ports[53/UDP]": (MISSING, {"port": 53, "protocol": "UDP"}), "spec.ports[53]": ({"port": 53}, MISSING)}),
        ({"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]},
         {"volumeMounts": [{"name": "v", "mountPath": "/b"}]},
         {"spec.volumeMounts[/a]": ({"name": "v", "mountPath": "/a"}, MISSING)}),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, {"conditions": [{"type": "Ready", "status": "False"}]},
         {"spec.conditions[Ready].status": ("True", "False")}),
        ({"env": [{"name": "A"}, {"name": "B"}]}, {"env": [{"name": "B"}, {"name": "A"}]},
         {"spec.env": (["A", "B"], ["B", "A"])}),
        # Two of one name: by position.
        ({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
         {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "3"}]}, {"spec.env[1].value": ("2", "3")}),
        # One argument more does not move the others.
        ({"args": ["a", "b", "c"]}, {"args": ["a", "x", "b", "c"]}, {"spec.args[1]": (MISSING, "x")}),
        ({"args": ["a", "b"]}, {"args": ["a"]}, {"spec.args[1]": ("b", MISSING)}),
        ({"a": None}, {}, {"spec.a": (None, MISSING)}),
        ({"a": []}, {"a": [1]}, {"spec.a": ([], [1])}),
        ({"a": {"b": 1}}, {"a": [1]}, {"spec.a": ({"b": 1}, [1])}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {}),
    ],
)  # fmt: skip
def test_fields(before: Any, after: Any, expected: dict[str, tuple[Any, Any]]) -> None:
    assert changes(before, after) == expected


def test_one_name_in_two_groups_is_two_objects() -> None:
    old = declare({"apiVersion": "extensions/v1beta1", "kind": "Ingress", "metadata": {"name": "a"}})
    new = declare({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "a"}})
    assert [change.verb for change in compare([old], [new])] == ["added", "removed"]


def test_another_version_of_a_kind_is_the_same_object() -> None:
    old = declare({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}})
    new = declare({**old.manifest, "apiVersion": "autoscaling/v2"})
    (change,) = compare([old], [new])
    assert (change.verb, [str(field) for field in change.fields]) == ("changed", ["apiVersion"])


@pytest.mark.parametrize(
    ("manifest", "path", "expected"),
    [
        ({"apiVersion": "apps/v1", "kind": "StatefulSet"}, ("spec", "serviceName"), True),
        ({"apiVersion": "apps/v1", "kind": "StatefulSet"}, ("spec", "template", "spec"), False),
        ({"apiVersion": "batch/v1", "kind": "Job"}, ("spec", "parallelism"), False),
        ({"apiVersion": "example.com/v1", "kind": "Job"}, ("spec", "template"), False),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, ("data", "a"), False),
        ({"apiVersion": "v1", "kind": "ConfigMap", "immutable": True}, ("data", "a"), True),
        ({"apiVersion": "v1", "kind": "Service"}, ("spec", "clusterIP"), True),
        ({"apiVersion": "v1", "kind": "Service"}, ("spec", "ports"), False),
    ],
)
def test_what_never_changes(manifest: dict[str, Any], path: tuple[str, ...], expected: bool) -> None:
    assert is_immutable(manifest, path) is expected


@pytest.mark.parametrize(
    ("value", "is_hidden"),
    [
        ("--api-key=abc", True),
        ("PASSWORD: abc", True),
        ("s3://user:abc@host/path", True),
        ("--password=$(PASSWORD)", False),
        ("--secret-name=volcano-admission-secret", False),
        ("nvidia.com/gpu", False),
    ],
)
def test_what_is_hidden(value: str, is_hidden: bool) -> None:
    assert isinstance(hide([value])[0], Hidden) is is_hidden


def test_a_variable_with_the_name_of_a_credential_is_hidden_when_it_comes_with_its_container() -> None:
    container = {"name": "a", "env": [{"name": "WANDB_API_KEY", "value": "0123"}, {"name": "MODE", "value": "fast"}]}
    found = changes({"containers": []}, {"containers": [container]})
    assert "0123" not in str(found)
    assert "fast" in str(found)


def test_a_state_survives_being_written() -> None:
    life = Lifecycle(protect=True, ignore=("spec", "data"))
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "ü\n"}}
    state = State(
        (declare(manifest, id="x", layer="jobs", origin=Origin("a.yaml", 3), lifecycle=life).of("team"),),
        (PoolState("h100", 16, 32, 8, {"a": "b"}, (("key", "", "NoSchedule"),)),),
        (),
        ("volcano",),
    )
    first, *objects = to_lines(state)
    assert from_lines([first, *objects]) == state
    newer = json.loads(first)
    newer["pools"][0]["added-by-a-newer-one"] = 1
    assert from_lines([json.dumps(newer), *objects]) == state


def test_an_object_that_both_sides_have_is_read_once() -> None:
    today = declare({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "ü\n"}})
    state = from_lines(to_lines(State((declare(copy.deepcopy(today.manifest)),))), like=[today])

    assert state.objects[0].manifest is today.manifest


def test_a_state_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="it tells its state in format 1; this one reads 2"):
        from_lines(['{"format": 1, "objects": []}'])
