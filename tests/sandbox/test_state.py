"""The folder of a sandbox: its state, its lock, and that nothing of it stays."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from gpuyard.sandbox.processes import Process
from gpuyard.sandbox.state import Home, Service, State


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("GPUYARD_CACHE", str(tmp_path))
    return Home("one")


def silent(text: str) -> None:
    pass


def test_looking_makes_no_folder(home: Home, tmp_path: Path) -> None:
    assert not home.exists
    assert home.read() is None
    assert list(tmp_path.iterdir()) == []


def test_the_state_is_read_as_it_was_written(home: Home) -> None:
    state = State(
        True, "apply", "sandbox", "c1", services={"etcd": Service(Process(7, "123"), "/log", "d", True, {"health": 1})}
    )
    home.write(state)
    assert home.read() == state


def test_controllers_are_a_state_of_their_own(home: Home) -> None:
    home.write(State(engine="pulumi"))
    assert home.read_controllers() == {}
    controllers = {"operator": Service(Process(7, "123"), "/log", "d", True, {"health": 1}, [["a", "b", "c", "d"]])}
    home.write_controllers(controllers)
    assert home.read_controllers() == controllers
    assert home.read() == State(engine="pulumi")


def test_the_last_beat_is_the_one_noted(home: Home) -> None:
    home.folder()
    assert home.last_beat() == 0
    home.beat(1234.5)
    assert home.last_beat() == 1234.5


def test_two_commands_take_turns(home: Home) -> None:
    said: list[str] = []
    order: list[str] = []
    waits = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        waits.set()

    def second() -> None:
        with home.locked(say):
            order.append("second")

    thread = threading.Thread(target=second)
    with home.locked(silent):
        thread.start()
        assert waits.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert said == ["another command works on sandbox one; waiting for it"]


def test_a_lock_on_a_folder_that_was_deleted_is_taken_anew(home: Home) -> None:
    waits, entered = threading.Event(), threading.Event()

    def second() -> None:
        with home.locked(lambda _: waits.set()):
            assert home.exists
            entered.set()

    thread = threading.Thread(target=second)
    with home.locked(silent):
        thread.start()
        assert waits.wait(10)
        home.wipe()
    thread.join(10)
    assert entered.is_set()


def test_wiping_leaves_nothing(home: Home, tmp_path: Path) -> None:
    with home.locked(silent):
        home.write(State())
        (home.folder("logs") / "etcd.log").write_text("x")
        home.wipe()
    assert list(tmp_path.iterdir()) == []


def test_wiping_leaves_other_sandboxes(home: Home, tmp_path: Path) -> None:
    other = Home("other")
    other.write(State())
    with home.locked(silent):
        home.wipe()
    assert other.exists
