"""Reading the cluster of the current context, against a small API server on this machine."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuyard.errors import InputError
from gpuyard.pulumi.cluster import LiveCluster
from tests.pulumi.small import UID, crd

ANSWERS: dict[str, Any] = {
    "/api/v1/namespaces/kube-system": {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "kube-system", "uid": UID},
    },
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {"items": [crd()]},
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = self.path in ANSWERS
        body = json.dumps(ANSWERS.get(self.path, {"kind": "Status", "code": 404})).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()
        thread.join()


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def write(address: str) -> None:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        }
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(config))
        # The client reads the variable once, when it is imported.
        monkeypatch.setenv("KUBECONFIG", str(file))
        monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))

    return write


def test_the_uid_is_that_of_kube_system(server: str, kubeconfig: Any) -> None:
    kubeconfig(server)

    assert LiveCluster().uid() == UID


def test_crds_come_as_plain_data(server: str, kubeconfig: Any) -> None:
    kubeconfig(server)

    assert LiveCluster().crds() == [crd()]


def test_a_cluster_that_cannot_be_reached_is_an_error_with_a_way_out(kubeconfig: Any) -> None:
    kubeconfig("http://127.0.0.1:9")

    with pytest.raises(InputError) as error:
        LiveCluster().uid()

    (problem,) = error.value.problems
    assert problem.title == "the cluster cannot be read"
    assert "127.0.0.1" in problem.detail
    assert problem.fix == "point KUBECONFIG and its current context at the cluster; kubectl get namespaces must work"
