"""Go modules, downloaded by Go itself with its checksum database, and held to the digest of the lock file."""

from __future__ import annotations

import json
import tempfile
from typing import Any

from gpuyard.errors import InputError, Problem
from gpuyard.sources.lock import GoModule, Lock, wrong_digest
from gpuyard.sources.progress import Progress
from gpuyard.sources.store import remember_module
from gpuyard.sources.toolchain import find_go, run_go


def download_module(lock: Lock, entry: GoModule, progress: Progress) -> str:
    """Download a module and remember where Go keeps it; return its digest.

    Raises InputError when it cannot be had or is not what the entry's digest says; an entry without one takes any.
    """
    go = find_go(lock, progress)
    progress(entry.name, "downloading")
    # Outside of any project: a go.mod there would change what is downloaded.
    with tempfile.TemporaryDirectory() as nowhere:
        result = run_go(go, ["mod", "download", "-json", f"{entry.module}@{entry.version}"], cwd=nowhere)
    told: dict[str, Any] = json.loads(result.stdout) if result.stdout.lstrip().startswith("{") else {}
    if result.returncode or "Error" in told:
        raise InputError(
            Problem(
                "cannot download the Go module",
                entry.origin,
                entry.name,
                str(told.get("Error") or result.stderr.strip()),
                "check the connection and GOPROXY",
            )
        )
    if entry.digest and told["Sum"] != entry.digest:
        raise wrong_digest(entry, f"{entry.module}@{entry.version}", told["Sum"])
    remember_module(told["Sum"], told["Dir"])
    return told["Sum"]
