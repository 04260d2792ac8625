"""What is replaced so that a rendered controller runs as a process, and what is left as it is."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from gpuyard.errors import InputError, Origin
from gpuyard.manifests import Rendered, declare
from gpuyard.sandbox.localize import Controller, run_locally
from gpuyard.sandbox.programs import repository
from gpuyard.sandbox.webhooks import calls, certificate_names, certificates, process_port, selects

FOLDER = Path("/sandbox/controllers")
BINARIES = {"vc-scheduler": Path("/bin/vc-scheduler"), "training-operator": Path("/bin/training-operator")}
PORTS = {
    "scheduler": {"metrics": 1001, "health": 1002},
    "operator": {"metrics": 2001, "health": 2002, "webhook": 2003},
}

SCHEDULER: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "scheduler", "namespace": "system"},
    "spec": {
        "template": {
            "metadata": {"labels": {"app": "scheduler"}},
            "spec": {
                "serviceAccountName": "scheduler",
                "containers": [
                    {
                        "image": "registry.acme.com:5000/volcanosh/vc-scheduler:v1.14.1",
                        "args": ["--scheduler-conf=/conf/s.conf", "--leader-elect=false", "-v=3"],
                        "env": [
                            {"name": "SOCKETS", "value": "/tmp/socks"},
                            {"name": "NS", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                        ],
                        "volumeMounts": [{"name": "conf", "mountPath": "/conf"}, {"name": "tmp", "mountPath": "/tmp"}],
                    }
                ],
                "volumes": [{"name": "conf", "configMap": {"name": "scheduler-conf"}}, {"name": "tmp", "emptyDir": {}}],
            },
        }
    },
}
OPERATOR: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "operator", "namespace": "system"},
    "spec": {
        "template": {
            "metadata": {"labels": {"app": "operator"}},
            "spec": {
                "containers": [
                    {
                        "image": "training-operator@sha256:12",
                        "command": ["/manager"],
                        "args": ["--gang-scheduler-name=volcano"],
                        "ports": [{"name": "hooks", "containerPort": 9443}],
                    }
                ]
            },
        }
    },
}
SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "operator", "namespace": "system"},
    "spec": {"selector": {"app": "operator"}, "ports": [{"port": 443, "targetPort": "hooks"}]},
}
HOOKS: dict[str, Any] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "hooks"},
    "webhooks": [{"name": "a.b.c", "clientConfig": {"service": {"name": "operator", "namespace": "system"}}}],
}


def controller(manifest: dict[str, Any]) -> Controller:
    name = manifest["metadata"]["name"]
    deployment = declare(copy.deepcopy(manifest), origin=Origin("stacks/x.yaml", 3))
    found = run_locally(deployment, BINARIES, FOLDER / name, PORTS[name])
    assert found
    return found


def with_volume(volume: dict[str, Any]) -> dict[str, Any]:
    changed = copy.deepcopy(SCHEDULER)
    changed["spec"]["template"]["spec"]["volumes"][0] = {"name": "conf", **volume}
    return changed


@pytest.mark.parametrize(
    "image", ["vc-scheduler", "volcanosh/vc-scheduler:v1", "host:5000/a/vc-scheduler", "a/vc-scheduler:v1@sha256:ab"]
)
def test_the_repository_tells_the_program(image: str) -> None:
    assert repository(image) == "vc-scheduler"


def test_arguments_are_the_rendered_ones_with_paths_and_ports_of_this_machine() -> None:
    assert controller(SCHEDULER).command == (
        "/bin/vc-scheduler",
        "--scheduler-conf=/sandbox/controllers/scheduler/mounts/conf/s.conf",
        "--leader-elect=false",
        "-v=3",
        "--listen-address=127.0.0.1:1001",
        "--healthz-address=127.0.0.1:1002",
        "--kubeconfig=/sandbox/controllers/scheduler/kubeconfig",
    )


def test_the_environment_is_resolved() -> None:
    assert controller(SCHEDULER).environment == {"SOCKETS": "/sandbox/controllers/scheduler/tmp/socks", "NS": "system"}


def test_the_process_acts_as_the_rendered_account() -> None:
    assert controller(SCHEDULER).account == "scheduler"
    assert controller(OPERATOR).account == "default"


def test_the_command_is_the_binary_and_the_arguments_stay() -> None:
    assert controller(OPERATOR).command[:2] == ("/bin/training-operator", "--gang-scheduler-name=volcano")


def test_every_difference_is_in_the_table() -> None:
    rows = [tuple(row[1:]) for row in controller(SCHEDULER).table]
    assert rows == [
        ("image", "registry.acme.com:5000/volcanosh/vc-scheduler:v1.14.1", "/bin/vc-scheduler"),
        ("volumeMounts /conf", "ConfigMap scheduler-conf", "/sandbox/controllers/scheduler/mounts/conf"),
        ("volumeMounts /tmp", "", "/sandbox/controllers/scheduler/tmp"),
        ("serviceAccountName", "scheduler", f"--kubeconfig={FOLDER}/scheduler/kubeconfig, acting as this account"),
        ("args --listen-address", "(default)", "127.0.0.1:1001"),
        ("args --healthz-address", "(default)", "127.0.0.1:1002"),
    ]  # fmt: skip


def test_a_deployment_of_an_unknown_image_is_simulated() -> None:
    other = copy.deepcopy(SCHEDULER)
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "acme/scheduler"
    assert run_locally(declare(other), BINARIES, FOLDER) is None


def test_a_service_leads_to_the_process_of_the_pods_it_selects() -> None:
    assert selects(SERVICE, OPERATOR)
    assert not selects(SERVICE, SCHEDULER)
    assert process_port(SERVICE, 443, OPERATOR, controller(OPERATOR)) == 2003


def test_the_webhooks_that_call_a_service() -> None:
    assert [(one["metadata"]["name"], client) for one, client in calls([HOOKS], SERVICE)] == [
        ("hooks", {"service": {"name": "operator", "namespace": "system"}})
    ]
    other = copy.deepcopy(SERVICE)
    other["metadata"]["namespace"] = "elsewhere"
    assert list(calls([HOOKS], other)) == []


@pytest.mark.parametrize(
    ("number", "target", "leads_to"), [(443, 9444, "9444"), (8443, "hooks", "none"), (443, "other", "other")]
)
def test_a_service_that_leads_nowhere_is_an_error(number: int, target: Any, leads_to: str) -> None:
    wrong = copy.deepcopy(SERVICE)
    wrong["spec"]["ports"][0]["targetPort"] = target
    with pytest.raises(InputError) as caught:
        process_port(wrong, number, OPERATOR, controller(OPERATOR))
    assert str(caught.value) == (
        "error  a webhook's Service leads nowhere\n"
        f"  Service system/operator: port {number}\n"
        f"  it leads to port {leads_to}; Deployment system/operator listens on "
        "8080 (metrics), 8081 (health), 9443 (webhook)\n"
        "  fix: correct targetPort"
    )


def test_a_volume_of_another_kind_is_an_error() -> None:
    with pytest.raises(InputError) as caught:
        controller(with_volume({"hostPath": {"path": "/etc"}}))
    assert str(caught.value) == (
        "error  a local controller cannot have this volume\n"
        "  stacks/x.yaml:3   Deployment system/scheduler: volume conf\n"
        "  found hostPath; accepted: configMap, secret, emptyDir"
    )


def test_a_variable_from_elsewhere_is_an_error() -> None:
    changed = copy.deepcopy(SCHEDULER)
    source = {"secretKeyRef": {"name": "s", "key": "k"}}
    changed["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "valueFrom": source}]
    with pytest.raises(InputError) as caught:
        controller(changed)
    assert str(caught.value) == (
        "error  a local controller cannot have this variable\n"
        "  stacks/x.yaml:3   Deployment system/scheduler: env TOKEN\n"
        "  found {'secretKeyRef': {'name': 's', 'key': 'k'}}; accepted: a value, or a fieldRef to "
        "metadata.name, metadata.namespace, status.podIP"
    )


def certificate_job(command: list[str]) -> Rendered:
    pod = {"containers": [{"name": "main", "image": "vc-webhook-manager", "command": command}]}
    metadata = {"name": "init", "namespace": "system"}
    return declare({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": pod}}})


@pytest.mark.parametrize(
    "command",
    [
        ["./gen-admission-secret.sh", "--service", "hooks", "--namespace", "system", "--secret", "cert"],
        ["sh", "-c", "set -eu\n./gen-admission-secret.sh --secret cert --service hooks --namespace system\n"],
    ],
)
def test_the_work_of_a_certificate_job_is_read_off_its_command(command: list[str]) -> None:
    job = certificate_job(command)
    assert certificate_names([job]) == ("hooks.system.svc",)
    assert list(certificates(job.manifest)) == [("system", "cert", "hooks")]


def test_other_jobs_make_no_certificate() -> None:
    assert certificate_names([certificate_job(["./backup.sh", "--service", "x"])]) == ()


def test_free_ports_are_chosen_for_a_new_controller() -> None:
    found = run_locally(declare(SCHEDULER), BINARIES, FOLDER)
    assert found
    assert found.ports.keys() == {"metrics", "health"}
    assert len(set(found.ports.values())) == 2
