"""Kubernetes quantities as exact numbers.

Source: k8s.io/apimachinery/pkg/api/resource/quantity.go (the serialization format in its doc comment).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache

_SUFFIXES: dict[str, Decimal] = {
    "n": Decimal(10) ** -9,
    "u": Decimal(10) ** -6,
    "m": Decimal(10) ** -3,
    "": Decimal(1),
    **{suffix: Decimal(10) ** (3 * power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(2) ** (10 * power) for power, suffix in enumerate("KMGTPE", start=1)},
}
# No amount of anything has an exponent of three digits, and one of ten would take all memory.
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?:[eE](?P<exponent>[+-]?\d{1,2})|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))",
    re.ASCII,
)


_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@lru_cache(maxsize=4096)
def _parse(text: str) -> Decimal:
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise ValueError("a quantity is a number with an optional unit: 500m, 4, 2.5, 100M, 64Gi, 2Ti")
    number = Decimal(match["number"])
    return number.scaleb(int(match["exponent"])) if match["exponent"] else number * _SUFFIXES[match["suffix"]]


def parse_quantity(value: str | int | float) -> Decimal:
    """Return the exact value in base units (cores, bytes, pieces). Raises ValueError for what is not a quantity."""
    return _parse(value) if isinstance(value, str) else _parse(format(Decimal(str(value)), "f"))


@lru_cache(maxsize=4096)
def format_count(value: Decimal) -> str:
    """Return a quantity of pieces or cores in canonical form: whole numbers as they are, parts in milli-units."""
    if value == value.to_integral_value():
        return str(int(value))
    milli = (value * 1000).to_integral_value(rounding="ROUND_UP")
    return f"{int(milli)}m"


@lru_cache(maxsize=4096)
def format_bytes(value: Decimal) -> str:
    """Return a quantity of bytes with the largest binary unit that divides it; parts of a byte are rounded up."""
    whole = int(value.to_integral_value(rounding="ROUND_UP"))
    if not whole:
        return "0"
    # The lowest bit that is set tells the largest power of two that divides a number.
    power = min(((whole & -whole).bit_length() - 1) // 10, len(_BINARY) - 1)
    return f"{whole >> (10 * power)}{_BINARY[power]}"


def is_bytes(resource: str) -> bool:
    """Return whether amounts of this resource are bytes."""
    return resource in ("memory", "ephemeral-storage", "storage") or resource.startswith("hugepages-")


def format_resource(resource: str, value: Decimal) -> str:
    """Return an amount of a resource as Kubernetes writes it."""
    return format_bytes(value) if is_bytes(resource) else format_count(value)


def add_resources(amounts: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    """Return the sum of resource maps, key by key."""
    total: dict[str, Decimal] = {}
    for amount in amounts:
        for resource, value in amount.items():
            total[resource] = total.get(resource, Decimal(0)) + value
    return total


def parse_resources(amounts: Mapping[str, str | int | float]) -> dict[str, Decimal]:
    """Return a resource map such as `requests` with exact numbers."""
    return {resource: parse_quantity(value) for resource, value in amounts.items()}
