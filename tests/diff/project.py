"""A copy of this project in a git repository of its own, and `gpuyard` run in it by the copy's own code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cli.run import ROOT

_PARTS = ("gpuyard", "components", "infra", "policies", "stacks")
_FILES = ("Pulumi.yaml", "gpuyard.lock.yaml", "requirements.lock")
_WITHOUT_USER = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def copy_project(root: Path) -> None:
    """Copy what a render needs, and commit it."""
    for part in _PARTS:
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in _FILES:
        shutil.copy(ROOT / file, root / file)
    git(root, "init", "--quiet", "--initial-branch=main")
    commit(root)


def commit(root: Path) -> str:
    """Commit everything and return the first seven digits of the commit."""
    git(root, "add", "--all")
    git(root, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message=all")
    return git(root, "rev-parse", "HEAD")[:7]


def git(root: Path, *arguments: str) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | _WITHOUT_USER
    done = subprocess.run(["git", *arguments], cwd=root, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from gpuyard.cli import main; main()", *arguments]


def variables(root: Path, **more: str) -> dict[str, str]:
    """Return the environment variables with which the copy's own code runs."""
    return {**os.environ, **_WITHOUT_USER, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", **more}


def diff(root: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `gpuyard diff` in the copy."""
    return subprocess.run(
        command("diff", *arguments, "--allow-missing-sources"),
        cwd=root,
        env=variables(root, **more),
        capture_output=True,
        text=True,
        check=False,
    )
