"""The runner: what becomes of hits, in which order, and what is said where a source is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from gpuyard.errors import Origin
from gpuyard.manifests import Rendered, declare
from gpuyard.manifests.data import at
from gpuyard.rules import Context, Finding, Hit, Rule, Rules, Unjudged
from tests.rules.cases import small_environment


def config_map(name: str, origin: Origin | None = None) -> Rendered:
    return declare({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}, origin=origin)


def named(rendered: Rendered, context: Context) -> Iterable[Hit]:
    yield Hit(rendered, "metadata.name", f"called {rendered.identity.name}")


RULE = Rule("no-names", "object", "error", "Names are long.", "take it away", "https://example.com", named)


def run(
    *rules: Rule, objects: Iterable[Rendered], skipped: tuple[str, ...] = ()
) -> tuple[list[Finding], list[Unjudged]]:
    found = Rules()
    found.add(*rules)
    return found.judge(Context(tuple(objects), small_environment({}), skipped))


def test_a_finding_has_the_place_of_its_object_and_the_fix_of_its_rule() -> None:
    findings, _ = run(RULE, objects=[config_map("a", Origin("stacks/prod/jobs/a.yaml", 3))])

    assert findings == [
        Finding(
            rule="no-names",
            severity="error",
            object="ConfigMap a",
            path="metadata.name",
            message="called a",
            fix="take it away",
            origin=Origin("stacks/prod/jobs/a.yaml", 3),
        )
    ]


def test_a_hit_may_know_a_better_place_and_a_better_fix() -> None:
    def check(rendered: Rendered, context: Context) -> Iterable[Hit]:
        yield Hit(rendered, "", "too many", Origin("a.yaml", 7), "nodes: 8", "nodes: 12")

    findings, _ = run(RULE._replace(check=check), objects=[config_map("a", Origin("a.yaml", 1))])

    assert [(each.origin, each.fix, each.written) for each in findings] == [
        (Origin("a.yaml", 7), "nodes: 8", "nodes: 12")
    ]


def test_errors_come_first_then_places_in_the_order_of_their_lines() -> None:
    warning = RULE._replace(id="careful", severity="warning")
    objects = [config_map("a", Origin("a.yaml", 10)), config_map("b", Origin("a.yaml", 9)), config_map("c")]

    findings, _ = run(warning, RULE, objects=objects)

    assert [(each.severity, each.object) for each in findings] == [
        ("error", "ConfigMap c"),
        ("error", "ConfigMap b"),
        ("error", "ConfigMap a"),
        ("warning", "ConfigMap c"),
        ("warning", "ConfigMap b"),
        ("warning", "ConfigMap a"),
    ]


def test_what_cannot_be_judged_is_no_finding() -> None:
    def check(context: Context) -> Iterable[Hit | Unjudged]:
        yield Unjudged("the whole render", f"without {context.skipped[0]}")

    findings, unjudged = run(RULE._replace(scope="render", check=check), objects=[], skipped=("volcano",))

    assert findings == []
    assert unjudged == [Unjudged("the whole render", "without volcano", rule="no-names")]


def test_what_several_rules_ask_of_a_render_is_worked_out_once() -> None:
    asked: list[Context] = []

    def names(context: Context) -> list[str]:
        asked.append(context)
        return [one.identity.name for one in context.objects]

    context = Context((config_map("a"), config_map("b")), small_environment({}))
    assert context.once(names) is context.once(names)
    assert asked == [context]
    assert replace(context, objects=()).once(names) == [], "another render is asked anew"


def test_an_id_is_taken_once() -> None:
    with pytest.raises(ValueError, match="rule no-names is registered twice"):
        run(RULE, RULE, objects=[])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("spec", "tasks", 0, "name"), "a"),
        (("spec", "tasks", 1, "name"), None),
        (("spec", "name"), None),
        (("spec", "tasks", "name"), None),
        ((), {"spec": {"tasks": [{"name": "a"}]}}),
    ],
)
def test_at_ends_with_none_where_the_path_ends_early(path: tuple[str | int, ...], expected: object) -> None:
    assert at({"spec": {"tasks": [{"name": "a"}]}}, *path) == expected
