"""What a user asks of a GAM: terms, pairs, constraints and smoothing, by position of column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np

from ..._util.arguments import is_number
from ..._util.schema import anything, record, saved
from ...data.table_reader import TableReader
from .codebooks import Codebook

Pair = tuple[int, int]
Shapes = dict[int, tuple[str, ...]]  # by column
LinearSides = tuple[bool, bool]  # whether a pair is linear in its first and in its second column

_KINDS = ("auto", "spline", "linear", "parametric", "category", "periodic", "surface")
SHAPES = ("increasing", "decreasing", "convex", "concave")
MAX_AUTO_PAIRS = 40  # that interactions="auto" looks for


@record
class Term:
    """One function of one column, or a surface of two.

    Parameters
    ----------
    column : str, int or tuple of two
        Name or position of the column; both of a surface.
    kind : {"auto", "spline", "linear", "parametric", "category", "periodic", "surface"}
        A smooth curve, a straight line whose slope is shrunk, one without a penalty (as in least
        squares), one value for each level, or a smooth curve around a circle;
        "auto", the default, is a spline for numbers and a category for everything else. A
        "surface" is a thin-plate spline of two columns on one scale, such as places in kilometres:
        as smooth in all directions, whatever the axes.
    n_bases : int, optional
        Splines of the curve. By default 40, 80 from 10,000 rows on, and fewer, down to 10, where
        all columns together would have more than one for four rows; only the smoothest
        combinations of them are kept, some more than the column alone could use: eight, and down
        to two where columns are many. The
        penalty, not this number, decides how smooth the curve is. The smallest and the largest
        value may lie off the curve if many rows share them (zeros, say) and the targets show it.
        Of a surface, the number of knots: by default 100, and 250 from 10,000 rows on.
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
    extrapolation : {"auto", "constant", "linear"}, default="auto"
        How a curve continues beyond the training rows: with its value at the end, or with its slope
        there; "auto" takes the slope for the trends of dates alone. Curves that do so follow no
        steps. Straight lines always continue.

    Examples
    --------
    >>> import kernelmaps as km
    >>> km.Term("hour", kind="periodic", period=24).kind
    'periodic'
    """

    column: Any = saved(anything)
    kind: str = saved(anything, default="auto")
    n_bases: int | None = saved(anything, default=None)
    order: int = saved(anything, default=2)
    knots: str = saved(anything, default="auto")
    period: float | None = saved(anything, default=None)
    extrapolation: str = saved(anything, default="auto")

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
        allowed = {
            "kind": _KINDS, "knots": ("auto", "quantile", "even"), "order": (1, 2),
            "extrapolation": ("auto", "constant", "linear"),
        }  # fmt: skip
        for name, choices in allowed.items():
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{where} has {name}={getattr(self, name)!r}; choose one of {choices}."
                )
        size = self.n_bases
        if size is not None and not (is_number(size, Integral) and 4 <= size <= 250):
            raise ValueError(f"{where}: n_bases must be 4 … 250, got {size!r}.")
        if self.period is not None and not (self.kind == "periodic" and 0 < self.period < np.inf):
            raise ValueError(f"{where}: period is for kind='periodic' and must be positive.")
        if (self.kind == "surface") != isinstance(self.column, tuple):
            raise ValueError(
                f"{where} is {self.kind!r}: a surface has two columns, and all else one, as in "
                "Term(('x', 'y'), 'surface') and Term('x', 'spline')."
            )
        if self.kind == "surface" and self != Term(self.column, "surface", self.n_bases):
            raise ValueError(f"{where} is a surface, which takes n_bases= alone.")
        if self.extrapolation == "linear" and self.kind in ("category", "periodic"):
            raise ValueError(f"{where} is {self.kind!r}, and has no slope to extrapolate with.")
        return self


@dataclass(frozen=True)
class GamSettings:
    """What an estimator asks for, in positions of columns.

    Attributes
    ----------
    terms : dict of int to Term
        By column.
    surfaces : dict of (int, int) to Term
        By columns.
    pairs : dict of (int, int) to (bool, bool)
        Pairs to include, and whether they are linear in their first and in their second column.
    max_pairs : int
        Most pairs to search for beside these.
    smoothing : dict of int to float, or float, or None
        Fixed smoothing parameters by column, or of all terms; None, and columns that are not
        listed: estimated.
    constraints : dict of int to tuple of str
        Shapes by column.
    pair_constraints : dict of (int, int) to dict of int to tuple of str
        Shapes along columns of pairs, by pair and column.
    max_iter : int
    n_jobs : int or None
    owner : str
        Estimator, for messages.
    weights : {"relative", "frequency", "precision"}
        What weights of rows are: relative, numbers of repeated rows, or inverse variances.
    estimates_parameter : bool
        Whether the loss has a parameter that is estimated with the smoothing parameters.
    columns_of_predictors : tuple of set of int, or None
        The columns whose terms each linear predictor of a loss has; None for all.
    eliminates_levels : bool
        Whether the levels of the largest factor are eliminated from systems of equations.
    """

    terms: dict[int, Term]
    pairs: dict[Pair, LinearSides]
    max_pairs: int = 0
    smoothing: dict[int, float] | float | None = None
    constraints: dict[int, tuple[str, ...]] = field(default_factory=dict)
    max_iter: int = 100
    n_jobs: int | None = None
    owner: str = "AdditiveModel"
    weights: str = "relative"
    surfaces: dict[Pair, Term] = field(default_factory=dict)
    estimates_parameter: bool = False
    eliminates_levels: bool = True
    pair_constraints: dict[tuple[int, ...], Shapes] = field(default_factory=dict)
    columns_of_predictors: tuple[set[int] | None, ...] = ()


def resolve_settings(model: Any, columns: TableReader) -> GamSettings:
    """The settings of an estimator, for the columns that it reads."""
    owner = type(model).__name__
    terms, pairs, surfaces = _resolve_terms(model.terms, columns, owner)
    more_pairs, max_pairs = _resolve_interactions(model.interactions, columns, owner)
    pairs |= more_pairs
    if not (terms or pairs or surfaces):
        raise ValueError(
            f"{owner}: terms leaves out all {len(columns.columns)} columns. Keep one, or a pair."
        )
    column_shapes, pair_shapes = _resolve_constraints(model.constraints, columns, owner)
    return GamSettings(
        terms, pairs, max_pairs, _resolve_smoothing(model.smoothing, columns, owner),
        column_shapes, int(model.max_iter), model.n_jobs, owner, model.weights, surfaces,
        pair_constraints=pair_shapes,
        columns_of_predictors=tuple(
            None if items is None else {columns.position(item, owner, name) for item in items}
            for name, items in model._loss.columns_of_predictors.items()
        ),
    )  # fmt: skip


def _resolve_terms(
    setting: Any, columns: TableReader, owner: str
) -> tuple[dict[int, Term], dict[Pair, LinearSides], dict[Pair, Term]]:
    """Terms by the position of their column, pairs with linear sides, and surfaces.

    A mapping changes the terms of some columns (None leaves a column out), a list names all terms.
    The columns of a surface in a mapping have no other term, unless it names one.
    The year and the day of dates are periodic by default, and their trends continue.
    """
    names, periods, trends = columns.feature_names, columns.periods, columns.trends

    def resolve(value: Any, j: int) -> Term:
        """A term that was asked for; of a date, with its period or extrapolation."""
        term = replace(value, column=names[j]) if isinstance(value, Term) else Term(names[j], value)
        term.check(owner)
        if term.kind == "periodic" and term.period is None and names[j] in periods:
            term = replace(term, period=periods[names[j]])
        if term.extrapolation == "auto":
            continues = names[j] in trends and term.kind in ("auto", "spline")
            term = replace(term, extrapolation="linear" if continues else "constant")
        return term

    defaults = {j: resolve("periodic" if n in periods else "auto", j) for j, n in enumerate(names)}
    terms: dict[int, Term] = {}
    pairs: dict[Pair, LinearSides] = {}
    surfaces: dict[Pair, Term] = {}

    def add_surface(term: Term) -> None:
        if not isinstance(term.check(owner).column, tuple) or len(set(term.column)) != 2:
            raise ValueError(f"{owner}: a surface has two columns, got {term.column!r}.")
        left, right = sorted(columns.position(column, owner, "terms") for column in term.column)
        if (left, right) in surfaces:
            both = f"{names[left]!r} and {names[right]!r}"
            raise ValueError(f"{owner}: terms has the surface of {both} twice: keep one of them.")
        surfaces[left, right] = term

    if setting is None:
        return defaults, pairs, surfaces
    if isinstance(setting, Mapping):
        for key in (key for key in setting if isinstance(key, tuple)):
            value = setting[key]
            add_surface(replace(value, column=key) if isinstance(value, Term) else Term(key, value))
            for column in key:
                defaults.pop(columns.position(column, owner, "terms"), None)
        for key, value in setting.items():
            if isinstance(key, tuple):
                continue
            if value is None and key in columns.left_out:
                continue
            j = columns.position(key, owner, "terms")
            if value is None:
                defaults.pop(j, None)
            elif value not in ("auto", "trend"):
                defaults[j] = resolve(value, j)
        return dict(sorted(defaults.items())), pairs, surfaces
    if isinstance(setting, str) or not isinstance(setting, Sequence) or not len(setting):
        raise ValueError(
            f"{owner}: terms must be a list of columns, pairs of columns and Terms, or a mapping "
            f"from columns to kinds, got {setting!r}."
        )
    for item in setting:
        if isinstance(item, tuple) and len(item) == 2:
            pairs |= _resolve_pair(item, columns, owner, "terms")
            continue
        if isinstance(item, Term) and (item.kind == "surface" or isinstance(item.column, tuple)):
            add_surface(item)
            continue
        j = columns.position(getattr(item, "column", item), owner, "terms")
        terms[j] = resolve(item, j) if isinstance(item, Term) else defaults[j]
    return dict(sorted(terms.items())), pairs, surfaces


def _resolve_pair(
    item: Any, columns: TableReader, owner: str, argument: str
) -> dict[Pair, LinearSides]:
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
    (left, left_linear), (right, right_linear) = sorted(sides)
    if left == right:
        name = columns.feature_names[left]
        raise ValueError(f"{owner}: {argument} pairs the column {name!r} with itself.")
    return {(left, right): (left_linear, right_linear)}


def _resolve_interactions(
    setting: Any, columns: TableReader, owner: str
) -> tuple[dict[Pair, LinearSides], int]:
    """Pairs that are asked for, with their linear sides, and the most to search for."""
    if setting is None or setting is False:
        return {}, 0
    if isinstance(setting, list | tuple):
        pairs: dict[Pair, LinearSides] = {}
        for item in setting:
            pairs |= _resolve_pair(item, columns, owner, "interactions")
        return pairs, 0
    if isinstance(setting, str) and setting == "auto":
        return {}, MAX_AUTO_PAIRS
    if is_number(setting, Integral) and setting >= 0:
        return {}, int(setting)
    raise ValueError(
        f"{owner}: interactions must be 'auto', a number of pairs, or a list of pairs of "
        f"columns, got {setting!r}."
    )


def _resolve_smoothing(setting: Any, columns: TableReader, owner: str) -> Any:
    """Fixed smoothing parameters: one for all terms, by column, or None if estimated."""
    numbers: dict[Any, float] = {}
    for key, value in setting.items() if isinstance(setting, dict) else ((None, setting),):
        if isinstance(value, str) and value == "auto":
            continue
        if not (is_number(value) and 0 < value < np.inf):
            raise ValueError(
                f"{owner}: smoothing must be 'auto', a positive number (of pseudo-observations), "
                f"or numbers by column, got {value!r}."
            )
        numbers[key] = float(value)
    if not isinstance(setting, dict):
        return numbers.get(None)
    return {columns.position(key, owner, "smoothing"): value for key, value in numbers.items()}


def _resolve_constraints(
    setting: Any, columns: TableReader, owner: str
) -> tuple[Shapes, dict[tuple[int, ...], Shapes]]:
    """Shapes that are asked for, by column, and those along columns of pairs, by pair."""
    if setting is None:
        return {}, {}
    if not isinstance(setting, dict):
        raise ValueError(
            f"{owner}: constraints must be a mapping from columns to {', '.join(SHAPES)}, got "
            f"{setting!r}."
        )
    column_shapes: Shapes = {}
    pair_shapes: dict[tuple[int, ...], Shapes] = {}
    for key, value in setting.items():
        shapes = value if isinstance(value, tuple | list) else (value,)
        if not isinstance(key, tuple):
            j = columns.position(key, owner, "constraints")
            column_shapes[j] = _check_shapes(shapes, f"column {columns.feature_names[j]!r}", owner)
            continue
        (pair,) = _resolve_pair(key, columns, owner, "constraints")
        names = [columns.feature_names[j] for j in pair]
        directions = [shape.partition(" in ")[::2] for shape in map(str, shapes)]
        if not {name for _, name in directions} <= set(names):
            raise ValueError(
                f"{owner}: the constraint of the pair {' × '.join(names)!r} must say along which "
                f"of them, such as 'increasing in {names[0]}', got {value!r}."
            )
        pair_shapes[pair] = {}
        for j, name in zip(pair, names, strict=True):
            if along := [shape for shape, column in directions if column == name]:
                subject = f"{name!r} in the pair {' × '.join(names)!r}"
                pair_shapes[pair][j] = _check_shapes(along, subject, owner)
    return column_shapes, pair_shapes


def _check_shapes(shapes: Sequence[Any], subject: str, owner: str) -> tuple[str, ...]:
    """Shapes of a column, none of which excludes another one."""
    if not set(shapes) <= set(SHAPES):
        raise ValueError(
            f"{owner}: the constraint of {subject} must be one of "
            f"{', '.join(SHAPES)}, or a tuple of these, got {tuple(shapes)!r}."
        )
    for pair in (SHAPES[:2], SHAPES[2:]):
        if set(pair) <= set(shapes):
            raise ValueError(f"{owner}: {subject} cannot be both {' and '.join(pair)}.")
    return tuple(shapes)


def constraint_rows(shapes: tuple[str, ...], book: Codebook, values: np.ndarray) -> np.ndarray:
    r"""Rows of C for a basis with these values at the codes of a column.

    A term's function is linear between the bins of its column, so that its increments from bin to
    bin (and the increments of its slopes) decide its shape: :math:`Cβ ≥ 0`.
    :func:`..solvers.linear_systems.constrained_minimum` minimises under such constraints.
    """
    increments = np.diff(values[1:], axis=0)
    return _shape_rows(shapes, increments, increments / np.diff(book.nodes)[:, None])


def _shape_rows(shapes: tuple[str, ...], increments: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Rows of C, of length one, for functions that have these increments and slopes."""
    curvature = np.diff(slopes, axis=0)
    rows = dict(zip(SHAPES, (increments, -increments, curvature, -curvature), strict=True))
    matrix = np.concatenate([rows[shape].reshape(-1, slopes.shape[-1]) for shape in shapes])
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(length > 0, length, 1.0)


def pair_constraint_rows(
    shapes: tuple[str, ...], nodes: np.ndarray, curve: np.ndarray, positions: np.ndarray,
    cells: np.ndarray,
) -> np.ndarray:  # fmt: skip
    r"""Rows of C for the sum of the function of a column and of a pair, along the column.

    Between two neighbours of all `nodes` and `positions`, the sum is linear for each code of the
    other column, and between two codes it is a mean of theirs: its slopes there decide its shape.

    Parameters
    ----------
    shapes : tuple of str
    nodes, curve : ndarray of shape (n_nodes,), (n_nodes, n_functions)
        The functions of the column, at its nodes.
    positions, cells : ndarray of shape (n,), (n, n_codes, n_functions of the pair)
        Those of the pair, which are constant beyond the positions.
    """
    ends = np.union1d(nodes, positions)
    middle = (ends[:-1] + ends[1:]) / 2

    def slopes(points: np.ndarray, values: np.ndarray) -> np.ndarray:
        gradient = np.diff(values, axis=0) / np.diff(points)[:, None, None]
        ends = ((1, 1), (0, 0), (0, 0))  # beyond the points it is zero
        return np.pad(gradient, ends)[np.searchsorted(points, middle)]

    pair_slopes, curve_slopes = slopes(positions, cells), slopes(nodes, curve[:, None])
    curve_slopes = np.repeat(curve_slopes, cells.shape[1], axis=1)
    total = np.concatenate([curve_slopes, pair_slopes], axis=2)
    return _shape_rows(shapes, total, total)


def enforce_direction(values: np.ndarray, shapes: tuple[str, ...]) -> np.ndarray:
    """Values at codes without rounding errors against a direction."""
    bins = values[1:]
    if "increasing" in shapes:
        bins = np.maximum.accumulate(bins, axis=0)
    elif "decreasing" in shapes:
        bins = np.minimum.accumulate(bins, axis=0)
    return np.concatenate([values[:1], bins])
