"""The pinned sources as components read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Manifest
from gpuyard.sources.lock import Chart, Entry, GoModule, Lock, Url, unlocked
from gpuyard.sources.progress import Progress, quiet
from gpuyard.sources.store import file_of, module_dir, state

if TYPE_CHECKING:
    from gpuyard.sources.charts import Expansion


class Cache:
    """Every source of a lock file that is in the cache."""

    def __init__(self, lock: Lock, progress: Progress = quiet) -> None:
        self.lock = lock
        self.progress = progress

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return those of the names whose source is not in the cache, in the given order."""
        return [name for name in names if state(self.lock[name]) != "ready"]

    def open(self, name: str) -> OpenSource:
        """Return a source that is in the cache. Raises InputError when it is not."""
        entry = self.lock[name]
        now = state(entry)
        if now == "no digest":
            raise unlocked(entry)
        if now != "ready":
            raise InputError(
                Problem("source not in the cache", entry.origin, name, entry.version, f"gpuyard sources pull {name}")
            )
        return OpenSource(self, entry)

    def pin(self, name: str) -> Entry:
        """Return what is locked of a source, whether or not it is in the cache."""
        return self.lock[name]


class OpenSource:
    """An upstream system at its locked version."""

    def __init__(self, cache: Cache, entry: Entry) -> None:
        self.version = entry.version
        self.images: Mapping[str, str] = entry.images
        self._cache, self._entry = cache, entry

    def manifests(self, path: str) -> list[Manifest]:
        """Return the objects of a YAML file, or of every YAML file of a folder in name order. They are the caller's.

        path: inside the module; of a `url` entry, which is one file, it is empty. CRDs come without descriptions.
        Raises InputError when this version has nothing there.
        """
        from gpuyard.sources.upstream import read_manifests

        entry = self._entry
        if isinstance(entry, GoModule) and (folder := module_dir(entry)):
            return read_manifests(entry, folder / path, path)
        if isinstance(entry, Url) and not path:
            return read_manifests(entry, file_of(entry.digest), entry.url)
        raise ValueError(f"{entry.name} has no file {path}: it is a {type(entry).__name__}")

    def chart(
        self,
        *,
        release: str,
        namespace: str,
        kubernetes: str,
        values: Mapping[str, Any],
        api_versions: Iterable[str] = (),
    ) -> list[Manifest]:
        """Return the objects that the chart expands to, CRDs included, hooks dropped.

        kubernetes:   the version that the chart shall believe in: "1.34".
        api_versions: what the chart shall find in the cluster beside the built-in kinds: "monitoring.coreos.com/v1".
        Raises InputError when Helm refuses, when two runs differ, and when a Secret with data comes out.
        """
        return self.expand(release, namespace, kubernetes, values, api_versions).objects

    def expand(
        self, release: str, namespace: str, kubernetes: str, values: Mapping[str, Any], api_versions: Iterable[str] = ()
    ) -> Expansion:
        """Return what `chart` returns, and the names of the hooks that were dropped."""
        from gpuyard.sources.charts import Inputs, expand

        if not isinstance(self._entry, Chart):
            raise ValueError(f"{self._entry.name} is no chart: it is a {type(self._entry).__name__}")
        inputs = Inputs(release, namespace, kubernetes, values, tuple(api_versions))
        return expand(self._cache.lock, self._entry, inputs, self._cache.progress)
