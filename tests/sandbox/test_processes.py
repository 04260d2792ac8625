"""Processes that outlive a command are recognized by id and start time, found by their marker, and stopped."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpuyard.sandbox.processes import MARKER, Process, excerpt, free_ports, marked, start, start_time, stop

pytestmark = pytest.mark.sandbox

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
]


def run(folder: Path, command: list[str] = SLEEP) -> Process:
    log = folder / "log"
    process = start(command, folder=folder, environment={MARKER: str(folder)}, log=log)
    while "up" not in log.read_text():
        assert process.alive
    return process


def test_a_process_is_stopped(tmp_path: Path) -> None:
    process = run(tmp_path)
    assert marked(tmp_path) == [process]
    stop([process])
    assert not process.alive
    assert marked(tmp_path) == []


def test_one_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    process = run(tmp_path, STUBBORN)
    stop([process], patience=0.2)
    assert not process.alive


def test_its_children_are_stopped_with_it(tmp_path: Path) -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP[2]!r}])"
    process = run(tmp_path, [sys.executable, "-c", child])
    assert len(marked(tmp_path)) == 2
    stop([process])
    assert marked(tmp_path) == []


def test_another_program_with_the_same_id_is_left_alone(tmp_path: Path) -> None:
    process = run(tmp_path)
    recorded_before = Process(process.pid, "0")
    assert not recorded_before.alive
    stop([recorded_before])
    assert process.alive
    stop([process])


def test_another_sandboxs_process_is_not_ours(tmp_path: Path) -> None:
    process = run(tmp_path)
    assert marked(tmp_path / "other") == []
    stop([process])


def test_a_process_that_does_not_exist_has_no_start_time() -> None:
    assert start_time(2**22 + 1) == ""


def test_free_ports_differ() -> None:
    assert len(set(free_ports(20))) == 20


def test_a_log_is_shown_in_part(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert excerpt(log) == "(no output)"
    log.write_text("the reason\n" + "\n".join(str(number) for number in range(100)))
    shown = excerpt(log).splitlines()
    assert (shown[:4], shown[-1], len(shown)) == (["the reason", "0", "1", "..."], "99", 16)
