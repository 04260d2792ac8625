"""How what takes long tells where it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, str], None]
"""Called with a name and what happens to it: ("volcano", "downloading"), at last ("volcano", "ready")."""


def quiet(name: str, state: str) -> None:
    """Say nothing."""
