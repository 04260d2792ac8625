"""Where custom kinds are looked into: pods, labels, selectors and amounts, found from the schema of their CRD."""

from __future__ import annotations

from typing import Any

import pytest

from gpuyard.manifests.schemas.places import place_tree
from gpuyard.manifests.schemas.schema import Schemas
from tests.manifests.schemas.crds import crd

TEXT = {"type": "string"}
LABELS = {"type": "object", "additionalProperties": TEXT}
AMOUNTS = {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}
RESOURCES = {"type": "object", "properties": {"limits": AMOUNTS, "requests": AMOUNTS}}
NAMED = {"type": "array", "items": {"type": "object", "properties": {"name": TEXT, "emptyDir": {"type": "object"}}}}
MOUNTS = {"type": "array", "items": {"type": "object", "properties": {"name": TEXT, "mountPath": TEXT}}}
CONTAINERS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": TEXT, "image": TEXT, "resources": RESOURCES, "volumeMounts": MOUNTS},
    },
}
POD = {"type": "object", "properties": {"containers": CONTAINERS, "volumes": NAMED, "restartPolicy": TEXT}}
TEMPLATE = {
    "type": "object",
    "properties": {"metadata": {"type": "object", "properties": {"labels": LABELS}}, "spec": POD},
}
SPEC = {
    "type": "object",
    "properties": {
        "replicas": {
            "type": "object",
            "additionalProperties": {"type": "object", "properties": {"template": TEMPLATE}},
        },
        "containers": CONTAINERS,
        "volumes": NAMED,
        "resources": RESOURCES,
        "selector": {
            "type": "object",
            "nullable": True,
            "properties": {"matchLabels": LABELS, "matchExpressions": {"type": "array", "items": {"type": "object"}}},
            "additionalProperties": True,
        },
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
CRD = crd("Run", "runs", {"type": "object", "properties": {"spec": SPEC}})
VALUE = "a label value: letters, digits, '-', '_' and '.', with a letter or digit first and last, or nothing"
QUANTITY = "a quantity is a number with an optional unit: 500m, 4, 2.5, 100M, 64Gi, 2Ti"


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "main", "image": "a", **fields}


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return Schemas("1.34", [CRD])


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ({"replicas": {"Worker": {"template": {"spec": {"containers": [container(image="")]}}}}},
         "spec.replicas.Worker.template.spec.containers[0].image", "required field is missing"),
        ({"replicas": {"Worker": {"template": {"spec": {"containers": [container(volumeMounts=[{"name": "a",
         "mountPath": "/a"}])], "volumes": [{"name": "b"}]}}}}},
         "spec.replicas.Worker.template.spec.containers[0].volumeMounts[0].name",
         "no volume of this pod is called a; volumes: b"),
        ({"replicas": {"a/b": {"template": {"metadata": {"labels": {"a": "-"}}}}}},
         'spec.replicas["a/b"].template.metadata.labels.a', f"`-` must be {VALUE}"),
        ({"containers": [container(), container()]}, "spec.containers[1].name", "containers[0] has this name too"),
        ({"resources": {"limits": {"cpu": "x"}}}, "spec.resources.limits.cpu", f"`x` is no quantity: {QUANTITY}"),
        ({"selector": {"matchLabels": {"a": "-"}}}, "spec.selector.matchLabels.a", f"`-` must be {VALUE}"),
        ({"open": {"any": [{"template": {"spec": {"containers": [container(image=None)]}}}]}},
         "spec.open.any[0].template.spec.containers[0].image", "required field is missing"),
        ({"open": {"driver": {"resources": {"limits": {"cpu": "x"}}}}}, "spec.open.driver.resources.limits.cpu",
         f"`x` is no quantity: {QUANTITY}"),
    ],
)  # fmt: skip
def test_what_is_wrong_at_a_place(schemas: Schemas, spec: dict[str, Any], path: str, message: str):
    run = {"apiVersion": "acme.com/v1", "kind": "Run", "metadata": {"name": "a"}, "spec": spec}
    assert [(violation.path, violation.message) for violation in schemas.check(run)] == [(path, message)]


def test_containers_that_an_operator_completes(schemas: Schemas):
    # The operator knows volumes and images that are not written here, and adds them.
    part = {"containers": [{"name": "proxy", "volumeMounts": [{"name": "config", "mountPath": "/etc"}]}]}
    run = {"apiVersion": "acme.com/v1", "kind": "Run", "metadata": {"name": "a"}, "spec": part}
    assert schemas.check(run) == []


def test_a_schema_that_reaches_itself():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "resources": RESOURCES}}
    tree = place_tree({"$ref": "#/$defs/node", "$defs": {"node": node}}, custom=True)
    assert tree == {"fields": {"resources": {"is": "resources"}}}
