"""Processes that outlive the command that started them: start, recognize, stop.

Every process of a sandbox carries the sandbox's folder in its environment (`MARKER`). On Linux that is how all of them
are found, also those started an instant before a crash. A recorded process is recognized by its id and its start time,
so that an id used again by another program is never killed.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuyard.errors import InputError, Problem

MARKER = "GPUYARD_SANDBOX"
_PROC = Path("/proc")
_PORTS = range(20000, 30000)


@dataclass(frozen=True, slots=True)
class Process:
    """A running program: its id, and when it started in whatever unit the system counts."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        return start_time(self.pid) == self.started


def start_time(pid: int) -> str:
    """Return when a process started, or "" when there is none (one that has ended and waits to be reaped is none)."""
    if _PROC.joinpath("self/stat").exists():
        try:
            # The command's name, in parentheses, may hold spaces; state is field 3 and the start time field 22.
            fields = _PROC.joinpath(str(pid), "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return ""
        return "" if fields[0] in "ZX" else fields[19]
    listed = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = listed.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else started.strip()


def start(command: Sequence[str], *, folder: Path, environment: Mapping[str, str], log: Path) -> Process:
    """Start a program in a session of its own: Ctrl-C does not reach it, and its children can be stopped with it.

    environment: all of it; nothing is inherited. log: where its output goes, replaced.
    """
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    process = Process(child.pid, start_time(child.pid))
    # It is not ours to wait for: it lives on when this command ends. `alive` sees an ended one as ended.
    child.returncode = 0
    return process


def marked(folder: Path) -> list[Process]:
    """Return the running processes that carry a sandbox's marker; none on systems without /proc."""
    wanted = f"{MARKER}={folder}".encode()
    found: list[Process] = []
    for entry in _PROC.glob("[0-9]*/environ"):
        try:
            variables = entry.read_bytes().split(b"\0")
        except (PermissionError, FileNotFoundError, ProcessLookupError):
            continue  # another user's process, or one that has just ended
        pid = int(entry.parent.name)
        if wanted in variables and pid != os.getpid() and (started := start_time(pid)):
            found.append(Process(pid, started))
    return found


def stop(processes: Iterable[Process], *, patience: float = 3.0) -> None:
    """Stop processes and their groups: ask, wait up to `patience` seconds for all of them, then kill."""
    left = _signal([process for process in processes if process.alive], signal.SIGTERM)
    end = time.monotonic() + patience
    while left and time.monotonic() < end:
        time.sleep(0.05)
        _reap(left)
        left = [process for process in left if process.alive]
    for process in _signal(left, signal.SIGKILL):
        while process.alive:
            time.sleep(0.02)
            _reap([process])


def _signal(processes: list[Process], number: signal.Signals) -> list[Process]:
    for process in processes:
        if process.alive:
            with contextlib.suppress(ProcessLookupError):
                # A leader of its own group takes its children along; anything else is signalled alone.
                if os.getpgid(process.pid) == process.pid:
                    os.killpg(process.pid, number)
                else:
                    os.kill(process.pid, number)
    return processes


def _reap(processes: list[Process]) -> None:
    for process in processes:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nothing listens on now, all different.

    They lie below the range from which the system takes a port for every outgoing connection, and below the one that
    kwokctl counts down from: a port would be gone again before its process listens. They are drawn at random, so that
    two sandboxes that start at once do not draw the same ones.
    """
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            return found
        with socket.socket() as probe, contextlib.suppress(OSError):  # taken: try the next one
            probe.bind(("127.0.0.1", port))
            found.append(port)
    raise InputError(Problem("no free ports", detail=f"{count} are needed between {_PORTS[0]} and {_PORTS[-1]}"))


def excerpt(log: Path) -> str:
    """Return the beginning and the end of a log: some programs print their usage after the reason."""
    try:
        lines = [line[:300] for line in log.read_text(errors="replace").splitlines()]
    except FileNotFoundError:
        lines = []
    if len(lines) > 16:
        lines = [*lines[:3], "...", *lines[-12:]]
    return "\n".join(lines) or "(no output)"
