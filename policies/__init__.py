"""The rules of this project: one module each, with its `RULE`. What several rules need is in `policies.shared`."""

from __future__ import annotations

import importlib
import pkgutil

from gpuyard.rules import Rules


def register(rules: Rules) -> None:
    """Add the rule of every module of this package, by name of the module."""
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        if not module.ispkg and module.name != "__main__":
            rules.add(importlib.import_module(f"{__name__}.{module.name}").RULE)
