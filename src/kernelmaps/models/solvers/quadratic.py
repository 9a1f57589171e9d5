"""Learners with quadratic loss as functions of merged statistics.

With centred sums A = Σ w z̃ z̃ᵀ, b = Σ w z̃ ỹ and W = Σ w, every loss here is

    Σ w (ỹ − wᵀz̃)² = ỹᵀỹ − 2 wᵀb + wᵀA w,

(errata 2.21: ‖Z̃w − y‖, not ‖wᵀZ̃ − y‖). The intercept is not penalised and drops out by centring:
f(z) = wᵀ(z − z̄) + ȳ (errata 2.20: the paper forgets ȳ).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.linalg import (
    LinAlgError,
    LinAlgWarning,
    cho_factor,
    cho_solve,
    solve_triangular,
)
from scipy.linalg import eigh as host_eigh
from scipy.optimize import minimize_scalar

from ..._util.arguments import is_number
from ..._util.devices import solving_device, to_device, to_host
from ...stats import Moments

CHOLESKY_UP_TO = 16  # strengths, above which one eigendecomposition is cheaper
# Range in which the evidence is maximised, in units of the largest eigenvalue: from the rounding
# of the eigenvalues to where the fit explains less than 1e-8 of the targets' scatter.
EVIDENCE_RANGE = 1e-14, 1e8
EVIDENCE_STEPS_PER_DECADE = 8  # of the grid whose best point begins the search


def principal_axes(scatter: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of a scatter matrix, largest first (errata 2.18).

    Signs are those of scikit-learn's PCA: the entry of largest modulus is positive.
    """
    values, vectors = _eigh(scatter)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return values, np.ascontiguousarray(vectors * signs)


def significant(values: np.ndarray) -> np.ndarray:
    """Which eigenvalues are above the rounding of the largest: as many as the rank."""
    return values > values.max(initial=0.0) * len(values) * np.finfo(np.float64).eps


def component_count(name: str, size: Any, values: np.ndarray, n: int) -> int:
    """Number of components for None (all with variance), an int, or a fraction of variance."""
    max_count = min(n, len(values))
    if size is None:
        return max(np.count_nonzero(significant(values)), 1)
    if is_number(size, Integral):
        if not 1 <= int(size) <= max_count:
            raise ValueError(
                f"{name}: n_components={size} must be between 1 and min(n_samples, "
                f"n_features)={max_count}, with {n} rows and {len(values)} features"
            )
        return int(size)
    if is_number(size) and 0 < float(size) < 1:
        share = np.cumsum(values) / max(values.sum(), np.finfo(float).tiny)
        return min(int(np.searchsorted(share, size, side="left")) + 1, max_count)
    raise ValueError(
        f"{name}: n_components must be None, a positive integer, or a fraction of variance in "
        f"(0, 1), got {size!r}"
    )


def check_rows(owner: Any, stats: Moments) -> None:
    if stats.H is None or not stats.weight > 0:
        raise ValueError(f"{type(owner).__name__}: no rows of positive weight were found")


@dataclass(frozen=True)
class Spectrum:
    """A centred least-squares problem in the eigenbasis of its Hessian A = Q Λ Qᵀ.

    Attributes
    ----------
    values : ndarray of shape (r,)
        Λ, not negative.
    axes : ndarray of shape (k, r), or None for the identity
        Q.
    c : ndarray of shape (t, r)
        b in the eigenbasis, Qᵀb for each target.
    yy : ndarray of shape (t,)
        ỹᵀỹ.
    weight : float
        W.
    """

    values: np.ndarray
    axes: Any
    c: np.ndarray
    yy: np.ndarray
    weight: float

    def ridge(self, alpha: float) -> np.ndarray:
        """w = Q (Λ + α)⁻¹ Qᵀ b, of shape (t, k); α = 0 gives the solution of least norm.

        This is (A + αI)⁻¹ b, step 4 of Algorithm 3, for O(k) per target once A is diagonal.
        """
        w = self.c * self._inverse(alpha)
        return w if self.axes is None else w @ self.axes.T

    def _inverse(self, alpha: float) -> np.ndarray:
        shifted = self.values + alpha
        if alpha > 0:
            return 1.0 / shifted
        keep = significant(self.values)
        n_columns = keep.size if self.axes is None else len(self.axes)
        if keep.sum() < n_columns:
            warnings.warn(
                f"The statistics have rank {keep.sum()}, less than their {n_columns} columns, and "
                "alpha=0: the solution of least norm is given. Use alpha > 0 or fewer components.",
                LinAlgWarning,
                stacklevel=2,
            )
        return np.where(keep, 1.0 / np.where(keep, shifted, 1.0), 0.0)

    def gcv(self, alpha: float) -> float:
        """Generalised cross-validation, Σ_t RSS_t/W / (1 − df/W)², df = 1 + Σ λ/(λ + α).

        Leave-one-out with every leverage replaced by their mean: it needs no second pass.
        """
        inverse = self._inverse(alpha)
        shrunk = self.values * inverse
        rss = self.yy - ((self.c**2) * inverse * (2.0 - shrunk)).sum(axis=1)
        freedom = 1.0 - (1.0 + shrunk.sum()) / self.weight
        if freedom <= 0:
            return np.inf
        return float(np.maximum(rss, 0.0).sum() / self.weight / freedom**2)

    def log_evidence(self, alpha: float) -> float:
        """Log marginal likelihood of the W − 1 contrasts of the targets, summed over targets.

        The model is ỹ = Z̃w + ε with w ~ N(0, (σ²/α) I) and ε ~ N(0, σ² I) about the means: the
        flat prior of the intercept leaves W − 1 contrasts. With

            S(α) = ỹᵀ(I + Z̃Z̃ᵀ/α)⁻¹ỹ = ỹᵀỹ − Σ_j c_j² / (λ_j + α)

        the maximum over σ², at σ² = S/(W − 1), is

            −½ [(W − 1) (log(2π S/(W − 1)) + 1) + Σ_j log(1 + λ_j/α)].
        """
        contrasts = self.weight - 1.0
        keep = significant(self.values)
        values, explained = self.values[keep], self.c[:, keep] ** 2 / self.values[keep]
        # What no α explains, and what this one does not: the second is small where rows are fewer
        # than columns, and would be lost in the rounding of ỹᵀỹ.
        unexplained = np.maximum(self.yy - explained.sum(axis=1), 0.0)
        unexplained += (explained * (alpha / (values + alpha))).sum(axis=1)
        # A perfect fit leaves rounding of ỹᵀỹ; constant targets leave nothing at all.
        smallest = np.finfo(np.float64).eps * self.yy + np.finfo(np.float64).tiny
        unexplained = np.maximum(unexplained, smallest)
        fit = contrasts * (np.log(2 * np.pi * unexplained / contrasts) + 1.0)
        return float(-0.5 * (fit + np.log1p(self.values / alpha).sum()).sum())


def spectrum_of(stats: Moments, columns: np.ndarray, diagonal: bool = False) -> Spectrum:
    """The problem on some columns of the statistics; `diagonal` if the scatter is known to be."""
    B, yy = stats.cross()[:, columns], stats.y_scatter()
    if diagonal:
        m = stats.m[columns]
        values = stats.H[columns, columns] - m * m / stats.weight
        return Spectrum(np.maximum(values, 0.0), None, B, yy, stats.weight)
    values, axes = _eigh(_part(stats.scatter(), columns))
    return Spectrum(np.maximum(values, 0.0), axes, B @ axes, yy, stats.weight)


def evidence_alpha(spectra: list[Spectrum]) -> tuple[float, float]:
    """The α of largest evidence of one or several problems, and its logarithm.

    The evidence can have several maxima: a grid over the whole range begins the search.
    """
    scale = max(spectrum.values.max(initial=0.0) for spectrum in spectra)
    if not scale > 0:  # constant features: no α changes anything
        return 1.0, sum(spectrum.log_evidence(1.0) for spectrum in spectra)

    def cost(log_alpha: float) -> float:
        return -sum(spectrum.log_evidence(np.exp(log_alpha)) for spectrum in spectra)

    low, high = np.log(scale) + np.log(EVIDENCE_RANGE)
    decades = (high - low) / np.log(10)
    grid = np.linspace(low, high, int(np.ceil(decades * EVIDENCE_STEPS_PER_DECADE)) + 1)
    costs = [cost(log_alpha) for log_alpha in grid]
    best = int(np.argmin(costs))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    result = minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    if result.fun < costs[best]:
        return float(np.exp(result.x)), -float(result.fun)
    return float(np.exp(grid[best])), -float(costs[best])


def inverse_root(
    stats: Moments, columns: np.ndarray, alpha: float, diagonal: bool = False
) -> np.ndarray:
    """R of shape (k, k) with R Rᵀ = (A + αI)⁻¹; for α = 0 and a singular A, its pseudo-inverse."""
    if not diagonal:
        A = _part(stats.scatter(), columns)
        if _has_factor(A, alpha):
            factor, _ = _cholesky(A, alpha)
            return solve_triangular(factor, np.eye(len(A)), lower=True, check_finite=False).T
        values, axes = _eigh(A)
        scale = np.sqrt(Spectrum(np.maximum(values, 0.0), axes, values, values, 0)._inverse(alpha))
        return axes * scale
    return np.diag(np.sqrt(spectrum_of(stats, columns, diagonal)._inverse(alpha)))


def _has_factor(A: np.ndarray, alpha: float) -> bool:
    """Whether α is above the rounding of A, so that A + αI has a Cholesky factor."""
    return bool(alpha > len(A) * np.finfo(np.float64).eps * np.trace(A))


def ridge_path(
    stats: Moments, columns: np.ndarray, alphas: np.ndarray, diagonal: bool = False
) -> np.ndarray:
    """(A + αI)⁻¹ b for all α, of shape (n_alphas, t, k).

    A Cholesky factorisation takes k³/3 operations at the speed of products, an eigendecomposition
    some 30 times as long but once for all α: few α are factorised, many share the spectrum, as do
    α = 0 (which may need the solution of least norm), α below the rounding of A (whose factor may
    not exist) and a diagonal A (which costs nothing).
    """
    if len(alphas) <= CHOLESKY_UP_TO and not diagonal:
        A, B = _part(stats.scatter(), columns), stats.cross()[:, columns]
        if _has_factor(A, float(np.min(alphas))):
            return np.array([_cholesky_solution(A, B, alpha) for alpha in alphas])
    spectrum = spectrum_of(stats, columns, diagonal)
    return np.array([spectrum.ridge(alpha) for alpha in alphas])


def _part(A: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Rows and columns of a matrix; without a copy where they are all."""
    return A if len(columns) == len(A) else A[np.ix_(columns, columns)]


@contextmanager
def _explain_failure() -> Iterator[None]:
    """ValueError for matrices that cannot be factored: those of a file or of tampered sums."""
    try:
        yield
    except LinAlgError as error:
        raise ValueError(
            f"the sums are not those of any rows, or overflow ({error}). Fit the model again."
        ) from None


def _eigh(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (ascending) and eigenvectors, on the device that solves."""
    device = solving_device()
    if device is None:
        with _explain_failure():
            return host_eigh(A, driver="evd", check_finite=False)
    import torch

    values, vectors = torch.linalg.eigh(to_device(A, device))
    return to_host(values), to_host(vectors)


def _cholesky_solution(A: np.ndarray, B: np.ndarray, alpha: float) -> np.ndarray:
    device = solving_device()
    if device is not None:
        import torch

        shifted = to_device(A, device)
        shifted.diagonal().add_(alpha)
        factor = torch.linalg.cholesky(shifted)
        return to_host(torch.cholesky_solve(to_device(B.T, device), factor)).T
    return cho_solve(_cholesky(A, alpha), B.T, check_finite=False).T


def _cholesky(A: np.ndarray, alpha: float) -> tuple[np.ndarray, bool]:
    """The factor of A + αI, as SciPy's routines take it."""
    shifted = A + alpha * np.eye(len(A))
    with _explain_failure():
        return cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)


def squared_errors(W: np.ndarray, columns: np.ndarray, train: Moments, rows: Moments) -> np.ndarray:
    """Σ of squared errors of some rows for each model and target, from their sums.

    Residuals are y − ȳ − wᵀ(z − z̄) with the means of the training rows; about the rows' own means
    they are a centred quadratic form plus W (ȳ_rows − ȳ − wᵀ(z̄_rows − z̄))².

    Parameters
    ----------
    W : ndarray of shape (…, t, k)
        Weights on `columns`, learned from `train`.

    Returns
    -------
    ndarray of shape (…, t)
    """
    A, B = _part(rows.scatter(), columns), rows.cross()[:, columns]
    inner = rows.y_scatter() - 2 * (W * B).sum(axis=-1) + ((W @ A) * W).sum(axis=-1)
    gap = rows.y_mean - train.y_mean - W @ (rows.mean - train.mean)[columns]
    return np.maximum(inner, 0.0) + rows.weight * gap**2
