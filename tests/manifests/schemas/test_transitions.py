"""What the rules of a CRD say about a change: refused, not refused, or not to be told here."""

from __future__ import annotations

from typing import Any

import pytest

from gpuyard.manifests import Lifecycle, Rendered, declare
from gpuyard.manifests.diff import Change, compare
from gpuyard.manifests.immutable import Refusal, Unknown
from gpuyard.manifests.schemas.transitions import Transitions
from tests.manifests.schemas.crds import crd

FIXED = {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}]}
TEXT = {"type": "string"}


def rules(*texts: str, **more: Any) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": text, **more} for text in texts]}


SPEC = {
    "type": "object",
    **rules("!has(oldSelf.zone) || has(self.zone)", message="zone cannot be taken away"),
    "properties": {
        "mode": {**TEXT, "default": "ring", **FIXED},
        "zone": TEXT,
        "size": {
            "type": "integer",
            **rules("self >= oldSelf", messageExpression="'cannot shrink from ' + string(oldSelf)"),
        },
        "claim": {
            "type": "object",
            "nullable": True,
            **rules("self.name == oldSelf.name", message="the claim keeps its name", fieldPath=".name"),
            "properties": {"name": TEXT, "storage-class": {**TEXT, **FIXED}},
        },
        "weights": {"type": "object", "additionalProperties": {"type": "integer", **FIXED}},
        "nodes": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "port"],
            "items": {
                "type": "object",
                "properties": {"name": TEXT, "port": {"type": "integer", "default": 80}, "rack": {**TEXT, **FIXED}},
            },
        },
        # The items of such a list have no counterpart.
        "args": {"type": "array", "items": {**TEXT, **FIXED}},
        "memory": {**TEXT, **rules("quantity(self) == quantity(oldSelf)")},
        "owner": {**TEXT, **rules("oldSelf.hasValue()", message="comes too late", optionalOldSelf=True)},
        "password": {**TEXT, **rules("self == oldSelf", messageExpression="'password=' + oldSelf")},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "key": {**TEXT, "format": "byte", **FIXED},
    },
}
CRD = crd("Ring", "rings", {"type": "object", "properties": {"spec": SPEC}})


def ring(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "acme.com/v1", "kind": "Ring", "metadata": {"name": "a"}, "spec": spec}


@pytest.fixture(scope="module")
def transitions() -> Transitions:
    return Transitions([CRD])


def at(*steps: str | int) -> tuple[str | int, ...]:
    return ("spec", *steps)


@pytest.mark.parametrize(
    ("before", "after", "steps", "message"),
    [
        ({"mode": "tree"}, {"mode": "ring"}, at("mode"), "is immutable"),
        # What is left out has its default.
        ({"mode": "tree"}, {}, at("mode"), "is immutable"),
        ({"zone": "a"}, {}, at(), "zone cannot be taken away"),
        ({"size": 3}, {"size": 2}, at("size"), "cannot shrink from 3"),
        ({"claim": {"name": "a"}}, {"claim": {"name": "b"}}, at("claim", "name"), "the claim keeps its name"),
        ({"claim": {"name": "a", "storage-class": "x"}}, {"claim": {"name": "a", "storage-class": "y"}},
         at("claim", "storage-class"), "is immutable"),
        ({"claim": {"name": "a"}}, {"claim": {}}, at("claim"),
         'key not found in map : "name", which this rule needs: self.name == oldSelf.name'),
        ({"weights": {"a": 1, "b-c": 2}}, {"weights": {"a": 1, "b-c": 3}}, at("weights", "b-c"), "is immutable"),
        ({"nodes": [{"name": "n", "rack": "1"}, {"name": "m", "rack": "1"}]},
         {"nodes": [{"name": "m", "rack": "2"}, {"name": "n", "port": 80, "rack": "1"}]}, at("nodes", 0, "rack"),
         "is immutable"),
        ({}, {"owner": "me"}, at("owner"), "comes too late"),
        ({"password": "0123"}, {"password": "4567"}, at("password"), "(hidden)"),
        ({"key": "YQ=="}, {"key": "YWI="}, at("key"), "is immutable"),
    ],
)  # fmt: skip
def test_refused(
    transitions: Transitions, before: dict[str, Any], after: dict[str, Any], steps: tuple[str | int, ...], message: str
) -> None:
    assert list(transitions.judge(ring(**before), ring(**after))) == [Refusal(steps, message)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"mode": "ring"}),
        ({}, {"size": 1, "zone": "a", "claim": {"name": "a"}}),
        ({"size": 2}, {"size": 3}),
        ({"claim": {"name": "a"}}, {"claim": None}),
        ({"claim": None}, {"claim": {"name": "a"}}),
        ({"weights": {"a": 1}}, {"weights": {"b": 2}}),
        ({"nodes": [{"name": "n", "rack": "1"}]}, {"nodes": [{"name": "n", "port": 81, "rack": "2"}]}),
        ({"args": ["a"]}, {"args": ["b"]}),
        ({"owner": "me"}, {"owner": "you"}),
        ({"free": {"a": 1}}, {"free": {"a": 2}}),
        # No base64: the schema says that.
        ({"key": "a"}, {"key": "a"}),
    ],
)
def test_not_refused(transitions: Transitions, before: dict[str, Any], after: dict[str, Any]) -> None:
    assert list(transitions.judge(ring(**before), ring(**after))) == []


def test_a_rule_that_cannot_be_run_is_named(transitions: Transitions) -> None:
    assert list(transitions.judge(ring(memory="1Gi"), ring(memory="2Gi"))) == [
        Unknown(at("memory"), "quantity(self) == quantity(oldSelf)", "the engine has no quantity")
    ]


def test_a_kind_without_rules_about_changes() -> None:
    plain = crd("Ring", "rings", {"type": "object", "properties": {"spec": {"type": "object", **rules("has(self.a)")}}})
    assert list(Transitions([plain]).judge(ring(a=1), ring())) == []
    assert list(Transitions([]).judge(ring(a=1), ring())) == []


def change(before: Rendered, after: Rendered) -> Change:
    definition = declare(CRD)
    (found,) = compare([definition, before], [definition, after])
    return found


def test_a_change_that_is_refused_is_a_replacement() -> None:
    found = change(declare(ring(mode="tree", zone="a")), declare(ring(mode="ring", zone="b")))
    assert (found.verb, found.immutable, found.unknown) == ("replaced", (), ())
    assert found.refused == (Refusal(at("mode"), "is immutable"),)


def test_a_change_that_a_rule_without_a_verdict_may_refuse_stays_a_change() -> None:
    found = change(declare(ring(memory="1Gi")), declare(ring(memory="2Gi")))
    assert (found.verb, found.refused, [one.steps for one in found.unknown]) == ("changed", (), [at("memory")])


def test_what_no_deploy_writes_is_not_refused() -> None:
    life = Lifecycle(ignore=("spec",))
    found = change(declare(ring(mode="tree"), lifecycle=life), declare(ring(mode="ring"), lifecycle=life))
    assert (found.verb, found.refused) == ("changed", ())
    life = Lifecycle(ignore=("spec.mode",))
    found = change(
        declare(ring(mode="tree", size=1), lifecycle=life), declare(ring(mode="ring", size=2), lifecycle=life)
    )
    assert (found.verb, found.refused) == ("changed", ())


def test_labels_are_not_asked_about() -> None:
    labelled = ring(mode="tree")
    labelled["metadata"] = {"name": "a", "labels": {"a": "b"}}
    assert change(declare(ring(mode="tree")), declare(labelled)).verb == "changed"
