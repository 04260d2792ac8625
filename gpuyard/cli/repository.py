"""Where a GitOps controller finds a tree: repository, revision, path."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from gpuyard.errors import InputError, Origin, Problem

_SCP_LIKE = re.compile(r"(?P<who>[\w.-]+@[\w.-]+):(?P<path>[^/].*)")


class Location(NamedTuple):
    """A folder of a Git repository.

    url:      https://..., http://... or ssh://..., without a password.
    revision: a branch, or a full reference such as refs/tags/v1.
    path:     of the folder inside the repository, with slashes; empty for the repository itself.
    """

    url: str
    revision: str
    path: str


def locate(out: Path, url: str | None, revision: str, path: str | None) -> Location:
    """Return the location of a tree. What is not given is asked of the Git repository that the folder is in."""
    folder = Path(os.path.realpath(out))
    if url is None:
        url = _git(folder, "--repo", "remote", "get-url", "origin")
    if path is None:
        path = folder.relative_to(os.path.realpath(_git(folder, "--path", "rev-parse", "--show-toplevel"))).as_posix()
    return Location(_clean(url), revision, _inside(path))


def _git(folder: Path, flag: str, *arguments: str) -> str:
    """Return what git says about the repository that a folder is in, or would be in."""
    place = next(one for one in folder.parents if one.is_dir())
    try:
        result = subprocess.run(["git", "-C", str(place), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        reason = "git is not installed"
    else:
        if result.returncode == 0:
            return result.stdout.strip()
        reason = result.stderr.strip()
    raise InputError(
        Problem("cannot tell where the tree will be", Origin(str(folder)), detail=reason, fix=f"give {flag}")
    )


def _clean(url: str) -> str:
    """Return a URL that every controller takes; a password or token in it is left out."""
    if match := _SCP_LIKE.fullmatch(url):
        return f"ssh://{match['who']}/{match['path']}"
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http", "ssh") or not parts.hostname:
        raise InputError(
            Problem(
                "a controller cannot read this repository",
                field="--repo",
                detail=f"{url}; accepted: https://..., http://..., ssh://..., git@HOST:PATH",
            )
        )
    login, _, host = parts.netloc.rpartition("@")
    user = login.partition(":")[0]
    return urlunsplit(parts._replace(netloc=f"{user}@{host}" if user and parts.scheme == "ssh" else host))


def _inside(path: str) -> str:
    clean = os.path.normpath(path)
    if os.path.isabs(clean) or clean.split("/")[0] == "..":
        raise InputError(
            Problem("not a path inside a repository", field="--path", detail=f"{path}; accepted: rendered/prod")
        )
    return "" if clean == "." else clean
