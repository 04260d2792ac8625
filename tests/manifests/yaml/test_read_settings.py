"""What a person reads when a file of theirs is no good: every message in full."""

import subprocess
import sys

import pytest

from gpuyard.errors import InputError
from gpuyard.manifests.yaml.read import MAX_BYTES, read_settings
from tests.manifests.yaml.settings import SETTINGS


def problem(text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        read_settings(text, "team.yaml")
    return str(caught.value)


def test_values_and_lines():
    value, lines = read_settings(SETTINGS, "team.yaml")
    assert value == {
        "name": "vision",
        "members": {"admin": ["vision-leads"], "member": ["vision"]},
        "quota": {"h100": 64, "on": 1.5},
        "jobs": [
            {"name": "a", "command": ["torchrun", "12:30:45"]},
            {"name": "b", "env": {"HOME": "/home", "EMPTY": None}},
            {"name": "c", "env": {"HOME": "/home", "EMPTY": None}, "image": "a"},
        ],
        "script": "set -e\necho tab\n",
    }
    assert lines[()] == 2
    assert lines["members", "admin", 0] == 3
    assert lines["quota",] == 4
    assert lines["quota", "on"] == 6
    assert lines["jobs", 1] == 10
    assert lines["jobs", 1, "env"] == 11
    assert lines["jobs", 2, "env", "HOME"] == 12


def test_a_key_has_the_line_of_its_name_even_when_its_value_starts_later():
    assert read_settings("a:\n\n  - b\n  -\n    c: 1\n", "x.yaml")[1] == {
        (): 1,
        ("a",): 1,
        ("a", 0): 3,
        ("a", 1): 5,
        ("a", 1, "c"): 5,
    }


def test_json_and_a_byte_order_mark():
    assert read_settings(b'\xef\xbb\xbf{\n\t"a": [1, true, null]\n}\n', "x.json") == (
        {"a": [1, True, None]},
        {(): 1, ("a",): 2, ("a", 0): 2, ("a", 1): 2, ("a", 2): 2},
    )


EMPTY = (
    "error  empty file\n  team.yaml:1\n  a map of `key: value` lines is expected\n  fix: write it, or delete the file"
)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n", "---\n# nothing\n...\n"])
def test_empty(text: str):
    assert problem(text) == EMPTY


@pytest.mark.parametrize(
    ("text", "line", "kind"),
    [("\n- a\n", 2, "a list"), ("vision\n", 1, "one value"), ('"a: b"\n', 1, "text"), ("~\n", 1, "one value")],
)
def test_not_a_map(text: str, line: int, kind: str):
    assert problem(text) == (
        f"error  not a map\n  team.yaml:{line}\n  the file is {kind}; a map of `key: value` lines is expected\n"
        "  fix: start with a key"
    )


def test_several_documents():
    assert problem("a: 1\n---\nb: 2\n") == (
        "error  several documents in one file\n  team.yaml:3\n  a second document starts here; one file is one map\n"
        "  fix: move it to a file of its own"
    )


@pytest.mark.parametrize(
    ("text", "line"), [("a:\n\tb: 1\n", 2), ("\ta: 1\n", 1), ("a:\n  b: 1\n\tc: 2\n", 3), ("a: |\n\tb\n", 2)]
)
def test_tabs(text: str, line: int):
    assert problem(text) == (
        f"error  tab used for indentation\n  team.yaml:{line}\n  YAML indents with spaces only\n"
        "  fix: replace the tab by spaces"
    )


def test_duplicate_keys_are_all_named():
    assert problem("a: 1\nb: {c: 1, c: 2}\na: 2\n") == (
        "error  duplicate key\n  team.yaml:2   b.c\n  `c` is written twice: both times on line 2\n"
        "  fix: keep one of them\n\n"
        "error  duplicate key\n  team.yaml:3   a\n  `a` is written twice: lines 1 and 3\n  fix: keep one of them"
    )


@pytest.mark.parametrize(
    ("text", "field", "detail", "fix"),
    [
        ("1: a", "1", "`1` is the number 1; keys are text", 'write "1" in quotes'),
        ("true: a", "true", "`true` is true; keys are text", 'write "true" in quotes'),
        ("a: {~: b}", "a.~", "`~` is empty; keys are text", 'write "~" in quotes'),
        ("? [a]\n: b", "", "the key is a list; keys are text", "write a word as the key"),
        ("? {a: b}\n: b", "", "the key is a map; keys are text", "write a word as the key"),
    ],
)
def test_keys_that_are_not_text(text: str, field: str, detail: str, fix: str):
    place = f"team.yaml:1   {field}" if field else "team.yaml:1"
    assert problem(text) == f"error  key is not text\n  {place}\n  {detail}\n  fix: {fix}"


@pytest.mark.parametrize(
    ("value", "meaning", "other", "instead"),
    [
        ("y", "true", "text", ", or true"),
        ("No", "false", "text", ", or false"),
        ("on", "true", "text", ", or true"),
        ("1e3", "the number 1000", "text", ", or the number 1000"),
        ("0o14", "the number 12", "text", ", or the number 12"),
        ("014", "the number 12", "the number 14", ", or the number 12 or the number 14"),
        ("08", "the number 8", "text", ", or the number 8"),
        ("0b11", "the number 3", "text", ", or the number 3"),
        ("1_000", "the number 1000", "text", ", or the number 1000"),
        ("12:30:45", "the number 45045", "text", ", or the number 45045"),
        ("2024-01-01", "a date", "text", ""),
        ("=", "an error", "text", ""),
        ("12e5432", "the number inf", "text", ""),
    ],
)
def test_ambiguous_values(value: str, meaning: str, other: str, instead: str):
    assert problem(f"jobs:\n- time: {value}\n") == (
        f"error  ambiguous value\n  team.yaml:2   jobs[0].time\n"
        f"  `{value}` is {meaning} to some YAML readers and {other} to others\n"
        f'  fix: write "{value}" in quotes{instead}'
    )


def test_ambiguous_keys():
    assert problem("quota:\n  on: 1\n") == (
        "error  ambiguous key\n  team.yaml:2   quota.on\n"
        "  `on` is true to some YAML readers and text to others\n"
        '  fix: write "on" in quotes'
    )


@pytest.mark.parametrize(
    "value", ["-3", "1.34", "0x1f", "True", "null", '"12:30:45"', "'y'", "10.0.0.0/16", "64Gi", "5m"]
)
def test_what_all_readers_agree_on_is_accepted(value: str):
    assert list(read_settings(f"a: {value}\n", "team.yaml")[0]) == ["a"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a: .inf\n",
            'not a number\n  team.yaml:1   a\n  `.inf` is no number that JSON can hold\n  fix: write ".inf" in quotes',
        ),
        (
            "a: !!str 1\n",
            "tag\n  team.yaml:1   a\n  `!!str` is a tag; tags are not accepted here\n"
            "  fix: write the value without the tag",
        ),
        (
            "a: {<<: 3}\n",
            "not a map\n  team.yaml:1   a.<<\n  `<<` brings in a map or a list of maps\n"
            "  fix: name an anchor that stands before a map",
        ),
        (
            "a: ü\nb: x\x9b0m\n",
            "control character\n  team.yaml:2\n  U+009B is not allowed in YAML\n"
            "  fix: delete it, or write it as an escape in double quotes",
        ),
        (
            "a: 1\nb: x\x1b[0m\n",
            "control character\n  team.yaml:2\n  U+001B is not allowed in YAML\n"
            "  fix: delete it, or write it as an escape in double quotes",
        ),
        (
            b"a: 1\nb: \xff\n",
            "not UTF-8\n  team.yaml:2\n  byte 0xff is no UTF-8 text\n  fix: save the file as UTF-8",
        ),
        (
            b"#" * (MAX_BYTES + 1),
            "file too large\n  team.yaml:1\n  10.0 MiB; at most 10 MiB\n  fix: split it into several files",
        ),
        (
            "a: " + "[" * 200_000,
            "nested too deeply\n  team.yaml:1\n  more than 100 levels\n"
            "  fix: write it flatter, without an alias inside its own anchor",
        ),
        (
            "a: &a [*a]\n",
            "nested too deeply\n  team.yaml:1   a[0][0]\n  more than 100 levels\n"
            "  fix: write it flatter, without an alias inside its own anchor",
        ),
    ],
    ids=["infinity", "tag", "merge", "wide control", "control", "bytes", "size", "depth", "cycle"],
)
def test_what_is_refused_for_another_reason(text: str | bytes, said: str):
    assert problem(text) == f"error  {said}"


def test_an_alias_bomb_is_an_error():
    layers = [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 12)]
    said = problem("\n".join(["l0: &l0 [x]", *layers]))
    assert said.startswith("error  too many values\n  team.yaml:")
    assert said.endswith("more than 1,000,000 once aliases are expanded\n  fix: write fewer aliases of aliases")


@pytest.mark.parametrize(
    ("text", "line", "detail", "fix"),
    [
        ("a: b: c\n", 1, "a `key: value` pair cannot stand here",
         "check the indentation of this line and the one before, or put a value that holds `: ` in quotes"),
        ("a: - b\n", 1, "a list item cannot stand here", "start the list on a line of its own"),
        ("a: 1\nb: @x\n", 2, "`@` cannot start a value", "put the value in quotes"),
        ("x: 1\na: [1,\n  2\nb: 3\n", 2, "the list that starts with `[` on line 2 is not closed", "close it with `]`"),
        ("a: {x: 1\n\n", 1, "the map that starts with `{` on line 1 is not closed", "close it with `}`"),
        ("a: 'x\nb: 1\nc: 2\n", 1, "the quote that opens on line 1 is not closed", "close it"),
        ("a:\n  b: 1\n c: 2\n", 3, "this line does not continue the map that starts on line 1",
         "indent it like the keys of that map, and check the quotes before it"),
        ("- a\nb: 1\n", 2, "this line does not continue the list that starts on line 1",
         "start it with `- `, or check its indentation"),
        ("a: 1\nb\nc: 2\n", 2, "line 2 has a key without `:`", "write `key: value`, with a space after the colon"),
        ('a: "C:\\q"\n', 1, "a backslash in double quotes starts an escape that YAML does not know",
         "use single quotes, or write two backslashes"),
        ('a: "\\ud83d"\n', 1, "an escape in double quotes names no Unicode character", "write the character itself"),
        ("a: *nope\n", 1, "`*nope` names an anchor that is not defined before it",
         "define the anchor first, or put the value in quotes"),
        ("a: &x 1\nb: &x 2\n", 2, "an anchor is defined twice, first on line 1", "give each anchor its own name"),
        ("a: ]\n", 1, "a value is missing here", "write one, or put the value in quotes"),
        ("  a: 1\n b: 2\n", 2, "this line belongs to nothing before it", "indent it like the first line of the file"),
        ("a: 1\nb: [", 2, "a value is missing here", "write one, or put the value in quotes"),
        ("%x\na: 1\n", 1, "found unknown directive name while scanning a directive",
         "check this line and the ones before it"),
    ],
)  # fmt: skip
def test_syntax_errors(text: str, line: int, detail: str, fix: str):
    assert problem(text) == f"error  not valid YAML\n  team.yaml:{line}\n  {detail}\n  fix: {fix}"


def test_reading_imports_yaml_and_no_other_package():
    code = (
        "import sys, yaml; old = set(sys.modules); import gpuyard.manifests.yaml.read; print(*(set(sys.modules) - old))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages = {name.partition(".")[0] for name in run.stdout.split()}
    assert packages - set(sys.stdlib_module_names) == {"gpuyard"}
