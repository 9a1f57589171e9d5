r"""Truncated Fourier series of a homogeneous kernel's signature, and its best period for the data.

The error of a pair of rows is Σ_d (x_d y_d)^{γ/2} (κ̂ − κ)(|log x_d − log y_d|), which is linear in
the misfit of the signature. So a few rows are summed up once, as the weight of each log-ratio in
each pair of them, and the errors of all pairs for any period are one product of matrices.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import roots_legendre

from .. import kernels
from ..blocks import row_blocks
from ..sparse_rows import dense
from ..threads import in_threads, worth_a_thread

Cosines = tuple[np.ndarray, np.ndarray]

# Period as a function of the number n of cosine-sine pairs, published with VLFeat: fitted there to
# make the error of each map small. By window and kernel.
_PERIODS = {
    ("rectangular", "chi2"): lambda n: 8.80 * np.sqrt(n + 4.44) - 12.6,
    ("rectangular", "jensen_shannon"): lambda n: 9.63 * np.sqrt(n + 1.00) - 2.93,
    ("rectangular", "intersection"): lambda n: 2.00 * np.log(n + 0.99) + 3.52,
    ("uniform", "chi2"): lambda n: 5.86 * np.sqrt(n) + 3.65,
    ("uniform", "jensen_shannon"): lambda n: 6.64 * np.sqrt(n) + 7.24,
    ("uniform", "intersection"): lambda n: 2.38 * np.log(n + 0.8) + 5.6,
}
_SHORTEST, _LONGEST = 0.5, 80.0  # periods that are searched
_COARSE = 128  # of them at first
_FINE = np.linspace(-1, 1, 9)  # around the best, in steps of the round before
_ROUNDS = 3
_HOPE = 8.0  # sizes whose first error is so many times that of the best are not refined
_SIZES = 4  # this size and those below it, whose series may serve as well
_LAGS = np.linspace(0.0, 20.0, 201)  # log-ratios; larger ones have next to no weight
_ENTRIES = 50_000  # products of values that are summed up
_PART = 2**17  # bytes of temporaries: larger ones are new memory each time
_ROWS = (24, 64)  # fewest and most rows that are looked at: more of few columns
_FEW, _SMALL = 8, 1 << 18  # columns, and values, of which the smallest are looked for
_RUNS, _RUN = 4, 16  # columns that tell rows apart, side by side: little memory is read
_NO_DATA = np.geomspace(1 / 256, 1, 64)[:, None]  # 8-bit numbers, if the rows say nothing


def series(kernel: kernels.HomogeneousKernel, columns: int, period: float, window: str) -> Cosines:
    """Frequencies and non-negative weights of the truncated Fourier series."""
    if kernel.point_mass == 1:  # Hellinger: the constant is exact
        return np.zeros(1), np.ones(1)
    frequencies, weights = _many_series(kernel, columns, np.array([period]), window)
    return frequencies[:, 0], weights[:, 0]


def _many_series(
    kernel: kernels.HomogeneousKernel, columns: int, periods: np.ndarray, window: str
) -> Cosines:
    """Frequencies and weights as columns, one for each period."""
    odd, pairs = columns % 2, columns // 2
    orders = (np.arange(pairs + 1) if odd else np.arange(pairs) + 0.5)[:, None]
    spacing = 2 * np.pi / periods
    if window == "uniform":
        weights = spacing * kernel.spectrum(orders * spacing)
    else:
        # The signature is even and may have a kink at 0: integrate over [0, Λ/2].
        nodes, quadrature = _legendre(64 + 8 * columns)
        cosines = np.cos(0.5 * np.pi * orders * (nodes + 1))
        signature = kernel.signature(0.25 * np.multiply.outer(nodes + 1, periods))
        weights = 0.5 * cosines @ (quadrature[:, None] * signature)
    return orders * spacing, np.maximum(np.where(orders == 0, 1.0, 2.0) * weights, 0.0)


_legendre = lru_cache(maxsize=16)(roots_legendre)


def misfit(kernel: kernels.HomogeneousKernel, found: Cosines, lam: np.ndarray) -> np.ndarray:
    """Approximate minus exact signature."""
    frequencies, weights = found
    return np.cos(np.multiply.outer(lam, frequencies)) @ weights - kernel.signature(lam)


def ruled_period(kernel: kernels.HomogeneousKernel, columns: int, window: str) -> float:
    """VLFeat's rule."""
    rule = _PERIODS.get((window, kernel.name))
    if rule is None:
        known = sorted({name for _, name in _PERIODS})
        raise ValueError(
            f"HomogeneousMap: period='vlfeat' is a rule for {', '.join(known)}, not for "
            f"{kernel.name!r}. Use period='auto'."
        )
    return max(1.0, float(rule(columns // 2)))


def pair_weights(X: Any, gamma: float, n_jobs: int | None = None) -> np.ndarray:
    """How much a misfit at the first log-ratios of `_LAGS` (columns) counts in each pair of rows.

    From a few rows and, where there are many, columns; values that lie between two log-ratios are
    shared among them.
    """
    values = _sample(X, n_jobs)
    if len(np.unique(np.abs(values[values != 0]))) < 2:
        values = _NO_DATA
    size = np.abs(values)
    logs = np.log(np.where(size > 0, size, size.max()))
    logs -= logs.max()
    roots = np.sign(values) * np.exp(0.5 * gamma * logs)  # a value of zero counts for nothing
    first, second = np.triu_indices(len(values))
    parts = []
    for some in row_blocks(len(first), 8 * values.shape[1], _PART):
        apart = np.abs(logs[first[some]] - logs[second[some]]) / _LAGS[1]
        place = np.minimum(apart.astype(np.intp), len(_LAGS) - 2)
        amount, share = roots[first[some]] * roots[second[some]], np.minimum(apart - place, 1.0)
        length = len(place) * len(_LAGS)
        at = (place + np.arange(0, length, len(_LAGS))[:, None]).ravel()
        weights = np.bincount(at, (amount * (1 - share)).ravel(), length)
        parts.append(weights + np.bincount(at + 1, (amount * share).ravel(), length))
    found = np.concatenate(parts).reshape(len(first), -1)
    return found[:, : 1 + int(np.flatnonzero(found.any(axis=0)).max())]


def _sample(X: Any, n_jobs: int | None) -> np.ndarray:
    """A few rows, small and large ones, as a dense array without columns that are all zero.

    Which rows these are depends on what they hold, not on where they stand.
    """
    n, d = X.shape
    count = min(n, int(np.clip(np.sqrt(2 * _ENTRIES / d), *_ROWS)))
    keys = _keys(X, n_jobs)
    ranks = np.linspace(0, n - 1, count).astype(np.intp)
    rows = _ordered(X, keys, ranks, n_jobs)[ranks]
    if n > count and d <= _FEW and n * d <= _SMALL:
        # Few values miss the smallest ones, and with them the largest ratios.
        magnitudes = np.abs(dense(X).astype(np.float64))
        magnitudes[magnitudes == 0] = np.inf
        least = np.where(magnitudes == magnitudes.min(axis=0), keys[:, None], np.inf)
        rows = np.append(rows, least.argmin(axis=0))
    chosen = X[np.unique(rows)]
    used = np.flatnonzero(np.asarray(abs(chosen).sum(axis=0)).ravel())
    most = max(1, 2 * _ENTRIES // chosen.shape[0] ** 2)
    if len(used) > most:
        used = used[np.linspace(0, len(used) - 1, most).astype(np.intp)]
    return dense(chosen[:, used]).astype(np.float64)


def _ordered(X: Any, keys: np.ndarray, ranks: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Rows by their keys; where one of these ranks shares its key, by all columns, too.

    The columns that tell rows apart may be zero in all of them.
    """
    order = np.argsort(keys)
    if sparse.issparse(X) or X.shape[1] <= _RUNS * _RUN:
        return order  # all columns are in the keys
    same = np.diff(keys[order]) == 0
    tied = np.append(same, False) | np.append(False, same)
    return np.lexsort((_keys(X, n_jobs, whole=True), keys)) if tied[ranks].any() else order


def _keys(X: Any, n_jobs: int | None, *, whole: bool = False) -> np.ndarray:
    """A number for each row: a sum of its values, or of some, with uneven weights."""
    d = X.shape[1]
    order = np.arange(1, d + 1)
    # Fractions of a golden ratio are even; without the cosines, whole multiples would cancel out.
    weights = 0.5 + np.modf(order * 0.6180339887498949)[0] + 1e-4 * np.cos(order)
    if sparse.issparse(X):
        # Weights of another type than the values would make a copy of these.
        return X @ (weights.astype(X.dtype) if X.dtype.kind == "f" else weights)
    starts, length = np.linspace(0, d - _RUN, _RUNS).astype(np.intp), _RUN
    if whole or d <= _RUNS * _RUN:
        starts, length = starts[:1] * 0, d
    runs = [slice(start, start + length) for start in starts]

    def of(begin: int, end: int) -> np.ndarray:
        return sum(np.einsum("ij,j->i", X[begin:end, run], weights[run]) for run in runs)

    return np.concatenate(in_threads(of, X.shape[0], n_jobs, worth_a_thread(d)))


def best_series(
    kernel: kernels.HomogeneousKernel, columns: int, window: str, pairs: np.ndarray
) -> tuple[float, Cosines]:
    """The period with the smallest worst error of the pairs, and its series.

    The error has several minima over the period, so that all of its range is searched, and VLFeat's
    period takes part. A size may do worse than a smaller one, whose series it then takes.
    """
    if kernel.point_mass == 1:
        return 2 * np.pi, series(kernel, columns, 2 * np.pi, window)
    sizes = range(columns, max(0, columns - _SIZES), -1)
    rough = {size: _rough(kernel, size, window, pairs) for size in sizes}
    limit = _HOPE * min(error for error, _ in rough.values())
    found = [
        (*_refined(kernel, size, window, pairs, rough[size]), size)
        for size in sizes
        if rough[size][0] <= limit
    ]
    _, period, size = min(found, key=lambda item: item[0])
    return period, series(kernel, size, period, window)


def _rough(
    kernel: kernels.HomogeneousKernel, size: int, window: str, pairs: np.ndarray
) -> tuple[float, float]:
    """The smallest worst error of a size among the first periods, and the period."""
    periods, misfits = _coarse(kernel, size, window)
    errors = _worst(pairs, misfits)
    best = int(np.argmin(errors))
    return float(errors[best]), float(periods[best])


def _refined(
    kernel: kernels.HomogeneousKernel,
    size: int,
    window: str,
    pairs: np.ndarray,
    rough: tuple[float, float],
) -> tuple[float, float]:
    """Error and period after a search around the best one so far."""
    error, period = rough
    lags = _LAGS[: pairs.shape[1]]
    step = (_LONGEST / _SHORTEST) ** (1 / (_COARSE - 1))
    for _ in range(_ROUNDS):
        periods = period * step**_FINE
        errors = _worst(pairs, _misfits(kernel, size, window, periods, lags))
        best = int(np.argmin(errors))
        if errors[best] < error:
            error, period = float(errors[best]), float(periods[best])
        step **= _FINE[1] - _FINE[0]
    return error, period


def _worst(pairs: np.ndarray, misfits: np.ndarray) -> np.ndarray:
    errors = pairs @ misfits[: pairs.shape[1]]
    return np.maximum(errors.max(axis=0), -errors.min(axis=0))


@lru_cache(maxsize=32)
def _coarse(
    kernel: kernels.HomogeneousKernel, size: int, window: str
) -> tuple[np.ndarray, np.ndarray]:
    """Periods to begin with, VLFeat's among them where there is one, and their misfits."""
    periods = np.geomspace(_SHORTEST, _LONGEST, _COARSE)
    if (window, kernel.name) in _PERIODS:
        periods = np.append(periods, ruled_period(kernel, size, window))
    return periods, _misfits(kernel, size, window, periods)


def _misfits(
    kernel: kernels.HomogeneousKernel,
    size: int,
    window: str,
    periods: np.ndarray,
    lags: np.ndarray = _LAGS,
) -> np.ndarray:
    """Misfits at the log-ratios (rows) for each period (columns)."""
    frequencies, weights = _many_series(kernel, size, periods, window)
    cosines = np.cos(lags[:, None, None] * frequencies)
    return np.einsum("lfp,fp->lp", cosines, weights) - kernel.signature(lags)[:, None]
