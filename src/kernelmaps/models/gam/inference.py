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

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from ..losses import Loss
from ..solvers.pirls import PenalisedFit
from .bases import eigh
from .constraints import enforce_direction
from .fitting import FittedDesign
from .predictor import AdditivePredictor, FittedTerm
from .score_tests import mixture_tail
from .training_rows import DesignTerm, Pair

MIN_PAIR_EDF = 0.3  # pairs that the search added and the last fit left less of are dropped


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
    model: FittedDesign, losses: Sequence[Loss], requested: Sequence[Pair] = ()
) -> AdditivePredictor:
    """The fitted model, its terms at their codes; pairs that have vanished only if requested."""
    terms = []
    n = model.design.n_rows
    residual_df = [
        max(n - float(fit.edf.sum()), 1.0) if loss.estimates_dispersion else np.inf
        for loss, fit in zip(losses, model.fits, strict=True)
    ]
    for term, span, smoothing in model.design.slices():
        fitted = fitted_term(term, model.fits, residual_df, span, smoothing)
        if term.pair is None or term.columns in requested or fitted.edf.max() >= MIN_PAIR_EDF:
            terms.append(fitted)
    intercept = np.array([fit.beta[0] for fit in model.fits])
    return AdditivePredictor(model.design.books, tuple(terms), intercept)


def fitted_term(
    term: DesignTerm, fits: Sequence[PenalisedFit], residual_df: Sequence[float], span: slice,
    smoothing: slice,
) -> FittedTerm:  # fmt: skip
    """A term of all outputs; `span` and `smoothing` are where its coefficients and λ are."""
    by_output = [term_inference(term, fit, span) for fit in fits]
    values, errors, edf = (np.stack(item, axis=-1) for item in zip(*by_output, strict=True))
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
        parameters, coarse, reference_df,
    )  # fmt: skip


def term_inference(term: DesignTerm, fit: PenalisedFit, span: slice) -> tuple:
    """Values and standard errors at the codes, and edf.

    Functions outside of the active set have coefficients of zero, and next to no variance.
    """
    active = span.start + np.flatnonzero(fit.beta[span])
    basis, beta = term.basis.values[:, active - span.start], fit.beta[active]
    at = np.searchsorted(fit.active, active)
    block = np.ix_(at, at)
    covariance, edf = fit.covariance[block], float(fit.edf[span].sum())
    variance = np.sum((basis @ (covariance + fit.smoothing_covariance[block])) * basis, 1)
    if term.pair is None:
        # Where a centred line crosses zero its own variance is zero, whatever it is a line through.
        # Bands of the sum with the intercept cover what smoothing leaves out (Marra and Wood 2012).
        with_intercept = fit.covariance[0, at]
        variance = variance + float(fit.covariance[0, 0]) + 2 * basis @ with_intercept
    errors = np.sqrt(np.maximum(variance, 0.0))
    return basis @ beta, errors, edf


def term_test(
    term: DesignTerm, fit: PenalisedFit, residual_df: float, span: slice, smoothing: slice
) -> TermTest:
    """The test of a term, by its kind; in the active set, as in `term_inference`."""
    functions = np.flatnonzero(fit.beta[span])
    if not len(functions):
        return NO_TEST
    active = span.start + functions
    beta, covariance = fit.beta[active], fit.covariance[np.ix_(active, active)]
    if term.kind != "category":
        return wald_test(beta, covariance, float(fit.edf[span].sum()), residual_df)
    penalty = term.basis.penalty * np.exp(fit.rho[smoothing])[term.basis.group]
    precision = penalty[functions] / fit.dispersion
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
    """The test of a variance, from a posterior and the `precision` D/φ of its prior.

    The statistic is scaled to the mean of its degrees of freedom, those of a χ² variable with the
    same mean and variance (Satterthwaite).
    """
    root = np.sqrt(precision)
    values, vectors = eigh(root[:, None] * covariance * root)
    values = np.clip(values, 1e-300, 1.0)
    squares = (1 - values) ** 2
    if not squares.sum() > 0:
        return NO_TEST
    statistic = float(np.sum((vectors.T @ (root * beta)) ** 2 * (1 - values) / values))
    df = float(squares.sum() ** 2 / np.sum(squares**2))
    ratio = statistic / float(squares.sum())
    p_value = mixture_tail(statistic, squares, residual_df)
    return TermTest(ratio * df if residual_df == np.inf else ratio, df, p_value)
