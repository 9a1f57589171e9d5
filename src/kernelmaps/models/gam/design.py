"""The design of a GAM: coded rows, and the terms on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..._util.arguments import argument
from ..._util.threads import limit_blas, map_in_threads
from ...data.columns import Column
from ..losses import JointLoss, Loss, LossTotals
from ..rows.basis import Basis, LevelBasis, TermBasis, coefficient_slices
from .bases import category_basis, column_targets, curve_basis, empty_basis, linear_basis
from .codebooks import CODING, OTHER, Codebook, LevelCounts, encode_columns, fit_codebook
from .functions import STRAIGHT, curve_of
from .pairs import CoarseCodes, build_pair, pair_codes
from .surfaces import build_surface, cells_with_rows, distinct_points
from .terms import GamSettings, LinearSides, Pair, Term, constraint_rows, pair_constraint_rows
from .training_rows import DesignTerm, RowsInMemory, TrainingRows

MAX_TERMS = 5000  # of single columns: a Newton step of REML takes their cube, 10 s on one core
# Levels of all further large factors together, which are part of the dense equations: REML takes
# their cube, and their square times the levels of the largest factor. (2000 beside 5000 of 50,000
# rows: 80 s on one core.) Products with the levels of the largest one are limited, too: to 256 MiB,
# of which a fit holds up to seven copies.
MAX_FURTHER_LEVELS = 3000
MAX_BORDER = 1 << 25
# Rows in memory, up to which functions are evaluated at values instead of the means of bins. Where
# columns repeat each other, their small differences may matter more than the noise: with an effect
# of 0.004 standard deviations of 1500 rows, R² of new rows is above 0.9, and below 0.8 by bins.
MAX_EXACT_ROWS = 2000


@dataclass(frozen=True)
class AdditiveDesign:
    """Coded rows and the terms on them.

    `counts` are the weights of the codes of each column, `totals` sums over all rows by output.
    With a `joint_loss`, a fit is one of all outputs.
    """

    rows: TrainingRows
    counts: tuple[np.ndarray, ...]
    terms: tuple[DesignTerm, ...]
    n_jobs: int | None = None
    totals: tuple[LossTotals, ...] = ()
    joint_loss: JointLoss | None = None

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
        return max(float(self.counts[0].sum()), 1e-300)

    @property
    def n_pairs(self) -> int:
        return sum(term.pair is not None for term in self.terms)

    @property
    def sizes(self) -> dict[tuple[int, ...], int]:
        """Numbers of functions, by the columns of the terms."""
        return {term.columns: term.basis.n_functions for term in self.terms}

    def slices(self) -> list[tuple[DesignTerm, slice, slice]]:
        """The terms, and where their coefficients and their smoothing parameters are."""
        spans: dict[tuple[int, ...], tuple[slice, slice]] = {}
        begin = 0
        for term, span in zip(self.ordered_terms, coefficient_slices(self.bases), strict=True):
            end = begin + term.basis.n_smoothing
            spans[term.columns] = span, slice(begin, end)
            begin = end
        return [(term, *spans[term.columns]) for term in self.terms]

    def constraint_matrix(self) -> np.ndarray | None:
        """C of the constraints Cβ ≥ 0 on the coefficients of all terms but a large factor."""
        bases = [basis for basis in self.bases if not isinstance(basis, LevelBasis)]
        size, slices = 1 + sum(basis.n_functions for basis in bases), self.slices()
        curves = {
            term.columns[0]: (term.basis.values, span)
            for term, span, _ in slices
            if len(term.columns) == 1 and isinstance(term.basis, TermBasis)
        }
        blocks = []

        def add(rows: np.ndarray, *spans: slice) -> None:
            blocks.append(np.zeros((len(rows), size)))
            blocks[-1][:, np.concatenate([np.arange(size)[span] for span in spans])] = rows

        for term, span, _ in slices:
            pair, basis = term.pair, term.basis
            if term.shapes and isinstance(basis, TermBasis):
                add(constraint_rows(term.shapes, self.books[term.columns[0]], basis.values), span)
            if pair is None or not isinstance(basis, TermBasis):
                continue
            for j, shapes in term.pair_shapes.items():
                axis, nodes = pair.columns.index(j), self.books[j].nodes
                cells = np.moveaxis(basis.values.reshape(*pair.counts.shape, -1), axis, 0)[1:]
                curve, curve_span = curves.get(j, (np.zeros((len(nodes) + 1, 0)), slice(0)))
                positions = pair.positions[axis]
                rows = pair_constraint_rows(shapes, nodes, curve[1:], positions, cells)
                add(rows, curve_span, span)
        return np.concatenate(blocks) if blocks else None

    def with_pairs(
        self, pairs: Sequence[Pair], n_functions: int | None = None,
        requested: Mapping[Pair, LinearSides] | None = None,
    ) -> AdditiveDesign:  # fmt: skip
        """The design with more pairs, of at most `n_functions` each.

        Those in `requested` may be linear in a column.
        """
        sides = requested or {}
        codes = [pair_codes(pair, self.books, self.counts, sides.get(pair)) for pair in pairs]
        cells = self.rows.pair_counts(pairs, codes)

        def build(index: int) -> DesignTerm:
            pair = build_pair(
                pairs[index], self.books, self.counts, codes[index], cells[index],
                sides.get(pairs[index]),
            )  # fmt: skip
            basis = pair.basis() if n_functions is None else pair.basis(n_functions)
            name = " × ".join(self.books[j].name for j in pair.columns)
            return DesignTerm(name, "pair", pair.columns, basis, pair.counts, pair)

        with limit_blas(1):
            terms = map_in_threads(build, range(len(pairs)), self.n_jobs)
        return replace(self, terms=(*self.terms, *terms))


def encode_rows(
    columns: Sequence[Column], targets: Sequence[np.ndarray], weight: np.ndarray,
    offset: np.ndarray, settings: GamSettings,
    levels: Mapping[int, LevelCounts] | None = None,
) -> RowsInMemory:  # fmt: skip
    """Code the columns of rows in memory; `levels` are those of categories in more rows."""
    with np.errstate(over="ignore"):
        books = _fit_codebooks(columns, weight, settings, levels or {})
    codes = encode_columns(books, columns, settings.owner, settings.n_jobs)
    rows = RowsInMemory(books, codes, tuple(targets), weight, offset, settings.n_jobs)
    if len(weight) > MAX_EXACT_ROWS:
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
        return fit_codebook(columns[j], weight, settings.weights == "frequency", max_levels)

    books = [fit(j) for j in range(len(columns))]
    largest, limit = large_factor(books, settings), max_further_levels(books, settings)
    for j, book in enumerate(books):
        if book.is_large and j != largest:
            books[j] = fit(j, limit)
        if len(book.nodes) and not np.isfinite(book.nodes[-1] - book.nodes[0]):
            raise ValueError(
                f"{settings.owner}: the values of column {book.name!r}, {book.nodes[0]:g} to "
                f"{book.nodes[-1]:g}, are too far apart. Divide them by a constant."
            )
    return tuple(books)


def large_factor(books: Sequence[Codebook], settings: GamSettings) -> int:
    """The column whose levels are eliminated from systems of equations; −1 if there is none."""
    large = [j for j in settings.terms if books[j].is_large and settings.eliminates_levels]
    return max(large, key=lambda j: (books[j].n_codes, -j), default=-1)


def max_further_levels(books: Sequence[Codebook], settings: GamSettings) -> int:
    """The most levels that each other factor has beside the largest one."""
    fewest = CODING.max_codes - 2  # which every factor may have
    largest, affordable = large_factor(books, settings), MAX_FURTHER_LEVELS
    if largest < 0 and settings.eliminates_levels:
        return fewest
    n_further = sum(len(books[j].levels) >= fewest for j in settings.terms if j != largest)
    if largest >= 0:
        affordable = min(MAX_BORDER // books[largest].n_codes, affordable)
    return max(fewest, affordable // max(n_further, 1))


def describe_merged_levels(design: AdditiveDesign, settings: GamSettings) -> Iterator[str]:
    """Which levels share an effect, of further large factors and in requested pairs."""
    books, n_rows = design.books, design.total_weight
    largest, limit = large_factor(books, settings), max_further_levels(books, settings)
    for j in settings.terms if largest >= 0 or not settings.eliminates_levels else ():
        book = books[j]
        if j != largest and len(book.levels) == limit and not book.exact:
            remark = "" if largest < 0 else f", and {books[largest].name!r} more still"
            yield (
                f"column {book.name!r} has more than {limit} levels{remark}. The rarer ones, "
                f"{design.counts[j][OTHER] / n_rows:.0%} of the rows, share an effect. Group them"
                f" or leave the column out: terms={{{book.name!r}: None}}."
            )
    for term in design.terms:
        if term.pair is None or term.pair.columns not in settings.pairs:
            continue
        for j, side in zip(term.columns, term.pair.coarse, strict=True):
            book, limit = books[j], side.size - 2  # besides missing and other levels
            if book.kind == "category" and len(book.levels) > limit:
                share = design.counts[j][side.of_code == OTHER].sum() / n_rows
                yield (
                    f"the pair {term.name!r} distinguishes the {limit} most frequent levels of "
                    f"{book.name!r}, which has {len(book.levels)}. The others, {share:.0%} of the "
                    "rows, have one function in common. Group the levels."
                )


def build_design(
    rows: TrainingRows, losses: Sequence[Loss], settings: GamSettings
) -> AdditiveDesign:
    """The terms of single columns, and the pairs that were asked for."""
    books, n_terms = rows.books, len(settings.terms)
    _check_settings(books, settings)
    sums = rows.output_sums(losses)
    factor = large_factor(books, settings)
    may_be_rough = all(loss.gradient_is_smooth for loss in losses)

    def build(j: int) -> DesignTerm:
        term, book, targets = settings.terms[j], books[j], column_targets(sums.by_output, j)
        shapes = settings.constraints.get(j, ())
        if term.kind == "auto":
            term = replace(term, kind="spline" if book.kind == "number" else "category")
        pair_shapes = (constraints.get(j, ()) for constraints in settings.pair_constraints.values())
        if {"convex", "concave"} & set(shapes).union(*pair_shapes) and term.knots == "auto":
            term = replace(term, knots="even")  # on the axis on which it is to be convex
        basis: Basis
        if term.kind == "category":
            counts = targets.counts
            basis = LevelBasis(counts) if j == factor else category_basis(counts)
        elif not len(book.nodes):
            basis = empty_basis()
        elif term.kind in STRAIGHT:
            basis = linear_basis(book.nodes, targets.counts)
        else:
            basis = curve_basis(term, book, targets, n_terms, may_be_rough)
        extrapolation = "linear" if term.kind in STRAIGHT else term.extrapolation
        design_term = DesignTerm(
            book.name, term.kind, (j,), basis, targets.counts,
            shapes=shapes, extrapolation=extrapolation, period=term.period or 0.0,
        )  # fmt: skip
        return _tabulate_term(design_term, rows) if isinstance(rows, RowsInMemory) else design_term

    def build_surface_term(columns: Pair, term: Term) -> DesignTerm:
        name = " × ".join(books[j].name for j in columns)
        if isinstance(rows, RowsInMemory) and len(rows.weight) <= MAX_EXACT_ROWS:
            means = [np.append(np.nan, books[j].nodes)[rows.codes[j]] for j in columns]  # of bins
            values = [rows.numbers.get(j, mean) for j, mean in zip(columns, means, strict=True)]
            points = distinct_points(np.column_stack(values), rows.weight)
        else:
            sizes = [books[j].n_codes for j in columns]
            left, right = (CoarseCodes(np.arange(n, dtype=np.uint8), n) for n in sizes)
            (table,) = rows.pair_counts([columns], [(left, right)])
            points = cells_with_rows([books[j].nodes for j in columns], table)
        where = f"{settings.owner}: the surface {name!r}"
        surface, basis = build_surface(columns, points, term.n_bases, where)
        return DesignTerm(
            name, "surface", columns, basis, points[2], extrapolation="linear", surface=surface
        )

    terms = tuple(map(build, settings.terms))
    terms += tuple(build_surface_term(*item) for item in settings.surfaces.items())
    counts, totals = tuple(sums.by_output[0].singles), tuple(sums.totals)
    design = AdditiveDesign(rows, counts, terms, settings.n_jobs, totals)
    design = design.with_pairs(list(settings.pairs), requested=settings.pairs)
    shapes = settings.pair_constraints
    terms = tuple(replace(t, pair_shapes=shapes.get(t.columns, {})) for t in design.terms)
    return replace(design, terms=terms)


def _tabulate_term(term: DesignTerm, rows: RowsInMemory) -> DesignTerm:
    """A term whose functions are known at the values of rows, if these are few.

    Functions are centred over the values.
    """
    (j,) = term.columns
    numbers, basis = rows.numbers.get(j), term.basis
    if numbers is None or not isinstance(basis, TermBasis) or not basis.n_functions:
        return term
    at_rows = curve_of(rows.books[j], term, basis.values).values_at(numbers)
    means = rows.weight @ at_rows / rows.total_weight
    return replace(term, basis=replace(basis, values=basis.values - means, at_rows=at_rows - means))


def _check_settings(books: Sequence[Codebook], settings: GamSettings) -> None:
    """Refuse terms, constraints and pairs that their columns cannot have."""
    owner = settings.owner
    if len(settings.terms) > MAX_TERMS:
        raise ValueError(
            f"{owner}: {len(settings.terms)} columns have terms; a GAM has at most {MAX_TERMS}. "
            f"Name fewer in {argument('terms')}, or use AdditiveSVC or AdditiveSVR."
        )
    for j, term in settings.terms.items():
        if books[j].kind == "category" and term.kind not in ("auto", "category"):
            raise ValueError(
                f"{owner}: the term of column {books[j].name!r} is {term.kind!r}, but the column "
                "holds categories."
            )
    for j in settings.constraints:
        name = books[j].name
        if j not in settings.terms:
            raise ValueError(f"{owner}: constraints name {name!r}, which has no term of its own.")
        if books[j].kind == "category":
            raise ValueError(f"{owner}: constraints name {name!r}, whose levels have no order.")
        if any(j in pair for pair in settings.pairs):
            raise ValueError(
                f"{owner}: {name!r} has a constraint, which a pair with another column "
                "would undo. Leave one of them out."
            )
    _check_pair_constraints(books, settings)
    used = set(settings.terms).union(*settings.pairs, *settings.surfaces)
    for predictor_columns in settings.columns_of_predictors:
        for j in (predictor_columns or set()) - used:
            raise ValueError(
                f"{owner}: {argument('loss')} names terms of {books[j].name!r}, which has no term."
            )
    for columns in settings.surfaces:
        for j in columns:
            if not len(books[j].nodes):
                raise ValueError(
                    f"{owner}: a surface needs numbers, and column {books[j].name!r} holds none."
                )
        if columns in settings.pairs:
            names = " and ".join(repr(books[j].name) for j in columns)
            raise ValueError(f"{owner}: {names} have a surface and a pair: leave one of them out.")
    for pair, sides in settings.pairs.items():
        for j, linear in zip(pair, sides, strict=True):
            if linear and not len(books[j].nodes):
                raise ValueError(
                    f"{owner}: a pair is to be linear in {books[j].name!r}, which does not hold "
                    "numbers."
                )


def _check_pair_constraints(books: Sequence[Codebook], settings: GamSettings) -> None:
    """Refuse shapes along the columns of pairs that cannot be kept."""
    for pair, shapes in settings.pair_constraints.items():
        name = " × ".join(books[j].name for j in pair)
        other_pairs = [item for item in (*settings.pairs, *settings.surfaces) if item != pair]
        for j in shapes:
            term, problem = settings.terms.get(j, Term(j)), ""
            if pair in settings.surfaces:
                problem = "the shape of a surface is free; a pair in its place may have one"
            elif pair not in settings.pairs:
                problem = f"the model has no such pair: list it in {argument('interactions')}"
            elif books[j].kind == "category" or len(books[j].nodes) < 2:
                problem = f"the values of {books[j].name!r} have no order"
            elif any(j in item for item in other_pairs):
                problem = f"another pair with {books[j].name!r} would undo it: leave it out"
            elif settings.pairs[pair][pair.index(j)] or term.kind in (*STRAIGHT, "periodic"):
                problem = f"{books[j].name!r} must be a curve in both, neither a line nor a circle"
            elif term.extrapolation == "linear":
                problem = f"{books[j].name!r} goes on beyond the training rows, the pair does not"
            if problem:
                raise ValueError(
                    f"{settings.owner}: the constraint of {name!r} cannot be kept: {problem}."
                )
