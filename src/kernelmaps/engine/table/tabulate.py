"""Curves as tables of local polynomials, to the rounding error of a precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .stored import AFFINE, LOG2

Curve = Callable[[np.ndarray], np.ndarray]  # t (m,) -> values (m, r)

_DEGREE = {np.dtype(np.float32): 3, np.dtype(np.float64): 5}
# Largest error of a table, relative to ‖φ‖: about the rounding error of the type.
_TOLERANCE = {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 2e-14}
_MAX_BITS = 10  # that divide an octave into bins
_MAX_BYTES = 8 * 2**20  # of a table: a larger one leaves the caches and is slower than the formula
_FIRST_STRIDE = 31  # one bin in 31 is tested first; odd, so that places in an octave differ


def tabulate(
    curve: Curve,
    argument: str,
    low: float,
    high: float,
    dtype: np.dtype,
    resolution: float | None = None,
) -> tuple[int, int, float, float, np.ndarray] | None:
    """Tabulate a curve to the rounding error of `dtype`.

    Bins halve until the local polynomials, interpolating at Chebyshev points, miss the curve by
    less than the tolerance at points between. The bins' places do not depend on `low` and `high`,
    only their number does, so that a value's result never depends on the other values of a batch.

    Returns
    -------
    binning, degree, lo, resolution, coef : or None if the table would be larger than it is worth
        `resolution` is the number of bits in an octave (LOG2) or of bins in a unit (AFFINE).
    """
    degree = _DEGREE[np.dtype(dtype)]
    binning = LOG2 if argument == "log" else AFFINE
    candidates = [2**k for k in range(13)] if binning == AFFINE else list(range(3, _MAX_BITS + 1))
    columns = curve(np.array([max(low, 0.5 * (low + high))])).shape[-1]
    for candidate in candidates if resolution is None else [resolution]:
        if binning == AFFINE and (high - low) * candidate > _MAX_BYTES:
            return None  # before the edges alone take more
        edges, lo = _bin_edges(binning, low, high, candidate)
        if (len(edges) - 1) * (degree + 1) * columns * np.dtype(dtype).itemsize > _MAX_BYTES:
            return None
        allowed = np.inf if resolution is not None else _TOLERANCE[np.dtype(dtype)]
        if (
            resolution is None
            and local_polynomials(curve, edges, degree, _FIRST_STRIDE)[1] > allowed
        ):
            continue  # bins that are too wide show it nearly everywhere
        coef, miss = local_polynomials(curve, edges, degree)
        if miss <= allowed:
            return binning, degree, lo, candidate, coef
    return None


def _bin_edges(
    binning: int, low: float, high: float, resolution: float
) -> tuple[np.ndarray, float]:
    """Edges of the bins that cover [low, high], and the binning's `lo`."""
    if binning == AFFINE:
        start = np.floor(low)
        stop = max(np.ceil(high), start + 1)
        return start + np.arange(int((stop - start) * resolution) + 1) / resolution, start
    start, stop = np.frexp(low)[1] - 1, np.frexp(high)[1]
    octaves = np.ldexp(1.0, np.arange(start, stop))
    within = 1 + np.arange(2**resolution) / 2**resolution
    edges = np.append((octaves[:, None] * within).ravel(), np.ldexp(1.0, int(stop)))
    return edges, float(start)


def local_polynomials(
    curve: Curve, edges: np.ndarray, degree: int, stride: int = 1
) -> tuple[np.ndarray, float]:
    """Interpolating polynomials on every bin, or every k-th, and their largest miss over ‖φ‖."""
    nodes = 0.5 - 0.5 * np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    between = np.append(0.0, 0.5 * (nodes[1:] + nodes[:-1]))
    start, width = edges[:-1:stride, None], np.diff(edges)[::stride, None]
    values = curve((start + width * nodes).ravel())
    values = values.reshape(len(width), degree + 1, -1)
    # Coefficients of the deviation from the first node are small: the monomials' poor
    # conditioning then acts on small numbers only.
    base = values[:, :1]
    coef = np.einsum("kj,bjc->bkc", np.linalg.inv(np.vander(nodes, increasing=True)), values - base)
    coef[:, :1] += base
    tested = curve((start + width * between).ravel())
    tested = tested.reshape(len(width), degree + 1, -1)
    powers = np.vander(between, degree + 1, increasing=True)
    error = np.abs(np.einsum("jk,bkc->bjc", powers, coef) - tested).max(axis=(1, 2))
    size = np.sqrt((tested**2).sum(axis=2)).max(axis=1)
    return coef, float(np.max(error / np.maximum(size, np.finfo(float).tiny)))
