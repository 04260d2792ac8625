"""Is an object what the API server accepts? Schemas of built-in and custom kinds, and what schemas do not say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpuyard.errors import InputError, Problem
from gpuyard.manifests.builtin_schemas import BuiltinSchemas, Schema
from gpuyard.manifests.crd_schemas import CustomSchemas
from gpuyard.manifests.rendered import Manifest
from gpuyard.manifests.semantics import check_semantics
from gpuyard.manifests.violations import Violation, violations

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

__all__ = ["Schemas", "Violation"]


class Schemas:
    """The kinds of one cluster: those of its Kubernetes version ("1.34"), and those of its CRDs.

    Raises InputError for a version without schemas. Schemas are read and compiled when a kind is first checked.
    """

    def __init__(self, kubernetes: str, crds: Iterable[Manifest]) -> None:
        self._builtin = BuiltinSchemas(kubernetes)
        self._custom = CustomSchemas(crds, self._builtin)
        self._compiled: dict[tuple[str, str], tuple[Schema, Draft202012Validator] | None] = {}

    def check(self, manifest: Manifest) -> list[Violation]:
        """Return what the API server would refuse or drop, ordered by path; of an unknown kind, what needs no schema.

        Raises InputError when a CRD's schema cannot be compiled.
        """
        compiled = self._compile(manifest["apiVersion"], manifest["kind"])
        found: list[Violation] = []
        if compiled and not compiled[1].is_valid(manifest):
            found = violations(compiled[0], compiled[1].iter_errors(manifest))
        known = {violation.path for violation in found}
        found += [violation for violation in check_semantics(manifest) if violation.path not in known]
        return sorted(found, key=lambda violation: (violation.path, violation.message))

    def unknown_kinds(self, manifests: Iterable[Manifest]) -> list[tuple[str, str]]:
        """Return (apiVersion, kind) of the objects for which there is no schema, sorted, each once."""
        kinds = {(manifest["apiVersion"], manifest["kind"]) for manifest in manifests}
        return sorted(
            (api_version, kind)
            for api_version, kind in kinds
            if f"{api_version}/{kind}" not in self._builtin.kinds and f"{api_version}/{kind}" not in self._custom
        )

    def _compile(self, api_version: str, kind: str) -> tuple[Schema, Draft202012Validator] | None:
        if (api_version, kind) not in self._compiled:
            schema = self._builtin.schema(api_version, kind) or self._custom.schema(f"{api_version}/{kind}")
            self._compiled[api_version, kind] = (schema, _compiled(schema, f"{api_version} {kind}")) if schema else None
        return self._compiled[api_version, kind]


def _compiled(schema: Schema, kind: str) -> Draft202012Validator:
    # Imported late: it costs as much as the rest of a check, and rendering needs none of it.
    import jsonschema_rs

    try:
        return jsonschema_rs.Draft202012Validator(schema)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise InputError(
            Problem("schema cannot be compiled", detail=f"{kind}: {error}", fix="correct the CRD of this kind")
        ) from error
