"""Damaged inputs: a file is read, or refused with a file, a line and what is wrong; an object is checked."""

from __future__ import annotations

import copy
import random
import re
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gpuyard.errors import InputError
from gpuyard.manifests.schemas.schema import Schemas
from gpuyard.manifests.yaml.read import read_documents, read_settings
from tests.manifests.schemas import test_cel, test_places
from tests.manifests.schemas.test_kind_checks import GOOD
from tests.manifests.yaml.settings import SETTINGS

MANIFESTS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: &labels {app: a}}
data:
  lr: "1e-4"
  text: >-
    folded
    lines
---
# nothing
---
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}, "spec": {"containers": [{"ports": [80, 0o17, -1]}]}}
--- # the last
? apiVersion
: v1
kind: 'Name''space'
metadata: {labels: !!map {<<: [{a: b}]}, name: "\\u00e9\\n"}
"""
PIECES = [
    "\t", "\n", "\r\n", "  ", ":", ": ", "- ", "[", "]", "{", "}", "'", '"', "&a ", "*env", "*a", "<<: ", "!!int ",
    "!x ", "\x00", "\x85", "\u2028", "\ufeff", "é", "\U0001f600", "|", ">+\n", "#", "?", "%YAML 1.1\n", "---\n",
    "...\n", ",", "yes", "0x1F", "1e999", "-.inf", "2026-01-31", "~", "\\x", "@", "`", "[[[[[[[[", "{a: {a: {a: ",
]  # fmt: skip
BYTES = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x00", b"\x1b[31m", b"\xf4\x90\x80\x80"]
LINE = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def damaged(text: str, draw: random.Random) -> str:
    for _ in range(draw.randint(1, 4)):
        at, end = sorted(draw.choices(range(len(text) + 1), k=2))
        put = draw.choice([draw.choice(PIECES), draw.choice(PIECES), "", text[at:end]])
        text = text[:at] + put + text[draw.choice([at, at + 1, end]) :]
    return text


def damaged_bytes(text: str, draw: random.Random) -> bytes:
    data = text.encode()
    at = draw.randrange(len(data))
    return data[:at] + draw.choice(BYTES) + data[at + draw.randint(0, 3) :]


@pytest.fixture
def _no_hang() -> Iterator[None]:
    """Stop a reader that does not come back: 10,000 inputs take a few seconds."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, 300)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def check(read: Callable[[str | bytes, str], Any], text: str | bytes) -> bool:
    """Return whether an input is refused, which every one of its problems must say in full."""
    try:
        read(text, "stacks/a.yaml")
        return False
    except InputError as error:
        problems = error.problems
    lines = len(LINE.findall(text.decode(errors="replace") if isinstance(text, bytes) else text)) + 1
    for problem in problems:
        assert problem.title
        assert problem.origin
        assert problem.origin.file == "stacks/a.yaml"
        assert 1 <= problem.origin.line <= lines, text
        assert problem.detail, text
        assert problem.fix or read is read_documents, text
    return bool(problems)


@pytest.mark.usefixtures("_no_hang")
@pytest.mark.parametrize(("read", "text"), [(read_settings, SETTINGS), (read_documents, MANIFESTS)])
def test_damaged_files_are_read_or_refused_with_a_line(read: Callable[[str | bytes, str], Any], text: str):
    assert not check(read, text)
    draw = random.Random(7)
    refused = sum(check(read, damaged(text, draw)) for _ in range(4500))
    refused_bytes = sum(check(read, damaged_bytes(text, draw)) for _ in range(500))
    # Some damage does no harm, but not much of it.
    assert 1000 < refused < 4500
    assert 400 < refused_bytes <= 500


JUNK: list[Any] = [
    None, True, False, 0, -1, 1.5, 2**70, "", "x", "a: b", "\u2028", [], {}, [1], [None], [[]], [{}], {"a": 1},
    {"": None}, {"a/b/c": {}}, {"limits": [], "requests": 1}, [{"name": 1}, {"name": 1}], [{"name": []}],
    [{"name": "a"}, {"name": "a"}],
]  # fmt: skip

POD = GOOD["Pod"]["spec"] | {"imagePullSecrets": [{"name": "a"}], "ephemeralContainers": [{"name": "b", "image": "b"}]}
OBJECTS: dict[str, dict[str, Any]] = {
    **GOOD,
    "Pod": GOOD["Pod"] | {"spec": POD},
    "Ring": test_cel.ring(
        min=1,
        mode="ring",
        ratio=1,
        nodes=[{"name": "n"}],
        weights={"a": 1},
        key="YWJj",
        namespace={"namespace": {"x-y": 1}},
    ),
    "Run": {
        "apiVersion": "acme.com/v1",
        "kind": "Run",
        "metadata": {"name": "a", "labels": {"a": "b"}, "annotations": {"a": "b"}},
        "spec": {
            "replicas": {"Worker": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}}},
            "containers": POD["containers"],
            "selector": {"matchLabels": {"a": "b"}},
            "open": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}},
        },
    },
}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (map or list, key or index) of every value inside another."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in list(pairs):
        yield value, key
        yield from places(child)


@pytest.mark.usefixtures("_no_hang")
@pytest.mark.parametrize("kind", OBJECTS)
def test_damaged_objects_are_checked(kind: str):
    schemas = Schemas("1.34", [test_cel.rings(test_cel.RING), test_places.CRD])
    draw = random.Random(kind)
    wrong = 0
    for _ in range(200):
        manifest = copy.deepcopy(OBJECTS[kind])
        for _ in range(draw.randint(1, 3)):
            where, key = draw.choice([each for each in places(manifest) if each[1] not in ("apiVersion", "kind")])
            where[key] = copy.deepcopy(draw.choice(JUNK))
        wrong += bool(schemas.check(manifest))
        # The same without a schema.
        schemas.check(manifest | {"apiVersion": "acme.com/v1"})
    assert wrong > 100
