r"""The homogeneous kernel map of Vedaldi and Zisserman.

A homogeneous kernel is c(x, y) = (xy)^{γ/2} κ(log y − log x). Cut the signature κ to a window of
length Λ, continue it periodically, and keep the leading terms of its Fourier series:

.. math:: \hatκ(λ) = \sum_j α_j \cos(ω_j λ), \qquad
          α_j = \frac{2 - [ω_j = 0]}{Λ} \int_{-Λ/2}^{Λ/2} κ(λ) \cos(ω_j λ)\, dλ,

with ω_j = jL, L = 2π/Λ, for an odd number of columns (a constant and cosine-sine pairs) and
ω_j = (j − ½)L for an even number (pairs alone). Negative α_j are dropped, as a map needs them
non-negative. The columns are :math:`\sqrt{α_j x^γ}\,\{\cos, \sin\}(ω_j \log x)`.

**The best period for the data.** The error of a pair of rows is Σ_d (x_d y_d)^{γ/2} (κ̂ − κ)(|log
x_d − log y_d|), which is linear in the misfit of the signature. So a few rows are summed up once,
as the weight of each log-ratio in each pair of them, and the errors of all pairs for any period are
one product of matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import roots_legendre

from .. import kernels
from .._util.arguments import argument_error, check_count, check_positive
from .._util.schema import array, number
from .._util.sparse import dense
from .._util.threads import evenly_spaced, limit_blas, row_blocks, rows_per_thread, run_in_threads
from ..certificate import Certificate
from ..design.approximation import has_kink
from ..engine import Spec
from ..engine.families import waves_arrays
from .base import AdditiveMap

Cosines = tuple[np.ndarray, np.ndarray]
_legendre = lru_cache(maxsize=16)(roots_legendre)

_LAGS = np.linspace(0.0, 20.0, 201)  # log-ratios; larger ones have next to no weight
_NO_DATA = np.geomspace(1 / 256, 1, 64)[:, None]  # 8-bit numbers, if the rows say nothing


# The search for a period: a geometric grid, then finer ones around its best. Measured on 45 maps of
# five data sets: with two rounds, the largest error is up to 1.1 % larger, with one 17 %; with one
# size alone it is 59 % larger on average.
_PERIODS = np.geomspace(0.5, 80.0, 128)  # of the first round
_FINE = np.linspace(-1, 1, 9)  # of a later one, from one step of the round before to the other
_ROUNDS = 3  # with finer grids
_SIZES = 4  # this number of columns and fewer, whose series may serve as well

# Columns of a map by default. The error of a smooth signature falls geometrically with their number
# D, that of one with a kink like 1/D. Accuracy with the intersection on letters, whose values were
# shifted to 4 … 19: 5 columns 77.1 %, 15 columns 80.8 %, 40 anchors 80.5 % (three training folds).
_SMOOTH_COLUMNS, _KINK_COLUMNS = 5, 15
_ROWS = 24, 64  # of the sample: at least, and at most where there are few columns
_ENTRIES = 50_000  # products of values that are summed up
_BLOCK_BYTES = 2**17  # of temporaries: larger ones are new memory each time
# Rows with the smallest value of a column join the sample of data of few columns and values:
# without them, the largest error was up to 10 % larger.
_SCANNED = 8, 1 << 18
# Runs of adjacent columns that tell rows apart, and their length. All columns take twice the time
# of bytes: 0.04 s more of a fit of 0.04 s (60,000 rows of 784 columns).
_RUNS = 4, 16


def check_columns(owner: Any, signature: Callable) -> int:
    """The number of columns of a map whose `n_components` may be "auto"."""
    if owner.n_components == "auto":
        return _KINK_COLUMNS if has_kink(signature, 1.0) else _SMOOTH_COLUMNS
    if isinstance(owner.n_components, str):
        raise argument_error(owner, "n_components", owner.n_components, "an integer or 'auto'")
    return check_count(owner, "n_components", owner.n_components)


class Series(NamedTuple):
    """Truncated Fourier series of a kernel's signature: of one size, for any period."""

    kernel: kernels.HomogeneousKernel
    columns: int

    def expand(self, period: float) -> Cosines:
        """Frequencies and non-negative weights."""
        if self.kernel.point_mass == 1:  # Hellinger: the constant is exact
            return np.zeros(1), np.ones(1)
        frequencies, weights = self.expand_all(np.array([period]))
        return frequencies[:, 0], weights[:, 0]

    def expand_all(self, periods: np.ndarray) -> Cosines:
        """Frequencies and weights as columns, one for each period."""
        odd, pairs = self.columns % 2, self.columns // 2
        orders = (np.arange(pairs + 1) if odd else np.arange(pairs) + 0.5)[:, None]
        spacing = 2 * np.pi / periods
        # The signature is even and may have a kink at 0: integrate over [0, Λ/2].
        nodes, quadrature = _legendre(64 + 8 * self.columns)
        cosines = np.cos(0.5 * np.pi * orders * (nodes + 1))
        signature = self.kernel.signature(0.25 * np.multiply.outer(nodes + 1, periods))
        weights = 0.5 * cosines @ (quadrature[:, None] * signature)
        return orders * spacing, np.maximum(np.where(orders == 0, 1.0, 2.0) * weights, 0.0)

    def find_best(self, pairs: np.ndarray) -> tuple[float, Cosines]:
        """The period with the smallest worst error of the pairs, and its series.

        The error has several minima over the period, so that all of its range is searched. A
        size may do worse than a smaller one, whose series it takes.
        """
        if self.kernel.point_mass == 1:
            return 2 * np.pi, self.expand(2 * np.pi)
        sizes = range(self.columns, max(0, self.columns - _SIZES), -1)
        candidates = [self._replace(columns=size) for size in sizes]
        refined = [(*series._refine(pairs), series) for series in candidates]
        _, period, series = min(refined, key=lambda item: item[0])
        return period, series.expand(period)

    def _refine(self, pairs: np.ndarray) -> tuple[float, float]:
        """Smallest worst error of the pairs, and its period."""
        best, periods, step = (np.inf, 0.0), _PERIODS, _PERIODS[1] / _PERIODS[0]
        lags = _LAGS[: pairs.shape[1]]
        exact = self.kernel.signature(lags)[:, None]
        for _ in range(1 + _ROUNDS):
            frequencies, weights = self.expand_all(periods)
            cosines = np.cos(lags[:, None, None] * frequencies)
            errors = pairs @ (np.einsum("lfp,fp->lp", cosines, weights) - exact)
            worst = np.maximum(errors.max(axis=0), -errors.min(axis=0))
            place = int(np.argmin(worst))
            best = min(best, (float(worst[place]), float(periods[place])))
            periods, step = best[1] * step**_FINE, step ** (_FINE[1] - _FINE[0])
        return best


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
    left, right = np.triu_indices(len(values))
    # Log-ratios that no pair has would only be zeros to fill in.
    width = min(int(np.ptp(logs, axis=0).max() / _LAGS[1]) + 2, len(_LAGS))
    parts = []
    for rows in row_blocks(len(left), 8 * values.shape[1], _BLOCK_BYTES):
        apart = np.abs(logs[left[rows]] - logs[right[rows]]) / _LAGS[1]
        place = np.minimum(apart.astype(np.intp), width - 2)
        amount, share = roots[left[rows]] * roots[right[rows]], np.minimum(apart - place, 1.0)
        length = len(place) * width
        positions = (place + np.arange(0, length, width)[:, None]).ravel()
        weights = np.bincount(positions, (amount * (1 - share)).ravel(), length)
        parts.append(weights + np.bincount(positions + 1, (amount * share).ravel(), length))
    table = np.concatenate(parts).reshape(len(left), -1)
    return table[:, : 1 + int(np.flatnonzero(table.any(axis=0)).max())]


def _sample(X: Any, n_jobs: int | None) -> np.ndarray:
    """A few rows, small and large ones, as a dense array without columns that are all zero.

    Which rows these are depends on what they hold, not on where they stand.
    """
    n, d = X.shape
    count = min(n, int(np.clip(np.sqrt(2 * _ENTRIES / d), *_ROWS)))
    ranks, keys = evenly_spaced(n, count), _weighted_sums(X, n_jobs)
    order = np.argsort(keys)
    same = np.diff(keys[order]) == 0
    if (np.append(same, False) | np.append(False, same))[ranks].any():
        # The columns that tell rows apart may be zero in all of them: all columns decide then.
        order = np.lexsort((_weighted_sums(X, n_jobs, all_columns=True), keys))
    rows = order[ranks]
    if n > count and d <= _SCANNED[0] and n * d <= _SCANNED[1]:
        # Few values miss the smallest ones, and with them the largest ratios.
        magnitudes = np.abs(dense(X).astype(np.float64))
        magnitudes[magnitudes == 0] = np.inf
        least = np.where(magnitudes == magnitudes.min(axis=0), keys[:, None], np.inf)
        rows = np.append(rows, least.argmin(axis=0))
    sample = X[np.unique(rows)]
    used = np.flatnonzero(np.asarray(abs(sample).sum(axis=0)).ravel())
    n_rows = max(1, 2 * _ENTRIES // sample.shape[0] ** 2)
    used = used[evenly_spaced(len(used), n_rows)]
    return dense(sample[:, used]).astype(np.float64)


def _weighted_sums(X: Any, n_jobs: int | None, all_columns: bool = False) -> np.ndarray:
    """A number for each row: the sum of its values, or of some, with uneven weights."""
    d = X.shape[1]
    order = np.arange(1, d + 1)
    # Fractions of a golden ratio are even; without the cosines, whole multiples would cancel out.
    weights = 0.5 + np.modf(order * 0.6180339887498949)[0] + 1e-4 * np.cos(order)
    if sparse.issparse(X):
        # Weights of another type than the values would make a copy of these.
        return X @ (weights.astype(X.dtype) if X.dtype.kind == "f" else weights)
    count, length = _RUNS
    runs = [slice(s, s + length) for s in np.linspace(0, d - length, count).astype(np.intp)]
    if all_columns or d <= count * length:
        runs = [slice(0, d)]

    def sum_rows(begin: int, end: int) -> np.ndarray:
        return sum(np.einsum("ij,j->i", X[begin:end, run], weights[run]) for run in runs)

    return np.concatenate(run_in_threads(sum_rows, X.shape[0], n_jobs, rows_per_thread(d)))


@dataclass(eq=False, repr=False)
class HomogeneousMap(AdditiveMap):
    """Vedaldi-Zisserman map of a homogeneous kernel.

    Parameters
    ----------
    kernel : str or HomogeneousKernel, default="chi2"
        "chi2", "intersection", "jensen_shannon", "hellinger" or a kernel that you wrote.
    n_components : int or "auto", default="auto"
        Output columns per input feature. Odd numbers include the constant frequency, even ones
        do not. "auto" is 5, and 15 for a kernel whose signature has a kink (the intersection):
        its error falls slowly.
    period : float or "auto", default="auto"
        Length Λ of the window in log-ratios. "auto" takes the period with the smallest
        worst error for the size and the data, measured on the pairs of a few rows (24 to 72); if
        a smaller size does better, it takes the series of that one, and the columns that remain
        are zero (`DesignedMap` gains from every column).
    gamma : float, default=1.0
        Degree of homogeneity; if it is 1, that of a kernel object is used.
    signed : bool, default=False
        Accept negative values by the odd extension φ(−x) = −φ(x); so does a signed kernel object.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    frequencies_, weights_ : ndarray
        The ω_j and α_j.
    period_ : float
        The period in use (irrelevant for the Hellinger kernel, which is exact).
    certificate_ : Certificate
        Absolute error over all pairs in [0, 1] of the named kernels; on [0, b] it is b^γ times
        that. None for a kernel that you wrote.

    Examples
    --------
    >>> import kernelmaps as km
    >>> X = [[0.2, 0.8], [0.5, 0.5]]
    >>> Z = km.HomogeneousMap("chi2", n_components=7).fit_transform(X)
    >>> bool(abs(Z @ Z.T - km.kernels.chi2(X)).max() < 1e-3)
    True
    """

    kernel: Any = "chi2"
    n_components: int | str = "auto"
    _: KW_ONLY
    period: float | str = "auto"
    gamma: float = 1.0
    signed: bool = False
    n_jobs: int | None = None

    _state = AdditiveMap._state.extended(
        {
            "period_": number(above=0),
            "frequencies_": array("f8", "frequencies"),
            "weights_": array("f8", "frequencies", low=0),
        }
    )
    _homogeneous = True

    def _learn(self, X: Any) -> Spec:
        kernel = self._resolve_kernel()
        columns = check_columns(self, kernel.signature)
        self.kernel_ = kernel
        with limit_blas(1):  # matrices are small: threads of BLAS would only wait, and busily
            series = Series(kernel, columns)
            if self.period == "auto":
                self.period_, cosines = series.find_best(pair_weights(X, kernel.gamma, self.n_jobs))
            else:
                check_positive(self, "period", self.period, "a positive number or 'auto'")
                self.period_ = float(self.period)
                cosines = series.expand(self.period_)
            self.frequencies_, self.weights_ = cosines
            if kernel.replace(signed=False, gamma=1.0).grows:
                self.certificate_ = _certificate(kernel, *cosines)
        arrays = waves_arrays(self.frequencies_, self.weights_)
        missing = columns - len(arrays["amplitude"])
        padded = {name: [*values, *[0.0] * missing] for name, values in arrays.items()}
        return Spec("log_waves", padded, {"gamma": float(kernel.gamma), "signed": kernel.signed})

    def _resolve_kernel(self) -> kernels.HomogeneousKernel:
        kernel = kernels.get(self.kernel)
        if not isinstance(kernel, kernels.HomogeneousKernel):
            raise ValueError(
                f"HomogeneousMap needs a homogeneous kernel with a signature and a spectrum; "
                f"{kernel!r} has none. Use chi2, intersection, jensen_shannon or hellinger, "
                "AnchorMap for any additive kernel, RandomFourierMap for stationary ones."
            )
        check_positive(self, "gamma", self.gamma)
        if kernel.gamma != 1 and self.gamma not in (1, kernel.gamma):
            raise ValueError(
                f"HomogeneousMap: gamma={self.gamma!r} contradicts the gamma={kernel.gamma!r} of "
                "the kernel that was given; give one of them."
            )
        gamma = self.gamma if kernel.gamma == 1 else kernel.gamma
        return kernel.replace(gamma=float(gamma), signed=self._signed)

    def _feature_bound(self, limits: np.ndarray) -> float:
        assert self.certificate_ is not None
        return self.certificate_.bound * float(np.max(limits)) ** self.kernel_.gamma


def _certificate(
    kernel: kernels.HomogeneousKernel, frequencies: np.ndarray, weights: np.ndarray
) -> Certificate:
    r"""sup_λ e^{−γλ/2} |κ̂ − κ| (Chum 2015, eq. 15) on a grid, the gaps bounded.

    A kernel c = x c_x + y c_y that grows in both arguments has both terms non-negative. At
    x = e^{−λ/2}, y = e^{λ/2} their sum is κ and their difference is −2κ', so that |κ'| ≤ κ/2 ≤
    κ(0)/2: e^{−γλ/2} κ has a slope of at most e^{−γλ/2} κ(0) (1 + γ)/2, and the weighted cosines
    one of e^{−γλ/2} Σ α_j (ω_j + γ/2). In the variable s = 1 − e^{−γλ/2}, which runs from 0 to 1
    over all ratios, both together move by no more than 2/γ times the sum of these factors per unit,
    hence by half a step times that between grid points. In the last step, up to s = 1, the
    weighted error is at most (1 − s) (Σ α_j + κ(0)). A constant signature is the whole series:
    only rounding is left.
    """
    domain = (
        f"0 <= x, y <= 1 (times b{'' if kernel.gamma == 1 else f'^{kernel.gamma:g}'} on [0, b])"
    )
    if kernel.point_mass == 1:
        exact = Certificate(0.0, "absolute", domain, "exact but for rounding")
        return exact.with_rounding(1.0, 1)
    s, gamma = np.arange(20_000) / 20_000, kernel.gamma
    lam = -2 / gamma * np.log1p(-s)
    misfit = np.cos(np.multiply.outer(lam, frequencies)) @ weights - kernel.signature(lam)
    weighted = (1 - s) * np.abs(misfit)
    size = float(kernel.signature(np.zeros(1))[0])
    slope = 2 / gamma * (size * (1 + gamma) / 2 + float(weights @ (frequencies + gamma / 2)))
    tail = (1 - s[-1]) * (float(weights.sum()) + size)
    certificate = Certificate(
        max(float(weighted.max()) + 0.5 * slope * s[1], tail),
        "absolute",
        domain,
        "grid and slope bound",
    )
    return certificate.with_rounding(size, 2 * len(weights))
