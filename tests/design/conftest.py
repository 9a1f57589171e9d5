"""Designs of tests are kept in a folder of their own, never in the user's cache."""

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELMAPS_CACHE", str(tmp_path / "cache"))
