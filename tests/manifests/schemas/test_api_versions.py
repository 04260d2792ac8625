"""The table of deprecated versions against the schemas of every Kubernetes version that we know."""

from __future__ import annotations

import pytest

from gpuyard.manifests.schemas.api_versions import _LIVES, Api, api_life
from gpuyard.manifests.schemas.builtin import BuiltinSchemas

OLDEST, NEWEST = 25, 37


def kinds(minor: int) -> set[tuple[str, str]]:
    names = (kind.rpartition("/") for kind in BuiltinSchemas(f"1.{minor}").kinds)
    return {
        (api_version, kind) for api_version, _, kind in names if not kind.endswith(("List", "Options", "WatchEvent"))
    }


@pytest.fixture(scope="module")
def by_minor() -> dict[int, set[tuple[str, str]]]:
    return {minor: kinds(minor) for minor in range(OLDEST, NEWEST + 1)}


def test_lives():
    assert api_life("batch/v1beta1", "CronJob") == Api(21, 25, "batch/v1")
    assert api_life("v1", "Endpoints") == Api(33, None, "discovery.k8s.io/v1, kind EndpointSlice")
    assert api_life("batch/v1", "CronJob") is None


def test_every_kind_that_a_version_dropped_is_in_the_table(by_minor: dict[int, set[tuple[str, str]]]):
    dropped = {
        (*kind, minor)
        for minor in range(OLDEST + 1, NEWEST + 1)
        for kind in by_minor[minor - 1] - by_minor[minor]
        if "alpha" not in kind[0] and kind != ("policy/v1beta1", "Eviction")
    }
    assert dropped
    for api_version, kind, minor in sorted(dropped):
        life = api_life(api_version, kind)
        assert life, (api_version, kind)
        assert life.removed == minor


@pytest.mark.parametrize(("api_version", "names", "deprecated", "removed", "replacement"), _LIVES)
def test_each_row_is_what_the_schemas_say(
    by_minor: dict[int, set[tuple[str, str]]],
    api_version: str,
    names: str,
    deprecated: int,
    removed: int | None,
    replacement: str,
):
    assert removed is None or deprecated < removed
    for kind in names.split():
        for minor, known in by_minor.items():
            if removed is None:
                assert (api_version, kind) in known
            elif minor >= removed:
                assert (api_version, kind) not in known
            elif minor == removed - 1 or minor == NEWEST:
                assert (api_version, kind) in known
        if replacement and ", kind " not in replacement and (replacement, kind) not in by_minor[NEWEST]:
            assert any((replacement, kind) in known for known in by_minor.values()), replacement
