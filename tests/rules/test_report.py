"""What a run prints for people and for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuyard.errors import Origin
from gpuyard.manifests.credentials import Hidden
from gpuyard.rules import Finding, Unjudged
from gpuyard.rules.report import as_json, as_text, exit_code

UNFIT = Finding(
    rule="queue-fits-gang",
    severity="error",
    object="PyTorchJob vision/llama-70b-5c1f2a",
    path="spec.pytorchReplicaSpecs",
    message="job llama-70b does not fit its team's quota\n12 nodes x 8 GPUs = 96 h100 GPUs; team vision may use 64",
    fix="nodes: 8, or raise the quota to at least 96",
    origin=Origin("stacks/prod/jobs/llama-70b.yaml", 7),
    written="nodes: 12",
)
BUILT_IN = Finding("references", "warning", "Queue research", "spec.parent", "Queue all does not exist", value="all")


def test_text_is_read_from_the_title_to_the_fix() -> None:
    assert (
        as_text([UNFIT, BUILT_IN])
        == """\
error  job llama-70b does not fit its team's quota
  stacks/prod/jobs/llama-70b.yaml:7   nodes: 12
  12 nodes x 8 GPUs = 96 h100 GPUs; team vision may use 64
  fix: nodes: 8, or raise the quota to at least 96

warning  Queue all does not exist
  Queue research  spec.parent: all"""
    )


def test_text_names_the_object_where_the_file_does_not_say_more() -> None:
    assert (
        as_text([UNFIT._replace(message="too large", fix="", written="")])
        == """\
error  too large
  stacks/prod/jobs/llama-70b.yaml:7   PyTorchJob vision/llama-70b-5c1f2a  spec.pytorchReplicaSpecs"""
    )


def test_text_ends_with_what_was_not_judged() -> None:
    unjudged = [Unjudged("ClusterPolicy gpu", "its schema was left out", "schema")]

    assert as_text([], unjudged) == "not judged\n  schema  ClusterPolicy gpu: its schema was left out"
    assert as_text([BUILT_IN], unjudged).splitlines()[2:4] == ["", "not judged"]


def test_json_is_one_object_with_every_field() -> None:
    report = json.loads(as_json([UNFIT, BUILT_IN], {"errors": 1}))

    assert report == {
        "findings": [
            {
                "rule": "queue-fits-gang",
                "severity": "error",
                "object": "PyTorchJob vision/llama-70b-5c1f2a",
                "path": "spec.pytorchReplicaSpecs",
                "message": UNFIT.message,
                "fix": "nodes: 8, or raise the quota to at least 96",
                "value": None,
                "file": "stacks/prod/jobs/llama-70b.yaml",
                "line": 7,
            },
            {
                "rule": "references",
                "severity": "warning",
                "object": "Queue research",
                "path": "spec.parent",
                "message": "Queue all does not exist",
                "fix": "",
                "value": "all",
                "file": None,
                "line": None,
            },
        ],
        "summary": {"errors": 1},
    }


@pytest.mark.parametrize(
    ("value", "text", "as_data"),
    [
        (7, "7", 7),
        (False, "false", False),
        ("", "", ""),
        ("a\x1b[2Jb", '"a\\u001b[2Jb"', "a\x1b[2Jb"),
        ("x" * 70, "x" * 60 + "...", "x" * 70),
        ({"a": [1, None]}, '{"a": [1, null]}', {"a": [1, None]}),
        (Hidden("0123"), "(hidden)", "(hidden)"),
        ({"a": Hidden("0123")}, '{"a": "(hidden)"}', {"a": "(hidden)"}),
    ],
)
def test_what_stands_there(value: Any, text: str, as_data: Any) -> None:
    finding = BUILT_IN._replace(value=value)
    assert as_text([finding]).splitlines()[1] == f"  Queue research  spec.parent: {text}"
    assert json.loads(as_json([finding], {}))["findings"][0]["value"] == as_data


def test_only_errors_fail_a_run() -> None:
    assert (exit_code([]), exit_code([BUILT_IN]), exit_code([BUILT_IN, UNFIT])) == (0, 0, 1)
