"""What every test may count on: the pinned sources are in the cache."""

from __future__ import annotations

import pytest

from gpuyard.sources import read_lock
from gpuyard.sources.pull import pull
from infra import assemble


@pytest.fixture(scope="session", autouse=True)
def pinned_sources() -> None:
    """Pull what the components read, once; a source that nobody has recorded a digest of cannot be had."""
    lock = read_lock(assemble.LOCK)
    pull(lock, [name for name in assemble.source_names() if lock[name].digest])
