"""YAML and JSON out: plain data in, the same bytes for the same data, and kubectl reads back what was written.

No YAML library on PyPI writes every string so that kubectl reads the same string again. Here a string stands unquoted
only when no reader of YAML 1.1 or 1.2 can take it for anything else.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from sys import getrefcount
from typing import Any

# A word, then characters that mean nothing to YAML; a colon or a space only with such a character behind it.
_PLAIN = re.compile(r"[A-Za-z_/](?:[: ]?[A-Za-z0-9_./@=+,-])*")
_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity"])
# What a file may not hold, and what some reader takes for the end of a line; JSON escapes only what is below U+0020.
_ODD = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# What would not come back from `|`: odd characters, and lines of blanks, which readers strip or take for indentation.
_NO_BLOCK = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|\n[ \t]+(?:\n|\\Z)"
)
# YAML readers look for the colon of `key: value` within 1024 characters; a longer key is written as `? key`.
_LONGEST_KEY = 500

# A value with more is a part of several objects, most likely; what is written is the same either way.
_ALONE: dict[str, dict[str, str]] = {"": {}}
_ONE_MAP = max([getrefcount(child) for _, child in _ALONE.items()])
_ONE_LIST = max([getrefcount(child) for child in [_ALONE[""].copy()]])
_MOST_SHARED = 1000

# `type` with a result that the type checker can compare.
_class_of: Callable[[object], object] = type
_quote = json.JSONEncoder(ensure_ascii=False).encode


def to_yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return the documents as YAML, in the order of their keys, the way kubectl indents it.

    Accepts what JSON can hold: dict with str keys, list, str, int, float, bool and None, each exactly of that type.
    Raises TypeError for anything else, ValueError for numbers and text that JSON cannot hold.
    """
    return "---\n".join(each_yaml(documents))


def each_yaml(documents: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each document as YAML, see `to_yaml`; ten thousand of them at once are a lot of memory."""
    texts, keys = _Texts(), _Keys()
    pieces: list[str] = []
    write = pieces.append
    # Parts that several objects hold are one object, and written once for each place they stand at. They are kept, or
    # an id could be another's.
    shared: dict[str, dict[int, tuple[object, str]]] = {}

    def write_shared(value: Any, lead: str, indent: str, known: dict[int, tuple[object, str]]) -> None:
        start = len(pieces)
        write_value(value, lead, indent)
        text = "".join(pieces[start:])
        pieces[start:] = (text,)
        if len(known) > _MOST_SHARED:
            known.clear()
        known[id(value)] = value, text

    def write_value(value: Any, lead: str, indent: str) -> None:
        if _class_of(value) is dict:
            write_map(value, lead, indent)
        else:
            write_list(value, lead, indent)

    def write_map(value: Mapping[str, Any], lead: str, indent: str) -> None:
        for key, child in value.items():
            head = keys[key] or f"? {_quoted(key)}\n{indent}:"
            kind = _class_of(child)
            if kind is str:
                write(f"{lead}{head} {texts[child] or _block(child, indent)}\n")
            elif (kind is dict or kind is list) and child:
                write(f"{lead}{head}\n")
                inner = indent + "  " if kind is dict else indent
                if getrefcount(child) > _ONE_MAP:
                    known = shared.get(inner) or shared.setdefault(inner, {})
                    if it := known.get(id(child)):
                        write(it[1])
                    else:
                        write_shared(child, inner, inner, known)
                else:
                    write_value(child, inner, inner)
            else:
                write(f"{lead}{head} {_small(child)}\n")
            lead = indent

    def write_list(value: list[Any], lead: str, indent: str) -> None:
        inner, dash = indent + "  ", f"{indent}- "
        known = shared.get(dash) or shared.setdefault(dash, {})
        for child in value:
            kind = _class_of(child)
            if kind is str:
                write(f"{lead}- {texts[child] or _block(child, indent)}\n")
            elif kind is dict and child:
                if lead is not indent or getrefcount(child) <= _ONE_LIST:
                    write_map(child, f"{lead}- ", inner)
                elif it := known.get(id(child)):
                    write(it[1])
                else:
                    write_shared(child, dash, inner, known)
            elif kind is list and child:
                write_list(child, f"{lead}- ", inner)
            else:
                write(f"{lead}- {_small(child)}\n")
            lead = indent

    for document in documents:
        if document:
            write_map(document, "", "")
        else:
            write("{}\n")
        yield "".join(pieces)
        pieces.clear()


def to_json(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return the documents as one JSON array, one document a line."""
    encode = json.JSONEncoder(allow_nan=False).encode
    lines = ",\n".join(encode(document) for document in documents)
    return f"[\n{lines}\n]\n" if lines else "[]\n"


class _Texts(dict[str, str]):
    """One-line forms of strings, each worked out once; "" stands for a block scalar."""

    def __missing__(self, text: str) -> str:
        is_block = "\n" in text and text[0] not in " \t\n" and not _NO_BLOCK.search(text)
        return self.setdefault(text, "" if is_block else _one_line(text))


class _Keys(dict[str, str]):
    """Keys with their colon, each worked out once; "" stands for one that is too long for that."""

    def __missing__(self, key: str) -> str:
        if type(key) is not str:
            raise TypeError(f"a key is {type(key).__name__} {key!r}; keys of manifests are str")
        text = _one_line(key)
        return self.setdefault(key, f"{text}:" if len(text) <= _LONGEST_KEY else "")


def _one_line(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else _quoted(text)


def _quoted(text: str) -> str:
    if _SURROGATE.search(text):
        raise ValueError(f"half of a surrogate pair is no text: {text[:80]!r}")
    return _ODD.sub(lambda odd: f"\\u{ord(odd[0]):04x}", _quote(text))


def _block(text: str, indent: str) -> str:
    """Return `|` and the lines, without the last line break; the sign after it says how many of those the text has."""
    body = text[:-1] if text.endswith("\n") else text
    chomping = "-" if body is text else "+" if body.endswith("\n") else ""
    lines = body.split("\n")
    return f"|{chomping}\n" + "\n".join(f"{indent}  {line}" if line else "" for line in lines)


def _small(value: object) -> str:
    """Return a value that is no string, and no map or list with content."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    kind = type(value)
    if kind is int:
        return str(value)
    if isinstance(value, float) and kind is float:
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number that JSON can hold")
        # To YAML 1.1, a number with an exponent has a point: 1e-07 would be text.
        mantissa, sign, exponent = repr(value).partition("e")
        return f"{mantissa}.0e{exponent}" if sign and "." not in mantissa else repr(value)
    if kind is dict:
        return "{}"
    if kind is list:
        return "[]"
    raise TypeError(f"a value is {kind.__name__} {value!r}; manifests hold dict, list, str, int, float, bool and None")
