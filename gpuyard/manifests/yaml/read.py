"""YAML in, with line numbers: manifests as kubectl reads them, and the files that users write, more strictly.

Both accept JSON, which is YAML.
"""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn, TypeAlias

from yaml._yaml import CParser
from yaml.error import MarkedYAMLError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests.yaml.scalars import Scalar, readings, resolve_as_kubectl, resolve_unambiguous
from gpuyard.manifests.yaml.syntax import syntax_problem

Path: TypeAlias = tuple[str | int, ...]
Lines: TypeAlias = dict[Path, int]
"""The line of every value by its path: of its key in a map, of the item in a list; () is the top."""

MAX_BYTES = 10 * 2**20
MAX_DEPTH = 100
MAX_VALUES = 1_000_000
"""Of one document, counted after aliases are expanded."""
MAX_PROBLEMS = 100
"""What one message names at most."""

# What libyaml refuses; it would name the position in bytes, not the line. `re` compiles each when it is first used: the
# second takes as long as to read ten files, and few files have more than ASCII.
_ASCII_CONTROL = "[^\t\n\r\x20-\x7e]"
_CONTROL = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
_TAG = "tag:yaml.org,2002:"
_RESOLVED_TAGS = frozenset(_TAG + name for name in ("int", "float", "bool", "null"))


def read_documents(text: str | bytes, file: str) -> list[dict[str, Any]]:
    """Return the maps of a multi-document file as kubectl reads scalars and keys. Empty documents are left out.

    Raises InputError for what is not YAML, for a document that is not a map, and for duplicate keys.
    """
    parser = _Parser(_decode(text, file), file)
    documents: list[dict[str, Any]] = []
    while (node := parser.next_document()) is not None:
        if _is_empty(node):
            continue
        builder = _Builder(file)
        value = builder.value(node, ())
        if not isinstance(value, dict):
            _refuse(
                "not a map",
                file,
                node,
                "",
                f"the document is {_kind(node)}; a Kubernetes object is a map with apiVersion and kind",
            )
        builder.raise_problems()
        documents.append(value)  # pyright: ignore[reportUnknownArgumentType] - built from YAML, keys are strings
    return documents


def read_settings(text: str | bytes, file: str) -> tuple[dict[str, Any], Lines]:
    """Return the one map of a file that a user wrote, and the line of each of its values.

    Raises InputError with all problems for duplicate keys, keys that are not text, tags, and unquoted values that YAML
    readers understand differently; with the first problem for what cannot be read at all or is not one map.
    """
    if len(text) > MAX_BYTES:
        raise InputError(
            Problem(
                "file too large",
                Origin(file, 1),
                detail=f"{len(text) / 2**20:.1f} MiB; at most {MAX_BYTES // 2**20} MiB",
                fix="split it into several files",
            )
        )
    parser = _Parser(_decode(text, file), file)
    node = parser.next_document()
    if node is None or _is_empty(node):
        raise InputError(
            Problem(
                "empty file",
                Origin(file, 1),
                detail="a map of `key: value` lines is expected",
                fix="write it, or delete the file",
            )
        )
    if not isinstance(node, MappingNode):
        _refuse(
            "not a map",
            file,
            node,
            "",
            f"the file is {_kind(node)}; a map of `key: value` lines is expected",
            "start with a key",
        )
    second = parser.next_document()
    if second is not None:
        _refuse(
            "several documents in one file", file, second, "",
            "a second document starts here; one file is one map", "move it to a file of its own",
        )  # fmt: skip
    builder = _SettingsBuilder(file)
    builder.lines[()] = _line(node)
    value: dict[str, Any] = builder.value(node, ())
    builder.raise_problems()
    return value, builder.lines


def field_name(path: Path) -> str:
    """Return a path as a person writes it: `pools.h100.taints[0].key`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


class _Parser(CParser):
    """Composes nodes, with no tags but those that were written.

    PyYAML composes by recursion in C, which deep nesting would crash: its hook for each level bounds that.
    """

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text)
        self._text, self._file, self._depth = text, file, 0

    def next_document(self) -> Node | None:
        """Return the next document, or None at the end of the file."""
        try:
            return self.get_node() if self.check_node() else None
        except MarkedYAMLError as error:
            raise InputError(syntax_problem(error, self._text, self._file)) from error

    def resolve(self, kind: type[Node], value: str | None, implicit: Any) -> str:
        return ""

    def descend_resolver(self, parent: Node | None, index: Any) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH and parent is not None:
            _refuse_depth(self._file, parent, "")

    def ascend_resolver(self) -> None:
        self._depth -= 1


class _Builder:
    """Makes Python values of one document's nodes, as kubectl understands them. An alias becomes a copy."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: Lines = {}
        self.problems: list[Problem] = []
        self.room = MAX_VALUES

    def raise_problems(self) -> None:
        if self.problems:
            raise InputError(self.problems)

    def add(self, title: str, node: Node, path: Path, detail: str, fix: str) -> None:
        if len(self.problems) == MAX_PROBLEMS:
            self.raise_problems()
        self.problems.append(Problem(title, Origin(self.file, _line(node)), field_name(path), detail, fix))

    def value(self, node: Node, path: Path) -> Any:
        if isinstance(node, ScalarNode):
            return self.scalar(node, path)
        if len(path) >= MAX_DEPTH:
            _refuse_depth(self.file, node, field_name(path[:3]))
        self.room -= len(node.value)
        if self.room < 0:
            _refuse(
                "too many values", self.file, node, field_name(path),
                f"more than {MAX_VALUES:,} once aliases are expanded", "write fewer aliases of aliases",
            )  # fmt: skip
        if node.tag not in ("", _TAG + ("map" if isinstance(node, MappingNode) else "seq")):
            self.unknown_tag(node, path)
        if isinstance(node, MappingNode):
            return self.mapping(node, path)
        items: list[Any] = []
        for index, child in enumerate(node.value):
            below = (*path, index)
            self.lines[below] = _line(child)
            items.append(self.value(child, below))
        return items

    def mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        own: dict[str, Any] = {}
        inherited: dict[str, Any] = {}
        first: dict[str, int] = {}
        # First, so that the lines of own keys stand over those of inherited ones.
        for key_node, child in node.value:
            if _is_merge(key_node):
                inherited = {**self.merged(child, path), **inherited}
        for key_node, child in node.value:
            if _is_merge(key_node):
                continue
            key = self.key(key_node, path)
            if key is None:
                continue
            below, line = (*path, key), _line(key_node)
            if key in first:
                lines = f"lines {first[key]} and {line}" if line != first[key] else f"both times on line {line}"
                self.add("duplicate key", key_node, below, f"`{key}` is written twice: {lines}", "keep one of them")
                continue
            first[key] = line
            self.lines[below] = line
            own[key] = self.value(child, below)
        return {**inherited, **own} if inherited else own

    def merged(self, node: Node, path: Path) -> dict[str, Any]:
        """Return what `<<` brings in: one map, or a list of maps of which the first that has a key wins."""
        if isinstance(node, MappingNode):
            return self.value(node, path)
        if not isinstance(node, SequenceNode) or not all(isinstance(child, MappingNode) for child in node.value):
            _refuse(
                "not a map", self.file, node, field_name((*path, "<<")),
                "`<<` brings in a map or a list of maps", "name an anchor that stands before a map",
            )  # fmt: skip
        found: dict[str, Any] = {}
        for child in node.value:
            for name, value in self.value(child, path).items():
                found.setdefault(name, value)
        return found

    def unknown_tag(self, node: Node, path: Path) -> None:
        self.add(
            "unknown tag",
            node,
            path,
            f"`{_tag(node)}` is no tag that Kubernetes files use",
            "write the value without the tag",
        )

    def scalar(self, node: ScalarNode, path: Path) -> Scalar:
        text: str = node.value
        if node.tag and node.tag not in _RESOLVED_TAGS:
            if node.tag != _TAG + "str":
                self.unknown_tag(node, path)
            return text
        if node.style and not node.tag:
            return text
        try:
            return resolve_as_kubectl(text)
        except ValueError as error:
            self.add("not a number", node, path, f"`{text}` {error}", f'write "{text}" in quotes')
            return text

    def key(self, node: Node, path: Path) -> str | None:
        """Return a key as kubectl names it: `1:` is "1" and `on:` is "true"."""
        value = self.scalar(node, path) if isinstance(node, ScalarNode) else None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, str):
            return value
        self.refuse_key(node, path)
        return None

    def refuse_key(self, node: Node, path: Path) -> None:
        if not isinstance(node, ScalarNode):
            self.add(
                "key is not text", node, path, f"the key is {_kind(node)}; keys are text", "write a word as the key"
            )
            return
        text = _short(node.value)
        self.add(
            "key is not text",
            node,
            (*path, text),
            f"`{text}` is {readings(node.value)[0]}; keys are text",
            f'write "{text}" in quotes',
        )


class _SettingsBuilder(_Builder):
    """The same for what a user wrote by hand: only what all YAML readers agree on."""

    def unknown_tag(self, node: Node, path: Path) -> None:
        self.add(
            "tag", node, path, f"`{_tag(node)}` is a tag; tags are not accepted here", "write the value without the tag"
        )

    def scalar(self, node: ScalarNode, path: Path) -> Scalar:
        text: str = node.value
        if node.tag:
            self.unknown_tag(node, path)
            return text
        if node.style:
            return text
        if len(readings(text)) > 1:
            self.ambiguous("ambiguous value", node, path)
            return text
        value = resolve_unambiguous(text)
        if isinstance(value, float) and not math.isfinite(value):
            self.add(
                "not a number", node, path, f"`{text}` is no number that JSON can hold", f'write "{text}" in quotes'
            )
        return value

    def key(self, node: Node, path: Path) -> str | None:
        if not isinstance(node, ScalarNode):
            return super().key(node, path)
        if _is_plain(node):
            seen = readings(node.value)
            if len(seen) > 1:
                self.ambiguous("ambiguous key", node, (*path, _short(node.value)), is_key=True)
            elif seen != ["text"]:
                self.refuse_key(node, path)
                return None
        elif node.tag:
            self.unknown_tag(node, path)
        return node.value

    def ambiguous(self, title: str, node: ScalarNode, path: Path, *, is_key: bool = False) -> None:
        text = _short(node.value)
        first, *others = readings(node.value)
        plain = [seen for seen in (first, *others) if seen not in ("text", "a date", "an error", "the number inf")]
        self.add(
            title,
            node,
            path,
            f"`{text}` is {first} to some YAML readers and {' or '.join(others)} to others",
            f'write "{text}" in quotes' + (f", or {' or '.join(plain)}" if plain and not is_key else ""),
        )


def _decode(text: str | bytes, file: str) -> str:
    """Return the text without a byte order mark. Raises InputError for what YAML does not allow in a file."""
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            line = text.count(b"\n", 0, error.start) + 1
            raise InputError(
                Problem(
                    "not UTF-8",
                    Origin(file, line),
                    detail=f"byte 0x{text[error.start]:02x} is no UTF-8 text",
                    fix="save the file as UTF-8",
                )
            ) from error
    text = text.removeprefix("\ufeff")
    found = re.search(_ASCII_CONTROL if text.isascii() else _CONTROL, text)
    if found:
        raise InputError(
            Problem(
                "control character",
                Origin(file, text.count("\n", 0, found.start()) + 1),
                detail=f"U+{ord(found[0]):04X} is not allowed in YAML",
                fix="delete it, or write it as an escape in double quotes",
            )
        )
    return text


def _line(node: Node) -> int:
    return node.start_mark.line + 1


def _tag(node: Node) -> str:
    return str(node.tag).replace(_TAG, "!!")


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."


def _is_plain(node: ScalarNode) -> bool:
    return not node.style and not node.tag


def _is_merge(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value == "<<" and _is_plain(node)


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and _is_plain(node) and node.value == ""


def _kind(node: Node) -> str:
    if isinstance(node, ScalarNode):
        return "one value" if _is_plain(node) else "text"
    return "a map" if isinstance(node, MappingNode) else "a list"


def _refuse(title: str, file: str, node: Node, field: str, detail: str, fix: str = "") -> NoReturn:
    raise InputError(Problem(title, Origin(file, _line(node)), field, detail, fix))


def _refuse_depth(file: str, node: Node, field: str) -> NoReturn:
    _refuse(
        "nested too deeply",
        file,
        node,
        field,
        f"more than {MAX_DEPTH} levels",
        "write it flatter, without an alias inside its own anchor",
    )
