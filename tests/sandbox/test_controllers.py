"""Deployments as local processes: what starts, stops and restarts one, and what its pods say of it.

The program is a few lines of Python that answer a health check; the cluster is one in memory.
"""

from __future__ import annotations

import copy
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuyard.sandbox import localize
from gpuyard.sandbox.controllers import Controllers
from gpuyard.sandbox.processes import marked, stop
from gpuyard.sandbox.programs import PROGRAMS
from gpuyard.sandbox.relay import RefusedError
from gpuyard.sandbox.state import Home
from tests.sandbox.fake_api import FakeApi

pytestmark = pytest.mark.sandbox

PROGRAM = f"""#!{sys.executable}
import http.server, os, sys
flags = dict(argument.split("=", 1) for argument in sys.argv[1:])
if "--fail" in flags:
    sys.exit("no such flag: --fail")
if "--needs" in flags:
    open(flags["--needs"])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.path.exists(flags.get("--healthy-with", "/")) else 503)
        self.end_headers()
host, port = flags["--healthz-address"].split(":")
http.server.HTTPServer((host, int(port)), Handler).serve_forever()
"""


def deployment(*arguments: str, secret: str = "") -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": "acme/vc-scheduler:v1", "args": list(arguments)}
    container["volumeMounts"] = [{"name": "conf", "mountPath": "/conf"}]
    pod: dict[str, Any] = {"containers": [container], "volumes": [{"name": "conf", "configMap": {"name": "conf"}}]}
    if secret:
        container["volumeMounts"].append({"name": "secret", "mountPath": "/cert"})
        pod["volumes"].append({"name": "secret", "secret": {"secretName": secret}})
    template = {"metadata": {"labels": {"app": "scheduler"}}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "scheduler"}}, "template": template}
    metadata = {"name": "scheduler", "namespace": "system"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def config(content: str) -> dict[str, Any]:
    metadata = {"name": "conf", "namespace": "system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"s.conf": content}}


SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "scheduler", "namespace": "system"},
    "spec": {
        "selector": {"app": "scheduler"},
        "clusterIPs": ["10.0.0.7"],
        "ports": [{"port": 80, "targetPort": 8080}, {"port": 81, "targetPort": 8081}],
    },
}


class Cluster:
    """A sandbox whose cluster is in memory, with one Deployment and its pod."""

    def __init__(self, home: Home, binary: Path) -> None:
        self.api = FakeApi()
        self.home = home
        self.controllers = Controllers(self.api, home, {"vc-scheduler": binary})
        self.api.apply(config("one"))

    def deploy(self, *arguments: str, secret: str = "") -> None:
        """Apply the Deployment, and what its controller makes of it: a ReplicaSet and a pod on a node."""
        wanted = deployment(*arguments, secret=secret)
        self.api.apply(wanted)
        named = {"name": f"scheduler-{len(arguments)}", "namespace": "system"}
        self.api.apply({**copy.deepcopy(wanted), "kind": "ReplicaSet", "metadata": named})
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": named["name"]}
        metadata = {**named, "uid": named["name"], "labels": {"app": "scheduler"}, "ownerReferences": [owner]}
        spec = {**wanted["spec"]["template"]["spec"], "nodeName": "cpu-0"}
        self.api.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def says(self, pod: str = "scheduler-0") -> tuple[str, str]:
        """Return status and message of a pod's condition Ready."""
        found = self.api.get("v1", "Pod", pod, "system") or {}
        (ready,) = [one for one in found["status"].get("conditions", ()) if one["type"] == "Ready"]
        return ready["status"], ready.get("message", "")

    def until(self, condition: Callable[[], bool]) -> None:
        """Go round until a condition holds."""
        end = time.monotonic() + 60
        while True:
            self.controllers.round()
            if condition():
                return
            assert time.monotonic() < end, "it does not come to that"
            time.sleep(0.05)

    @property
    def process(self) -> Any:
        return self.home.read_controllers()["scheduler"].process


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("GPUYARD_CACHE", str(tmp_path))
    binary = tmp_path / "vc-scheduler"
    binary.write_text(PROGRAM)
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    home = Home("one")
    home.folder()
    home.kubeconfig.write_text('{"users": [{"name": "admin", "user": {}}]}')
    yield Cluster(home, binary)
    stop(marked(home.path))


def running(cluster: Cluster) -> None:
    cluster.deploy()
    cluster.until(lambda: cluster.says() == ("True", ""))


def test_a_pod_is_ready_once_its_process_is_healthy(cluster: Cluster) -> None:
    sign = cluster.home.path / "sign"
    cluster.deploy(f"--healthy-with={sign}")
    for _ in range(3):
        cluster.controllers.round()
        assert cluster.says("scheduler-1") == ("False", "it waits for its health check")
    sign.touch()
    cluster.until(lambda: cluster.says("scheduler-1") == ("True", ""))
    assert cluster.home.read_controllers()["scheduler"].ready


def test_what_runs_as_asked_is_left_alone(cluster: Cluster) -> None:
    running(cluster)
    before = cluster.process
    cluster.controllers.round()
    assert cluster.process == before
    again = Controllers(cluster.api, cluster.home, cluster.controllers.binaries, cluster.home.read_controllers())
    again.round()
    assert cluster.process == before, "the next kubelet takes it over"


def test_a_changed_configuration_starts_it_anew(cluster: Cluster) -> None:
    running(cluster)
    before = cluster.process
    cluster.api.apply(config("two"))
    cluster.until(lambda: cluster.process != before)
    assert not before.alive
    mounted = cluster.home.path / "controllers" / "scheduler" / "mounts" / "conf" / "s.conf"
    assert mounted.read_text() == "two"


def test_a_changed_template_starts_it_anew_and_its_old_pod_is_not_ready(cluster: Cluster) -> None:
    running(cluster)
    before = cluster.process
    cluster.deploy("--v=3")
    cluster.until(lambda: cluster.says("scheduler-1") == ("True", ""))
    assert cluster.process != before
    assert cluster.says("scheduler-0") == ("False", "its template was replaced")


def test_one_that_died_is_started_again(cluster: Cluster) -> None:
    running(cluster)
    before = cluster.process
    stop([before])
    cluster.controllers.round()
    status, message = cluster.says()
    assert (status, message.splitlines()[0]) == ("False", "controller scheduler stopped")
    cluster.until(lambda: cluster.says() == ("True", ""))
    assert cluster.process != before


def test_one_that_cannot_run_says_why(cluster: Cluster) -> None:
    cluster.deploy("--fail=now")
    cluster.until(lambda: "stopped" in cluster.says("scheduler-1")[1])
    assert cluster.says("scheduler-1")[1].splitlines() == [
        "controller scheduler stopped",
        str(cluster.home.path / "logs" / "scheduler.log"),
        "no such flag: --fail",
        "fix: the log says why; it runs exactly what the Deployment renders",
    ]


def test_one_that_ended_before_its_secret_was_filled_is_started_at_once(cluster: Cluster) -> None:
    secret: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cert", "namespace": "system"}}
    cluster.api.apply(secret)
    cluster.deploy(f"--needs={cluster.home.path}/controllers/scheduler/mounts/cert/tls.crt", secret="cert")
    cluster.controllers.round()
    while cluster.process.alive:
        time.sleep(0.02)
    cluster.api.apply({**secret, "data": {"tls.crt": "eA=="}})
    before = cluster.process
    cluster.controllers.round()
    assert cluster.process != before
    cluster.until(lambda: cluster.says("scheduler-1") == ("True", ""))


def test_a_file_that_a_program_looks_for_is_there_only_while_it_starts(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = tmp_path / "webhook-server" / "certs" / "tls.crt"
    program = replace(PROGRAMS["vc-scheduler"], expects=str(expected))
    monkeypatch.setattr(localize, "PROGRAMS", {"vc-scheduler": program})
    sign = tmp_path / "sign"
    cluster.deploy(f"--healthy-with={sign}")
    cluster.controllers.round()
    assert expected.exists()
    sign.touch()
    cluster.until(lambda: cluster.says("scheduler-1") == ("True", ""))
    cluster.controllers.round()
    assert not expected.parent.parent.exists()


def test_a_configmap_that_does_not_exist_is_told(cluster: Cluster) -> None:
    cluster.api.delete("v1", "ConfigMap", "conf", "system")
    cluster.deploy()
    cluster.controllers.round()
    assert cluster.says() == (
        "False",
        "a controller cannot start\n"
        "it mounts ConfigMap system/conf, which does not exist\n"
        "fix: render it, or correct the name",
    )


@pytest.mark.parametrize("leave", ["gone", "no replicas"])
def test_it_stops_with_its_deployment(cluster: Cluster, leave: str) -> None:
    running(cluster)
    before = cluster.process
    if leave == "gone":
        cluster.api.delete("apps/v1", "Deployment", "scheduler", "system")
    else:
        scaled = deployment()
        scaled["spec"]["replicas"] = 0
        cluster.api.apply(scaled)
    cluster.controllers.round()
    assert not before.alive
    assert cluster.home.read_controllers() == {}


def test_the_process_behind_an_address(cluster: Cluster) -> None:
    running(cluster)
    cluster.api.apply(SERVICE)
    ports = cluster.home.read_controllers()["scheduler"].ports
    assert cluster.controllers.port_behind("10.0.0.7", 80) == ports["metrics"]
    with pytest.raises(RefusedError, match="it leads to port 8081"):
        cluster.controllers.port_behind("10.0.0.7", 81)
    with pytest.raises(RefusedError, match=r"10\.0\.0\.8 is the address of no Service"):
        cluster.controllers.port_behind("10.0.0.8", 80)
    cluster.api.delete("apps/v1", "Deployment", "scheduler", "system")
    cluster.controllers.round()
    with pytest.raises(RefusedError, match="no process behind Service system/scheduler"):
        cluster.controllers.port_behind("10.0.0.7", 80)
