"""The forms of text that Kubernetes asks for: names, keys, label values, ports, percentages, schedules.

Each function returns what is wrong with a text, or "" when nothing is.

Source: k8s.io/apimachinery/pkg/util/validation/validation.go, and for schedules github.com/robfig/cron/v3, parser.go.
"""

from __future__ import annotations

import re
from functools import lru_cache

# `re` compiles each when it is first used.
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_QUALIFIED = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_PORT_NAME = r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*"
_ENV = r"[ -<>-~]+"
_CONFIG_KEY = r"(?!\.\.?$)(?!\.\.)[-._a-zA-Z0-9]+"
_PERCENT = r"[0-9]+%"
_ZONE = r"(?!-)(?!\.\.?$)[A-Za-z._0-9+-]{1,14}"

_MONTHS = {name: number for number, name in enumerate(
    ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1)}  # fmt: skip
_DAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_SCHEDULE: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 6, _DAYS),
)
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = r"@every ([0-9]+(\.[0-9]*)?(ns|us|ms|s|m|h))+"


@lru_cache(maxsize=4096)
def label_problem(name: str) -> str:
    """A DNS-1123 label."""
    shape = "a DNS-1123 label: lower-case letters, digits and '-', with a letter or digit first and last"
    return _shape_problem(name, _LABEL, 63, shape)


def service_problem(name: str) -> str:
    """A DNS-1035 label, which the name of a Service is."""
    shape = "a DNS-1035 label: lower-case letters, digits and '-', with a letter first and no '-' last"
    return _shape_problem(name, _LABEL_1035, 63, shape)


@lru_cache(maxsize=4096)
def subdomain_problem(name: str) -> str:
    """A DNS-1123 subdomain."""
    shape = (
        "a DNS-1123 subdomain: lower-case letters, digits, '-' and '.', each part with a letter or digit at both ends"
    )
    return _shape_problem(name, _SUBDOMAIN, 253, shape)


def path_name_problem(name: str) -> str:
    """A name of an RBAC object, which is one segment of a URL."""
    bad = not name or name in (".", "..") or "/" in name or "%" in name
    return "a name of an RBAC object is any text without / and %" if bad else ""


@lru_cache(maxsize=4096)
def key_problem(key: str) -> str:
    """The key of a label, an annotation or a resource."""
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or subdomain_problem(prefix)):
        return f"the part of the key before / must be a DNS-1123 subdomain: `{prefix}`"
    return _shape_problem(
        name, _QUALIFIED, 63, "a key: letters, digits, '-', '_' and '.', with a letter or digit first and last"
    )


@lru_cache(maxsize=4096)
def value_problem(value: str) -> str:
    """The value of a label."""
    shape = "a label value: letters, digits, '-', '_' and '.', with a letter or digit first and last, or nothing"
    return _shape_problem(value, _QUALIFIED, 63, shape) if value else ""


@lru_cache(maxsize=1024)
def port_name_problem(name: str) -> str:
    """The name of a port, as IANA registers services."""
    return _shape_problem(
        name, _PORT_NAME, 15, "a port name: lower-case letters, digits and single '-', with at least one letter"
    )


@lru_cache(maxsize=4096)
def env_problem(name: str) -> str:
    """The name of an environment variable."""
    return "" if re.fullmatch(_ENV, name) else f"`{name}` must be printable ASCII characters without ="


@lru_cache(maxsize=4096)
def config_key_problem(key: str) -> str:
    """A key of a ConfigMap or Secret, which becomes the name of a file."""
    return _shape_problem(key, _CONFIG_KEY, 253, "a file name: letters, digits, '-', '_' and '.', and no .. first")


def port_problem(port: object) -> str:
    """The number of a port."""
    if isinstance(port, int) and not isinstance(port, bool) and not 1 <= port <= 65535:
        return f"{port} is no port; a port is 1 to 65535"
    return ""


def port_or_name_problem(port: object) -> str:
    """A port by its number or its name."""
    return port_name_problem(port) if isinstance(port, str) else port_problem(port)


def count_or_percent_problem(value: object, *, most: int | None = None) -> str:
    """A count from 0 or a percentage; `most`: of at most so many percent."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return ""
    if isinstance(value, int):
        return f"{value} is negative" if value < 0 else ""
    if not re.fullmatch(_PERCENT, value):
        return f'"{value}" must be a whole number, or a percentage such as "25%"'
    return f"{value} is more than {most}%" if most is not None and int(value[:-1]) > most else ""


def time_zone_problem(name: str) -> str:
    """The form of a time zone's name; whether it exists is known to the cluster alone."""
    if name.lower() == "local" or not all(re.fullmatch(_ZONE, part) for part in name.split("/")):
        return f"`{name}` is no time zone; write one such as Europe/Zurich or Etc/UTC"
    return ""


def schedule_problem(schedule: str) -> str:
    """A cron schedule as a CronJob takes it."""
    if "TZ" in schedule:
        return "a time zone does not stand in the schedule; use timeZone"
    if schedule.startswith("@"):
        known = schedule in _DESCRIPTORS or re.fullmatch(_EVERY, schedule)
        return "" if known else f"`{schedule}` is no schedule; accepted: {', '.join(_DESCRIPTORS)}, @every 1h30m"
    fields = schedule.split()
    if len(fields) != len(_SCHEDULE):
        names = ", ".join(field[0] for field in _SCHEDULE)
        return f"`{schedule}` has {len(fields)} fields; a schedule has {len(_SCHEDULE)}: {names}"
    for text, (field, low, high, names) in zip(fields, _SCHEDULE, strict=True):
        for part in text.split(","):
            if part and (problem := _range_problem(part, low, high, names)):
                return f"{field} `{text}`: {problem}"
    return ""


def _range_problem(part: str, low: int, high: int, names: dict[str, int]) -> str:
    span, slash, step = part.partition("/")
    if slash and not (step.isascii() and step.isdigit() and int(step)):
        return f"`{step}` is no step; a step is a whole number from 1"
    first, dash, last = span.partition("-")
    if first in ("*", "?"):
        return "" if not dash else f"`{span}` is no range"
    ends: list[int] = []
    for word in (first, last) if dash else (first,):
        number = names.get(word.lower(), int(word) if word.isascii() and word.isdigit() else -1)
        if not low <= number <= high:
            return f"`{word}` is not one of {low} to {high}"
        ends.append(number)
    return "" if ends == sorted(ends) else f"{span} ends before it begins"


def _shape_problem(text: str, pattern: str, limit: int, shape: str) -> str:
    if not re.fullmatch(pattern, text):
        return f"`{text}` must be {shape}"
    return f"{len(text)} characters; at most {limit}" if len(text) > limit else ""
