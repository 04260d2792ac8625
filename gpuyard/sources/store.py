"""Where what was pulled lives. What is found here was verified when it came in; its name is its digest."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Literal

from gpuyard.cache import cache_dir, write_atomically
from gpuyard.sources.lock import Chart, Entry, GoModule, Url, Wheel

State = Literal["ready", "missing", "no digest", "changed", "not needed"]
"""ready: in the cache. changed: in the cache, but no longer what the lock file names. not needed: a tool that was never
asked for."""


def module_dir(entry: GoModule) -> Path | None:
    """Return the folder of a pulled Go module, in Go's module cache, or None when it is not there (any more)."""
    try:
        folder = Path(json.loads(_record(entry.digest).read_bytes())["dir"])
    except FileNotFoundError:
        return None
    return folder if folder.is_dir() else None


def remember_module(digest: str, folder: str) -> None:
    """Write down where Go keeps a module that was verified."""
    write_atomically(_record(digest), json.dumps({"dir": folder}).encode())


def _record(digest: str) -> Path:
    # The digest is base64, which has slashes.
    return cache_dir("modules") / f"{hashlib.sha256(digest.encode()).hexdigest()}.json"


def file_of(digest: str) -> Path:
    """Return where the file with this SHA-256 is or would be."""
    return cache_dir("files") / digest.removeprefix("sha256:")


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def toolchain_dir(entry: Wheel) -> Path:
    """Return where the wheel of a tool is or would be installed."""
    return cache_dir("tools") / f"{entry.package}-{entry.version}"


def state(entry: Entry) -> State:
    """Return whether an entry is in the cache, without looking inside."""
    if isinstance(entry, Wheel):
        return "ready" if toolchain_dir(entry).is_dir() else "not needed"
    if not entry.digest:
        return "no digest"
    if isinstance(entry, GoModule):
        return "ready" if module_dir(entry) else "missing"
    return "ready" if file_of(entry.digest).is_file() else "missing"


def address(entry: Entry) -> str:
    """Return where an entry comes from, in one line."""
    if isinstance(entry, GoModule):
        return entry.module
    if isinstance(entry, Chart):
        return f"{entry.repository}/{entry.chart}"
    if isinstance(entry, Url):
        return entry.url
    assert isinstance(entry, Wheel)
    return entry.package
