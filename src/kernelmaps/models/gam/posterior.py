"""The posterior of the coefficients of a fitted GAM, for standard errors of predictions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...schema import SchemaError, anything, array, record, saved
from ..solvers.pirls import PenalisedFit
from .training_rows import DesignTerm

VARIANCE_SHARE = 0.99  # of a term, which the coefficients that are kept have; errors: 0.995
_JITTER = 1e-10  # of the mean variance: the covariance is positive definite up to rounding errors


@record
class Posterior:
    """Functions of the terms at their codes, and the covariance of their coefficients.

    Standard errors need few digits and few of the coefficients: those with nearly all of the
    variance of a term.

    Attributes
    ----------
    bases : tuple of ndarray of float32, of shape (n_codes, n_functions)
        Of each term; of a pair, which has many codes, in half precision.
    factors : ndarray of float32 of shape (n_outputs, n (n + 1) / 2)
        Rows of the lower Cholesky factor of each output's covariance, the intercept first.
    """

    bases: tuple[np.ndarray, ...] = saved(anything)
    factors: np.ndarray = saved(array("f4", "outputs packed"))

    def _check_state(self) -> None:
        if not isinstance(self.bases, tuple):
            raise SchemaError("the posterior must hold a tuple of bases")
        for basis in self.bases:
            array("f2 f4", "_ _")(basis, "the posterior", {})
        n = self.n_coefficients
        if self.factors.shape[1] != n * (n + 1) // 2:
            raise SchemaError("the posterior has another number of coefficients than its bases")

    @property
    def n_coefficients(self) -> int:
        return 1 + sum(basis.shape[1] for basis in self.bases)

    def factor(self, output: int) -> np.ndarray:
        """L with LLᵀ the covariance of an output's coefficients."""
        n = self.n_coefficients
        lower = np.zeros((n, n))
        lower[np.tril_indices(n)] = self.factors[output]
        return lower

    def intercept_error(self, output: int) -> float:
        """Standard error of the intercept."""
        return float(self.factors[output, 0])


def posterior_of(
    slices: Sequence[tuple[DesignTerm, slice, slice]], fits: Sequence[PenalisedFit]
) -> Posterior:
    """The posterior of some terms, with the uncertainty of the smoothing parameters."""
    bases, indices = [], [np.zeros(1, np.int64)]
    for term, span, _ in slices:
        active = np.unique(np.concatenate([_with_most_variance(fit, span) for fit in fits]))
        dtype = np.float32 if term.pair is None else np.float16
        bases.append(term.basis.values[:, active].astype(dtype))
        indices.append(span.start + active)
    coefficients = np.concatenate(indices)
    lower = np.tril_indices(len(coefficients))
    factors = [_cholesky(_covariance_of(fit, coefficients)) for fit in fits]
    return Posterior(tuple(bases), np.stack([factor[lower] for factor in factors]))


def _with_most_variance(fit: PenalisedFit, span: slice) -> np.ndarray:
    """Coefficients of a term with nearly all of its variance.

    Functions are orthonormal over the rows: the mean of a term's variance is the sum of those of
    its coefficients.
    """
    variances = np.zeros(len(fit.beta))
    variances[fit.active] = fit.covariance.diagonal()
    variances = np.where(fit.beta[span] != 0, variances[span], 0.0)
    order = np.argsort(-variances, kind="stable")
    cumulative = np.cumsum(variances[order])
    count = np.searchsorted(cumulative, VARIANCE_SHARE * cumulative[-1:].sum()) + 1
    return order[:count][variances[order[:count]] > 0]


def _covariance_of(fit: PenalisedFit, coefficients: np.ndarray) -> np.ndarray:
    """Covariance of some coefficients; those outside of the active set have no variance."""
    out = np.zeros((len(coefficients),) * 2)
    _, positions, active = np.intersect1d(coefficients, fit.active, return_indices=True)
    block = np.ix_(active, active)
    out[np.ix_(positions, positions)] = fit.covariance[block] + fit.smoothing_covariance[block]
    return out


def _cholesky(covariance: np.ndarray) -> np.ndarray:
    covariance = covariance.copy()
    covariance.flat[:: len(covariance) + 1] += (
        _JITTER * float(np.trace(covariance)) / len(covariance)
    )
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:  # nearly singular: the factor of the nearest matrix
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        factor = np.linalg.qr(root.T, mode="r").T
    return factor.astype(np.float32)
