r"""Bases of terms at the codes of a column, in coordinates where their penalties are diagonal.

A term is :math:`g = Bθ` at its codes, with a penalty :math:`θ^\top Sθ`. Its coefficients are
written as :math:`θ = Wb + Na`, with :math:`W^\top SW = I` (the range space of the penalty: curves)
and :math:`SN = 0` (its null space: straight lines, for second differences; and the indicators of
missing values and of jumps, which no difference sees). Functions are centred,
:math:`\sum_i g(c_i) = 0` over the training rows, those of N are made orthonormal over the rows, and
those of W orthogonal to them. With
:math:`W^\top B^\top \mathrm{diag}(n_c) BW / n = UKU^\top`, the basis :math:`BWUK^{-1/2}` is
orthonormal over the rows as well, and the penalty of its coefficients is diagonal: :math:`K^{-1}`
(the natural parameterisation of Wood 2017, section 5.4.2). The null space N has a second penalty,
the identity, which lets the data shrink it, too (Marra and Wood 2011), so that every coefficient
has exactly one smoothing parameter.

K is the variance over the rows of functions with a penalty of one: the smoothest have its largest
entries, which are exact to rounding, even where many splines have no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.linalg import lapack

from ..rows.basis import TermBasis


@dataclass(frozen=True)
class BasisOptions:
    """Constants of the bases."""

    # Ridge, in units of the mean diagonal of BᵀB, for splines without rows. With n rows, it changes
    # log-likelihoods by up to about n times as much.
    ridge: float = 1e-10
    # Diagonal of BᵀB, in units of its mean, below which a spline counts as one without rows.
    empty_spline: float = 0.1
    # Entries of K, in units of the largest, below which they are rounding errors.
    min_variance: float = 1e-12
    # Eigenvalues, in units of the largest, at which functions of N are linearly dependent.
    dependent: float = 1e-10
    marginal_splines: int = 22  # of each column of a pair
    # Share of the values, beside the ranks, in the axis between the two.
    value_share: float = 0.3
    # Penalty of a straight line in a pair, beside those of the other column, whose mean is one: so
    # little that the other column decides, and not zero, where both are straight lines.
    line_penalty: float = 1e-3
    # A pair's n smoothest functions are sought among 3n + 16 products of the columns' functions.
    candidates_factor: int = 3
    candidates_offset: int = 16
    # Steps between values, in units of their mean, that count as this much in divided differences:
    # with smaller ones, rounding errors would bend straight lines.
    min_step: float = 1e-5
    small_matrix: int = 32  # up to this size LAPACK called directly takes half of NumPy's time


BASES = BasisOptions()


def natural_basis(
    raw: np.ndarray, counts: np.ndarray, range_space: np.ndarray, null_space: np.ndarray,
    unit: float, *, constant: np.ndarray | None = None,
    sparse: tuple[np.ndarray, np.ndarray] | None = None,
) -> TermBasis:  # fmt: skip
    """Centre a basis and make its penalty diagonal; see the module's docstring.

    Parameters
    ----------
    raw : ndarray of shape (n_codes, n_coefficients)
        B.
    counts : ndarray of shape (n_codes,)
        Weight of the rows with each code.
    range_space, null_space : ndarray of shape (n_coefficients, …)
        W and N. The penalty of a category is a ridge: its contrasts are W, or N if it has one.
    unit : float
        Penalty that counts as one.
    constant : ndarray of shape (n_coefficients,), optional
        Coefficients of the constant function, by which functions are centred; without it their
        means are subtracted.
    sparse : tuple, optional
        If rows of `raw` have few nonzero entries, one after another: where these begin, and their
        values. For bases with a `constant`.
    """
    total = float(counts.sum())
    means = counts @ raw / total
    if constant is not None:
        range_space, null_space = (
            functions - np.outer(constant, means @ functions)
            for functions in (range_space, null_space)
        )
    if sparse is not None:
        gram = _sparse_gram(*sparse, counts / total, raw.shape[1])
    else:
        rows = np.sqrt(counts / total)[:, None] * (raw if constant is not None else raw - means)
        gram = rows.T @ rows
    null_space = null_space @ _orthonormal(null_space.T @ gram @ null_space)
    range_space = range_space - null_space @ (null_space.T @ gram @ range_space)
    variances, rotation = _smoothest(range_space.T @ gram @ range_space)
    theta = np.hstack([range_space @ rotation, null_space])
    values = raw @ theta
    if constant is None:
        values -= means @ theta
    n_null = null_space.shape[1]
    index = np.repeat([0, 1], [len(variances), n_null])
    penalty = np.append(1 / (unit * variances), np.ones(n_null))
    return TermBasis(values, penalty, index - index.min(initial=1), n_null > 0)


def _sparse_gram(
    first: np.ndarray, values: np.ndarray, weight: np.ndarray, size: int
) -> np.ndarray:
    """BᵀWB of a basis whose rows have some values from a first column on, and zeros elsewhere."""
    places = np.arange(values.shape[1])
    index = first[:, None, None] * (size + 1) + places[:, None] * size + places
    products = (weight[:, None] * values)[:, :, None] * values[:, None]
    return np.bincount(index.ravel(), products.ravel(), size * size).reshape(size, size)


def _smoothest(gram: np.ndarray, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The largest entries of K, and UK^(−1/2), of UKUᵀ: those of the smoothest functions."""
    variances, rotation = eigh(gram)
    variances, rotation = variances[::-1][:most], rotation[:, ::-1][:, :most]
    if not variances.max(initial=0.0) > 0:
        variances, rotation = variances[:0], rotation[:, :0]
    variances = np.maximum(variances, BASES.min_variance * variances.max(initial=0.0))
    return variances, rotation / np.sqrt(variances)


def eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors; small matrices bypass the overhead of NumPy's function."""
    if len(matrix) < 2:
        return matrix.diagonal().copy(), np.ones_like(matrix)
    if len(matrix) > BASES.small_matrix:
        return np.linalg.eigh(matrix)
    values, vectors, _ = lapack.dsyevd(matrix, lower=1)
    return values, vectors


def _orthonormal(gram: np.ndarray) -> np.ndarray:
    """Orthonormal combinations of functions with this Gram matrix, as many as its rank."""
    values, rotation = eigh(gram)
    independent = values > BASES.dependent * values.max(initial=0.0)
    return rotation[:, independent] / np.sqrt(values[independent])


def _complement(vector: np.ndarray) -> np.ndarray:
    """Orthonormal columns that are orthogonal to a vector (of a Householder reflection)."""
    size, length = len(vector), float(np.linalg.norm(vector))
    if length == 0:
        return np.eye(size)
    mirror = vector / length
    mirror[0] += 1.0 if mirror[0] >= 0 else -1.0
    reflection = np.eye(size) - 2 * np.outer(mirror, mirror) / (mirror @ mirror)
    return reflection[:, 1:]


def difference_penalty(size: int, order: int) -> np.ndarray:
    """DᵀD for differences of neighbouring coefficients."""
    differences = _differences(size, order)
    return differences.T @ differences


def _differences(size: int, order: int, periodic: bool = False) -> np.ndarray:
    """The matrix D of differences."""
    matrix = np.eye(size)
    for _ in range(min(order, size - 1)):
        matrix = np.roll(matrix, -1, axis=0) - matrix if periodic else np.diff(matrix, axis=0)
    return matrix


def _divided_differences(steps: np.ndarray, order: int) -> np.ndarray:
    r"""Differences of the values of a function at nodes that are these steps apart.

    The sum of their squares approximates the integral of :math:`f'^2` or :math:`f''^2`, as each is
    a derivative times the root of the length that it stands for; with steps of one they are the
    differences of neighbours.
    """
    matrix, lengths = np.eye(len(steps) + 1), steps
    for k in range(min(order, len(steps))):
        lengths = steps if k == 0 else (steps[1:] + steps[:-1]) / 2
        matrix = np.diff(matrix, axis=0) / lengths[:, None]
    return np.sqrt(lengths)[:, None] * matrix if len(steps) else matrix


def _relative_steps(position: np.ndarray) -> np.ndarray:
    """Steps between positions, along the last axis, in units of their mean."""
    extent = np.ptp(position, axis=-1, keepdims=True)
    steps = np.diff(position) / extent * (position.shape[-1] - 1)
    return np.maximum(steps, BASES.min_step)


@lru_cache(maxsize=64)
def _penalty_spaces(
    size: int, order: int, periodic: bool, position: tuple[float, ...] | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """W, N without constants, and the trace of S, for differences of coefficients.

    Given the positions of nodes, the coefficients are the values there, and the trace is that of
    evenly spaced ones: a few close nodes do not decide which penalty counts as one.
    """
    straight = size == 2 and order == 2 and not periodic  # two values have a line, and no curve
    differences = _differences(size, order, periodic)
    trace, line = float(np.sum(differences**2)), np.linspace(-1, 1, size)
    if position is not None and size > 1:
        steps = _relative_steps(np.asarray(position))
        differences = _divided_differences(steps, order)
        line[1:] = line[0] + np.cumsum(steps) * (2 / (size - 1))
    order = order if straight else min(order, size - 1)
    rank = size - (1 if periodic or size == 1 else order)
    _, values, rotation = np.linalg.svd(differences, full_matrices=False)
    null_space = line[:, None] if order == 2 and not periodic else np.empty((size, 0))
    return rotation[:rank].T / values[:rank], null_space, trace


def splines(position: np.ndarray, size: int, degree: int) -> np.ndarray:
    """B-splines at positions in [0, 1], with even knots that go on beyond its ends.

    So the coefficients of a straight line are evenly spaced, and their second differences vanish
    (Eilers and Marx 1996); with knots repeated at the ends they would not.
    """
    return _in_all_columns(*_local_splines(position, size, degree), size)


def _in_all_columns(first: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    """Rows with some values from a first column on, and zeros in the others."""
    matrix = np.zeros((len(first), size))
    columns = first[:, None] + np.arange(values.shape[1])
    matrix[np.arange(len(matrix))[:, None], columns] = values
    return matrix


def _local_splines(position: np.ndarray, size: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """The first spline that is not zero at each position, and the values of it and the next."""
    first, values = _splines_at(position, size, degree)
    return first, np.ascontiguousarray(values.T)


def _splines_at(position: np.ndarray, size: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """The same with the splines along the first axis."""
    u = np.minimum(np.maximum(position, 0.0), 1 - 1e-12) * (size - degree)
    first = u.astype(np.int64)
    t = u - first
    values, r = np.ones((1, *position.shape)), np.arange(float(degree))
    r = r.reshape(-1, *[1] * position.ndim)
    for d in range(1, degree + 1):  # de Boor's recursion
        share = values / d
        values = np.empty((d + 1, *position.shape))
        values[0] = 0.0
        np.multiply(t + d - r[:d] - 1, share, out=values[1:])
        values[:-1] += (r[:d] + 1 - t) * share
    return first, values


@dataclass(frozen=True)
class BandedNormalEquations:
    r"""Normal equations of some curves, with as many bins and as many coefficients each.

    Their matrices are banded: a spline overlaps with few others.

    Attributes
    ----------
    gram, penalty : ndarray of shape (n_curves, 1 + n_bands, n_coefficients)
        Lower bands of :math:`B^\top \mathrm{diag}(n_c) B` and of the penalty S.
    rhs : ndarray of shape (n_curves, n_outputs, n_coefficients)
        Sums of the targets, :math:`B^\top t`.
    unit : ndarray of shape (n_curves,)
        tr(G)/tr(S): a smoothing parameter that is neither large nor small.
    steps : ndarray of shape (n_curves, n_coefficients − 1)
        Steps between the coefficients of the straight line: one, between splines.
    line : ndarray of shape (n_curves, n_bins)
        The straight line at the bins.
    order : int
        Of the differences.
    """

    gram: np.ndarray
    penalty: np.ndarray
    rhs: np.ndarray
    unit: np.ndarray
    steps: np.ndarray
    line: np.ndarray
    order: int

    @property
    def empty_share(self) -> np.ndarray:
        """Share of the splines that have hardly any rows, of each curve."""
        diagonal = self.gram[:, 0]
        limit = BASES.empty_spline * diagonal.mean(axis=1, keepdims=True)
        return np.mean(diagonal < limit, axis=1)


def banded_normal_equations(
    position: np.ndarray, counts: np.ndarray, targets: np.ndarray, *,
    n_bases: int, degree: int, order: int,
) -> BandedNormalEquations:  # fmt: skip
    """Normal equations of curves as those of `number_basis`, without missing values.

    Parameters
    ----------
    position, counts : ndarray of shape (n_curves, n_bins)
        Positions and weights of the bins.
    targets : ndarray of shape (n_curves, n_outputs, n_bins)
        Sums of the targets over the bins.
    n_bases, degree, order
        As of `number_basis`.
    """
    n_curves, n_bins = position.shape
    if n_bins <= n_bases:  # each bin has a coefficient
        steps = _relative_steps(position)
        line = np.append(np.zeros((n_curves, 1)), np.cumsum(steps, axis=1), axis=1)
        gram, rhs = np.zeros((n_curves, 1 + order, n_bins)), targets
        gram[:, 0] = counts
        penalty, even_steps = _penalty_bands(steps, order), np.ones((1, n_bins - 1))
        trace = _penalty_bands(even_steps, order)[0, 0].sum()
    else:
        line, steps = (n_bases - degree) * position, np.ones((n_curves, n_bases - 1))
        gram, rhs = _spline_sums(position, counts, targets, n_bases, degree)
        penalty = _penalty_bands(steps[:1], order)
        trace = penalty[0, 0].sum()
    n_bands = max(gram.shape[1], penalty.shape[1])
    gram, penalty = (_with_bands(bands, n_bands) for bands in (gram, penalty))
    unit = gram[:, 0].sum(axis=1) / trace
    return BandedNormalEquations(gram, penalty, rhs, unit, steps, line, order)


def _with_bands(bands: np.ndarray, n_bands: int) -> np.ndarray:
    """More bands, of zeros."""
    more = np.zeros((len(bands), n_bands - bands.shape[1], bands.shape[2]))
    return np.concatenate([bands, more], axis=1) if more.size else bands


def _spline_sums(
    position: np.ndarray, counts: np.ndarray, targets: np.ndarray, n_bases: int, degree: int
) -> tuple[np.ndarray, np.ndarray]:
    """Bands of BᵀNB, and BᵀT, for the splines of some curves."""
    gram = np.zeros((len(position), 1 + degree, n_bases))
    rhs = np.zeros((len(position), targets.shape[1], n_bases))
    first, values = _splines_at(position, n_bases, degree)
    # The splines of a bin from the last to the first: sums are in the order of the bins.
    a, b = _pairs_of_splines(degree)
    _add_at(gram, first, (b - a) * n_bases + a, (counts * values)[a] * values[b])
    last_first = np.arange(degree, -1, -1)
    for k in range(targets.shape[1]):
        _add_at(rhs, first, k * n_bases + last_first, targets[:, k] * values[::-1])
    gram[:, 0] += BASES.ridge * gram[:, 0].mean(axis=1, keepdims=True)
    return gram, rhs


@lru_cache(maxsize=8)
def _pairs_of_splines(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs a ≤ b of the splines that overlap in a bin, the last a first."""
    a, b = np.triu_indices(degree + 1)
    return a[::-1], b[::-1]


def _add_at(out: np.ndarray, first: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """out[curve].flat[first[curve, i] + places[k]] += values[k, curve, i]."""
    begin = first + out[0].size * np.arange(len(out))[:, None]
    index = begin + places[:, None, None]
    out += np.bincount(index.ravel(), values.ravel(), out.size).reshape(out.shape)


def _penalty_bands(steps: np.ndarray, order: int) -> np.ndarray:
    """Lower bands of DᵀD, D the divided differences of values that are these steps apart."""
    diagonals = [-1 / np.sqrt(steps), 1 / np.sqrt(steps)]  # of D
    if order == 2:
        root = np.sqrt((steps[:, 1:] + steps[:, :-1]) / 2)
        left, right = 1 / (steps[:, :-1] * root), 1 / (steps[:, 1:] * root)
        diagonals = [left, -left - right, right]
    bands = np.zeros((len(steps), 1 + order, steps.shape[1] + 1))
    for a, first in enumerate(diagonals):
        for b, second in enumerate(diagonals[a:]):
            bands[:, b, a : a + first.shape[1]] += first * second
    return bands


def axis_between(rank: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Positions of bins between their ranks and their values, all in [0, 1]."""
    return (1 - BASES.value_share) * rank + BASES.value_share * value


def periodic_splines(position: np.ndarray, size: int, degree: int) -> np.ndarray:
    """B-splines on a circle of length 1."""
    on_a_line = splines(position % 1.0, size + degree, degree)
    matrix = on_a_line[:, :size].copy()
    matrix[:, :degree] += on_a_line[:, size : size + degree]
    return matrix


def number_basis(
    position: np.ndarray, counts: np.ndarray, *, n_bases: int, degree: int, order: int,
    periodic: bool = False, jumps: Sequence[int] | np.ndarray = (), keep_line: bool = False,
) -> TermBasis:  # fmt: skip
    """Splines over the bins of a number, and one coefficient for missing values.

    Parameters
    ----------
    position : ndarray of shape (n_bins,)
        Positions of the bins in [0, 1], increasing.
    counts : ndarray of shape (n_bins + 1,)
        Weights of the codes, the missing value first.
    n_bases, degree, order, periodic
        Splines, their degree, and the order of the differences that are penalised; if there are
        no more bins than splines, each bin has a coefficient instead, and divided differences are
        penalised, so that a straight line is one in the positions.
    jumps : sequence of int
        Bins whose value may lie off the curve: each has one more coefficient, if there are more
        bins than splines.
    keep_line : bool
        Whether straight lines have a smoothing parameter of their own also if first differences
        are penalised, of which they are no null space.
    """
    n_bins, sparse, nodes = len(position), None, None
    if periodic:
        size = max(n_bases, degree + 1)
        curve = periodic_splines(position, size, degree)
    elif n_bins <= n_bases:
        size, curve, nodes = n_bins, np.eye(n_bins), tuple(position.tolist())
    else:
        first, values = _local_splines(position, n_bases, degree)
        size, curve = n_bases, _in_all_columns(first, values, n_bases)
        sparse = _sparse_rows(first, values, n_bases, counts[0] > 0)
    range_space, null_space, trace = _penalty_spaces(size, order, periodic, nodes)
    if keep_line and size > 2:
        null_space = _penalty_spaces(size, 2, periodic, nodes)[1]
    squares = np.sum((curve if sparse is None else sparse[1][1:]) ** 2, axis=1)
    unit = trace / max(float(counts[1:] @ squares) / counts.sum(), 1e-300)
    jumps = list(jumps) if size < n_bins else []
    if jumps:
        curve, sparse = np.hstack([curve, np.eye(n_bins)[:, jumps]]), None
    raw = _with_missing(curve, counts[0] > 0)
    n_single = raw.shape[1] - size  # coefficients of single codes, which no difference penalises
    if n_single:
        range_space = _append_zero_rows(range_space, n_single)
        of_single_codes = np.eye(size + n_single)[:, size:]
        null_space = np.hstack([_append_zero_rows(null_space, n_single), of_single_codes])
    constant = np.ones(size + n_single)
    constant[size : size + len(jumps)] = 0.0
    return natural_basis(
        raw, counts, range_space, null_space, unit, constant=constant, sparse=sparse
    )


def _sparse_rows(
    first: np.ndarray, values: np.ndarray, size: int, missing: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Where the nonzero entries of each row of `_with_missing` begin, and their values.

    `first` and `values` are those of its curve.
    """
    degree = values.shape[1] - 1
    of_missing = np.append(np.zeros(degree), float(missing))  # its coefficient is the last one
    begin = size - degree if missing else 0
    return np.concatenate([[begin], first]), np.concatenate([of_missing[None], values])


def linear_basis(position: np.ndarray, counts: np.ndarray) -> TermBasis:
    """A straight line over the bins of a number, and one coefficient for missing values."""
    raw = _with_missing(position[:, None] - counts[1:] @ position / counts[1:].sum(), counts[0] > 0)
    null_space = np.eye(raw.shape[1])
    basis = natural_basis(raw, counts, null_space[:, :0], null_space, 1.0)
    return _zero_without_rows(basis, counts)


def _with_missing(curve: np.ndarray, missing: bool) -> np.ndarray:
    """Add a row for code 0: with a coefficient of its own if rows have it, else the mean (zero)."""
    n_bins, size = curve.shape
    matrix = np.zeros((n_bins + 1, size + missing))
    matrix[1:, :size] = curve
    matrix[0, size:] = 1.0
    return matrix


def _append_zero_rows(matrix: np.ndarray, n_rows: int) -> np.ndarray:
    """NumPy's pad for this case, which takes longer than the rest of a basis."""
    return np.concatenate([matrix, np.zeros((n_rows, matrix.shape[1]))])


def category_basis(counts: np.ndarray) -> TermBasis:
    """One coefficient for each level that rows have, with a ridge penalty."""
    raw = _indicators(counts)
    contrasts = _complement(counts[counts > 0] / counts.sum())
    # The one contrast of two levels is the line through a column of zeros and ones.
    rank = 0 if contrasts.shape[1] == 1 else contrasts.shape[1]
    range_space, null_space = contrasts[:, :rank], contrasts[:, rank:]
    basis = natural_basis(raw, counts, range_space, null_space, float(len(contrasts)))
    return _zero_without_rows(basis, counts)


def _indicators(counts: np.ndarray) -> np.ndarray:
    """One function for each code that rows have."""
    return np.ascontiguousarray(np.eye(len(counts))[:, counts > 0])


def _zero_without_rows(basis: TermBasis, counts: np.ndarray) -> TermBasis:
    """Codes that no row has get the mean, which is zero."""
    values = np.where((counts > 0)[:, None], basis.values, 0.0)
    return replace(basis, values=values)


@dataclass(frozen=True)
class MarginalBasis:
    """The marginal basis of a pair in one of its columns: centred functions, diagonal penalty.

    Attributes
    ----------
    functions : ndarray of shape (n_codes, n_functions)
    penalty : ndarray of shape (n_functions,)
    """

    functions: np.ndarray
    penalty: np.ndarray


def marginal_basis(counts: np.ndarray, category: bool) -> MarginalBasis:
    """Functions of one column of a pair, from the weights of its codes.

    First differences are penalised: their null space, the constants, is removed by centring, so
    that one smoothing parameter can shrink a pair to nothing.
    """
    if category:
        raw = _indicators(counts)
        penalty = np.eye(raw.shape[1])
    else:
        n_bins, n_splines = len(counts) - 1, BASES.marginal_splines
        position = (np.arange(n_bins) + 0.5) / max(n_bins, 1)
        curve = np.eye(n_bins) if n_bins <= n_splines else splines(position, n_splines, 3)
        raw = _with_missing(curve, counts[0] > 0)
        size, penalty = curve.shape[1], np.eye(raw.shape[1])
        penalty[:size, :size] = difference_penalty(size, 1)
    centring = _complement(counts @ raw / max(float(counts.sum()), 1e-300))
    values, rotation = np.linalg.eigh(centring.T @ penalty @ centring)
    functions = np.where((counts > 0)[:, None], raw @ (centring @ rotation), 0.0)
    return MarginalBasis(functions, values / max(values.mean() if len(values) else 0.0, 1e-300))


def linear_marginal_basis(position: np.ndarray, counts: np.ndarray) -> MarginalBasis:
    """The straight line as the one function of a column of a pair, by the positions of its bins."""
    share = counts[1:] / max(float(counts[1:].sum()), 1e-300)
    centred = position - share @ position
    spread = np.sqrt(share @ centred**2)
    line = np.concatenate([[0.0], centred / spread if spread > 0 else 0 * centred])
    return MarginalBasis(line[:, None], np.full(1, BASES.line_penalty))


def tensor_basis(
    first: MarginalBasis, second: MarginalBasis, counts: np.ndarray, most: int
) -> TermBasis:
    r"""Products of the functions of two columns; code a·n_b + b stands for the pair (a, b).

    Their penalty, :math:`S_a ⊗ I + I ⊗ S_b`, is diagonal. Of all products only the `most` smoothest
    combinations are kept: in coordinates where they are orthonormal over the rows as well, the
    others are those that the penalty would leave least of (as in thin-plate regression splines,
    Wood 2003). So fine marginal bases need no more coefficients than coarse ones. They are sought
    among about three times as many products, those with the largest variance for their penalty.
    """
    total = max(float(counts.sum()), 1e-300)
    penalty = np.add.outer(first.penalty, second.penalty)
    means, variances = _product_moments(first, second, counts)
    if not variances.sum() > 0:
        return TermBasis(np.zeros((counts.size, 0)), np.zeros(0), np.zeros(0, np.int64))
    order = np.argsort(-variances / penalty, axis=None, kind="stable")
    candidates = order[: BASES.candidates_factor * most + BASES.candidates_offset]
    a, b = np.unravel_index(candidates, variances.shape)
    scale = 1 / np.sqrt(penalty[a, b])
    cells = np.nonzero(counts)  # most pairs have many cells without rows
    products = first.functions[np.ix_(cells[0], a)] * second.functions[np.ix_(cells[1], b)]
    rows = np.sqrt(counts[cells] / total)[:, None] * ((products - means[a, b]) * scale)
    smoothest, rotation = _smoothest(rows.T @ rows, most)
    rotation *= scale[:, None]
    values = _sums_of_products(first, second, (a, b), rotation) - means[a, b] @ rotation
    unit = _product_unit(penalty, variances)
    return TermBasis(values, 1 / (unit * smoothest), np.zeros(len(smoothest), np.int64))


def _sums_of_products(
    first: MarginalBasis,
    second: MarginalBasis,
    products: tuple[np.ndarray, np.ndarray],
    weights: np.ndarray,
) -> np.ndarray:
    """Weighted sums of products of functions in all cells, summed over one column at a time.

    The products themselves, in all cells, would take several times as long.
    """
    (used_a, a), (used_b, b) = (np.unique(index, return_inverse=True) for index in products)
    grid = np.zeros((len(used_a), len(used_b), weights.shape[1]))
    grid[a, b] = weights
    over_second = np.tensordot(second.functions[:, used_b], grid, (1, 1))
    values = np.tensordot(first.functions[:, used_a], over_second, (1, 1))
    return values.reshape(-1, weights.shape[1])


def new_level_variances(
    levels: MarginalBasis, other: MarginalBasis, counts: np.ndarray
) -> np.ndarray:
    """Variances that the penalty of a pair allows the functions of `other` for one more level.

    They are for a smoothing parameter and a dispersion of one; `counts` are the weights of the
    cells, those of a level in a row.
    """
    penalty = np.add.outer(levels.penalty, other.penalty)
    _, variances = _product_moments(levels, other, counts)
    if not variances.sum() > 0:
        return np.zeros(len(other.penalty))
    return _product_unit(penalty, variances) / penalty.mean(axis=0)


def _product_moments(
    first: MarginalBasis, second: MarginalBasis, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances over the rows of the products of the functions of two columns."""
    total = max(float(counts.sum()), 1e-300)
    means = first.functions.T @ counts @ second.functions / total
    return means, (first.functions**2).T @ counts @ second.functions**2 / total - means**2


def _product_unit(penalty: np.ndarray, variances: np.ndarray) -> float:
    """The penalty of products that counts as one."""
    return float(penalty.sum() / variances.sum())
