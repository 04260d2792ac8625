import pytest


@pytest.fixture(autouse=True, scope="package")
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    """Keep the user's cache out of the tests; one for all of them, so that schemas are pruned once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUYARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
