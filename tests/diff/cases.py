"""Compare cases as folders: before.yaml and after.yaml, each the whole of one render, and the report in expected.txt.

A side has `objects`, and where the case needs them `pools`, `jobs`, `runs` and `ids` (an object's stable id) and
`lives` (an object's lifecycle).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from gpuyard.diff.consequences import FACTS
from gpuyard.diff.facts import Outcome, View, judge
from gpuyard.diff.state import JobState, PoolState, State
from gpuyard.manifests import RUN, Lifecycle, Manifest, Rendered, declare, identity
from gpuyard.manifests.diff import compare

CASES = Path(__file__).parent / "cases"


def case_outcomes(folder: Path) -> list[Outcome]:
    """Return what changes in a case."""
    before, after = read_state(folder / "before.yaml"), read_state(folder / "after.yaml")
    return judge(compare(before.objects, after.objects), View(before, after), FACTS)


def read_state(path: Path) -> State:
    """Return one side of a case."""
    written: dict[str, Any] = yaml.safe_load(path.read_text())
    return State(
        tuple(_rendered(manifest, written) for manifest in written["objects"]),
        tuple(_pool(name, **pool) for name, pool in written.get("pools", {}).items()),
        tuple(_job(name, **job) for name, job in written.get("jobs", {}).items()),
    )


def _rendered(manifest: Manifest, written: dict[str, Any]) -> Rendered:
    who = str(identity(manifest))
    if who in written.get("runs", {}):
        return declare(manifest, id=written["runs"][who], layer="jobs", lifecycle=RUN)
    lives = written.get("lives", {}).get(who)
    if lives is not None:
        lives = Lifecycle(**{**lives, "ignore": tuple(lives.get("ignore", ()))})
    return declare(manifest, id=written.get("ids", {}).get(who), lifecycle=lives)


def _pool(name: str, nodes: list[int], gpus: int = 0, labels: Any = None, taints: Any = ()) -> PoolState:
    own = [("nvidia.com/gpu", "", "NoSchedule")] if gpus else []
    every = {"kubernetes.io/os": "linux", "gpuyard.dev/pool": name}
    return PoolState(name, nodes[0], nodes[1], gpus, {**every, **(labels or {})}, (*own, *map(tuple, taints)))


def _job(
    name: str, team: str, pods: int, gpus: int, pools: Any = (), run: str = "", queue: str | None = None
) -> JobState:
    return JobState(name, team, run or f"{name}-000000", queue or team, pods, gpus, tuple(pools))
