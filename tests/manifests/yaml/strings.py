"""Strings that YAML readers are known to mistake for something else, or to change."""

import json
import random
from pathlib import Path

AWKWARD: list[str] = json.loads((Path(__file__).parent / "data" / "yaml-scalars.json").read_text())

MORE = [
    "k" * 600,
    "b" * 2000 + "\nc",
    "a\n\n\nb\n\n\n",
    "#a\nb",
    "a\n#b\n",
    "a\n---\nb\n",
    "a\n\tb\n",
    "a\n \n",
    "a\n  ",
    "\n",
    "\n\n",
    "a:\nb",
    "\u00a0x\ny",
    "x\u2029y\nz",
    "\ufeffx",
    "\uffff",
    "\U0001ffff",
]


def invented(count: int) -> list[str]:
    """Return strings of the characters that carry a meaning in YAML, the same ones at every run."""
    draw = random.Random(1)
    alphabet = "aeEyYnNoxbT019._+-~=<:#,!&*?|>@`%{}[]\"'\\ \t\n\r\u0085\u00a0\u2028\u00e9\U0001f600"
    return ["".join(draw.choices(alphabet, k=draw.randint(1, 12))) for _ in range(count)]
