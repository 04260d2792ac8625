"""Runs the command line in a process of its own, as a person does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def gpuyard(
    *arguments: str, cwd: Path = ROOT, seed: str = "0", cache: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `gpuyard` with the arguments and return what it printed and its exit code. cache: one of its own."""
    command = [sys.executable, "-c", "from gpuyard.cli import main; main()", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": seed, "COLUMNS": "200"}
    environment |= {"GPUYARD_CACHE": str(cache)} if cache else {}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment, check=False)
