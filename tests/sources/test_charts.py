"""Charts: from a repository and from a registry, expanded by the real Helm; what makes a render unstable is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuyard.cache import cache_dir
from gpuyard.errors import InputError
from gpuyard.sources import Cache, Lock, read_lock
from gpuyard.sources.build import binaries
from gpuyard.sources.pull import pull
from tests.sources.conftest import Server, sha256
from tests.sources.test_pull import chart_entry, serve_registry, serve_repository

ROOT = Path(__file__).resolve().parents[2]
Write = Callable[[str], Lock]
Serve = Callable[[Server, bytes], str]

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder with the binaries of this machine's cache, Helm among them: it is built once, not once per test."""
    binaries(read_lock(ROOT / "gpuyard.lock.yaml"), ["helm"])
    return cache_dir("binaries")


@pytest.fixture
def cache(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with Helm and nothing else."""
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "binaries").symlink_to(built)
    monkeypatch.setenv("GPUYARD_CACHE", str(folder))
    return folder


@pytest.fixture
def pinned(lock: Write, cache: Path, server: Server, archive: bytes) -> Lock:
    """A lock file with the chart and this project's Helm; the chart is pulled."""
    locked = with_helm(lock(chart_entry(serve_repository(server, archive), sha256(archive))))
    pull(locked, ["greeter"])
    return locked


def with_helm(lock: Lock) -> Lock:
    own = read_lock(ROOT / "gpuyard.lock.yaml")
    return dataclasses.replace(lock, entries={**lock.entries, "helm": own["helm"], "go": own["go"]})


def expand(lock: Lock, api_versions: tuple[str, ...] = (), **values: Any) -> list[dict[str, Any]]:
    source = Cache(lock).open("greeter")
    return source.chart(
        release="hello", namespace="greetings", kubernetes="1.34", values=values, api_versions=api_versions
    )


@pytest.mark.parametrize("serve", [serve_repository, serve_registry])
def test_from_pull_to_objects(lock: Write, server: Server, archive: bytes, serve: Serve) -> None:
    pinned = with_helm(lock(chart_entry(serve(server, archive), sha256(archive))))
    assert Cache(pinned).missing(["greeter"]) == ["greeter"]

    pull(pinned, ["greeter"])
    crd, config, role, widget = expand(pinned, greeting="hi")

    # Without descriptions, and with a namespace where its kind has one: the chart's own kind Widget has none.
    assert crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "properties": {"spec": {"type": "object"}},
    }
    assert config == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "hello", "namespace": "greetings"},
        "data": {"greeting": "hi", "kubernetes": "v1.34.0", "monitored": "false"},
    }
    assert role["metadata"] == {"name": "hello"}
    assert widget["metadata"] == {"name": "hello"}


def test_the_apis_of_the_cluster_are_an_input(pinned: Lock) -> None:
    config = expand(pinned, ("monitoring.coreos.com/v1",), greeting="hi")[1]

    assert config["data"]["monitored"] == "true"


def test_an_expansion_comes_from_the_cache(pinned: Lock, cache: Path) -> None:
    first = expand(pinned, greeting="hi")
    (stored,) = (cache / "charts").iterdir()
    for archive in (cache / "files").iterdir():
        archive.write_bytes(b"not read again")

    assert expand(pinned, greeting="hi") == first
    assert [file.name for file in (cache / "charts").iterdir()] == [stored.name]
    with pytest.raises(InputError, match="Helm cannot expand the chart"):
        expand(pinned, greeting="ho")


def test_a_value_that_is_made_up_is_refused(pinned: Lock, cache: Path) -> None:
    with pytest.raises(InputError) as caught:
        expand(pinned)

    assert str(caught.value) == (
        "error  two expansions of the chart differ\n"
        "  gpuyard.lock.yaml:1   greeter\n"
        "  ConfigMap hello: data.greeting\n"
        "  the chart makes something up (a password, a certificate, a time)\n"
        "  fix: set the value that this field comes from"
    )
    assert not list((cache / "charts").iterdir())


def test_a_secret_is_refused_and_not_shown(pinned: Lock, cache: Path) -> None:
    with pytest.raises(InputError) as caught:
        expand(pinned, greeting="hi", token="s3cr3t")

    assert str(caught.value) == (
        "error  the chart makes a Secret\n"
        "  gpuyard.lock.yaml:1   greeter\n"
        "  Secret hello holds token; no secret is ever in a render\n"
        "  fix: set the chart's value that names an existing Secret, or the one that turns this off"
    )
    assert not list((cache / "charts").iterdir())


def test_a_hook_is_dropped_and_listed(pinned: Lock) -> None:
    plain = expand(pinned, greeting="hi")
    expansion = Cache(pinned).open("greeter").expand("hello", "greetings", "1.34", {"greeting": "hi", "hook": True})

    assert expansion.objects == plain
    assert expansion.hooks == ["Job hello-install"]


def test_a_chart_that_helm_cannot_expand(pinned: Lock) -> None:
    told = r'Helm cannot expand the chart\n  gpuyard.lock.yaml:1   greeter\n  release name check failed: .*"Not A Name"'
    with pytest.raises(InputError, match=told):
        Cache(pinned).open("greeter").chart(release="Not A Name", namespace="a", kubernetes="1.34", values={})


def test_a_chart_has_no_files(pinned: Lock) -> None:
    with pytest.raises(ValueError, match=r"greeter has no file values\.yaml: it is a Chart"):
        Cache(pinned).open("greeter").manifests("values.yaml")
