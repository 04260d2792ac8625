"""The folders in place of a controller's volumes: ConfigMaps and Secrets as they are in the cluster now."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
from pathlib import Path

from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Manifest
from gpuyard.sandbox.api import Api
from gpuyard.sandbox.localize import Controller, Mount


def mount_all(api: Api, controller: Controller, *, starts: bool) -> str:
    """Write what a controller mounts; return what it still waits for, "" when all is there.

    A Secret may come later: its owner, or the controller itself, fills it.
    starts: it may still look for the file that it expects.
    Raises InputError for a ConfigMap, or a key of one, that does not exist: nobody makes those but the render.
    """
    waits = ""
    complete = True
    (controller.folder / "tmp").mkdir(parents=True, exist_ok=True, mode=0o700)
    for mount in controller.mounts:
        mount.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if mount.kind:
            missing, is_filled = _mount(api, controller, mount)
            if missing and mount.kind != "Secret":
                raise InputError(
                    Problem(
                        "a controller cannot start",
                        detail=f"it mounts {missing}, which does not exist",
                        fix="render it, or correct the name",
                    )
                )
            waits = waits or missing
            complete = complete and is_filled
    if starts and complete and not waits and controller.program.expects:
        expected = Path(controller.program.expects)
        # Another sandbox may be taking the folder away right now; the next round makes it again.
        with contextlib.suppress(FileNotFoundError):
            expected.parent.mkdir(parents=True, exist_ok=True)
            expected.touch()
    return waits


def _mount(api: Api, controller: Controller, mount: Mount) -> tuple[str, bool]:
    """Write one ConfigMap or Secret; return what is missing, and whether a Secret has any content."""
    name = f"{mount.kind} {controller.namespace}/{mount.name}"
    live = api.get("v1", mount.kind, mount.name, controller.namespace)
    if not live and not mount.optional:
        return name, False
    files = _files(live or {})
    for key, file in mount.items or tuple((key, key) for key in files):
        if key not in files:
            return f"key {key} of {name}", False
        path = mount.folder / file
        if not path.exists() or path.read_bytes() != files[key]:
            write_private(path, files[key])
    return "", bool(files or mount.kind != "Secret")


def _files(live: Manifest) -> dict[str, bytes]:
    """Return the files that a mounted ConfigMap or Secret consists of."""
    data: dict[str, str] = live.get("data") or {}
    if live.get("kind") == "Secret":
        return {key: base64.b64decode(value) for key, value in data.items()}
    binary: dict[str, str] = live.get("binaryData") or {}
    return {key: value.encode() for key, value in data.items()} | {
        key: base64.b64decode(value) for key, value in binary.items()
    }


def mounted_digest(controller: Controller, kind: str) -> str:
    """Change when a mounted ConfigMap, or a mounted Secret, does."""
    digest = hashlib.sha256()
    for mount in controller.mounts:
        if mount.kind == kind:
            for path in sorted(mount.folder.iterdir()):
                digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only this user can read; a program that reads it meanwhile sees the old one or the new."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.new")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    fresh.replace(path)


def forget_expected(path: Path) -> None:
    """Take away the empty file that a program only looked for; a file with content is somebody else's."""
    if path.exists() and not path.stat().st_size:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a folder that is not empty, or is gone already
            for folder in path.parents[:2]:
                folder.rmdir()
