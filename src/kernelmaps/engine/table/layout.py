r"""The layout of every table in memory, built here and passed as one argument to compiled loops.

A table is a piecewise polynomial: a list of *pieces*, one for each bin of each set of polynomials
that features share. Where a value falls (:mod:`.locate`) is a piece and a position u in its bin,

.. math:: φ_c(x) = \sum_k \mathrm{coef}[\mathrm{piece}, k, c]\, u^k,

and consumers take it from there: :mod:`.transform` writes φ; models sum it, or add it to their
weights; :mod:`.encode` stores bin and position alone. After the pieces of all bins comes a piece of
zeros, that of values with φ(x) = 0; for odd extensions all pieces follow again with their sign
changed. No consumer knows of either.

Loops take the records of ``for_loops``: few arrays, since each takes time to compile, and what the
compiler must know (the kind of bins, numbers of powers and columns, flags) as
:func:`~kernelmaps._util.compiling.static` numbers: only the variant in use is compiled.

The loops rely on these relations, which :func:`layout_of` establishes: ``first_piece[j] + b`` is a
piece for every bin b of feature j; ``column[j] + first[piece]`` plus the stored columns ends within
the result; arrays by feature are padded to full vectors of features.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..._util.compiling import static
from ..._util.threads import power_of_two
from .search import CellParameters, EdgeSearch, no_search, search_of
from .stored import AFFINE, CODE, EDGES, LOG2, Table, aligned, by_vector, clipping

_MAX_CHUNK = 16  # columns in a vector
_MIN_WRITTEN = 4  # columns in a vector that is written: fewer would be variants that gain nothing
_FORMAT = {4: (23, 127), 8: (52, 1023)}  # bits of the mantissa, and bias, of floats by their bytes

# What the finder computes of the position in a bin.
NO_POSITION = 0  # nothing: look-ups
POSITION = 1  # in the precision T of the rows
FLOAT64_POSITION = 2  # in float64 (EDGES)


# Rows of the arrays of `BinFinder`.
FIRST_PIECE, TOP, KEY, LIMIT, CELL, EDGE, CROWD = range(7)
ORIGIN, FACTOR, LAST, LOW, HIGH = range(5)


class BinFinder(NamedTuple):
    """Bins as loops take them: `Bins`, with rows of arrays for its arrays by feature."""

    # Static numbers.
    kind: tuple
    signed: tuple
    zero_at_zero: tuple
    clipped: tuple
    centred: tuple
    position: tuple
    record: tuple  # numbers in a record of the search
    checked: tuple  # flag: the distance of values from `ranges` is measured
    integers: np.ndarray  # int32[7, features]: FIRST_PIECE …; the first 2 where nothing is searched
    numbers: np.ndarray  # [5, features]: ORIGIN …
    edges: np.ndarray  # T, of the search (see `EdgeSearch`); of other bins its type alone matters
    # None where they are not used, since every array takes time to compile.
    ranges: np.ndarray | None  # T[2, features]
    records: np.ndarray | None
    before: np.ndarray | None
    exact: np.ndarray | None
    shift: int
    start: int
    limit: int
    zero_piece: int
    mirror: int


class Bins(NamedTuple):
    """Where values fall: all that :mod:`.locate` reads. T is the precision of the rows of X."""

    kind: int  # AFFINE, LOG2, EDGES or CODE
    signed: bool  # negative values have the pieces `mirror` further on
    zero_at_zero: bool  # zero has the piece `zero_piece`
    clipped: bool  # values are clipped to low … high
    # Values come clipped, and positions count from the middles of bins; there is a piece before
    # the first bin and one after the last.
    centred: bool
    position: int  # NO_POSITION, POSITION or FLOAT64_POSITION
    # By feature, the last one repeated to fill a vector.
    first_piece: np.ndarray  # int32: that of the first bin
    top: np.ndarray  # int32: last bin
    # AFFINE, float64: bin ⌊(x − origin)·factor⌋; EDGES, T: the same for cells of the search.
    origin: np.ndarray
    factor: np.ndarray
    last: np.ndarray  # AFFINE: last bin; EDGES: last cell
    low: np.ndarray  # range of t (AFFINE) or of x (EDGES, LOG2)
    high: np.ndarray
    search: EdgeSearch  # of EDGES
    number: np.ndarray  # one T
    shift: int  # LOG2: bits of a number that say where in its bin it lies
    start: int  # LOG2: the bits before those, of the first bin
    limit: int  # LOG2: last bin
    zero_piece: int  # piece of zeros
    mirror: int  # pieces from a value's to its negative's

    def for_loops(self, ranges: np.ndarray | None = None) -> BinFinder:
        """As loops take them; `ranges`: ends by feature that values are compared with."""
        search, is_searched = self.search, self.kind == EDGES
        integers = [self.first_piece, self.top, *(search[:5] if is_searched else ())]
        numbers = [self.origin, self.factor, self.last, self.low, self.high]
        n = max(map(len, numbers))
        # Only bins between edges have variants of the position.
        position = self.position if is_searched else NO_POSITION
        flags = self.signed, self.zero_at_zero, self.clipped, self.centred, position
        fixed: Any = map(static, (self.kind, *flags, search.record, ranges is not None))
        return BinFinder(  # type: ignore[call-arg]
            *fixed,
            _rows(integers, len(self.first_piece)),
            _rows([a if len(a) else np.zeros(n, a.dtype) for a in numbers], n),
            search.edges,
            ranges,
            search.records if search.record else None,
            search.before if is_searched and not search.record else None,
            search.exact if position == FLOAT64_POSITION else None,
            search.shift if is_searched else self.shift,
            self.start,
            self.limit,
            self.zero_piece,
            self.mirror,
        )


class LocalPolynomials(NamedTuple):
    """Coefficients of local polynomials, one piece for each bin."""

    first: np.ndarray  # int32[pieces]: column of the first stored entry
    coef: np.ndarray  # T, flat [piece][power][column]; columns are padded with zeros
    powers: int  # degree + 1
    chunk: int  # columns in a vector, a power of two
    parts: int  # vectors in a piece

    def for_loops(self) -> PolynomialTable:
        powers, chunk, several = map(static, (self.powers, self.chunk, self.parts > 1))
        return PolynomialTable(self.first, self.coef, powers, chunk, several, self.parts)


class PolynomialTable(NamedTuple):
    """Local polynomials as loops take them."""

    first: np.ndarray
    coef: np.ndarray
    powers: tuple  # static, as the following
    chunk: tuple
    several: tuple  # flag: a piece has more vectors than one
    parts: int


class Layout(NamedTuple):
    """A map in memory."""

    bins: Bins
    values: LocalPolynomials
    column: np.ndarray  # int64[d + 1]: first output column of each feature
    band: np.ndarray  # int32[d]: stored columns of each feature
    uniform_width: int  # columns of every feature, if all have as many and store them all; else 0


@lru_cache(maxsize=64)
def layout_of(table: Table) -> Layout:
    """The layout of a table, in the precision of its coefficients."""
    first_piece, sets = pieces_of(table)
    blocks = [table.polynomials(s) for s in sets]
    first = [table.first[b : b + n] for b, n in zip(table.first_start, table.bins, strict=True)]
    bins = bins_of(table, first_piece)
    firsts, dtype = [first[s] for s in sets], table.coef.dtype
    values = polynomials_of(firsts, blocks, dtype, bool(bins.mirror), _MIN_WRITTEN)
    widths = {*table.width.tolist(), *table.band.tolist()}
    uniform_width = widths.pop() if len(widths) == 1 else 0
    return Layout(bins, values, table.column, table.band[table.set_of], uniform_width)


def pieces_of(table: Table, more: int = 0) -> tuple[np.ndarray, list[int]]:
    """First piece of each set, and the sets whose coefficients are stored, in order.

    Sets that differ in their binning alone share their pieces. A set has a piece for each bin,
    and `more` besides.
    """
    keys = np.stack([table.coef_start, table.first_start, table.bins, table.band], axis=1)
    _, sets, block = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    starts = np.cumsum([0, *table.bins[sets] + more])
    return starts[np.ravel(block)], sets.tolist()


def bins_of(table: Table, first_piece: np.ndarray, dtype: Any = None) -> Bins:
    """Where values fall; `first_piece`: that of each set.

    In the precision of the table's coefficients, or in `dtype`.
    """
    dtype = np.dtype(table.coef.dtype if dtype is None else dtype)
    of, kind = table.set_of, table.binning
    zero_piece = int((first_piece + table.bins).max())
    search = no_search(dtype)
    shift = start = limit = 0
    floats = CellParameters(*[np.zeros(0, dtype)] * 5)
    if kind == AFFINE:
        # Clipping t is clipping x: both steps are monotone, in floating point as on paper.
        with np.errstate(over="ignore"):
            ends = [
                (end - table.origin) * table.resolution for end in (table.clip_low, table.clip_high)
            ]
        floats = CellParameters(table.origin, table.resolution, table.bins - 1.0, *ends)
    elif kind == EDGES:
        floats, search = search_of(table, dtype)
    elif kind == LOG2:
        mantissa, bias = _FORMAT[dtype.itemsize]
        octave_bits = int(table.resolution[0])
        shift, start = mantissa - octave_bits, (int(table.origin[0]) + bias) << octave_bits
        limit = int(table.bins[0]) - 1
        low, high = clipping(table)
        top = np.nextafter(dtype.type(np.inf), dtype.type(0))
        floats = floats._replace(
            low=low.astype(dtype), high=_not_above(np.minimum(high, top), dtype)
        )
    clipped = bool(np.isfinite(table.clip_low).any() or np.isfinite(table.clip_high).any())
    if kind == EDGES and table.degree == 0:  # a look-up goes on for ever beyond its end edges
        first, final = (table.edges[table.edge_start + at] for at in (1, table.bins - 1))
        clipped = bool((table.clip_low > first).any() or (table.clip_high < final).any())
    origin, factor, last, low, high = (by_vector(a[of]) if len(a) else a for a in floats)
    signed = bool(table.signed and kind != CODE)
    return Bins(
        kind=kind,
        signed=signed,
        zero_at_zero=bool(table.zero_at_zero and kind != CODE),
        clipped=clipped,
        centred=False,
        position=_position_of(table, dtype),
        first_piece=by_vector(first_piece[of].astype(np.int32)),
        top=by_vector(table.bins[of].astype(np.int32) - 1),
        origin=origin,
        factor=factor,
        last=last,
        low=low,
        high=high,
        search=search,
        number=np.zeros(1, dtype),
        shift=shift,
        start=start,
        limit=limit,
        zero_piece=zero_piece,
        mirror=zero_piece + 1 if signed else 0,
    )


def _position_of(table: Table, dtype: np.dtype) -> int:
    if table.degree == 0:
        return NO_POSITION
    return FLOAT64_POSITION if dtype == np.float32 else POSITION


def polynomials_of(
    first: Sequence[np.ndarray],
    coef: Sequence[np.ndarray],
    dtype: Any,
    mirrored: bool = False,
    least: int = 1,
    most: int = _MAX_CHUNK,
) -> LocalPolynomials:
    """Pieces, each entry of `coef` (bins, powers, columns), one after the other.

    A piece of zeros follows, and if `mirrored` all of these with their sign changed. A vector has
    at least `least` columns and at most `most`, a power of two.
    """
    powers = max(block.shape[1] for block in coef)
    columns = max(least, max(block.shape[2] for block in coef))
    chunk = min(most, power_of_two(columns))
    parts = -(-columns // chunk)
    n_pieces = sum(len(block) for block in coef)
    shape = ((n_pieces + 1) * (1 + mirrored), powers, chunk * parts)
    flat = aligned(int(np.prod(shape)), dtype)
    values = flat.reshape(shape)
    starts = np.zeros(len(values), np.int32)
    at = 0
    for first_columns, block in zip(first, coef, strict=True):
        of_set = slice(at, at + len(block))
        values[of_set, : block.shape[1], : block.shape[2]] = block
        starts[of_set] = first_columns
        at += len(block)
    if mirrored:
        values[n_pieces + 1 :] = -values[: n_pieces + 1]
        starts[n_pieces + 1 :] = starts[: n_pieces + 1]
    return LocalPolynomials(starts, flat, powers, chunk, parts)


def coefficients(layout: Layout) -> np.ndarray:
    """Coefficients [piece][power][column] without the columns that fill vectors."""
    values = layout.values
    pieces = values.coef.reshape(len(values.first), values.powers, -1)
    return pieces[:, :, : int(layout.band.max())]


def octaves_of(bins: Bins) -> tuple[int, int]:
    """Exponent of the first octave, and bins in each of them (LOG2)."""
    mantissa, bias = _FORMAT[bins.number.itemsize]
    octave_bits = mantissa - bins.shift
    return (bins.start >> octave_bits) - bias, 1 << octave_bits


def _not_above(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The largest numbers of `dtype` that are not above these."""
    rounded = values.astype(dtype)
    return np.where(rounded > values, np.nextafter(rounded, dtype.type(-np.inf)), rounded)


def _rows(arrays: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Arrays by feature as rows of one, which begin on cache lines."""
    out = aligned(len(arrays) * length, arrays[0].dtype).reshape(len(arrays), length)
    out[:] = arrays
    return out
