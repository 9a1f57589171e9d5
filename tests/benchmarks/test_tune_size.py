"""The measured number of random features keeps the error, and is needed."""

import numpy as np

import kernelmaps as km
from benchmarks.tune_size import required_size, tune_size


def test_tuned_size_holds_and_is_needed(seed):
    X, kernel = np.random.default_rng(seed).normal(size=(60, 10)), km.kernels.Gaussian(3.0)
    size, error = tune_size(X, kernel, 0.25, random_state=seed)
    assert error <= 0.25
    assert required_size(X, kernel, 0.25) > 50 * size
    # A quarter of the columns doubles the error: then it no longer holds.
    maps = [
        km.RandomFourierMap(kernel, size // 8 * 2, form="paired", random_state=s) for s in range(5)
    ]
    assert max(km.kernel_error(m.fit(X), X).max for m in maps) > 0.25
