r"""Bases of terms at the codes of a column, in coordinates where their penalties are diagonal.

A term is :math:`g = Bθ` at its codes, with a penalty :math:`θ^\top Sθ`. Its weights are written as
:math:`θ = Wb + Na`, with :math:`W^\top SW = I` and :math:`SN = 0`: straight lines, for second
differences. Functions are centred, :math:`\sum_i g(c_i) = 0` over the training rows, those of N are
made orthonormal over the rows, and those of W orthogonal to them. With
:math:`W^\top B^\top \mathrm{diag}(n_c) BW / n = UKU^\top`, the basis :math:`BWUK^{-1/2}` is
orthonormal over the rows as well, and the penalty of its weights is diagonal: :math:`K^{-1}`. The
part of N has a second penalty, the identity, that lets the data shrink it, too (Marra and Wood
2011), so that every weight has exactly one strength.

K is what rows see of functions with a penalty of one: the smoothest have its largest entries, which
are exact to rounding, even where many splines are bare of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.linalg import lapack

from ...stats.pair_tables import LocalBasis

_TINY = 1e-7  # of the mean diagonal of BᵀB, added to it: splines without rows
_BARE = 0.1  # of the mean diagonal of BᵀB: a spline with few rows
_LEAST = 1e-12  # of the largest entry of K: what rows hardly see at all is not made larger
_CANDIDATES = 3, 16  # products that a pair's basis is sought among: times its size, and more
_SIDE = 22  # splines of one side of a pair
_SMALL = 32  # rows of a matrix whose eigenvalues take no longer than a call of NumPy
_SAME = 1e-10  # of the largest: functions of N that others combine to


@dataclass(frozen=True)
class Basis:
    """Functions at codes, and the penalties of their weights.

    Attributes
    ----------
    values : ndarray of shape (n_codes, n_functions)
    penalty : ndarray of shape (n_functions,)
        Diagonal of the penalty.
    group : ndarray of int of shape (n_functions,)
        Which strength each weight has, not decreasing; the last is that of straight parts.
    local : LocalBasis, optional
        The values as a product, for combinations of splines.
    """

    values: np.ndarray
    penalty: np.ndarray
    group: np.ndarray
    local: LocalBasis | None = None

    @property
    def n_functions(self) -> int:
        return self.values.shape[1]

    @property
    def n_strengths(self) -> int:
        return int(self.group.max(initial=-1)) + 1

    def smoothest(self, most: int) -> Basis:
        """The functions with the smallest penalties, those of a straight part among them."""
        if self.n_functions <= most:
            return self
        order = np.argsort(np.where(self.group > 0, 0.0, self.penalty), kind="stable")
        return self.only(np.sort(order[:most]))

    def with_two_strengths(self, low: int) -> Basis:
        """The `low` smoothest functions of a curve with a strength of their own.

        So a curve may rise steeply in one place and be smooth elsewhere, as one strength for all
        of it cannot have it.
        """
        bent = int(np.count_nonzero(self.group == 0))
        if self.n_functions == bent or bent <= low:
            return self
        first, others = np.arange(low, bent), np.arange(bent, len(self.group))
        group = np.repeat([0, 1, 2], [bent - low, low, len(others)])
        return replace(self.only(np.concatenate([first, np.arange(low), others])), group=group)

    def only(self, kept: np.ndarray) -> Basis:
        """Some of the functions."""
        local = self.local
        if local is not None:
            local = local._replace(turn=local.turn[:, kept])
        return Basis(self.values[:, kept], self.penalty[kept], self.group[kept], local)


def spans_of(bases: Iterable[Basis]) -> list[slice]:
    """Which weights are those of each term, after that of the intercept."""
    ends = np.cumsum([1, *(basis.n_functions for basis in bases)]).tolist()
    return [slice(a, b) for a, b in pairwise(ends)]


def natural(
    raw: np.ndarray, counts: np.ndarray, curved: np.ndarray, straight: np.ndarray, unit: float, *,
    constant: np.ndarray | None = None, sparse: tuple[np.ndarray, np.ndarray] | None = None,
) -> Basis:  # fmt: skip
    """Centre a basis and make its penalty diagonal; see the module's docstring.

    Parameters
    ----------
    raw : ndarray of shape (n_codes, n_weights)
        B.
    counts : ndarray of shape (n_codes,)
        Weight of the rows with each code.
    curved, straight : ndarray of shape (n_weights, …)
        W and N.
    unit : float
        Penalty that is called one.
    constant : ndarray of shape (n_weights,), optional
        Weights of the constant function, by which functions are centred; without it their means
        are subtracted.
    sparse : tuple, optional
        Where rows of `raw` have few entries that are not zero, one after another: where these
        begin, and what they are.
    """
    total = float(counts.sum())
    means = counts @ raw / total
    if constant is not None:
        curved, straight = (own - np.outer(constant, means @ own) for own in (curved, straight))
    share = np.sqrt(counts / total)[:, None]
    rows = share * (raw if constant is not None else raw - means)
    gram = rows.T @ rows
    straight = straight @ _orthonormal(straight.T @ gram @ straight)
    curved = curved - straight @ (straight.T @ gram @ curved)
    shares, turn = _smoothest(curved.T @ gram @ curved)
    weights = np.hstack([curved @ turn, straight])
    values, local = raw @ weights, None
    if constant is None:
        values -= means @ weights
    elif sparse is not None:
        local = LocalBasis(*sparse, np.ascontiguousarray(weights))
    group = np.repeat([0, 1], [len(shares), straight.shape[1]])
    penalty = np.append(1 / (unit * shares), np.ones(straight.shape[1]))
    return Basis(values, penalty, group - group.min(initial=1), local)


def _smoothest(gram: np.ndarray, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The largest entries of K, and UK^(−1/2), of UKUᵀ: those of the smoothest functions."""
    shares, turn = eigen(gram)
    shares, turn = shares[::-1][:most], turn[:, ::-1][:, :most]
    if not shares.max(initial=0.0) > 0:
        shares, turn = shares[:0], turn[:, :0]
    shares = np.maximum(shares, _LEAST * shares.max(initial=0.0))
    return shares, turn / np.sqrt(shares)


def eigen(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors; of small matrices in half the time of NumPy's function."""
    if len(matrix) < 2:
        return matrix.diagonal().copy(), np.ones_like(matrix)
    if len(matrix) > _SMALL:
        return np.linalg.eigh(matrix)
    values, vectors, _ = lapack.dsyevd(matrix, lower=1)
    return values, vectors


def _orthonormal(gram: np.ndarray) -> np.ndarray:
    """Orthonormal combinations of functions with these products, without those that are none."""
    values, turn = eigen(gram)
    kept = values > _SAME * values.max(initial=0.0)
    return turn[:, kept] / np.sqrt(values[kept])


def _complement(vector: np.ndarray) -> np.ndarray:
    """Orthonormal columns that are orthogonal to a vector (of a Householder reflection)."""
    size, length = len(vector), float(np.linalg.norm(vector))
    if length == 0:
        return np.eye(size)
    mirror = vector / length
    mirror[0] += 1.0 if mirror[0] >= 0 else -1.0
    reflection = np.eye(size) - 2 * np.outer(mirror, mirror) / (mirror @ mirror)
    return reflection[:, 1:]


def differences(size: int, order: int) -> np.ndarray:
    """DᵀD for differences of neighbouring weights."""
    step = _steps(size, order)
    return step.T @ step


def _steps(size: int, order: int, periodic: bool = False) -> np.ndarray:
    step = np.eye(size)
    for _ in range(min(order, size - 1)):
        step = np.roll(step, -1, axis=0) - step if periodic else np.diff(step, axis=0)
    return step


@lru_cache(maxsize=64)
def _parts(size: int, order: int, periodic: bool) -> tuple[np.ndarray, np.ndarray, float]:
    """W, N without constants, and the trace of S, for differences of neighbouring weights."""
    step, order = _steps(size, order, periodic), min(order, size - 1)
    rank = size - (1 if periodic or size == 1 else order)
    _, values, turn = np.linalg.svd(step, full_matrices=False)
    line = np.linspace(-1, 1, size)[:, None]
    straight = line if order == 2 and not periodic else line[:, :0]
    return turn[:rank].T / values[:rank], straight, float(np.sum(step**2))


def splines(position: np.ndarray, size: int, degree: int) -> np.ndarray:
    """B-splines at some positions of [0, 1], with even knots that go on beyond its ends.

    So the weights of a straight line are evenly spaced, and second differences do not see it
    (Eilers and Marx 1996); with knots repeated at the ends they would.
    """
    first, values = _local_splines(position, size, degree)
    out = np.zeros((len(position), size))
    out[np.arange(len(out))[:, None], first[:, None] + np.arange(degree + 1)] = values
    return out


def _local_splines(position: np.ndarray, size: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """The first spline that is not zero at each position, and the values of it and the next."""
    from . import _loops

    first, values = np.empty(len(position), np.int64), np.empty((len(position), degree + 1))
    _loops.local_splines(position, size, first, values)
    return first, values


@dataclass(frozen=True)
class Bands:
    r"""Normal equations of a curve on some axes.

    Their matrices are banded: splines overlap with few others.

    Attributes
    ----------
    gram : ndarray of shape (n_axes, 1 + n_bands, n_splines)
        Lower bands of :math:`B^\top \mathrm{diag}(n_c) B`.
    penalty : ndarray of shape (1 + n_bands, n_splines)
        Those of the penalty S.
    right : ndarray of shape (n_axes, n_outputs, n_splines)
        Sums of the targets, :math:`B^\top t`.
    """

    gram: np.ndarray
    penalty: np.ndarray
    right: np.ndarray

    @property
    def bare(self) -> np.ndarray:
        """Share of the splines that hardly any row reaches, on each axis."""
        seen = self.gram[:, 0]
        return np.mean(seen < _BARE * seen.mean(axis=1, keepdims=True), axis=1)


def spline_bands(
    position: np.ndarray, counts: np.ndarray, targets: Sequence[np.ndarray], *,
    n_bases: int, degree: int, order: int,
) -> Bands:  # fmt: skip
    """Normal equations of the curve of `number_basis`, without its missing value.

    `counts` and `targets` are sums over the bins, whose positions on each axis are given.
    """
    from . import _loops

    bands, axes = 1 + max(degree, order), len(position)
    gram, right = np.zeros((axes, bands, n_bases)), np.zeros((axes, len(targets), n_bases))
    _loops.add_bands(position, counts, np.stack(targets), gram[:, : degree + 1], right)
    gram[:, 0] += _TINY * gram[:, 0].mean(axis=1, keepdims=True)
    return Bands(gram, _penalty_bands(n_bases, order, bands), right)


@lru_cache(maxsize=64)
def _penalty_bands(size: int, order: int, bands: int) -> np.ndarray:
    """Lower bands of the penalty of differences."""
    out, full = np.zeros((bands, size)), differences(size, order)
    for b in range(order + 1):
        out[b, : size - b] = np.diagonal(full, -b)
    return out


def periodic_splines(position: np.ndarray, size: int, degree: int) -> np.ndarray:
    """B-splines on a circle of length 1."""
    open_basis = splines(position % 1.0, size + degree, degree)
    out = open_basis[:, :size].copy()
    out[:, :degree] += open_basis[:, size : size + degree]
    return out


def number_basis(
    position: np.ndarray, counts: np.ndarray, *, n_bases: int, degree: int, order: int,
    periodic: bool = False, jumps: Sequence[int] | np.ndarray = (),
) -> Basis:  # fmt: skip
    """Splines over the bins of a number, and one weight for missing values.

    Parameters
    ----------
    position : ndarray of shape (n_bins,)
        Places of the bins on [0, 1], increasing.
    counts : ndarray of shape (n_bins + 1,)
        Weights of the codes, the missing value first.
    n_bases, degree, order, periodic
        Splines, their degree, and the order of the differences that are penalised; as many
        splines as bins, or fewer, become one weight for each bin.
    jumps : sequence of int
        Bins whose value may lie off the curve: each has one weight more, if splines are fewer than
        bins.
    """
    bins, sparse = len(position), None
    if periodic:
        size = max(n_bases, degree + 1)
        curve = periodic_splines(position, size, degree)
    elif bins <= n_bases:
        size, curve = bins, np.eye(bins)
    else:
        size, curve = n_bases, splines(position, n_bases, degree)
        sparse = _sparse_rows(position, n_bases, degree, counts[0] > 0)
    curved, straight, trace = _parts(size, order, periodic)
    unit = trace / max(float(counts[1:] @ np.sum(curve**2, axis=1)) / counts.sum(), 1e-300)
    apart = list(jumps) if size < bins else []
    if apart:
        curve, sparse = np.hstack([curve, np.eye(bins)[:, apart]]), None
    raw = _with_missing(curve, counts[0] > 0)
    more = raw.shape[1] - size  # weights of single codes, which nothing else has a part in
    curved = _longer(curved, more)
    straight = np.hstack([_longer(straight, more), np.eye(size + more)[:, size:]])
    constant = np.ones(size + more)
    constant[size : size + len(apart)] = 0.0
    return natural(raw, counts, curved, straight, unit, constant=constant, sparse=sparse)


def _sparse_rows(
    position: np.ndarray, size: int, degree: int, missing: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Where the nonzero entries of each row of `_with_missing` begin, and what they are."""
    first, weights = _local_splines(position, size, degree)
    own = np.append(np.zeros(degree), float(missing))  # the last weight of all
    begin = size - degree if missing else 0
    return np.concatenate([[begin], first]), np.concatenate([own[None], weights])


def linear_basis(position: np.ndarray, counts: np.ndarray) -> Basis:
    """A straight line over the bins of a number, and one weight for missing values."""
    raw = _with_missing(position[:, None] - counts[1:] @ position / counts[1:].sum(), counts[0] > 0)
    straight = np.eye(raw.shape[1])
    return _zero_elsewhere(natural(raw, counts, straight[:, :0], straight, 1.0), counts)


def _with_missing(curve: np.ndarray, missing: bool) -> np.ndarray:
    """A row for code 0; with its own weight where rows have it, else the mean (zero)."""
    bins, size = curve.shape
    out = np.zeros((bins + 1, size + missing))
    out[1:, :size] = curve
    out[0, size:] = 1.0
    return out


def _longer(matrix: np.ndarray, rows: int) -> np.ndarray:
    """A matrix with some rows of zeros more; NumPy's pad takes longer than all else here."""
    return np.concatenate([matrix, np.zeros((rows, matrix.shape[1]))])


def category_basis(counts: np.ndarray) -> Basis:
    """One weight for each level that rows have, with a ridge penalty."""
    raw = _one_each(counts)
    curved = _complement(counts[counts > 0] / counts.sum())
    found = natural(raw, counts, curved, curved[:, :0], float(len(curved)))
    return _zero_elsewhere(found, counts)


def _one_each(counts: np.ndarray) -> np.ndarray:
    """One function for each code that rows have."""
    return np.ascontiguousarray(np.eye(len(counts))[:, counts > 0])


def _zero_elsewhere(basis: Basis, counts: np.ndarray) -> Basis:
    """Codes that no row has get the mean, which is zero."""
    values = np.where((counts > 0)[:, None], basis.values, 0.0)
    return Basis(values, basis.penalty, basis.group)


@dataclass(frozen=True)
class Side:
    """Centred functions of one side of a pair, in coordinates where their penalty is diagonal.

    Attributes
    ----------
    functions : ndarray of shape (n_codes, n_functions)
    penalty : ndarray of shape (n_functions,)
    """

    functions: np.ndarray
    penalty: np.ndarray


def side_of(counts: np.ndarray, category: bool, n_bases: int = _SIDE) -> Side:
    """Functions of one side of a pair, from the weights of its codes.

    First differences: their null space, the constants, is centred away, so that one strength can
    shrink all of a pair.
    """
    if category:
        raw = _one_each(counts)
        penalty = np.eye(raw.shape[1])
    else:
        bins = len(counts) - 1
        place = (np.arange(bins) + 0.5) / max(bins, 1)
        curve = np.eye(bins) if bins <= n_bases else splines(place, n_bases, 3)
        raw = _with_missing(curve, counts[0] > 0)
        size, penalty = curve.shape[1], np.eye(raw.shape[1])
        penalty[:size, :size] = differences(size, 1)
    centring = _complement(counts @ raw / max(float(counts.sum()), 1e-300))
    strengths, turn = np.linalg.eigh(centring.T @ penalty @ centring)
    functions = np.where((counts > 0)[:, None], raw @ (centring @ turn), 0.0)
    return Side(functions, strengths / max(strengths.mean() if len(strengths) else 0.0, 1e-300))


def tensor_basis(first: Side, second: Side, counts: np.ndarray, most: int) -> Basis:
    r"""Products of the functions of two sides; code a·n_b + b stands for the pair (a, b).

    Their penalty, :math:`S_a ⊗ I + I ⊗ S_b`, is diagonal. Of all products only the `most` smoothest
    combinations are kept: in coordinates where they are orthonormal over the rows as well, the
    others are those that the penalty would leave least of (as in thin-plate regression splines,
    Wood 2003). So fine margins cost no more weights than coarse ones. They are sought among about
    three times as many products, those of which rows see most for their penalty.
    """
    total = max(float(counts.sum()), 1e-300)
    penalty = np.add.outer(first.penalty, second.penalty)
    means = first.functions.T @ counts @ second.functions / total
    seen = (first.functions**2).T @ counts @ second.functions**2 / total - means**2
    if not seen.sum() > 0:
        return Basis(np.zeros((counts.size, 0)), np.zeros(0), np.zeros(0, np.int64))
    wanted = np.argsort(-seen / penalty, axis=None, kind="stable")
    wanted = wanted[: _CANDIDATES[0] * most + _CANDIDATES[1]]
    a, b = np.unravel_index(wanted, seen.shape)
    root = np.sqrt(penalty[a, b])
    raw = first.functions[:, None, a] * (second.functions[:, b] / root)
    raw, share = raw.reshape(counts.size, -1) - means[a, b] / root, counts.ravel() / total
    cells = np.flatnonzero(share)  # most pairs have many that no row is in
    rows = np.sqrt(share[cells])[:, None] * raw[cells]
    shares, turn = _smoothest(rows.T @ rows, most)
    unit = float(penalty.sum() / seen.sum())
    return Basis(raw @ turn, 1 / (unit * shares), np.zeros(len(shares), np.int64))
