"""The lock file: every upstream system with its version and digest, and how its binaries are built."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from gpuyard.errors import InputError, Origin, Problem, listed, nearest
from gpuyard.manifests.data import is_list, is_map
from gpuyard.manifests.yaml.read import Lines, field_name, read_settings
from gpuyard.manifests.yaml.read import Path as FieldPath


@dataclass(frozen=True)
class Build:
    """How the binaries of a Go module are built.

    binaries: name of the binary -> package inside the module; "." is the module's root.
    replace:  module -> "module version", beside the module's own replaces, and stronger than they.
    staging:  version of the modules that the module's own go.mod replaces by folders of its repository.
    stamp:    packages whose gitVersion, gitMajor and gitMinor are set to the entry's version. Clients of Kubernetes
              cannot parse the version of a server that was built without.
    """

    binaries: Mapping[str, str]
    replace: Mapping[str, str] = field(default_factory=dict[str, str])
    staging: str = ""
    stamp: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One upstream system.

    digest: what the download must have; empty until `gpuyard sources lock NAME` recorded it.
    images: container image without its tag -> the tag that belongs to this version.
    origin: its place in the lock file.
    """

    name: str
    version: str
    origin: Origin
    digest: str = ""
    images: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True)
class GoModule(Entry):
    """A module of the Go module proxy; the digest is Go's own, `h1:`."""

    module: str
    build: Build | None = None


@dataclass(frozen=True, kw_only=True)
class Chart(Entry):
    """A Helm chart of an `https://` repository or an `oci://` registry; the digest is the SHA-256 of its archive."""

    repository: str
    chart: str


@dataclass(frozen=True, kw_only=True)
class Url(Entry):
    """One YAML file, fetched over https; the digest is its SHA-256."""

    url: str


@dataclass(frozen=True, kw_only=True)
class Wheel(Entry):
    """A package of PyPI that is installed into the cache; one digest for the wheel of each platform.

    minimum: the oldest version that will do when the machine already has the tool.
    """

    package: str
    minimum: str
    digests: tuple[str, ...]


@dataclass(frozen=True)
class Lock:
    """All entries, by name, in the order of the file."""

    path: Path
    entries: Mapping[str, Entry]

    def __getitem__(self, name: str) -> Entry:
        """Return an entry. Raises InputError when there is none of that name."""
        if name not in self.entries:
            hint = nearest(name, self.entries) or f"entries: {listed(self.entries, 30)}"
            raise InputError(Problem("no such source", Origin(self.path.name), name, hint))
        return self.entries[name]

    def builder(self, binary: str) -> GoModule:
        """Return the entry that a binary is built from. Raises InputError when none names it."""
        builds = {name: entry for entry in self.go_modules() if entry.build for name in entry.build.binaries}
        if binary not in builds:
            hint = nearest(binary, builds) or f"binaries: {listed(builds, 30)}"
            raise InputError(Problem("no source builds this binary", Origin(self.path.name), binary, hint))
        return builds[binary]

    def go_modules(self) -> list[GoModule]:
        return [entry for entry in self.entries.values() if isinstance(entry, GoModule)]


def read_lock(path: Path) -> Lock:
    """Read a lock file. Raises InputError with everything that is wrong with it."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(Problem("cannot read the lock file", Origin(str(path)), detail=str(error.strerror))) from error
    data, lines = read_settings(text, path.name)
    problems: list[Problem] = []
    entries: dict[str, Entry] = {}
    for name, value in data.items():
        try:
            entries[name] = _entry(name, _Place((name,), value, path.name, lines))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return Lock(path, entries)


class _Place(NamedTuple):
    """A value of the file and where it stands."""

    path: FieldPath
    value: Any
    file: str
    lines: Lines

    @property
    def field(self) -> str:
        return field_name(self.path)

    @property
    def origin(self) -> Origin:
        return Origin(self.file, self.lines.get(self.path, 0))

    def child(self, key: str | int) -> _Place:
        return _Place((*self.path, key), self.value[key], self.file, self.lines)

    def refuse(self, title: str, detail: str, fix: str = "") -> InputError:
        return InputError(Problem(title, self.origin, self.field, detail, fix))


Read = Callable[[_Place], Any]


def _text(place: _Place) -> str:
    if isinstance(place.value, str) and place.value:
        return place.value
    quotes = isinstance(place.value, (int, float))
    raise place.refuse("wrong type", f"{place.value!r}; text is needed", "write it in quotes" if quotes else "")


def _digest(form: str, example: str) -> Read:
    def read(place: _Place) -> str:
        text = _text(place)
        if not re.fullmatch(form, text):
            fix = f"gpuyard sources lock {place.path[0]}" if place.path[-1] == "digest" else ""
            raise place.refuse("bad digest", f"{text}; {example} are needed", fix)
        return text

    return read


_h1 = _digest(r"h1:[A-Za-z0-9+/]{43}=", "h1: and 44 characters of base64")
_sha256 = _digest(r"sha256:[0-9a-f]{64}", "sha256: and 64 hexadecimal digits")


def _require_map(place: _Place) -> None:
    if not is_map(place.value):
        raise place.refuse("wrong type", f"{place.value!r}; a map is needed")


def _texts(place: _Place) -> dict[str, str]:
    _require_map(place)
    return {key: _text(place.child(key)) for key in place.value}


def _list(read: Read) -> Read:
    def read_list(place: _Place) -> tuple[str, ...]:
        if not is_list(place.value):
            raise place.refuse("wrong type", f"{place.value!r}; a list is needed")
        return tuple(read(place.child(index)) for index in range(len(place.value)))

    return read_list


def _address(*schemes: str) -> Read:
    def read(place: _Place) -> str:
        text = _text(place)
        # A plain connection inside this machine can be listened to by nobody: tests and local mirrors use it.
        if not text.startswith(schemes) and not re.match(r"http://(localhost|127\.0\.0\.1)[:/]", text):
            raise place.refuse("bad address", f"{text}; it must start with {' or '.join(schemes)}")
        return text.rstrip("/")

    return read


def _build(place: _Place) -> Build:
    return Build(**_fields(place, {"binaries": _texts}, {"replace": _texts, "staging": _text, "stamp": _list(_text)}))


_ADDRESS = _address("https://", "oci://")
_KINDS: dict[str, tuple[type[Entry], dict[str, Read], dict[str, Read]]] = {
    "go": (GoModule, {"module": _text}, {"digest": _h1, "build": _build}),
    "chart": (Chart, {"repository": _ADDRESS, "chart": _text}, {"digest": _sha256}),
    "url": (Url, {"url": _address("https://")}, {"digest": _sha256}),
    "pypi": (Wheel, {"package": _text, "minimum": _text, "digests": _list(_sha256)}, {}),
}
"""Kind -> its class, the fields that it needs and the fields that it may have, beside version and images."""


def _entry(name: str, place: _Place) -> Entry:
    _require_map(place)
    if "kind" not in place.value:
        raise place.refuse("missing field", f"{name} needs kind", f"add kind: {' | '.join(_KINDS)}")
    kind = place.child("kind")
    if kind.value not in _KINDS:
        raise kind.refuse(
            "unknown value", f"{kind.value}; accepted: {', '.join(_KINDS)}", nearest(str(kind.value), _KINDS)
        )
    made, needed, optional = _KINDS[kind.value]
    values = _fields(place, {"kind": _text, "version": _text, **needed}, {"images": _texts, **optional})
    del values["kind"]
    return made(name=name, origin=place.origin, **values)


def _fields(place: _Place, needed: Mapping[str, Read], optional: Mapping[str, Read]) -> dict[str, Any]:
    """Return the values of a map's fields. Raises InputError with all that are unknown, missing or malformed."""
    _require_map(place)
    accepted = {**needed, **optional}
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for key in place.value:
        child = place.child(key)
        if key not in accepted:
            hint = nearest(key, accepted) or f"accepted: {listed(accepted, 30)}"
            problems.append(Problem("unknown field", child.origin, child.field, hint))
            continue
        try:
            values[key] = accepted[key](child)
        except InputError as error:
            problems += error.problems
    for key in needed:
        if key not in place.value:
            where = f"{place.field}.{key}"
            problems.append(Problem("missing field", place.origin, where, f"{place.field} needs {key}", f"add {key}:"))
    if problems:
        raise InputError(problems)
    return values


def unlocked(entry: Entry) -> InputError:
    """Return the error for an entry that has no digest yet."""
    return InputError(
        Problem(
            "source without a digest",
            entry.origin,
            entry.name,
            f"nothing says which {entry.version} is the right one",
            f"gpuyard sources lock {entry.name}, which downloads it once and records its digest",
        )
    )


def wrong_digest(entry: Entry, what: str, found: str) -> InputError:
    """Return the error for a download that is not what the lock file names."""
    return InputError(
        Problem(
            "wrong digest",
            entry.origin,
            entry.name,
            f"{what}\nexpected {entry.digest}\nfound    {found}",
            f"find out why it changed; if the change is right, gpuyard sources lock {entry.name}",
        )
    )


def with_digest(lock: Lock, text: str, name: str, digest: str) -> str:
    """Return the text of the lock file in which one entry has this digest; every other character stays.

    Raises InputError when the entry is written in a way that this cannot edit.
    """
    before, places = read_settings(text, lock.path.name)
    lines = text.split("\n")
    at = places[name, "digest" if "digest" in before[name] else "version"] - 1
    if "digest" in before[name]:
        lines[at] = lines[at].replace(before[name]["digest"], digest)
    else:
        indent = lines[at][: -len(lines[at].lstrip())]
        lines.insert(at + 1, f"{indent}digest: {digest}")
    after = "\n".join(lines)
    expected = {**before, name: {**before[name], "digest": digest}}
    if not _says(after, lock.path.name, expected):
        raise InputError(
            Problem("cannot edit this entry", lock[name].origin, name, fix=f"write it yourself: digest: {digest}")
        )
    return after


def _says(text: str, file: str, expected: dict[str, Any]) -> bool:
    try:
        return read_settings(text, file)[0] == expected
    except InputError:
        return False
