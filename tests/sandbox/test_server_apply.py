"""What apply sends, in which order, what it deletes, and what it never touches."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gpuyard.errors import InputError, Origin
from gpuyard.manifests import Identity, Lifecycle, Rendered, declare, identity
from gpuyard.manifests.graph import Graph
from gpuyard.sandbox import server_apply
from gpuyard.sandbox.api import ApiError
from gpuyard.sandbox.pod_status import CRASHED, Report, status
from gpuyard.sandbox.server_apply import Applied, apply_objects, batches, dry_run, keep_live
from tests.sandbox.fake_api import FakeApi

RUN = Lifecycle(retain=True, replace="never", ignore=("spec",), wait=False)


def config(name: str, namespace: str = "", lifecycle: Lifecycle | None = None, **data: str) -> Rendered:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return declare(manifest, lifecycle=lifecycle, origin=Origin("stacks/x.yaml", 3))


def namespace(name: str) -> Rendered:
    return declare({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def run(name: str, image: str = "a") -> Rendered:
    manifest = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name, "namespace": "vision"}}
    return declare({**manifest, "spec": {"image": image}}, layer="jobs", lifecycle=RUN)


def apply(api: FakeApi, *objects: Rendered, environment: str = "sandbox", **options: Any) -> Applied:
    return apply_objects(api, objects, environment=environment, progress=lambda _: None, **options)


def said(api: FakeApi) -> list[str]:
    """Return what was done since the inventory was written."""
    done = [line for line in api.log if "gpuyard-" not in line]
    api.log.clear()
    return done


def finish(api: FakeApi, name: str) -> None:
    done = {"conditions": [{"type": "Succeeded", "status": "True"}]}
    api.objects[Identity("kubeflow.org", "TFJob", "vision", name)]["status"] = done


def test_the_inventory_comes_first_and_then_what_others_need() -> None:
    api = FakeApi()
    apply(api, config("settings", "vision"), namespace("vision"))
    assert api.log == [
        "apply Namespace gpuyard-system",
        "apply ConfigMap gpuyard-system/gpuyard-inventory",
        "apply Namespace vision",
        "apply ConfigMap vision/settings",
    ]


def test_neighbours_that_need_each_other_are_not_sent_together() -> None:
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    parent = declare({**queue, "metadata": {"name": "a"}, "spec": {}})
    child = declare({**queue, "metadata": {"name": "b"}, "spec": {"parent": "a"}})
    other = declare({**queue, "metadata": {"name": "c"}, "spec": {}})
    graph = Graph([parent, child, other, namespace("x")])
    names = [[one.identity.name for one in batch] for batch in batches(graph.order(), graph)]
    assert names == [["x"], ["a"], ["b", "c"]]


def test_what_left_the_render_is_deleted_last_applied_first() -> None:
    api = FakeApi()
    apply(api, namespace("vision"), config("a", "vision"), config("b"))
    said(api)
    done = apply(api, config("b"))
    assert said(api) == ["apply ConfigMap b", "delete ConfigMap vision/a", "delete Namespace vision"]
    assert [str(one) for one in done.deleted] == ["ConfigMap vision/a", "Namespace vision"]


def test_protected_and_retained_objects_stay() -> None:
    api = FakeApi()
    apply(api, config("protected", lifecycle=Lifecycle(protect=True)), config("kept", lifecycle=Lifecycle(retain=True)))
    said(api)
    done = apply(api)
    assert said(api) == []
    assert sorted(str(one) for one in done.kept) == ["ConfigMap kept", "ConfigMap protected"]
    # The retained one is nobody's now; the protected one is still ours, and told of again.
    assert [str(one) for one in apply(api).kept] == ["ConfigMap protected"]


def test_a_chosen_few_delete_nothing() -> None:
    api = FakeApi()
    apply(api, config("a"), config("b"))
    said(api)
    apply(api, config("b"), only=lambda one: one.identity.name == "b")
    assert said(api) == ["apply ConfigMap b"]
    assert [str(one) for one in apply(api, config("b")).deleted] == ["ConfigMap a"]


def test_a_layer_deletes_only_its_own() -> None:
    api = FakeApi()
    apply(api, config("a"), run("x"))
    said(api)
    apply(api, config("b"), layers=("platform",))
    assert said(api) == ["apply ConfigMap b", "delete ConfigMap a"]


def test_a_run_is_never_touched_again() -> None:
    api = FakeApi()
    apply(api, run("x"))
    said(api)
    done = apply(api, run("x", image="b"))
    assert said(api) == []
    assert [str(one) for one in done.untouched] == ["TFJob vision/x"]


def test_a_run_that_left_the_render_is_deleted_once_it_is_finished() -> None:
    api = FakeApi()
    apply(api, run("x"))
    assert [str(one) for one in apply(api).kept] == ["TFJob vision/x"]
    finish(api, "x")
    assert [str(one) for one in apply(api).deleted] == ["TFJob vision/x"]


def test_another_environment_is_refused() -> None:
    api = FakeApi()
    apply(api, config("a"))
    with pytest.raises(InputError) as caught:
        apply(api, config("a"), environment="prod")
    assert str(caught.value) == (
        "error  this cluster belongs to another environment\n"
        "  ConfigMap gpuyard-system/gpuyard-inventory: environment\n"
        "  found sandbox; this command is for prod\n"
        "  fix: go on with environment sandbox, or start an empty cluster: gpuyard sandbox down"
    )


def test_another_engine_is_refused() -> None:
    api = FakeApi()
    apply(api, config("a"))
    inventory = api.objects[Identity("", "ConfigMap", "gpuyard-system", "gpuyard-inventory")]
    inventory["data"]["engine"] = "pulumi"
    with pytest.raises(InputError, match="found pulumi; this command is for apply"):
        apply(api, config("a"))


def test_a_refused_object_is_named_with_its_file_and_the_servers_words() -> None:
    api = FakeApi()
    api.refuses["a"] = ApiError(400, "BadRequest", 'unknown field "dta"')
    with pytest.raises(InputError) as caught:
        apply(api, config("a"))
    assert str(caught.value) == (
        'error  the API server refuses an object\n  stacks/x.yaml:3   ConfigMap a\n  unknown field "dta"'
    )


def test_a_refused_apply_is_still_in_the_inventory() -> None:
    api = FakeApi()
    api.refuses["b"] = ApiError(400, "BadRequest", "no")
    with pytest.raises(InputError):
        apply(api, namespace("a"), config("b"))
    api.refuses.clear()
    assert [str(one) for one in apply(api).deleted] == ["ConfigMap b", "Namespace a"]


def test_dry_run_lists_what_is_refused_and_changes_nothing() -> None:
    api = FakeApi()
    api.refuses["b"] = ApiError(422, "Invalid", "no")
    refused = dry_run(api, [config("a"), config("b")])
    assert [(one.identity.name, why) for one, why in refused] == [("b", "no")]
    assert api.log == []


@pytest.mark.parametrize(
    ("path", "mine", "theirs", "sent"),
    [
        ("spec.replicas", {"spec": {"replicas": 1}}, {"spec": {"replicas": 5}}, {"spec": {"replicas": 5}}),
        ("spec.replicas", {"spec": {"replicas": 1}}, {"spec": {}}, {"spec": {}}),
        ("data", {}, {"data": {"key": "of the controller"}}, {}),
        ("hooks[*].ca", {"hooks": [{"ca": "", "a": 1}]}, {"hooks": [{"ca": "x"}]}, {"hooks": [{"ca": "x", "a": 1}]}),
        ("hooks[1].ca", {"hooks": [{"ca": ""}]}, {"hooks": []}, {"hooks": [{"ca": ""}]}),
    ],
)
def test_fields_that_controllers_write_stay_theirs(path: str, mine: Any, theirs: Any, sent: Any) -> None:
    assert keep_live(mine, theirs, [path]) == sent


class Failing(FakeApi):
    """A cluster whose one controller fails to run; `when`: its last try, in seconds from now."""

    def __init__(self, when: float) -> None:
        super().__init__()
        self.when = time.time() + when

    def apply(self, manifest: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        if manifest["kind"] == "Deployment":
            self.objects[identity(manifest)] = {**manifest, "metadata": {**manifest["metadata"], "generation": 1}}
            named = {"name": "operator-1", "namespace": "system"}
            super().apply({**manifest, "kind": "ReplicaSet", "metadata": named})
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "operator-1"}
            metadata = {**named, "uid": "1", "labels": {"app": "operator"}, "ownerReferences": [owner]}
            pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
            pod["spec"] = manifest["spec"]["template"]["spec"]
            super().apply(pod)
            report = Report(CRASHED, "controller operator stopped\n/logs/operator.log\nno such flag", self.when)
            self.merge(pod, {"status": status(pod, report)})
            return manifest
        return super().apply(manifest, dry_run=dry_run)


def operator() -> Rendered:
    template = {"metadata": {"labels": {"app": "operator"}}, "spec": {"containers": [{"name": "m", "image": "o"}]}}
    spec = {"selector": {"matchLabels": {"app": "operator"}}, "template": template}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "operator", "namespace": "system"}}
    return declare({**manifest, "spec": spec}, origin=Origin("stacks/x.yaml", 3))


def test_a_controller_that_stops_ends_the_apply_with_its_log() -> None:
    with pytest.raises(InputError) as caught:
        apply(Failing(when=30), operator())
    assert str(caught.value) == (
        "error  controller operator stopped\n"
        "  stacks/x.yaml:3   Deployment system/operator\n"
        "  /logs/operator.log\n"
        "  no such flag"
    )


def test_a_failure_from_before_the_apply_is_waited_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_apply, "_PATIENCE", 0)
    with pytest.raises(InputError) as caught:
        apply(Failing(when=-30), operator())
    assert "an object does not become ready" in str(caught.value)
    assert "pod operator-1: controller operator stopped" in str(caught.value)
