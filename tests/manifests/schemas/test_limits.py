"""Choices, bounds and formats that OpenAPI leaves out, and the keys of lists."""

from __future__ import annotations

from typing import Any

import pytest

from gpuyard.manifests.schemas.builtin import BuiltinSchemas
from gpuyard.manifests.schemas.limits import _BOUNDS, _CHOICES
from gpuyard.manifests.schemas.schema import Schemas


def thing(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **fields}


def pod(**spec: Any) -> dict[str, Any]:
    return thing("v1", "Pod", spec={"containers": [{"name": "a", "image": "a"}], **spec})


LEASE = "coordination.k8s.io/v1"


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return Schemas("1.34", [])


@pytest.mark.parametrize(
    ("manifest", "path", "message"),
    [
        (pod(restartPolicy="onfailure"), "spec.restartPolicy",
         '"onfailure" is text; accepted: Always, Never, OnFailure; did you mean OnFailure?'),
        (thing("v1", "PersistentVolumeClaim", spec={"accessModes": ["RWX"],
         "resources": {"requests": {"storage": 1}}}), "spec.accessModes[0]",
         '"RWX" is text; accepted: ReadOnlyMany, ReadWriteMany, ReadWriteOnce, ReadWriteOncePod'),
        (pod(volumes=[{"name": "a", "configMap": {"name": "a", "defaultMode": 644}}]),
         "spec.volumes[0].configMap.defaultMode", "644 is greater than the maximum of 511"),
        (pod(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds", "0 is less than the minimum of 1"),
        (pod(priority=2**31), "spec.priority", "2147483648 is greater than the maximum of 2147483647"),
        (pod(securityContext={"runAsUser": 2**63}), "spec.securityContext.runAsUser",
         "9223372036854775808 is greater than the maximum of 2147483647"),
        (thing("batch/v1", "Job", spec={"backoffLimit": -1, "template": {"spec": {"restartPolicy": "Never",
         "containers": [{"name": "a", "image": "a"}]}}}), "spec.backoffLimit", "-1 is less than the minimum of 0"),
        (thing("v1", "Secret", data={"a": "abc"}), "data.a",
         "`abc` is no base64 text; must be base64, in groups of four characters"),
        (thing(LEASE, "Lease", spec={"renewTime": "yesterday"}), "spec.renewTime",
         "`yesterday` is no time; must be such as 2026-01-31T12:00:00Z"),
        (pod(volumes=[{"name": "a", "emptyDir": {"sizeLimit": "64 GB"}}]), "spec.volumes[0].emptyDir.sizeLimit",
         "`64 GB` is no quantity: a quantity is a number with an optional unit: 500m, 4, 2.5, 100M, 64Gi, 2Ti"),
    ],
)  # fmt: skip
def test_values_outside_the_limits(schemas: Schemas, manifest: dict[str, Any], path: str, message: str):
    assert [(violation.path, violation.message) for violation in schemas.check(manifest)] == [(path, message)]


@pytest.mark.parametrize(
    "manifest",
    [
        pod(restartPolicy="", dnsPolicy=None, priority=-(2**31)),
        thing("v1", "Secret", data={"a": "", "b": "YWI=", "c": "YWJj\nYWJj\n"}),
        thing(LEASE, "Lease", spec={"renewTime": "2026-01-31T12:00:00.5+01:00"}),
    ],
)
def test_values_within_the_limits(schemas: Schemas, manifest: dict[str, Any]):
    assert schemas.check(manifest) == []


def test_each_limit_is_of_a_field_that_exists():
    definitions = BuiltinSchemas("1.34")._definitions
    fields = {
        f"{name.rpartition('.')[2]}.{field}"
        for name, definition in definitions.items()
        if name.startswith("io.k8s.api.")
        for field in definition.get("properties", {})
    }
    assert {*_CHOICES, *_BOUNDS} - fields == set()
