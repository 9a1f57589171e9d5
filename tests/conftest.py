"""What all tests share: one seed that can be rotated, and a drawing backend without a screen."""

import gc
import os
import random
import tempfile

import pytest

# Pictures are drawn in tests, never shown. Subprocesses inherit the choice.
os.environ.setdefault("MPLBACKEND", "Agg")

# Test processes share the cores: a thread that waits must sleep, not spin (measured: 40 % less
# processor time). Read by OpenMP when it is loaded, hence before anything else is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# For the same reason small matrices are factored by one thread: two processes with two BLAS threads
# each, spinning on two cores, were seen to take 50 times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Designs of tests never land in the user's cache.
os.environ.setdefault("KERNELMAPS_CACHE", tempfile.mkdtemp(prefix="kernelmaps-tests-"))

# Chosen once, before worker processes start, so that all of them see the same seed.
_VARIABLE = "KERNELMAPS_TEST_SEED"
if os.environ.get(_VARIABLE, "") == "any":
    os.environ[_VARIABLE] = str(random.SystemRandom().randrange(2**31))
_SEED = int(os.environ.get(_VARIABLE) or 20240229)


# Modules and compiled code are a million objects that nothing frees: a tenth of the time went into
# looking for garbage among them.
gc.set_threshold(50_000, 20, 20)


def pytest_collection_finish():
    gc.collect()
    gc.freeze()


def pytest_report_header():
    return f"{_VARIABLE}={_SEED} (a number, or 'any' for a new one)"


@pytest.fixture
def seed() -> int:
    """The seed of this run: a test that uses it must hold for every value of it."""
    return _SEED


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A real browser, see `browsing`."""
    from browsing import start

    driver = start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()
