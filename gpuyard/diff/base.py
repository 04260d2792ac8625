"""The other side of a diff: another revision or another folder, rendered by its own code in a process of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuyard.cache import cache_dir
from gpuyard.diff.state import State, from_lines
from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests import Rendered

LOCK = "requirements.lock"
MAIN = "origin/main"
_MODULE = Path("gpuyard", "cli", "state.py")


@dataclass(frozen=True)
class Base:
    """What is compared with. root: of the project there. label: as the user knows it."""

    label: str
    root: Path


def find_base(given: str | None, root: Path) -> tuple[str, str | Path]:
    """Return the label of a base, and its folder or its commit.

    Left out, it is where this branch left origin/main; without an origin/main, the last commit.
    """
    if given and Path(given).is_dir():
        return given, Path(given).resolve()
    if given:
        commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{given}^{{commit}}")
        if commit is None:
            detail = f"{given} is no folder, and no revision of the git repository of {root}"
            raise InputError(Problem("no such base", field="--base", detail=detail, fix="git fetch, or correct --base"))
        return _label(given, commit), commit
    if _git(root, "rev-parse", "--verify", "--quiet", "HEAD") is None:
        detail = f"{root} is in no git repository with a commit"
        raise InputError(Problem("nothing to compare with", field="--base", detail=detail, fix="--base DIR"))
    if _git(root, "rev-parse", "--verify", "--quiet", MAIN) is None:
        return find_base("HEAD", root)
    commit = _git(root, "merge-base", MAIN, "HEAD")
    if commit is None:
        raise InputError(
            Problem(
                "nothing to compare with",
                field="--base",
                detail=f"HEAD and {MAIN} have no commit in common, as in a clone that is not complete",
                fix="git fetch --unshallow, or --base REV",
            )
        )
    return _label(MAIN, commit), commit


@contextlib.contextmanager
def open_base(given: str | None, root: Path) -> Generator[Base]:
    """Yield the base as a folder; that of a revision is a git worktree, which is removed again, also after Ctrl-C."""
    label, where = find_base(given, root)
    if isinstance(where, Path):
        if not (where / "Pulumi.yaml").is_file():
            raise InputError(
                Problem(
                    "the base is neither a project nor a render",
                    Origin(label),
                    detail="a project has Pulumi.yaml; a render is the whole folder that `gpuyard render --out` wrote",
                    fix="give one of these folders, or a revision",
                )
            )
        yield Base(label, _project(where, label))
        return
    prefix = _git(root, "rev-parse", "--show-prefix") or ""
    with _raising_on_termination(), tempfile.TemporaryDirectory(prefix="gpuyard-diff-") as scratch:
        tree = Path(scratch, "tree")
        try:
            # Hooks of a checkout are for people.
            _must(root, "-c", "core.hooksPath=/dev/null", "worktree", "add", "--quiet", "--detach", str(tree), where)
            yield Base(label, _project(tree / prefix, label))
        finally:
            _git(root, "worktree", "remove", "--force", str(tree))
            shutil.rmtree(tree, ignore_errors=True)
            _git(root, "worktree", "prune")


def render_base(
    base: Base,
    root: Path,
    env: str,
    stacks: Path,
    *,
    allow_missing: bool,
    without: Sequence[str] = (),
    like: Iterable[Rendered] = (),
) -> State:
    """Return the state of an environment of the base; an environment that it does not have is empty.

    stacks: the folder of environments today. One inside the project is looked for at the same place in the base.
    like:   objects of today; what is equal is not read again.
    """
    folder = stacks.resolve()
    folder = base.root / folder.relative_to(root) if folder.is_relative_to(root) else folder
    if not (folder / env).is_dir():
        return State()
    shown = folder.relative_to(base.root) if folder.is_relative_to(base.root) else folder
    command = [str(_python(base, root)), "-m", "gpuyard.cli.state", env, "--stacks", str(shown)]
    command += ["--allow-missing-sources"] if allow_missing else []
    command += [part for name in without for part in ("--without", name)]
    variables = {**os.environ, "PYTHONPATH": str(base.root), "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        result = subprocess.run(
            command, cwd=base.root, env=variables, stdout=output, stderr=subprocess.PIPE, text=True, check=False
        )
        if result.returncode:
            last = "\n".join(result.stderr.strip().splitlines()[-20:])
            raise InputError(
                Problem("the base cannot be rendered", Origin(base.label), env, last, "choose a --base that renders")
            )
        output.seek(0)
        try:
            return from_lines(output, like)
        except ValueError as error:
            problem = Problem("the base cannot be read", Origin(base.label), detail=str(error), fix="a newer --base")
            raise InputError(problem) from error


def _project(folder: Path, label: str) -> Path:
    for file in (Path("Pulumi.yaml"), Path("infra", "assemble.py"), _MODULE):
        if not (folder / file).is_file():
            raise InputError(
                Problem(
                    "the base is no project that can be compared",
                    Origin(label),
                    detail=f"it has no {file}",
                    fix="choose a later revision, or another folder, with --base",
                )
            )
    return folder


def _python(base: Base, root: Path) -> Path:
    """Return the interpreter for the base: this one where its lock is the same or missing, else one made from it."""
    theirs, ours = base.root / LOCK, root / LOCK
    if not theirs.is_file() or (ours.is_file() and theirs.read_bytes() == ours.read_bytes()):
        return Path(sys.executable)
    import hashlib

    digest = hashlib.sha256(theirs.read_bytes()).hexdigest()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    made = cache_dir("python") / f"{version}-{digest}"
    if not made.is_dir():
        _make_environment(base, made)
    return made / "bin" / "python"


def _make_environment(base: Base, made: Path) -> None:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.is_file() else shutil.which("uv")
    if not uv:
        raise InputError(
            Problem(
                "the base has other Python packages",
                Origin(f"{base.label}:{LOCK}"),
                detail=f"its {LOCK} is not the one of today, so it needs packages of its own; uv installs them",
                fix="make setup, or put uv on PATH",
            )
        )
    with tempfile.TemporaryDirectory(dir=made.parent, prefix=".new-") as scratch:
        new = Path(scratch, "venv")
        for command in (
            [uv, "venv", "--quiet", "--python", sys.executable, str(new)],
            [uv, "pip", "sync", "--quiet", "--python", str(new / "bin" / "python"), "--require-hashes", LOCK],
        ):
            result = subprocess.run(command, cwd=base.root, capture_output=True, text=True, check=False)
            if result.returncode:
                raise InputError(
                    Problem(
                        "the packages of the base cannot be installed",
                        Origin(f"{base.label}:{LOCK}"),
                        detail=result.stderr.strip(),
                        fix="go where the package registry can be reached",
                    )
                )
        with contextlib.suppress(FileExistsError):
            # Another diff may have made it meanwhile.
            os.rename(new, made)


def _label(name: str, commit: str) -> str:
    return name if commit.startswith(name) else f"{name} ({commit[:7]})"


def _git(root: Path, *arguments: str) -> str | None:
    """Return what git prints, or None when it says no."""
    result = _run_git(root, *arguments)
    return None if result.returncode else result.stdout.strip()


def _must(root: Path, *arguments: str) -> None:
    result = _run_git(root, *arguments)
    if result.returncode:
        raise InputError(
            Problem("git refuses", Origin(str(root)), detail=result.stderr.strip(), fix="or compare with --base DIR")
        )


def _run_git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # A hook that runs gpuyard has told git where its repository and index are.
    variables = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        return subprocess.run(
            ["git", "-C", str(root), *arguments],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            # Ctrl-C is for us: git shall clean up when we say so.
            start_new_session=True,
        )
    except FileNotFoundError:
        raise InputError(Problem("no git", detail="git is not on PATH", fix="install git, or --base DIR")) from None


@contextlib.contextmanager
def _raising_on_termination() -> Generator[None]:
    """Turn a polite end from outside into an exception, so that what was opened is closed."""

    def stop(number: int, frame: object) -> None:
        sys.exit(128 + number)

    former = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
