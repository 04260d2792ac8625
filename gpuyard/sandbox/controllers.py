"""Run rendered controllers as local processes: what a kubelet does for a pod, for the few that matter here."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests import Identity, Manifest, Rendered
from gpuyard.sandbox.api import Api
from gpuyard.sandbox.cluster import base_environment
from gpuyard.sandbox.localize import Controller, Local
from gpuyard.sandbox.processes import excerpt, start, stop
from gpuyard.sandbox.state import Home, Service, State

_PATIENCE = 90


@dataclass
class Controllers:
    """The local controllers of one sandbox. Every start and stop is written to its state at once.

    certificate: what Secrets in `local.certificates` are filled with: `tls.crt`, `tls.key`, `ca.crt`.
    """

    api: Api
    home: Home
    state: State
    local: Local
    certificate: Mapping[str, bytes]
    starting: dict[Identity, Rendered] = field(default_factory=dict[Identity, Rendered])
    """Started and not waited for yet. One that fills a Secret itself needs to see it in its folder soon."""

    def start(self, deployment: Rendered) -> None:
        """Start the process of a Deployment; one that runs with the same arguments and files is left alone."""
        controller = self.local.controllers.get(deployment.identity)
        if not controller:
            return
        controller.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._write_kubeconfig(controller)
        self._mount(controller, deployment)
        digest = _digest(controller)
        running = self.state.services.get(controller.name)
        if running and running.process.alive:
            if running.digest == digest and running.ready:
                return
            stop([running.process])
        log = self.home.folder("logs") / f"{controller.name}.log"
        environment = (
            base_environment(self.home) | {"TMPDIR": str(controller.folder / "tmp")} | dict(controller.environment)
        )
        process = start(controller.command, folder=controller.folder, environment=environment, log=log)
        self.state.services[controller.name] = Service(process, str(log), digest, ports=dict(controller.ports))
        self.home.write(self.state)
        self.starting[deployment.identity] = deployment

    def wait(self, deployment: Rendered) -> None:
        """Wait until the process of a Deployment is healthy and the webhooks it serves can be called.

        Raises InputError with the end of its log when it stops or is not ready in time.
        """
        if deployment.identity not in self.starting:
            return
        controller = self.local.controllers[deployment.identity]
        service = self.state.services[controller.name]
        end = time.monotonic() + _PATIENCE
        while missing := self._waits_for(controller):
            if not service.process.alive:
                raise _failure(deployment, service, "stopped")
            if time.monotonic() > end:
                raise _failure(deployment, service, f"is not ready after {_PATIENCE} s: it waits for {missing}")
            for who, other in self.starting.items():
                self._mount(self.local.controllers[who], other)
            time.sleep(0.1)
        if controller.program.expects:
            forget_expected(Path(controller.program.expects))
        del self.starting[deployment.identity]
        service.ready = True
        self.home.write(self.state)

    def stop_others(self) -> None:
        """Stop the processes of Deployments that are no longer rendered."""
        wanted = {controller.name for controller in self.local.controllers.values()}
        # Only controllers have ports; the control plane and the sandbox's own process have none.
        gone = [name for name, service in self.state.services.items() if service.ports and name not in wanted]
        stop([self.state.services.pop(name).process for name in gone])
        self.home.write(self.state)

    def _waits_for(self, controller: Controller) -> str:
        if _status(controller.ports["health"], "/healthz", tls=controller.program.tls) != 200:
            return "its health check"
        if "webhook" in controller.ports and not _listens(controller.ports["webhook"]):
            return "its webhook port"
        for guard in controller.guards:
            live = self.api.get("admissionregistration.k8s.io/v1", guard.kind, guard.name)
            if not live:
                return f"{guard} to be applied"
            if not all(webhook["clientConfig"].get("caBundle") for webhook in live["webhooks"]):
                return f"its certificate in {guard}"
            for webhook in live["webhooks"]:
                # A port that listens is not enough: some register their handlers once they have a certificate.
                # Without a body it is no review, which they answer too.
                path: str = webhook["clientConfig"]["service"].get("path", "/")
                if _status(controller.ports["webhook"], path, tls=True) in (0, 404):
                    return f"its handler of {path}"
        return ""

    def _write_kubeconfig(self, controller: Controller) -> None:
        """Write a kubeconfig that acts as the rendered ServiceAccount, so that the rendered RBAC counts."""
        config: Any = yaml.safe_load(self.home.kubeconfig.read_text())
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{controller.namespace}", "system:authenticated"]
        account = f"system:serviceaccount:{controller.namespace}:{controller.account}"
        for user in config["users"]:
            user["user"] |= {"as": account, "as-groups": groups}
        _write_private(controller.folder / "kubeconfig", json.dumps(config).encode())

    def _mount(self, controller: Controller, deployment: Rendered) -> None:
        """Write mounted ConfigMaps and Secrets to their folders, as they are in the cluster now."""
        (controller.folder / "tmp").mkdir(exist_ok=True, mode=0o700)
        complete = True
        for mount in controller.mounts:
            mount.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not mount.kind:
                continue
            if mount.kind == "Secret" and (controller.namespace, mount.name) in self.local.certificates:
                self._fill_certificate(controller.namespace, mount.name)
            live = self.api.get("v1", mount.kind, mount.name, controller.namespace)
            if not live and not mount.optional:
                raise _missing(deployment, f"{mount.kind} {controller.namespace}/{mount.name}")
            files = _files(live or {})
            complete = complete and bool(files or mount.kind != "Secret")
            for key, name in mount.items or tuple((key, key) for key in files):
                if key not in files:
                    raise _missing(deployment, f"key {key} of {mount.kind} {controller.namespace}/{mount.name}")
                path = mount.folder / name
                if not path.exists() or path.read_bytes() != files[key]:
                    _write_private(path, files[key])
        if complete and controller.program.expects:
            expected = Path(controller.program.expects)
            # Another sandbox may be taking the folder away right now; the next round makes it again.
            with contextlib.suppress(FileNotFoundError):
                expected.parent.mkdir(parents=True, exist_ok=True)
                expected.touch()

    def _fill_certificate(self, namespace: str, name: str) -> None:
        """Do what the rendered certificate Job does: fill the Secret, made when missing, if it is empty."""
        metadata = {"name": name, "namespace": namespace}
        secret: Manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        live = self.api.get_like(secret)
        if not live:
            self.api.create(secret)
        if not (live or {}).get("data"):
            data = {key: base64.b64encode(value).decode() for key, value in self.certificate.items()}
            self.api.merge(secret, {"data": data})


def forget_expected(path: Path) -> None:
    """Take away the empty file that a program only looked for; a file with content is somebody else's."""
    if path.exists() and not path.stat().st_size:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a folder that is not empty, or is gone already
            for folder in path.parents[:2]:
                folder.rmdir()


def _missing(deployment: Rendered, what: str) -> InputError:
    return InputError(
        Problem(
            "a controller cannot start",
            deployment.origin,
            str(deployment.identity),
            f"it mounts {what}, which does not exist",
            "render it, or correct the name",
        )
    )


def _files(live: Manifest) -> dict[str, bytes]:
    """Return the files that a mounted ConfigMap or Secret consists of."""
    data: dict[str, str] = live.get("data") or {}
    if live.get("kind") == "Secret":
        return {key: base64.b64decode(value) for key, value in data.items()}
    binary: dict[str, str] = live.get("binaryData") or {}
    return {key: value.encode() for key, value in data.items()} | {
        key: base64.b64decode(value) for key, value in binary.items()
    }


def _digest(controller: Controller) -> str:
    """Change when the process would have to be started anew. Secrets may change while it runs; it reads them again."""
    digest = hashlib.sha256()
    stamp = Path(controller.command[0]).stat().st_mtime_ns
    digest.update(json.dumps([controller.command, dict(controller.environment), controller.account, stamp]).encode())
    for mount in controller.mounts:
        if mount.kind == "ConfigMap":
            for path in sorted(mount.folder.iterdir()):
                digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _write_private(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)


def _status(port: int, path: str, *, tls: bool) -> int:
    """Return the HTTP status of the answer to a GET; 0 when there is none."""
    # As a kubelet's probe: whose certificate it is does not matter for whether it is alive.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    url = f"{'https' if tls else 'http'}://127.0.0.1:{port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=2, context=context if tls else None) as response:
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _failure(deployment: Rendered, service: Service, what: str) -> InputError:
    return InputError(
        Problem(
            f"controller {deployment.identity.name} {what}",
            Origin(service.log),
            detail=excerpt(Path(service.log)),
            fix="the log says why; it runs exactly what the Deployment renders",
        )
    )
