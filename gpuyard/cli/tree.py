"""`render --out`: a folder with one file for each object, and what differs between it and a render."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gpuyard.cli.swap import Folder, is_same
from gpuyard.errors import InputError, Origin, Problem, listed
from gpuyard.manifests import Manifest, Rendered
from gpuyard.manifests.yaml.emit import to_yaml

MARK = ".gpuyard-render"
"""Lists the files of the folder: these gpuyard may replace and remove, all others it may not."""

INCOMPLETE = "# Incomplete: rendered without "
"""Begins the line of a source that the render went without."""

_LONGEST = 200
"""Characters of a file's name; file systems take 255 bytes, suffixes included."""
_ODD = re.compile("[^a-z0-9.-]")


class Changes(NamedTuple):
    """The files in which a render differs from a folder, by path."""

    added: list[str]
    removed: list[str]
    changed: list[str]

    def __str__(self) -> str:
        """`2 added, 1 changed`, or `unchanged`."""
        counts = zip(self, self._fields, strict=True)
        return ", ".join(f"{len(paths)} {what}" for paths, what in counts if paths) or "unchanged"


def object_paths(objects: Sequence[Rendered]) -> list[str]:
    """Return the path of each object's file inside the tree, without its suffix: `component/namespace/kind-name`.

    The name is that of the stable id: a changed job is a change of one file in a review, although its new run has a new
    name. Names that differ in nothing but letters a file system does not tell apart get a hash.
    """
    paths = [_path(rendered) for rendered in objects]
    shared = {path for path, count in Counter(paths).items() if count > 1}
    return [
        f"{path}-{_short_hash(rendered)}" if path in shared else path
        for path, rendered in zip(paths, objects, strict=True)
    ]


def tree_files(entries: Iterable[tuple[str, Manifest]], form: str, *, skipped: Sequence[str] = ()) -> dict[str, bytes]:
    """Return the content of every file of a tree, its list of files included.

    entries: path without suffix, manifest. form: yaml or json. skipped: the sources that the render goes without.
    """
    texts = {
        f"{path}.{form}": to_yaml([manifest])
        if form == "yaml"
        else json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        for path, manifest in entries
    }
    lines = ["# Written by `gpuyard render --out`, which replaces these files: change the environment instead."]
    lines += [f"{INCOMPLETE}{name}, which was not in the cache." for name in skipped]
    texts[MARK] = "\n".join([*lines, *sorted(texts)]) + "\n"
    return {path: text.encode() for path, text in sorted(texts.items())}


def write_tree(files: Mapping[str, bytes], out: Path) -> Changes:
    """Make a folder hold exactly these files, all at once or not at all, and return what changed.

    A folder that holds them already is not touched. See `Folder` for what others see meanwhile.
    Raises InputError when the folder holds files that no render wrote, and when it cannot be written.
    """
    try:
        with Folder(out) as folder:
            changes = compare(files, out)
            if any(changes):
                folder.replace(files)
    except OSError as error:
        raise InputError(
            Problem(
                "cannot write",
                Origin(str(out)),
                detail=error.strerror or str(error),
                fix="choose a folder that you may write to, in one that you may write to",
            )
        ) from error
    return changes


def compare(files: Mapping[str, bytes], out: Path) -> Changes:
    """Return in what a folder differs from these files; it is only read. A folder that does not exist is empty.

    Raises InputError when it holds files that no render wrote, or is a file itself.
    """
    present = _present(out)
    return Changes(
        added=sorted(files.keys() - present),
        removed=sorted(present - files.keys()),
        changed=sorted(path for path in files.keys() & present if not is_same(out / path, files[path])),
    )


def _present(out: Path) -> set[str]:
    """Return the files below a folder."""
    if not os.path.lexists(out):
        return set()
    if not out.is_dir():
        raise InputError(Problem("not a folder", Origin(str(out)), fix="give a new or an empty folder"))
    found = {
        Path(folder, name).relative_to(out).as_posix()
        for folder, folders, names in os.walk(out)
        # A link to a folder is a file of the tree like any other: nothing below it is.
        for name in (*names, *(name for name in folders if Path(folder, name).is_symlink()))
    }
    mark = out / MARK
    lines = mark.read_text(encoding="utf-8").splitlines() if mark.is_file() else []
    others = found - {MARK, *lines}
    if others:
        raise InputError(
            Problem(
                "the folder holds other files",
                Origin(str(out)),
                detail=f"{listed(others)}\na render replaces the whole folder, and gpuyard did not write these",
                fix="move them away, or give a new or an empty folder",
            )
        )
    return found


def _path(rendered: Rendered) -> str:
    who = rendered.identity
    name = f"{who.kind.lower()}-{rendered.id.rpartition('/')[2]}"
    plain = _ODD.sub("_", name.lower())
    if plain != name or len(name) > _LONGEST:
        plain = f"{plain[:_LONGEST]}-{_short_hash(rendered)}"
    return "/".join(part for part in (rendered.component, who.namespace, plain) if part)


def _short_hash(rendered: Rendered) -> str:
    who = rendered.identity
    return hashlib.sha256("/".join((who.group, who.kind, rendered.id)).encode()).hexdigest()[:6]
