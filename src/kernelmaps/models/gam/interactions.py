"""Search for pairs of columns that interact.

1. Fit the single columns to three quarters of the rows.
2. In rounds: rank the pairs by what the gradients of the fitted losses leave to gain
   (:func:`.pairs.rank_pairs`), add the best with few functions, fit these roughly
   (:mod:`.adding_terms`), and keep those that lower the held-out loss (:mod:`.holdout`). Pairs that
   use nearly all of their functions get twice as many in the next round; those of which nothing is
   left are dropped.
3. Add pairs by score tests on all rows (:mod:`.score_tests`), which detect what a quarter of the
   rows is too small to show.
4. Fit the model to all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ..losses import Loss, Squared
from ..rows.basis import coefficient_slices
from ..rows.in_memory import GramCache, TermRows
from .bases import pair_margin
from .design import AdditiveDesign, GamSettings, build_in_threads
from .fitting import FittedDesign, fit_extension, fit_outputs
from .pairs import CoarseCodes, rank_pairs, ranking_codes
from .score_tests import SCORE_TEST, SquaredGradients, p_value, screened_pairs
from .stream import TrainingRows
from .training_rows import DesignTerm, Pair, RowsInMemory


@dataclass(frozen=True)
class RoundOptions:
    """What differs between the first round of a search and the later ones."""

    n_pairs: int  # added at most
    n_functions: int  # of a new pair
    min_z: float  # standard deviations by which a pair's gain must exceed chance to be tried
    holdout_z: float  # standard errors by which all new pairs together must lower held-out losses


@dataclass(frozen=True)
class PairSearch:
    """Constants of the search."""

    min_rows: int = 100  # with fewer, held-out rows can neither show pairs nor judge them
    # The first pairs have to show that the table has any: few, the surest, with room to show it.
    # Later rounds add more, and ask less of them.
    first: RoundOptions = RoundOptions(n_pairs=5, n_functions=48, min_z=1.5, holdout_z=2.5)
    later: RoundOptions = RoundOptions(n_pairs=10, n_functions=24, min_z=0.5, holdout_z=0.0)
    max_rounds: int = 6
    pair_holdout_z: float = 0.5  # standard errors by which each new pair must lower the loss
    full_edf: float = 0.6  # share of its functions at which a pair gets twice as many
    min_edf: float = 0.3  # of a pair that stays
    # Coefficients of all terms, since REML costs the cube; and of pairs, if single columns need
    # nearly as many, or more: these are screened.
    max_coefficients: int = 2000
    max_pair_coefficients: int = 1000
    # Columns among whose pairs is searched, those with the strongest effects: 300 have 44,850.
    max_columns: int = 300
    score_test_rounds: int = 3  # each with the pairs of the one before in the model


PAIR_SEARCH = PairSearch()


def search_pairs(
    design: AdditiveDesign, losses: Sequence[Loss], settings: GamSettings
) -> FittedDesign:
    """Find the pairs of a model and fit it; see the module's docstring."""
    if design.counts[0].sum() < PAIR_SEARCH.min_rows:
        return fit_outputs(design, losses, settings)
    search = InteractionSearch(design, losses, settings)
    model = search.by_held_out_rows()
    model = search.by_score_tests(model)
    final = replace(design, terms=model.design.terms)
    if final.sizes == design.sizes:  # exactly the model without a search
        return fit_outputs(design, losses, settings)
    caches = [search.cache_of_all_rows(final, k) for k in range(len(losses))]
    return fit_outputs(final, losses, settings, model, caches)


class InteractionSearch:
    """The rows, outputs and Gram caches of a search."""

    def __init__(
        self, design: AdditiveDesign, losses: Sequence[Loss], settings: GamSettings
    ) -> None:
        self.start, self.losses, self.settings = design, losses, settings
        self.rows: TrainingRows
        self.held_out: TrainingRows
        self.rows, self.held_out = design.rows.split()
        self.caches = [GramCache() for _ in losses]

    def by_held_out_rows(self) -> FittedDesign:
        """Rounds of new pairs, until the held-out loss no longer falls."""
        # An exact fit: what single columns leave over would be taken for an effect of pairs.
        model = fit_outputs(replace(self.start, rows=self.rows), self.losses, self.settings)
        tried = {term.columns for term in self.start.terms if term.pair is not None}
        options = PAIR_SEARCH.first
        for _ in range(PAIR_SEARCH.max_rounds):
            larger = _refined(model, self.start.n_pairs)
            n_new = min(options.n_pairs, self._pairs_left(larger))
            if n_new > 0:
                pairs = self._promising_pairs(model, tried, options.min_z)[:n_new]
                larger, added = self._add_pairs(larger, pairs, options.n_functions)
                tried |= set(added)
            if larger.sizes == model.design.sizes:
                break
            previous = [replace(cache) for cache in self.caches]
            candidate = self._fit_roughly(larger, model)
            accepted = select_by_holdout(
                self.held_out, self.losses, model, candidate, options is PAIR_SEARCH.first
            )
            if accepted is None:
                self._restore_caches(previous, model.design)
                break
            model, options = accepted, PAIR_SEARCH.later
        return model

    def by_score_tests(self, model: FittedDesign) -> FittedDesign:
        """Add the pairs that score tests on all rows accept.

        The rows of the fits stay the same: products of their terms are cached.
        """
        for _ in range(PAIR_SEARCH.score_test_rounds):
            n_new = max(self._pairs_left(model.design), 0)
            pairs = self._significant_pairs(model)[:n_new] if n_new else []
            larger, added = self._add_pairs(model.design, pairs, PAIR_SEARCH.first.n_functions)
            if not added:
                break
            model = self._fit_roughly(larger, model)
        return model

    def _fit_roughly(self, design: AdditiveDesign, before: FittedDesign) -> FittedDesign:
        return fit_outputs(
            design, self.losses, self.settings, before, self.caches, fit=fit_extension
        )

    def _pairs_left(self, design: AdditiveDesign) -> int:
        """How many more pairs a model may get."""
        return self.settings.max_pairs + self.start.n_pairs - design.n_pairs

    def _add_pairs(
        self, design: AdditiveDesign, pairs: Sequence[Pair], n_functions: int
    ) -> tuple[AdditiveDesign, list[Pair]]:
        """Add pairs while the model is small enough for REML.

        Their functions are those of all rows, as in the final fit.
        """
        larger = design.with_pairs(pairs, self.start.rows, n_functions)
        single = sum(term.basis.n_functions for term in larger.terms if term.pair is None)
        ends = [span.stop for span in coefficient_slices(larger.bases)]
        most = max(PAIR_SEARCH.max_coefficients, single + PAIR_SEARCH.max_pair_coefficients)
        n_terms = int(np.searchsorted(ends, most))
        n_added = min(max(n_terms - len(design.terms), 0), len(pairs))
        terms = larger.terms[: len(design.terms) + n_added]
        return replace(larger, terms=terms), list(pairs[:n_added])

    def _open_pairs(
        self, model: FittedDesign, tried: set[tuple[int, ...]]
    ) -> tuple[list[Pair], dict[int, CoarseCodes]]:
        """Pairs that were not tried, and the coarse codes of their columns."""
        design = model.design
        # The functions of a term are orthonormal over the rows: its variance is |β|².
        variance = {
            term.columns[0]: max(float(np.sum(fit.beta[span] ** 2)) for fit in model.fits)
            for term, span, _ in design.slices()
            if term.pair is None
            and np.count_nonzero(design.counts[term.columns[0]]) > 1
            and term.columns[0] not in self.settings.constraints
        }
        strongest = sorted(variance, key=lambda j: -variance[j])[: PAIR_SEARCH.max_columns]
        usable = sorted(strongest)
        pairs = [pair for pair in combinations(usable, 2) if pair not in tried]
        return pairs, ranking_codes(design.books, design.counts, usable)

    def _promising_pairs(
        self, model: FittedDesign, tried: set[tuple[int, ...]], min_z: float
    ) -> list[Pair]:
        """Pairs by what they promise to gain in any output, the most promising first."""
        design = model.design
        pairs, coarse = self._open_pairs(model, tried)
        gains: dict[Pair, float] = {}
        for k, (loss, fit) in enumerate(zip(self.losses, model.fits, strict=True)):
            tables, curvature, n_rows = design.rows.gradient_tables(
                design.terms, fit.beta, loss, k, pairs, coarse
            )
            for pair, gain in rank_pairs(pairs, tables, curvature / n_rows, fit.dispersion, min_z):
                gains[pair] = max(gains.get(pair, 0.0), gain)
        return sorted(gains, key=lambda pair: -gains[pair])

    def _significant_pairs(self, model: FittedDesign) -> list[Pair]:
        """Pairs that a score test of any output accepts, the most significant first.

        The level is divided by the number of tests (Bonferroni). Of pairs that share a column only
        the first is taken: the others may owe their significance to it, and are tested again
        beside it.
        """
        design, rows = model.design, self.start.rows
        in_model = {term.columns for term in design.terms if term.pair is not None}
        pairs, coarse = self._open_pairs(model, in_model)
        margins = {
            j: pair_margin(codes.sum_rows(design.counts[j]), design.books[j].kind == "category")
            for j, codes in coarse.items()
        }
        p_values: dict[Pair, float] = {}
        for k, (loss, fit) in enumerate(zip(self.losses, model.fits, strict=True)):
            tables, _, _ = rows.gradient_tables(design.terms, fit.beta, loss, k, pairs, coarse)
            screened = screened_pairs(pairs, tables, margins, fit.dispersion)
            if not screened:
                continue
            by_pair = dict(zip(pairs, tables, strict=True))
            squares, _, _ = rows.gradient_tables(
                design.terms, fit.beta, SquaredGradients(base=loss), k, screened, coarse
            )
            for pair, (square, _) in zip(screened, squares, strict=True):
                p = p_value(*by_pair[pair], square, margins[pair[0]], margins[pair[1]])
                p_values[pair] = min(p_values.get(pair, 1.0), p)
        n_tests = len(self.losses) * (len(pairs) + len(in_model))
        return _disjoint_below(p_values, SCORE_TEST.level / max(n_tests, 1))

    def _restore_caches(self, previous: Sequence[GramCache], design: AdditiveDesign) -> None:
        """Take back Gram caches that lost products of the terms of a design."""
        pairs = zip(self.caches, previous, strict=True)
        self.caches = [new if new.has(design.bases) else old for new, old in pairs]

    def cache_of_all_rows(self, design: AdditiveDesign, output: int) -> GramCache:
        """The Gram matrix of all rows from that of the fitted ones.

        It is exact for squared loss, else scaled, since the working weights were others.
        """
        bases, rows = design.bases, design.rows
        gram = self.caches[output].gram_of(bases)
        held_out = self.held_out.with_terms(design.terms, None, output)
        if gram is None or not isinstance(rows, RowsInMemory) or not isinstance(held_out, TermRows):
            return GramCache()
        if isinstance(self.losses[output], Squared):
            more, _ = held_out.cross_products(held_out.weight, held_out.weight)
            return GramCache(rows.weight, bases, gram + more)
        share = rows.total_weight / max(self.rows.total_weight, 1e-300)
        return GramCache(None, bases, gram * share)


def _disjoint_below(p_values: dict[Pair, float], level: float) -> list[Pair]:
    """Pairs with a p-value below a level, none of which share a column."""
    columns: set[int] = set()
    disjoint = []
    for pair in sorted(p_values, key=lambda pair: p_values[pair]):
        if p_values[pair] < level and not columns & set(pair):
            disjoint.append(pair)
            columns |= set(pair)
    return disjoint


def select_by_holdout(
    held_out: TrainingRows, losses: Sequence[Loss], before: FittedDesign, after: FittedDesign,
    first: bool,
) -> FittedDesign | None:  # fmt: skip
    """The larger model without the new pairs that do not lower the held-out loss.

    None if the new pairs together do not: the first have to prove that the table has any.
    """
    options = PAIR_SEARCH.first if first else PAIR_SEARCH.later
    old = set(before.design.sizes)
    new = [term.columns for term in after.design.terms if term.columns not in old]
    smaller = [before.coefficients, *(after.without({pair}).coefficients for pair in new)]
    together, *gains = held_out.gains(losses, smaller, after.coefficients)
    if first and not together.z_score > 0:  # what a selection by these rows leaves proves little
        return None
    min_z = PAIR_SEARCH.pair_holdout_z
    dropped = {pair for pair, gain in zip(new, gains, strict=True) if not gain.z_score > min_z}
    if dropped:
        after = after.without(dropped)
        (together,) = held_out.gains(losses, smaller[:1], after.coefficients)
    return after if together.z_score > options.holdout_z else None


def _refined(model: FittedDesign, n_requested: int) -> AdditiveDesign:
    """Without pairs that have vanished; twice as many functions for those that use nearly all."""
    design = model.design
    edf = {
        term.columns: max(float(fit.edf[span].sum()) for fit in model.fits)
        for term, span, _ in design.slices()
        if term.pair is not None
    }
    vanished = {pair for pair in list(edf)[n_requested:] if edf[pair] < PAIR_SEARCH.min_edf}
    terms = tuple(term for term in design.terms if term.columns not in vanished)
    full = [
        term
        for term in terms
        if edf.get(term.columns, 0.0) > PAIR_SEARCH.full_edf * term.basis.n_functions
    ]
    finer = {
        term.columns: term for term in build_in_threads(_with_twice_as_many, full, design.n_jobs)
    }
    larger = replace(design, terms=tuple(finer.get(term.columns, term) for term in terms))
    small = sum(larger.sizes.values()) <= PAIR_SEARCH.max_coefficients
    return larger if small else replace(design, terms=terms)


def _with_twice_as_many(term: DesignTerm) -> DesignTerm:
    """A pair with twice as many functions."""
    assert term.pair is not None
    return replace(term, basis=term.pair.basis(2 * term.basis.n_functions))
