"""What an unquoted YAML scalar means, to kubectl, to YAML 1.1 and to YAML 1.2: the three do not agree.

Sources: kubectl reads with sigs.k8s.io/yaml, whose scalar rules are goyaml.v2/resolve.go; PyYAML's resolver.py for 1.1;
the core schema, section 10.3.2 of the YAML 1.2 specification.
"""

from __future__ import annotations

import math
import re
from typing import TypeAlias

Scalar: TypeAlias = str | int | float | bool | None

_NULLS = frozenset(["", "~", "null", "Null", "NULL"])
_TRUE = frozenset(["true", "True", "TRUE"])
_FALSE = frozenset(["false", "False", "FALSE"])
_TRUE_1_1 = frozenset(["yes", "Yes", "YES", "on", "On", "ON"])
_FALSE_1_1 = frozenset(["no", "No", "NO", "off", "Off", "OFF"])
_SPECIAL = {
    **{f"{sign}.{word}": float(f"{sign}inf") for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")},
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
}

# `re` compiles each when it is first matched and keeps it: together they take longer than to read most files.
_GO_INTEGER = r"([-+]?)(?:0[bB]([01]+)|0[oO]?([0-7]+)|0[xX]([0-9a-fA-F]+)|(0|[1-9][0-9]*))"
_NUMBER = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"

_INTEGER_1_1 = r"([-+]?)(?:0b([01_]+)|0([0-7_]+)|0x([0-9a-fA-F_]+)|(0|[1-9][0-9_]*)|([1-9][0-9_]*(?::[0-5]?[0-9])+))"
_FLOAT_1_1 = (
    r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|(?P<base60>[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*)"
)
_DATE_1_1 = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?(?:[Tt]|[ \t]+)[0-9][0-9]?:[0-9]{2}:[0-9]{2}"
    r"(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9][0-9]?(?::[0-9]{2})?))?"
)
_INTEGER_1_2 = r"([-+]?[0-9]+)|0o([0-7]+)|0x([0-9a-fA-F]+)"

# No reader sees more than text in a scalar that starts otherwise.
_FIRST = frozenset("0123456789+-.~=yYnNtTfFoO<")
_STARTS = frozenset("0123456789+-.")
_IN_NUMBERS = frozenset("0123456789+-._:eEoObBxXtTZ \t")
"""What numbers and dates start with and are made of, beside the letters of a hexadecimal one."""


def resolve_as_kubectl(text: str) -> Scalar:
    """Return what kubectl hands to the API server for a plain scalar.

    As in JSON, whole numbers are integers however they were written (`5.`, `1e3`), and what is larger than 64 bits is a
    float. Raises ValueError for infinity and not-a-number, which JSON cannot hold.
    """
    value = _resolve_as_go_yaml(text)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("is no number that JSON can hold")
        if value.is_integer() and -(2**63) <= value < 2**63:
            return int(value)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return value


def readings(text: str) -> list[str]:
    """Return, in words, every meaning that YAML readers see in a plain scalar; more than one: it is ambiguous.

    A meaning is "true", "false", "empty", "the number 8", "a date", "an error" or "text"; text comes last.
    """
    if text and text[0] not in _FIRST:
        return ["text"]
    if _is_decimal(text):
        return [_describe(int(text))]
    found = {_describe(_resolve_as_go_yaml(text)), _describe_1_1(text), _describe(_resolve_1_2(text))}
    return sorted(found, key=lambda reading: (reading == "text", reading))


def resolve_unambiguous(text: str) -> Scalar:
    """Return the value of a plain scalar that has one reading."""
    if _is_decimal(text):
        return int(text)
    return _resolve_1_2(text) if not text or text[0] in _FIRST else text


def _describe(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "empty"
    if isinstance(value, str):
        return "text"
    return f"the number {int(value) if isinstance(value, int) or value.is_integer() else value}"


def _keyword(text: str) -> Scalar:
    """Return what all readers agree on, or the text."""
    if text in _NULLS:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    return _SPECIAL.get(text, text)


def _may_be_number(text: str) -> bool:
    """Return False for what is a number or a date to no reader. Most text is told so, without an expression."""
    return text[:1] in _STARTS and text.count(".") < 2 and (_IN_NUMBERS.issuperset(text) or "x" in text or "X" in text)


def _is_decimal(text: str) -> bool:
    """Return whether a scalar is a whole number as all readers write it; longer ones go the long way."""
    return text.isdigit() and text.isascii() and (text[0] != "0" or text == "0") and len(text) < 19


def _integer(sign: str, *digits: tuple[str | None, int]) -> int | float:
    text, base = next((text, base) for text, base in digits if text is not None)
    # Python refuses to read more than 4300 digits; no reader can hold a tenth of them.
    number = int(text, base) if len(text) < 400 else math.inf
    return -number if sign == "-" else number


def _resolve_as_go_yaml(text: str) -> Scalar:
    first = text[:1]
    if first and first not in _FIRST:
        return text
    if text in _TRUE_1_1 or text in ("y", "Y"):
        return True
    if text in _FALSE_1_1 or text in ("n", "N"):
        return False
    known = _keyword(text)
    if not isinstance(known, str):
        return known
    if first == "." and _may_be_number(text):
        # Only this path keeps underscores, which no number may then have.
        return _finite(text) if re.fullmatch(_NUMBER, text) else text
    if not _may_be_number(text):
        return text
    plain = text.replace("_", "")
    match = re.fullmatch(_GO_INTEGER, plain)
    if match:
        number = _integer(match[1], (match[2], 2), (match[3], 8), (match[4], 16), (match[5], 10))
        # Signed 64 bits, or unsigned ones when there is no sign.
        if -(2**63) <= number < 2**63 or (not match[1] and number < 2**64):
            return number
    return _finite(plain, text) if re.fullmatch(_NUMBER, plain) else text


def _finite(plain: str, text: str | None = None) -> float | str:
    """Return the number, or the text when it is too large for a float: Go calls that an error and reads text."""
    number = float(plain)
    return number if math.isfinite(number) else (text or plain)


def _describe_1_1(text: str) -> str:
    if text in _TRUE_1_1:
        return "true"
    if text in _FALSE_1_1:
        return "false"
    if text in ("=", "<<"):
        return "an error"
    if not _may_be_number(text):
        return _describe(_keyword(text))
    if re.fullmatch(_DATE_1_1, text):
        return "a date"
    match = re.fullmatch(_INTEGER_1_1, text)
    if match:
        if match[6]:
            return _describe(_base60(text.replace("_", "")))
        bases = ((match[2], 2), (match[3], 8), (match[4], 16), (match[5], 10))
        stripped = [(digits and digits.replace("_", ""), base) for digits, base in bases]
        # `0_` and `0x_` match and have no digits: PyYAML fails on them.
        return "an error" if "" in [digits for digits, _ in stripped] else _describe(_integer(match[1], *stripped))
    match = re.fullmatch(_FLOAT_1_1, text)
    if match:
        plain = text.replace("_", "")
        return _describe(_base60(plain) if match["base60"] else float(plain))
    return _describe(_keyword(text))


def _base60(text: str) -> int | float:
    sign, number = (-1 if text[0] == "-" else 1), 0.0
    for part in text.lstrip("+-").split(":"):
        number = number * 60 + float(part)
    return sign * (int(number) if number.is_integer() else number)


def _resolve_1_2(text: str) -> Scalar:
    if not _may_be_number(text):
        return _keyword(text)
    match = re.fullmatch(_INTEGER_1_2, text)
    if match:
        return _integer("", (match[1], 10), (match[2], 8), (match[3], 16))
    return float(text) if re.fullmatch(_NUMBER, text) else _keyword(text)
