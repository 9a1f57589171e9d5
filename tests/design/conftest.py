"""Designs of tests have a cache of their own, and one thread, as `design_map` gives them."""

import pytest

from kernelmaps.threads import pools


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELMAPS_CACHE", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def _one_thread():
    with pools().limit(limits=1):
        yield
