r"""The layout of every table in memory, built here and handed whole to every compiled loop.

A table is a list of *rows*, one for each bin of each set of polynomials that features share. Where
a value falls (:mod:`.locate`) is a row and a position u in its bin,

.. math:: φ_c(x) = \sum_k \mathrm{coef}[\mathrm{row}, k, c]\, u^k,

and consumers take it from there: :mod:`.emit` writes φ; models sum it, or add it to their weights;
:mod:`.encode` keeps bin and position alone. After the rows of all bins comes one of zeros, where
values with φ(x) = 0 find theirs, and for odd extensions all rows again with their sign changed: no
consumer knows of either.

What the compiler must know (the kind of bins, numbers of powers and columns) are *lengths of
tuples*: part of the type, so that only the variant at hand is compiled, and kept on disk.

The loops rest on these relations, which :func:`layout_of` makes and nothing may break: ``row[j] +
b`` is a row for every bin b of feature j; ``column[j] + first[row]`` plus the stored columns ends
within the result; arrays by feature have an entry for each of whole vectors of features.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...blocks import power_of_two
from .memory import aligned, by_vector
from .search import Uneven, search_of
from .stored import AFFINE, CODE, EDGES, LOG2, Table, clipping

_CHUNK = 16  # columns in a vector, at most
_FORMAT = {4: (23, 127), 8: (52, 1023)}  # bits of the mantissa, and bias, of floats by their bytes
_LEAST = 4  # columns in a vector that is written: fewer would be variants that gain nothing


class Bins(NamedTuple):
    """Where values fall: all that :mod:`.locate` reads. T is the precision of the rows of X."""

    kind: tuple  # length: AFFINE, LOG2, EDGES or CODE
    signed: tuple  # length 1: negative values have the rows `mirror` further on
    vanishes: tuple  # length 1: zero has the row `nothing`
    # length 1: values are clipped to low … high; 2: they come clipped, and their positions count
    # from the middles of bins, before and behind which there is another row
    clipped: tuple
    placed: tuple  # length 0: look-ups; 1: positions of T's precision; 2: of float64's (EDGES)
    # By feature, the last one repeated to fill a vector.
    row: np.ndarray  # int32: row of the first bin
    top: np.ndarray  # int32: last bin
    origin: np.ndarray  # AFFINE, float64: t = (x − origin)·factor; EDGES, T: cells of the search
    factor: np.ndarray
    last: np.ndarray  # AFFINE: last bin; EDGES: last cell
    low: np.ndarray  # range of t (AFFINE) or of x (EDGES, LOG2)
    high: np.ndarray
    search: Any  # EDGES: a Search; empty for others, since an array costs compilation time
    number: np.ndarray  # one T: arrays tell compiled code what T is
    shift: int  # LOG2: bits of a number that say where in its bin it lies
    start: int  # LOG2: the bits before those, of the first bin
    limit: int  # LOG2: last bin
    nothing: int  # row of zeros
    mirror: int  # rows from a value's to its negative's


class Block(NamedTuple):
    """Local polynomials, one row for each bin."""

    first: np.ndarray  # int32[rows]: column of the first stored entry
    coef: np.ndarray  # T, flat [row][power][column]; columns are padded with zeros
    powers: tuple  # length: degree + 1
    chunk: tuple  # length: columns in a vector, a power of two
    several: tuple  # length 1: a row has more vectors than one
    parts: int  # vectors


class Layout(NamedTuple):
    """A map as its loops take it."""

    bins: Any  # Bins; none where a finder knows them
    values: Block
    column: np.ndarray  # int64[d + 1]: first output column of each feature
    band: np.ndarray  # int32[d]: stored columns of each feature
    even: int  # columns of every feature, if all have as many and store them all; else 0


@lru_cache(maxsize=64)
def layout_of(table: Table) -> Layout:
    """The layout of a table, in the precision of its coefficients."""
    row, sets = rows_of(table)
    blocks = [table.polynomials(s) for s in sets]
    first = [table.first[b : b + n] for b, n in zip(table.first_start, table.bins, strict=True)]
    bins = bins_of(table, row)
    firsts, dtype = [first[s] for s in sets], table.coef.dtype
    values = block_of(firsts, blocks, dtype, bool(bins.mirror), _LEAST)
    widths = {*table.width.tolist(), *table.band.tolist()}
    even = widths.pop() if len(widths) == 1 else 0
    return Layout(bins, values, table.column, table.band[table.set_of], even)


def rows_of(table: Table, more: int = 0) -> tuple[np.ndarray, list[int]]:
    """First row of each set, and the sets whose coefficients are stored, in order.

    Sets that differ in their binning alone share their rows. A set has as many rows as bins, and
    so many `more`.
    """
    keys = np.stack([table.coef_start, table.first_start, table.bins, table.band], axis=1)
    _, sets, block = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    starts = np.cumsum([0, *table.bins[sets] + more])
    return starts[np.ravel(block)], sets.tolist()


def bins_of(table: Table, row: np.ndarray, dtype: Any = None) -> Bins:
    """Where values fall; `row`: first row of each set.

    In the precision of the table's coefficients, or in `dtype`.
    """
    dtype = np.dtype(table.coef.dtype if dtype is None else dtype)
    of, kind = table.set_of, table.binning
    nothing = int((row + table.bins).max())
    search: Any = ()
    shift = start = limit = 0
    floats = Uneven(*[np.zeros(0, dtype)] * 5)
    if kind == AFFINE:
        # Clipping t is clipping x: both steps are monotone, in floating point as on paper.
        with np.errstate(over="ignore"):
            ends = [(end - table.lo) * table.scale for end in (table.low, table.high)]
        floats = Uneven(table.lo, table.scale, table.bins - 1.0, *ends)
    elif kind == EDGES:
        floats, search = search_of(table, dtype)
    elif kind == LOG2:
        mantissa, bias = _FORMAT[dtype.itemsize]
        octave_bits = int(table.scale[0])
        shift, start = mantissa - octave_bits, (int(table.lo[0]) + bias) << octave_bits
        limit = int(table.bins[0]) - 1
        low, high = clipping(table)
        top = np.nextafter(dtype.type(np.inf), dtype.type(0))
        floats = floats._replace(
            low=low.astype(dtype), high=_not_above(np.minimum(high, top), dtype)
        )
    clipped = bool(np.isfinite(table.low).any() or np.isfinite(table.high).any())
    if kind == EDGES and table.degree == 0:  # a look-up goes on for ever beyond its end edges
        first, final = (table.edges[table.edge_start + at] for at in (1, table.bins - 1))
        clipped = bool((table.low > first).any() or (table.high < final).any())
    origin, factor, last, low, high = (by_vector(a[of]) if len(a) else a for a in floats)
    return Bins(
        (0,) * kind,
        (0,) * (table.signed and kind != CODE),
        (0,) * (table.zero and kind != CODE),
        (0,) * clipped,
        (0,) * (0 if table.degree == 0 else 2 if dtype == np.float32 else 1),
        by_vector(row[of].astype(np.int32)),
        by_vector(table.bins[of].astype(np.int32) - 1),
        origin,
        factor,
        last,
        low,
        high,
        search,
        np.zeros(1, dtype),
        shift,
        start,
        limit,
        nothing,
        nothing + 1 if table.signed and kind != CODE else 0,
    )


def block_of(
    first: Sequence[np.ndarray],
    coef: Sequence[np.ndarray],
    dtype: Any,
    mirrored: bool = False,
    least: int = 1,
    most: int = _CHUNK,
) -> Block:
    """Rows of coefficients, each entry (bins, powers, columns), one after the other.

    Behind them a row of zeros, and if `mirrored` all of these with their sign changed. A vector has
    at least `least` columns, and at most `most`, a power of two.
    """
    powers = max(block.shape[1] for block in coef)
    columns = max(least, max(block.shape[2] for block in coef))
    chunk = min(most, power_of_two(columns))
    parts = -(-columns // chunk)
    rows = sum(len(block) for block in coef)
    shape = ((rows + 1) * (1 + mirrored), powers, chunk * parts)
    flat = aligned(int(np.prod(shape)), dtype)
    values = flat.reshape(shape)
    starts = np.zeros(len(values), np.int32)
    at = 0
    for own, block in zip(first, coef, strict=True):
        here = slice(at, at + len(block))
        values[here, : block.shape[1], : block.shape[2]] = block
        starts[here] = own
        at += len(block)
    if mirrored:
        values[rows + 1 :] = -values[: rows + 1]
        starts[rows + 1 :] = starts[: rows + 1]
    return Block(starts, flat, (0,) * powers, (0,) * chunk, (0,) * (parts > 1), parts)


def coefficients(layout: Layout) -> np.ndarray:
    """Coefficients [row][power][column] without the columns that fill vectors."""
    values = layout.values
    rows = values.coef.reshape(len(values.first), len(values.powers), -1)
    return rows[:, :, : int(layout.band.max())]


def octaves_of(bins: Bins) -> tuple[int, int]:
    """Exponent of the first octave, and bins in each of them (LOG2)."""
    mantissa, bias = _FORMAT[bins.number.itemsize]
    octave_bits = mantissa - bins.shift
    return (bins.start >> octave_bits) - bias, 1 << octave_bits


def _not_above(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The largest numbers of `dtype` that are not above these."""
    near = values.astype(dtype)
    return np.where(near > values, np.nextafter(near, dtype.type(-np.inf)), near)
