"""`render --out`: a folder with one file for each object, replaced as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests import Rendered
from gpuyard.manifests.emit import to_json, to_yaml

MARK = ".gpuyard-render"
"""Marks a folder that gpuyard wrote and may replace."""


def file_name(rendered: Rendered, suffix: str) -> str:
    """Return the path of an object's file inside the tree: component/kind-namespace-name.yaml, in lower case."""
    who = rendered.identity
    name = "-".join(part for part in (who.kind.lower(), who.namespace, who.name) if part)
    return f"{rendered.component}/{name.replace(':', '_').replace('/', '_')}.{suffix}"


def write_tree(objects: Sequence[Rendered], out: Path, form: str) -> int:
    """Write the objects below `out` and return how many. What a former render left there and is gone now is removed.

    Raises InputError when `out` holds files that no render wrote, and when it cannot be written.
    """
    out = Path(os.path.abspath(out))
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / MARK).is_file())):
        raise InputError(
            Problem(
                "the folder holds other files",
                Origin(str(out)),
                detail="a render replaces the whole folder, and gpuyard did not write this one",
                fix="give a new or an empty folder",
            )
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch:
            new, old = Path(scratch, "new"), Path(scratch, "old")
            new.mkdir()
            (new / MARK).write_text("Written by `gpuyard render --out`, which replaces this folder as a whole.\n")
            for rendered in objects:
                path = new / file_name(rendered, form)
                path.parent.mkdir(exist_ok=True)
                text = to_json([rendered.manifest]) if form == "json" else to_yaml([rendered.manifest])
                path.write_text(text, encoding="utf-8")
            if out.exists():
                os.rename(out, old)
            os.rename(new, out)
            shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise InputError(
            Problem(
                "cannot write", Origin(str(out)), detail=str(error.strerror), fix="choose a folder you may write to"
            )
        ) from error
    return len(objects)
