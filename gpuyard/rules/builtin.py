"""The framework's own rules, on in every project: objects match their schemas, and what they name exists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuyard.errors import nearest
from gpuyard.manifests import Manifest, Rendered
from gpuyard.manifests.credentials import Hidden, hide_at
from gpuyard.manifests.data import below
from gpuyard.manifests.references import Reference, is_built_in, made_in_cluster
from gpuyard.manifests.schemas.api_versions import Api, api_life
from gpuyard.manifests.schemas.custom import versions
from gpuyard.manifests.schemas.schema import Schemas, Violation
from gpuyard.rules.rule import Context, Hit, Rule, Unjudged

_UPSTREAM_KINDS = frozenset({"ClusterRole", "ConfigMap", "Role", "Secret", "Service", "ServiceAccount"})
"""Kinds of which upstream sources bring objects that ours name; all other named things are declared in stack files."""


def check_schemas(context: Context) -> Iterator[Hit | Unjudged]:
    """Check every object against the API of the environment's Kubernetes version and the render's own CRDs."""
    manifests = [rendered.manifest for rendered in context.objects]
    kubernetes = context.environment.cluster.kubernetes
    origin = context.environment.origin("cluster", "kubernetes")
    schemas = Schemas(kubernetes, _crds(context), origin=origin)
    unknown = set(schemas.unknown_kinds(manifests))
    for rendered, found in zip(context.objects, schemas.check_all(manifests), strict=True):
        manifest = rendered.manifest
        if unknown and (manifest["apiVersion"], manifest["kind"]) in unknown and not _removed(manifest, context):
            kind = f"{manifest['apiVersion']} {manifest['kind']}"
            if context.skipped:
                yield Unjudged(str(rendered.identity), f"the schema of {kind} may be in {_left_out(context)}")
            else:
                yield Hit(
                    rendered,
                    "kind",
                    f"unknown kind\nneither Kubernetes {kubernetes} nor a CRD of this render has {kind}",
                    fix="render the CRD, or correct apiVersion and kind",
                    value=manifest["kind"],
                )
        for violation in found:
            value = hide_at(manifest["kind"], violation.path, violation.value)
            message = f"a field that the API server would refuse or drop\n{_said(violation, value)}"
            yield Hit(rendered, violation.path, message, value=value, malformed=violation.malformed)
    for kind, rule, reason in schemas.without_verdict():
        yield Unjudged(f"every {kind}", f"a rule of its CRD cannot be run: {reason}: {' '.join(rule.split())}")


def check_removed(context: Context) -> Iterator[Hit]:
    """Check that every object is of an API version that the environment's Kubernetes still has."""
    for rendered in context.objects:
        if api := _removed(rendered.manifest, context):
            yield _api_hit(rendered, "removed", f"gone since Kubernetes 1.{api.removed}", api)


def check_deprecated(context: Context) -> Iterator[Hit]:
    """Check that no object is of an API version on its way out, Kubernetes' own or that of a CRD."""
    custom = {
        (api_version, kind): version
        for api_version, kind, version in versions(_crds(context))
        if version.get("deprecated")
    }
    minor = _minor(context)
    for rendered in context.objects:
        manifest = rendered.manifest
        key = (manifest["apiVersion"], manifest["kind"])
        if key in custom:
            said = custom[key].get("deprecationWarning") or f"{' '.join(key)} is deprecated by its CRD"
            yield Hit(rendered, "apiVersion", f"deprecated API version\n{said}", value=manifest["apiVersion"])
        elif (api := api_life(*key)) and api.deprecated <= minor and not _removed(manifest, context):
            end = f", gone with 1.{api.removed}" if api.removed else ""
            yield _api_hit(rendered, "deprecated", f"deprecated since Kubernetes 1.{api.deprecated}{end}", api)


def _api_hit(rendered: Rendered, title: str, said: str, api: Api) -> Hit:
    kind = f"{rendered.manifest['apiVersion']} {rendered.manifest['kind']}"
    fix = f"write apiVersion: {api.replacement}" if api.replacement else "do without it; nothing takes its place"
    return Hit(
        rendered, "apiVersion", f"{title} API version\n{kind} is {said}", fix=fix, value=rendered.manifest["apiVersion"]
    )


def _removed(manifest: Manifest, context: Context) -> Api | None:
    api = api_life(manifest["apiVersion"], manifest["kind"])
    return api if api and api.removed and api.removed <= _minor(context) else None


def _minor(context: Context) -> int:
    return int(context.environment.cluster.kubernetes.partition(".")[2])


def _crds(context: Context) -> list[Manifest]:
    return [rendered.manifest for rendered in context.by_kind.get("CustomResourceDefinition", ())]


def _said(violation: Violation, value: Any) -> str:
    """Return the message of a violation, without the value where that is hidden because it can be a credential."""
    if not isinstance(value, Hidden) or violation.message.startswith("unknown field"):
        return violation.message
    _, must, wanted = violation.message.rpartition("; must ")
    return f"must {wanted}" if must else "this value is not accepted"


def check_references(context: Context) -> Iterator[Hit | Unjudged]:
    """Check that everything an object names is in the render, in every cluster, or declared by the team."""
    known = {rendered.identity[1:] for rendered in (*context.objects, *context.malformed)}
    for manifest in (
        rendered.manifest for kind in ("Certificate", "Job") for rendered in context.by_kind.get(kind, ())
    ):
        known.update((who.kind, who.namespace, who.name) for who in made_in_cluster(manifest))
    for team in context.environment.teams.values():
        known.update(("Secret", team.name, name) for name in (*team.secrets, *team.pull_secrets))
    missing: dict[tuple[str, str, str], list[tuple[Rendered, Reference]]] = {}
    for rendered in context.objects:
        for reference in rendered.references:
            if reference.target in known or is_built_in(reference):
                continue
            # The queue that a job waits in is judged by the rule about its size.
            if reference.needed and reference.path[-2:] != ("schedulingPolicy", "queue"):
                missing.setdefault(reference.target, []).append((rendered, reference))
    for places in missing.values():
        rendered, reference = places[0]
        if _may_be_left_out(reference, context):
            yield Unjudged(str(rendered.identity), f"{reference} may be in {_left_out(context)}")
            continue
        others = len(places) - 1
        more = f"\nit is named in {others} other place{'s' if others > 1 else ''}, too" if others else ""
        message = f"{reference} does not exist{more}"
        fix = _hint(reference, known, context)
        yield Hit(rendered, below("", *reference.path), message, fix=fix, value=reference.name)


def _hint(reference: Reference, known: set[tuple[str, str, str]], context: Context) -> str:
    same = [name for kind, namespace, name in known if (kind, namespace) == (reference.kind, reference.namespace)]
    if hint := nearest(reference.name, same):
        return hint
    if reference.kind == "Secret" and reference.namespace in context.environment.teams:
        return f"create it in namespace {reference.namespace} and add its name to the team's secrets"
    return ""


def _may_be_left_out(reference: Reference, context: Context) -> bool:
    """No source puts anything into a team's namespace, so what is missing there is missing."""
    return (
        bool(context.skipped)
        and reference.kind in _UPSTREAM_KINDS
        and reference.namespace not in context.environment.teams
    )


def _left_out(context: Context) -> str:
    return f"a source that was left out: {', '.join(context.skipped)}"


SCHEMA = Rule(
    id="schema",
    scope="render",
    severity="error",
    why="The API server drops unknown fields of custom resources without a word, so a misspelt field does nothing.",
    fix="correct the field; `kubectl explain` shows what it takes",
    source="https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation",
    check=check_schemas,
)

REFERENCES = Rule(
    id="references",
    scope="render",
    severity="error",
    why="A pod that names a missing volume, class, account or Secret waits for ever, often with GPUs reserved for it.",
    fix="declare it, or correct the name",
    source="https://kubernetes.io/docs/tasks/debug/debug-application/debug-pods/#my-pod-stays-waiting",
    check=check_references,
)

API_REMOVED = Rule(
    id="api-removed",
    scope="render",
    severity="error",
    why="The API server of this version has no such kind, so applying it fails, and an upgrade leaves it behind.",
    fix="write the version that takes its place",
    source="https://kubernetes.io/docs/reference/using-api/deprecation-guide/",
    check=check_removed,
)

API_DEPRECATED = Rule(
    id="api-deprecated",
    scope="render",
    severity="warning",
    why="A later version of Kubernetes, or of the CRD, no longer has it, and the upgrade then fails.",
    fix="write the version that takes its place before the upgrade",
    source="https://kubernetes.io/docs/reference/using-api/deprecation-guide/",
    check=check_deprecated,
)

BUILTIN = (SCHEMA, API_DEPRECATED, API_REMOVED, REFERENCES)
"""The schema first: what is malformed is for no other rule to read."""
