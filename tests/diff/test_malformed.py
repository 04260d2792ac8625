"""A committed base can be edited by hand, and a component can be wrong: a diff falls over no object of any shape."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuyard.diff.consequences import FACTS
from gpuyard.diff.facts import View, judge
from gpuyard.diff.report import Report, as_json, as_markdown, as_text
from gpuyard.diff.state import State, describe
from gpuyard.manifests import Rendered
from gpuyard.manifests.data import at
from gpuyard.manifests.diff import compare
from infra import assemble
from tests.damage import damage, places, put

MOST = 12
"""Places of one object that are damaged."""

FIXED = (("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("metadata", "namespace"))


def state() -> State:
    environment = assemble.load("prod")
    return describe(environment, assemble.build(environment, allow_missing=True))


GOOD = state()
LARGEST: dict[str, Rendered] = {}
for each in GOOD.objects:
    if each.manifest["kind"] != "CustomResourceDefinition":
        LARGEST[each.manifest["kind"]] = max(
            LARGEST.get(each.manifest["kind"], each), each, key=lambda one: len(str(one.manifest))
        )


@pytest.mark.parametrize("kind", sorted(LARGEST))
def test_no_fact_falls_over_an_object_of_any_shape(kind: str) -> None:
    one = LARGEST[kind]
    index = GOOD.objects.index(one)
    inside = [path for path in places(one.manifest) if path not in FIXED]
    for path in inside[:: len(inside) // MOST + 1]:
        for new in damage(at(one.manifest, *path)):
            wrong = replace(one, manifest=put(one.manifest, path, new))
            bad = replace(GOOD, objects=(*GOOD.objects[:index], wrong, *GOOD.objects[index + 1 :]))
            for before, after in ((GOOD, bad), (bad, GOOD)):
                changes = compare(before.objects, after.objects)
                assert [change.identity for change in changes] == (
                    [] if wrong.manifest == one.manifest else [one.identity]
                )
                report = Report("prod", "base", judge(changes, View(before, after), FACTS), ())
                assert all(form(report) for form in (as_text, as_json, as_markdown))
