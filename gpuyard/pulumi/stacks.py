"""Which environment and layer a stack is. Loads no Pulumi: the command line names stacks too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gpuyard.errors import InputError, Problem, listed, nearest
from gpuyard.manifests import LAYERS, Layer

_SUFFIX: dict[Layer, str] = {"crds": "-crds", "platform": "", "jobs": "-jobs"}


class Target(NamedTuple):
    """What one stack deploys."""

    environment: str
    layer: Layer


def stack_name(environment: str, layer: Layer) -> str:
    """Return the stack of a layer: `prod-crds`, `prod`, `prod-jobs`."""
    return environment + _SUFFIX[layer]


def target(stack: str, environments: Iterable[str]) -> Target:
    """Return what a stack deploys. Raises InputError for a name that is no stack, or that could be two."""
    stacks: dict[str, list[Target]] = {}
    for environment in environments:
        for layer in LAYERS:
            stacks.setdefault(stack_name(environment, layer), []).append(Target(environment, layer))
    found = stacks.get(stack, [])
    if not found:
        hint = nearest(stack, stacks) or f"accepted: {listed(stacks)}"
        raise InputError(Problem("unknown stack", detail=f"{stack}; {hint}", fix="pulumi stack select"))
    if len(found) > 1:
        names = " and ".join(f"layer {one.layer} of environment {one.environment}" for one in found)
        raise InputError(Problem("two stacks with one name", detail=f"{stack}: {names}", fix="rename an environment"))
    return found[0]
