"""Whatever happened to a sandbox, `up` repairs it and `down` leaves nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuyard import sandbox
from gpuyard.errors import InputError
from gpuyard.manifests.ownership import INVENTORY_NAMESPACE
from gpuyard.sandbox.processes import Process, marked
from gpuyard.sandbox.relay import socket_path
from gpuyard.sandbox.state import Home
from tests.sandbox.conftest import Live

pytestmark = pytest.mark.sandbox

UP = """
import sys
from gpuyard import sandbox
from gpuyard.sources import read_lock
from gpuyard.sources.build import binaries
from infra import assemble
environment = assemble.load("sandbox")
built = assemble.build(environment)
programs = binaries(read_lock(assemble.LOCK), sandbox.BINARIES, lambda name, state: None)
say = lambda text: print(text, flush=True)
objects = [one for one in built.objects if one.component != "monitoring"]
sandbox.up(environment, objects, programs, assemble.open_sources(), progress=say, name=sys.argv[1])
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture
def broken(live: Live) -> Iterator[Live]:
    """A sandbox of its own, to be broken."""
    # Monitoring has large CRDs and nothing that could break here.
    objects = [one for one in live.objects if one.component != "monitoring"]
    other = Live(live.environment, objects, live.binaries, live.sources, [], name=f"{live.name}-broken")
    try:
        yield other
    finally:
        sandbox.down(progress=other.said.append, name=other.name)


def start_up(name: str, until: str) -> subprocess.Popen[str]:
    """Start `up` as a process of its own and return it as soon as it has said something."""
    command = [sys.executable, "-c", UP, name]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout
    for line in process.stdout:
        if until in line:
            return process
    raise AssertionError(f"up ended without saying {until}")


def end(process: subprocess.Popen[str], number: signal.Signals) -> None:
    process.send_signal(number)
    process.communicate()


def test_down_leaves_no_process_and_no_file(broken: Live) -> None:
    broken.up()
    home = Home(broken.name)
    assert len(marked(home.path)) >= 10
    assert sandbox.down(progress=broken.said.append, name=broken.name)
    assert marked(home.path) == []
    assert not home.exists
    assert not socket_path(home.path).exists()
    assert not Path("/tmp/k8s-webhook-server").exists()
    assert not sandbox.down(progress=broken.said.append, name=broken.name)


@pytest.mark.parametrize(
    ("until", "number"),
    [("control plane started", signal.SIGKILL), ("crds:", signal.SIGKILL), ("crds:", signal.SIGINT)],
)
def test_up_that_was_cut_short_is_completed_by_the_next(broken: Live, until: str, number: signal.Signals) -> None:
    end(start_up(broken.name, until), number)
    assert sandbox.status(broken.name).state == "broken"
    assert not broken.up().unchanged
    assert sandbox.status(broken.name).state == "running"


def test_down_finds_processes_whose_folder_was_deleted(broken: Live) -> None:
    end(start_up(broken.name, "control plane started"), signal.SIGKILL)
    home = Home(broken.name)
    shutil.rmtree(home.path, ignore_errors=True)  # what runs may write while it is deleted
    assert marked(home.path)
    assert sandbox.down(progress=broken.said.append, name=broken.name)
    assert marked(home.path) == []
    assert not home.exists


def test_down_after_up_was_killed_while_the_control_plane_started(broken: Live) -> None:
    command = [sys.executable, "-c", UP, broken.name]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
    home = Home(broken.name)
    while not home.exists or not marked(home.path):
        assert process.poll() is None
    process.kill()
    process.wait()
    assert sandbox.down(progress=broken.said.append, name=broken.name)
    assert marked(home.path) == []
    assert not home.exists


def kill(process: Process) -> None:
    """Kill a process and wait until the system has ended it."""
    os.kill(process.pid, signal.SIGKILL)
    end = time.monotonic() + 30
    while process.alive:
        assert time.monotonic() < end, f"process {process.pid} outlives SIGKILL"
        time.sleep(0.05)


def test_a_killed_controller_is_started_again_by_itself(broken: Live) -> None:
    broken.up()
    home = Home(broken.name)
    killed = home.read_controllers()["training-operator"].process
    kill(killed)
    end = time.monotonic() + 60
    while home.read_controllers()["training-operator"].process == killed:
        assert time.monotonic() < end, "the controller is not started again"
        time.sleep(0.1)
    broken.up()
    assert sandbox.status(broken.name).state == "running"


def test_a_killed_kubelet_is_started_again_and_finds_its_controllers(broken: Live) -> None:
    broken.up()
    home = Home(broken.name)
    state, before = home.read(), home.read_controllers()
    assert state
    kill(state.services["kubelet"].process)
    kill(before["training-operator"].process)
    found = sandbox.status(broken.name)
    assert found.state == "broken"
    assert [name for name, alive in found.processes.items() if not alive] == ["kubelet", "training-operator"]
    broken.up()
    assert broken.said[0] == "starting again what has died: kubelet, training-operator"
    assert sandbox.status(broken.name).state == "running"
    after = home.read_controllers()
    assert [name for name in after if after[name].process != before[name].process] == ["training-operator"]


def test_another_engines_sandbox_is_left_to_it(broken: Live) -> None:
    broken.up(engine="pulumi")
    assert broken.said[-1] == "2 simulated nodes are ready"
    assert not broken.api.list("v1", "ConfigMap", INVENTORY_NAMESPACE)
    assert sandbox.status(broken.name).state == "running"
    assert broken.up(engine="pulumi").unchanged
    with pytest.raises(InputError) as caught:
        broken.up()
    assert str(caught.value) == (
        "error  this sandbox belongs to another engine\n"
        "  found pulumi; this command is for apply\n"
        "  fix: go on with --engine pulumi, or start an empty sandbox: gpuyard sandbox down"
    )
    with pytest.raises(InputError, match="found pulumi; this command is for apply"):
        broken.apply(broken.objects)


def test_a_killed_control_plane_is_started_anew(broken: Live) -> None:
    broken.up()
    state = Home(broken.name).read()
    assert state
    kill(state.services["etcd"].process)
    assert sandbox.status(broken.name).state == "broken"
    broken.up()
    assert broken.said[0] == f"sandbox {broken.name} has no healthy control plane of this make; starting anew"
    assert sandbox.status(broken.name).state == "running"


def test_two_ups_at_once_make_one_sandbox(broken: Live) -> None:
    first = start_up(broken.name, "control plane started")
    assert broken.up().unchanged
    assert broken.said == [
        f"another command works on sandbox {broken.name}; waiting for it",
        f"sandbox {broken.name} is already up",
    ]
    first.communicate()
    assert first.returncode == 0
