"""Is an object what the API server accepts? Schemas of built-in and custom kinds, and what schemas do not say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuyard.cache import cache_dir, write_atomically
from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests.rendered import Manifest
from gpuyard.manifests.schemas.builtin import BuiltinSchemas, Schema
from gpuyard.manifests.schemas.cel import Engine, Unrun, check_rules, compares_states, unrun_rules
from gpuyard.manifests.schemas.custom import CustomSchemas, digest
from gpuyard.manifests.schemas.places import Place, place
from gpuyard.manifests.schemas.semantics import Good, Rules, check_semantics
from gpuyard.manifests.schemas.shapes import Found
from gpuyard.manifests.schemas.violations import Violation, violations

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

__all__ = ["Schemas", "Unrun", "Violation"]

_FEW = 100
"""Of more objects of one kind, the schema's preparation is a small part of the check."""

_MANY_PARTS = 5000
"""To remember more parts of objects takes memory and finds little."""


class _Ready(NamedTuple):
    schema: Schema
    validator: Draft202012Validator
    place: Place
    rules: Rules


class Schemas:
    """The kinds of one cluster: those of its Kubernetes version ("1.34"), and those of its CRDs.

    origin: where the version was written.
    Raises InputError for a version without schemas. Schemas are read and compiled when a kind is first checked.
    """

    def __init__(self, kubernetes: str, crds: Iterable[Manifest], *, origin: Origin | None = None) -> None:
        self._builtin = BuiltinSchemas(kubernetes, origin)
        self._custom = CustomSchemas(crds, self._builtin)
        self._ready: dict[tuple[str, str], _Ready | None] = {}
        self._engine = Engine()
        self._unrun: dict[tuple[str, str], str] = {}

    def check(self, manifest: Manifest, good: Good | None = None) -> list[Violation]:
        """Return what the API server would refuse or drop, ordered by path; of an unknown kind, what needs no schema.

        good: see `check_semantics`.
        Raises InputError when a CRD's schema cannot be compiled.
        """
        ready = self._made_ready(manifest["apiVersion"], manifest["kind"])
        if ready is None:
            return _ordered(check_semantics(manifest, None, _no_rules))
        if ready.validator.is_valid(manifest):
            return _ordered(check_semantics(manifest, ready.place, ready.rules, good))
        found = violations(ready.schema, ready.validator.iter_errors(manifest))
        # As in the API server, rules are for objects that their schema accepts.
        more = check_semantics(manifest, ready.place, _no_rules)
        known = {violation.path for violation in found}
        malformed = {violation.path for violation in more if violation.malformed}
        found = [one._replace(malformed=True) if one.path in malformed else one for one in found]
        return _ordered([*found, *(violation for violation in more if violation.path not in known)])

    def check_all(self, manifests: Sequence[Manifest]) -> list[list[Violation]]:
        """Return what `check` finds in each object. What was good the last time is not checked again.

        Most objects of a platform stay as they are from one check to the next, and to make their schemas ready takes
        longer than to check them: a file in the cache says that these very objects of a kind were good.
        """
        found: list[list[Violation]] = [[] for _ in manifests]
        groups: dict[tuple[str, str], list[int]] = {}
        for index, manifest in enumerate(manifests):
            groups.setdefault((manifest["apiVersion"], manifest["kind"]), []).append(index)
        for (api_version, kind), indexes in groups.items():
            good = self._good(f"{api_version}/{kind}", [manifests[index] for index in indexes])
            if good and good.exists():
                continue
            before = len(self._unrun)
            parts: Good = {}
            for index in indexes:
                found[index] = self.check(manifests[index], parts)
                if len(parts) > _MANY_PARTS:
                    parts.clear()
            if good and len(self._unrun) == before and not any(found[index] for index in indexes):
                write_atomically(good, b"")
        return found

    def unknown_kinds(self, manifests: Iterable[Manifest]) -> list[tuple[str, str]]:
        """Return (apiVersion, kind) of the objects for which there is no schema, sorted, each once."""
        kinds = {(manifest["apiVersion"], manifest["kind"]) for manifest in manifests}
        return sorted(
            (api_version, kind)
            for api_version, kind in kinds
            if f"{api_version}/{kind}" not in self._builtin.kinds and f"{api_version}/{kind}" not in self._custom
        )

    def unrun_rules(self) -> list[Unrun]:
        """Return the rules of all CRDs that are never run: which compare two states, or are beyond the engine."""
        kinds = ((name, self._custom.kind(name)) for name in sorted(self._custom))
        return [unrun for name, kind in kinds if kind for unrun in unrun_rules(self._engine, name, kind.places)]

    def without_verdict(self) -> list[tuple[str, str, str]]:
        """Return (apiVersion/Kind, rule, reason) of the rules that the checks so far needed and could not run."""
        return [(kind, rule, reason) for (kind, rule), reason in sorted(self._unrun.items())]

    def _good(self, kind: str, manifests: list[Manifest]) -> Path | None:
        """Return the file that stands in the cache when these objects of a kind are good; None for many objects."""
        if len(manifests) > _FEW:
            return None
        return self._verdicts / digest([self._custom.digest(kind), *manifests])

    @cached_property
    def _verdicts(self) -> Path:
        # Another state of this code may find more.
        files = [file for folder in Path(__file__).parents[:2] for file in folder.glob("*.py")]
        code = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        return cache_dir("schemas", f"good-{self._builtin.key}", digest(sorted(code)))

    def _made_ready(self, api_version: str, kind: str) -> _Ready | None:
        key = (api_version, kind)
        if key not in self._ready:
            name = f"{api_version}/{kind}"
            known = self._builtin.kind(api_version, kind) or self._custom.kind(name)
            self._ready[key] = known and _Ready(
                known.schema, _compiled(known.schema, f"{api_version} {kind}"), place(known.places), self._rules(name)
            )
        return self._ready[key]

    def _rules(self, kind: str) -> Rules:
        def check(place: Place, value: Any) -> Iterable[Found]:
            # Most objects of a platform meet no other rule than that some field never changes.
            return () if all(map(compares_states, place.rules)) else run(place, value)

        def run(place: Place, value: Any) -> Iterable[Found]:
            unrun: dict[str, str] = {}
            yield from check_rules(self._engine, place, value, unrun)
            self._unrun.update({(kind, rule): reason for rule, reason in unrun.items()})

        return check


def _no_rules(place: Place, value: Any) -> Iterable[Found]:
    return ()


def _ordered(found: list[Violation]) -> list[Violation]:
    """Return violations by path, each place and message once."""
    if len(found) < 2:
        return found
    once = {(violation.path, violation.message): violation for violation in found}
    return [once[key] for key in sorted(once)]


def _compiled(schema: Schema, kind: str) -> Draft202012Validator:
    # Imported late: it costs as much as the rest of a check, and rendering needs none of it.
    import jsonschema_rs

    try:
        return jsonschema_rs.Draft202012Validator(schema)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise InputError(
            Problem("schema cannot be compiled", detail=f"{kind}: {error}", fix="correct the CRD of this kind")
        ) from error
