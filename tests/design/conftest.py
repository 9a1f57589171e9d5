"""Designs of tests are kept in a folder of their own, and made by one thread as `design_map` does."""

import pytest

from kernelmaps.threads import pools


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELMAPS_CACHE", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def _one_thread():
    with pools().limit(limits=1):
        yield
