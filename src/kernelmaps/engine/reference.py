"""The readable application of specs: plain array-API mathematics, one line after the other.

It is the oracle of the compiled loops and the path of every other array library (torch, cupy, …),
on the device where the data are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import joint
from .families import CURVES, array
from .spec import Spec
from .table import AFFINE, EDGES, LOG2, Table

__all__ = ["evaluate", "evaluate_table"]

Array = Any


def evaluate(spec: Spec, X: Array, xp: Any = None) -> Array:
    """φ(X) for dense rows of any array-API namespace."""
    xp = _namespace(X) if xp is None else xp
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
    """Values (…, r) of a curve family, with sign, clipping and zero handled here for all."""
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
    return values if sign is None else sign[..., None] * values


def standardise(xp: Any, spec: Spec, X: Array) -> Array:
    """t = (x − shift)·scale."""
    if "shift" not in spec.arrays:
        return X
    return (X - array(xp, spec, "shift", X)) * array(xp, spec, "scale", X)


def evaluate_table(table: Table, X: Array, xp: Any) -> Array:
    """φ(X) from a table: bin, gather, Horner; set by set and band by band."""
    columns = []
    for d in range(table.n_features):
        s = int(table.set_of[d])
        columns.append(_feature_values(table, s, X[:, d], xp))
    return xp.concat(columns, axis=1)


def _feature_values(table: Table, s: int, x: Array, xp: Any) -> Array:
    size = xp.abs(x) if table.signed else x
    size = xp.clip(size, float(table.low[s]), float(table.high[s]))
    bins, band, width = int(table.bins[s]), int(table.band[s]), int(table.width[s])
    b, u = _bin_of(table, s, size, xp)
    count = bins * (table.degree + 1) * band
    start = int(table.coef_start[s])
    device = getattr(x, "device", None)
    coef = _constant(xp, table.coef[start : start + count], x)
    local = xp.take(xp.reshape(coef, (bins, table.degree + 1, band)), b, axis=0)
    value = local[:, table.degree, :]
    for k in range(table.degree - 1, -1, -1):
        value = value * u[:, None] + local[:, k, :]
    if band < width:
        first = table.first[int(table.first_start[s]) : int(table.first_start[s]) + bins]
        offset = xp.take(xp.asarray(np.int64(first), device=device), b, axis=0)
        place = xp.arange(width, device=device)[None, :] - offset[:, None]
        stored = (place >= 0) & (place < band)
        chosen = xp.take_along_axis(value, xp.where(stored, place, xp.zeros_like(place)), axis=1)
        value = xp.where(stored, chosen, xp.zeros_like(chosen))
    if table.zero:
        value = xp.where((x == 0)[:, None], xp.zeros_like(value), value)
    return value * xp.sign(x)[:, None] if table.signed else value


def _bin_of(table: Table, s: int, x: Array, xp: Any) -> tuple[Array, Array]:
    bins = int(table.bins[s])
    if table.binning == AFFINE:
        t = (x - float(table.lo[s])) * float(table.scale[s])
        b = xp.clip(xp.floor(t), 0, bins - 1)
        return xp.astype(b, xp.int64), t - b
    if table.binning == EDGES:
        start = int(table.edge_start[s])
        edges = _constant(xp, table.edges[start : start + bins + 1], x)
        b = xp.clip(xp.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
        left, right = xp.take(edges, b, axis=0), xp.take(edges, b + 1, axis=0)
        return b, (x - left) / (right - left)
    if table.binning == LOG2:
        positive = xp.where(x > 0, x, xp.ones_like(x))
        octave = xp.floor(xp.log2(positive))
        t = (positive / 2.0**octave - 1) * 2.0 ** float(table.scale[s])
        within = xp.clip(xp.floor(t), 0, 2.0 ** float(table.scale[s]) - 1)
        b = (octave - float(table.lo[s])) * 2.0 ** float(table.scale[s]) + within
        return xp.astype(xp.clip(b, 0, bins - 1), xp.int64), t - within
    return xp.astype(x, xp.int64), xp.zeros_like(x)


def _constant(xp: Any, values: np.ndarray, like: Array) -> Array:
    """A table's array in the namespace, precision and device of `like` (copied: torch needs it)."""
    return xp.asarray(np.array(values), dtype=like.dtype, device=getattr(like, "device", None))


_TABLE_NUMBERS = ("binning", "degree", "signed", "zero")


def table_of(spec: Spec) -> Table:
    """The table that a ``piecewise`` spec stores."""
    stored = {**spec.arrays, **{name: spec.numbers[name] for name in _TABLE_NUMBERS}}
    return Table(**{name: stored[name] for name in Table.__dataclass_fields__})


def spec_of(table: Table, **numbers: Any) -> Spec:
    """A ``piecewise`` spec that stores a table; further numbers travel with it."""
    fields = dict(zip(Table.__dataclass_fields__, table.values(), strict=True))
    own = {name: fields.pop(name) for name in _TABLE_NUMBERS}
    return Spec("piecewise", fields, {**own, **numbers})


def _namespace(X: Array) -> Any:
    from array_api_compat import array_namespace

    return array_namespace(X)
