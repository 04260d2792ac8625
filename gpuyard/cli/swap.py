"""Replaces a folder as a whole, so that nobody ever sees half of it."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

_NOT_HERE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""What a kernel or a file system answers that cannot exchange two folders."""


class Folder:
    """A folder that this process alone may replace while it is entered; others who want to wait.

    The new content is written into a hidden folder beside it and exchanged with it in one step of the kernel: whoever
    opens the folder finds the old content or the new, whether this process goes on, is killed, or the disk is full.
    Linux since 3.15 can do that on ext4, XFS, Btrfs and tmpfs, macOS on APFS. Elsewhere (NFS, for one) the old folder
    is moved away just before the new one takes its place: never a mixture, but a process that is killed between the
    two leaves no folder, until the next one that enters puts the old one back. Losing power is not covered.

    Files that stay the same are linked, not written: they keep their time. Raises OSError.
    """

    def __init__(self, path: Path) -> None:
        # A link to a folder stays a link to it.
        self.path = Path(os.path.realpath(path))
        self._hidden = self.path.parent / f".{self.path.name}.gpuyard"
        self._lock = -1

    def __enter__(self) -> Folder:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Locking the folder above leaves no file behind, and the kernel unlocks it when this process ends.
        self._lock = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._put_back()
            if self._hidden.exists():
                shutil.rmtree(self._hidden)
        except OSError:
            os.close(self._lock)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._put_back()
        shutil.rmtree(self._hidden, ignore_errors=True)
        os.close(self._lock)

    def replace(self, files: Mapping[str, bytes]) -> None:
        """Make the folder hold exactly these files: path below the folder -> content."""
        new = self._hidden / "new"
        new.mkdir(parents=True)
        for path, content in files.items():
            target, old = new / path, self.path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if is_same(old, content):
                _link(old, target)
            else:
                target.write_bytes(content)
        if not self.path.exists():
            os.rename(new, self.path)
            return
        new.chmod(stat.S_IMODE(self.path.stat().st_mode))
        if not exchange(new, self.path):
            os.rename(self.path, self._hidden / "old")
            os.rename(new, self.path)

    def _put_back(self) -> None:
        """Put the old folder back when its place is empty: whoever moved it away did not come to the end."""
        old = self._hidden / "old"
        if old.is_dir() and not self.path.exists():
            os.rename(old, self.path)


def is_same(path: Path, content: bytes) -> bool:
    """Return whether a path is a plain file with this content."""
    return path.is_file() and not path.is_symlink() and path.read_bytes() == content


def exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step. Returns False where the kernel or the file system cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    if sys.platform == "linux" and hasattr(libc, "renameat2"):
        at_cwd, rename_exchange = -100, 2
        failed = libc.renameat2(at_cwd, first, at_cwd, second, ctypes.c_uint(rename_exchange))
    elif sys.platform == "darwin":
        rename_swap = 2
        failed = libc.renamex_np(first, second, ctypes.c_uint(rename_swap))
    else:
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in _NOT_HERE:
        return False
    raise OSError(code, os.strerror(code), str(other))


def _link(old: Path, new: Path) -> None:
    try:
        os.link(old, new)
    except OSError:
        # File systems without hard links, and files of other people; the time is copied too.
        shutil.copy2(old, new)
