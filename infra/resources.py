"""The Pulumi class of each component, as the packages of `components/` bring it."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import components
from gpuyard.pulumi.component import Component


def component_classes() -> dict[str, type[Component[Any]]]:
    """Return the classes by component."""
    found: dict[str, type[Component[Any]]] = {}
    for package in pkgutil.iter_modules(components.__path__):
        if package.ispkg:
            module = importlib.import_module(f"components.{package.name}.resource")
            classes = [value for value in vars(module).values() if isinstance(value, type)]
            found |= {one.component: one for one in classes if issubclass(one, Component) and one is not Component}
    return found
