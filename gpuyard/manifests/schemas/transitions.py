"""Rules of a CRD about a change: those that name `oldSelf`, such as "this field is immutable".

Source: the Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions", transition rules. A
value is compared with the one under the same field, key of a map, or keys of a list's item; what has no such
counterpart is compared with nothing, and no rule is run but those with `optionalOldSelf`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpuyard.manifests.credentials import hide
from gpuyard.manifests.immutable import Refusal, Unknown
from gpuyard.manifests.rendered import Manifest
from gpuyard.manifests.schemas.builtin import OBJECT_META
from gpuyard.manifests.schemas.cel import Engine, Failure, compares_states, identifier, one_line, prepared, run_rule
from gpuyard.manifests.schemas.custom import strict_schema, versions
from gpuyard.manifests.schemas.places import Place, Tree, place, place_tree, shape
from gpuyard.manifests.schemas.shapes import Steps, as_map, is_list, is_map


class _Nothing:
    """The value before of what has no counterpart there; null is a value."""


_NOTHING = _Nothing()


class Transitions:
    """The rules about changes of the kinds that CRDs define; those of a kind are read when an object first changes."""

    def __init__(self, crds: Iterable[Manifest]) -> None:
        self._engine = Engine()
        self._schemas = {
            (api_version, kind): open_api
            for api_version, kind, version in versions(crds)
            if (open_api := as_map(version.get("schema")).get("openAPIV3Schema"))
        }
        self._kinds: dict[tuple[str, str], tuple[Place, Tree] | None] = {}

    def judge(self, before: Manifest, after: Manifest) -> Iterator[Refusal | Unknown]:
        """Yield what the rules say of a change of one object, in the order of the CRD."""
        if known := self._kind(after["apiVersion"], after["kind"]):
            top, of = known
            yield from self._visit(top, prepared(before, of), prepared(after, of), ())

    def _kind(self, api_version: str, kind: str) -> tuple[Place, Tree] | None:
        """Return the places and the shape of a kind's objects; None for a kind without rules about changes."""
        key = (api_version, kind)
        if key not in self._kinds:
            self._kinds[key] = None
            if key in self._schemas:
                # No rule is about the metadata that every object has.
                metadata: Tree = {OBJECT_META: {}}
                schema = strict_schema(self._schemas[key]) | {"$defs": metadata}
                top = place(place_tree(schema, custom=True))
                if _has_rules(top):
                    self._kinds[key] = top, shape(schema)
        return self._kinds[key]

    def _visit(self, place: Place, before: Any, after: Any, steps: Steps) -> Iterator[Refusal | Unknown]:
        """Judge a value and what is below it, both as rules see them."""
        if after is None:
            return
        for rule in place.rules:
            if compares_states(rule):
                yield from self._rule(rule, before, after, steps)
        if is_map(after):
            old: dict[str, Any] = before if is_map(before) else {}
            for name, child in place.fields.items():
                if (seen := identifier(name)) in after:
                    yield from self._visit(child, old.get(seen, _NOTHING), after[seen], (*steps, name))
            if place.values:
                for name, value in after.items():
                    yield from self._visit(place.values, old.get(name, _NOTHING), value, (*steps, name))
        elif place.items and is_list(after):
            twins = {_keys(item, place): item for item in before} if is_list(before) and place.keys else {}
            for index, value in enumerate(after):
                twin = twins.get(_keys(value, place), _NOTHING)
                yield from self._visit(place.items, twin, value, (*steps, index))

    def _rule(self, rule: Mapping[str, Any], before: Any, after: Any, steps: Steps) -> Iterator[Refusal | Unknown]:
        is_new = before is _NOTHING or before is None
        within = "{}"
        if rule.get("optionalOldSelf"):
            # There `oldSelf` is an optional value.
            within = f"cel.bind(oldSelf, {'optional.none()' if is_new else 'optional.of(oldSelf)'}, {{}})"
        elif is_new:
            return
        data = {"self": after} if is_new else {"self": after, "oldSelf": before}
        found = run_rule(self._engine, rule, data, after, within)
        if isinstance(found, Failure):
            yield Unknown(steps, one_line(rule["rule"]), found.reason)
        elif found:
            yield Refusal((*steps, *found.steps), str(hide(one_line(found.message))))


def _has_rules(place: Place) -> bool:
    inner = [*place.fields.values(), *(one for one in (place.items, place.values) if one)]
    return any(map(compares_states, place.rules)) or any(map(_has_rules, inner))


def _keys(item: Any, of: Place) -> tuple[str, ...]:
    """Return what tells the items of a list apart."""
    return tuple(str(item.get(identifier(key), default)) for key, default in of.keys) if is_map(item) else ()
