r"""Bases of the terms of single columns, in coordinates where their penalties are diagonal.

A term is :math:`g = Bθ` at its codes, with a penalty :math:`θ^\top Sθ`. Its coefficients are
written as :math:`θ = Wb + Na`, with :math:`W^\top SW = I` (the range space of the penalty: curves)
and :math:`SN = 0` (its null space: straight lines, for second differences; and the indicators of
missing values and of point masses, which no difference sees). Functions are centred,
:math:`\sum_i g(c_i) = 0` over the training rows, those of N are made orthonormal over the rows, and
those of W orthogonal to them. With
:math:`W^\top B^\top \mathrm{diag}(n_c) BW / n = UKU^\top`, the basis :math:`BWUK^{-1/2}` is
orthonormal over the rows as well, and the penalty of its coefficients is diagonal: :math:`K^{-1}`
(the natural parameterisation of Wood 2017, section 5.4.2). The null space N has a second penalty,
the identity, which lets the data shrink it, too (Marra and Wood 2011), so that every coefficient
has exactly one smoothing parameter.

K is the variance over the rows of functions with a penalty of one: the smoothest have its largest
entries, which are exact to rounding, even where many splines have no rows.

Which splines suit a column is decided by fits of this column alone. In a natural basis
:math:`B^\top \mathrm{diag}(n_c) B = nI`, and the restricted likelihood of a least-squares fit
(:mod:`..solvers.reml`) is a sum over its coefficients, for any number of smoothing parameters:

.. math:: 2ℓ(λ) = (n - 1)\log D + \sum_i \log\Big(1 + \frac{n}{λ s_i}\Big),
          \qquad D = q - \sum_i \frac{r_i^2}{n + λ s_i}, \quad r = B^\top t,

t the sums of the centred targets by code, and q the sum of their squares. Other losses have the
negative gradients at the intercept in the place of the targets. The effects of all other columns
count as noise, so that the choice is a cautious one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import solve_triangular

from ...stats import CodeSums
from ..rows.basis import TermBasis
from .codebooks import Codebook

if TYPE_CHECKING:
    from .terms import Term


@dataclass(frozen=True)
class BasisOptions:
    """Constants of the bases."""

    # Diagonal of BᵀB, in units of its mean, below which a spline counts as one without rows.
    empty_spline: float = 0.1
    # Entries of K, in units of the largest, below which they are rounding errors.
    min_variance: float = 1e-12
    # Eigenvalues, in units of the largest, at which functions of N are linearly dependent.
    dependent: float = 1e-10
    # Share of the values, beside the ranks, in the axis between the two.
    value_share: float = 0.3
    # Steps between values, in units of their mean, that count as this much in divided differences:
    # with smaller ones, rounding errors would bend straight lines.
    min_step: float = 1e-5


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
    # rows, and this many times that of a mean bin. Without, errors are 1.2 to 2.7 times as large
    # where 15 or 50 % of 2000 rows hold zero, with jumps of one or three standard deviations of the
    # noise there; without jumps they are the same.
    mass_share: float = 0.05
    mass_factor: float = 4.0
    # Splines of a curve that follows steps, and log-likelihood by which it has to be better. With
    # 3, 0 or 1 of 8 to 15 simulated tables took it for a line, a slow wave, a bump or a logarithm
    # (too few for a rate); fast waves of a skewed column took it in up to all of 8.
    n_bases_rough: int = 100
    rough_cost: float = 3.0
    # If more of the splines on an axis have hardly any rows, a curve that follows steps lies on the
    # axis between ranks and values: else it would follow single rows in a long tail, outliers too.
    # Of x, log x and x² of skewed columns with heavy tails of the noise, held-out R² is 0.07 and
    # 0.14 higher (900 and 300 rows); errors of steps are the same. With 0.2, they rise by up to a
    # quarter, with 0.5 half of the gain is left. On tables that it was not chosen by (lognormal,
    # gamma and Pareto columns, 300 and 900 rows, 8 each) it is 0.04 and 0.05 higher for lognormal
    # ones, with 0.5 by 0.04 and 0.01, and as without it (to 0.003) for all others and for steps.
    max_empty_share: float = 0.4
    max_bins_smooth: int = 3  # values of a column, up to which there are no steps between them
    min_bases_rough: int = 2  # affordable ones: with fewer rows, a column alone shows little
    n_smoothest: int = 6  # functions with a smoothing parameter of their own, if rows are many
    # Functions that a curve keeps: this many times the edf that its column alone uses, and as many
    # as there are rows for, at least this number. With few rows for each column that saves time,
    # with more a curve keeps all: strong effects of other columns may hide that it is wiggly. From
    # `many_rows` on a column alone shows that, and this many more are enough: on 12,000 rows (a
    # chirp, peaks, smooth curves; 3 tables each that it was not chosen by), errors with 4, 8, 16
    # and all are within 6 % of each other, and all take 1.2 to 1.4 times as long as 8.
    functions_per_edf: float = 1.5
    min_more_functions: int = 2
    more_functions_many: int = 8


BASES = BasisOptions()
CURVES = CurveOptions()
# Smoothing parameters that are tried, per row and in units of the median penalty of a natural
# basis: three in each power of ten, from a free curve to a straight line.
SMOOTHING_GRID = np.geomspace(1e-7, 1e3, 31)


@dataclass(frozen=True)
class NaturalBases:
    """Bases of a column that are to be compared: their values are those of the one that is taken.

    Attributes
    ----------
    raw : ndarray of shape (n_bases, n_codes, n_coefficients)
        B.
    theta : ndarray of shape (n_bases, n_coefficients, n_functions)
        WUK^(−1/2) and N, of functions that are centred.
    penalty : ndarray of shape (n_bases, n_functions)
        Infinite for functions that depend on the others.
    n_null : int
        Functions of N.
    """

    raw: np.ndarray
    theta: np.ndarray
    penalty: np.ndarray
    n_null: int

    def __getitem__(self, k: int) -> TermBasis:
        used = np.isfinite(self.penalty[k])
        index = np.repeat([0, 1], [len(used) - self.n_null, self.n_null])[used]
        return TermBasis(
            self.raw[k] @ self.theta[k][:, used], self.penalty[k, used],
            index - index.min(initial=1), bool(index.max(initial=0)),
        )  # fmt: skip


def natural_bases(
    raw: np.ndarray, counts: np.ndarray, range_space: np.ndarray, null_space: np.ndarray,
    unit: np.ndarray | float, constant: np.ndarray | None = None,
) -> NaturalBases:  # fmt: skip
    """Centre bases and make their penalties diagonal; see the module's docstring.

    Parameters
    ----------
    raw : ndarray of shape (n_bases, n_codes, n_coefficients)
        B.
    counts : ndarray of shape (n_codes,)
        Weight of the rows with each code.
    range_space, null_space : ndarray of shape (n_coefficients, …) or (n_bases, n_coefficients, …)
        W and N. The penalty of a category is a ridge: its contrasts are W, or N if it has one.
    unit : float or ndarray of shape (n_bases, 1)
        Penalty that counts as one.
    constant : ndarray of shape (n_coefficients,), optional
        Coefficients of the constant function, by which functions are centred; without it their
        means are subtracted.
    """
    total = float(counts.sum())
    means = (counts / total) @ raw
    if constant is None:
        raw = raw - means[:, None]
    else:
        range_space, null_space = (
            functions - constant[:, None] * (means[:, None] @ functions)
            for functions in (range_space, null_space)
        )
    rows = np.sqrt(counts / total)[:, None] * raw
    gram = _transpose(rows) @ rows
    values, rotation = np.linalg.eigh(_transpose(null_space) @ gram @ null_space)
    independent = values > BASES.dependent * values.max(axis=1, initial=0.0, keepdims=True)
    scale = np.sqrt(np.where(independent, values, np.inf))
    null_space = null_space @ (rotation / scale[:, None])
    range_space = range_space - null_space @ (_transpose(null_space) @ (gram @ range_space))
    variances, rotation = np.linalg.eigh(_transpose(range_space) @ gram @ range_space)
    variances, rotation = variances[:, ::-1], rotation[:, :, ::-1]
    largest = variances.max(axis=1, initial=0.0, keepdims=True)
    variances = np.maximum(variances, BASES.min_variance * largest)
    scale = np.sqrt(np.where(largest > 0, variances, np.inf))
    theta = np.concatenate([range_space @ (rotation / scale[:, None]), null_space], axis=2)
    curve_penalty = np.where(largest > 0, 1 / (unit * scale**2), np.inf)
    penalty = np.concatenate([curve_penalty, np.where(independent, 1.0, np.inf)], axis=1)
    return NaturalBases(raw, theta, penalty, null_space.shape[2])


def _transpose(matrices: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrices, -1, -2)


def decompose_smoothest(
    gram: np.ndarray, max_functions: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The largest entries of K, and UK^(−1/2), of UKUᵀ: those of the smoothest functions."""
    variances, rotation = np.linalg.eigh(gram)
    variances, rotation = variances[::-1][:max_functions], rotation[:, ::-1][:, :max_functions]
    if not variances.max(initial=0.0) > 0:
        variances, rotation = variances[:0], rotation[:, :0]
    variances = np.maximum(variances, BASES.min_variance * variances.max(initial=0.0))
    return variances, rotation / np.sqrt(variances)


def orthogonal_complement(vector: np.ndarray) -> np.ndarray:
    """Orthonormal columns that are orthogonal to a vector (of a Householder reflection)."""
    size, length = len(vector), float(np.linalg.norm(vector))
    if length == 0:
        return np.eye(size)
    mirror = vector / length
    mirror[0] += 1.0 if mirror[0] >= 0 else -1.0
    reflection = np.eye(size) - 2 * np.outer(mirror, mirror) / (mirror @ mirror)
    return reflection[:, 1:]


def compute_differences(steps: np.ndarray, order: int) -> np.ndarray:
    r"""The matrix D of differences of the values of a function at nodes that are these steps apart.

    The sum of their squares approximates the integral of :math:`f'^2` or :math:`f''^2`, as each is
    a derivative times the root of the length that it stands for; with steps of one they are the
    differences of neighbours. The penalty is :math:`D^\top D`.
    """
    matrix, lengths = np.eye(len(steps) + 1), steps
    for k in range(min(order, len(steps))):
        lengths = steps if k == 0 else (steps[1:] + steps[:-1]) / 2
        matrix = np.diff(matrix, axis=0) / lengths[:, None]
    return np.sqrt(lengths)[:, None] * matrix if len(steps) else matrix[:0]


@lru_cache(maxsize=64)
def _penalty_spaces(
    size: int, order: int, periodic: bool, position: tuple[float, ...] | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """W, N without constants, and the trace of S, for differences of coefficients.

    Given the positions of nodes, the coefficients are the values there, and the trace is that of
    evenly spaced ones: a few close nodes do not decide which penalty counts as one.
    """
    no_line = np.empty((size, 0))
    if periodic:
        differences = np.eye(size)
        for _ in range(order):
            differences = np.roll(differences, -1, axis=0) - differences
        _, values, rotation = np.linalg.svd(differences)
        return rotation[:-1].T / values[:-1], no_line, float(np.sum(differences**2))
    steps = np.ones(size - 1)
    trace = float(np.sum(compute_differences(steps, order) ** 2))
    if position is not None and size > 1:
        steps = np.diff(position) / np.ptp(position) * (size - 1)
        steps = np.maximum(steps, BASES.min_step)
    line = np.append(0.0, np.cumsum(steps))[:, None]
    if order == 2 and size == 2:  # two values have a line, and no curve
        return no_line, line, trace
    differences = compute_differences(steps, order)
    n_null = size - len(differences)
    square = np.vstack([np.eye(size)[:n_null], differences])  # lower triangular
    range_space = solve_triangular(square, np.eye(size)[:, n_null:], lower=True)
    return range_space, line if order == 2 else no_line, trace


def splines(position: np.ndarray, size: int, degree: int) -> np.ndarray:
    """B-splines at positions in [0, 1], with even knots that go on beyond its ends.

    So the coefficients of a straight line are evenly spaced, and their second differences vanish
    (Eilers and Marx 1996); with knots repeated at the ends they would not.
    """
    knots = np.arange(-degree, size + 1.0)
    place = np.clip(position, 0.0, 1.0) * (size - degree)
    return BSpline.construct_fast(knots, np.eye(size), degree)(place)  # without its checks


def periodic_splines(position: np.ndarray, size: int, degree: int) -> np.ndarray:
    """B-splines on a circle of length 1."""
    basis = splines(position % 1.0, size + degree, degree)
    matrix = basis[:, :size].copy()
    matrix[:, :degree] += basis[:, size:]
    return matrix


def number_bases(
    positions: np.ndarray, counts: np.ndarray, *, n_bases: int, order: int, degree: int = 3,
    periodic: bool = False, masses: Sequence[int] | np.ndarray = (), keep_line: bool = False,
) -> NaturalBases:  # fmt: skip
    """Splines over the bins of a number, on some axes, and one coefficient for missing values.

    Parameters
    ----------
    positions : ndarray of shape (n_axes, n_bins)
        Positions of the bins in [0, 1], increasing.
    counts : ndarray of shape (n_bins + 1,)
        Weights of the codes, the missing value first.
    n_bases, order, degree, periodic
        Splines, their degree, and the order of the differences that are penalised; if there are
        no more bins than splines, each bin has a coefficient instead, and divided differences are
        penalised, so that a straight line is one in the positions.
    masses : sequence of int
        Bins whose value may lie off the curve: each has one more coefficient, if there are more
        bins than splines.
    keep_line : bool
        Whether straight lines have a smoothing parameter of their own also if first differences
        are penalised, of which they are no null space.
    """
    n_axes, n_bins = positions.shape
    nodes: list[tuple[float, ...] | None] = [None]
    if periodic:
        size = max(n_bases, degree + 1)
        curves = np.stack([periodic_splines(position, size, degree) for position in positions])
    elif n_bins <= n_bases:
        size, curves = n_bins, np.broadcast_to(np.eye(n_bins), (n_axes, n_bins, n_bins))
        nodes = [tuple(position) for position in positions.tolist()]
    else:
        size, curves = n_bases, splines(positions, n_bases, degree)
    spaces = [_penalty_spaces(size, order, periodic, place) for place in nodes]
    lines = spaces
    if keep_line and size > 2:
        lines = [_penalty_spaces(size, 2, periodic, place) for place in nodes]
    masses = list(masses) if size < n_bins else []
    n_single = len(masses) + bool(counts[0] > 0)  # coefficients of codes, which have no penalty
    raw = np.zeros((n_axes, n_bins + 1, size + n_single))
    raw[:, 1:, :size] = curves
    raw[:, np.append(1 + np.array(masses, int), 0)[:n_single], size + np.arange(n_single)] = 1.0
    range_space = np.zeros((len(spaces), size + n_single, spaces[0][0].shape[1]))
    range_space[:, :size] = [space[0] for space in spaces]
    n_lines = lines[0][1].shape[1]
    null_space = np.zeros((len(spaces), size + n_single, n_lines + n_single))
    null_space[:, :size, :n_lines] = [space[1] for space in lines]
    null_space[:, size:, n_lines:] = np.eye(n_single)
    constant = np.ones(size + n_single)
    constant[size : size + len(masses)] = 0.0
    means = np.sum(counts[1:] @ curves**2, axis=1, keepdims=True) / counts.sum()
    unit = spaces[0][2] / np.maximum(means, 1e-300)
    bases = natural_bases(raw, counts, range_space, null_space, unit, constant)
    if keep_line:  # first differences penalise the line, too: with it in N, a function is empty
        bases.penalty[:, bases.penalty.shape[1] - bases.n_null - 1] = np.inf
    return bases


def linear_basis(position: np.ndarray, counts: np.ndarray) -> TermBasis:
    """A straight line over the bins of a number, and one coefficient for missing values."""
    centred = position - counts[1:] @ position / counts[1:].sum()
    raw = with_missing_code(centred[:, None], counts[0] > 0)
    null_space = np.eye(raw.shape[1])
    basis = natural_bases(raw[None], counts, null_space[:, :0], null_space, 1.0)[0]
    return _zero_without_rows(basis, counts)


def with_missing_code(curve: np.ndarray, missing: bool) -> np.ndarray:
    """Add a row for code 0: with a coefficient of its own if rows have it, else the mean (zero)."""
    n_bins, size = curve.shape
    matrix = np.zeros((n_bins + 1, size + missing))
    matrix[1:, :size] = curve
    matrix[0, size:] = 1.0
    return matrix


def category_basis(counts: np.ndarray) -> TermBasis:
    """One coefficient for each level that rows have, with a ridge penalty."""
    contrasts = orthogonal_complement(counts[counts > 0] / counts.sum())
    # The one contrast of two levels is the line through a column of zeros and ones.
    rank = 0 if contrasts.shape[1] == 1 else contrasts.shape[1]
    range_space, null_space = contrasts[:, :rank], contrasts[:, rank:]
    raw, unit = level_indicators(counts)[None], float(len(contrasts))
    basis = natural_bases(raw, counts, range_space, null_space, unit)[0]
    return _zero_without_rows(basis, counts)


def level_indicators(counts: np.ndarray) -> np.ndarray:
    """One function for each code that rows have."""
    return np.ascontiguousarray(np.eye(len(counts))[:, counts > 0])


def _zero_without_rows(basis: TermBasis, counts: np.ndarray) -> TermBasis:
    """Codes that no row has get the mean, which is zero."""
    return replace(basis, values=np.where((counts > 0)[:, None], basis.values, 0.0))


def empty_basis(n_codes: int = 1) -> TermBasis:
    """The basis of a term without functions."""
    return TermBasis(np.zeros((n_codes, 0)), np.zeros(0), np.zeros(0, np.int64))


class ColumnTargets(NamedTuple):
    """Targets of all outputs by the codes of one column.

    Attributes
    ----------
    counts : ndarray of shape (n_codes,)
        Sums of the weights.
    targets : ndarray of shape (n_outputs, n_codes)
        Sums of the weighted targets around their mean.
    squares : ndarray of shape (n_outputs,)
        Sums of the weighted squares of the targets around their mean.
    """

    counts: np.ndarray
    targets: np.ndarray
    squares: np.ndarray


def column_targets(sums: Sequence[CodeSums], column: int) -> ColumnTargets:
    """Targets of all outputs by the codes of one column."""
    counts, targets, squares = sums[0].singles[column], [], []
    for output in sums:
        mean = output.target / max(output.weight, 1e-300)
        targets.append(output.targets[column] - mean * counts)
        squares.append(max(output.square - mean * output.target, 0.0))  # a constant is rounded
    return ColumnTargets(counts, np.stack(targets), np.array(squares))


class CurveFits(NamedTuple):
    """Fits of one column alone: the log-likelihoods −ℓ, and the degrees of freedom.

    Of several outputs, they are the sum and the maximum.
    """

    bases: NaturalBases
    likelihood: np.ndarray
    edf: np.ndarray


def fit_alone(bases: NaturalBases, column: ColumnTargets) -> CurveFits:
    """Estimate the smoothing parameter of a column's curves by REML, with no other term."""
    n, rhs = max(float(column.counts.sum()), 1e-300), column.targets @ bases.raw @ bases.theta
    in_range_space = np.arange(rhs.shape[2]) < rhs.shape[2] - bases.n_null
    # The null space has the smoothing parameter of one row: it costs each axis the same.
    smoothing = np.where(in_range_space, n * SMOOTHING_GRID[:, None], 1.0)
    penalty = smoothing * bases.penalty[:, None]
    squares = column.squares[:, None]
    deviance = squares - rhs**2 @ _transpose(1 / (n + penalty))
    deviance = np.maximum(deviance, 1e-14 * squares + 1e-300)  # above its rounding errors
    costs = np.sum(np.log1p(n / penalty), axis=2)
    criterion = (n - 1) * np.log(deviance) + costs[:, None]
    edf = np.sum(n / (n + penalty), axis=2)
    best = [values[grid].max() for values, grid in zip(edf, criterion.argmin(2), strict=True)]
    return CurveFits(bases, -0.5 * criterion.min(axis=2).sum(axis=1), np.array(best))


def curve_basis(
    term: Term, book: Codebook, column: ColumnTargets, n_columns: int, may_be_rough: bool
) -> TermBasis:
    """Splines on the axis that suits a column best, as many of them as it can use.

    Parameters
    ----------
    term, book, column
        What is asked for, the codes of the column, and the targets by these.
    n_columns : int
        Terms of the model, which share its rows.
    may_be_rough : bool
        Whether the curve may follow steps that the targets show.
    """
    counts, n_rows, n_bins = column.counts, float(column.counts.sum()), len(book.nodes)
    default = CURVES.n_bases_many if n_rows >= CURVES.many_rows else CURVES.n_bases
    affordable = int(n_rows / (CURVES.rows_per_basis * n_columns))
    n_bases = term.n_bases or min(default, max(CURVES.min_bases, affordable))
    periodic = term.kind == "periodic"
    # Neither a point mass at the end of a curve nor a step is a slope to go on with.
    may_jump = not periodic and term.extrapolation != "linear"

    def fit(positions: np.ndarray, n_bases: int = n_bases, **options: Any) -> CurveFits:
        options = {"order": term.order, "periodic": periodic} | options
        return fit_alone(number_bases(positions, counts, n_bases=n_bases, **options), column)

    axes = np.stack(_candidate_axes(term, book, n_bases))
    best = fit(axes)
    # Each axis but that of the values, the last one, must be better by more than chance.
    costs, empty_share = np.zeros((2, len(axes)))
    if n_bins > n_bases and not periodic:
        costs[:-1] = CURVES.rank_axis_cost
        # An axis may have splines with hardly any rows.
        rows = counts[1:] @ best.bases.raw[:, 1:, :n_bases] ** 2
        empty = rows < BASES.empty_spline * rows.mean(axis=1, keepdims=True)
        empty_share = empty.mean(axis=1)
    best_axis = int(np.argmax(best.likelihood - costs - CURVES.empty_axis_cost * empty_share))
    position, likelihood = axes[best_axis : best_axis + 1], best.likelihood[best_axis]
    if may_jump and len(masses := _point_masses(counts, n_bases)):
        apart = fit(position, masses=masses)
        if apart.likelihood[0] > likelihood:
            best, best_axis, likelihood = apart, 0, apart.likelihood[0]
    # Three values have no steps between them.
    many_bins = n_bins > CURVES.max_bins_smooth and affordable >= CURVES.min_bases_rough
    if may_be_rough and may_jump and many_bins and term.n_bases is None and term.order == 2:
        # Many splines, and a penalty of first differences: steps and kinks cost it little.
        better = likelihood + CURVES.rough_cost
        if empty_share[best_axis] > CURVES.max_empty_share:
            position = axes[len(axes) // 2 :][:1]
        rough = fit(position, CURVES.n_bases_rough, order=1, keep_line=True)
        best, best_axis = (rough, 0) if rough.likelihood[0] > better else (best, best_axis)
    basis = best.bases[best_axis]
    if term.n_bases is None:
        needed = CURVES.functions_per_edf * best.edf[best_axis]
        more = max(CURVES.min_more_functions, affordable)
        if n_rows >= CURVES.many_rows:
            more = min(CURVES.more_functions_many, more)
        basis = basis.smoothest(int(needed + more))
    if n_rows >= CURVES.many_rows:
        return basis.with_two_smoothing_parameters(CURVES.n_smoothest)
    return basis


def _point_masses(counts: np.ndarray, n_bases: int) -> np.ndarray:
    """Bins at the ends of a column that far more rows share than others: no purchase, say.

    Their effect need not continue that of the values beside them. If there are no more bins than
    splines, each has a coefficient anyway.
    """
    bins = counts[1:]
    ends = np.array([0, len(bins) - 1])
    many = max(CURVES.mass_share, CURVES.mass_factor / len(bins)) * counts.sum()
    return ends[bins[ends] > many] if len(bins) > n_bases else ends[:0]


def interpolate_axes(rank: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Positions of bins between their ranks and their values, all in [0, 1]."""
    return (1 - BASES.value_share) * rank + BASES.value_share * value


def _candidate_axes(term: Term, book: Codebook, n_bases: int) -> list[np.ndarray]:
    """Positions of the bins in [0, 1], on the axes that are to be compared, the values last."""
    nodes = book.nodes
    extent, rank = nodes[-1] - nodes[0], (np.arange(len(nodes)) + 0.5) / len(nodes)
    if term.kind == "periodic":
        # Without a stated period the step beyond the last value closes the circle.
        step = extent / max(len(nodes) - 1, 1)
        return [(nodes - nodes[0]) / (term.period or extent + step or 1.0)]
    if term.knots == "quantile" or not extent > 0:
        return [rank]
    value = (nodes - nodes[0]) / extent
    # If each bin has a coefficient, ranks of evenly spaced values are the same axis.
    same_axis = len(nodes) <= n_bases and np.ptp(np.diff(value)) < CURVES.same_step
    if term.knots == "even" or same_axis:
        return [value]
    return [rank, interpolate_axes(rank, value), value]
