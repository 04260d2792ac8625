"""What PyYAML says about broken YAML, turned into one clear sentence and a way out."""

from __future__ import annotations

import re

from yaml.error import MarkedYAMLError

from gpuyard.errors import Origin, Problem

_BREAKS = "\r\n|[\r\n\x85\u2028\u2029]"

# By a part of libyaml's message: what is wrong, what to do, and whether the place to look at is where it began.
# {line} is the line where it began, {word} the text at the place that libyaml names.
_EXPLANATIONS: tuple[tuple[str, str, str, bool], ...] = (
    (
        "mapping values are not allowed",
        "a `key: value` pair cannot stand here",
        "check the indentation of this line and the one before, or put a value that holds `: ` in quotes",
        False,
    ),
    (
        "block sequence entries are not allowed",
        "a list item cannot stand here",
        "start the list on a line of its own",
        False,
    ),
    ("cannot start any token", "`{word}` cannot start a value", "put the value in quotes", False),
    ("expected ',' or ']'", "the list that starts with `[` on line {line} is not closed", "close it with `]`", True),
    ("expected ',' or '}'", "the map that starts with `{{` on line {line} is not closed", "close it with `}}`", True),
    ("unexpected end of stream", "the quote that opens on line {line} is not closed", "close it", True),
    (
        "expected key",
        "this line does not continue the map that starts on line {line}",
        "indent it like the keys of that map, and check the quotes before it",
        False,
    ),
    (
        "expected '-' indicator",
        "this line does not continue the list that starts on line {line}",
        "start it with `- `, or check its indentation",
        False,
    ),
    (
        "could not find expected ':'",
        "line {line} has a key without `:`",
        "write `key: value`, with a space after the colon",
        True,
    ),
    (
        "unknown escape character",
        "a backslash in double quotes starts an escape that YAML does not know",
        "use single quotes, or write two backslashes",
        False,
    ),
    (
        "Unicode character escape",
        "an escape in double quotes names no Unicode character",
        "write the character itself",
        False,
    ),
    (
        "undefined alias",
        "`{word}` names an anchor that is not defined before it",
        "define the anchor first, or put the value in quotes",
        False,
    ),
    ("second occurrence", "an anchor is defined twice, first on line {line}", "give each anchor its own name", False),
    ("expected node content", "a value is missing here", "write one, or put the value in quotes", False),
    (
        "expected <document start>",
        "this line belongs to nothing before it",
        "indent it like the first line of the file",
        False,
    ),
)


def syntax_problem(error: MarkedYAMLError, text: str, file: str) -> Problem:
    """Return the problem behind a syntax error, with the line where a person should look."""
    problem = error.problem or "this is not YAML"
    place = error.problem_mark or error.context_mark
    line, column = (place.line, place.column) if place else (0, 0)
    began = error.context_mark.line if error.context_mark else line
    lines = re.split(_BREAKS, text.rstrip("\r\n"))
    # What is missing at the end of the file is missing after its last line.
    line = min(line, len(lines) - 1)
    source = lines[line]
    if "tab character" in problem or source[column : column + 1] == "\t":
        return Problem(
            "tab used for indentation",
            Origin(file, line + 1),
            detail="YAML indents with spaces only",
            fix="replace the tab by spaces",
        )
    for part, detail, fix, at_start in _EXPLANATIONS:
        if part in problem:
            word = re.match(r"\*\S+|.?", source[column:])
            names = {"line": began + 1, "word": word[0] if word else ""}
            shown = (began if at_start else line) + 1
            return Problem(
                "not valid YAML", Origin(file, shown), detail=detail.format(**names), fix=fix.format(**names)
            )
    context = f" {error.context}" if error.context else ""
    return Problem(
        "not valid YAML",
        Origin(file, line + 1),
        detail=f"{problem}{context}",
        fix="check this line and the ones before it",
    )
