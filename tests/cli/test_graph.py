"""`gpuyard graph`: what a person reads, and what other programs do."""

from __future__ import annotations

import json

from gpuyard.cli.draw import as_dot, as_json, as_mermaid, as_text, view
from gpuyard.manifests import Rendered, declare
from gpuyard.manifests.graph import Graph
from tests.cli.run import gpuyard


def thing(kind: str, name: str, namespace: str = "", component: str = "team", **more: object) -> Rendered:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return declare({"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}).of(component)


NAMESPACE, ACCOUNT = thing("Namespace", "t"), thing("ServiceAccount", "s", "t")
POD = thing("Pod", "p", "t", "jobs", spec={"serviceAccountName": "s", "containers": []})
OTHER = thing("PriorityClass", 'high"', component="priorities")
GRAPH = Graph([POD, ACCOUNT, OTHER, NAMESPACE])
ALL = [rendered.identity for rendered in GRAPH.order()]


def test_text_is_by_component_and_numbered_in_order() -> None:
    assert (
        as_text(view("dev", GRAPH, ALL, reverse=False), why=True)
        == """\
dev: 4 objects, 3 edges, numbered in the order to apply

platform
  team
    1  Namespace t
    3  ServiceAccount t/s
         lives in the namespace Namespace t
  priorities
    2  PriorityClass high"
  jobs
    4  Pod t/p
         lives in the namespace Namespace t
         runs as ServiceAccount t/s"""
    )


def test_only_shows_an_object_and_all_that_it_needs() -> None:
    shown = view("dev", GRAPH, [ACCOUNT.identity], reverse=False)
    assert [str(one.identity) for one in shown.objects] == ["Namespace t", "ServiceAccount t/s"]


def test_reversed_it_shows_what_has_to_go_first() -> None:
    assert (
        as_text(view("dev", GRAPH, [ACCOUNT.identity], reverse=True), why=True)
        == """\
dev: 2 objects, 1 edge, numbered in the order to delete

platform
  jobs
    1  Pod t/p
  team
    2  ServiceAccount t/s
         after Pod t/p: runs as"""
    )
    forwards, backwards = (view("dev", GRAPH, ALL, reverse=reverse).objects for reverse in (False, True))
    assert backwards == forwards[::-1]


def test_dot() -> None:
    assert (
        as_dot(view("dev", GRAPH, [ACCOUNT.identity, OTHER.identity], reverse=False), why=True)
        == """\
digraph "dev" {
  rankdir=LR;
  node [shape=box];
  subgraph cluster_0 {
    label="team";
    n0 [label="Namespace t"];
    n2 [label="ServiceAccount t/s"];
  }
  subgraph cluster_1 {
    label="priorities";
    n1 [label="PriorityClass high\\\""];
  }
  n2 -> n0 [label="lives in the namespace"];
}"""
    )


def test_mermaid() -> None:
    shown = view("dev", GRAPH, [ACCOUNT.identity, OTHER.identity], reverse=False)
    assert (
        as_mermaid(shown, why=False)
        == """\
flowchart LR
  subgraph c0["team"]
    n0["Namespace t"]
    n2["ServiceAccount t/s"]
  end
  subgraph c1["priorities"]
    n1["PriorityClass high#quot;"]
  end
  n2 --> n0"""
    )
    assert 'n2 -->|"lives in the namespace"| n0' in as_mermaid(shown, why=True)


def test_json() -> None:
    shown = json.loads(as_json(view("dev", GRAPH, [ACCOUNT.identity], reverse=False)))
    assert shown["environment"] == "dev"
    assert shown["objects"][1] == {
        "id": "ServiceAccount/t/s", "apiVersion": "v1", "kind": "ServiceAccount", "namespace": "t", "name": "s",
        "component": "team", "layer": "platform",
    }  # fmt: skip
    assert shown["edges"] == [
        {"dependent": "ServiceAccount/t/s", "dependency": "Namespace/t", "reason": "lives in the namespace"}
    ]


def test_the_command_tells_what_a_job_needs_and_why() -> None:
    result = gpuyard("graph", "sandbox", "--only", "job/mnist-a", "--why")
    assert result.returncode == 0
    lines = [line.strip() for line in result.stdout.splitlines()]
    job = next(number for number, line in enumerate(lines) if " TFJob research/mnist-a-" in line)
    assert {
        "runs as ServiceAccount research/training",
        "is checked by the webhook ValidatingWebhookConfiguration validator.training-operator.kubeflow.org",
        "is of the kind CustomResourceDefinition tfjobs.kubeflow.org",
        "is checked by the webhook Deployment kubeflow/training-operator",
    } <= set(lines[job + 1 :])
    assert not any("mnist-b" in line for line in lines)


def test_the_command_shows_the_order_to_delete() -> None:
    apply, delete = (
        json.loads(gpuyard("graph", "sandbox", "--format", "json", *reverse).stdout)["objects"]
        for reverse in ([], ["--reverse"])
    )
    assert delete == apply[::-1]


def test_a_graph_is_the_same_under_any_hash_seed() -> None:
    one, two = (gpuyard("graph", "sandbox", "--format", "dot", "--why", seed=seed).stdout for seed in ("1", "77"))
    assert one == two
