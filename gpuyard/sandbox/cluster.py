"""The control plane: etcd, kube-apiserver, controller-manager, scheduler and KWOK, run by `kwokctl` without Docker."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests import Manifest
from gpuyard.sandbox.api import Api
from gpuyard.sandbox.nodes import SIMULATED
from gpuyard.sandbox.processes import MARKER, Process, excerpt, free_ports, start, start_time, stop
from gpuyard.sandbox.relay import egress_configuration, socket_path
from gpuyard.sandbox.state import Home, Service, State

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller")
BINARIES = ("kwok", "kwokctl", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
_NAME = "sandbox"
_PATIENCE = 90


@dataclass(frozen=True)
class Cluster:
    """The control plane in a sandbox's folder.

    stages:      what simulated nodes and pods do, see `gpuyard.sandbox.stages`.
    known_as:    further host names that its certificate is good for; webhooks of local processes use it too.
    """

    home: Home
    binaries: Mapping[str, Path]
    stages: Sequence[Manifest]
    known_as: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Changes when a running control plane would have to be started anew."""
        stamps = {name: [str(path), path.stat().st_mtime_ns] for name, path in self._programs.items()}
        content = json.dumps([stamps, self.stages, self.known_as], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @property
    def _programs(self) -> dict[str, Path]:
        return {name: self.binaries[name].resolve() for name in BINARIES}

    def start(self) -> dict[str, Service]:
        """Start an empty cluster and return its processes. The sandbox's folder holds no other one."""
        folder = _folder(self.home)
        egress = self.home.folder() / "egress.json"
        egress.write_text(json.dumps(egress_configuration(socket_path(self.home.path))))
        config = self.home.path / "kwokctl.yaml"
        documents = [self._configuration(egress), *self.stages]
        config.write_text("---\n".join(json.dumps(document, indent=1) + "\n" for document in documents))
        log = self.home.folder("logs") / "kwokctl.log"
        environment = base_environment(self.home) | {"KWOK_WORKDIR": str(self.home.folder("kwok"))}
        command = [str(self._programs["kwokctl"]), "create", "cluster", "--name", _NAME, "--config", str(config)]
        command += ["--kubeconfig", str(self.home.kubeconfig), "--wait", f"{_PATIENCE}s"]
        kwokctl = start(command, folder=self.home.path, environment=environment, log=log)
        try:
            code = _exit_code(kwokctl, _PATIENCE + 30)
        finally:
            stop([kwokctl])
        if code or not self.home.kubeconfig.exists():
            logs = sorted(folder.glob("logs/*.log"), key=lambda path: path.stat().st_mtime)
            told = "\n".join(f"{path}:\n{excerpt(path)}" for path in [log, *logs[-2:]])
            raise InputError(Problem("the control plane did not start", Origin(str(log)), detail=told))
        self.home.kubeconfig.chmod(0o600)
        services: dict[str, Service] = {}
        for name in CONTROL_PLANE:
            pid = int((folder / "pids" / f"{name}.pid").read_text())
            services[name] = Service(Process(pid, start_time(pid)), str(folder / "logs" / f"{name}.log"))
        return services

    def _configuration(self, egress: Path) -> Manifest:
        ports = ("kubeApiserverPort", "etcdPort", "etcdPeerPort", "kubeControllerManagerPort", "kubeSchedulerPort",
                 "kwokControllerPort")  # fmt: skip
        program = {name: str(path) for name, path in self._programs.items()}
        return {
            "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
            "kind": "KwokctlConfiguration",
            "options": {
                "runtime": "binary",
                "kubeVersion": _version(program["kube-apiserver"], "Kubernetes v"),
                "etcdVersion": _version(program["etcd"], "etcd Version: "),
                "etcdBinary": program["etcd"],
                "kubeApiserverBinary": program["kube-apiserver"],
                "kubeControllerManagerBinary": program["kube-controller-manager"],
                "kubeSchedulerBinary": program["kube-scheduler"],
                "kubectlBinary": program["kubectl"],
                "kwokControllerBinary": program["kwok"],
                "bindAddress": "127.0.0.1",
                "disableQPSLimits": True,
                "kubeApiserverCertSANs": list(self.known_as),
                **dict(zip(ports, free_ports(len(ports)), strict=True)),
            },
            "componentsPatches": [
                {
                    "name": "kube-apiserver",
                    "extraArgs": [{"key": "egress-selector-config-file", "value": str(egress)}],
                }
            ],
        }


def certificate(home: Home) -> dict[str, bytes]:
    """Return the cluster's own certificate for `known_as`, its key and the authority, as `tls.crt` and so on."""
    pki = _folder(home) / "pki"
    names = {"tls.crt": "admin.crt", "tls.key": "admin.key", "ca.crt": "ca.crt"}
    return {key: (pki / file).read_bytes() for key, file in names.items()}


def _folder(home: Home) -> Path:
    return home.path / "kwok" / "clusters" / _NAME


def healthy(home: Home, state: State) -> bool:
    """Return whether the whole control plane runs and answers; other processes can be started again beside it."""
    runs = all(name in state.services and state.services[name].process.alive for name in CONTROL_PLANE)
    return runs and home.kubeconfig.exists() and Api(home.kubeconfig).ready()


def base_environment(home: Home) -> dict[str, str]:
    """Return what every process of a sandbox gets: its marker, and a home and temporary folder inside the sandbox."""
    folder = str(home.folder("home"))
    return {MARKER: str(home.path), "PATH": os.environ.get("PATH", ""), "HOME": folder, "TMPDIR": folder}


def set_nodes(api: Api, wanted: Iterable[Manifest]) -> None:
    """Create, change and delete simulated nodes until they are the wanted ones, and wait until all are Ready."""
    manifests = {manifest["metadata"]["name"]: manifest for manifest in wanted}
    for manifest in manifests.values():
        if api.get_like(manifest):
            api.apply({key: value for key, value in manifest.items() if key != "status"})
            api.merge(manifest, {"status": manifest["status"]}, "status")
        else:
            # With its status at once: KWOK gives a node without one a size of its own.
            api.create(manifest)
    for live in api.list("v1", "Node", selector=f"{SIMULATED}=true"):
        if live["metadata"]["name"] not in manifests:
            api.delete("v1", "Node", live["metadata"]["name"])
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        ready = {
            node["metadata"]["name"]
            for node in api.list("v1", "Node", selector=f"{SIMULATED}=true")
            for condition in node.get("status", {}).get("conditions", ())
            if condition["type"] == "Ready" and condition["status"] == "True"
        }
        if manifests.keys() <= ready:
            return
        time.sleep(0.1)
    raise InputError(Problem("simulated nodes did not become ready", detail=f"after {_PATIENCE} s"))


def _version(program: str, before: str) -> str:
    """Return the version that a program prints after some words, as `v1.36.3` for Kubernetes and `3.6.8` for etcd."""
    printed: Any = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    version = printed.partition(before)[2].split()[0]
    return "v" + version if before.endswith("v") else version


def _exit_code(process: Process, patience: float) -> int:
    """Wait for a child to end and return its exit code; 1 when it takes longer than `patience` seconds."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        pid, status = os.waitpid(process.pid, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    return 1
