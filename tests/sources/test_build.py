"""Building: what Go is asked for, and that it is asked once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpuyard.errors import InputError, Origin
from gpuyard.sources import Lock
from gpuyard.sources.build import binaries, wrapper_module
from gpuyard.sources.lock import Build, GoModule
from tests.sources.conftest import DIGEST, MODULE, TINY, FakeGo

Write = Callable[[str], Lock]


def entry(module: str, version: str, build: Build) -> GoModule:
    return GoModule(
        name="it", version=version, origin=Origin("gpuyard.lock.yaml", 2), module=module, digest=DIGEST, build=build
    )


def test_a_binary_is_built_once_and_then_comes_from_the_cache(lock: Write, go: FakeGo, cache: Path) -> None:
    told: list[tuple[str, str]] = []

    def progress(name: str, state: str) -> None:
        told.append((name, state))

    first = binaries(lock(TINY), ["tinyd", "tiny"], progress)
    again = binaries(lock(TINY), ["tinyd", "tiny"], progress)

    assert first == again
    assert [path.read_text() for path in first.values()] == ["built\n", "built\n"]
    assert [path.name for path in first.values()] == ["tinyd", "tiny"]
    assert [[*line.split()[1:4], line.split()[-1]] for line in go.asked("build")] == [
        ["-trimpath", "-ldflags", "-s", "example.com/tiny/cmd/tinyd"],
        ["-trimpath", "-ldflags", "-s", "example.com/tiny"],
    ]
    assert told == [
        ("tiny", "downloading"),
        *[("tinyd", "building"), ("tinyd", "ready"), ("tiny", "building"), ("tiny", "ready")],
        *[("tinyd", "ready"), ("tiny", "ready")],
    ]
    assert not (cache / "binaries" / ".build").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("v1.0.0", "v1.0.1"),
        ("cmd/tinyd", "cmd/other"),
        ("    binaries", "    stamp: [example.com/v]\n    binaries"),
        ("    binaries", "    replace: {example.com/other: example.com/other v2.0.0}\n    binaries"),
        ("    binaries", "    staging: v0.1.0\n    binaries"),
    ],
)
def test_another_input_is_another_binary(lock: Write, go: FakeGo, old: str, new: str) -> None:
    assert binaries(lock(TINY), ["tinyd"]) != binaries(lock(TINY.replace(old, new)), ["tinyd"])


def test_two_at_once_build_once(lock: Write, go: FakeGo) -> None:
    go.write("1.26.8", build='sleep 0.3; echo built > "$6"')
    pinned = lock(TINY)

    with ThreadPoolExecutor(2) as both:
        paths = list(both.map(lambda _: binaries(pinned, ["tinyd"])["tinyd"], range(2)))

    assert paths[0] == paths[1]
    assert len(go.asked("build")) == 1


def test_what_a_killed_build_left_is_cleared_away(lock: Write, go: FakeGo, cache: Path) -> None:
    left = cache / "binaries" / ".build" / "go.mod"
    left.parent.mkdir(parents=True)
    left.write_text("half")

    assert binaries(lock(TINY), ["tinyd"])["tinyd"].read_text() == "built\n"
    assert not left.exists()


def test_a_build_that_fails_leaves_nothing(lock: Write, go: FakeGo, cache: Path) -> None:
    go.write("1.26.8", build="echo half > $6; echo 'cmd/tinyd/main.go:3: undefined: x' >&2; exit 1")

    with pytest.raises(InputError) as caught:
        binaries(lock(TINY), ["tinyd"])

    assert str(caught.value) == (
        "error  cannot build tinyd\n"
        "  gpuyard.lock.yaml:2   tiny.build\n"
        "  go build example.com/tiny/cmd/tinyd at v1.0.0:\n"
        "  cmd/tinyd/main.go:3: undefined: x\n"
        "  fix: check the connection and GOPROXY; a cached part of a build is not lost"
    )
    assert not list((cache / "binaries").rglob("tinyd"))


def test_go_itself_holds_the_build_to_the_digest_of_the_lock(lock: Write, go: FakeGo) -> None:
    go.write("1.26.8", build='cp go.sum "$6"')

    sums = binaries(lock(TINY), ["tinyd"])["tinyd"].read_text()

    assert sums == f"{MODULE['go.sum']}example.com/tiny v1.0.0 {DIGEST}\n"


def test_versions_are_stamped_where_the_lock_says(lock: Write, go: FakeGo) -> None:
    binaries(lock(TINY.replace("    binaries", "    stamp: [example.com/v]\n    binaries")), ["tinyd"])

    assert (
        "-s -w -X example.com/v.gitVersion=v1.0.0 -X example.com/v.gitMajor=1 -X example.com/v.gitMinor=0"
        in go.asked("build")[0]
    )


def test_a_wrapper_repeats_replaces_and_gives_folders_a_version() -> None:
    """As k8s.io/kubernetes: its staging modules are folders of the repository and modules of their own."""
    go_mod = (
        "module k8s.io/kubernetes\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/api v0.0.0\n)\n\nreplace (\n"
        "\tgoogle.golang.org/grpc => google.golang.org/grpc v1.64.0 // pinned\n"
        "\t// a comment => of someone\n"
        "\tk8s.io/api => ./staging/src/k8s.io/api\n)\n\nreplace a.io/b v1.0.0 => a.io/c v1.0.1\n"
    )

    assert wrapper_module(entry("k8s.io/kubernetes", "v1.36.3", Build({}, staging="v0.36.3")), go_mod) == (
        "module gpuyard.invalid/build\n"
        "go 1.26.0\n"
        "require k8s.io/kubernetes v1.36.3\n"
        "replace google.golang.org/grpc => google.golang.org/grpc v1.64.0\n"
        "replace k8s.io/api => k8s.io/api v0.36.3\n"
        "replace a.io/b v1.0.0 => a.io/c v1.0.1\n"
    )


def test_a_module_that_was_renamed_replaces_its_old_name() -> None:
    go_mod = "module github.com/kubeflow/training-operator\n\ngo 1.26.0\n"

    assert wrapper_module(entry("github.com/kubeflow/trainer", "v1.9.4", Build({})), go_mod) == (
        "module gpuyard.invalid/build\n"
        "go 1.26.0\n"
        "require github.com/kubeflow/training-operator v1.9.4\n"
        "replace github.com/kubeflow/training-operator => github.com/kubeflow/trainer v1.9.4\n"
    )


def test_a_folder_of_the_repository_gives_way_to_the_version_that_is_required() -> None:
    """As etcd: the sibling modules are required at a version that exists."""
    go_mod = "module m.io/server\n\ngo 1.24.0\n\nrequire m.io/api v3.6.8\n\nreplace m.io/api => ../api\n"

    assert "replace" not in wrapper_module(entry("m.io/server", "v3.6.8", Build({})), go_mod)


def test_a_folder_of_the_repository_without_a_version_is_refused() -> None:
    """As Volcano: it requires volcano.sh/apis v0.0.0, which exists nowhere."""
    go_mod = "module v.sh/v\n\nrequire (\n\tv.sh/apis v0.0.0\n)\n\nreplace v.sh/apis => ./staging/apis\n"

    with pytest.raises(InputError) as caught:
        wrapper_module(entry("v.sh/v", "v1.14.1", Build({})), go_mod)

    assert str(caught.value) == (
        "error  a replaced module without a version\n"
        "  gpuyard.lock.yaml:2   it.build.replace\n"
        "  the go.mod of v.sh/v v1.14.1 needs v.sh/apis v0.0.0, its folder ./staging/apis\n"
        "  fix: add v.sh/apis: v.sh/apis VERSION"
    )
    given = entry("v.sh/v", "v1.14.1", Build({}, replace={"v.sh/apis": "v.sh/apis v1.14.0"}))
    assert wrapper_module(given, go_mod).endswith("replace v.sh/apis => v.sh/apis v1.14.0\n")
