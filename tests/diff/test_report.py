"""What the three formats of a report look like, and that none of them shows a credential."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from gpuyard.diff.consequences import FACTS
from gpuyard.diff.facts import View, judge
from gpuyard.diff.report import Report, as_json, as_markdown, as_text
from gpuyard.diff.state import State
from gpuyard.errors import Origin
from gpuyard.manifests import Rendered, declare
from gpuyard.manifests.diff import compare
from tests.diff.cases import CASES, case_outcomes


def of_case(name: str) -> Report:
    return Report("prod", "main (3f2a1bc)", case_outcomes(CASES / name))


def of(before: list[Rendered], after: list[Rendered]) -> Report:
    view = View(State(tuple(before)), State(tuple(after)))
    return Report("prod", "main", judge(compare(before, after), view, FACTS))


def config(name: str = "a", **data: str) -> Rendered:
    return declare({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})


def test_markdown_has_a_first_line_that_stays_and_folds_the_details() -> None:
    assert as_markdown(of_case("pod-security")).splitlines() == [
        "<!-- gpuyard diff prod -->",
        "",
        "### prod: 2 objects change against main (3f2a1bc)",
        "",
        '**~ Namespace vision** metadata.labels\\["pod-security.kubernetes.io/enforce"\\] baseline -&#62; privileged',
        "- high: Pod Security goes down from baseline to privileged: pods here may do more on their nodes",
        "",
        "<details><summary>2 lines</summary>",
        "",
        "```diff",
        '- metadata.labels["pod-security.kubernetes.io/enforce"] baseline',
        '+ metadata.labels["pod-security.kubernetes.io/enforce"] privileged',
        "```",
        "",
        "</details>",
        "",
        '**~ Namespace ads** metadata.labels\\["pod-security.kubernetes.io/enforce"\\] privileged -&#62; restricted',
        "- medium: new pods here that need more than restricted are refused; those that run stay",
        "",
        "<details><summary>2 lines</summary>",
        "",
        "```diff",
        '- metadata.labels["pod-security.kubernetes.io/enforce"] privileged',
        '+ metadata.labels["pod-security.kubernetes.io/enforce"] restricted',
        "```",
        "",
        "</details>",
    ]


def test_a_value_cannot_end_the_block_that_it_stands_in() -> None:
    text = as_markdown(of([config(a="x")], [config(a="```` </details> <b>")]))
    assert "\n`````diff\n" in text
    assert text.count("\n`````\n") == 1
    assert "**~ ConfigMap a** data a x -&#62; \\`\\`\\`\\` &#60;/details&#62; &#60;b&#62;" in text


def test_a_comment_is_never_longer_than_github_takes() -> None:
    before = [config(f"c-{number}", a="1") for number in range(2000)]
    after = [config(f"c-{number}", a=str(number + 2)) for number in range(2000)]
    text = as_markdown(of(before, after))
    assert 55_000 < len(text) < 65_536
    assert re.search(r"and \d+ more; `gpuyard diff prod` shows all of them$", text)


def test_markdown_says_what_both_sides_went_without() -> None:
    text = as_markdown(Report("prod", "main", [], ("gpu-operator",)))
    assert text.splitlines()[-1] == "Incomplete: both sides are rendered without gpu-operator."


def test_no_text_moves_the_cursor_or_turns_the_direction() -> None:
    report = of([], [config("\x1b[2Ja\u202e")])
    assert "ConfigMap  \\u001b[2Ja\\u202e" in as_text(report)
    assert "\x1b" not in as_markdown(report)


def test_json_has_every_object_field_and_consequence() -> None:
    before = declare(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "b"}, "data": {"k": "one"}}
    )
    after = declare({**before.manifest, "type": "Opaque", "data": {"k": "two"}}, origin=Origin("stacks/b.yaml", 3))
    assert json.loads(as_json(of([before], [after]))) == {
        "environment": "prod",
        "base": "main",
        "summary": {
            "changes": 1,
            "added": 0,
            "removed": 0,
            "changed": 0,
            "replaced": 1,
            "risks": {"high": 0, "medium": 1, "low": 0, "none": 0},
        },
        "skipped": [],
        "changes": [
            {
                "object": "Secret b/a",
                "verb": "replaced",
                "risk": "medium",
                "id": "Secret/b/a",
                "component": "",
                "layer": "platform",
                "file": "stacks/b.yaml",
                "line": 3,
                "former": None,
                "fields": [
                    {"path": "data.k", "before": "(hidden)", "after": "(hidden)", "reordered": False, "ignored": False},
                    {"path": "type", "after": "Opaque", "reordered": False, "ignored": False},
                ],
                "consequences": [
                    {
                        "risk": "medium",
                        "text": "is deleted and created again, because type cannot change",
                        "fact": "immutable",
                        "source": "gpuyard/manifests/immutable.py, gpuyard/manifests/transitions.py",
                    }
                ],
            }
        ],
    }


@pytest.mark.parametrize("form", [as_text, as_json, as_markdown])
def test_no_format_shows_a_credential(form: Callable[[Report], str]) -> None:
    report = of_case("credentials")
    text = form(report)
    assert "(hidden)" in text
    assert not re.search("first-value|second-value|same-value", text)
    assert "new-secret" in text or form is as_text, "the name of a Secret is no secret"


def test_several_changes_of_one_line_each_are_sorted_by_risk() -> None:
    risks = [outcome.risk for outcome in case_outcomes(CASES / "volume-removed")]
    assert risks == ["high", "medium", "medium"]


def test_every_fact_has_an_id_of_its_own() -> None:
    ids = [fact.id for fact in FACTS]
    assert sorted(ids) == sorted(set(ids))
