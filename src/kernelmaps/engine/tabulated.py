"""Specs as tables of local polynomials, which the compiled loops take; cached between calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from .extent import Extent
from .families import CURVES
from .piecewise import stored_table, table_of
from .reference import curve_values, tabulate_codes
from .spec import Spec
from .table import AFFINE, CODE, LOG2, Table, code_table

Curve = Callable[[np.ndarray], np.ndarray]  # t (m,) -> values (m, r)

_DEGREE = {np.dtype(np.float32): 3, np.dtype(np.float64): 5}
# Largest error of a table, relative to ‖φ‖: about the rounding error of the type.
_TOLERANCE = {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 2e-14}
_MAX_BITS = 10  # that divide an octave into bins
_MAX_BYTES = 8 * 2**20  # of a table: a larger one leaves the caches and is slower than the formula
_FIRST_STRIDE = 31  # one bin in 31 is tested first; odd, so that places in an octave differ
# Ranges on which the resolution of a curve is chosen, by the argument of the curve.
_CANONICAL = {"log": (2.0**-24, 2.0**24), "linear": (-4.0, 4.0)}
PER_FEATURE = ("shift", "scale", "lower", "upper")
"""Arrays of curves with one number for each feature, or for all."""
_BARE = {"shift": 0.0, "scale": 1.0}  # of curves without a change of variable
_MAX_CODE_BYTES = 4 * 2**20  # of a look-up table of codes, unless the caller allows more
_MAX_UNITS = 1e9  # of a linear curve: a table of them is larger than any is worth


def n_columns(spec: Spec, n_features: int) -> int:
    """Output columns of an additive spec."""
    if spec.family == "piecewise":
        return table_of(spec).n_columns
    return n_features * _curve_at(spec, np.ones(1)).shape[-1]


def zero_at_zero(spec: Spec) -> bool:
    """Whether φ(0) = 0 for every feature (up to the rounding of a cosine; tables make it exact)."""
    if spec.family == "piecewise":
        return bool(spec.numbers["zero_at_zero"])
    if CURVES[spec.family].argument == "log":
        return True
    sets = count_curve_sets(spec)
    at_zero, at_one = (curve_values(spec, np.full((1, sets), x), np) for x in (0.0, 1.0))
    # A sine is stored as a cosine of phase −π/2, which is 6e-17 at zero.
    return bool(np.abs(at_zero).max() <= 1e-15 * max(1.0, float(np.abs(at_one).max())))


def make_table(spec: Spec, dtype: np.dtype, n_features: int, extent: Extent) -> Table | None:
    """The table of an additive spec for data within `extent`; None if the formula is cheaper."""
    if spec.family == "piecewise":
        return stored_table(spec, np.dtype(dtype))
    coverage = _coverage(spec, extent, np.dtype(dtype))
    return None if coverage is None else _curve_table(spec, np.dtype(dtype), n_features, *coverage)


def has_table(spec: Spec) -> bool:
    """Whether a table of some precision follows the curves of an additive spec near 1."""
    if spec.family == "piecewise":
        return True
    return any(_resolution(spec, np.dtype(kind)) for kind in (np.float64, np.float32))


def _coverage(spec: Spec, extent: Extent, dtype: np.dtype) -> tuple[float, float] | None:
    """Whole octaves (log) or units (linear) that the batch reaches, after clipping.

    None beyond the octaves that bins have: numbers below the normal ones, or in the last octave,
    or units that are too many to count.
    """
    log = CURVES[spec.family].argument == "log"
    low, high = extent.minimum, extent.maximum
    if log:
        low, high = extent.tiny, max(abs(low), abs(high))
    ends = np.array([[low], [high]])
    if "lower" in spec.arrays:  # each feature's own: they may be of very different size
        ends = np.clip(ends, spec.arrays["lower"], spec.arrays["upper"])
        low, high = float(ends.min()), float(ends.max())
    if log:
        if not np.isfinite(low):  # all zero
            low = high = 1.0
        if low < float(np.finfo(dtype).tiny) or high > float(np.finfo(dtype).max) / 2:
            return None
        return 2.0 ** np.floor(np.log2(low)), 2.0 ** np.ceil(np.log2(max(high, low)) + 1e-12)
    if "shift" in spec.arrays:
        ends = (ends - spec.arrays["shift"]) * spec.arrays["scale"]
        low, high = float(ends.min()), float(ends.max())
    low, high = float(np.floor(low)), float(np.ceil(high))
    return (low, high) if high - low < _MAX_UNITS else None


@lru_cache(maxsize=64)
def _resolution(spec: Spec, dtype: np.dtype) -> float | None:
    """How finely a curve must be divided: decided once per spec, whatever the data."""
    argument = CURVES[spec.family].argument
    low, high = _CANONICAL[argument]
    if argument == "log":  # a curve of scale · x turns where that is near 1
        octave = 2.0 ** -np.round(np.log2(float(spec.numbers.get("scale", 1.0))))
        low, high = low * octave, high * octave
    tabulated = tabulate(lambda t: _curve_at(spec, t), argument, low, high, dtype)
    return None if tabulated is None else tabulated[3]


@lru_cache(maxsize=64)
def _curve_table(
    spec: Spec, dtype: np.dtype, n_features: int, low: float, high: float
) -> Table | None:
    resolution = _resolution(spec, dtype)
    if resolution is None:
        return None
    argument = CURVES[spec.family].argument
    tabulated = tabulate(lambda t: _curve_at(spec, t), argument, low, high, dtype, resolution)
    if tabulated is None:
        return None
    binning, degree, origin, _, coef = tabulated
    sets = count_curve_sets(spec)
    shift, scale = (spec.arrays.get(name, np.full(1, bare)) for name, bare in _BARE.items())
    if binning == LOG2:
        origins, resolutions = np.array([origin]), np.array([float(resolution)])
    else:  # bins of t = (x − shift)·scale, expressed in x
        origins, resolutions = shift + origin / scale, scale * resolution
    return Table.build(
        binning,
        degree,
        [coef],
        _set_of(sets, n_features),
        origin=np.broadcast_to(origins, sets),
        resolution=np.broadcast_to(resolutions, sets),
        dtype=dtype,
        clip_low=spec.arrays.get("lower"),
        clip_high=spec.arrays.get("upper"),
        shared=np.zeros(sets, np.int32),
        signed=bool(spec.numbers.get("signed", False)),
        zero_at_zero=zero_at_zero(spec),
    )


def make_code_table(spec: Spec, n_codes: int, n_features: int, budget: int) -> Table | None:
    """Look-up table of φ at the codes 0 … n_codes − 1 (uint8 or uint16 input)."""
    table = table_of(spec) if spec.family == "piecewise" else None
    if table is not None and table.binning == CODE:
        return stored_table(spec, np.dtype(np.float32))
    sets = count_curve_sets(spec) if table is None else len(table.origin)
    columns = n_columns(spec, n_features) / n_features
    if sets * n_codes * columns * 4 > max(_MAX_CODE_BYTES, budget):
        return None
    return _code_table(spec, n_codes, n_features)


@lru_cache(maxsize=16)
def _code_table(spec: Spec, n_codes: int, n_features: int) -> Table:
    precision = np.dtype(np.float32)
    if spec.family == "piecewise":
        return tabulate_codes(table_of(spec), n_codes, precision)
    sets = count_curve_sets(spec)
    values = curve_values(spec, np.repeat(np.arange(float(n_codes))[:, None], sets, axis=1), np)
    set_of = _set_of(sets, n_features)
    return code_table(np.moveaxis(values, 1, 0), set_of, precision, zero_at_zero(spec))


def _curve_at(spec: Spec, t: np.ndarray) -> np.ndarray:
    """The bare curve, without sign, clipping or change of variable."""
    return CURVES[spec.family].curve(np, spec, t)


def count_curve_sets(spec: Spec) -> int:
    """The number of features with curves of their own; 1 if all share one."""
    return max((len(spec.arrays[name]) for name in PER_FEATURE if name in spec.arrays), default=1)


def _set_of(sets: int, n_features: int) -> np.ndarray:
    return np.zeros(n_features, np.int32) if sets == 1 else np.arange(n_features)


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
