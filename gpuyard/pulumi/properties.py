"""Properties on the wire between Pulumi's processes, and the plain data they stand for."""

from __future__ import annotations

from typing import Any

_LARGEST_EXACT = 2**53


def whole(value: Any) -> Any:
    """Return a float without a fraction as int, for the protocol knows only floats.

    What is too large to be exact, and anything else, is returned as it is.
    """
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_EXACT:
        return int(value)
    return value
