"""What is different between two renders: objects paired by what they are, lists by their merge keys.

Two values are equal when Python's `==` says so: order of keys does not count, and 1 is 1.0, as it is in Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from gpuyard.manifests.credentials import hide, hide_data, hide_variable
from gpuyard.manifests.data import at, below, is_list, is_map
from gpuyard.manifests.immutable import Refusal, Unknown, is_immutable
from gpuyard.manifests.merge_keys import item_keys
from gpuyard.manifests.rendered import Identity, Rendered

if TYPE_CHECKING:
    from gpuyard.manifests.schemas.transitions import Transitions

Verb = Literal["added", "removed", "changed", "replaced"]


class Missing:
    """The value of a field that is not there; null is a value."""

    def __repr__(self) -> str:
        return "(missing)"


MISSING: Final = Missing()


class Item(str):
    """A step of a path into a list with merge keys: the key of the item."""

    __slots__ = ()


Step = str | int
Path = tuple[Step, ...]


class FieldChange(NamedTuple):
    """One field with two values; `MISSING` on the side where it is not there.

    reordered: the items are the same, and `before` and `after` are their keys in order.
    ignored:   a controller writes this field after us, so that a deploy leaves it alone.
    """

    path: Path
    before: Any
    after: Any
    reordered: bool = False
    ignored: bool = False

    def __str__(self) -> str:
        return path_text(self.path)


def path_text(path: Path) -> str:
    """Return a path as a person writes it: `spec.containers[train].env[NCCL_DEBUG].value`."""
    text = ""
    for step in path:
        text = f"{text}[{step}]" if isinstance(step, Item) else below(text, step)
    return text


@dataclass(frozen=True, slots=True)
class Change:
    """One object that is not the same in both renders.

    verb:   `replaced` when the API server never makes this change.
    before: None for what is added.
    after:  None for what is removed.
    refused: what the rules of its CRD say against a change of the object; such a change is `replaced`, too.
    unknown: rules of its CRD that may be against it and cannot be run.
    former: of an added run, the run of the same job that stays beside it; `fields` is what differs between the two.
    fields: values are safe to show: credentials are `Hidden`.
    """

    verb: Verb
    before: Rendered | None
    after: Rendered | None
    fields: tuple[FieldChange, ...] = ()
    former: Rendered | None = None
    refused: tuple[Refusal, ...] = ()
    unknown: tuple[Unknown, ...] = ()

    @property
    def rendered(self) -> Rendered:
        """The object, as it will be if it stays."""
        found = self.after or self.before
        assert found
        return found

    @property
    def identity(self) -> Identity:
        return self.rendered.identity

    @property
    def immutable(self) -> tuple[FieldChange, ...]:
        """The fields for which the object has to be replaced."""
        if self.verb != "replaced" or self.before is None:
            return ()
        return tuple(one for one in self.fields if _forces(self.before, one))

    def touched(self, *path: str) -> tuple[FieldChange, ...]:
        """Return the fields at or below a path that a deploy really changes, or of which the path is a part."""
        return tuple(
            one for one in self.fields if not one.ignored and all(a == b for a, b in zip(one.path, path, strict=False))
        )


def compare(before: Sequence[Rendered], after: Sequence[Rendered]) -> list[Change]:
    """Return what changes from one render to another, in the order of `after`, then what is gone.

    Objects are the same when the API server calls them the same. Of the rest, those of one kind with one stable id
    belong together: two runs of one job, or two versions of a one-shot Job.
    """
    rules = _Rules(after)
    gone = {one.identity: one for one in before}
    fresh: list[Rendered] = []
    found: list[Change] = []
    places: dict[int, int] = {}
    for place, one in enumerate(after):
        places[id(one)] = place
        former = gone.pop(one.identity, None)
        if former is None:
            fresh.append(one)
        elif former is not one and (former.manifest != one.manifest or former.lifecycle != one.lifecycle):
            found.append(rules.applied(_changed(former, one)))
    by_id: dict[tuple[str, str, str], list[Rendered]] = {}
    for one in gone.values():
        by_id.setdefault(_stable(one), []).append(one)
    for one in fresh:
        twins = by_id.get(_stable(one))
        former = twins.pop(0) if twins else None
        if former is None:
            found.append(Change("added", None, one))
            continue
        del gone[former.identity]
        fields = _fields(former, one)
        if one.lifecycle.replace == "never":
            found.append(Change("added", None, one, fields, former))
        else:
            found.append(Change("replaced", former, one, fields))
    found.sort(key=lambda change: places[id(change.after)])
    return [*found, *(Change("removed", one, None) for one in gone.values())]


class _Rules:
    """What CRDs of a render say about changes; asked only where an object of theirs changes."""

    def __init__(self, objects: Sequence[Rendered]) -> None:
        self._crds = [one.manifest for one in objects if one.manifest["kind"] == "CustomResourceDefinition"]

    @cached_property
    def _kinds(self) -> set[tuple[Any, Any]]:
        return {(at(crd, "spec", "group"), at(crd, "spec", "names", "kind")) for crd in self._crds}

    @cached_property
    def _transitions(self) -> Transitions:
        from gpuyard.manifests.schemas.transitions import Transitions  # with the schemas, which most diffs do without

        return Transitions(self._crds)

    def applied(self, change: Change) -> Change:
        """Return a change of an object with what the rules say about it. What no deploy writes is not judged."""
        before, after = change.before, change.after
        paths = [one.path for one in change.fields if not one.ignored and one.path[0] not in ("lifecycle", "metadata")]
        if not (before and after and paths) or change.identity[:2] not in self._kinds:
            return change
        said = [
            one
            for one in self._transitions.judge(before.manifest, after.manifest)
            if any(_meet(one.steps, path) for path in paths)
        ]
        refused = tuple(one for one in said if isinstance(one, Refusal))
        unknown = tuple(one for one in said if isinstance(one, Unknown))
        return replace(change, verb="replaced" if refused else change.verb, refused=refused, unknown=unknown)


def _meet(steps: Path, path: Path) -> bool:
    """Return whether one of two paths lies at or below the other. Items of lists are not told apart."""
    for one, other in zip(steps, path, strict=False):
        if isinstance(one, int) or isinstance(other, (int, Item)):
            return True
        if one != other:
            return False
    return True


def _stable(rendered: Rendered) -> tuple[str, str, str]:
    who = rendered.identity
    return who.group, who.kind, rendered.id


def _changed(before: Rendered, after: Rendered) -> Change:
    fields = _fields(before, after)
    return Change("replaced" if any(_forces(before, one) for one in fields) else "changed", before, after, fields)


def _forces(before: Rendered, change: FieldChange) -> bool:
    return not change.ignored and (change.path == ("metadata", "name") or is_immutable(before.manifest, change.path))


def _fields(before: Rendered, after: Rendered) -> tuple[FieldChange, ...]:
    ignored = [_pattern(path) for path in after.lifecycle.ignore]
    found = [
        change._replace(ignored=True) if any(one.match(path_text(change.path)) for one in ignored) else change
        for change in compare_manifests(before.manifest, after.manifest)
    ]
    lives = before.lifecycle, after.lifecycle
    for name in ("protect", "retain"):
        values = [getattr(one, name) for one in lives]
        if values[0] != values[1]:
            found.append(FieldChange(("lifecycle", name), *values))
    return tuple(found)


def _pattern(path: str) -> re.Pattern[str]:
    """Return what matches a property path of `Lifecycle.ignore`, such as `webhooks[*].clientConfig.caBundle`."""
    return re.compile(re.escape(path).replace(r"\[\*\]", r"\[[^\]]*\]") + r"(?![^.\[])")


def compare_manifests(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldChange]:
    """Yield the fields in which two manifests differ, in the order in which a person finds them in the newer one.

    The values are safe to show: credentials are `Hidden`.
    """
    yield from _maps((), hide_data(before), hide_data(after))


def _values(path: Path, before: Any, after: Any) -> Iterator[FieldChange]:
    if before == after:
        return
    if is_map(before) and is_map(after):
        yield from _maps(path, before, after)
    elif is_list(before) and is_list(after) and before and after:
        yield from _lists(path, before, after)
    else:
        yield FieldChange(path, hide(before), hide(after))


def _maps(path: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldChange]:
    if "value" in before or "value" in after:
        before, after = hide_variable(before), hide_variable(after)
    for key, value in after.items():
        yield from _values((*path, key), before.get(key, MISSING), value)
    for key, value in before.items():
        if key not in after:
            yield FieldChange((*path, key), hide(value), MISSING)


def _lists(path: Path, before: Sequence[Any], after: Sequence[Any]) -> Iterator[FieldChange]:
    field = str(path[-1]) if path else ""
    keys = item_keys(field, before, after)
    if keys is None:
        yield from _by_position(path, before, after)
        return
    left, right = dict(zip(keys[0], before, strict=True)), dict(zip(keys[1], after, strict=True))
    for key, value in right.items():
        yield from _values((*path, Item(key)), left.get(key, MISSING), value)
    for key, value in left.items():
        if key not in right:
            yield FieldChange((*path, Item(key)), hide(value), MISSING)
    order = [key for key in left if key in right], [key for key in right if key in left]
    if order[0] != order[1]:
        yield FieldChange(path, *order, reordered=True)


def _by_position(path: Path, before: Sequence[Any], after: Sequence[Any]) -> Iterator[FieldChange]:
    """Compare what lies between the equal items at both ends, so that one item more does not move all the others."""
    start, ends = 0, min(len(before), len(after))
    while start < ends and before[start] == after[start]:
        start += 1
    tail = 0
    while tail < ends - start and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    left, right = before[start : len(before) - tail], after[start : len(after) - tail]
    for index in range(max(len(left), len(right))):
        one = left[index] if index < len(left) else MISSING
        other = right[index] if index < len(right) else MISSING
        yield from _values((*path, start + index), one, other)
