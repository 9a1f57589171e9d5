r"""The layout of every table in memory, built here and passed as it is to the compiled loops.

A table is a piecewise polynomial: a list of *pieces*, one for each bin of each set of polynomials
that features share. Where a value falls (:mod:`.locate`) is a piece and a position u in its bin,

.. math:: φ_c(x) = \sum_k \mathrm{coef}[\mathrm{piece}, k, c]\, u^k,

and consumers take it from there: :mod:`.transform` writes φ; :mod:`.dot` sums it; models add it to
their weights. After the pieces of all bins comes a piece of zeros, that of values with φ(x) = 0;
for odd extensions all pieces follow again with their sign changed. No consumer knows of either.

Bins do not depend on the precision of rows: numbers are compared in float64, which holds all of
them exactly.

**Bins between edges** are found without a search. *Cells* much finer than the bins cover the edges,
octaves of x − e_0, each divided evenly: the leading bits of a positive float are a piecewise-linear
logarithm. The cell c(x) grows with x, so that edges in earlier cells were passed, and those in
later ones were not; only the edges of the value's own cell, mostly none, are left to compare:

.. math:: \#\{k : c(e_k) < c(x)\} ≤ b(x) ≤ \#\{k : c(e_k) ≤ c(x)\}.

The loops rely on these relations, which :func:`layout_of` establishes: the first piece of feature j
plus b is a piece for every bin b; ``column[j] + first[piece]`` plus the stored columns ends within
the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..._util.compiling import static
from ..._util.threads import power_of_two
from .stored import AFFINE, CODE, EDGES, LOG2, Table, allocate_aligned, clipping, starts_of

_MAX_CHUNK = 16  # columns in a vector
_MIN_WRITTEN = 4  # columns in a vector that is written: fewer would be variants that gain nothing
_MANTISSA, _BIAS = 52, 1023  # bits of the mantissa, and bias, of float64
_MAX_OCTAVE_BITS = 12  # bits that divide an octave into cells, fewer than this
_CELLS_PER_EDGE = 64  # at most: more would not fit into a cache

# Rows of the arrays of `Bins`, whose columns are features.
LOW, HIGH, ORIGIN, FACTOR = range(4)
FIRST_PIECE, TOP, EDGE, CELL, LAST_CELL, KEY = range(6)


class Bins(NamedTuple):
    """Where values fall: all that :mod:`.locate` reads."""

    kind: tuple  # static: AFFINE, LOG2, EDGES or CODE
    signed: bool  # negative values have the pieces `mirror` further on
    zero_at_zero: bool  # zero has the piece `zero_piece`
    position: bool  # whether positions in bins matter: not for look-ups
    # float64[4, features]: values are clipped to LOW … HIGH; AFFINE: bin ⌊(x − ORIGIN)·FACTOR⌋;
    # EDGES: cells count from ORIGIN on.
    numbers: np.ndarray
    # int64[6, features]: FIRST_PIECE of the first bin, the last bin TOP; EDGES: the first EDGE, the
    # first and the last CELL, and the leading bits KEY of the first.
    integers: np.ndarray
    edges: np.ndarray  # float64: e_0, e_1, … of each set
    before: np.ndarray  # int32: how many of the edges e_1 … lie before each cell
    shift: int  # LOG2, EDGES: bits of a float64 behind those that say which bin or cell it is in
    start: int  # LOG2: the leading bits of the first bin
    halvings: int  # EDGES: how often the edges of a cell are halved, at most
    zero_piece: int  # piece of zeros
    mirror: int  # pieces from a value's to its negative's

    @property
    def binning(self) -> int:
        """The kind as a number."""
        return len(self.kind)


class LocalPolynomials(NamedTuple):
    """Coefficients of local polynomials, one piece for each bin."""

    first_column: np.ndarray  # int32[pieces]: column of the first stored entry
    coef: np.ndarray  # T, flat [piece][power][column]; columns are padded with zeros
    powers: tuple  # static: degree + 1
    chunk: tuple  # static: columns in a vector, a power of two
    parts: tuple  # static: vectors in a piece

    @property
    def n_columns(self) -> int:
        """Columns of a piece, those that fill vectors included."""
        return len(self.chunk) * len(self.parts)


class Layout(NamedTuple):
    """A map in memory."""

    bins: Bins
    values: LocalPolynomials
    column: np.ndarray  # int64[d + 1]: first output column of each feature
    n_stored: np.ndarray  # int32[d]: stored columns of each feature
    uniform_width: int  # columns of every feature, if all have as many and store them all; else 0


@lru_cache(maxsize=64)
def layout_of(table: Table) -> Layout:
    """The layout of a table, in the precision of its coefficients."""
    first_piece, sets = pieces_of(table)
    blocks = [table.polynomials(s) for s in sets]
    columns = [table.first[b : b + n] for b, n in zip(table.first_start, table.bins, strict=True)]
    bins = bins_of(table, first_piece)
    first_columns, dtype = [columns[s] for s in sets], table.coef.dtype
    values = polynomials_of(first_columns, blocks, dtype, bool(bins.mirror), _MIN_WRITTEN)
    widths = {*table.width.tolist(), *table.band.tolist()}
    uniform_width = widths.pop() if len(widths) == 1 else 0
    return Layout(bins, values, table.column.copy(), table.band[table.set_of], uniform_width)


def pieces_of(table: Table) -> tuple[np.ndarray, list[int]]:
    """First piece of each set, and the sets whose coefficients are stored, in order.

    Sets that differ in their binning alone share their pieces.
    """
    keys = np.stack([table.coef_start, table.first_start, table.bins, table.band], axis=1)
    _, sets, block = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return np.cumsum([0, *table.bins[sets]])[np.ravel(block)], sets.tolist()


def bins_of(table: Table, first_piece: np.ndarray) -> Bins:
    """Where values fall; `first_piece`: that of each set."""
    n_sets, kind = len(table.origin), table.binning
    zero_piece = int((first_piece + table.bins).max())
    signed = bool(table.signed and kind != CODE)
    numbers, integers = np.zeros((4, n_sets)), np.zeros((6, n_sets), np.int64)
    numbers[LOW], numbers[HIGH] = (-np.inf, np.inf) if kind == CODE else clipping(table)
    integers[FIRST_PIECE], integers[TOP] = first_piece, table.bins - 1
    edges, before = np.zeros(1), np.zeros(1, np.int32)
    shift = start = 0
    if kind == AFFINE:
        numbers[ORIGIN], numbers[FACTOR] = table.origin, table.resolution
    elif kind == LOG2:
        octave_bits = int(table.resolution[0])
        shift = _MANTISSA - octave_bits
        start = (int(table.origin[0]) + _BIAS) << octave_bits
    elif kind == EDGES:
        sets = [table.edges[k : k + n + 1] for k, n in zip(table.edge_start, table.bins)]
        edges, integers[EDGE] = np.concatenate(sets), starts_of(sets)
        numbers[ORIGIN] = [e[0] for e in sets]
        shift, keys, cells = _cells(sets)
        integers[KEY], integers[CELL] = keys, starts_of(cells)
        integers[LAST_CELL] = [len(passed) - 2 for passed in cells]
        before = np.concatenate(cells).astype(np.int32)
    return Bins(
        kind=static(kind),
        signed=signed,
        zero_at_zero=bool(table.zero_at_zero and kind != CODE),
        position=table.degree > 0,
        numbers=np.take(numbers, table.set_of, axis=1),
        integers=np.take(integers, table.set_of, axis=1),
        edges=edges,
        before=before,
        shift=shift,
        start=start,
        halvings=int(np.diff(before).max(initial=0)).bit_length(),
        zero_piece=zero_piece,
        mirror=zero_piece + 1 if signed else 0,
    )


@lru_cache(maxsize=16)
def code_bins(table: Table) -> Bins:
    """Bins whose pieces are codes: those of each set are counted from zero."""
    if table.signed or table.binning not in (AFFINE, EDGES):
        raise ValueError("Only uniform bins and bins between edges have codes, not odd extensions.")
    return bins_of(replace(table, zero_at_zero=False), np.zeros(len(table.origin), np.int64))


def _cells(sets: Sequence[np.ndarray]) -> tuple[int, list[int], list[np.ndarray]]:
    """Cells of the edges: the shift, the first key and the edges before each cell, by set.

    As few as have no more than one edge each, as far as their number allows.
    """
    distances = [(e[1:-1] - e[0] + 0.0).view(np.int64) for e in sets]
    max_cells = _CELLS_PER_EDGE * sum(map(len, sets))
    for octave_bits in range(_MAX_OCTAVE_BITS):
        shift = _MANTISSA - octave_bits
        keys = [int(bits[bits > 0].min(initial=bits.max(initial=0)) >> shift) for bits in distances]
        cells = [
            np.maximum((bits >> shift) - k, 0) for bits, k in zip(distances, keys, strict=True)
        ]
        is_shared = any((c[1:] == c[:-1]).any() for c in cells)
        if not is_shared or 2 * sum(int(c.max(initial=0)) + 1 for c in cells) > max_cells:
            break
    before = [np.searchsorted(c, np.arange(int(c.max(initial=0)) + 2)) for c in cells]
    return shift, keys, before


def polynomials_of(
    first_columns: Sequence[np.ndarray],
    coef: Sequence[np.ndarray],
    dtype: Any,
    mirrored: bool = False,
    least: int = 1,
    max_chunk: int = _MAX_CHUNK,
) -> LocalPolynomials:
    """Pieces, each entry of `coef` (bins, powers, columns), one after the other.

    A piece of zeros follows, and if `mirrored` all of these with their sign changed. A vector has
    at least `least` columns and at most `max_chunk`, a power of two.
    """
    powers = max(block.shape[1] for block in coef)
    columns = max(least, max(block.shape[2] for block in coef))
    chunk = min(max_chunk, power_of_two(columns))
    parts = -(-columns // chunk)
    n_pieces = sum(len(block) for block in coef)
    shape = ((n_pieces + 1) * (1 + mirrored), powers, chunk * parts)
    flat = allocate_aligned(int(np.prod(shape)), dtype)
    values = flat.reshape(shape)
    starts = np.zeros(len(values), np.int32)
    begin = 0
    for columns_of_set, block in zip(first_columns, coef, strict=True):
        span = slice(begin, begin + len(block))
        values[span, : block.shape[1], : block.shape[2]] = block
        starts[span] = columns_of_set
        begin += len(block)
    if mirrored:
        values[n_pieces + 1 :] = -values[: n_pieces + 1]
        starts[n_pieces + 1 :] = starts[: n_pieces + 1]
    return LocalPolynomials(starts, flat, static(powers), static(chunk), static(parts))


def coefficients(layout: Layout) -> np.ndarray:
    """Coefficients [piece][power][column] without the columns that fill vectors."""
    values = layout.values
    pieces = values.coef.reshape(len(values.first_column), len(values.powers), -1)
    return pieces[:, :, : int(layout.n_stored.max())]


def octaves_of(bins: Bins) -> tuple[int, int]:
    """Exponent of the first octave, and bins in each of them (LOG2)."""
    octave_bits = _MANTISSA - bins.shift
    return (bins.start >> octave_bits) - _BIAS, 1 << octave_bits
