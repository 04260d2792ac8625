"""Binaries built from the Go modules of the lock file, once; from then on they come from the cache."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path

from gpuyard.cache import cache_dir
from gpuyard.errors import InputError, Problem
from gpuyard.sources.lock import Build, GoModule, Lock, unlocked
from gpuyard.sources.modules import download_module
from gpuyard.sources.progress import Progress, quiet
from gpuyard.sources.store import module_dir
from gpuyard.sources.toolchain import find_go, run_go

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_REPLACE = re.compile(r"^\s*(?:replace\s+)?([^\s/]\S*(?: v\S+)?)\s+=>\s+(\S+(?: v\S+)?)", re.MULTILINE)


def binaries(lock: Lock, names: Iterable[str], progress: Progress = quiet) -> dict[str, Path]:
    """Return the path of each binary; build those that are not in the cache, one after another.

    progress: told ("kube-apiserver", "building") and then ("kube-apiserver", "ready"), and what is downloaded.
    Raises InputError when no entry builds a name, a module cannot be had, or a build fails.
    """
    found: dict[str, Path] = {}
    for name in names:
        entry = lock.builder(name)
        target = binary_path(entry, name)
        if not target.is_file():
            with _alone(progress, name):
                if not target.is_file():
                    _build(lock, entry, name, target, progress)
        progress(name, "ready")
        found[name] = target
    return found


def binary_path(entry: GoModule, name: str) -> Path:
    """Return where a binary is or would be: the folder's name is the digest of everything that goes into it."""
    assert entry.build
    inputs = [entry.module, entry.version, entry.digest, dict(entry.build.replace), entry.build.staging,
              _package(entry.build, name), _link_flags(entry), *_platform()]  # fmt: skip
    key = hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()
    return cache_dir("binaries") / key / name


def _package(build: Build, name: str) -> str:
    return build.binaries[name].removeprefix(".")


def _platform() -> tuple[str, str]:
    """Return Go's names of this operating system and processor."""
    machine = platform.machine().lower()
    return sys.platform, _ARCHITECTURES.get(machine, machine)


def _link_flags(entry: GoModule) -> str:
    assert entry.build
    major, minor = entry.version.removeprefix("v").split(".")[:2]
    values = {"gitVersion": entry.version, "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X {package}.{key}={value}" for package in entry.build.stamp for key, value in values.items()]
    return " ".join(["-s -w", *stamps])


@contextmanager
def _alone(progress: Progress, name: str) -> Generator[None]:
    """Let one process at a time build: two builds at once only slow each other. A killed process frees the lock."""
    with (cache_dir("binaries") / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(name, "waiting for another build")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _workshop() -> Generator[Path]:
    """Give an empty folder. Whoever builds is alone, so that what is found there is left of a killed build."""
    folder = cache_dir("binaries") / ".build"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _build(lock: Lock, entry: GoModule, name: str, target: Path, progress: Progress) -> None:
    assert entry.build
    if not entry.digest:
        raise unlocked(entry)
    if not module_dir(entry):
        download_module(lock, entry, progress)
    source = module_dir(entry)
    assert source
    go = find_go(lock, progress)
    progress(name, "building")
    target.parent.mkdir(parents=True, exist_ok=True)
    system, processor = _platform()
    with _workshop() as wrapper:
        made = wrapper / name
        go_mod = (source / "go.mod").read_text(encoding="utf-8")
        path = _module_path(go_mod)
        (wrapper / "go.mod").write_text(wrapper_module(entry, go_mod))
        # The module's own sums, and the digest of the lock for the module itself: Go refuses any other content.
        sums = (source / "go.sum").read_text(encoding="utf-8")
        (wrapper / "go.sum").write_text(f"{sums}{entry.module} {entry.version} {entry.digest}\n")
        package = "/".join(part for part in (path, _package(entry.build, name)) if part)
        arguments = ["build", "-trimpath", "-ldflags", _link_flags(entry), "-o", str(made), package]
        result = run_go(go, arguments, wrapper, {"GOOS": system, "GOARCH": processor})
        if result.returncode:
            raise InputError(
                Problem(
                    f"cannot build {name}",
                    entry.origin,
                    f"{entry.name}.build",
                    f"go build {package} at {entry.version}:\n" + "\n".join(result.stderr.strip().splitlines()[-12:]),
                    "check the connection and GOPROXY; a cached part of a build is not lost",
                )
            )
        os.replace(made, target)


def _module_path(go_mod: str) -> str:
    match = re.search(r'^module\s+"?([^\s"]+)', go_mod, re.MULTILINE)
    assert match, "Go would not have downloaded a module without its path"
    return match[1]


def wrapper_module(entry: GoModule, go_mod: str) -> str:
    """Return the go.mod of a module that requires this one and nothing else.

    Replaces count in the main module alone, so that the module's own are repeated here. Those that lead into folders of
    its repository name what is not in the module: the entry gives versions for them, except where the module itself
    requires a version that exists.
    """
    assert entry.build
    path, language = _module_path(go_mod), re.search(r"^go\s+(\S+)", go_mod, re.MULTILINE)
    replaces: Mapping[str, str] = {**_own_replaces(entry, entry.build, go_mod), **entry.build.replace}
    if path != entry.module:
        replaces = {**replaces, path: f"{entry.module} {entry.version}"}
    lines = [
        "module gpuyard.invalid/build",
        f"go {language[1] if language else '1.21'}",
        f"require {path} {entry.version}",
    ]
    lines += [f"replace {old} => {new}" for old, new in replaces.items()]
    return "\n".join(lines) + "\n"


def _own_replaces(entry: GoModule, build: Build, go_mod: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for old, new in _REPLACE.findall(go_mod):
        if not new.startswith("."):
            found[old] = new
        elif build.staging:
            found[old] = f"{old} {build.staging}"
        elif old not in build.replace and re.search(rf"(?m)^\s*(?:require\s+)?{re.escape(old)} v0\.0\.0\b", go_mod):
            raise InputError(
                Problem(
                    "a replaced module without a version",
                    entry.origin,
                    f"{entry.name}.build.replace",
                    f"the go.mod of {entry.module} {entry.version} needs {old} v0.0.0, its folder {new}",
                    f"add {old}: {old} VERSION",
                )
            )
    return found
