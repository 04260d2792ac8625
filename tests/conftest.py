"""What every test may count on: the pinned sources are in the cache, and Ctrl-C interrupts what a test starts."""

from __future__ import annotations

import signal

import pytest

from gpuyard.sources import read_lock
from gpuyard.sources.pull import pull
from infra import assemble


@pytest.fixture(scope="session", autouse=True)
def pinned_sources() -> None:
    """Pull what the components read, once; a source that nobody has recorded a digest of cannot be had."""
    lock = read_lock(assemble.LOCK)
    pull(lock, [name for name in assemble.source_names() if lock[name].digest])


@pytest.fixture(scope="session", autouse=True)
def interrupts() -> None:
    """A shell that runs the tests in the background lets them ignore SIGINT, and all that they start with them."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
