"""Search for pairs of columns that interact.

1. Fit the single columns.
2. In rounds: test all pairs beside the model of the round before (:mod:`.score_tests`), add those
   that are significant with few functions, and fit these roughly (:mod:`.fitting`). The level
   of a round is that of all its tests together, so that a table with true pairs gets as few false
   ones as a table without. Pairs that use nearly all of their functions get twice as many in the
   next round, but stay coarse until all pairs are there; those of which nothing is left are
   dropped.
3. Fit the model exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ..._util.threads import limit_blas, map_in_threads
from ..losses import Loss
from ..rows.basis import LevelBasis, coefficient_slices
from ..rows.term_rows import GramCache
from .bases import empty_basis
from .design import AdditiveDesign
from .fitting import FittedDesign, RoughFit, RoughModel, fit_outputs, fit_outputs_roughly
from .pairs import PAIRS, coarse_codes, marginal_basis
from .score_tests import SCORE_TEST, p_value, screen_pairs
from .terms import GamSettings, Pair
from .training_rows import DesignTerm


@dataclass(frozen=True)
class PairSearch:
    """Constants of the search."""

    min_rows: int = 100  # with fewer, cells have too few rows for tests
    n_functions: int = 24  # of a new pair: more pairs fit among the coefficients
    # Of a pair, at most, as long as others are significant. With more, the first pairs of a table
    # with many true ones use up the coefficients: R² of rows of casp_protein's training part that
    # were held out was 0.528 without this limit, 0.545 with it.
    n_functions_in_search: int = 48
    max_rounds: int = 20  # tables of 9 to 20 columns with many true pairs took 10
    full_edf: float = 0.6  # share of its functions at which a pair gets twice as many
    # Coefficients of all terms, since REML costs the cube (with 2000, the same R² is 0.533 in 11
    # seconds instead of 18); and of pairs, if single columns need nearly as many, or more: these
    # are screened.
    max_coefficients: int = 2500
    max_pair_coefficients: int = 1000
    # Columns among whose pairs is searched, those with the strongest effects: 300 have 44,850.
    max_columns: int = 300


PAIR_SEARCH = PairSearch()


def search_pairs(
    design: AdditiveDesign, losses: Sequence[Loss], settings: GamSettings
) -> FittedDesign:
    """Find the pairs of a model and fit it; see the module's docstring.

    Outputs that are fitted together are searched one by one: what one of them needs, all have.
    """
    # An exact fit: what single columns leave over would be taken for an effect of pairs.
    without_pairs = fit_outputs(replace(design, joint_loss=None), losses, settings)
    if settings.estimates_parameter:
        losses = [fit.loss for fit in without_pairs.fits]
    caches = [GramCache() for _ in losses]
    model = _find_pairs(without_pairs, losses, settings, caches)
    if design.joint_loss is not None:
        larger = without_pairs.design if model is None else model.design
        return fit_outputs(replace(larger, joint_loss=design.joint_loss), losses, settings)
    if model is None:
        return without_pairs
    return fit_outputs(model.design, losses, settings, model, caches)


def _find_pairs(
    without_pairs: FittedDesign, losses: Sequence[Loss], settings: GamSettings,
    caches: Sequence[GramCache],
) -> RoughModel | None:  # fmt: skip
    """A model with the pairs that a search finds; None without any."""
    if without_pairs.design.counts[0].sum() < PAIR_SEARCH.min_rows:
        return None
    # The levels of a large factor keep their effects during the search.
    start = _fix_levels(without_pairs)
    search = InteractionSearch(start.design, losses, settings, caches)
    model = search.add_significant_pairs(start)
    if model.design.sizes == start.design.sizes:
        return None
    return _free_levels(model, without_pairs)


def _fix_levels(model: FittedDesign) -> RoughModel:
    """A model whose large factor, the last of the terms, keeps its effects as an offset."""
    terms = list(model.design.terms)
    fits = [RoughFit(fit.beta, fit.edf, fit.rho, fit.dispersion) for fit in model.fits]
    for t, (term, span, smoothing) in enumerate(model.design.slices()):
        if isinstance(term.basis, LevelBasis):
            effects = tuple(fit.beta[span] for fit in fits)
            terms[t] = replace(term, basis=empty_basis(), fixed_effects=effects)
            n, k = span.start, smoothing.start
            fits = [RoughFit(f.beta[:n], f.edf[:n], f.rho[:k], f.dispersion) for f in fits]
    return RoughModel(replace(model.design, terms=tuple(terms)), fits)


def _free_levels(model: RoughModel, before: FittedDesign) -> RoughModel:
    """The model with the large factor of an earlier one as a term again."""
    for factor, span, smoothing in before.design.slices():
        if isinstance(factor.basis, LevelBasis):
            terms = tuple(
                replace(term, basis=factor.basis, fixed_effects=()) if term.fixed_effects else term
                for term in model.design.terms
            )
            fits = [
                RoughFit(
                    np.append(fit.beta, old.beta[span]), np.append(fit.edf, old.edf[span]),
                    np.append(fit.rho, old.rho[smoothing]), fit.dispersion,
                )
                for fit, old in zip(model.fits, before.fits, strict=True)
            ]  # fmt: skip
            return RoughModel(replace(model.design, terms=terms), fits)
    return model


@dataclass(frozen=True)
class InteractionSearch:
    """The design to start from, the outputs and the Gram caches of a search."""

    start: AdditiveDesign
    losses: Sequence[Loss]
    settings: GamSettings
    caches: Sequence[GramCache]

    def add_significant_pairs(self, model: RoughModel) -> RoughModel:
        """Rounds of new pairs, until no other is significant."""
        tried: set[tuple[int, ...]] = set()  # what vanishes is not added again
        candidates: set[Pair] | None = None  # all
        for _ in range(PAIR_SEARCH.max_rounds):
            edf, requested = _pair_edf(model), self.start.n_pairs  # these pairs stay
            vanished = {pair for pair in list(edf)[requested:] if edf[pair] < PAIRS.min_edf}
            terms = tuple(t for t in model.design.terms if t.columns not in vanished)
            design = replace(model.design, terms=terms)
            n_new = max(self.settings.max_pairs + self.start.n_pairs - design.n_pairs, 0)
            pairs, close = self._test(model, tried, candidates) if n_new else ([], set())
            pairs = pairs[:n_new]
            # Finer pairs change little: unless pairs are added, only those that were close to being
            # significant are tested again.
            candidates = None if pairs else close
            larger = self._add_pairs(design, pairs)
            is_complete = larger.n_pairs == design.n_pairs
            finest = PAIRS.max_functions if is_complete else PAIR_SEARCH.n_functions_in_search
            larger = _refine(larger, _pair_edf(model), finest)
            tried |= set(pairs)
            if larger.sizes == model.design.sizes:
                break
            model = fit_outputs_roughly(larger, self.losses, self.settings, model, self.caches)
        return model

    def _add_pairs(self, design: AdditiveDesign, pairs: Sequence[Pair]) -> AdditiveDesign:
        """Add pairs while the model is small enough for REML."""
        larger = design.with_pairs(pairs, PAIR_SEARCH.n_functions)
        single = sum(term.basis.n_functions for term in larger.terms if term.pair is None)
        ends = [span.stop for span in coefficient_slices(larger.bases)]
        max_coefficients = max(
            PAIR_SEARCH.max_coefficients, single + PAIR_SEARCH.max_pair_coefficients
        )
        n_terms = int(np.searchsorted(ends, max_coefficients))
        n_added = min(max(n_terms - len(design.terms), 0), len(pairs))
        return replace(larger, terms=larger.terms[: len(design.terms) + n_added])

    def _candidate_columns(self, model: RoughModel) -> list[int]:
        """Columns among whose pairs is searched, in their order: those of the strongest effects."""
        design = model.design
        # The functions of a term are orthonormal over the rows: its variance is |β|².
        variance = {
            term.columns[0]: max(float(np.sum(fit.beta[span] ** 2)) for fit in model.fits)
            for term, span, _ in design.slices()
            if len(term.columns) == 1
            and np.count_nonzero(design.counts[term.columns[0]]) > 1
            and term.columns[0] not in self.settings.constraints
        }
        return sorted(sorted(variance, key=lambda j: -variance[j])[: PAIR_SEARCH.max_columns])

    def _test(
        self, model: RoughModel, tried: set[tuple[int, ...]], candidates: set[Pair] | None
    ) -> tuple[list[Pair], set[Pair]]:
        """Test pairs that were not tried, only `candidates` if there are any given.

        The level is divided by the number of pairs that were not tried (Bonferroni), also if only
        some are tested. Returns pairs that a test of any output accepts, the most significant
        first, and those with a p-value below the square root of the level. Of significant pairs
        that share a column only the first is taken: the others may owe their significance to it,
        and are tested again beside it.
        """
        design, rows = model.design, model.design.rows
        columns, present = self._candidate_columns(model), tried | set(design.sizes)
        pairs = [pair for pair in combinations(columns, 2) if pair not in present]
        level = SCORE_TEST.level / max(len(self.losses) * (len(pairs) + len(tried)), 1)
        if candidates is not None:
            pairs = [pair for pair in pairs if pair in candidates]
        if not pairs:
            return [], set()
        coarse = {
            j: coarse_codes(design.books[j], design.counts[j], PAIRS.test_codes) for j in columns
        }
        marginal_bases = {
            j: marginal_basis(codes.sum_rows(design.counts[j]), design.books[j].kind == "category")
            for j, codes in coarse.items()
        }
        # p-values, and minus the excess of the screening: it decides between those that are zero.
        evidence: dict[Pair, tuple[float, float]] = {}
        for k, (loss, fit) in enumerate(zip(self.losses, model.fits, strict=True)):
            tables = rows.derivative_tables(design.terms, fit.beta, loss, k, pairs, coarse)
            screened = screen_pairs(pairs, tables, marginal_bases, fit.dispersion)
            with limit_blas(1):  # matrices of some dozen rows: threads would only wait
                for (a, b), table in zip(pairs, tables, strict=True):
                    if (a, b) in screened:
                        p = p_value(table, marginal_bases[a], marginal_bases[b])
                        strength = p, -screened[a, b]
                        evidence[a, b] = min(evidence.get((a, b), (1.0, 0.0)), strength)
        significant: list[Pair] = []
        for pair in sorted(evidence, key=lambda pair: evidence[pair]):
            if evidence[pair][0] < level and not {*pair} & {j for p in significant for j in p}:
                significant.append(pair)
        return significant, {pair for pair, (p, _) in evidence.items() if p < np.sqrt(level)}


def _pair_edf(model: RoughModel) -> dict[tuple[int, ...], float]:
    """Effective degrees of freedom of the pairs, the largest of all outputs."""
    return {
        term.columns: max(float(fit.edf[span].sum()) for fit in model.fits)
        for term, span, _ in model.design.slices()
        if term.pair is not None
    }


def _refine(
    design: AdditiveDesign, edf: dict[tuple[int, ...], float], finest: int
) -> AdditiveDesign:
    """Twice as many functions, `finest` at most, for pairs that use nearly all that they have.

    The coarsest come first: few pairs would otherwise use up the coefficients of all.
    """
    full = [
        term
        for term in design.terms
        if edf.get(term.columns, 0.0) > PAIR_SEARCH.full_edf * term.basis.n_functions
        and 2 * term.basis.n_functions <= finest
    ]
    full.sort(key=lambda term: term.basis.n_functions)
    sums = sum(design.sizes.values()) + np.cumsum([term.basis.n_functions for term in full])
    full = full[: int(np.searchsorted(sums, PAIR_SEARCH.max_coefficients, "right"))]

    def refine(term: DesignTerm) -> DesignTerm:
        assert term.pair is not None
        return replace(term, basis=term.pair.basis(2 * term.basis.n_functions))

    with limit_blas(1):
        finer = {term.columns: term for term in map_in_threads(refine, full, design.n_jobs)}
    return replace(design, terms=tuple(finer.get(term.columns, term) for term in design.terms))
