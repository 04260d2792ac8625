"""What a fact is: how one kind of change works out in a cluster, with the place where that can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from gpuyard.diff.state import JobState, PoolState, State
from gpuyard.errors import listed
from gpuyard.manifests.diff import Change

Risk = Literal["high", "medium", "low", "none"]

RISKS: tuple[Risk, ...] = ("high", "medium", "low", "none")
"""high: running work or data is lost, or somebody may do more than before. medium: something restarts, waits or is
refused. low: worth knowing. none: nothing follows beyond the change itself."""


class Told(NamedTuple):
    """One consequence of one change, as a fact tells it."""

    risk: Risk
    text: str


class Consequence(NamedTuple):
    """One consequence with the fact that it comes from."""

    risk: Risk
    text: str
    fact: str
    source: str


@dataclass(frozen=True)
class View:
    """Both renders, as far as a fact has to look beyond the object that changes."""

    before: State
    after: State

    @cached_property
    def new_namespaces(self) -> frozenset[str]:
        """Namespaces that come with this change: nothing runs there that could be disturbed."""
        old = {manifest["metadata"]["name"] for manifest in self.before.by_kind.get("Namespace", ())}
        new = {manifest["metadata"]["name"] for manifest in self.after.by_kind.get("Namespace", ())}
        return frozenset(new - old)

    @cached_property
    def lost_namespaces(self) -> frozenset[str]:
        """Namespaces that are deleted by this change, with everything in them."""
        return frozenset(
            one.identity.name
            for one in self.before.objects
            if one.manifest["kind"] == "Namespace"
            and not (one.lifecycle.protect or one.lifecycle.retain)
            and one.identity not in self.after.by_identity
        )


@dataclass(frozen=True)
class Fact:
    """How a change of one of the `kinds` works out; no kinds are all of them.

    source: where that can be read; empty where it follows from what gpuyard itself does.
    """

    id: str
    kinds: frozenset[str]
    source: str
    tell: Callable[[Change, View], Iterable[Told]]


class Outcome(NamedTuple):
    """A change and what follows from it."""

    change: Change
    consequences: tuple[Consequence, ...]

    @property
    def risk(self) -> Risk:
        """The worst of the consequences."""
        told: set[Risk] = {one.risk for one in self.consequences}
        worst: list[Risk] = [risk for risk in RISKS if risk in told]
        return worst[0] if worst else "none"


def judge(changes: Iterable[Change], view: View, facts: Iterable[Fact]) -> list[Outcome]:
    """Return the changes with their consequences, biggest risk first, else in the order of the render."""
    by_kind: dict[str, list[Fact]] = {}
    everywhere: list[Fact] = []
    for fact in facts:
        for kind in fact.kinds:
            by_kind.setdefault(kind, []).append(fact)
        if not fact.kinds:
            everywhere.append(fact)
    outcomes = [
        Outcome(
            change,
            tuple(
                Consequence(*told, fact.id, fact.source)
                for fact in (*everywhere, *by_kind.get(change.identity.kind, ()))
                for told in fact.tell(change, view)
            ),
        )
        for change in changes
    ]
    return sorted(outcomes, key=lambda outcome: RISKS.index(outcome.risk))


def count(number: int, noun: str) -> str:
    """Return `1 pod` or `3 pods`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def jobs_there(jobs: list[JobState]) -> str:
    """Return `2 declared jobs hold 96 GPUs there: resnet50 4 x 8 = 32, vit 8 x 8 = 64`."""
    if not jobs:
        return "no declared job runs there"
    total = count(sum(job.total for job in jobs), "GPU")
    verb = "holds" if len(jobs) == 1 else "hold"
    return f"{count(len(jobs), 'declared job')} {verb} {total} there: {listed(job.product for job in jobs)}"


def nodes_text(pools: Iterable[PoolState]) -> str:
    """Return `24 nodes of pools h100, a100`, or `16 to 32 nodes of pool h100` where the number moves."""
    known = list(pools)
    low, high = sum(pool.nodes_min for pool in known), sum(pool.nodes_max for pool in known)
    number = f"{low} to {high}" if low != high else str(high)
    names = ", ".join(pool.name for pool in known)
    return f"{number} node{'' if high == 1 else 's'} of pool{'' if len(known) == 1 else 's'} {names}"
