"""Readable application of specs in plain array-API code: the reference for all fast paths.

It is the oracle of the compiled loops and the path of every other array library (torch, cupy, …),
on the device where the data are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import joint
from .families import CURVES, array
from .spec import Spec
from .table import AFFINE, CODE, EDGES, Table
from .table.stored import clipping

__all__ = ["evaluate", "evaluate_table", "namespace", "positions", "real_rows"]

Array = Any


def evaluate(spec: Spec, X: Array, xp: Any = None) -> Array:
    """φ(X) for dense rows of any array-API namespace."""
    xp = namespace(X) if xp is None else xp
    if spec.family == "chain":
        for part in spec.parts:
            X = evaluate(part, X, xp)
        return X
    if spec.family in joint.FAMILIES:
        return joint.FAMILIES[spec.family].formula(xp, spec, X)
    if spec.family == "piecewise":
        return evaluate_table(table_of(spec), X, xp)
    values = curve_values(spec, X, xp)
    return xp.reshape(values, (X.shape[0], -1))


def curve_values(spec: Spec, X: Array, xp: Any) -> Array:
    """Values (…, r) of a curve family, with sign, clipping, zero and NaN handled here for all."""
    family = CURVES[spec.family]
    size, sign = X, None
    if spec.numbers.get("signed", False):
        size, sign = xp.abs(X), xp.sign(X)
    inside = size
    if "lower" in spec.arrays:
        lower, upper = array(xp, spec, "lower", X), array(xp, spec, "upper", X)
        inside = xp.minimum(xp.maximum(inside, lower), upper)
    if family.argument == "log":
        positive = size > 0
        values = family.curve(xp, spec, xp.where(positive, inside, xp.ones_like(size)))
        values = xp.where(positive[..., None], values, xp.zeros_like(values))
    else:
        values = family.curve(xp, spec, standardise(xp, spec, inside))
    values = values if sign is None else sign[..., None] * values
    return xp.where((X != X)[..., None], X[..., None], values)


def standardise(xp: Any, spec: Spec, X: Array) -> Array:
    """t = (x − shift)·scale."""
    if "shift" not in spec.arrays:
        return X
    return (X - array(xp, spec, "shift", X)) * array(xp, spec, "scale", X)


def evaluate_table(table: Table, X: Array, xp: Any) -> Array:
    """φ(X) from a table: bins, then Horner's rule for all output columns at once.

    Output column c belongs to a feature f(c) and is its j(c)-th; of the bin's stored columns it is
    number j − first, if that is one of them, and zero if not. NaN has NaN in all its columns.
    """
    missing = X != X
    b, u = positions(table, xp.where(missing, xp.zeros_like(X), X), xp)
    feature = np.repeat(np.arange(table.n_features), np.diff(table.column))
    sets = table.set_of[feature]
    within = np.arange(table.n_columns) - table.column[feature]
    feature_, band = _index(xp, feature, X), _index(xp, table.band[sets], X)
    b, u = xp.take(b, feature_, axis=1), xp.take(u, feature_, axis=1)
    first = _gather(xp, _index(xp, table.first, X), _index(xp, table.first_start[sets], X) + b)
    place = _index(xp, within, X) - first
    stored = (place >= 0) & (place < band)
    place = xp.where(stored, place, xp.zeros_like(place))
    start = _index(xp, table.coef_start[sets], X) + b * ((table.degree + 1) * band) + place
    coef = _constant(xp, table.coef, X)
    value = _gather(xp, coef, start + table.degree * band)
    for k in range(table.degree - 1, -1, -1):
        value = value * u + _gather(xp, coef, start + k * band)
    x = xp.take(X, feature_, axis=1)
    if table.zero:
        stored = stored & (x != 0)
    value = xp.where(stored, value, xp.zeros_like(value))
    value = value * xp.sign(x) if table.signed else value
    return xp.where(xp.take(missing, feature_, axis=1), x, value)


def positions(table: Table, X: Array, xp: Any = None) -> tuple[Array, Array]:
    """Bin of every value, and the position within it, found in float64 whatever the type of X.

    The bin of a value depends on the number, not on the type that holds it.
    """
    xp = namespace(X) if xp is None else xp
    if table.binning == CODE:
        return xp.astype(X, xp.int64), xp.zeros_like(X)
    s, x = table.set_of, _wide(xp, X)
    lo, scale = _constant(xp, table.lo[s], x), _constant(xp, table.scale[s], x)
    last = _constant(xp, table.bins[s] - 1, x)
    low, high = clipping(table)
    x = xp.abs(x) if table.signed else x
    x = xp.minimum(xp.maximum(x, _constant(xp, low[s], x)), _constant(xp, high[s], x))
    if table.binning == EDGES:
        # + 0 makes a column contiguous, which torch's searchsorted asks for
        pairs = [_edge_bins(table, int(one), x[:, d] + 0, xp) for d, one in enumerate(s)]
        b, u = (xp.stack(part, axis=1) for part in zip(*pairs, strict=True))
        return b, xp.astype(u, X.dtype)
    if table.binning == AFFINE:
        t = (x - lo) * scale
        b = within = xp.minimum(xp.maximum(xp.floor(t), xp.zeros_like(t)), last)
    else:
        positive = xp.where(x > 0, x, xp.ones_like(x))
        octave = xp.floor(xp.log2(positive))
        t = (positive / 2.0**octave - 1) * 2.0**scale
        within = xp.minimum(xp.maximum(xp.floor(t), xp.zeros_like(t)), 2.0**scale - 1)
        b = xp.maximum((octave - lo) * 2.0**scale + within, xp.zeros_like(t))
        b = xp.minimum(b, last)
    return xp.astype(b, xp.int64), xp.astype(t - within, X.dtype)


def _wide(xp: Any, x: Array) -> Array:
    """In float64, on every device that has it."""
    lacks = getattr(getattr(x, "device", None), "type", None) == "mps"
    return x if lacks or x.dtype == xp.float64 else xp.astype(x, xp.float64)


def _edge_bins(table: Table, s: int, x: Array, xp: Any) -> tuple[Array, Array]:
    bins, start = int(table.bins[s]), int(table.edge_start[s])
    edges = _constant(xp, table.edges[start : start + bins + 1], x)
    b = xp.clip(xp.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
    left, right = xp.take(edges, b, axis=0), xp.take(edges, b + 1, axis=0)
    return b, (x - left) / (right - left)


def _gather(xp: Any, values: Array, index: Array) -> Array:
    """values[index] for a matrix of indices."""
    return xp.reshape(xp.take(values, xp.reshape(index, (-1,)), axis=0), index.shape)


def _constant(xp: Any, values: np.ndarray, like: Array) -> Array:
    """Numbers in the namespace, precision and device of `like` (copied: torch needs that)."""
    return xp.asarray(np.array(values), dtype=like.dtype, device=getattr(like, "device", None))


def _index(xp: Any, values: np.ndarray, like: Array) -> Array:
    """Integers in the namespace and on the device of `like`."""
    return xp.asarray(np.array(values, dtype=np.int64), device=getattr(like, "device", None))


_TABLE_NUMBERS = ("binning", "degree", "signed", "zero")


def table_of(spec: Spec) -> Table:
    """The table that a ``piecewise`` spec stores."""
    stored = {**spec.arrays, **{name: spec.numbers[name] for name in _TABLE_NUMBERS}}
    return Table(**{name: stored[name] for name in Table.__dataclass_fields__})


def spec_of(table: Table) -> Spec:
    """A ``piecewise`` spec that stores a table."""
    fields = dict(zip(Table.__dataclass_fields__, table.values(), strict=True))
    own = {name: fields.pop(name) for name in _TABLE_NUMBERS}
    return Spec("piecewise", fields, own)


def real_rows(X: Array, xp: Any) -> Array:
    """Rows as floats: uint8 and uint16 become float32, other integers float64."""
    if xp.isdtype(X.dtype, "real floating"):
        return X
    small = X.dtype in (xp.uint8, getattr(xp, "uint16", xp.uint8))
    return xp.astype(X, xp.float32 if small else xp.float64)


def namespace(X: Array) -> Any:
    """The array-API namespace of an array."""
    from array_api_compat import array_namespace

    return array_namespace(X)
