"""The rules that CRDs bring: evaluated, or named where the engine cannot run them. The CRD here is small and ours."""

from __future__ import annotations

from typing import Any

import pytest

from gpuyard.manifests.schemas.schema import Schemas, Unrun
from tests.manifests.schemas.crds import crd


def rings(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the CRD of a kind whose spec has this schema."""
    return crd("Ring", "rings", {"type": "object", "properties": {"spec": spec}})


def ring(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "acme.com/v1", "kind": "Ring", "metadata": {"name": "a"}, "spec": spec}


def rules(*texts: str, **more: str) -> list[dict[str, str]]:
    return [{"rule": text, **more} for text in texts]


RING = {
    "type": "object",
    "x-kubernetes-validations": [
        {"rule": "self.min <= self.max", "message": "min is above max", "fieldPath": ".min"},
        {"rule": "!has(self.mode) || self.mode != 'ring' || self.max > 2",
         "messageExpression": "'a ring of ' + string(self.max) + ' is none'"},
        {"rule": "self.name == oldSelf.name", "message": "name is immutable"},
    ],
    "properties": {
        "name": {"type": "string"},
        "mode": {"type": "string"},
        "min": {"type": "integer", "default": 0},
        "max": {"type": "integer", "default": 8},
        "ratio": {"type": "number", "x-kubernetes-validations": rules("self / 2.0 < 1.0")},
        "key": {"type": "string", "format": "byte", "x-kubernetes-validations": rules("self == b'abc'")},
        "namespace": {"type": "object", "x-kubernetes-validations": rules("self.__namespace__.x__dash__y == 1"),
                      "properties": {"namespace": {"type": "object", "properties": {"x-y": {"type": "integer"}}}}},
        "nodes": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "port"],
            "items": {
                "type": "object",
                "required": ["name"],
                "x-kubernetes-validations": rules("self.name.startsWith('n')", message="a node's name begins with n"),
                "properties": {
                    "name": {"type": "string"},
                    "port": {"type": "integer", "default": 80},
                    "memory": {"type": "string", "x-kubernetes-validations": rules("quantity(self).sign() == 1")},
                },
            },
        },
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "weights": {"type": "object", "additionalProperties": {
            "type": "integer", "nullable": True,
            "x-kubernetes-validations": rules("self > 0", message="0 weighs none")}},
        "peer": {"type": "object", "x-kubernetes-validations": rules("self.host != ''"),
                 "properties": {"host": {"type": "string"}}},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return Schemas("1.34", [rings(RING)])


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"min": 8},
        {"mode": "ring", "max": 3, "name": "new"},
        {"ratio": 1},
        {"key": "YWJj"},
        {"namespace": {"namespace": {"x-y": 1}}},
        {"nodes": [{"name": "n"}, {"name": "n", "port": 81}], "tags": ["a", "b"]},
        {"weights": {"x-y": 1, "z": None}},
    ],
)
def test_good_objects(schemas: Schemas, spec: dict[str, Any]):
    assert schemas.check(ring(**spec)) == []


@pytest.mark.parametrize(
    ("spec", "path", "value", "message"),
    [
        ({"min": 9}, "spec.min", 9, "min is above max"),
        ({"mode": "ring", "max": 2}, "spec", {"mode": "ring", "max": 2}, "a ring of 2 is none"),
        ({"ratio": 2}, "spec.ratio", 2, "failed rule: self / 2.0 < 1.0"),
        ({"key": "YWI="}, "spec.key", "YWI=", "failed rule: self == b'abc'"),
        ({"nodes": [{"name": "n"}, {"name": "m"}]}, "spec.nodes[1]", {"name": "m"}, "a node's name begins with n"),
        ({"nodes": [{"name": "n"}, {"name": "n", "port": 80}]}, "spec.nodes[1]", {"name": "n", "port": 80},
         "item 0 has name n, port 80 too; it tells the items apart"),
        ({"tags": ["a", "a"]}, "spec.tags", ["a", "a"], '["a","a"] has non-unique elements'),
        ({"weights": {"x-y": 0}}, "spec.weights.x-y", 0, "0 weighs none"),
        ({"peer": {}}, "spec.peer", {},
         'key not found in map : "host", which this rule needs: self.host != \'\''),
    ],
)  # fmt: skip
def test_broken_objects(schemas: Schemas, spec: dict[str, Any], path: str, value: object, message: str):
    found = schemas.check(ring(**spec))
    assert [(violation.path, violation.value, violation.message) for violation in found] == [(path, value, message)]


def test_an_object_that_its_schema_refuses_is_not_asked_for_rules(schemas: Schemas):
    assert [violation.path for violation in schemas.check(ring(min="9"))] == ["spec.min"]


def test_rules_that_are_not_run_are_named():
    schemas = Schemas("1.34", [rings(RING)])
    assert schemas.unrun_rules() == [
        Unrun("acme.com/v1/Ring", "spec", "self.name == oldSelf.name", "it compares with the object before a change"),
        Unrun(
            "acme.com/v1/Ring", "spec.nodes[].memory", "quantity(self).sign() == 1", "the engine has no quantity, sign"
        ),
    ]
    assert schemas.check(ring(nodes=[{"name": "n"}])) == []
    assert schemas.without_verdict() == []
    assert schemas.check(ring(nodes=[{"name": "n", "memory": "1Gi"}])) == []
    assert schemas.without_verdict() == [
        ("acme.com/v1/Ring", "quantity(self).sign() == 1", "the engine has no quantity, sign")
    ]


def test_an_object_without_a_verdict_is_not_taken_for_good():
    for _ in range(2):
        schemas = Schemas("1.34", [rings(RING)])
        assert schemas.check_all([ring(nodes=[{"name": "n", "memory": "1Gi"}])]) == [[]]
        assert [rule for _, rule, _ in schemas.without_verdict()] == ["quantity(self).sign() == 1"]


def test_a_rule_that_is_no_cel_is_named():
    schemas = Schemas("1.34", [rings({"type": "object", "x-kubernetes-validations": rules("self.")})])
    ((_, path, rule, reason),) = schemas.unrun_rules()
    assert (path, rule) == ("spec", "self.")
    assert "Syntax error" in reason


def test_types_that_do_not_fit_give_no_verdict():
    text = {"x-kubernetes-int-or-string": True, "x-kubernetes-validations": rules("self + 1 == 2")}
    schemas = Schemas("1.34", [rings({"type": "object", "properties": {"count": text}})])
    assert schemas.check(ring(count=1)) == []
    assert schemas.check(ring(count="a")) == []
    assert schemas.without_verdict() == [
        ("acme.com/v1/Ring", "self + 1 == 2", "no matching overloads found : _+_(string, int64)")
    ]
