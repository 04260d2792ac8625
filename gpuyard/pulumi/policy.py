"""Runs the project's rules inside Pulumi: the same rules, over the same objects, with the same verdict as a check.

A stack holds one layer. Its objects are what Pulumi is about to deploy; the other layers of the environment come from
the environment's own render, so that a rule sees the whole platform whatever stack is deployed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from pulumi_policy import EnforcementLevel, Policy, ReportViolation, StackValidationArgs, StackValidationPolicy
from pulumi_policy.proxy import UnknownValueError

from gpuyard.errors import InputError
from gpuyard.manifests import Layer, Manifest, declare, identity
from gpuyard.manifests.data import is_list, is_map
from gpuyard.pulumi.properties import whole
from gpuyard.pulumi.stacks import target
from gpuyard.rules import Context, Rules, Severity
from gpuyard.rules.report import as_text

UNKNOWN = "[known after deployment]"
"""Stands for a value that is not known in a preview. No object of ours has one."""

_INPUTS = "__inputs"
"""Where the Kubernetes provider keeps what was asked for, beside what the API server made of it."""

_LEVELS: dict[Severity, EnforcementLevel] = {
    "error": EnforcementLevel.MANDATORY,
    "warning": EnforcementLevel.ADVISORY,
}


def policies(
    rules: Rules, environments: Callable[[], Iterable[str]], context: Callable[[str], Context]
) -> list[Policy]:
    """Return one stack policy for each severity that has rules: few, for each one reads every property anew.

    context: environment -> the context of its whole render.
    """
    render = cache(context)
    return [_policy(severity, rules, environments, render) for severity in _LEVELS if _of(severity, rules).rules]


def _policy(
    severity: Severity, rules: Rules, environments: Callable[[], Iterable[str]], render: Callable[[str], Context]
) -> Policy:
    chosen = _of(severity, rules)

    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        objects = {
            one.urn: manifest(one.props) for one in args.resources if one.resource_type.startswith("kubernetes:")
        }
        if not objects:
            return
        try:
            environment, layer = target(_stack(next(iter(objects))), environments())
            whole_render = render(environment)
        except InputError as error:
            report(str(error), None)
            return
        urns = {str(identity(one)): urn for urn, one in objects.items()}
        for finding in chosen.run(deployed(whole_render, layer, objects.values())):
            report(f"{finding.rule}\n{as_text([finding])}", urns.get(finding.object))

    return StackValidationPolicy(
        f"gpuyard-{severity}s",
        f"What `gpuyard check` calls {'an error' if severity == 'error' else 'a warning'}.",
        validate,
        _LEVELS[severity],
    )


def _of(severity: Severity, rules: Rules) -> Rules:
    return Rules({name: rule for name, rule in rules.rules.items() if rule.severity == severity})


def _stack(urn: str) -> str:
    return urn.split("::")[0].removeprefix("urn:pulumi:")


def deployed(render: Context, layer: Layer, manifests: Iterable[Manifest]) -> Context:
    """Return a render with the objects of one layer as they are deployed.

    They keep the id, the component and the origin that the render knows; one that it does not know has none.
    """
    found = {identity(one): one for one in manifests}
    objects = [
        replace(rendered, manifest=found.pop(rendered.identity)) if rendered.layer == layer else rendered
        for rendered in render.objects
        if rendered.layer != layer or rendered.identity in found
    ]
    objects += [declare(one, layer=layer) for _, one in sorted(found.items())]
    return replace(render, objects=tuple(objects))


def manifest(properties: Mapping[str, Any]) -> Manifest:
    """Return the object that a program asked for, from the properties of its resource.

    An unknown value becomes a marker: one alone must not keep all rules from being run.
    """
    return _plain(properties.get(_INPUTS, properties))


def _plain(value: Any) -> Any:
    if is_map(value):
        return {_key(key): _item(value, key) for key in value}
    if is_list(value):
        return [_item(value, index) for index in range(len(value))]
    return whole(value)


def _key(key: str) -> str:
    # In its state the provider spells the extensions of a CRD's schema with underscores.
    return key.replace("_", "-") if key.startswith("x_kubernetes_") else key


def _item(container: Any, key: str | int) -> Any:
    try:
        return _plain(container[key])
    except UnknownValueError:
        return UNKNOWN
