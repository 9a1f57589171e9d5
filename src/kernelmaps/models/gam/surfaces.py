r"""Surfaces: one smooth function of two columns on one scale, the same in all directions.

It is a thin-plate spline (Duchon 1977; Wood 2003), the function of smallest
:math:`\int f_{xx}^2 + 2f_{xy}^2 + f_{yy}^2` through its values v at some knots κ,

.. math:: f(x) = \sum_k δ_k\, η(|x - κ_k|) + a_0 + a_1 x_1 + a_2 x_2, \qquad η(r) = r^2 \log r,
          \qquad \begin{pmatrix} E & T \\ T^\top & 0 \end{pmatrix}
          \begin{pmatrix} δ \\ a \end{pmatrix} = \begin{pmatrix} v \\ 0 \end{pmatrix},

with :math:`E_{kl} = η(|κ_k - κ_l|)` and the rows :math:`(1, κ_k)` of T. The penalty is
:math:`v^\top S v`, S the first block of the inverse of this matrix; planes are its null space. The
coefficients are the values at the knots: all distinct points, or as many centres of clusters of
them (k-means), which are dense where rows are.

Few training rows have a code for each distinct point, others one for each cell of the codes of both
columns that has rows, up to a number, beyond which neighbouring cells share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..rows.basis import TermBasis
from .bases import natural_bases, with_missing_code
from .codebooks import MISSING
from .functions import thin_plate_functions, thin_plate_matrix
from .terms import Pair


@dataclass(frozen=True)
class SurfaceOptions:
    """Constants of surfaces."""

    # Knots, and those of many rows. California's house prices by place (15,480 rows): R² of new
    # rows is 0.61 and 0.69 with 100 and 250, and 0.66 of a pair of both columns.
    n_knots: int = 100
    n_knots_many: int = 250
    many_rows: int = 10_000
    max_cells: int = 4096  # codes of the training rows
    n_steps: int = 5  # of k-means; with 10, R² is the same
    # Smallest distance of knots and width of all points, in units of their spread: with less,
    # rounding errors would decide on coefficients.
    min_distance: float = 1e-4
    min_width: float = 1e-6


SURFACES = SurfaceOptions()


@dataclass(frozen=True)
class Surface:
    """The codes of a surface, and its functions at the knots.

    Attributes
    ----------
    columns : tuple of two int
    codes_of : ndarray of uint16
        Codes by those of the columns, or of the training rows; 0 where a coordinate is missing.
    knots : ndarray of shape (n_knots, 2)
    values : ndarray of shape (1 + n_knots, n_functions)
        The functions of the basis where a coordinate is missing, and at the knots.
    counts : ndarray of shape (1 + n_knots,)
        Weight of the rows without a coordinate, and of those that are nearest to each knot.
    """

    columns: Pair
    codes_of: np.ndarray
    knots: np.ndarray
    values: np.ndarray
    counts: np.ndarray

    def codes(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """Codes of the training rows, from the codes of all columns."""
        row_codes, column_codes = (codes[j] for j in self.columns)
        return self.codes_of if self.codes_of.ndim == 1 else self.codes_of[row_codes, column_codes]


Points = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Where training rows are: their codes as in `Surface`, points, and the weights of codes."""


def distinct_points(values: np.ndarray, weight: np.ndarray) -> Points:
    """Those of few rows, whose coordinates (n, 2) have NaN where they are missing."""
    present, codes = ~np.isnan(values).any(axis=1), np.zeros(len(values), np.uint16)
    points, code = np.unique(values[present], axis=0, return_inverse=True)
    codes[present] = 1 + code.ravel()
    return codes, points, np.bincount(codes, weight, 1 + len(points))


def cells_with_rows(nodes: Sequence[np.ndarray], table: np.ndarray) -> Points:
    """Those of many rows: the cells of two columns, from weights and means of the bins."""
    from scipy.spatial import cKDTree

    cells = np.nonzero(table[1:, 1:])
    points = np.column_stack([means[cell] for means, cell in zip(nodes, cells, strict=True)])
    code = np.arange(len(points))
    if len(points) > SURFACES.max_cells:
        centres = cluster(points, table[1:, 1:][cells], SURFACES.max_cells)
        points, code = centres, cKDTree(centres).query(points)[1]
    codes = np.zeros(table.shape, np.uint16)
    codes[1:, 1:][cells] = 1 + code
    return codes, points, np.bincount(codes.ravel(), table.ravel(), 1 + len(points))


def build_surface(
    columns: Pair, rows: Points, n_knots: int | None, where: str
) -> tuple[Surface, TermBasis]:
    """A surface, and its basis at its codes."""
    from scipy.spatial import cKDTree

    codes_of, points, counts = rows
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) if len(points) else [0.0]
    if len(points) < 3 or spread[1] <= SURFACES.min_width * spread[0]:
        raise ValueError(
            f"{where} needs three points that lie on no line: use a curve of one of the columns."
        )
    if n_knots is None:
        many = counts.sum() >= SURFACES.many_rows
        n_knots = SURFACES.n_knots_many if many else SURFACES.n_knots
    knots = points if len(points) <= n_knots else cluster(points, counts[1:], n_knots)
    least = SURFACES.min_distance * spread[0] / np.sqrt(len(points))
    close = {second for _, second in cKDTree(knots).query_pairs(least)}
    knots = np.delete(knots, list(close), axis=0)
    nearest = cKDTree(knots).query(points)[1]
    inverse, n = np.linalg.inv(thin_plate_matrix(knots)), len(knots)
    penalty, axes = np.linalg.eigh((inverse[:n, :n] + inverse[:n, :n].T) / 2)
    n_missing = int(counts[MISSING] > 0)
    range_space, null_space = np.zeros((n + n_missing, n - 3)), np.eye(n + n_missing, 2 + n_missing)
    range_space[:n] = axes[:, 3:] / np.sqrt(penalty[3:])  # without planes
    null_space[:n, :2], null_space[n:, 2:] = knots - knots.mean(axis=0), np.eye(n_missing)
    raw = with_missing_code(thin_plate_functions(points, knots) @ inverse[:, :n], n_missing > 0)
    constant = np.ones(n + n_missing)
    natural = natural_bases(raw[None], counts, range_space, null_space, 1.0, constant)
    theta, basis = natural.theta[0][:, np.isfinite(natural.penalty[0])], natural[0]
    curved = basis.smoothing_index == 0
    unit = basis.penalty[curved].min(initial=np.inf)  # the smoothest bend has a penalty of one
    basis = replace(basis, penalty=np.where(curved, basis.penalty / unit, basis.penalty))
    values = np.vstack([basis.values[:1], theta[:n]])
    knot_counts = np.append(counts[MISSING], np.bincount(nearest, counts[1:], n))
    return Surface(columns, codes_of, knots, values, knot_counts), basis


def cluster(points: np.ndarray, weight: np.ndarray, size: int) -> np.ndarray:
    """Centres of about as many clusters of points.

    By k-means, from points at even shares of the weight in the order of their distance from the
    mean: turning all points turns the centres.
    """
    from scipy.spatial import cKDTree

    weight = np.maximum(weight, 1e-9 * weight.sum())
    order = np.argsort(np.sum((points - weight @ points / weight.sum()) ** 2, axis=1))
    reached = np.cumsum(weight[order])
    start = np.searchsorted(reached, (np.arange(size) + 0.5) / size * reached[-1])
    centres = points[order[np.unique(start)]]
    for _ in range(SURFACES.n_steps):
        nearest = np.unique(cKDTree(centres).query(points)[1], return_inverse=True)[1]
        sums = [np.bincount(nearest, weight * values) for values in points.T]
        centres = np.column_stack(sums) / np.bincount(nearest, weight)[:, None]
    return centres
