"""Which process answers for a Service, which webhooks lead to it, and which certificates install Jobs make."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Manifest, Rendered, identity
from gpuyard.manifests.pods import pod_specs
from gpuyard.sandbox.localize import Controller, known_container, set_flag

CONFIGURATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_SCRIPT = re.compile(r"gen-admission-secret\.sh((?:\s+--\w+\s+[\w.-]+)+)")
"""Volcano's script that makes a certificate: `--service S --namespace N --secret NAME` in any order."""


def certificate_names(objects: Iterable[Rendered]) -> tuple[str, ...]:
    """Return the host names that certificates from install Jobs are for."""
    found = {f"{service}.{namespace}.svc" for one in objects for namespace, _, service in certificates(one.manifest)}
    return tuple(sorted(found))


def certificates(job: Manifest) -> Iterator[tuple[str, str, str]]:
    """Yield (namespace, secret, service) for what a Job that makes webhook certificates makes; any other makes none.

    The sandbox does its work: the Job is applied as it is, and its simulated pod does nothing.
    """
    if job["kind"] == "Job" and job["apiVersion"].startswith("batch/"):
        for _, pod in pod_specs(job):
            for container in pod["containers"]:
                words = " ".join([*container.get("command", ()), *container.get("args", ())])
                for match in _SCRIPT.finditer(words):
                    flags = dict(re.findall(r"--(\w+)\s+([\w.-]+)", match[1]))
                    yield flags["namespace"], flags["secret"], flags["service"]


def selects(service: Manifest, deployment: Manifest) -> bool:
    """Return whether a Service selects the pods of a Deployment."""
    selector: dict[str, str] = service["spec"].get("selector") or {}
    labels: dict[str, str] = deployment["spec"]["template"].get("metadata", {}).get("labels") or {}
    same_namespace = service["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    return same_namespace and bool(selector) and selector.items() <= labels.items()


def calls(configurations: Iterable[Manifest], service: Manifest) -> Iterator[tuple[Manifest, Manifest]]:
    """Yield (webhook configuration, client configuration) for every webhook that calls a Service."""
    name = service["metadata"]["namespace"], service["metadata"]["name"]
    for configuration in configurations:
        for webhook in configuration.get("webhooks") or ():
            client: Manifest = webhook["clientConfig"]
            reference = client.get("service")
            if reference and (reference["namespace"], reference["name"]) == name:
                yield configuration, client


def process_port(service: Manifest, number: int, deployment: Manifest, controller: Controller) -> int:
    """Return the port of the process behind a port of its Service.

    Raises InputError when the Service leads to a port that the program does not listen on.
    """
    known = known_container(deployment)
    container = known[0] if known else {}
    names = {port["name"]: port["containerPort"] for port in container.get("ports", ()) if "name" in port}
    target: Any = None
    for port in service["spec"].get("ports", ()):
        if port["port"] == number:
            target = port.get("targetPort", number)
    target = names.get(target, target)
    listens: dict[int, str] = {}
    for purpose, port in controller.program.ports.items():
        _, value = set_flag([*container.get("args", ())], port.flag, "")
        listens[port.default if value == "(default)" else int(value.rpartition(":")[2])] = purpose
    if target not in listens:
        raise InputError(
            Problem(
                "a webhook's Service leads nowhere",
                field=f"{identity(service)}: port {number}",
                detail=f"it leads to port {target or 'none'}; {identity(deployment)} listens on "
                + ", ".join(f"{port} ({purpose})" for port, purpose in sorted(listens.items())),
                fix="correct targetPort",
            )
        )
    return controller.ports[listens[target]]
