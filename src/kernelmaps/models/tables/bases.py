r"""Bases of terms at the codes of a column, in coordinates where their penalties are diagonal.

A term is :math:`g = Bθ` at its codes. It is centred, :math:`\sum_i g(c_i) = 0` over the training
rows: by a basis change :math:`θ = Zβ` with :math:`m^\top Z = 0`, m the means of B's columns, where
B can be constant (splines, levels), else by subtracting m, with Z the identity. With
:math:`A = Z^\top B^\top \mathrm{diag}(n_c) B Z / n = LL^\top` and
:math:`L^{-1} Z^\top S Z L^{-\top} = UΛU^\top`, the basis :math:`BZL^{-\top}U` is orthonormal over
the rows, and the penalty of its weights is diagonal: Λ. Where Λ is zero (straight lines, for
second differences) a second penalty, the identity, lets the data shrink that part, too
(Marra and Wood 2011), so that every weight has exactly one strength.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import lapack
from scipy.sparse import csr_array

from ...stats import LocalBasis

_TINY = 1e-7  # of the mean of A's diagonal, added to it: codes without rows
_BARE = 0.1  # of the mean of A's diagonal: a spline with few rows
_NULL = 1e-9  # of the largest entry of Λ: not penalised


@dataclass(frozen=True)
class Basis:
    """Functions at codes, and the penalties of their weights.

    Attributes
    ----------
    values : ndarray of shape (n_codes, n_functions)
    penalty : ndarray of shape (n_functions,)
        Diagonal of the penalty.
    group : ndarray of int of shape (n_functions,)
        Which strength each weight has: 0 or 1, not decreasing.
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

    def smoothest(self, most: int) -> Basis:
        """The functions with the smallest penalties, those of a straight part among them."""
        if self.n_functions <= most:
            return self
        order = np.argsort(np.where(self.group > 0, 0.0, self.penalty), kind="stable")
        return self.only(np.sort(order[:most]))

    def only(self, kept: np.ndarray) -> Basis:
        """Some of the functions."""
        local = self.local
        if local is not None:
            local = local._replace(turn=local.turn[:, kept])
        return Basis(self.values[:, kept], self.penalty[kept], self.group[kept], local)


def natural(
    raw: np.ndarray, penalty: np.ndarray, counts: np.ndarray, *, constants: bool = True,
    sparse: tuple[np.ndarray, np.ndarray] | None = None,
) -> Basis:  # fmt: skip
    """Centre a basis and make its penalty diagonal; see the module's docstring.

    `constants` tells whether some weights make the functions constant: these are taken out.
    `sparse` says, where rows of `raw` have few entries that are not zero, one after another, where
    these begin and what they are.
    """
    total = float(counts.sum())
    means = counts @ raw / total
    centring = _complement(means) if constants else np.eye(len(means))
    centred = raw @ centring if constants else raw - means
    scale = centred.T @ (counts[:, None] * centred) / total
    size = scale.shape[0]
    if size == 0 or not np.trace(scale) > 0:
        return Basis(np.zeros((len(raw), 0)), np.zeros(0), np.zeros(0, np.int64))
    factor = np.linalg.cholesky(scale + _TINY * np.trace(scale) / size * np.eye(size))
    inner = _solved(factor, centring.T @ penalty @ centring)
    inner = _solved(factor, inner.T)
    strengths, turn = np.linalg.eigh(0.5 * (inner + inner.T))
    turn = _solved(factor, turn, transposed=True)
    smooth = strengths > _NULL * max(strengths[-1], 1e-300)
    scaled = np.where(smooth, strengths / (np.median(strengths[smooth]) if smooth.any() else 1), 1)
    order = np.argsort(~smooth, kind="stable")  # penalised part first, then its null space
    group = (~smooth[order]).astype(np.int64)
    values, local = centred @ turn[:, order], None
    if sparse is not None and constants:
        local = LocalBasis(*sparse, np.ascontiguousarray(centring @ turn[:, order]))
    return Basis(values, scaled[order], group - group.min(), local)


def _solved(lower: np.ndarray, right: np.ndarray, transposed: bool = False) -> np.ndarray:
    """L⁻¹R, or L⁻ᵀR."""
    # The transpose of L, as LAPACK reads it, is an upper triangle.
    return lapack.dtrtrs(lower.T, right, lower=0, trans=0 if transposed else 1)[0]


def _complement(vector: np.ndarray) -> np.ndarray:
    """Orthonormal columns that are orthogonal to a vector (of a Householder reflection)."""
    size, length = len(vector), float(np.linalg.norm(vector))
    if length == 0:
        return np.eye(size)
    mirror = vector / length
    mirror[0] += 1.0 if mirror[0] >= 0 else -1.0
    reflection = np.eye(size) - 2 * np.outer(mirror, mirror) / (mirror @ mirror)
    return reflection[:, 1:]


def differences(size: int, order: int, periodic: bool = False) -> np.ndarray:
    """DᵀD for differences of neighbouring weights; around the end for a period."""
    step = np.eye(size)
    for _ in range(min(order, size - 1)):
        step = np.roll(step, -1, axis=0) - step if periodic else np.diff(step, axis=0)
    return step.T @ step


def splines(position: np.ndarray, size: int, degree: int) -> np.ndarray:
    """B-splines at some positions of [0, 1], with even knots that go on beyond its ends.

    So the weights of a straight line are evenly spaced, and second differences do not see it
    (Eilers and Marx 1996); with knots repeated at the ends they would.
    """
    return _local_splines(position, size, degree).toarray()


def _local_splines(position: np.ndarray, size: int, degree: int) -> csr_array:
    """The same, of which each position has degree + 1 that are not zero, one after another."""
    knots = np.arange(-degree, size + 1) / (size - degree)
    return BSpline.design_matrix(np.clip(position, 0, 1 - 1e-12), knots, degree)


@dataclass(frozen=True)
class Bands:
    r"""A curve's normal equations, whose matrices are banded: splines overlap with few others.

    Attributes
    ----------
    gram, penalty : ndarray of shape (1 + n_bands, n_splines)
        Lower bands of :math:`B^\top \mathrm{diag}(n_c) B` and of the penalty S.
    right : ndarray of shape (n_outputs, n_splines)
        Sums of the targets, :math:`B^\top t`.
    """

    gram: np.ndarray
    penalty: np.ndarray
    right: np.ndarray

    @property
    def bare(self) -> float:
        """Share of the splines that hardly any row reaches."""
        return float(np.mean(self.gram[0] < _BARE * self.gram[0].mean()))


def spline_bands(
    position: np.ndarray, counts: np.ndarray, targets: Sequence[np.ndarray], *,
    n_bases: int, degree: int, order: int,
) -> Bands:  # fmt: skip
    """Normal equations of the curve of `number_basis`, without its missing value.

    `counts` and `targets` are sums over the bins at these positions.
    """
    from . import _loops

    bands = 1 + max(degree, order)
    gram, penalty = np.zeros((bands, n_bases)), np.zeros((bands, n_bases))
    right = np.zeros((len(targets), n_bases))
    _loops.add_bands(position, counts, np.stack(targets), gram[: degree + 1], right)
    full = differences(n_bases, order)
    for b in range(order + 1):
        penalty[b, : n_bases - b] = np.diagonal(full, -b)
    gram[0] += _TINY * gram[0].mean()
    return Bands(gram, penalty, right)


def periodic_splines(position: np.ndarray, size: int, degree: int) -> np.ndarray:
    """B-splines on a circle of length 1."""
    knots = np.arange(-degree, size + degree + 1) / size
    open_basis = BSpline.design_matrix(position % 1.0, knots, degree).toarray()
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
        size, local = n_bases, _local_splines(position, n_bases, degree)
        curve, sparse = local.toarray(), _sparse_rows(local, degree, counts[0] > 0)
    own = differences(size, order, periodic)
    if len(jumps) and curve.shape[1] < bins:
        curve, sparse = np.hstack([curve, np.eye(bins)[:, jumps]]), None
        own = np.pad(own, (0, len(jumps)))
    raw, penalty = _with_missing(curve, own, counts[0] > 0)
    return natural(raw, penalty, counts, sparse=sparse)


def _sparse_rows(local: csr_array, degree: int, missing: bool) -> tuple[np.ndarray, np.ndarray]:
    """Where the nonzero entries of each row of `_with_missing` begin, and what they are."""
    first = np.concatenate(
        [[local.shape[1] - degree if missing else 0], local.indices[:: degree + 1]]
    )
    weights = np.zeros((len(first), degree + 1))
    weights[1:] = local.data.reshape(-1, degree + 1)
    weights[0, degree] = missing  # the last weight of all
    return first.astype(np.int64), weights


def linear_basis(position: np.ndarray, counts: np.ndarray) -> Basis:
    """A straight line over the bins of a number, and one weight for missing values."""
    centred = position - position.mean() if len(position) else position
    raw, penalty = _with_missing(centred[:, None], np.zeros((1, 1)), counts[0] > 0)
    return natural(raw, penalty, counts, constants=False)


def _with_missing(
    curve: np.ndarray, penalty: np.ndarray, missing: bool
) -> tuple[np.ndarray, np.ndarray]:
    """A row for code 0; with its own weight where rows have it, else the mean (zero)."""
    bins, size = curve.shape
    if not missing:
        return np.vstack([np.zeros((1, size)), curve]), penalty
    raw = np.zeros((bins + 1, size + 1))
    raw[1:, :size], raw[0, size] = curve, 1.0
    return raw, np.pad(penalty, (0, 1))


def category_basis(counts: np.ndarray) -> Basis:
    """One weight for each level that rows have, with a ridge penalty."""
    seen = np.flatnonzero(counts > 0)
    raw = np.zeros((len(counts), len(seen)))
    raw[seen, np.arange(len(seen))] = 1.0
    found = natural(raw, np.eye(len(seen)), counts)
    return _zero_elsewhere(found, counts)


def _zero_elsewhere(basis: Basis, counts: np.ndarray) -> Basis:
    """Codes that no row has get the mean, which is zero."""
    values = np.where((counts > 0)[:, None], basis.values, 0.0)
    return Basis(values, basis.penalty, basis.group)


def margin(position: np.ndarray, counts: np.ndarray, *, n_bases: int, category: bool) -> tuple:
    """Centred functions of one side of a pair, with the penalty of their weights.

    First differences: their null space, the constants, is centred away, so that one strength can
    shrink all of a pair.
    """
    if category:
        seen = np.flatnonzero(counts > 0)
        raw = np.zeros((len(counts), len(seen)))
        raw[seen, np.arange(len(seen))] = 1.0
        penalty = np.eye(len(seen))
    else:
        bins = len(position)
        curve = np.eye(bins) if bins <= n_bases else splines(position, n_bases, min(3, n_bases - 1))
        raw, penalty = _with_missing(curve, differences(curve.shape[1], 1), counts[0] > 0)
        if counts[0] > 0:
            penalty[-1, -1] = 1.0
    centring = _complement(counts @ raw / max(float(counts.sum()), 1e-300))
    functions = np.where((counts > 0)[:, None], raw @ centring, 0.0)
    scaled = centring.T @ penalty @ centring
    return functions, scaled / max(np.trace(scaled) / max(len(scaled), 1), 1e-300)


def tensor_basis(first: tuple, second: tuple, counts: np.ndarray, most: int) -> Basis:
    """Products of the functions of two margins; code a·n_b + b stands for the pair (a, b).

    Of all products only the `most` smoothest combinations are kept: in coordinates where the
    penalty is diagonal, the others are those that it would leave least of (as in thin-plate
    regression splines, Wood 2003). So fine margins cost no more weights than coarse ones.
    """
    (left, left_penalty), (right, right_penalty) = first, second
    raw = np.einsum("ac,bd->abcd", left, right)
    raw = raw.reshape(left.shape[0] * right.shape[0], -1)
    sizes = np.eye(left.shape[1]), np.eye(right.shape[1])
    penalty = np.kron(left_penalty, sizes[1]) + np.kron(sizes[0], right_penalty)
    if raw.shape[1] == 0:
        return Basis(np.zeros((len(raw), 0)), np.zeros(0), np.zeros(0, np.int64))
    return natural(raw, penalty, counts, constants=False).smoothest(most)
