"""`gpuyard diff` against a revision, which renders itself, and what is left of it afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.diff.cases import CASES
from tests.diff.project import command, commit, copy_project, diff, git, variables

CASE = CASES / "component-default"


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    copy_project(root)
    return root


@pytest.fixture
def project(copied: Path) -> Iterator[Path]:
    yield copied
    git(copied, "reset", "--quiet", "--hard")
    git(copied, "clean", "--quiet", "-d", "--force")
    assert git(copied, "worktree", "list").count("\n") == 0, "no worktree is left"


def change_default(project: Path) -> str:
    change = yaml.safe_load((CASE / "change.yaml").read_text())
    file = project / change["file"]
    text = file.read_text()
    assert text.count(change["before"]) == 1
    file.write_text(text.replace(change["before"], change["after"]))
    return change["environment"]


def test_a_changed_default_shows_although_no_stack_changed(project: Path) -> None:
    result = diff(project, change_default(project))
    label = f"HEAD ({git(project, 'rev-parse', 'HEAD')[:7]})"
    assert result.stdout.replace(label, "HEAD") == (CASE / "expected.txt").read_text()
    assert result.returncode == 1


def test_nothing_changed(project: Path) -> None:
    result = diff(project, "dev", "--base", "HEAD")
    assert (result.returncode, result.stdout.split(" against")[0]) == (0, "dev: nothing changes")


def test_the_base_is_where_the_branch_left_main(project: Path) -> None:
    main = git(project, "rev-parse", "HEAD")
    environment = change_default(project)
    commit(project)
    git(project, "update-ref", "refs/remotes/origin/main", main)
    try:
        result = diff(project, environment)
    finally:
        git(project, "update-ref", "-d", "refs/remotes/origin/main")
        git(project, "reset", "--quiet", "--hard", main)
    assert result.stdout.splitlines()[0] == f"dev: 1 object changes against origin/main ({main[:7]})"


def test_main_without_a_common_commit_is_an_error_and_not_another_base(project: Path) -> None:
    tree = git(project, "write-tree")
    other = git(project, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit-tree", "-m", "other", tree)
    git(project, "update-ref", "refs/remotes/origin/main", other)
    try:
        result = diff(project, "dev")
    finally:
        git(project, "update-ref", "-d", "refs/remotes/origin/main")
    assert result.returncode == 2
    assert "HEAD and origin/main have no commit in common" in result.stderr
    assert "fix: git fetch --unshallow, or --base REV" in result.stderr


def test_another_folder_as_base(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(project, other, ignore=shutil.ignore_patterns(".git"))
    environment = change_default(project)
    result = diff(project, environment, "--base", str(other))
    assert result.stdout.splitlines()[0] == f"dev: 1 object changes against {other}"


def test_an_environment_that_the_base_does_not_have_is_all_new(project: Path) -> None:
    shutil.copytree(project / "stacks" / "dev", project / "stacks" / "fresh")
    report = json.loads(diff(project, "fresh", "--format", "json").stdout)
    assert {change["verb"] for change in report["changes"]} == {"added"}
    assert report["summary"]["added"] == report["summary"]["changes"] > 5


def test_a_revision_that_does_not_exist(project: Path) -> None:
    result = diff(project, "dev", "--base", "--output=/tmp/x")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error  no such base\n  --base\n  --output=/tmp/x is no folder, and no revision")


def test_a_revision_that_cannot_tell_its_state(project: Path) -> None:
    (project / "gpuyard" / "cli" / "state.py").unlink()
    git(project, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "-am", "older")
    older = git(project, "rev-parse", "HEAD")
    git(project, "reset", "--quiet", "--hard", "HEAD^")
    result = diff(project, "dev", "--base", older)
    assert result.returncode == 2
    assert "it has no gpuyard/cli/state.py" in result.stderr


def test_a_base_that_does_not_render_is_told_in_its_own_words(project: Path) -> None:
    file = project / "stacks" / "dev" / "environment.yaml"
    good = file.read_text()
    file.write_text(f"clutser: {{}}\n{good}")
    commit(project)
    file.write_text(good)
    result = diff(project, "dev")
    git(project, "reset", "--quiet", "--hard", "HEAD^")
    assert result.returncode == 2
    assert "error  the base cannot be rendered" in result.stderr
    assert "did you mean cluster?" in result.stderr


def test_other_packages_without_uv(project: Path, tmp_path: Path) -> None:
    lock = project / "requirements.lock"
    lock.write_text(lock.read_text() + "\n# another one\n")
    (tmp_path / "git").symlink_to(str(shutil.which("git")))
    # An interpreter with nothing beside it, and a PATH without uv.
    script = "import sys; sys.executable = '/nowhere/python'; from gpuyard.cli import main; main()"
    python, option, _, *arguments = command("diff", "dev", "--allow-missing-sources")
    result = subprocess.run(
        [python, option, script, *arguments],
        cwd=project,
        env=variables(project, PATH=str(tmp_path), GPUYARD_CACHE=str(tmp_path / "cache")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert "error  the base has other Python packages" in result.stderr
    assert "fix: make setup, or put uv on PATH" in result.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_diff_leaves_nothing(project: Path, tmp_path: Path, number: int, code: int) -> None:
    # The base waits while it renders, so that it is there when the signal comes.
    waits = project / "gpuyard" / "cli" / "state.py"
    good = waits.read_text()
    mark = tmp_path / "there"
    waits.write_text(f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\ntime.sleep(60)\n")
    commit(project)
    waits.write_text(good)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    running = subprocess.Popen(
        command("diff", "dev", "--allow-missing-sources"),
        cwd=project,
        env=variables(project, TMPDIR=str(scratch)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        while not mark.exists():
            assert running.poll() is None
            time.sleep(0.05)
        os.killpg(running.pid, number)
        output, _ = running.communicate()
    finally:
        git(project, "reset", "--quiet", "--hard", "HEAD^")
    assert (running.returncode, output) == (code, b"")
    assert list(scratch.iterdir()) == []
