"""What `gpuyard sources pull | verify | list | lock` does."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

from gpuyard.cache import write_atomically
from gpuyard.errors import InputError, Problem
from gpuyard.sources.lock import Chart, Entry, GoModule, Lock, Url, Wheel, unlocked, with_digest, wrong_digest
from gpuyard.sources.progress import Progress, quiet
from gpuyard.sources.store import State, address, file_of, module_dir, sha256, state
from gpuyard.sources.toolchain import find_go


class Verdict(NamedTuple):
    """What `verify` found out about one entry; `detail` tells expected and found where it changed."""

    name: str
    state: State
    detail: str = ""


class Row(NamedTuple):
    """One line of `gpuyard sources list`."""

    name: str
    kind: str
    version: str
    address: str
    state: State


def listing(lock: Lock) -> list[Row]:
    """Return every entry with its state, in the order of the lock file."""
    kinds: dict[type[Entry], str] = {GoModule: "go", Chart: "chart", Url: "url", Wheel: "pypi"}
    return [
        Row(entry.name, kinds[type(entry)], entry.version, address(entry), state(entry))
        for entry in lock.entries.values()
    ]


def pull(lock: Lock, names: Iterable[str] = (), progress: Progress = quiet) -> None:
    """Bring entries into the cache, all of them when no name is given; what is there already is left alone.

    A chart brings Helm with it, since nothing can be read from a chart without. Goes through all entries; raises
    InputError with every one that failed. Nothing that failed is in the cache.
    """
    problems: list[Problem] = []
    for entry in [lock[name] for name in names] or lock.entries.values():
        try:
            _pull(lock, entry, progress)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)


def _pull(lock: Lock, entry: Entry, progress: Progress) -> None:
    if isinstance(entry, Wheel):
        find_go(lock, progress)
    elif not entry.digest:
        raise unlocked(entry)
    elif state(entry) == "missing":
        _download(lock, entry, progress)
    if isinstance(entry, Chart):
        from gpuyard.sources.build import binaries

        binaries(lock, ["helm"], progress)
    progress(entry.name, "ready")


def _download(lock: Lock, entry: Entry, progress: Progress) -> str:
    """Bring an entry into the cache and return its digest, which is checked when the entry has one."""
    if isinstance(entry, GoModule):
        from gpuyard.sources.modules import download_module

        return download_module(lock, entry, progress)
    assert isinstance(entry, (Chart, Url))
    from gpuyard.sources.fetch import fetch_file

    progress(entry.name, "downloading")
    url, content = fetch_file(entry)
    found = sha256(content)
    if entry.digest and found != entry.digest:
        raise wrong_digest(entry, url, found)
    write_atomically(file_of(found), content)
    return found


def record(lock: Lock, name: str, progress: Progress = quiet) -> str:
    """Download an entry as it is upstream now, write its digest into the lock file, and return it.

    The rest of the file, comments too, stays as it is. This is the one place that trusts what it downloads.
    """
    entry = lock[name]
    if isinstance(entry, Wheel):
        raise InputError(
            Problem(
                "digests of every platform are needed",
                entry.origin,
                f"{name}.digests",
                f"the wheels of {entry.package} {entry.version} for the other platforms are not downloaded here",
                "copy the digests from the package's page on PyPI, under Download files",
            )
        )
    digest = _download(lock, dataclasses.replace(entry, digest=""), progress)
    text = with_digest(lock, lock.path.read_text(encoding="utf-8"), name, digest)
    write_atomically(lock.path, text.encode())
    return digest


def verify(lock: Lock) -> list[Verdict]:
    """Compute the digest of everything in the cache anew and compare it with the lock file."""
    return [_verify(entry) for entry in lock.entries.values()]


def _verify(entry: Entry) -> Verdict:
    known = state(entry)
    if known != "ready" or isinstance(entry, Wheel):
        return Verdict(entry.name, known)
    folder = module_dir(entry) if isinstance(entry, GoModule) else None
    if isinstance(entry, GoModule) and folder:
        from gpuyard.sources.dirhash import hash_module

        found = hash_module(folder, entry.module, entry.version)
    else:
        found = sha256(file_of(entry.digest).read_bytes())
    if found != entry.digest:
        return Verdict(entry.name, "changed", f"expected {entry.digest}, found {found}; {_remedy(entry)}")
    return Verdict(entry.name, "ready")


def _remedy(entry: Entry) -> str:
    return "go clean -modcache" if isinstance(entry, GoModule) else f"delete {file_of(entry.digest)}"
