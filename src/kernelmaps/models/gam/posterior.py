"""The posterior of the coefficients of a fitted GAM, for standard errors of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..._util.schema import SchemaError, anything, array, instance, integer, optional, record, saved

if TYPE_CHECKING:  # a model that was saved predicts without its solver
    from ..solvers.pirls import PenalisedFit
    from .levels import LevelEffects, NewLevels
    from .training_rows import DesignTerm

VARIANCE_SHARE = 0.99  # of a term, which the coefficients that are kept have; errors: 0.995
# Of the variance of levels: what they have in common with the other terms beyond the directions
# that are kept. A covariance that is left out has the size of its root.
LEFT_OUT_SHARE = 1e-4
MAX_LOADINGS = 1 << 21  # numbers that are saved for them, by output: 8 MB
_NEW_LEVEL = -1  # in the place of a coefficient's index, of a coefficient that fits do not have
_JITTER = 1e-10  # of the mean variance: the covariance is positive definite up to rounding errors


@record
class LevelPosterior:
    """Effects of the levels of a large factor, given the coefficients of a posterior.

    With δ = Lξ the deviations of these coefficients, ξ of independent standard normal variables,
    the effect of level c deviates by a_cᵀQᵀξ + ε_c: few directions Q of ξ have
    nearly all of what levels and the other terms have in common, and the variances of ε hold
    the rest.

    Attributes
    ----------
    term : int
        Position of the factor among the terms.
    loadings : tuple of ndarray of float32, of shape (n_codes, n_directions)
        a, by output.
    directions : tuple of ndarray of float32, of shape (n_coefficients, n_directions)
        Q, by output.
    variances : ndarray of float32 of shape (n_outputs, n_codes)
        Of ε.
    """

    term: int = saved(integer(0))
    loadings: tuple[np.ndarray, ...] = saved(anything)
    directions: tuple[np.ndarray, ...] = saved(anything)
    variances: np.ndarray = saved(array("f4", "outputs codes", low=0))

    def _check_state(self) -> None:
        n_outputs, n_codes = self.variances.shape
        for arrays in (self.loadings, self.directions):
            if not isinstance(arrays, tuple) or len(arrays) != n_outputs:
                raise SchemaError("the posterior of levels is of another number of outputs")
        for loading, direction in zip(self.loadings, self.directions, strict=True):
            array("f4", f"{n_codes} _", least=0)(loading, "the posterior of levels", {})
            shape = f"_ {loading.shape[1]}"
            array("f4", shape, least=0)(direction, "the posterior of levels", {})


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
    levels : LevelPosterior, optional
        A large factor, which has no functions among the bases but those of new levels.
    new_levels : tuple of int
        Positions of the coefficients of new levels: of the effect, slope or curve of a level that
        training rows do not show, or show only together with others.
    """

    bases: tuple[np.ndarray, ...] = saved(anything)
    factors: np.ndarray = saved(array("f4", "outputs packed"))
    levels: LevelPosterior | None = saved(optional(instance((LevelPosterior,))), default=None)
    new_levels: tuple[int, ...] = saved(anything, default=())

    def _check_state(self) -> None:
        if not isinstance(self.bases, tuple):
            raise SchemaError("the posterior must hold a tuple of bases")
        for basis in self.bases:
            array("f2 f4", "_ _")(basis, "the posterior", {})
        n = self.n_coefficients
        if self.factors.shape[1] != n * (n + 1) // 2:
            raise SchemaError("the posterior has another number of coefficients than its bases")
        positions = set(range(1, n))
        if not isinstance(self.new_levels, tuple) or not positions.issuperset(self.new_levels):
            raise SchemaError("the posterior has new levels that are no coefficients")
        if self.levels is None:
            return
        factor, of_levels = self.levels.term, self.levels
        if factor >= len(self.bases) or len(self.bases[factor]) != of_levels.variances.shape[1]:
            raise SchemaError("the posterior of levels is of another term")
        if len(of_levels.variances) != len(self.factors) or any(
            len(direction) != n for direction in of_levels.directions
        ):
            raise SchemaError("the posterior of levels has another number of coefficients")

    @property
    def n_coefficients(self) -> int:
        return 1 + sum(basis.shape[1] for basis in self.bases)

    def factor(self, output: int) -> np.ndarray:
        """L with LLᵀ the covariance of an output's coefficients."""
        n = self.n_coefficients
        lower = np.zeros((n, n))
        lower[np.tri(n, dtype=bool)] = self.factors[output]
        return lower

    def intercept_error(self, output: int) -> float:
        """Standard error of the intercept."""
        return float(self.factors[output, 0])


def posterior_of(
    slices: Sequence[tuple[DesignTerm, slice, slice]], fits: Sequence[PenalisedFit],
    effects: Sequence[LevelEffects], new_levels: Sequence[NewLevels],
) -> Posterior:  # fmt: skip
    """The posterior of some terms, with the uncertainty of the smoothing parameters.

    `effects` are those of a large factor, by output, which the fits are without. `new_levels` are
    what the fits do not show of the levels of each term.
    """
    from ..rows.basis import LevelBasis

    bases, indices, factor = [], [np.zeros(1, np.int64)], None
    variances = [np.zeros((len(fits), 1))]  # of new levels, by coefficient
    for t, ((term, span, _), new) in enumerate(zip(slices, new_levels, strict=True)):
        active = np.zeros(0, np.int64)
        functions = np.zeros((term.counts.size, 0))
        if isinstance(term.basis, LevelBasis):
            factor = t
        else:
            active = np.unique(np.concatenate([_with_most_variance(fit, span) for fit in fits]))
            functions = term.basis.values[:, active]
        dtype = np.float32 if term.pair is None else np.float16
        bases.append(np.hstack([functions, new.functions]).astype(dtype))
        indices += [span.start + active, np.full(new.functions.shape[1], _NEW_LEVEL)]
        variances += [np.zeros((len(fits), len(active))), new.variances]
    coefficients, of_new = np.concatenate(indices), np.hstack(variances)
    lower = np.tri(len(coefficients), dtype=bool)
    factors = [
        _cholesky(_covariance_of(fit, coefficients) + np.diag(variance))
        for fit, variance in zip(fits, of_new, strict=True)
    ]
    packed, levels = np.stack([lower_factor[lower] for lower_factor in factors]), None
    if factor is not None:
        of_outputs = [
            _level_deviations(*_with_levels(effect, fit, coefficients), lower_factor, effect.shares)
            for effect, fit, lower_factor in zip(effects, fits, factors, strict=True)
        ]
        loadings, directions, unshared = zip(*of_outputs, strict=True)
        levels = LevelPosterior(factor, loadings, directions, np.stack(unshared))
    positions = np.flatnonzero(coefficients == _NEW_LEVEL).tolist()
    return Posterior(tuple(bases), packed, levels, tuple(positions))


def _with_levels(
    effects: LevelEffects, fit: PenalisedFit, coefficients: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Covariances of levels with some coefficients, and their variances."""
    out = np.zeros((len(effects.values), len(coefficients)))
    _, positions, active = np.intersect1d(coefficients, fit.active, return_indices=True)
    out[:, positions], variances = effects.joint(fit, active)
    return out, variances


def _level_deviations(
    covariance: np.ndarray, variances: np.ndarray, factor: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loadings, directions and variances of `LevelPosterior`, for one output.

    `covariance` is that of the levels and the coefficients, with the Cholesky factor `factor`.
    """
    from scipy.linalg import solve_triangular

    factor = factor.astype(np.float64)
    factor.flat[:: len(factor) + 1] += factor.diagonal() == 0  # coefficients without a variance
    whitened = solve_triangular(factor, covariance.T, lower=True).T
    values, vectors = np.linalg.eigh(whitened.T @ (shares[:, None] * whitened))
    left_out = np.cumsum(np.maximum(values, 0.0))
    first = int(np.searchsorted(left_out, LEFT_OUT_SHARE * float(shares @ variances)))
    first = max(first, len(values) - MAX_LOADINGS // len(shares))
    directions = vectors[:, first:]
    loadings = whitened @ directions
    shared = np.sum(loadings**2, axis=1)  # at most the variance, but for rounding errors
    loadings *= np.sqrt(np.minimum(variances / np.maximum(shared, 1e-300), 1.0))[:, None]
    unshared = np.maximum(variances - shared, 0.0)
    return tuple(values.astype(np.float32) for values in (loadings, directions, unshared))


def _with_most_variance(fit: PenalisedFit, span: slice) -> np.ndarray:
    """Coefficients of a term with nearly all of its variance.

    Functions are orthonormal over the rows: the mean of a term's variance is the sum of those of
    its coefficients.
    """
    variances = np.zeros(len(fit.beta))
    variances[fit.active[: len(fit.covariance)]] = fit.covariance.diagonal()
    variances = variances[span]
    order = np.argsort(-variances, kind="stable")
    cumulative = np.cumsum(variances[order])
    count = np.searchsorted(cumulative, VARIANCE_SHARE * cumulative[-1:].sum()) + 1
    return order[:count][variances[order[:count]] > 0]


def _covariance_of(fit: PenalisedFit, coefficients: np.ndarray) -> np.ndarray:
    """Covariance of some coefficients; those outside of the active set have no variance."""
    out = np.zeros((len(coefficients),) * 2)
    _, positions, active = np.intersect1d(coefficients, fit.active, return_indices=True)
    out[np.ix_(positions, positions)] = fit.covariance_of(active)
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
