"""A sandbox's folder: one lock, one state file, everything else below it.

The state file is written whole after every step, so that the command after a crash knows what to clean up.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from gpuyard.cache import cache_dir, write_atomically
from gpuyard.sandbox.processes import Process, marked, stop
from gpuyard.sandbox.relay import socket_path

DEFAULT_NAME = "gpuyard"

Progress: TypeAlias = Callable[[str], None]


@dataclass
class Service:
    """A process of the sandbox and what it was started with. Another digest: it has to be started anew.

    Of a controller: whether it is `ready`, its ports by purpose, and the table of what is different for it.
    """

    process: Process
    log: str
    digest: str = ""
    ready: bool = False
    ports: dict[str, int] = field(default_factory=dict[str, int])
    table: list[list[str]] = field(default_factory=list[list[str]])


@dataclass
class State:
    """What a sandbox consists of. `complete` says that `up` reached its end; `engine`, who deploys to it."""

    complete: bool = False
    engine: str = "apply"
    environment: str = ""
    cluster_digest: str = ""
    crds_digest: str = ""
    objects_digest: str = ""
    services: dict[str, Service] = field(default_factory=dict[str, Service])


class Home:
    """The folder of one sandbox."""

    def __init__(self, name: str = DEFAULT_NAME) -> None:
        self.name = name
        self.path = cache_dir() / "sandbox" / name

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def folder(self, *parts: str) -> Path:
        """Return a folder below, made when missing; only this user can read it, since keys are kept there."""
        path = self.path.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def read(self) -> State | None:
        """Return the state, or None where no sandbox was started."""
        try:
            saved = json.loads((self.path / "state.json").read_bytes())
        except FileNotFoundError:
            return None
        services = _services(saved.pop("services"))
        return State(**saved, services=services)

    def write(self, state: State) -> None:
        write_atomically(self.path / "state.json", json.dumps(asdict(state), indent=1).encode())

    def read_controllers(self) -> dict[str, Service]:
        """Return the controllers that run, by Deployment: the kubelet's part of the state, which it alone writes."""
        try:
            return _services(json.loads((self.path / "controllers.json").read_bytes()))
        except FileNotFoundError:
            return {}

    def write_controllers(self, controllers: Mapping[str, Service]) -> None:
        content = {name: asdict(service) for name, service in controllers.items()}
        write_atomically(self.path / "controllers.json", json.dumps(content, indent=1).encode())

    def beat(self, when: float) -> None:
        """Note that the kubelet did all there was to do at a time; no folder is made for it."""
        path = self.path / "beat"
        path.touch()
        os.utime(path, (when, when))

    def last_beat(self) -> float:
        try:
            return (self.path / "beat").stat().st_mtime
        except FileNotFoundError:
            return 0.0

    @contextlib.contextmanager
    def locked(self, progress: Progress) -> Generator[None]:
        """Keep every other command away from this sandbox; the folder itself is the lock and is made when missing."""
        while True:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.path, os.O_RDONLY)
            try:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    progress(f"another command works on sandbox {self.name}; waiting for it")
                    fcntl.flock(handle, fcntl.LOCK_EX)
                # The command before us may have deleted the folder; then this lock is on nothing.
                if self.path.exists() and os.path.samestat(os.fstat(handle), self.path.stat()):
                    yield
                    return
            finally:
                os.close(handle)

    def clean(self) -> None:
        """Stop every process of the sandbox, recorded or marked, and delete what is in the folder."""
        state = self.read()
        recorded = [service.process for service in state.services.values()] if state else []
        # Their data goes too, so nothing is lost when they are not given long to write it.
        stop({*recorded, *marked(self.path)}, patience=0.5)
        # The kubelet is gone now and starts no more controllers; look until there is none.
        stop([service.process for service in self.read_controllers().values()], patience=0.5)
        while late := marked(self.path):
            stop(late)
        socket_path(self.path).unlink(missing_ok=True)
        for entry in self.path.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def wipe(self) -> None:
        """Clean, and delete the folder itself."""
        self.clean()
        self.path.rmdir()
        with contextlib.suppress(OSError):  # other sandboxes may be below it
            self.path.parent.rmdir()


def _services(saved: dict[str, Any]) -> dict[str, Service]:
    return {name: Service(**(one | {"process": Process(**one["process"])})) for name, one in saved.items()}
