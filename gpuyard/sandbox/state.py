"""A sandbox's folder: one lock, one state file, everything else below it.

The state file is written whole after every step, so that the command after a crash knows what to clean up.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeAlias

from gpuyard.cache import cache_dir, write_atomically
from gpuyard.sandbox.processes import Process, marked, stop

DEFAULT_NAME = "gpuyard"

Progress: TypeAlias = Callable[[str], None]


@dataclass
class Service:
    """A process of the sandbox and what it was started with.

    Another digest means that it has to be started anew, and so does a controller that never became `ready`.
    """

    process: Process
    log: str
    digest: str = ""
    ready: bool = False
    ports: dict[str, int] = field(default_factory=dict[str, int])


@dataclass
class State:
    """What a sandbox consists of. `complete` says that `up` reached its end."""

    complete: bool = False
    environment: str = ""
    cluster_digest: str = ""
    crds_digest: str = ""
    objects_digest: str = ""
    services: dict[str, Service] = field(default_factory=dict[str, Service])

    @property
    def dead(self) -> list[str]:
        """Names of processes that should run and do not."""
        return sorted(name for name, service in self.services.items() if not service.process.alive)


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
        services = {
            name: Service(**(service | {"process": Process(**service["process"])}))
            for name, service in saved.pop("services").items()
        }
        return State(**saved, services=services)

    def write(self, state: State) -> None:
        write_atomically(self.path / "state.json", json.dumps(asdict(state), indent=1).encode())

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
        # One that was started by another while that was being stopped: look until there is none.
        while late := marked(self.path):
            stop(late)
        for entry in self.path.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def wipe(self) -> None:
        """Clean, and delete the folder itself."""
        self.clean()
        self.path.rmdir()
        with contextlib.suppress(OSError):  # other sandboxes may be below it
            self.path.parent.rmdir()
