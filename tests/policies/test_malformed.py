"""A component can make an object of any shape: what the schema refuses is a finding, and no rule falls over it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gpuyard.manifests import Rendered
from gpuyard.manifests.data import at
from gpuyard.manifests.graph import Graph
from gpuyard.manifests.pods import Path
from gpuyard.model.registry import Build
from infra import assemble
from tests.damage import GONE, damage, places, put

ENVIRONMENT = assemble.load("prod")
BUILT = assemble.build(ENVIRONMENT, allow_missing=True)
OBJECTS = BUILT.objects
MOST = 80
"""Places of one object that are damaged."""


def damaged(one: Rendered) -> Iterator[Rendered]:
    """Yield objects like this one under names of their own, each with damage at one place."""
    inside = [path for path in places(one.manifest) if path[0] not in ("apiVersion", "kind") and path != ("metadata",)]
    inside = [path for path in inside if path not in (("metadata", "name"), ("metadata", "namespace"))]
    number = 0
    for path in inside[:: len(inside) // MOST + 1]:
        for new in damage(at(one.manifest, *path)):
            manifest = put(one.manifest, path, new)
            number += 1
            metadata = manifest["metadata"] | {"name": f"{one.identity.name}-{number}"}
            yield replace(one, manifest=manifest | {"metadata": metadata}, id=f"{one.id}-{number}")


def judged(*wrong: Rendered) -> dict[str, list[str]]:
    """Return `rule path: message` of the findings about some objects, in the render of the environment, by object."""
    objects = [*OBJECTS, *wrong]
    assert len(Graph(objects).order()) == len(objects)
    found: dict[str, list[str]] = {}
    for finding in assemble.rules().judge(assemble.context(ENVIRONMENT, Build(objects, BUILT.skipped))).findings:
        found.setdefault(finding.object, []).append(f"{finding.rule} {finding.path}: {finding.message}")
    return found


def test_no_rule_falls_over_an_object_of_any_shape() -> None:
    largest: dict[str, Rendered] = {}
    for one in OBJECTS:
        if one.manifest["kind"] != "CustomResourceDefinition":
            kind = one.manifest["kind"]
            largest[kind] = max(largest.get(kind, one), one, key=lambda each: len(str(each.manifest)))
    wrong = [each for one in largest.values() for each in damaged(one)]
    found = judged(*wrong)

    assert len(wrong) > 4000
    assert len(found) > len(wrong) / 2


POD = ("spec", "pytorchReplicaSpecs", "Master", "template", "spec")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("imagePullSecrets",), "registry", 'imagePullSecrets: "registry" is text; must be a list'),
        (("containers", 0, "env"), {"MODE": "fast"}, "containers[0].env: this is a map; must be a list"),
        (("containers", 0, "env", 0), "DB_LOGIN=hunter2", "containers[0].env[0]: must be a map"),
        (
            ("containers", 0, "resources", "limits", "memory"),
            "much",
            "containers[0].resources.limits.memory: `much` is no quantity: a quantity is a number with an optional "
            "unit: 500m, 4, 2.5, 100M, 64Gi, 2Ti",
        ),
        (("containers",), GONE, "containers: required field is missing"),
    ],
)
def test_what_is_malformed_is_said_once(path: Path, value: Any, said: str) -> None:
    run = next(one for one in OBJECTS if one.manifest["kind"] == "PyTorchJob")
    manifest = put(run.manifest, (*POD, *path), value)
    metadata = manifest["metadata"] | {"name": "malformed"}
    found = judged(replace(run, manifest=manifest | {"metadata": metadata}, id="malformed"))
    title = "a field that the API server would refuse or drop"
    place, _, message = said.partition(": ")
    said = f"schema {'.'.join(POD)}.{place}: {title}\n{message}"
    assert found == {f"PyTorchJob {run.identity.namespace}/malformed": [said]}
