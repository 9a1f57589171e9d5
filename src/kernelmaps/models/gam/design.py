"""The model that is asked for, and its design: coded rows and the terms on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._util.arguments import argument
from ..._util.threads import limit_blas, map_in_threads
from ...data.columns import Column
from ..losses import Loss, LossTotals, Quantile
from ..rows.basis import Basis, LevelBasis, TermBasis, coefficient_slices
from .codebooks import CODING, Codebook, LevelCounts, encode_columns, fit_codebook
from .constraints import constraint_rows
from .functions import STRAIGHT, values_at
from .pairs import LinearSides, build_pair, pair_codes
from .single_column import column_targets
from .stream import TrainingRows
from .terms import Term, TermColumn, term_bases
from .training_rows import DesignTerm, Pair, RowsInMemory

MAX_TERMS = 5000  # of single columns: a Newton step of REML takes their cube, 10 s on one core
# Levels of all further large factors together, which are part of the dense equations: REML takes
# their cube, and their square times the levels of the largest factor. (2000 beside 5000 of 50,000
# rows: 80 s on one core.) Products with the levels of the largest one are limited, too: to 256 MiB,
# of which a fit holds up to seven copies.
MAX_FURTHER_LEVELS = 3000
MAX_BORDER = 1 << 25
# Share of the rows of a sample without a level of their own, from which on the levels of a category
# are counted over all rows of a stream.
MAX_OTHER_SHARE = 0.01


@dataclass(frozen=True)
class ExactValues:
    """When functions are evaluated at the values of rows in memory, not at the means of bins.

    The bins of few rows are wide: with 3 of 150 rows in each, R² of a table of 100 spectral columns
    is 0.916, and 0.944 with the values. With 1200 and 1700 rows scores changed by 0.0002.
    """

    max_rows: int = 2000
    max_entries: int = 1 << 24  # of the model matrix, which is dense then: 128 MiB


EXACT = ExactValues()


@dataclass(frozen=True)
class GamSettings:
    """What an estimator asks for, in positions of columns.

    Attributes
    ----------
    terms : dict of int to Term
        By column.
    pairs : dict of (int, int) to (bool, bool)
        Pairs to include, and whether they are linear in their first and in their second column.
    max_pairs : int
        Most pairs to search for beside these.
    smoothing : dict of int to float, or float, or None
        Fixed smoothing parameters by column, or of all terms; None, and columns that are not
        listed: estimated.
    constraints : dict of int to tuple of str
        Shapes by column.
    max_iter : int
    n_jobs : int or None
    owner : str
        Estimator, for messages.
    frequency_weights : bool
        Whether a weight counts repeated rows; else weights are relative.
    """

    terms: dict[int, Term]
    pairs: dict[Pair, LinearSides]
    max_pairs: int = 0
    smoothing: dict[int, float] | float | None = None
    constraints: dict[int, tuple[str, ...]] = field(default_factory=dict)
    max_iter: int = 100
    n_jobs: int | None = None
    owner: str = "AdditiveModel"
    frequency_weights: bool = False


@dataclass(frozen=True)
class AdditiveDesign:
    """Coded rows and the terms on them.

    `counts` are the weights of the codes of each column, `totals` sums over all rows by output.
    """

    rows: TrainingRows
    counts: tuple[np.ndarray, ...]
    terms: tuple[DesignTerm, ...]
    n_jobs: int | None = None
    totals: tuple[LossTotals, ...] = ()

    @property
    def books(self) -> tuple[Codebook, ...]:
        return self.rows.books

    @property
    def ordered_terms(self) -> tuple[DesignTerm, ...]:
        """The terms in the order of their coefficients: a large factor is the last."""
        return tuple(sorted(self.terms, key=lambda term: isinstance(term.basis, LevelBasis)))

    @property
    def bases(self) -> list[Basis]:
        """Bases of the terms in the order of their coefficients."""
        return [term.basis for term in self.ordered_terms]

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return float(self.counts[0].sum())

    @property
    def log_rows(self) -> float:
        """Logarithm of a smoothing parameter that weighs as much as all rows."""
        return float(np.log(max(self.total_weight, 1e-300)))

    @property
    def n_pairs(self) -> int:
        return sum(term.pair is not None for term in self.terms)

    @property
    def sizes(self) -> dict[tuple[int, ...], int]:
        """Numbers of functions, by the columns of the terms."""
        return {term.columns: term.basis.n_functions for term in self.terms}

    def has_same_terms(self, other: AdditiveDesign) -> bool:
        """Whether both have the same terms, with as many functions each."""
        return self.sizes == other.sizes

    def slices(self) -> list[tuple[DesignTerm, slice, slice]]:
        """The terms, and where their coefficients and their smoothing parameters are."""
        ends = np.cumsum([basis.n_smoothing for basis in self.bases]).tolist()
        smoothing_slices = [
            slice(end - basis.n_smoothing, end) for end, basis in zip(ends, self.bases, strict=True)
        ]
        places = zip(
            self.ordered_terms, coefficient_slices(self.bases), smoothing_slices, strict=True
        )
        by_columns = {term.columns: (span, smoothing) for term, span, smoothing in places}
        return [(term, *by_columns[term.columns]) for term in self.terms]

    def constraint_matrix(self) -> np.ndarray | None:
        """C of the constraints Cβ ≥ 0 on the coefficients of all terms but a large factor."""
        bases = [basis for basis in self.bases if not isinstance(basis, LevelBasis)]
        blocks, size = [], 1 + sum(basis.n_functions for basis in bases)
        for term, span, _ in self.slices():
            if term.shapes and isinstance(term.basis, TermBasis):
                rows = constraint_rows(term.shapes, self.books[term.columns[0]], term.basis.values)
                blocks.append(np.zeros((len(rows), size)))
                blocks[-1][:, span] = rows
        return np.concatenate(blocks) if blocks else None

    def with_pairs(
        self, pairs: Sequence[Pair], n_functions: int | None = None,
        requested: Mapping[Pair, LinearSides] | None = None,
    ) -> AdditiveDesign:  # fmt: skip
        """The design with more pairs, of at most `n_functions` each.

        Those in `requested` may be linear in a column.
        """
        requested = requested or {}
        codes = [pair_codes(p, self.books, self.counts, requested.get(p)) for p in pairs]
        cells = self.rows.pair_counts(pairs, codes)

        def build(index: int) -> DesignTerm:
            j, k = pairs[index]
            sides = requested.get((j, k))
            pair = build_pair((j, k), self.books, self.counts, codes[index], cells[index], sides)
            basis = pair.basis() if n_functions is None else pair.basis(n_functions)
            name = f"{self.books[j].name} × {self.books[k].name}"
            return DesignTerm(name, "pair", (j, k), basis, pair.counts, pair)

        terms = build_in_threads(build, range(len(pairs)), self.n_jobs)
        return replace(self, terms=(*self.terms, *terms))


def build_in_threads(
    build: Callable[[Any], DesignTerm], items: Sequence[Any], n_jobs: int | None
) -> list[DesignTerm]:
    """Build pairs in threads: each basis is an eigenvalue problem."""
    with limit_blas(1):
        return map_in_threads(build, items, n_jobs)


def encode_rows(
    columns: Sequence[Column], targets: Sequence[np.ndarray], weight: np.ndarray,
    offset: np.ndarray, settings: GamSettings,
    levels: Mapping[int, LevelCounts] | None = None,
) -> RowsInMemory:  # fmt: skip
    """Code the columns of rows in memory; `levels` are those of categories in more rows."""
    with np.errstate(over="ignore"):
        books = _fit_codebooks(columns, weight, settings, levels or {})
        _check_ranges(books, settings.owner)
    codes = encode_columns(books, columns, settings.owner, settings.n_jobs)
    rows = RowsInMemory(books, codes, tuple(targets), weight, offset, settings.n_jobs)
    if len(weight) > EXACT.max_rows:
        return rows
    binned = [j for j, book in enumerate(books) if len(book.nodes) > 1 and not book.exact]
    return replace(rows, numbers={j: columns[j].values for j in binned})


def _fit_codebooks(
    columns: Sequence[Column], weight: np.ndarray, settings: GamSettings,
    levels: Mapping[int, LevelCounts],
) -> tuple[Codebook, ...]:  # fmt: skip
    """Codes of all columns; the largest factor has any number of levels, others have limits."""

    def fit(j: int, max_levels: int | None = None) -> Codebook:
        if j in levels:
            return levels[j].codebook(columns[j].name, max_levels)
        return fit_codebook(columns[j], weight, settings.frequency_weights, max_levels)

    books = [fit(j) for j in range(len(columns))]
    largest, limit = large_factor(books, settings), max_further_levels(books, settings)
    for j, book in enumerate(books):
        if book.is_large and j != largest:
            books[j] = fit(j, limit)
    return tuple(books)


def large_factor(books: Sequence[Codebook], settings: GamSettings) -> int:
    """The column whose levels are eliminated from systems of equations; −1 if there is none."""
    large = [j for j in settings.terms if books[j].is_large]
    return max(large, key=lambda j: (books[j].n_codes, -j), default=-1)


def max_further_levels(books: Sequence[Codebook], settings: GamSettings) -> int:
    """The most levels that each other factor has beside the largest one."""
    fewest = CODING.max_codes - 2  # which every factor may have
    largest = large_factor(books, settings)
    if largest < 0:
        return fewest
    n_further = sum(len(books[j].levels) >= fewest for j in settings.terms if j != largest)
    affordable = min(MAX_BORDER // books[largest].n_codes, MAX_FURTHER_LEVELS)
    return max(fewest, affordable // max(n_further, 1))


def _check_ranges(books: Sequence[Codebook], owner: str) -> None:
    """Refuse numbers whose difference overflows."""
    for book in books:
        if len(book.nodes) and not np.isfinite(book.nodes[-1] - book.nodes[0]):
            raise ValueError(
                f"{owner}: the values of column {book.name!r}, {book.nodes[0]:g} to "
                f"{book.nodes[-1]:g}, are too far apart. Divide them by a constant."
            )


def build_design(
    rows: TrainingRows, losses: Sequence[Loss], settings: GamSettings
) -> AdditiveDesign:
    """The terms of single columns, and the pairs that were asked for."""
    _check_size(settings)
    output_sums = rows.output_sums(losses)
    sums = output_sums.by_output
    books, counts = rows.books, tuple(sums[0].singles)
    factor = large_factor(books, settings)
    _check_constraints(books, settings)
    _check_linear_sides(books, settings)
    columns = {
        j: TermColumn(_suited_term(j, settings), books[j], column_targets(sums, j), j == factor)
        for j in settings.terms
    }
    # Gradients of quantiles are little more than signs, which jump where a curve is smooth.
    signs = any(isinstance(loss, Quantile) for loss in losses)
    bases = term_bases(list(columns.values()), settings.owner, may_be_rough=not signs)
    terms = [
        DesignTerm(
            books[j].name, column.kind, (j,), basis, counts[j],
            shapes=settings.constraints.get(j, ()),
            extrapolation="linear" if column.kind in STRAIGHT else column.term.extrapolation,
        )
        for (j, column), basis in zip(columns.items(), bases, strict=True)
    ]  # fmt: skip
    terms = _at_values(terms, rows)
    design = AdditiveDesign(rows, counts, tuple(terms), settings.n_jobs, tuple(output_sums.totals))
    return design.with_pairs(list(settings.pairs), requested=settings.pairs)


def _at_values(terms: Sequence[DesignTerm], rows: TrainingRows) -> list[DesignTerm]:
    """Terms whose functions are known at the values of rows, if these are few and in memory.

    Functions are centred over the values.
    """
    n_functions = sum(term.basis.n_functions for term in terms)
    if not isinstance(rows, RowsInMemory) or n_functions * len(rows.weight) > EXACT.max_entries:
        return list(terms)
    exact = []
    for term in terms:
        (j,) = term.columns
        numbers, book, basis = rows.numbers.get(j), rows.books[j], term.basis
        if numbers is not None and isinstance(basis, TermBasis) and basis.n_functions:
            continues = term.extrapolation == "linear"
            at_rows = values_at(numbers, book, term.kind, continues, basis.values)
            means = rows.weight @ at_rows / rows.total_weight
            basis = replace(basis, values=basis.values - means, at_rows=at_rows - means)
            term = replace(term, basis=basis)
        exact.append(term)
    return exact


def _suited_term(j: int, settings: GamSettings) -> Term:
    """The term of a column: one that is convex, on the axis on which it is to be convex."""
    term = settings.terms[j]
    convex = {"convex", "concave"} & set(settings.constraints.get(j, ()))
    return replace(term, knots="even") if convex and term.knots == "auto" else term


def _check_size(settings: GamSettings) -> None:
    """Refuse models whose smoothing parameters are too many to be estimated."""
    n_terms = len(settings.terms)
    if n_terms > MAX_TERMS:
        raise ValueError(
            f"{settings.owner}: {n_terms} columns have terms, and a GAM estimates the smoothing "
            f"parameters of up to {MAX_TERMS} with matrices of that size. Name fewer columns in "
            f"{argument('terms')}, or use AdditiveSVC or AdditiveSVR, which take any number of "
            "columns."
        )


def _check_linear_sides(books: Sequence[Codebook], settings: GamSettings) -> None:
    """Refuse pairs that are to be linear in a category."""
    for pair, sides in settings.pairs.items():
        for j, linear in zip(pair, sides, strict=True):
            if linear and not len(books[j].nodes):
                raise ValueError(
                    f"{settings.owner}: a pair is to be linear in {books[j].name!r}, which does "
                    "not hold numbers."
                )


def _check_constraints(books: Sequence[Codebook], settings: GamSettings) -> None:
    for j in settings.constraints:
        name = books[j].name
        if j not in settings.terms:
            raise ValueError(f"{settings.owner}: constraints name {name!r}, which has no term.")
        if books[j].kind == "category":
            raise ValueError(
                f"{settings.owner}: constraints name {name!r}, whose categories have no order. "
                "Recode it as numbers."
            )
        if any(j in pair for pair in settings.pairs):
            raise ValueError(
                f"{settings.owner}: {name!r} has a constraint, which a pair with another column "
                "would undo. Leave one of them out."
            )
