"""Fits of the outputs of a design, from scratch or from those of a smaller design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..losses import Loss, Squared
from ..rows.basis import LevelBasis
from ..rows.term_rows import GramCache, TermRows
from ..solvers.pirls import PenalisedFit, fit_penalised, unscreened_smoothing
from ..solvers.reml import REML
from .adding_terms import RoughFit, WarmStart, approach_minimum, fit_added_terms
from .design import AdditiveDesign, GamSettings
from .training_rows import DesignTerm

# A warm start begins at smoothing parameters of at most e² times the weight of all rows: a function
# that has vanished has a REML gradient of zero, and would hardly come back by itself. Where curves
# are screened, the screening brings them back: all together would have too many coefficients.
MAX_START_OVER_ROWS = 2.0
# Logarithms of smoothing parameters of rough fits are rounded to multiples of this before an exact
# fit starts from them. Rough fits of rows in memory use Gram matrices of nearby weights, those of
# streams do not: from the same start, both end at the same smoothing parameters.
START_GRID = 0.5


@dataclass(frozen=True)
class FittedDesign:
    """A design, and a fit of each output."""

    design: AdditiveDesign
    fits: list[PenalisedFit]


@dataclass(frozen=True)
class RoughModel:
    """A design, and a rough fit of each output: a model during a search for pairs."""

    design: AdditiveDesign
    fits: list[RoughFit]


def fit_outputs(
    design: AdditiveDesign, losses: Sequence[Loss], settings: GamSettings,
    before: RoughModel | None = None, caches: Sequence[GramCache] | None = None,
) -> FittedDesign:  # fmt: skip
    """Fit all outputs exactly.

    Parameters
    ----------
    design, losses, settings
        The model.
    before : RoughModel, optional
        A model with some of the terms, to start from.
    caches : sequence of GramCache, optional
        About ZᵀWZ of these rows, by output; for squared loss exactly.
    """
    caches = [GramCache() for _ in losses] if caches is None else caches
    fits = [
        _fit_output(design, loss, k, settings, before, caches[k]) for k, loss in enumerate(losses)
    ]
    return FittedDesign(design, fits)


def fit_outputs_roughly(
    design: AdditiveDesign, losses: Sequence[Loss], settings: GamSettings, before: RoughModel,
    caches: Sequence[GramCache],
) -> RoughModel:  # fmt: skip
    """Fit all outputs: the smoothing parameters of terms in `before` stay as they are."""
    fits = [
        _fit_output_roughly(design, loss, k, settings, before, caches[k])
        for k, loss in enumerate(losses)
    ]
    return RoughModel(design, fits)


def _fit_output(
    design: AdditiveDesign, loss: Loss, output: int, settings: GamSettings,
    before: RoughModel | None, cache: GramCache,
) -> PenalisedFit:  # fmt: skip
    """One output of `fit_outputs`."""
    rows = design.rows.with_terms(design.ordered_terms, design.constraint_matrix(), output)
    rho, fixed = _initial_smoothing(design, settings)
    beta = None
    if before is not None:
        start = _warm_start(design, before, output, rho)
        unscreened = unscreened_smoothing(rows, fixed)
        highest = np.where(unscreened, design.log_rows + MAX_START_OVER_ROWS, np.inf)
        estimate = np.minimum(start.rho, highest)
        estimate = START_GRID * np.round(estimate / START_GRID)
        rho, beta = np.where(fixed, rho, estimate), start.beta
        gram = cache.gram_of(rows.bases)
        if gram is not None and not isinstance(loss, Squared):
            beta = approach_minimum(rows, loss, rho, beta, gram)
        elif gram is not None and isinstance(rows, TermRows):
            rows = replace(rows, gram_cache=cache)
    return fit_penalised(rows, loss, rho, fixed, max_iter=settings.max_iter, beta=beta)


def _fit_output_roughly(
    design: AdditiveDesign, loss: Loss, output: int, settings: GamSettings, before: RoughModel,
    cache: GramCache,
) -> RoughFit:  # fmt: skip
    """One output of `fit_outputs_roughly`."""
    rows = design.rows.with_terms(design.ordered_terms, design.constraint_matrix(), output)
    if isinstance(rows, TermRows) and not rows.are_few:
        rows = replace(rows, gram_cache=cache)
    rho, fixed = _initial_smoothing(design, settings)
    start = _warm_start(design, before, output, rho)
    rho = np.where(fixed, rho, start.rho)
    return fit_added_terms(rows, loss, replace(start, rho=rho, fixed=fixed | start.fixed))


def _initial_smoothing(
    design: AdditiveDesign, settings: GamSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the smoothing parameters to start from, and which of them are fixed."""
    rho, fixed = [], []
    for term in design.ordered_terms:
        given, count = settings.smoothing, term.basis.n_smoothing
        if term.kind == "parametric":
            given = REML.no_penalty
        elif isinstance(given, dict):
            given = given.get(term.columns[0]) if term.pair is None else None
        rho += [design.log_rows if given is None else np.log(max(given, 1e-300))] * count
        fixed += [given is not None] * count
    return np.array(rho, float), np.array(fixed, bool)


def _warm_start(
    design: AdditiveDesign, before: RoughModel, output: int, rho: np.ndarray
) -> WarmStart:
    """Start from an earlier fit; smoothing parameters of terms that have not changed are fixed."""
    fit = before.fits[output]
    old = {
        term.columns: (term.basis, span, smoothing)
        for term, span, smoothing in before.design.slices()
    }
    beta = np.zeros(1 + sum(basis.n_functions for basis in design.bases))
    rho, fixed, edf = rho.copy(), np.zeros(len(rho), bool), np.zeros(len(beta))
    beta[0], edf[0] = fit.beta[0], 1.0
    for term, span, smoothing in design.slices():
        if term.columns not in old:
            continue
        old_basis, old_span, old_smoothing = old[term.columns]
        rho[smoothing], fixed[smoothing] = fit.rho[old_smoothing], old_basis is term.basis
        if old_basis is term.basis:
            beta[span], edf[span] = fit.beta[old_span], fit.edf[old_span]
        else:
            beta[span] = _project(term, old_basis.evaluate(fit.beta[old_span]))
    return WarmStart(rho, fixed, beta, edf)


def _project(term: DesignTerm, values: np.ndarray) -> np.ndarray:
    """Coefficients of a term's functions, orthonormal or levels, closest to values at its codes."""
    if isinstance(term.basis, LevelBasis):
        return values
    counts = term.counts.ravel()
    return term.basis.values.T @ (counts * values) / max(float(counts.sum()), 1e-300)
