"""Number of random features that data need, measured and compared with the theorem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import kernels
from .._util.arguments import check_count, check_number, generator
from ..design.random_features import effective_sparsity, required_features
from ..maps.fourier import RandomFourierMap
from .checks import checked_rows

_LARGEST = 2**20


@dataclass(frozen=True)
class TunedSize:
    """Measured size, beside the size that the theorem requires.

    Attributes
    ----------
    n_components : int
        Columns of a paired RandomFourierMap whose error stayed below `max_error` for all seeds.
    error : float
        The largest error at this size, over all pairs and seeds.
    sparsity : float
        Effective sparsity k of the data (99 % of the energy, mean over rows).
    bound : int or None
        Columns by Theorem 1 for this k; None where the kernel's spectrum has no second moment, or
        all rows are alike.
    looseness : float or None
        bound / n_components.
    """

    n_components: int
    error: float
    sparsity: float
    bound: int | None
    looseness: float | None

    def __str__(self) -> str:
        text = f"{self.n_components} columns keep the error below {self.error:.3g}"
        if self.bound is None:
            why = "the spectrum has no second moment, or the rows are all alike"
            return f"{text}; Theorem 1 says nothing: {why}"
        return f"{text}; Theorem 1 asks for {self.bound:,}, {self.looseness:,.0f} times as many"


def tune_size(
    X: Any,
    kernel: Any = "gaussian",
    *,
    max_error: float = 0.1,
    sampling: str = "iid",
    n_seeds: int = 5,
    n_rows: int = 300,
    probability: float = 0.1,
    random_state: Any = None,
) -> TunedSize:
    """Smallest number of random features whose error on the data stays below a bound.

    The largest error over all pairs of (at most `n_rows`) rows is measured for `n_seeds` maps. It
    falls as 1/√n (for iid features, faster for others), which gives the next size to try; sizes
    between are then bisected until they are within 10 % of one another. The result is an estimate
    for this sample and these seeds; the theorem's size is a guarantee.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Data.
    kernel : str or StationaryKernel
        The kernel, with its length scale.
    max_error : float
        Largest error allowed over all pairs.
    sampling : str
        As in :class:`RandomFourierMap`.
    n_seeds, n_rows : int
        Maps tried at each size, and rows used.
    probability : float
        q of the theorem that the size is compared with.
    random_state : int, RandomState, Generator or None
        Chooses rows and seeds.

    Returns
    -------
    TunedSize
        The size, its error, and the size that the theorem asks for.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> size = km.tune_size(X, km.kernels.Gaussian(5.0), max_error=0.2, random_state=0)
    >>> size.error <= 0.2 and size.looseness > 100
    True
    """
    check_number("tune_size", "max_error", max_error, "between 0 and 2", lambda e: 0 < e < 2)
    check_number("tune_size", "probability", probability, "between 0 and 1", lambda q: 0 < q < 1)
    check_count("tune_size", "n_seeds", n_seeds)
    check_count("tune_size", "n_rows", n_rows)
    # A kernel of a user's own is taken as it is, though it may be a function as well.
    kernel = kernel if hasattr(kernel, "sample_frequencies") else kernels.get(kernel)
    X = checked_rows(X, "tune_size", dtype=np.float64)
    rng = generator(random_state)
    rows = X[np.sort(rng.permutation(X.shape[0])[:n_rows])]
    seeds = rng.integers(2**31, size=n_seeds)
    exact = kernel(rows)

    def worst(size: int) -> float:
        maps = (
            RandomFourierMap(kernel, size, sampling=sampling, form="paired", random_state=s)
            for s in seeds
        )
        images = (feature_map.fit_transform(rows) for feature_map in maps)
        return max(float(np.abs(Z @ Z.T - exact).max()) for Z in images)

    size, error = _smallest(worst, max_error)
    k = max(1.0, effective_sparsity(rows).mean)
    bound = _bound(rows, kernel, max_error, probability, k)
    return TunedSize(size, error, k, bound, None if bound is None else bound / size)


def _smallest(worst: Any, max_error: float) -> tuple[int, float]:
    """Least even size whose error is allowed, to 10 %: steps by the 1/√n law, then halving."""
    below, size = 0, 64
    error = worst(size)
    while error > max_error:
        below = size
        if size >= _LARGEST:
            raise ValueError(
                f"tune_size: {size} columns still have an error of {error:.3g} > {max_error:g}. "
                "Allow a larger error."
            )
        size = _even(min(_LARGEST, max(1.3 * size, 1.1 * size * (error / max_error) ** 2)))
        error = worst(size)
    while size - below > max(2, 0.1 * size):
        middle = _even((size + below) / 2)
        middle_error = worst(middle)
        if middle_error <= max_error:
            size, error = middle, middle_error
        else:
            below = middle
    return size, error


def _even(value: float) -> int:
    return max(2, 2 * round(value / 2))


def _bound(rows: Any, kernel: Any, epsilon: float, probability: float, k: float) -> int | None:
    from sklearn.metrics import pairwise_distances

    extent: dict[str, Any] = {"dim": rows.shape[1], "diameter": pairwise_distances(rows).max()}
    try:
        return 2 * required_features(epsilon, probability, sparsity=k, kernel=kernel, **extent).M
    except ValueError:
        return None
