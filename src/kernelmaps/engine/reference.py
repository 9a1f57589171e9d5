"""Readable application of specs in plain array-API code: the reference for all fast paths.

It is the oracle of the compiled loops and the path of every other array library (torch, cupy, …),
on the device where the data are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._util.devices import namespace_of
from .families import CURVES, FAMILIES, array
from .piecewise import stored_table
from .spec import Spec
from .table import AFFINE, CODE, EDGES, LOG2, Table, code_table
from .table.layout import (
    EDGE,
    FACTOR,
    FIRST_PIECE,
    HIGH,
    LOW,
    ORIGIN,
    TOP,
    Bins,
    coefficients,
    layout_of,
    octaves_of,
)

Array = Any

_SET_VALUES = 2**21  # that are computed at a time, of many sets


def evaluate(spec: Spec, X: Array, *, xp: Any = None) -> Array:
    """Compute φ(X) by the readable formulas, for dense rows of any array library.

    Parameters
    ----------
    spec : Spec
        The map.
    X : array of shape (n_samples, n_features)
        Rows, of any library that follows the array API standard.
    xp : namespace, optional
        That of X; found by itself if left out.

    Returns
    -------
    array of shape (n_samples, n_columns)
        φ(X), of the same library and on the same device.
    """
    xp = namespace_of(X) if xp is None else xp
    if spec.family == "chain":
        for stage in spec.parts:
            X = evaluate(stage, X, xp=xp)
        return X
    if spec.family in FAMILIES:
        return FAMILIES[spec.family].formula(xp, spec, X)
    if spec.family == "piecewise":
        return evaluate_table(stored_table(spec, np.dtype(np.float64)), X, xp)
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
        if "shift" in spec.arrays:
            inside = (inside - array(xp, spec, "shift", X)) * array(xp, spec, "scale", X)
        values = family.curve(xp, spec, inside)
    values = values if sign is None else sign[..., None] * values
    return xp.where((X != X)[..., None], X[..., None], values)


def evaluate_table(table: Table, X: Array, xp: Any, missing: np.ndarray | None = None) -> Array:
    """φ(X) from a table: pieces of its layout, then Horner's rule for all output columns at once.

    Output column c belongs to a feature f(c) and is its j(c)-th; of the columns that a piece stores
    it is number j − first, if that is one of them, and zero if not. NaN has NaN in all its columns,
    or their numbers in `missing`.
    """
    layout = layout_of(table.astype(np.float64))
    gaps = X != X
    piece, u = positions(layout.bins, xp.where(gaps, xp.zeros_like(X), X), xp)
    feature = np.repeat(np.arange(table.n_features), np.diff(layout.column))
    within = np.arange(table.n_columns) - layout.column[feature]
    feature_, n_stored = _index(xp, feature, X), _index(xp, layout.n_stored[feature], X)
    piece, u = xp.take(piece, feature_, axis=1), xp.take(u, feature_, axis=1)
    place = _index(xp, within, X) - _gather(xp, _index(xp, layout.values.first_column, X), piece)
    stored = (place >= 0) & (place < n_stored)
    _, powers, columns = coefficients(layout).shape
    coef = _constant(xp, coefficients(layout).ravel(), X)
    start = piece * (powers * columns) + xp.where(stored, place, xp.zeros_like(place))
    value = _gather(xp, coef, start + (powers - 1) * columns)
    for k in range(powers - 2, -1, -1):
        value = value * u + _gather(xp, coef, start + k * columns)
    value = xp.where(stored, value, xp.zeros_like(value))
    instead = xp.take(X, feature_, axis=1) if missing is None else _constant(xp, missing, X)
    return xp.where(xp.take(gaps, feature_, axis=1), instead, value)


def evaluate_sets(table: Table, x: np.ndarray) -> Iterator[np.ndarray]:
    """Values (numbers, columns) at some numbers, of one set of a table after the other."""
    step = max(1, _SET_VALUES // (len(x) * int(table.width.max())))
    for begin in range(0, len(table.origin), step):
        sets = table.take_sets(slice(begin, begin + step))
        values = evaluate_table(sets, np.repeat(x[:, None], sets.n_features, axis=1), np)
        yield from np.split(values, sets.column[1:-1], axis=1)


def tabulate_codes(table: Table, n_codes: int, dtype: np.dtype) -> Table:
    """Look-up table of the values at the codes 0 … n_codes − 1."""
    values = list(evaluate_sets(table, np.arange(float(n_codes))))
    return code_table(values, table.set_of, dtype, table.zero_at_zero)


def positions(bins: Bins, X: Array, xp: Any = None) -> tuple[Array, Array]:
    """Piece of every value and the position in its bin, in float64 whatever the type of X.

    The bin of a value depends on the number, not on the type that holds it. This is the readable
    form of :func:`.table.locate.locate_dense`.
    """
    xp = namespace_of(X) if xp is None else xp
    x = _wide(xp, X)
    x = xp.abs(x) if bins.signed else x
    ends = bins.numbers[[LOW, HIGH]]
    if bins.binning != CODE and np.isfinite(ends).any():
        low, high = (_constant(xp, end, x) for end in ends)
        x = xp.minimum(xp.maximum(x, low), high)
    b, u = _FINDERS[bins.binning](bins, x, xp)
    piece = xp.astype(b, xp.int64) + _index(xp, bins.integers[FIRST_PIECE], X)
    if bins.signed:
        piece = xp.where(X < 0, piece + bins.mirror, piece)
    if bins.zero_at_zero:
        piece = xp.where(X == 0, _index(xp, np.array([[bins.zero_piece]]), X), piece)
    return piece, xp.astype(u, X.dtype)


def _uniform_bins(bins: Bins, x: Array, xp: Any) -> tuple[Array, Array]:
    """Bin ⌊t⌋ of t = (x − origin)·factor."""
    origin, factor = (_constant(xp, bins.numbers[row], x) for row in (ORIGIN, FACTOR))
    t = (x - origin) * factor
    top = _constant(xp, bins.integers[TOP], x)
    b = xp.minimum(xp.maximum(xp.floor(t), xp.zeros_like(t)), top)
    return b, t - b


def _octave_bins(bins: Bins, x: Array, xp: Any) -> tuple[Array, Array]:
    """Bins of equal width in every octave."""
    first_octave, count = octaves_of(bins)
    positive = xp.where(x > 0, x, xp.ones_like(x))
    octave = xp.floor(xp.log2(positive))
    t = (positive / 2.0**octave - 1) * float(count)
    within = xp.clip(xp.floor(t), 0.0, count - 1.0)
    top = float(bins.integers[TOP, 0])
    return xp.clip((octave - first_octave) * float(count) + within, 0.0, top), t - within


def _edge_bins(bins: Bins, x: Array, xp: Any) -> tuple[Array, Array]:
    """Bins between edges, one feature after the other: how many of the inner ones are passed."""
    starts, counts = bins.integers[EDGE], []
    for j, (start, top) in enumerate(zip(starts, bins.integers[TOP], strict=True)):
        inner = _constant(xp, bins.edges[start + 1 : start + 1 + top], x)
        column = x[:, j] + 0  # contiguous, as torch's searchsorted requires
        counts.append(xp.searchsorted(inner, column, side="right"))
    b = xp.stack(counts, axis=1)
    if not bins.position:
        return b, x
    edges, place = _constant(xp, bins.edges, x), b + _index(xp, starts, x)
    left = _gather(xp, edges, place)
    return b, (x - left) / (_gather(xp, edges, place + 1) - left)


def _code_bins(bins: Bins, x: Array, xp: Any) -> tuple[Array, Array]:
    """The value is the bin."""
    return xp.minimum(x, _constant(xp, bins.integers[TOP], x)), xp.zeros_like(x)


_FINDERS = {AFFINE: _uniform_bins, LOG2: _octave_bins, EDGES: _edge_bins, CODE: _code_bins}


def _wide(xp: Any, x: Array) -> Array:
    """In float64, on every device that has it."""
    lacks = getattr(getattr(x, "device", None), "type", None) == "mps"
    return x if lacks or x.dtype == xp.float64 else xp.astype(x, xp.float64)


def _gather(xp: Any, values: Array, index: Array) -> Array:
    """values[index] for a matrix of indices."""
    return xp.reshape(xp.take(values, xp.reshape(index, (-1,)), axis=0), index.shape)


def _constant(xp: Any, values: np.ndarray, like: Array) -> Array:
    """Numbers in the namespace, precision and device of `like` (copied: torch needs that)."""
    return xp.asarray(np.array(values), dtype=like.dtype, device=getattr(like, "device", None))


def _index(xp: Any, values: np.ndarray, like: Array) -> Array:
    """Integers in the namespace and on the device of `like`."""
    return xp.asarray(np.array(values, dtype=np.int64), device=getattr(like, "device", None))


def real_rows(X: Array, xp: Any) -> Array:
    """Rows as floats: uint8 and uint16 become float32, other integers float64."""
    if xp.isdtype(X.dtype, "real floating"):
        return X
    small = X.dtype in (xp.uint8, getattr(xp, "uint16", xp.uint8))
    return xp.astype(X, xp.float32 if small else xp.float64)
