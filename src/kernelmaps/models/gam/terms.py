"""Terms of a GAM: what the user asks for, and the basis that a column gets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..._util.schema import State, anything
from ...data.table_reader import TableReader
from ..rows.basis import Basis, LevelBasis, TermBasis
from .bases import (
    BandedNormalEquations,
    axis_between,
    banded_normal_equations,
    category_basis,
    linear_basis,
    number_basis,
)
from .codebooks import Codebook
from .pairs import LinearSides
from .single_column import ColumnTargets, curve_likelihoods, fit_alone

_KINDS = ("auto", "spline", "linear", "parametric", "category", "periodic")


@dataclass(frozen=True)
class CurveOptions:
    """Constants of the splines of a column."""

    # Splines of a curve, and of a curve of many rows, where finer effects can be seen.
    n_bases: int = 40
    n_bases_many: int = 80
    many_rows: int = 10_000
    min_bases: int = 10  # if columns are many
    rows_per_basis: int = 4  # rows, at least, for each spline of all columns together
    # Log-likelihood by which an axis without rows on all of its splines would have to be better:
    # there a curve is extrapolated.
    empty_axis_cost: float = 3.0
    # Log-likelihood by which an axis of ranks has to be better than that of the values, on which
    # straight effects are straight: 3 is strong evidence (a ratio of 20; Kass and Raftery 1995).
    # It does not count if each bin has a coefficient: the axes then differ by the penalty alone,
    # and ranks keep a few large values from deciding. With 7 or 25 values the error of lines rises
    # by 3 to 6 %, that of logarithms falls by 7 to 9 %; R² of ames and Boston in the arena rises by
    # 0.006 and 0.011.
    rank_axis_cost: float = 3.0
    # Steps between values, as shares of their range, whose differences are rounding errors.
    same_step: float = 1e-12
    # The smallest or largest value of a column may lie off the curve if it has this share of the
    # rows, and this many times that of a mean bin.
    jump_share: float = 0.05
    jump_factor: float = 4.0
    # Splines of a curve that follows steps, and log-likelihood by which it has to be better. With
    # 3, 0 or 1 of 8 to 15 simulated tables took it for a line, a slow wave, a bump or a logarithm
    # (too few for a rate); fast waves of a skewed column took it in up to all of 8.
    n_bases_rough: int = 100
    rough_cost: float = 3.0
    max_bins_smooth: int = 3  # values of a column, up to which there are no steps between them
    min_bases_rough: int = 2  # affordable ones: with fewer rows, a column alone shows little
    n_smoothest: int = 6  # functions with a smoothing parameter of their own, if rows are many
    # Functions that a curve keeps: this many times the edf that its column alone uses, and more.
    functions_per_edf: float = 1.5
    # The second number is that of rows per column, over `rows_per_basis`, within these bounds.
    min_more_functions: int = 2
    more_functions: int = 8
    curves_at_a_time: int = 32  # whose likelihoods are computed together, within some MB


CURVES = CurveOptions()


@dataclass(frozen=True)
class Term:
    """One function of one column.

    Parameters
    ----------
    column : str or int
        Name or position of the column.
    kind : {"auto", "spline", "linear", "parametric", "category", "periodic"}, default="auto"
        A smooth curve, a straight line whose slope is shrunk, one without a penalty (as in least
        squares), one value for each level, or a smooth curve around a circle;
        "auto" is a spline for numbers and a category for everything else.
    n_bases : int, optional
        Splines of the curve. By default 40, 80 from 10,000 rows on, and fewer, down to 10, where
        all columns together would have more than one for four rows; only the smoothest
        combinations of them are kept, some more than the column alone could use: eight, and down
        to two where columns are many. The
        penalty, not this number, decides how smooth the curve is. The smallest and the largest
        value may lie off the curve if many rows share them (zeros, say) and the targets show it.
    degree : int, default=3
        Of the splines.
    order : {1, 2}, default=2
        Differences that are penalised: 1 prefers constants, 2 straight lines. Unless `n_bases` is
        given, a column whose targets clearly show steps or kinks gets 100 splines and order 1, and
        its straight line keeps a smoothing parameter of its own.
    knots : {"auto", "quantile", "even"}, default="auto"
        Even steps on the axis of the ranks or of the values; "auto" takes the values, unless a
        curve of this column alone explains the targets clearly better on the axis of the ranks, or
        on one between the two.
    period : float, optional
        For "periodic": the length of the circle (24 for hours, 7 for days of the week). By default
        the range of the column.
    extrapolation : {"constant", "linear"}, default="constant"
        How a curve continues beyond the training rows: with its value at the end, or with its slope
        there. Straight lines always continue.

    Examples
    --------
    >>> import kernelmaps as km
    >>> km.Term("hour", kind="periodic", period=24).kind
    'periodic'
    """

    _state: ClassVar[State] = State(
        dict.fromkeys(
            ("column", "kind", "n_bases", "degree", "order", "knots", "period"), anything
        ),
        {"extrapolation": anything},
    )

    column: Any
    kind: str = "auto"
    n_bases: int | None = None
    degree: int = 3
    order: int = 2
    knots: str = "auto"
    period: float | None = None
    extrapolation: str = "constant"

    def _check_state(self) -> None:
        self.check("file")

    def check(self, owner: str) -> Term:
        """Refuse settings that contradict each other.

        Parameters
        ----------
        owner : str
            The estimator, for messages.

        Returns
        -------
        Term
            The term itself.
        """
        where = f"{owner}: the term of column {self.column!r}"
        if self.kind not in _KINDS:
            raise ValueError(f"{where} has kind={self.kind!r}; choose one of {_KINDS}.")
        if self.knots not in ("auto", "quantile", "even"):
            raise ValueError(f"{where}: knots must be 'auto', 'quantile' or 'even'.")
        for name, low, high in (("n_bases", 3, 250), ("degree", 1, 5), ("order", 1, 2)):
            value = getattr(self, name)
            if name == "n_bases" and value is None:
                continue
            is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not (is_integer and low <= value <= high):
                raise ValueError(f"{where}: {name} must be {low} … {high}, got {value!r}.")
        if self.n_bases is not None and self.n_bases <= self.degree:
            raise ValueError(f"{where}: n_bases must exceed degree={self.degree}.")
        if self.period is not None and not (self.kind == "periodic" and 0 < self.period < np.inf):
            raise ValueError(f"{where}: period is for kind='periodic' and must be positive.")
        if self.extrapolation not in ("constant", "linear"):
            raise ValueError(
                f"{where}: extrapolation must be 'constant' or 'linear', got "
                f"{self.extrapolation!r}."
            )
        if self.extrapolation == "linear" and self.kind in ("category", "periodic"):
            raise ValueError(f"{where} is {self.kind!r}, and has no slope to extrapolate with.")
        return self


def resolve_terms(
    given: Any, columns: TableReader, owner: str
) -> tuple[dict[int, Term], dict[tuple[int, int], LinearSides]]:
    """Terms by the position of their column, and pairs that were asked for, with linear sides.

    A mapping changes the terms of some columns (None leaves a column out), a list names all terms.
    Parts of dates are periodic by default.
    """
    names = columns.feature_names
    terms = {j: _default_term(name, columns.periods) for j, name in enumerate(names)}
    if given is None:
        return terms, {}
    if isinstance(given, Mapping):
        for key, value in given.items():
            if value is None and key in columns.left_out:
                continue
            j = columns.position(key, owner, "terms")
            if value is None:
                del terms[j]
            elif value not in ("auto", "trend"):
                terms[j] = _term(value, names[j], columns.periods, owner)
        return terms, {}
    if isinstance(given, str) or not isinstance(given, Sequence) or not len(given):
        raise ValueError(
            f"{owner}: terms must be a list of columns, pairs of columns and Terms, or a mapping "
            f"from columns to kinds, got {given!r}."
        )
    terms_by_column: dict[int, Term] = {}
    pairs: dict[tuple[int, int], LinearSides] = {}
    for item in given:
        if isinstance(item, tuple) and len(item) == 2:
            pairs |= resolve_pair(item, columns, owner, "terms")
            continue
        j = columns.position(item.column if isinstance(item, Term) else item, owner, "terms")
        is_term = isinstance(item, Term)
        terms_by_column[j] = _term(item, names[j], columns.periods, owner) if is_term else terms[j]
    return dict(sorted(terms_by_column.items())), pairs


def resolve_pair(
    item: Any, columns: TableReader, owner: str, argument: str
) -> dict[tuple[int, int], LinearSides]:
    """Positions of two columns, in order, and whether the pair is linear in them."""
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise ValueError(f"{owner}: {argument} must hold pairs of columns, got {item!r}.")
    sides = []
    for side in item:
        term = side if isinstance(side, Term) else Term(side)
        if term not in (Term(term.column), Term(term.column, "linear")):
            raise ValueError(
                f"{owner}: {argument} has a pair with {term!r}; a Term of a pair may only be "
                "'linear'."
            )
        sides.append((columns.position(term.column, owner, argument), term.kind == "linear"))
    (first, first_linear), (second, second_linear) = sorted(sides)
    if first == second:
        name = columns.feature_names[first]
        raise ValueError(f"{owner}: {argument} pairs the column {name!r} with itself.")
    return {(first, second): (first_linear, second_linear)}


def _default_term(name: str, periods: Mapping[str, float]) -> Term:
    return Term(name, "periodic", period=periods[name]) if name in periods else Term(name)


def _term(value: Any, name: str, periods: Mapping[str, float], owner: str) -> Term:
    """A term that was asked for; of a part of a date, with its period."""
    term = replace(value, column=name) if isinstance(value, Term) else Term(name, kind=value)
    if term.kind == "periodic" and term.period is None and name in periods:
        term = replace(term, period=periods[name])
    return term.check(owner)


@dataclass(frozen=True)
class TermColumn:
    """What the basis of a term depends on: its column's codes, and the targets by these codes."""

    term: Term
    book: Codebook
    targets: ColumnTargets
    is_large_factor: bool = False  # whose levels are eliminated from systems of equations

    @property
    def counts(self) -> np.ndarray:
        return self.targets.counts

    @property
    def kind(self) -> str:
        """The kind of the term, with "auto" resolved."""
        if self.term.kind != "auto":
            return self.term.kind
        return "spline" if self.book.kind == "number" else "category"

    @property
    def is_curve(self) -> bool:
        return self.kind in ("spline", "periodic") and len(self.book.nodes) > 0


def term_bases(columns: Sequence[TermColumn], owner: str, may_be_rough: bool = True) -> list[Basis]:
    """The bases of terms at the codes of their columns.

    `may_be_rough`: whether a curve may follow steps that the targets show.
    """
    curves = [column for column in columns if column.is_curve]
    of_curves = iter(_curve_bases(curves, len(columns), may_be_rough))
    return [
        next(of_curves) if column.is_curve else _simple_basis(column, owner) for column in columns
    ]


def _simple_basis(column: TermColumn, owner: str) -> Basis:
    """The basis of a category, or of a straight line."""
    book, counts = column.book, column.counts
    if book.kind == "category" and column.kind != "category":
        raise ValueError(
            f"{owner}: the term of column {book.name!r} is {column.kind!r}, but the column holds "
            "categories."
        )
    if column.kind == "category":
        return LevelBasis(counts) if column.is_large_factor else category_basis(counts)
    if len(book.nodes) == 0:
        return TermBasis(np.zeros((1, 0)), np.zeros(0), np.zeros(0, np.int64))
    return linear_basis(book.nodes, counts)


@dataclass(frozen=True)
class Curve:
    """A curve whose basis is sought.

    Attributes
    ----------
    column : TermColumn
    n_bases : int
        Splines.
    affordable : int
        Splines for which each column has rows enough.
    """

    column: TermColumn
    n_bases: int
    affordable: int

    @classmethod
    def of(cls, column: TermColumn, n_columns: int) -> Curve:
        n_rows = column.counts.sum()
        default = CURVES.n_bases_many if n_rows >= CURVES.many_rows else CURVES.n_bases
        affordable = int(n_rows / (CURVES.rows_per_basis * n_columns))
        n_bases = column.term.n_bases or min(default, max(CURVES.min_bases, affordable))
        return cls(column, n_bases, affordable)

    @property
    def options(self) -> dict[str, Any]:
        """Of its splines."""
        term = self.column.term
        return {"n_bases": self.n_bases, "degree": term.degree, "order": term.order}

    @property
    def rough_options(self) -> dict[str, Any]:
        """The same if it follows steps."""
        return {"n_bases": CURVES.n_bases_rough, "degree": self.column.term.degree, "order": 1}

    @property
    def periodic(self) -> bool:
        return self.column.kind == "periodic"

    @property
    def may_jump(self) -> bool:
        """A jump at the end of a curve is no slope to go on with."""
        return not self.periodic and self.column.term.extrapolation != "linear"

    @property
    def may_be_rough(self) -> bool:
        """Whether it may follow steps; there are none between three values."""
        term, n_bins = self.column.term, len(self.column.book.nodes)
        enough = self.affordable >= CURVES.min_bases_rough and n_bins > CURVES.max_bins_smooth
        return enough and self.may_jump and term.n_bases is None and term.order == 2


def _curve_bases(
    columns: Sequence[TermColumn], n_columns: int, may_be_rough: bool
) -> list[TermBasis]:
    """Splines on the axis that suits each column best, as many of them as it can use."""
    curves = [Curve.of(column, n_columns) for column in columns]
    axes = _best_axes(curves)
    rough = _rough_likelihoods(curves, [axis.position for axis in axes], may_be_rough)
    return [
        _with_few_functions(curve, *_curve_basis(curve, axis, rough_likelihood))
        for curve, axis, rough_likelihood in zip(curves, axes, rough, strict=True)
    ]


def _curve_basis(curve: Curve, axis: Axis, rough_likelihood: float) -> tuple[TermBasis, float]:
    """The basis of a curve that explains its targets best, and its degrees of freedom.

    A basis is a problem of eigenvalues: those that are not taken are not computed, where their
    likelihoods are known without them.
    """
    targets, counts, position = curve.column.targets, curve.column.counts, axis.position
    likelihood, basis, edf = axis.likelihood, None, 0.0
    jumps = _jumps(counts, curve.n_bases) if curve.may_jump else ()
    if likelihood is None:
        basis = number_basis(position, counts, periodic=curve.periodic, **curve.options)
        likelihood, edf = fit_alone(basis, targets)
    if len(jumps):
        with_jumps = number_basis(position, counts, jumps=jumps, **curve.options)
        likelihood_with_jumps, edf_with_jumps = fit_alone(with_jumps, targets)
        if likelihood_with_jumps > likelihood:
            likelihood, basis, edf = likelihood_with_jumps, with_jumps, edf_with_jumps
    if rough_likelihood > likelihood + CURVES.rough_cost:
        basis = _rough_basis(curve, position)
        return basis, fit_alone(basis, targets)[1]
    if basis is None:
        basis = number_basis(position, counts, **curve.options)
        edf = fit_alone(basis, targets)[1]
    return basis, edf


def _with_few_functions(curve: Curve, basis: TermBasis, edf: float) -> TermBasis:
    """The functions that a curve keeps, and their smoothing parameters."""
    if curve.column.term.n_bases is None:
        more = min(CURVES.more_functions, max(CURVES.min_more_functions, curve.affordable))
        basis = basis.smoothest(int(CURVES.functions_per_edf * edf + more))
    if curve.column.counts.sum() >= CURVES.many_rows:
        return basis.with_two_smoothing_parameters(CURVES.n_smoothest)
    return basis


def _rough_basis(curve: Curve, position: np.ndarray) -> TermBasis:
    """Many splines, and a penalty of first differences: steps and kinks cost it little."""
    basis = number_basis(position, curve.column.counts, keep_line=True, **curve.rough_options)
    # First differences penalise the line, too: without it, one of their functions is empty.
    return basis.smoothest(basis.n_functions - 1)


def _rough_likelihoods(
    curves: Sequence[Curve], positions: Sequence[np.ndarray], may_be_rough: bool
) -> np.ndarray:
    """Log-likelihoods of these, without their bases; −∞ of curves that may not be rough."""
    likelihoods = np.full(len(curves), -np.inf)
    rough = [k for k, curve in enumerate(curves) if may_be_rough and curve.may_be_rough]
    shapes = {
        k: _shape(positions[k], CURVES.n_bases_rough, curves[k].column.term.degree) for k in rough
    }
    for batch in _batches(shapes):
        position, targets = _with_as_many_bins(
            [positions[k] for k in batch], [curves[k].column.targets for k in batch]
        )
        equations = _normal_equations(position, targets, curves[batch[0]].rough_options)
        likelihoods[batch] = curve_likelihoods(equations, targets, keep_line=True)
    return likelihoods


class Axis(NamedTuple):
    """Positions of the bins of a curve, and its log-likelihood there if axes were compared."""

    position: np.ndarray
    likelihood: float | None = None


def _best_axes(curves: Sequence[Curve]) -> list[Axis]:
    """The axis on which a curve of its column alone explains the targets best.

    Of the axes to compare, the last is that of the values; the others must be better by more than
    chance, unless each bin has a coefficient.
    """
    axes = [_axes(curve) for curve in curves]
    best = [Axis(of_curve[-1]) for of_curve in axes]
    shapes = {
        k: _shape(of_curve[0], *curves[k].options.values())
        for k, of_curve in enumerate(axes)
        if len(of_curve) > 1
    }
    for batch in _batches(shapes):
        n_axes, options = len(axes[batch[0]]), curves[batch[0]].options
        position, targets = _with_as_many_bins(
            [axis for k in batch for axis in axes[k]],
            [curves[k].column.targets for k in batch for _ in range(n_axes)],
        )
        equations = _normal_equations(position, targets, options)
        likelihood = curve_likelihoods(equations, targets)
        value = likelihood.copy()
        each_bin = position.shape[1] <= options["n_bases"]  # has a coefficient, and some rows
        if not each_bin:
            value -= CURVES.empty_axis_cost * equations.empty_share
        value, likelihood = (item.reshape(len(batch), n_axes) for item in (value, likelihood))
        value[:, :-1] -= 0.0 if each_bin else CURVES.rank_axis_cost
        for at, (k, axis) in enumerate(zip(batch, np.argmax(value, axis=1).tolist(), strict=True)):
            best[k] = Axis(axes[k][axis], float(likelihood[at, axis]))
    return best


def _shape(position: np.ndarray, n_bases: int, *options: int) -> tuple[int, ...]:
    """What curves share whose equations have the same shape: coefficients, splines, and options."""
    return min(len(position), n_bases + 1), n_bases, *options


def _batches(shapes: Mapping[int, tuple[int, ...]]) -> Iterator[list[int]]:
    """Curves whose equations have the same shape, some at a time."""
    alike = defaultdict(list)
    for k, shape in shapes.items():
        alike[shape].append(k)
    for group in alike.values():
        for begin in range(0, len(group), CURVES.curves_at_a_time):
            yield group[begin : begin + CURVES.curves_at_a_time]


def _with_as_many_bins(
    positions: Sequence[np.ndarray], targets: Sequence[ColumnTargets]
) -> tuple[np.ndarray, list[ColumnTargets]]:
    """Positions and targets of curves with as many bins each: those that are added have no rows."""
    n_bins = max(map(len, positions))
    if all(len(position) == n_bins for position in positions):
        return np.stack(positions), list(targets)
    position = np.ones((len(positions), n_bins))
    added = {id(column): column.with_bins(n_bins) for column in targets}
    for row, of_curve in zip(position, positions, strict=True):
        row[: len(of_curve)] = of_curve
    return position, [added[id(column)] for column in targets]


def _normal_equations(
    position: np.ndarray, targets: Sequence[ColumnTargets], options: dict[str, Any]
) -> BandedNormalEquations:
    """Normal equations of curves, without the missing value."""
    counts = np.stack([column.counts[1:] for column in targets])
    sums = np.stack([column.targets[:, 1:] for column in targets])
    return banded_normal_equations(position, counts, sums, **options)


def _jumps(counts: np.ndarray, size: int) -> np.ndarray:
    """Bins at the ends of a column that far more rows share than others: no purchase, say.

    Their effect need not continue that of the values beside them. If there are no more bins than
    splines, each has a coefficient anyway.
    """
    bins = counts[1:]
    ends = np.array([0, len(bins) - 1])
    many = max(CURVES.jump_share, CURVES.jump_factor / len(bins)) * counts.sum()
    return ends[bins[ends] > many] if len(bins) > size else ends[:0]


def _axes(curve: Curve) -> list[np.ndarray]:
    """Positions of the bins in [0, 1], on the axes that are to be compared, the values last."""
    if curve.periodic:
        return [_positions_on_circle(curve.column.term, curve.column.book)]
    knots, nodes = curve.column.term.knots, curve.column.book.nodes
    extent, rank = nodes[-1] - nodes[0], (np.arange(len(nodes)) + 0.5) / len(nodes)
    if knots == "quantile" or not extent > 0:
        return [rank]
    value = (nodes - nodes[0]) / extent
    # If each bin has a coefficient, ranks of evenly spaced values are the same axis.
    each_bin = len(nodes) <= curve.n_bases
    if knots == "even" or (each_bin and np.ptp(np.diff(value)) < CURVES.same_step):
        return [value]
    return [rank, axis_between(rank, value), value]


def _positions_on_circle(term: Term, book: Codebook) -> np.ndarray:
    """Positions of the bins on a circle of length 1."""
    extent = book.nodes[-1] - book.nodes[0]
    step = extent / max(len(book.nodes) - 1, 1)
    # Without a stated period the step beyond the last value closes the circle.
    return (book.nodes - book.nodes[0]) / (term.period or extent + step or 1.0)
