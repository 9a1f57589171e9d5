r"""Tables of anchor maps, and their certificates.

The bins of a table lie between the points where the nearest anchors change.

**Certificates** (Wang et al. 2015, Theorem 1, for every pair of values). The theorem bounds the
*mean signed* error by O(ε²) for smooth kernels and offsets of mean zero; it says nothing of a
single pair, and its assumption fails for the intersection on the diagonal and for Jensen-Shannon
and Hellinger at 0, where the gradient is infinite. What holds for all pairs:

*Cover radius and gradient.* Both arguments move by at most ε to their anchors, so that

.. math:: |c(x, y) - ⟨φ(x), φ(y)⟩| \le ε \sup ‖∇c‖_1 + τ,

with τ = max_i c(a_i, a_i) − ‖q_i‖² for what the truncated square root leaves out (the rest is
positive semi-definite: its largest entry is on the diagonal).

*Cells.* The four named kernels grow in both arguments. On a cell [l, u] × [l', u'] they stay
between c(l, l') and c(u, u'), and a map that is constant (or linear) there stays between its
corners. The largest gap over all pairs of cells is a bound that needs no gradient, and is sharp for
look-ups. For interpolation the cells are divided until the bound is close to the error measured at
their corners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .. import kernels
from .._util.schema import number, record, saved
from .._util.threads import row_blocks
from ..certificate import Certificate, rounding_error
from ..design.anchors import Root, cover_radius
from ..engine.reference import evaluate_sets
from ..engine.table import AFFINE, EDGES, Table


def anchor_table(
    sets: list[np.ndarray],
    roots: list[Root],
    set_of: np.ndarray,
    k: int,
    linear: bool,
) -> Table:
    """Table of an anchor map.

    Parameters
    ----------
    sets, roots : lists
        Anchors of each set, sorted, and their rows.
    set_of : ndarray
        Set of each feature.
    k : int
        Neighbours whose rows are averaged.
    linear : bool
        Interpolate between the two neighbours instead.
    """
    uniform = all(_is_uniform(anchors) for anchors in sets)
    coef, origin, resolution, edges = [], [], [], []
    for anchors, root in zip(sets, roots, strict=True):
        step = (anchors[-1] - anchors[0]) / max(len(anchors) - 1, 1) or 1.0
        if linear and len(anchors) > 1:
            block = np.stack([root.rows[:-1], np.diff(root.rows, axis=0)], axis=1)
            cuts, start = anchors, anchors[0]
        else:
            n_nearest = min(k, len(anchors))
            windows = np.lib.stride_tricks.sliding_window_view(root.rows, n_nearest, axis=0)
            block = windows.mean(axis=-1)[:, None, :]
            middles = (anchors[:-n_nearest] + anchors[n_nearest:]) / 2
            if linear:  # a constant feature among others that interpolate
                block = np.concatenate([block, np.zeros_like(block)], axis=1)
            cut = middles[0] if len(middles) else anchors[0] + step
            cuts = np.concatenate([[2 * anchors[0] - cut], middles, [anchors[-1] + step]])
            start = anchors[0] + (n_nearest / 2 - 1) * step
        coef.append(block)
        origin.append(start)
        resolution.append(1 / step)
        edges.append(cuts)
    table = Table.build(
        AFFINE if uniform else EDGES,
        int(linear),
        coef,
        set_of,
        origin=np.array(origin),
        resolution=np.array(resolution),
        edges=None if uniform else edges,
        clip_low=np.array([anchors[0] for anchors in sets]) if linear else None,
        clip_high=np.array([anchors[-1] for anchors in sets]) if linear else None,
    )
    at_zero = evaluate_sets(table, np.zeros(1))
    return replace(table, zero_at_zero=not any(values.any() for values in at_zero))


def _is_uniform(anchors: np.ndarray) -> bool:
    """Whether equal steps put every anchor where it is, up to rounding."""
    uniform = np.linspace(anchors[0], anchors[-1], len(anchors))
    return bool(np.allclose(anchors, uniform, rtol=1e-15, atol=1e-14 * np.ptp(anchors)))


_POINTS = 600  # cells of one set that are compared with each other
_MAX_PAIRS = 1.0e8  # pairs of cells that are compared, over all sets

# ‖∇c(t, 1)‖₁. The gradients depend on the ratio t of the arguments alone and grow with its
# distance from 1, so that the largest over [low, high]² is at t = low / high.
_GRADIENTS: dict[kernels.HomogeneousKernel, Callable[[float], float]] = {
    kernels.chi2: lambda t: 2 * (1 + t * t) / (1 + t) ** 2,
    kernels.intersection: lambda t: 1.0,
    kernels.jensen_shannon: lambda t: float(np.log2((1 + t) / np.sqrt(t))) if t else np.inf,
    kernels.hellinger: lambda t: float((t**0.5 + t**-0.5) / 2) if t else np.inf,
}


@record
class AnchorCertificate(Certificate):
    """Certificate of an anchor map, with what it was made of (all of the feature with the bound).

    Attributes
    ----------
    cover_radius : float
        ε, the largest distance to the nearest anchor.
    gradient_bound : float
        sup ‖∇c‖₁ over the range; infinite for Jensen-Shannon and Hellinger at 0.
    truncation : float
        τ, what the square root leaves out.
    theorem_bound : float
        gradient_bound · (distance to the farthest anchor used, ε for one neighbour) + τ, and
        the rounding error.
    measured : float
        Largest error found: no bound can be lower.
    """

    cover_radius: float = saved(number(finite=False), default=0.0)
    gradient_bound: float = saved(number(finite=False), default=np.inf)
    truncation: float = saved(number(finite=False), default=0.0)
    theorem_bound: float = saved(number(finite=False), default=np.inf)
    measured: float = saved(number(finite=False), default=0.0)


def certify(
    kernels_of: list[kernels.AdditiveKernel],
    table: Table,
    anchors: list[np.ndarray],
    left_out: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> AnchorCertificate | None:
    """The worst bound of all features, or None if a kernel is not known to be monotone.

    Parameters
    ----------
    kernels_of : list of AdditiveKernel
        The kernel of each set of the table.
    table : Table
        Of the map.
    anchors, left_out, lower, upper : one for each set of the table
        Anchors, τ of their square root, and the range to certify.
    """
    if any(kernel not in _GRADIENTS for kernel in kernels_of):
        return None
    sets = _one_per_shape(kernels_of, anchors, lower, upper)
    share = _MAX_PAIRS / len(sets)
    certificates = []
    for s in sets:
        kernel, low, high = kernels_of[s], float(lower[s]), float(upper[s])
        assert isinstance(kernel, kernels.HomogeneousKernel)  # by _GRADIENTS
        cuts = np.clip(_borders(table, s), low, high)
        cuts[0], cuts[-1] = low, high  # the end bins reach as far as the range does
        bound, measured = _cell_bound(kernel, table, s, cuts, share)
        slope = _GRADIENTS[kernel](low / high if high else 1.0)
        reach = _reach(anchors[s], cuts)
        rounding = high * rounding_error(np.float64, int(table.width[s]))
        certificate = AnchorCertificate(
            bound + rounding,
            "absolute",
            f"one feature, here with {low:g} <= x, y <= {high:g}",
            f"cells of a monotone kernel; measured {measured:.3g}",
            cover_radius=cover_radius(anchors[s], low, high),
            gradient_bound=slope,
            truncation=float(left_out[s]),
            theorem_bound=slope * reach + float(left_out[s]) + rounding,
            measured=measured,
        )
        certificates.append(certificate)
    return max(certificates, key=lambda one: one.bound)


def _one_per_shape(
    kernels_of: list[kernels.AdditiveKernel],
    anchors: list[np.ndarray],
    lower: np.ndarray,
    upper: np.ndarray,
) -> list[int]:
    """Of sets that are multiples of each other, the largest: errors are homogeneous, too."""
    largest: dict[tuple[kernels.AdditiveKernel, bytes], int] = {}
    for s, points in enumerate(anchors):
        size = max(points[-1], upper[s]) or 1.0
        shape = np.round(np.concatenate([points, [lower[s], upper[s]]]) / size, 12)
        key = kernels_of[s], shape.tobytes()
        if key not in largest or upper[s] > upper[largest[key]]:
            largest[key] = s
    return list(largest.values())


def _borders(table: Table, s: int) -> np.ndarray:
    """Where the bins of set s begin and end."""
    bins = int(table.bins[s])
    if table.binning == AFFINE:
        return table.origin[s] + np.arange(bins + 1) / table.resolution[s]
    return table.edges[table.edge_start[s] : table.edge_start[s] + bins + 1]


def _reach(anchors: np.ndarray, cuts: np.ndarray) -> float:
    """Largest distance from a value to one of the anchors that it is mapped with."""
    n_nearest = len(anchors) - (len(cuts) - 1) + 1  # neighbours: bins are anchors − neighbours + 1
    first, last = anchors[: len(cuts) - 1], anchors[n_nearest - 1 :]
    return float(max(np.max(cuts[1:] - first), np.max(last - cuts[:-1]), 0.0))


def _cell_bound(
    kernel: kernels.HomogeneousKernel, table: Table, s: int, cuts: np.ndarray, work: float
) -> tuple[float, float]:
    """Bound over all pairs of (divided) bins, and the largest error at their corners."""
    bins = np.flatnonzero(np.diff(cuts) > 0)
    if len(bins) == 0:  # a constant feature
        inside = np.searchsorted(_borders(table, s), cuts[0], side="right") - 1
        bins = np.array([np.clip(inside, 0, len(cuts) - 2)])
    pieces = 1
    if table.degree > 0:
        pieces = max(1, int(min(_POINTS, np.sqrt(work)) // len(bins)))
    low, high, left, right = _cells(table, s, cuts, bins, pieces)
    bound = measured = 0.0
    for rows in row_blocks(len(low), 8 * 8 * len(low)):
        corners = [a[rows] @ b.T for a in (left, right) for b in (left, right)]
        least, most = np.minimum.reduce(corners), np.maximum.reduce(corners)
        under = kernel.component(low[rows, None], low[None, :])
        over = kernel.component(high[rows, None], high[None, :])
        bound = max(bound, float(np.max(over - least)), float(np.max(most - under)))
        errors = np.abs(corners[0] - under), np.abs(corners[3] - over)
        measured = max(measured, float(np.max(errors)))
    return bound, measured


def _cells(
    table: Table, s: int, cuts: np.ndarray, bins: np.ndarray, pieces: int
) -> tuple[np.ndarray, ...]:
    """Ends of the pieces of bins, and φ at both, taken from inside the bin."""
    at = np.linspace(0, 1, pieces + 1)
    low = cuts[bins, None] + at[:-1] * (cuts[bins + 1] - cuts[bins])[:, None]
    high = cuts[bins, None] + at[1:] * (cuts[bins + 1] - cuts[bins])[:, None]
    coef = table.polynomials(s)[bins]
    if table.degree == 0:
        phi = np.repeat(coef[:, 0], pieces, axis=0)
        return low.ravel(), high.ravel(), phi, phi
    borders = _borders(table, s)
    width = np.diff(borders)[bins, None]
    # Beyond the outermost anchors the map is constant: u is clipped.
    ends = [np.clip((x - borders[bins, None]) / width, 0, 1) for x in (low, high)]
    values = [(coef[:, None, 0] + u[..., None] * coef[:, None, 1]) for u in ends]
    left, right = (value.reshape(-1, coef.shape[2]) for value in values)
    return low.ravel(), high.ravel(), left, right
