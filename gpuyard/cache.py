"""Where machine state lives: outside the project, by digest, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from gpuyard.errors import InputError, Origin, Problem


def cache_dir(*parts: str) -> Path:
    """Return a folder of the cache, made when missing: `$GPUYARD_CACHE`, else `gpuyard` in the user's cache folder."""
    base = os.environ.get("GPUYARD_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "gpuyard"
    )
    path = Path(base, *parts)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            Problem("cannot write to the cache", Origin(str(path)), detail=str(error.strerror), fix="set GPUYARD_CACHE")
        ) from error
    return path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, a full disk or a kill sees the old content or the new, never a part."""
    import tempfile  # only where something is written

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise InputError(
            Problem(
                "cannot write", Origin(str(path)), detail=str(error.strerror), fix="choose a folder you may write to"
            )
        ) from error
