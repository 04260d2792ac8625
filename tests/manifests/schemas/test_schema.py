"""Objects against the schemas of their kinds. The CRD here is small and ours."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from gpuyard.cache import cache_dir
from gpuyard.errors import InputError, Origin
from gpuyard.manifests.schemas.schema import Schemas, Violation
from tests.manifests.schemas.crds import crd

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {
                        "name": "web",
                        "image": "nginx",
                        "ports": [{"containerPort": 80}],
                        "resources": {"limits": {"cpu": 1, "memory": "64Mi"}},
                        "livenessProbe": {"httpGet": {"port": "http"}},
                    }
                ]
            },
        },
    },
}

SWITCH = crd(
    "Switch",
    "switches",
    {
        "type": "object",
        "description": "A network switch.",
        "required": ["spec"],
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}}},
            "spec": {
                "type": "object",
                "required": ["mode"],
                "properties": {
                    "mode": {"type": "string", "enum": ["leaf", "spine"]},
                    "serial": {"type": "string", "pattern": "^[A-Z]{2}\\d+$"},
                    "ports": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 64},
                    "uplink": {
                        "x-kubernetes-int-or-string": True,
                        "anyOf": [{"type": "integer"}, {"type": "string"}],
                    },
                    "rack": {"type": "string", "nullable": True},
                    "side": {"type": "string", "enum": ["left", "right"], "nullable": True},
                    "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "empty": {"type": "object"},
                    "vlans": {
                        "type": "object",
                        "additionalProperties": {
                            "type": "object",
                            "properties": {"id": {"type": "integer"}},
                        },
                    },
                    "template": {
                        "type": "object",
                        "x-kubernetes-embedded-resource": True,
                        "x-kubernetes-preserve-unknown-fields": True,
                    },
                    "links": {
                        "type": "array",
                        "maxItems": 1,
                        "items": {
                            "type": "object",
                            "properties": {"to": {"type": "string"}, "via": {"type": "string"}},
                            "oneOf": [{"required": ["to"]}, {"required": ["via"]}],
                        },
                    },
                },
            },
        },
    },
    {"name": "v1alpha1", "served": False, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}},
)


def switch(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "acme.com/v1", "kind": "Switch", "metadata": {"name": "a"}, "spec": {"mode": "leaf", **spec}}


def changed(manifest: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with `value` at a path like `spec.containers.0.name`."""
    copy = deepcopy(manifest)
    target: Any = copy
    *steps, last = path.split(".")
    for step in steps:
        target = target[int(step) if isinstance(target, list) else step]
    target[int(last) if isinstance(target, list) else last] = value
    return copy


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return Schemas("1.34", [SWITCH])


def check(schemas: Schemas, manifest: dict[str, Any]) -> list[tuple[str, str]]:
    return [(violation.path, violation.message) for violation in schemas.check(manifest)]


def test_a_good_object(schemas: Schemas):
    assert schemas.check(DEPLOYMENT) == []
    assert schemas.check(SWITCH) == []


@pytest.mark.parametrize(
    ("path", "value", "place", "message"),
    [
        (
            "spec.template.spec.containers.0.imagee",
            "nginx",
            "spec.template.spec.containers[0].imagee",
            "unknown field; did you mean image?",
        ),
        ("spec.strategy", {"zz": 1}, "spec.strategy.zz", "unknown field; accepted: rollingUpdate, type"),
        ("extra", {}, "extra", "unknown field; accepted: apiVersion, kind, metadata, spec, status"),
        ("metadata.lables", {}, "metadata.lables", "unknown field; did you mean labels?"),
        ("spec.replicas", "2", "spec.replicas", '"2" is text; must be a whole number'),
        ("spec.replicas", 2.5, "spec.replicas", "2.5 is a number; must be a whole number"),
        ("spec.paused", 1, "spec.paused", "1 is a number; must be true or false"),
        ("spec.template.spec.containers", {}, "spec.template.spec.containers", "this is a map; must be a list"),
        (
            "spec.template.spec.containers.0.livenessProbe.httpGet.port",
            1.5,
            "spec.template.spec.containers[0].livenessProbe.httpGet.port",
            "1.5 is a number; must be a whole number or text",
        ),
        (
            "spec.template.spec.containers.0.ports.0",
            {"name": "http"},
            "spec.template.spec.containers[0].ports[0].containerPort",
            "required field is missing",
        ),
        ("metadata.annotations", {"acme.com/size": 3}, 'metadata.annotations["acme.com/size"]',
         "3 is a number; must be text"),
    ],
)  # fmt: skip
def test_built_in_kinds(schemas: Schemas, path: str, value: object, place: str, message: str):
    assert check(schemas, changed(DEPLOYMENT, path, value)) == [(place, message)]


def test_violations_carry_the_value(schemas: Schemas):
    assert schemas.check(changed(DEPLOYMENT, "spec.replica", 3)) == [
        Violation("spec.replica", 3, "unknown field; did you mean replicas?")
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {"serial": "AB12", "ports": 64, "uplink": 3},
        {"uplink": "3", "rack": None, "side": None},
        {"raw": {"anything": [{"goes": 1}]}, "empty": {}},
        {"vlans": {"blue": {"id": 1}}},
        {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "spec": {"any": 1}}},
        {"links": [{"to": "b"}]},
    ],
)
def test_good_custom_objects(schemas: Schemas, spec: dict[str, Any]):
    assert schemas.check(switch(**spec)) == []


@pytest.mark.parametrize(
    ("spec", "place", "message"),
    [
        ({"mode": "leaff"}, "spec.mode", '"leaff" is text; accepted: leaf, spine; did you mean leaf?'),
        ({"serial": "x1"}, "spec.serial", '"x1" is text; must match the pattern ^[A-Z]{2}\\d+$'),
        ({"ports": 0}, "spec.ports", "0 is less than or equal to the minimum of 0"),
        ({"ports": 65}, "spec.ports", "65 is greater than the maximum of 64"),
        ({"uplink": True}, "spec.uplink", "this is true; must be a whole number or text"),
        ({"ports": None}, "spec.ports", "this is null; must be a whole number"),
        ({"port": 1}, "spec.port", "unknown field; did you mean ports?"),
        ({"empty": {"a": 1}}, "spec.empty.a", "unknown field; accepted: none"),
        ({"vlans": {"blue": {"name": "b"}}}, "spec.vlans.blue.name", "unknown field; accepted: id"),
        ({"template": {"metadata": {"lables": {}}}}, "spec.template.metadata.lables",
         "unknown field; did you mean labels?"),
        ({"links": [{}]}, "spec.links[0]", "{} is not valid under any of the schemas listed in the 'oneOf' keyword"),
        ({"links": [{"to": "a"}, {"to": "b"}]}, "spec.links", '[{"to":"a"},{"to":"b"}] has more than 1 item'),
    ],
)  # fmt: skip
def test_custom_kinds(schemas: Schemas, spec: dict[str, Any], place: str, message: str):
    assert check(schemas, switch(**spec)) == [(place, message)]


def test_metadata_of_custom_kinds(schemas: Schemas):
    manifest = switch() | {"metadata": {"name": "much-too-long", "label": {}}, "status": {}}
    del manifest["spec"]["mode"]
    assert check(schemas, manifest) == [
        ("metadata.label", "unknown field; did you mean labels?"),
        ("metadata.name", '"much-too-long" is longer than 8 characters'),
        ("spec.mode", "required field is missing"),
        ("status", "unknown field; accepted: apiVersion, kind, metadata, spec"),
    ]


def test_kinds_that_nobody_defines(schemas: Schemas):
    policy = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "A"},
        "spec": {"any": "thing"},
    }
    old = switch() | {"apiVersion": "acme.com/v1alpha1"}
    gone = {"apiVersion": "policy/v1beta1", "kind": "PodSecurityPolicy", "metadata": {"name": "old"}}
    assert schemas.unknown_kinds([policy, DEPLOYMENT, switch(), old, gone, policy, SWITCH]) == [
        ("acme.com/v1alpha1", "Switch"),
        ("nvidia.com/v1", "ClusterPolicy"),
        ("policy/v1beta1", "PodSecurityPolicy"),
    ]
    assert [violation.path for violation in schemas.check(policy)] == ["metadata.name"]


@pytest.mark.parametrize("version", ["1.30", "1.37", "v1.36.3", "1.33.1-eks-1"])
def test_versions(version: str):
    assert Schemas(version, []).check(DEPLOYMENT) == []


def test_a_kind_can_be_new_in_a_version():
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "a"},
    }
    assert Schemas("1.29", []).unknown_kinds([policy]) == [(policy["apiVersion"], policy["kind"])]
    assert Schemas("1.30", []).unknown_kinds([policy]) == []


@pytest.mark.parametrize("version", ["1.99", "latest", "1.3"])
def test_unknown_version(version: str):
    with pytest.raises(InputError) as caught:
        Schemas(version, [], origin=Origin("stacks/dev/environment.yaml", 5))
    assert str(caught.value) == (
        "error  unknown Kubernetes version\n  stacks/dev/environment.yaml:5   cluster.kubernetes\n"
        f"  {version}; schemas are known for 1.25 to 1.37\n"
        "  fix: write one of these minor versions, or install a newer kubernetes-validate"
    )


def test_a_schema_that_cannot_be_compiled_is_an_error():
    broken = changed(SWITCH, "spec.versions.1.schema.openAPIV3Schema.properties.spec.properties.serial.pattern", "(")
    with pytest.raises(InputError) as caught:
        Schemas("1.34", [broken]).check(switch())
    assert str(caught.value).startswith("error  schema cannot be compiled\n  acme.com/v1 Switch: ")
    assert str(caught.value).endswith("\n  fix: correct the CRD of this kind")


def test_what_was_good_is_not_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GPUYARD_CACHE", str(tmp_path))
    objects = [SWITCH, DEPLOYMENT, switch(), changed(switch(), "metadata.name", "b")]
    checked: list[Any] = []

    def check_all(*manifests: dict[str, Any], crd: dict[str, Any] = SWITCH) -> list[list[str]]:
        schemas = Schemas("1.34", [crd])
        check = schemas.check
        checked.clear()
        monkeypatch.setattr(schemas, "check", lambda manifest, good: checked.append(manifest) or check(manifest))
        return [[violation.path for violation in found] for found in schemas.check_all(manifests)]

    assert check_all(*objects) == [[], [], [], []]
    assert checked == objects
    assert check_all(*objects) == [[], [], [], []]
    assert checked == []

    bad = changed(switch(), "spec.port", 1)
    for _ in range(2):
        assert check_all(DEPLOYMENT, switch(), bad) == [[], [], ["spec.port"]]
        assert checked == [switch(), bad]

    # Another schema, another verdict.
    strict = changed(SWITCH, "spec.versions.1.schema.openAPIV3Schema.properties.metadata.properties.name.maxLength", 0)
    assert check_all(*objects[2:], crd=strict) == [["metadata.name"], ["metadata.name"]]


def test_a_part_that_objects_share_is_wrong_in_each_of_them():
    template = {"metadata": {"labels": {"app": "a", "b": "A b"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    shared = [changed(changed(DEPLOYMENT, "metadata.name", name), "spec.template", None) for name in ("a", "b", "c")]
    for manifest in shared:
        manifest["spec"] |= {"template": template, "selector": {"matchLabels": {"app": "a"}}}
    found = Schemas("1.34", []).check_all(shared)

    assert [[violation.path for violation in each] for each in found] == [["spec.template.metadata.labels.b"]] * 3


def test_a_part_that_is_good_in_one_place_may_be_wrong_in_another():
    part = {"app": "A b"}
    note = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": part}, "data": {}}
    label = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "labels": part}, "data": {}}
    found = Schemas("1.34", []).check_all([note, label])

    assert [[violation.path for violation in each] for each in found] == [[], ["metadata.labels.app"]]


def test_the_cache_is_small_and_a_damaged_one_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GPUYARD_CACHE", str(tmp_path))
    bad = changed(switch(), "spec.port", 1)
    for _ in range(2):
        schemas = Schemas("1.34", [SWITCH])
        assert schemas.check(DEPLOYMENT) == []
        assert [violation.path for violation in schemas.check(bad)] == ["spec.port"]
        files = sorted(cache_dir("schemas").rglob("*.json"))
        assert len(files) == 3
        assert sum(file.stat().st_size for file in files) < 100_000
        for file in files:
            json.loads(file.read_bytes())
            file.write_bytes(file.read_bytes()[:-10])
