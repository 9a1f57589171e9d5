"""Designs of tests are computed by one thread, as `design_map` gives them."""

import pytest

from kernelmaps._util.threads import pools


@pytest.fixture(autouse=True)
def _one_thread():
    with pools().limit(limits=1):
        yield
