"""Make the API server reach local processes: certificates, Services and webhook configurations.

The API server dials the host of an ExternalName Service at the port that a webhook configuration gives, and still
checks the certificate against `<service>.<namespace>.svc`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Identity, Rendered
from gpuyard.manifests.pods import pod_specs
from gpuyard.sandbox.localize import Controller, Local, Substitution, run_locally, set_flag
from gpuyard.sandbox.programs import PROGRAMS, repository

_WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_SCRIPT = re.compile(r"gen-admission-secret\.sh((?:\s+--\w+\s+[\w.-]+)+)")
"""Volcano's script that makes a certificate: `--service S --namespace N --secret NAME` in any order."""


def localize(
    objects: Sequence[Rendered],
    binaries: Mapping[str, Path],
    folder: Path,
    ports: Mapping[str, Mapping[str, int]] | None = None,
) -> Local:
    """Return everything that is different in the sandbox, see `run_locally` and the table that it fills.

    Raises InputError for a controller that cannot run outside a pod or a Service that leads nowhere.
    """
    local = run_locally(objects, binaries, folder, ports)
    for rendered, namespace, secret, service in _certificate_jobs(objects):
        local.certificates[namespace, secret] = service
        made = f"Secret {namespace}/{secret} filled from the sandbox's own authority"
        local.table.append(Substitution(str(rendered.identity), "command", "gen-admission-secret.sh", made))
    _redirect_webhooks(local, objects)
    return local


def certificate_names(objects: Sequence[Rendered]) -> tuple[str, ...]:
    """Return the host names that certificates from install Jobs are for."""
    return tuple(sorted({f"{service}.{namespace}.svc" for _, namespace, _, service in _certificate_jobs(objects)}))


def _certificate_jobs(objects: Sequence[Rendered]) -> list[tuple[Rendered, str, str, str]]:
    """Return (Job, namespace, secret, service) for Jobs that make a webhook's certificate.

    The sandbox does their work: the Job is applied as it is, and its simulated pod does nothing.
    """
    found: list[tuple[Rendered, str, str, str]] = []
    for rendered in objects:
        if rendered.identity.kind != "Job" or rendered.identity.group != "batch":
            continue
        for _, pod in pod_specs(rendered.manifest):
            for container in pod["containers"]:
                words = " ".join([*container.get("command", ()), *container.get("args", ())])
                for match in _SCRIPT.finditer(words):
                    flags = dict(re.findall(r"--(\w+)\s+([\w.-]+)", match[1]))
                    found.append((rendered, flags["namespace"], flags["secret"], flags["service"]))
    return found


def _redirect_webhooks(local: Local, objects: Sequence[Rendered]) -> None:
    """Point the API server at local processes: it dials the host of an ExternalName Service at the port it is given."""
    services = {
        (rendered.identity.namespace, rendered.identity.name): rendered
        for rendered in objects
        if rendered.identity.kind == "Service"
    }
    deployments = {rendered.identity: rendered for rendered in objects if rendered.identity in local.controllers}
    for rendered in objects:
        who = rendered.identity
        if who.kind not in _WEBHOOKS:
            continue
        manifest = copy.deepcopy(rendered.manifest)
        for index, webhook in enumerate(manifest.get("webhooks") or ()):
            reference = webhook["clientConfig"].get("service")
            service = reference and services.get((reference["namespace"], reference["name"]))
            owner = service and _behind(service, deployments)
            if not (reference and service and owner):
                continue
            number: int = reference.get("port", 443)
            port = _local_port(local.controllers[owner], deployments[owner], service, number)
            reference["port"] = port
            field = f"webhooks[{index}].clientConfig.service.port"
            local.table.append(Substitution(str(who), field, str(number), str(port)))
            _externalize(local, service)
            controller = local.controllers[owner]
            if who not in controller.guards:
                local.controllers[owner] = replace(controller, guards=(*controller.guards, who))
            local.manifests[who] = manifest


def _behind(service: Rendered, deployments: Mapping[Identity, Rendered]) -> Identity | None:
    """Return the Deployment with a local process whose pods a Service selects."""
    selector: Mapping[str, str] = service.manifest["spec"].get("selector") or {}
    for who, deployment in deployments.items():
        labels: Mapping[str, str] = deployment.manifest["spec"]["template"]["metadata"].get("labels") or {}
        if who.namespace == service.identity.namespace and selector and selector.items() <= labels.items():
            return who
    return None


def _local_port(controller: Controller, deployment: Rendered, service: Rendered, number: int) -> int:
    """Return the process's port behind a port of its Service."""
    (container,) = [
        container
        for container in deployment.manifest["spec"]["template"]["spec"]["containers"]
        if PROGRAMS.get(repository(container["image"])) is controller.program
    ]
    names = {port["name"]: port["containerPort"] for port in container.get("ports", ()) if "name" in port}
    target: Any = None
    for port in service.manifest["spec"].get("ports", ()):
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
                service.origin,
                f"{service.identity}: port {number}",
                f"it leads to port {target or 'none'}; {deployment.identity} listens on "
                + ", ".join(f"{port} ({purpose})" for port, purpose in sorted(listens.items())),
                "correct targetPort",
            )
        )
    return controller.ports[listens[target]]


def _externalize(local: Local, service: Rendered) -> None:
    if service.identity in local.manifests:
        return
    manifest = copy.deepcopy(service.manifest)
    before = manifest["spec"].get("type", "ClusterIP")
    manifest["spec"] = {"type": "ExternalName", "externalName": "localhost", "ports": manifest["spec"]["ports"]}
    local.manifests[service.identity] = manifest
    local.table.append(Substitution(str(service.identity), "spec.type", before, "ExternalName localhost"))
