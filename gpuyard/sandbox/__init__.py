"""A real control plane on this machine, with simulated nodes: start it, apply a render to it, look at it, stop it.

Everything is loaded on first use, so that other commands do not pay for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuyard.sandbox.localize import Substitution
    from gpuyard.sandbox.sandbox import BINARIES, Sandbox, Status, apply, down, status, up
    from gpuyard.sandbox.scenario import Deadlock, deadlock
    from gpuyard.sandbox.server_apply import Applied, dry_run

__all__ = [
    "BINARIES",
    "Applied",
    "Deadlock",
    "Sandbox",
    "Status",
    "Substitution",
    "apply",
    "deadlock",
    "down",
    "dry_run",
    "status",
    "up",
]

_HOME = {
    "Applied": "server_apply",
    "dry_run": "server_apply",
    "Substitution": "localize",
    "Deadlock": "scenario",
    "deadlock": "scenario",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME.get(name, 'sandbox')}"), name)
