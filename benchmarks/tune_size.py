"""How many random Fourier features an error takes on data, and how many Theorem 1 asks for.

``python -m benchmarks.tune_size`` prints both for Gaussian rows. The theorem's number is a
guarantee, the measured one an estimate for this sample and these seeds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances

import kernelmaps as km

_LARGEST = 2**20


def tune_size(
    X: np.ndarray, kernel: Any, max_error: float, *, n_seeds: int = 5, random_state: int = 0
) -> tuple[int, float]:
    """Smallest even size whose error stays below `max_error` for all seeds, to 10 %, and its error.

    The largest error over all pairs falls as 1/√n, which gives the next size to try; sizes between
    are then bisected.
    """
    exact = kernel(X)
    seeds = np.random.default_rng(random_state).integers(2**31, size=n_seeds)

    def measure(size: int) -> float:
        maps = (km.RandomFourierMap(kernel, size, sampling="iid", form="paired", random_state=seed)
                for seed in seeds)  # fmt: skip
        features = (feature_map.fit_transform(X) for feature_map in maps)
        return max(float(np.abs(Z @ Z.T - exact).max()) for Z in features)

    too_small, size = 0, 64
    error = measure(size)
    while error > max_error:
        if size >= _LARGEST:
            raise ValueError(f"{size} columns still have an error of {error:.3g}.")
        too_small = size
        size = _even(min(_LARGEST, max(1.3 * size, 1.1 * size * (error / max_error) ** 2)))
        error = measure(size)
    while size - too_small > max(2, 0.1 * size):
        middle = _even((size + too_small) / 2)
        middle_error = measure(middle)
        if middle_error <= max_error:
            size, error = middle, middle_error
        else:
            too_small = middle
    return size, error


def required_size(X: np.ndarray, kernel: Any, max_error: float, probability: float = 0.1) -> int:
    """Columns by Theorem 1, for the effective sparsity and the diameter of the rows."""
    return 2 * km.required_features(
        max_error, probability, sparsity=max(1.0, km.effective_sparsity(X).mean), kernel=kernel,
        dim=X.shape[1], diameter=pairwise_distances(X).max(),
    ).M  # fmt: skip


def _even(value: float) -> int:
    return max(2, 2 * round(value / 2))


def main() -> None:
    X, kernel = np.random.default_rng(0).normal(size=(100, 20)), km.kernels.Gaussian(5.0)
    for max_error in (0.2, 0.1):
        size, error = tune_size(X, kernel, max_error)
        required = required_size(X, kernel, max_error)
        print(f"error {error:.3g} with {size:,} columns; Theorem 1 asks for {required:,}")


if __name__ == "__main__":
    main()
