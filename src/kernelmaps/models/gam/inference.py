r"""The fitted terms with their standard errors, degrees of freedom and tests of "no effect".

Curves and pairs have Wald's test :math:`β^\top V^{-} β` with a pseudo-inverse of rank about edf
(Wood 2013a). It has no power against the many small coefficients of a category, whose test is that
of a variance (Wood 2013b, *A simple test for random effects in regression models*). With D the
penalties of its coefficients b and :math:`φ(M + D)^{-1}` their posterior covariance, b without an
effect has the covariance :math:`φ(M + D)^{-1} M (M + D)^{-1}`, hence

.. math:: b^\top M b / φ \sim \sum_i κ_i^2 χ^2_1, \qquad
          1 - κ = \operatorname{eig}(D^{1/2} (M + D)^{-1} D^{1/2}).

If all κ are equal (levels of as many rows), this is the F test of an unpenalised factor. M is the
Gram matrix of the term without what the penalised other terms explain of it.

Where φ is estimated, F takes the place of χ², with n − edf residual degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import special

from ..losses import Loss
from ..rows.basis import LevelBasis
from ..solvers.pirls import PenalisedFit
from .bases import eigh
from .constraints import enforce_direction
from .fitting import FittedDesign
from .levels import LevelEffects, new_level_variances, without_levels
from .pairs import PAIRS
from .posterior import posterior_of
from .predictor import AdditivePredictor, FittedTerm
from .purification import Part, purify
from .score_tests import mixture_tail
from .training_rows import DesignTerm, Pair


class TermTest(NamedTuple):
    """A test of a term against "no effect".

    Attributes
    ----------
    statistic : float
        F where the dispersion is estimated, else χ².
    reference_df : float
        Degrees of freedom that it is compared with.
    p_value : float
    """

    statistic: float
    reference_df: float
    p_value: float


NO_TEST = TermTest(0.0, 0.0, 1.0)  # of a term that nothing is left of


def build_predictor(
    model: FittedDesign, losses: Sequence[Loss], requested: Container[Pair] = ()
) -> AdditivePredictor:
    """The fitted model, its terms at their codes; pairs that have vanished only if requested.

    Pairs that a search added and that the last fit left next to nothing of are dropped without
    another fit: the other terms stay as they are, and the degrees of freedom of the model (`edf_`)
    still count them.
    """
    n = model.design.total_weight
    residual_df = [
        max(n - float(fit.edf.sum()), 1.0) if loss.estimates_dispersion else np.inf
        for loss, fit in zip(losses, model.fits, strict=True)
    ]
    slices = [
        (term, span, smoothing)
        for term, span, smoothing in model.design.slices()
        if term.pair is None
        or term.columns in requested
        or max(float(fit.edf[span].sum()) for fit in model.fits) >= PAIRS.min_edf
    ]
    parts, moved = purify(slices)
    fits, effects = without_levels(model)
    new_levels = [
        np.stack([new_level_variances(term, fit, smoothing) for fit in fits])
        for term, _, smoothing in slices
    ]
    terms = []
    for i, (term, span, smoothing) in enumerate(slices):
        if isinstance(term.basis, LevelBasis):
            fitted = fitted_levels(term, fits, effects, residual_df, span, smoothing, parts[i])
        else:
            fitted = fitted_term(term, fits, residual_df, span, smoothing, parts[i])
            coefficients = np.stack([fit.beta[span] for fit in fits], axis=-1)
            main_parts = tuple(effect @ coefficients for effect in moved.get(i, ()))
            fitted = replace(fitted, main_parts=main_parts)
        if term.kind == "category":
            fitted = replace(fitted, errors=np.sqrt(fitted.errors**2 + new_levels[i].T))
        terms.append(fitted)
    intercept = np.array([fit.beta[0] for fit in fits])
    posterior = posterior_of(slices, fits, effects, new_levels)
    return AdditivePredictor(model.design.books, tuple(terms), intercept, posterior)


def fitted_levels(
    term: DesignTerm, fits: Sequence[PenalisedFit], effects: Sequence[LevelEffects],
    residual_df: Sequence[float], span: slice, smoothing: slice, parts: Sequence[Part],
) -> FittedTerm:  # fmt: skip
    """A large factor of all outputs; `parts` is what pairs add to its displayed function."""
    values = np.stack([effect.values for effect in effects], axis=-1)
    errors = []
    for effect, fit in zip(effects, fits, strict=True):
        functions, at = active_functions(parts, fit, len(values))
        errors.append(effect.standard_errors(functions, fit, at))
    tests = [
        mixture_test(effect.statistic, effect.null_weights, df)
        for effect, df in zip(effects, residual_df, strict=True)
    ]
    statistic, reference_df, p_value = np.array(tests).T
    edf = np.array([fit.edf[span].sum() for fit in fits])
    parameters = np.stack([np.exp(fit.rho[smoothing]) for fit in fits], axis=-1)
    return FittedTerm(
        term.name, term.kind, term.columns, values, np.stack(errors, axis=-1), term.counts, edf,
        statistic, p_value, parameters, (), reference_df, n_functions=term.basis.n_functions,
    )  # fmt: skip


def fitted_term(
    term: DesignTerm, fits: Sequence[PenalisedFit], residual_df: Sequence[float], span: slice,
    smoothing: slice, parts: Sequence[Part],
) -> FittedTerm:  # fmt: skip
    """A term of all outputs.

    `span` and `smoothing` are where its coefficients and λ are; `parts` is what its displayed
    function consists of, whose standard errors are computed.
    """
    values = np.stack([term.basis.evaluate(fit.beta[span]) for fit in fits], axis=-1)
    edf = np.array([fit.edf[span].sum() for fit in fits])
    shown = [DisplayedFunction.of(parts, fit, term.pair is None) for fit in fits]
    errors = np.stack([function.errors() for function in shown], axis=-1)
    increment_errors = None
    if term.pair is None and term.kind != "category":
        increment_errors = np.stack([function.increment_errors() for function in shown], axis=-1)
    tests = [
        term_test(term, fit, df, span, smoothing) for fit, df in zip(fits, residual_df, strict=True)
    ]
    statistic, reference_df, p_value = np.array(tests).T
    if term.shapes:
        values = enforce_direction(values, term.shapes)
    coarse: tuple[np.ndarray, ...] = ()
    if term.pair is not None:
        shape = term.pair.first.size, term.pair.second.size
        values, errors = values.reshape(*shape, -1), errors.reshape(*shape, -1)
        coarse = term.pair.first.of_code, term.pair.second.of_code
    parameters = np.stack([np.exp(fit.rho[smoothing]) for fit in fits], axis=-1)
    return FittedTerm(
        term.name, term.kind, term.columns, values, errors, term.counts, edf, statistic, p_value,
        parameters, coarse, reference_df, increment_errors=increment_errors,
        n_functions=term.basis.n_functions, extrapolation=term.extrapolation,
    )  # fmt: skip


def active_functions(
    parts: Sequence[Part], fit: PenalisedFit, n_codes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Functions of parts at codes, and the positions of their coefficients in the active set.

    Functions outside of the active set have next to no variance.
    """
    functions, positions = [np.zeros((n_codes, 0))], [np.zeros(0, np.int64)]
    for values, span in parts:
        at = fit.active_in(span)
        functions.append(values[:, fit.active[at] - span.start])
        positions.append(at)
    return np.hstack(functions), np.concatenate(positions)


class DisplayedFunction(NamedTuple):
    """A function that is a sum of parts: its basis at codes, and the covariance of coefficients."""

    basis: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(
        cls, parts: Sequence[Part], fit: PenalisedFit, with_intercept: bool
    ) -> DisplayedFunction:
        """The sum of parts and, if asked for, the intercept.

        Where a centred line crosses zero its own variance is zero, whatever it is a line through.
        Bands of the sum with the intercept cover what smoothing leaves out (Marra and Wood 2012).
        """
        basis, at = active_functions(parts, fit, len(parts[0][0]))
        covariance = fit.covariance_of(at)
        if with_intercept:
            basis = np.hstack([np.ones((len(basis), 1)), basis])
            cross = fit.covariance[0, at]
            covariance = np.block(
                [[fit.covariance[:1, :1], cross[None, :]], [cross[:, None], covariance]]
            )
        return cls(basis, covariance)

    def errors(self) -> np.ndarray:
        """Standard errors at the codes."""
        return _standard_errors(self.basis, self.covariance)

    def increment_errors(self) -> np.ndarray:
        """Standard errors of the increments from bin to bin of a column of numbers."""
        return _standard_errors(np.diff(self.basis[1:], axis=0), self.covariance)


def _standard_errors(functions: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Standard deviations of the rows of `functions` times coefficients with this covariance."""
    return np.sqrt(np.maximum(np.sum((functions @ covariance) * functions, axis=1), 0.0))


def term_test(
    term: DesignTerm, fit: PenalisedFit, residual_df: float, span: slice, smoothing: slice
) -> TermTest:
    """The test of a term, by its kind; in the active set, as in `DisplayedFunction`."""
    at = fit.active_in(span)
    active = fit.active[at]
    beta, covariance = fit.beta[active], fit.covariance[np.ix_(at, at)]
    if not beta.any():
        return NO_TEST
    if term.kind != "category":
        return wald_test(beta, covariance, float(fit.edf[span].sum()), residual_df)
    penalty = term.basis.penalty * np.exp(fit.rho[smoothing])[term.basis.smoothing_index]
    precision = penalty[active - span.start] / fit.dispersion
    return random_effects_test(beta, covariance, precision, residual_df)


def wald_test(
    beta: np.ndarray, covariance: np.ndarray, edf: float, residual_df: float = np.inf
) -> TermTest:
    """Wald's test with a pseudo-inverse of rank about edf."""
    values, vectors = eigh(covariance)
    rank = int(np.clip(np.round(edf), 1, len(beta)))
    largest = slice(len(values) - rank, None)
    along = vectors[:, largest].T @ beta
    statistic = float(np.sum(along**2 / np.maximum(values[largest], 1e-300)))
    if residual_df == np.inf:
        return TermTest(statistic, float(rank), float(special.chdtrc(rank, statistic)))
    ratio = statistic / rank
    return TermTest(ratio, float(rank), float(special.fdtrc(rank, residual_df, ratio)))


def random_effects_test(
    beta: np.ndarray, covariance: np.ndarray, precision: np.ndarray, residual_df: float = np.inf
) -> TermTest:
    """The test of a variance, from a posterior and the `precision` D/φ of its prior."""
    root = np.sqrt(precision)
    values, vectors = eigh(root[:, None] * covariance * root)
    values = np.clip(values, 1e-300, 1.0)
    statistic = float(np.sum((vectors.T @ (root * beta)) ** 2 * (1 - values) / values))
    return mixture_test(statistic, (1 - values) ** 2, residual_df)


def mixture_test(statistic: float, weights: np.ndarray, residual_df: float) -> TermTest:
    """The test of a statistic that is a sum of χ² variables with these weights under "no effect".

    It is scaled to the mean of its degrees of freedom, those of a χ² variable with the same mean
    and variance (Satterthwaite).
    """
    if not weights.sum() > 0:
        return NO_TEST
    df = float(weights.sum() ** 2 / np.sum(weights**2))
    ratio = statistic / float(weights.sum())
    p_value = mixture_tail(statistic, weights, residual_df)
    return TermTest(ratio * df if residual_df == np.inf else ratio, df, p_value)
