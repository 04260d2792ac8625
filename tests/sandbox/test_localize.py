"""What is replaced so that a rendered controller runs as a process, and what is left as it is."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from gpuyard.errors import InputError, Origin
from gpuyard.manifests import Rendered, declare
from gpuyard.sandbox.localize import Controller, Local, run_locally
from gpuyard.sandbox.programs import repository
from gpuyard.sandbox.webhooks import certificate_names, localize

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


def local(*manifests: dict[str, Any]) -> Local:
    objects = [declare(copy.deepcopy(one), origin=Origin("stacks/x.yaml", 3)) for one in manifests]
    return localize(objects, BINARIES, FOLDER, PORTS)


def controller(manifest: dict[str, Any]) -> Controller:
    (found,) = local(manifest).controllers.values()
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
    rows = [tuple(row[1:]) for row in local(SCHEDULER).table]
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
    assert local(other).controllers == {}


def test_a_webhook_leads_to_the_process() -> None:
    found = local(OPERATOR, SERVICE, HOOKS)
    objects = {one.identity.kind: one for one in [declare(SERVICE), declare(HOOKS)]}
    service = found.manifest(objects["Service"])["spec"]
    assert service == {"type": "ExternalName", "externalName": "localhost", "ports": SERVICE["spec"]["ports"]}
    hooks = found.manifest(objects["ValidatingWebhookConfiguration"])
    assert hooks["webhooks"][0]["clientConfig"]["service"] == {"name": "operator", "namespace": "system", "port": 2003}
    assert [str(guard) for one in found.controllers.values() for guard in one.guards] == [
        "ValidatingWebhookConfiguration hooks"
    ]


def test_what_is_not_in_the_table_is_applied_as_it_is() -> None:
    found = local(SCHEDULER, OPERATOR, SERVICE, HOOKS)
    deployment = declare(OPERATOR)
    assert found.manifest(deployment) is deployment.manifest


def test_a_service_that_leads_nowhere_is_an_error() -> None:
    wrong = copy.deepcopy(SERVICE)
    wrong["spec"]["ports"][0]["targetPort"] = 9444
    with pytest.raises(InputError) as caught:
        local(OPERATOR, wrong, HOOKS)
    assert str(caught.value) == (
        "error  a webhook's Service leads nowhere\n"
        "  stacks/x.yaml:3   Service system/operator: port 443\n"
        "  it leads to port 9444; Deployment system/operator listens on "
        "8080 (metrics), 8081 (health), 9443 (webhook)\n"
        "  fix: correct targetPort"
    )


def test_a_volume_of_another_kind_is_an_error() -> None:
    with pytest.raises(InputError) as caught:
        local(with_volume({"hostPath": {"path": "/etc"}}))
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
        local(changed)
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
    assert localize([job], {}, FOLDER).certificates == {("system", "cert"): "hooks"}


def test_other_jobs_make_no_certificate() -> None:
    assert certificate_names([certificate_job(["./backup.sh", "--service", "x"])]) == ()


def test_free_ports_are_chosen_for_a_new_controller() -> None:
    (found,) = run_locally([declare(SCHEDULER)], BINARIES, FOLDER).controllers.values()
    assert found.ports.keys() == {"metrics", "health"}
    assert len(set(found.ports.values())) == 2
