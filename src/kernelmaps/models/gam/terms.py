"""Terms of an additive model of a table: what the user asks for, and what a column gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...data.frames import column_position
from ...schema import State, anything
from .bases import Basis, category_basis, linear_basis, number_basis, spline_bands
from .codebooks import Codebook
from .marginal import Signal, axis_evidence, fit_margin

_KINDS = ("auto", "spline", "linear", "category", "periodic")
_BASES, _MANY_BASES, _MANY_ROWS = 40, 80, 10_000
_FEWEST = 10  # splines of a curve where columns are many
_ROWS_EACH = 4  # rows, at least, for each spline of all columns together
_BETWEEN = 0.3  # share of the values, beside that of the ranks, in the axis between the two
_CAUTION = 3.0  # of a log-likelihood, against an axis on which all splines were bare of rows
# A column's least or largest value stands apart if it has this share of the rows, and so many times
# that of a bin.
_OFTEN, _ABOVE = 0.05, 4
_LOW = 6  # functions of a curve with a strength of their own, where rows are many
_ROOM = 1.5, 8  # functions that a curve keeps: times what its column alone would use, and more


@dataclass(frozen=True)
class Term:
    """One function of one column.

    Parameters
    ----------
    column : str or int
        Name or position of the column.
    kind : {"auto", "spline", "linear", "category", "periodic"}, default="auto"
        A smooth curve, a straight line, one value for each level, or a smooth curve around a
        circle; "auto" is a spline for numbers and a category for everything else.
    n_bases : int, optional
        Splines of the curve. By default 40, 80 from 10,000 rows on, and fewer, down to 10, where
        all columns together would have more than one for four rows; only the smoothest
        combinations of them are kept, about twice as many as the column alone could use. The
        penalty, not this number, decides how smooth the curve is. The least and the largest value
        may lie off the curve where many rows share them (zeros, say) and the targets speak for it.
    degree : int, default=3
        Of the splines.
    order : {1, 2}, default=2
        Differences that are penalised: 1 prefers constants, 2 straight lines.
    knots : {"auto", "quantile", "even"}, default="auto"
        Even steps on the axis of the ranks or of the values; "auto" takes the one of these, or an
        axis between them, on which a curve of this column alone explains the targets best.
    period : float, optional
        For "periodic": the length of the circle (24 for hours, 7 for days of the week). By default
        the range of the column.

    Examples
    --------
    >>> import kernelmaps as km
    >>> km.Term("hour", kind="periodic", period=24).kind
    'periodic'
    """

    _state: ClassVar[State] = State(
        dict.fromkeys(("column", "kind", "n_bases", "degree", "order", "knots", "period"), anything)
    )  # fmt: skip

    column: Any
    kind: str = "auto"
    n_bases: int | None = None
    degree: int = 3
    order: int = 2
    knots: str = "auto"
    period: float | None = None

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
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not (whole and low <= value <= high):
                raise ValueError(f"{where}: {name} must be {low} … {high}, got {value!r}.")
        if self.n_bases is not None and self.n_bases <= self.degree:
            raise ValueError(f"{where}: n_bases must exceed degree={self.degree}.")
        if self.period is not None and not (self.kind == "periodic" and 0 < self.period < np.inf):
            raise ValueError(f"{where}: period is for kind='periodic' and must be positive.")
        return self


def resolve_terms(
    given: Any, names: list[str], owner: str
) -> tuple[dict[int, Term], list[tuple[int, int]]]:
    """Terms by the position of their column, and pairs that were asked for.

    A mapping changes the terms of some columns (None leaves a column out), a list names all terms.
    """
    if given is None:
        return {j: Term(name) for j, name in enumerate(names)}, []
    if isinstance(given, Mapping):
        terms = {j: Term(name) for j, name in enumerate(names)}
        for key, value in given.items():
            j = column_position(key, names, owner, "terms")
            if value is None:
                del terms[j]
            else:
                terms[j] = _term(value, names[j], owner)
        return terms, []
    if isinstance(given, str) or not isinstance(given, Sequence) or not len(given):
        raise ValueError(
            f"{owner}: terms must be a list of columns, pairs of columns and Terms, or a mapping "
            f"from columns to kinds, got {given!r}."
        )
    terms, pairs = {}, []
    for item in given:
        if isinstance(item, tuple) and len(item) == 2:
            pairs.append(pair_positions(item, names, owner, "terms"))
            continue
        column = item.column if isinstance(item, Term) else item
        j = column_position(column, names, owner, "terms")
        terms[j] = _term(item if isinstance(item, Term) else "auto", names[j], owner)
    return dict(sorted(terms.items())), pairs


def pair_positions(item: Any, names: list[str], owner: str, argument: str) -> tuple[int, int]:
    """Positions of two columns, in order."""
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise ValueError(f"{owner}: {argument} must hold pairs of columns, got {item!r}.")
    first, second = sorted(column_position(column, names, owner, argument) for column in item)
    if first == second:
        raise ValueError(f"{owner}: {argument} pairs the column {names[first]!r} with itself.")
    return first, second


def _term(value: Any, name: str, owner: str) -> Term:
    term = value if isinstance(value, Term) else Term(name, kind=value)
    return replace(term, column=name).check(owner)


def term_basis(
    term: Term, book: Codebook, counts: np.ndarray, signals: Sequence[Signal], owner: str,
    columns: int = 1,
) -> tuple[str, Basis]:  # fmt: skip
    """The kind that a term turns out to be, and its basis at the codes of its column.

    `signals` are the targets by these codes, `columns` is the number of columns that have terms.
    """
    kind = term.kind
    if kind == "auto":
        kind = "spline" if book.kind == "number" else "category"
    if book.kind == "category" and kind != "category":
        raise ValueError(
            f"{owner}: the term of column {book.name!r} is {kind!r}, but the column holds "
            "categories."
        )
    if kind == "category":
        return kind, category_basis(counts)
    if len(book.nodes) == 0:
        return kind, Basis(np.zeros((1, 0)), np.zeros(0), np.zeros(0, np.int64))
    if kind == "linear":
        return kind, linear_basis(book.nodes, counts)
    return kind, _curve(term, book, counts, signals, columns, kind == "periodic")


def _curve(
    term: Term, book: Codebook, counts: np.ndarray, signals: Sequence[Signal], columns: int,
    periodic: bool,
) -> Basis:  # fmt: skip
    """Splines on the axis that suits the column best, as many of them as it can use."""
    rows = counts.sum()
    usual = _MANY_BASES if rows >= _MANY_ROWS else _BASES
    usual = min(usual, max(_FEWEST, int(rows / (_ROWS_EACH * columns))))
    size = term.n_bases or usual
    options = {"n_bases": size, "degree": term.degree, "order": term.order}
    if periodic:
        place = _around(term, book)
    else:
        place = _best_axis(_axes(term.knots, book, size), counts, signals, options)
    basis = number_basis(place, counts, periodic=periodic, **options)
    evidence, edf = fit_margin(basis, signals)
    jumps = [] if periodic else _jumps(counts, size)
    if len(jumps):
        apart = number_basis(place, counts, periodic=False, jumps=jumps, **options)
        more, used = fit_margin(apart, signals)
        if more > evidence:
            basis, edf = apart, used
    if term.n_bases is None:
        basis = basis.smoothest(int(_ROOM[0] * edf + _ROOM[1]))
    return basis.with_two_strengths(_LOW) if rows >= _MANY_ROWS else basis


def _best_axis(
    axes: Sequence[np.ndarray], counts: np.ndarray, signals: Sequence[Signal],
    options: dict[str, int],
) -> np.ndarray:  # fmt: skip
    """The axis on which a curve of this column alone explains the targets best."""
    if len(axes) == 1:
        return axes[0]
    place, targets = np.stack(axes), [signal.targets[1:] for signal in signals]
    bands = spline_bands(place, counts[1:], targets, **options)
    evidence = axis_evidence(bands, place, options["order"], signals) - _CAUTION * bands.bare
    return axes[int(np.argmax(evidence))]


def _jumps(counts: np.ndarray, size: int) -> np.ndarray:
    """Bins at the ends of a column that far more rows share than others: no purchase, say.

    Their effect need not continue that of the values beside them. Where bins are no more than
    splines, each has a weight anyway.
    """
    own = counts[1:]
    ends = np.array([0, len(own) - 1])
    often = max(_OFTEN, _ABOVE / len(own)) * counts.sum()
    return ends[own[ends] > often] if len(own) > size else ends[:0]


def _around(term: Term, book: Codebook) -> np.ndarray:
    """Places of the bins on a circle of length 1."""
    extent = book.nodes[-1] - book.nodes[0]
    step = extent / max(len(book.nodes) - 1, 1)
    # Without a stated period the step beyond the last value closes the circle.
    return (book.nodes - book.nodes[0]) / (term.period or extent + step or 1.0)


def _axes(knots: str, book: Codebook, size: int) -> list[np.ndarray]:
    """Places of the bins on [0, 1], on the axes that are to be compared."""
    nodes, extent = book.nodes, book.nodes[-1] - book.nodes[0]
    rank = (np.arange(len(nodes)) + 0.5) / len(nodes)
    if knots == "quantile" or not extent > 0 or len(nodes) <= size:  # a weight for each bin
        return [rank]
    value = (nodes - nodes[0]) / extent
    if knots == "even":
        return [value]
    return [rank, (1 - _BETWEEN) * rank + _BETWEEN * value, value]
