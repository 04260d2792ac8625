"""Runs the command line in a process of its own, as a person does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def gpuyard(*arguments: str, cwd: Path = ROOT, seed: str = "0") -> subprocess.CompletedProcess[str]:
    """Run `gpuyard` with the arguments and return what it printed and its exit code."""
    command = [sys.executable, "-c", "from gpuyard.cli import main; main()", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": seed, "COLUMNS": "200"}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment, check=False)
