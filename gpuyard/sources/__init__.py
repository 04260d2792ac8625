"""Pinned upstream systems: the lock file, the cache, and what components read from it.

`gpuyard check` imports this: what fetches, builds and expands is loaded only when it is used.
"""

from gpuyard.sources.cache import Cache, OpenSource
from gpuyard.sources.lock import Lock, read_lock
from gpuyard.sources.progress import Progress

__all__ = ["Cache", "Lock", "OpenSource", "Progress", "read_lock"]
