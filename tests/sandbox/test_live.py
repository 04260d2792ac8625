"""The shipped sandbox environment on a real control plane: what works, and that a wrong render does not."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpuyard import sandbox
from gpuyard.errors import InputError
from gpuyard.manifests import Rendered
from gpuyard.manifests.data import unshared
from gpuyard.sandbox import scenario
from gpuyard.sandbox.api import Api, ApiError, has_condition
from gpuyard.sandbox.state import Home
from infra import assemble
from tests.sandbox.conftest import Live

pytestmark = pytest.mark.sandbox


def changed(rendered: Rendered, change: Callable[[Any], None]) -> Rendered:
    manifest = unshared(rendered.manifest)
    change(manifest)
    return replace(rendered, manifest=manifest)


def another(job: Rendered, name: str, change: Callable[[Any], None] = lambda manifest: None) -> Rendered:
    """Return a job as a run of its own."""

    def rename(manifest: Any) -> None:
        manifest["metadata"]["name"] = name
        change(manifest)

    return changed(job, rename)


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 120) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"still no {what} after {seconds} s"
        time.sleep(0.3)
    return found


def pods(api: Api, job: Rendered) -> list[Any]:
    return api.list("v1", "Pod", job.identity.namespace, f"training.kubeflow.org/job-name={job.identity.name}")


def bound(api: Api, job: Rendered) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods(api, job) if pod["spec"].get("nodeName")]


def available(api: Api, deployment: Rendered) -> bool:
    return has_condition(api.get_like(deployment.manifest) or {}, "Available")


def withdraw(api: Api, job: Rendered) -> None:
    who = job.identity
    api.delete(job.manifest["apiVersion"], who.kind, who.name, who.namespace)
    wait_for(lambda: not pods(api, job), "end of the pods")


def test_it_runs_and_a_second_up_does_nothing(live: Live) -> None:
    assert live.up().unchanged
    assert live.said == [f"sandbox {live.name} is already up"]
    found = sandbox.status(live.name)
    assert (found.state, found.environment) == ("running", "sandbox")
    assert all(found.processes.values())
    assert {"etcd", "kube-apiserver", "kubelet", "training-operator", "volcano-admission"} <= found.processes.keys()


def test_every_substitution_is_told(live: Live) -> None:
    rows = {(row.object, row.field): row.rendered for row in live.up().table}
    assert rows["Service volcano-system/volcano-admission-service", "port 443"] == "its pods"
    assert rows["Service kubeflow/training-operator", "port 443"] == "its pods"
    assert rows["Deployment kubeflow/training-operator", "command"] == "/manager"


def test_what_is_applied_is_what_is_rendered(live: Live) -> None:
    live.up()
    seen = 0
    for rendered in live.objects:
        found = live.api.get_like(rendered.manifest) or {}
        if rendered.identity.kind == "Service":
            assert found["spec"]["type"] == "ClusterIP"
            assert found["spec"]["selector"] == rendered.manifest["spec"]["selector"]
            seen += 1
        for hook, other in zip(rendered.manifest.get("webhooks", ()), found.get("webhooks", ()), strict=True):
            assert other["clientConfig"]["service"] == {"port": 443} | hook["clientConfig"]["service"]
            assert other["failurePolicy"] == "Fail"
            seen += 1
    assert seen > 10


def test_deployments_are_available_because_their_processes_are_ready(live: Live) -> None:
    live.up()
    operator = live.find("Deployment", "training-operator")
    before = Home(live.name).read_controllers()["training-operator"]
    assert before.ready
    # Stopped, and not dead: it stays what it is, and answers nobody. The next question is about a new webhook.
    hooks = live.find("ValidatingWebhookConfiguration", "validator.training-operator")
    os.kill(before.process.pid, signal.SIGSTOP)
    try:
        live.api.delete(hooks.manifest["apiVersion"], hooks.identity.kind, hooks.identity.name)
        wait_for(lambda: not available(live.api, operator), "end of availability")
        (pod,) = live.api.list("v1", "Pod", "kubeflow", "control-plane=kubeflow-training-operator")
        (ready,) = [one for one in pod["status"]["conditions"] if one["type"] == "Ready"]
        assert ready["status"] == "False"
        assert ready["message"] == "it waits for its health check"
    finally:
        os.kill(before.process.pid, signal.SIGCONT)
        live.apply(live.objects, layers=("platform",))
    assert available(live.api, operator)


def test_a_service_without_a_process_behind_it_is_told_to_who_asks(live: Live) -> None:
    live.up()
    ports = [{"port": 443}]
    service: Any = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "lost", "namespace": "vision"}}
    service |= {"spec": {"selector": {"app": "lost"}, "ports": ports}}
    client = {"service": {"namespace": "vision", "name": "lost", "port": 443, "path": "/"}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    webhook = {
        "name": "lost.gpuyard.dev",
        "clientConfig": client,
        "rules": [rule],
        "objectSelector": {"matchLabels": {"lost": "true"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    hooks: Any = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    hooks |= {"metadata": {"name": "lost"}, "webhooks": [webhook]}
    asked = {"name": "lost", "namespace": "vision", "labels": {"lost": "true"}}
    live.api.apply(service)
    live.api.apply(hooks)

    def refused() -> str:
        try:
            live.api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": asked}, dry_run=True)
        except ApiError as error:
            return error.message
        return ""

    try:
        wait_for(lambda: "no process behind Service vision/lost" in refused(), "refusal by the relay")
    finally:
        live.api.delete(hooks["apiVersion"], hooks["kind"], "lost")
        live.api.delete("v1", "Service", "lost", "vision")


def test_the_training_operators_webhook_refuses_a_wrong_job(live: Live) -> None:
    def rename_container(manifest: Any) -> None:
        manifest["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "main"

    wrong = another(live.find("TFJob", "mnist-a"), "wrong", rename_container)
    with pytest.raises(ApiError) as caught:
        live.api.apply(wrong.manifest)
    assert caught.value.message == (
        'admission webhook "validator.tfjob.training-operator.kubeflow.org" denied the request: '
        "spec.tfReplicaSpecs[Worker].template.spec.containers: Required value: "
        "must have at least one container with name tensorflow"
    )


def test_volcanos_webhook_refuses_a_wrong_job(live: Live) -> None:
    pod = {"containers": [{"name": "main", "image": "acme/train"}], "restartPolicy": "Never"}
    wrong = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "wrong", "namespace": "research"},
        "spec": {
            "schedulerName": "volcano",
            "queue": "research",
            "minAvailable": 3,
            "tasks": [{"name": "worker", "replicas": 2, "template": {"spec": pod}}],
        },
    }
    with pytest.raises(ApiError) as caught:
        live.api.apply(wrong)
    assert caught.value.message.startswith(
        'admission webhook "validatejob.volcano.sh" denied the request: '
        "job 'minAvailable' should not be greater than total replicas in tasks"
    )


def test_an_unknown_field_is_refused(live: Live) -> None:
    def misspell(manifest: Any) -> None:
        manifest["spec"]["runPolicy"]["cleanPodPolice"] = "All"

    ((_, why),) = sandbox.dry_run(live.api, [another(live.find("TFJob", "mnist-a"), "wrong", misspell)])
    assert why.endswith(".spec.runPolicy.cleanPodPolice: field not declared in schema")


def test_jobs_of_both_kinds_run_to_completion(live: Live) -> None:
    jobs = [live.find("TFJob", "mnist-a"), live.find("TFJob", "mnist-b"), live.find("PyTorchJob", "cifar")]
    live.apply(live.objects)
    for job in jobs:
        wait_for(lambda job=job: has_condition(live.api.get_like(job.manifest) or {}, "Succeeded"), str(job.identity))
    # cleanPodPolicy: Running. The parameter server would run for ever; the operator takes it away.
    roles = {pod["metadata"]["labels"]["training.kubeflow.org/replica-type"] for pod in pods(live.api, jobs[0])}
    assert "chief" in roles
    wait_for(lambda: not [one for one in pods(live.api, jobs[0]) if one["status"]["phase"] == "Running"], "clean end")
    (claim,) = live.api.list("v1", "PersistentVolumeClaim", "research")
    assert claim["status"]["phase"] == "Bound"


def test_runs_are_left_alone_and_pruned_once_finished(live: Live) -> None:
    live.apply(live.objects)
    job = live.find("TFJob", "mnist-a")
    wait_for(lambda: has_condition(live.api.get_like(job.manifest) or {}, "Succeeded"), "finished run")
    assert job.identity in live.apply(live.objects).untouched
    done = live.apply(live.without("TFJob", "mnist-a"))
    assert job.identity in done.deleted
    assert live.api.get_like(job.manifest) is None


def test_another_environments_cluster_is_refused(live: Live) -> None:
    with pytest.raises(InputError, match="found sandbox; this command is for prod"):
        sandbox.apply("prod", live.objects, progress=live.said.append, name=live.name)


def a_pod_that_fits_nowhere(manifest: Any) -> None:
    manifest["spec"]["tfReplicaSpecs"]["Chief"]["template"]["spec"]["nodeSelector"] = {"no": "such-node"}


def test_a_gang_with_one_pod_that_fits_nowhere_holds_nothing(live: Live) -> None:
    live.up()
    job = another(live.find("TFJob", "mnist-a"), "gang", a_pod_that_fits_nowhere)
    live.api.apply(job.manifest)

    def refused() -> bool:
        group = live.api.get("scheduling.volcano.sh/v1beta1", "PodGroup", "gang", "research") or {}
        conditions = group.get("status", {}).get("conditions") or []
        return len(pods(live.api, job)) == 5 and any(one["type"] == "Unschedulable" for one in conditions)

    try:
        wait_for(refused, "verdict of the scheduler")
        assert bound(live.api, job) == []
    finally:
        withdraw(live.api, job)


def test_without_the_gang_plugin_it_would_hold_a_part(live: Live) -> None:
    def drop_plugin(manifest: Any) -> None:
        (file,) = manifest["data"]
        lines = manifest["data"][file].splitlines()
        start = lines.index("  - name: gang")
        end = next(index for index in range(start + 1, len(lines)) if not lines[index].startswith("    "))
        manifest["data"][file] = "\n".join(lines[:start] + lines[end:]) + "\n"

    job = another(live.find("TFJob", "mnist-a"), "gang", a_pod_that_fits_nowhere)
    try:
        live.up(live.with_changed(changed(live.find("ConfigMap", "volcano-scheduler"), drop_plugin)))
        live.api.apply(job.manifest)
        wait_for(lambda: len(bound(live.api, job)) >= 3, "part of the gang")
    finally:
        withdraw(live.api, job)
        live.up()


def test_without_the_gang_flag_jobs_hold_parts(live: Live) -> None:
    def drop_flag(manifest: Any) -> None:
        container = manifest["spec"]["template"]["spec"]["containers"][0]
        container["args"] = [one for one in container["args"] if not one.startswith("--gang-scheduler-name")]

    job = another(live.find("TFJob", "mnist-a"), "gang", a_pod_that_fits_nowhere)
    try:
        live.up(live.with_changed(changed(live.find("Deployment", "training-operator"), drop_flag)))
        live.api.apply(job.manifest)
        wait_for(lambda: len(bound(live.api, job)) >= 3, "part of the gang")
    finally:
        withdraw(live.api, job)
        live.up()


def test_without_its_queue_a_jobs_gang_is_refused(live: Live) -> None:
    queue = live.find("Queue", "research")
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "research"},
        "spec": {"minMember": 1, "queue": "research"},
    }
    live.up()
    live.api.apply(group, dry_run=True)
    try:
        live.up(live.without("Queue", "research"))
        assert live.api.get_like(queue.manifest) is None
        with pytest.raises(ApiError, match=r"denied the request.*queue"):
            live.api.apply(group, dry_run=True)
    finally:
        live.up()


def test_a_configmap_that_is_not_rendered_stops_its_controller(live: Live) -> None:
    def misname(manifest: Any) -> None:
        (volume,) = [one for one in manifest["spec"]["template"]["spec"]["volumes"] if "configMap" in one]
        volume["configMap"]["name"] = "scheduler-config"

    try:
        with pytest.raises(InputError) as caught:
            live.up(live.with_changed(changed(live.find("Deployment", "volcano-scheduler"), misname)))
        assert "a controller cannot start" in str(caught.value)
        assert "it mounts ConfigMap volcano-system/scheduler-config, which does not exist" in str(caught.value)
    finally:
        live.up()


def test_a_flag_that_does_not_exist_stops_its_controller(live: Live) -> None:
    def misspell(manifest: Any) -> None:
        manifest["spec"]["template"]["spec"]["containers"][0]["args"].append("--gang-scheduler=volcano")

    try:
        with pytest.raises(InputError) as caught:
            live.up(live.with_changed(changed(live.find("Deployment", "training-operator"), misspell)))
        assert "error  controller training-operator stopped" in str(caught.value)
        assert "logs/training-operator.log" in str(caught.value)
        assert "flag provided but not defined: -gang-scheduler" in str(caught.value)
    finally:
        live.up()


def test_the_rendered_role_decides_what_a_controller_may_do(live: Live) -> None:
    def forbid(manifest: Any) -> None:
        manifest["rules"] = [one for one in manifest["rules"] if "podgroups" not in one["resources"]]

    role = live.find("ClusterRole", "volcano-scheduler")
    review: Any = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {"name": ""}}
    review["spec"] = {
        "user": "system:serviceaccount:volcano-system:volcano-scheduler",
        "resourceAttributes": {"group": "scheduling.volcano.sh", "resource": "podgroups", "verb": "list"},
    }
    assert live.api.create(review)["status"]["allowed"]
    try:
        live.apply(live.with_changed(changed(role, forbid)), layers=("platform",))
        assert not live.api.create(review)["status"]["allowed"]
    finally:
        live.up()


@pytest.mark.parametrize("name", ["sandbox", "dev", "staging", "prod"])
def test_every_object_of_every_environment_is_accepted(live: Live, name: str) -> None:
    live.up()
    objects = assemble.build(assemble.load(name), allow_missing=True).objects
    for one in objects:
        if one.identity.kind == "Namespace" and not live.api.get_like(one.manifest):
            live.api.apply(one.manifest)
    refused = {one.identity.kind: why for one, why in sandbox.dry_run(live.api, objects)}
    # The GPU Operator's CRD comes with a chart that is not everywhere to be had.
    policy = {"ClusterPolicy": "the server serves no kind ClusterPolicy in nvidia.com/v1"}
    assert refused == ({} if name == "sandbox" else policy)


def test_the_deadlock_and_its_end(live: Live) -> None:
    found = scenario.deadlock(
        live.environment,
        live.objects,
        live.binaries,
        live.sources,
        progress=live.said.append,
        hold=8,
        run_for="3s",
        name=f"{live.name}-deadlock",
    )
    assert found.without_gang.broken == ()
    assert found.with_gang.broken == ()
    assert found.proven
    assert (found.gpus, found.threads) == (4, 4)
    assert found.held_still >= 8
    assert sum(track.samples[-1].held for track in found.without_gang.tracks) == 4
    assert sandbox.status(f"{live.name}-deadlock").state == "absent"
