"""Run the Deployments whose programs are known as local processes, from what the cluster holds now.

What a kubelet does for pods, for the few that matter here: start, mount, probe, start again, stop, and tell the pods.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Manifest, declare, identity
from gpuyard.sandbox.api import Api
from gpuyard.sandbox.cluster import base_environment, certificate
from gpuyard.sandbox.localize import Controller, known_container, run_locally
from gpuyard.sandbox.mounts import forget_expected, mount_all, mounted_digest, write_private
from gpuyard.sandbox.pod_status import CANNOT_START, CRASHED, NOT_READY, READY, Report, is_made_from, status
from gpuyard.sandbox.probes import waits_for
from gpuyard.sandbox.processes import excerpt, start, stop
from gpuyard.sandbox.relay import RefusedError
from gpuyard.sandbox.state import Home, Service
from gpuyard.sandbox.webhooks import CONFIGURATIONS, calls, certificates, process_port, selects

_LONGEST_PAUSE = 10.0


@dataclass
class _Running:
    """A controller with a process, the Deployment it was last seen with, and how it went."""

    deployment: Manifest
    controller: Controller
    crashes: int = 0
    crashed: float = 0.0
    """When it did; 0 while it runs."""
    secrets: str = ""
    """The digest of its Secrets when it started."""
    proved: tuple[Any, ...] = ()
    """The webhooks that it was seen to answer for."""


@dataclass
class Controllers:
    """The local controllers of one sandbox. What runs is written to its folder at once."""

    api: Api
    home: Home
    binaries: Mapping[str, Path]
    services: dict[str, Service] = field(default_factory=dict[str, Service])
    _running: dict[str, _Running] = field(default_factory=dict[str, "_Running"])

    def round(self) -> None:
        """Bring processes and pods to what the cluster says now. Raises ApiError where the server does not answer."""
        deployments = {
            one["metadata"]["name"]: one
            for one in self.api.list("apps/v1", "Deployment")
            if known_container(one) and one["spec"].get("replicas") != 0
        }
        self._stop_others(deployments)
        if not deployments:
            return
        self._fill_certificates()
        services = self.api.list("v1", "Service")
        configurations = [
            one for kind in CONFIGURATIONS for one in self.api.list("admissionregistration.k8s.io/v1", kind)
        ]
        for name, deployment in deployments.items():
            try:
                report = self._run(deployment) or self._probe(name, services, configurations)
            except InputError as error:
                report = Report(CANNOT_START, _told(error), time.time())
            self._tell(deployment, report)

    def port_behind(self, address: str, number: int) -> int:
        """Return the port of the process behind a Service's cluster IP and port. Raises RefusedError."""
        for service in self.api.list("v1", "Service"):
            if address in service["spec"].get("clusterIPs", ()):
                for one in list(self._running.values()):
                    if selects(service, one.deployment):
                        try:
                            return process_port(service, number, one.deployment, one.controller)
                        except InputError as error:
                            raise RefusedError(_told(error)) from error
                raise RefusedError(f"no process behind {identity(service)}")
        raise RefusedError(f"{address} is the address of no Service")

    def _run(self, deployment: Manifest) -> Report | None:
        """Start the process of a Deployment; one that runs with the same arguments and files is left alone.

        Return why it does not run; None when it does. Raises InputError when it cannot run at all.
        """
        name: str = deployment["metadata"]["name"]
        known = self.services.get(name)
        controller = self._controller(deployment, known.ports if known else None)
        one = self._running.setdefault(name, _Running(deployment, controller))
        one.deployment, one.controller = deployment, controller
        if waits := mount_all(self.api, controller, starts=not (known and known.ready)):
            return Report(NOT_READY, f"it waits for {waits}")
        if known and known.digest == _digest(controller):
            if known.process.alive:
                return None
            # One that ended before its Secrets were filled ended for that, and says nothing about them.
            if one.secrets in ("", mounted_digest(controller, "Secret")) and (crashed := self._crashed(one, known)):
                return crashed
        elif known:
            stop([known.process])
            one.crashes = 0
        if known:
            # Another program may have taken a port of the one that stopped.
            one.controller = self._controller(deployment, None)
        one.crashed, one.proved, one.secrets = 0.0, (), mounted_digest(controller, "Secret")
        self._start(one.controller)
        return None

    def _controller(self, deployment: Manifest, ports: Mapping[str, int] | None) -> Controller:
        name: str = deployment["metadata"]["name"]
        found = run_locally(declare(deployment), self.binaries, self.home.folder("controllers", name), ports)
        if not found:
            raise LookupError(f"Deployment {name} has no known program")
        return found

    def _crashed(self, one: _Running, service: Service) -> Report | None:
        """Return how a process ended, until it is time to try again."""
        if not one.crashed:
            one.crashes += 1
            one.crashed = time.time()
            service.ready = False
            self._write()
        if time.time() > one.crashed + min(0.5 * 2.0**one.crashes, _LONGEST_PAUSE):
            return None
        title = f"controller {one.controller.name} stopped"
        fix = "fix: the log says why; it runs exactly what the Deployment renders"
        return Report(CRASHED, f"{title}\n{service.log}\n{excerpt(Path(service.log))}\n{fix}", one.crashed)

    def _start(self, controller: Controller) -> None:
        self._write_kubeconfig(controller)
        log = self.home.folder("logs") / f"{controller.name}.log"
        environment = (
            base_environment(self.home) | {"TMPDIR": str(controller.folder / "tmp")} | dict(controller.environment)
        )
        process = start(controller.command, folder=controller.folder, environment=environment, log=log)
        table = [list(row) for row in controller.table]
        self.services[controller.name] = Service(
            process, str(log), _digest(controller), ports=dict(controller.ports), table=table
        )
        self._write()

    def _probe(self, name: str, services: list[Manifest], configurations: list[Manifest]) -> Report:
        """Return whether a running process is ready. One that was is asked again only about what is new."""
        one, service = self._running[name], self.services[name]
        hooks: list[tuple[Manifest, Manifest]] = []
        table = [list(row) for row in one.controller.table]
        for behind in services:
            if selects(behind, one.deployment):
                for configuration, client in calls(configurations, behind):
                    number: int = client["service"].get("port", 443)
                    port = process_port(behind, number, one.deployment, one.controller)
                    row = [str(identity(behind)), f"port {number}", "its pods", f"127.0.0.1:{port}, by the relay"]
                    if row not in table:
                        table.append(row)
                    hooks.append((configuration, client))
        asked = tuple((identity(configuration), client) for configuration, client in hooks)
        if service.ready and asked == one.proved:
            return Report(READY)
        if waits := waits_for(one.controller, hooks):
            if service.ready:
                service.ready = False
                self._write()
            return Report(NOT_READY, f"it waits for {waits}")
        one.proved = asked
        one.crashes = 0
        if one.controller.program.expects:
            forget_expected(Path(one.controller.program.expects))
        service.ready, service.table = True, table
        self._write()
        return Report(READY)

    def _tell(self, deployment: Manifest, report: Report) -> None:
        """Write the report into the status of the Deployment's pods; one of an earlier template is not ready."""
        namespace: str = deployment["metadata"]["namespace"]
        labels: dict[str, str] = deployment["spec"]["selector"].get("matchLabels") or {}
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        sets: dict[str, bool] = {}
        for pod in self.api.list("v1", "Pod", namespace, selector):
            owners = pod["metadata"].get("ownerReferences", ())
            owner = next((one["name"] for one in owners if one["kind"] == "ReplicaSet"), "")
            if not owner or not pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
                continue
            if owner not in sets:
                replica_set = self.api.get("apps/v1", "ReplicaSet", owner, namespace)
                sets[owner] = bool(replica_set and is_made_from(replica_set, deployment))
            wanted = status(pod, report if sets[owner] else Report(NOT_READY, "its template was replaced"))
            if wanted:
                self.api.merge(pod, {"status": wanted}, "status")

    def _stop_others(self, deployments: Mapping[str, Manifest]) -> None:
        """Stop the processes of Deployments that are gone."""
        gone = [name for name in self.services if name not in deployments]
        if gone:
            stop([self.services.pop(name).process for name in gone])
            self._write()
        for name in [name for name in self._running if name not in deployments]:
            del self._running[name]

    def _write_kubeconfig(self, controller: Controller) -> None:
        """Write a kubeconfig that acts as the rendered ServiceAccount, so that the rendered RBAC counts."""
        account = f"system:serviceaccount:{controller.namespace}:{controller.account}"
        config: Any = yaml.safe_load(self.home.kubeconfig.read_text())
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{controller.namespace}", "system:authenticated"]
        for user in config["users"]:
            user["user"] |= {"as": account, "as-groups": groups}
        write_private(controller.folder / "kubeconfig", json.dumps(config).encode())

    def _fill_certificates(self) -> None:
        """Do what certificate Jobs do: fill their Secrets, made when missing, if they are empty."""
        for job in self.api.list("batch/v1", "Job"):
            for namespace, name, _ in certificates(job):
                metadata = {"name": name, "namespace": namespace}
                secret: Manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
                live = self.api.get_like(secret)
                if not live:
                    self.api.create(secret)
                if not (live or {}).get("data"):
                    data = {key: base64.b64encode(value).decode() for key, value in certificate(self.home).items()}
                    self.api.merge(secret, {"data": data})

    def _write(self) -> None:
        self.home.write_controllers(self.services)


def _digest(controller: Controller) -> str:
    """Change when the process would have to be started anew. Secrets may change while it runs; it reads them again."""
    stamp = Path(controller.command[0]).stat().st_mtime_ns
    content = [
        controller.command,
        dict(controller.environment),
        controller.account,
        stamp,
        mounted_digest(controller, "ConfigMap"),
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _told(error: InputError) -> str:
    """Return problems as a pod tells them: the title first, then what is known."""
    return "\n".join(_lines(problem) for problem in error.problems)


def _lines(problem: Problem) -> str:
    lines = [problem.title, problem.field, problem.detail, f"fix: {problem.fix}" if problem.fix else ""]
    return "\n".join(line for line in lines if line)
