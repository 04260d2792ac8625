"""The base of everything a user writes: strict, typed, units in types, keys in kebab-case."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from gpuyard.manifests.quantity import parse_quantity


def kebab(name: str) -> str:
    """Return the key that users write for a Python field: `security_groups` -> `security-groups`."""
    return name.rstrip("_").replace("_", "-")


class Settings(BaseModel):
    """A map in a stack file. Unknown keys are errors, and nothing is coerced from one type to another."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, alias_generator=kebab, validate_default=True, validate_by_name=True
    )


def _quantity(value: str) -> str:
    parse_quantity(value)
    return value


def _plain_number(value: Any) -> Any:
    # `cpu: 4` and `size: 10` are quantities too; YAML hands them over as numbers.
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return format(Decimal(str(value)), "f")
    return value


_DURATION = re.compile(r"(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+)s)?")


def seconds(duration: str) -> int:
    """Return a duration in seconds: `10m` -> 600, `1d12h` -> 129600. Raises ValueError for anything else."""
    match = _DURATION.fullmatch(duration)
    if not duration or not match:
        raise ValueError("a duration is written as 30s, 10m, 12h or 30d, or joined as 1d12h")
    parts = {unit: int(number) for unit, number in match.groupdict(default="0").items()}
    return parts["d"] * 86400 + parts["h"] * 3600 + parts["m"] * 60 + parts["s"]


def _duration(value: str) -> str:
    seconds(value)
    return value


def dns_label(value: str, *, letter_first: bool = False, limit: int = 63) -> str:
    """Return the value if it is a DNS-1123 label (`letter_first`: DNS-1035) of at most `limit` characters."""
    pattern = r"[a-z]([-a-z0-9]*[a-z0-9])?" if letter_first else r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    if not re.fullmatch(pattern, value):
        first = "a letter" if letter_first else "a letter or digit"
        standard = "DNS-1035" if letter_first else "DNS-1123"
        raise ValueError(
            f"a {standard} label is made of lower-case letters, digits and '-', starts with {first} "
            "and ends with a letter or digit"
        )
    if len(value) > limit:
        raise ValueError(f"{len(value)} characters; at most {limit}")
    return value


Quantity = Annotated[str, BeforeValidator(_plain_number), AfterValidator(_quantity)]
"""A Kubernetes quantity such as `500m`, `2400Gi` or `4`, kept as it was written."""

Duration = Annotated[str, AfterValidator(_duration)]
"""A span of time such as `10m` or `30d`, kept as it was written; `seconds` reads it."""

DnsLabel = Annotated[str, AfterValidator(dns_label)]
"""An RFC 1123 label of at most 63 characters."""

Dns1035Label = Annotated[str, AfterValidator(lambda value: dns_label(value, letter_first=True))]
"""An RFC 1035 label: as DnsLabel, and it starts with a letter."""
