"""Runs share equal parts, which are read, judged and written once. Nothing may be overlooked by that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from gpuyard.diff.state import describe, from_lines, to_lines
from gpuyard.manifests import Manifest, Rendered
from gpuyard.manifests.data import at, unshared
from gpuyard.manifests.graph import Graph
from gpuyard.manifests.yaml.emit import each_yaml
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Build
from infra import assemble
from tests.damage import places, put

WRONG: dict[type, Any] = {str: "Wrong value!", int: 99, bool: "text"}
"""What takes the place of a value of a type; that of a map or a list is an empty one."""


@cache
def production() -> tuple[Environment, list[Rendered]]:
    environment = assemble.load("prod")
    return environment, assemble.build(environment, allow_missing=True).objects


def wrong(value: Any) -> Any:
    """Return what takes the place of a value."""
    return type(value)() if isinstance(value, (dict, list)) else WRONG[type(value)]


def damaged_runs(run: Rendered) -> Iterator[Rendered]:
    """Yield a run for each of its places, wrong there and else like the others."""
    fixed = ("apiVersion", "kind", "metadata")
    for number, path in enumerate(path for path in places(run.manifest) if path[0] not in fixed or len(path) > 2):
        manifest: Manifest = put(run.manifest, path, wrong(at(run.manifest, *path)))
        name = f"{run.identity.name[:-6]}{number:06d}"
        yield replace(
            run, manifest=manifest | {"metadata": manifest["metadata"] | {"name": name}}, id=f"wrong-{number}"
        )


def said(environment: Environment, objects: list[Rendered]) -> dict[str, Any]:
    """Return everything that is worked out about some objects."""
    verdict = assemble.rules().judge(assemble.context(environment, Build(objects)))
    return {
        "edges": Graph(objects).edges,
        "references": [one.references for one in objects],
        "findings": verdict.findings,
        "unjudged": verdict.unjudged,
        "yaml": list(each_yaml(one.manifest for one in objects)),
    }


@pytest.mark.parametrize("kind", ["PyTorchJob", "TFJob"])
def test_what_is_said_of_runs_that_share_parts_is_said_of_each_alone(kind: str) -> None:
    environment, objects = production()
    run = max((one for one in objects if one.manifest["kind"] == kind), key=lambda one: len(str(one.manifest)))
    bad = list(damaged_runs(run))
    together = said(environment, [*objects, *bad])

    copies = [replace(one, manifest=unshared(one.manifest)) for one in (*objects, *bad)]
    assert said(environment, copies) == together
    # Other words in a command are no mistake, and a thing that many name is missing once.
    found = {finding.object for finding in together["findings"]}
    assert len(bad) * 0.4 < len(found & {str(one.identity) for one in bad}) < len(bad)


def test_a_base_that_shares_no_parts_is_the_same_base() -> None:
    environment, objects = production()
    copies = [replace(one, manifest=unshared(one.manifest)) for one in objects]
    lines = list(to_lines(describe(environment, Build(copies))))

    for one, read in zip(objects, from_lines(lines, objects).objects, strict=True):
        assert read.manifest == one.manifest
