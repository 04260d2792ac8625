"""Puts the platform together: the content of this project, an environment, and the sources it is pinned to."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

import components
from gpuyard.model.environment import Environment
from gpuyard.model.load import load as load_environment
from gpuyard.model.registry import Build, Registry, Sources
from gpuyard.model.registry import build as build_objects
from gpuyard.rules import Context, Rules

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "gpuyard.lock.yaml"


@cache
def registry() -> Registry:
    """Return all components and job kinds: every package of `components/` registers its own."""
    found = Registry()
    for module in sorted(pkgutil.iter_modules(components.__path__), key=lambda module: module.name):
        if module.ispkg:
            importlib.import_module(f"components.{module.name}").register(found)
    return found


@cache
def rules() -> Rules:
    """Return the rules of this project: the framework's own, then those of `policies/`."""
    import policies
    from gpuyard.rules.builtin import BUILTIN

    found = Rules()
    found.add(*BUILTIN)
    policies.register(found)
    return found


def load(name: str, stacks: Path = ROOT / "stacks") -> Environment:
    """Read an environment. Raises InputError with everything that is wrong with it."""
    return load_environment(stacks, name, registry())


def source_names() -> list[str]:
    """Return the lock entries whose manifests or charts the components read, sorted."""
    parts = (part for component in registry().components.values() for part in component.parts)
    return sorted({part.source for part in parts if part.source})


def open_sources() -> Sources:
    """Return the upstream sources of the lock file, as far as they are in the cache."""
    from gpuyard.sources import Cache, read_lock

    return Cache(read_lock(LOCK))


def build(environment: Environment, sources: Sources | None = None, *, allow_missing: bool = False) -> Build:
    """Make every object of an environment, in the order to apply them."""
    return build_objects(registry(), environment, sources or open_sources(), allow_missing=allow_missing)


def context(environment: Environment, built: Build) -> Context:
    """Return what the rules look at."""
    return Context(tuple(built.objects), environment, built.skipped)
