"""The fitted terms with their standard errors, degrees of freedom and Wald tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from ..solvers.pirls import PenalisedFit
from .bases import eigh
from .constraints import enforce_direction
from .fitting import FittedDesign
from .predictor import AdditivePredictor, FittedTerm
from .training_rows import DesignTerm, Pair

MIN_PAIR_EDF = 0.3  # pairs that the search added and the last fit left less of are dropped


def build_predictor(model: FittedDesign, requested: Sequence[Pair] = ()) -> AdditivePredictor:
    """The fitted model, its terms at their codes; pairs that have vanished only if requested."""
    terms = []
    for term, span, smoothing in model.design.slices():
        fitted = fitted_term(term, model.fits, span, smoothing)
        if term.pair is None or term.columns in requested or fitted.edf.max() >= MIN_PAIR_EDF:
            terms.append(fitted)
    intercept = np.array([fit.beta[0] for fit in model.fits])
    return AdditivePredictor(model.design.books, tuple(terms), intercept)


def fitted_term(
    term: DesignTerm, fits: Sequence[PenalisedFit], span: slice, smoothing: slice
) -> FittedTerm:
    """A term of all outputs; `span` and `smoothing` are where its coefficients and λ are."""
    by_output = zip(*(term_inference(term, fit, span) for fit in fits), strict=True)
    values, errors, edf, statistic, p_value = (np.stack(item, axis=-1) for item in by_output)
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
        parameters, coarse,
    )  # fmt: skip


def term_inference(term: DesignTerm, fit: PenalisedFit, span: slice) -> tuple:
    """Values and standard errors at the codes, edf, Wald statistic and p-value.

    Functions outside of the active set have coefficients of zero, and next to no variance.
    """
    active = span.start + np.flatnonzero(fit.beta[span])
    basis, beta = term.basis.values[:, active - span.start], fit.beta[active]
    block = np.ix_(active, active)
    covariance, edf = fit.covariance[block], float(fit.edf[span].sum())
    variance = np.sum((basis @ (covariance + fit.smoothing_covariance[block])) * basis, 1)
    if term.pair is None:
        # Where a centred line crosses zero its own variance is zero, whatever it is a line through.
        # Bands of the sum with the intercept cover what smoothing leaves out (Marra and Wood 2012).
        with_intercept = fit.covariance[0, active]
        variance = variance + float(fit.covariance[0, 0]) + 2 * basis @ with_intercept
    errors = np.sqrt(np.maximum(variance, 0.0))
    return basis @ beta, errors, edf, *wald_test(beta, covariance, edf)


def wald_test(beta: np.ndarray, covariance: np.ndarray, edf: float) -> tuple[float, float]:
    """βᵀV⁻β with the pseudo-inverse of rank about edf (Wood 2013), and its χ² tail."""
    if len(beta) == 0:
        return 0.0, 1.0
    values, vectors = eigh(covariance)
    rank = int(np.clip(np.round(edf), 1, len(beta)))
    largest = slice(len(values) - rank, None)
    along = vectors[:, largest].T @ beta
    statistic = float(np.sum(along**2 / np.maximum(values[largest], 1e-300)))
    return statistic, float(special.chdtrc(rank, statistic))
