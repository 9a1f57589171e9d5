"""Specs as tables of local polynomials, which the compiled loops take; cached between calls."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .extent import Extent
from .families import CURVES
from .piecewise import stored_table, table_of
from .reference import at_codes, curve_values
from .spec import Spec
from .table import CODE, LOG2, Table, code_table
from .table.tabulate import tabulate

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
    sets = _curve_sets(spec)
    at_zero, at_one = (curve_values(spec, np.full((1, sets), x), np) for x in (0.0, 1.0))
    # A sine is stored as a cosine of phase −π/2, which is 6e-17 at zero.
    return bool(np.abs(at_zero).max() <= 1e-15 * max(1.0, float(np.abs(at_one).max())))


def table_for(spec: Spec, dtype: np.dtype, n_features: int, extent: Extent) -> Table | None:
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
        low, high = extent.least, max(abs(low), abs(high))
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
    sets = _curve_sets(spec)
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


def code_table_for(spec: Spec, n_codes: int, n_features: int, budget: int) -> Table | None:
    """Look-up table of φ at the codes 0 … n_codes − 1 (uint8 or uint16 input)."""
    table = table_of(spec) if spec.family == "piecewise" else None
    if table is not None and table.binning == CODE:
        return stored_table(spec, np.dtype(np.float32))
    sets = _curve_sets(spec) if table is None else len(table.origin)
    columns = n_columns(spec, n_features) / n_features
    if sets * n_codes * columns * 4 > max(_MAX_CODE_BYTES, budget):
        return None
    return _code_table(spec, n_codes, n_features)


@lru_cache(maxsize=16)
def _code_table(spec: Spec, n_codes: int, n_features: int) -> Table:
    precision = np.dtype(np.float32)
    if spec.family == "piecewise":
        return at_codes(table_of(spec), n_codes, precision)
    sets = _curve_sets(spec)
    values = curve_values(spec, np.repeat(np.arange(float(n_codes))[:, None], sets, axis=1), np)
    set_of = _set_of(sets, n_features)
    return code_table(np.moveaxis(values, 1, 0), set_of, precision, zero_at_zero(spec))


def _curve_at(spec: Spec, t: np.ndarray) -> np.ndarray:
    """The bare curve, without sign, clipping or change of variable."""
    return CURVES[spec.family].curve(np, spec, t)


def _curve_sets(spec: Spec) -> int:
    """How many features have numbers of their own; 1 if all share them."""
    return max((len(spec.arrays[name]) for name in PER_FEATURE if name in spec.arrays), default=1)


def _set_of(sets: int, n_features: int) -> np.ndarray:
    return np.zeros(n_features, np.int32) if sets == 1 else np.arange(n_features)
