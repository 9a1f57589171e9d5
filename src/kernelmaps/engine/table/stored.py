r"""The tabulated form of every additive map: local polynomials on bins.

Any function of one feature can be tabulated: find the bin of the value, take the bin's
coefficients, evaluate a polynomial of the position u ∈ [0, 1) within the bin,

.. math:: φ_c(x) = \sum_k \mathrm{coef}[b, k, c]\, u^k.

Degree 0 is a look-up (anchors, 8-bit input), degree 1 linear interpolation, splines are exact at
their own degree, and cosines in log x reach the rounding error of float32 at degree 3. A look-up
costs a memory access where a cosine costs tens of cycles, and one loop serves all maps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any

import numpy as np

AFFINE, LOG2, EDGES, CODE = range(4)

# Fields of a table with a number for each set: facts, and where its block of others starts.
_OF_SETS = ("origin", "resolution", "clip_low", "clip_high", "bins", "width", "band")
_STARTS = {"edge_start": "edges", "first_start": "first", "coef_start": "coef"}


@dataclass(frozen=True, eq=False)
class Table:
    """Local polynomials for d features in S sets; features of one set share its coefficients.

    Attributes
    ----------
    binning : int
        AFFINE, LOG2, EDGES or CODE: how the bin of a value is found.
    degree : int
        Degree of the local polynomials.
    signed : bool
        Odd extension φ(−x) = −φ(x).
    zero_at_zero : bool
        Whether φ(0) = 0 exactly, so that CSR input gives CSR output.
    set_of : int32[d]
        Set of each feature.
    origin, resolution : float64[S]
        AFFINE: t = (x − origin)·resolution, bin ⌊t⌋. LOG2: the first octave begins at 2^origin, and
        each has 2^resolution bins. EDGES (bins between `edges`) and CODE (the value is the bin) do
        not use them.
    clip_low, clip_high : float64[S]
        Range to which values are clipped before that.
    bins, width, band : int32[S]
        Number of bins; output columns of a feature; columns stored (others are zero) in each bin,
        whose matrix is banded.
    edges, edge_start : float64, int64[S]
        Bin edges (EDGES only) and where each set's begin.
    first, first_start : int32, int64[S]
        Column of the first stored entry, per bin, and where each set's begin.
    coef, coef_start : float, int64[S]
        Entry (b, k, c) of set s is ``coef[coef_start[s] + (b*(degree+1) + k)*band[s] + c]``.
    column : int64[d+1]
        First output column of each feature.
    """

    binning: int
    degree: int
    signed: bool
    zero_at_zero: bool
    set_of: np.ndarray
    origin: np.ndarray
    resolution: np.ndarray
    clip_low: np.ndarray
    clip_high: np.ndarray
    bins: np.ndarray
    width: np.ndarray
    band: np.ndarray
    edges: np.ndarray
    edge_start: np.ndarray
    first: np.ndarray
    first_start: np.ndarray
    coef: np.ndarray
    coef_start: np.ndarray
    column: np.ndarray

    @property
    def n_features(self) -> int:
        return len(self.set_of)

    @property
    def n_columns(self) -> int:
        return int(self.column[-1])

    @property
    def nbytes(self) -> int:
        return sum(v.nbytes for v in self.values() if isinstance(v, np.ndarray))

    def values(self) -> tuple[Any, ...]:
        """The fields in order."""
        return tuple(getattr(self, item.name) for item in fields(self))

    def astype(self, dtype: Any) -> Table:
        """The table with coefficients of another type; the same object if they have it already."""
        if self.coef.dtype == dtype:
            return self
        return replace(self, coef=self.coef.astype(dtype))

    def polynomials(self, s: int) -> np.ndarray:
        """Coefficients (bins, degree + 1, stored columns) of one set."""
        shape = (int(self.bins[s]), self.degree + 1, int(self.band[s]))
        start = int(self.coef_start[s])
        return self.coef[start : start + prod(shape)].reshape(shape)

    def take_sets(self, sets: Any) -> Table:
        """The table of one feature for each of some sets, which a slice or their indices name."""
        selected = {name: getattr(self, name)[sets] for name in (*_OF_SETS, *_STARTS)}
        column = np.concatenate([[0], np.cumsum(selected["width"], dtype=np.int64)])
        set_of = np.arange(len(column) - 1, dtype=np.int32)
        return replace(self, set_of=set_of, column=column, **selected)

    def join(self, other: Table) -> Table:
        """The table of the features of both, whose bins and polynomials are of the same kind."""
        joined = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in (*_OF_SETS, *_STARTS.values())
        }
        for start, blocks in _STARTS.items():
            further = getattr(other, start) + len(getattr(self, blocks))
            joined[start] = np.concatenate([getattr(self, start), further])
        set_of = np.concatenate([self.set_of, other.set_of + np.int32(len(self.origin))])
        column = np.concatenate([self.column, self.column[-1] + other.column[1:]])
        return replace(self, set_of=set_of, column=column, **joined)

    @classmethod
    def build(
        cls,
        binning: int,
        degree: int,
        coef: list[np.ndarray],
        set_of: np.ndarray,
        *,
        origin: np.ndarray,
        resolution: np.ndarray,
        dtype: np.dtype | type = np.float64,
        width: np.ndarray | None = None,
        first: list[np.ndarray] | None = None,
        edges: list[np.ndarray] | None = None,
        clip_low: np.ndarray | None = None,
        clip_high: np.ndarray | None = None,
        shared: np.ndarray | None = None,
        signed: bool = False,
        zero_at_zero: bool = False,
    ) -> Table:
        """Lay out sets of coefficients (bins, degree + 1, stored columns), one after the other.

        `shared[s]` says which entry of `coef` (and `first`) set s uses, for sets that differ in
        their binning alone.
        """
        origin = np.atleast_1d(np.float64(origin))
        resolution = np.atleast_1d(np.float64(resolution))
        shared = np.arange(len(coef)) if shared is None else np.asarray(shared)
        bins = np.array([block.shape[0] for block in coef], dtype=np.int32)[shared]
        band = np.array([block.shape[2] for block in coef], dtype=np.int32)[shared]
        width = band if width is None else np.asarray(width, dtype=np.int32)
        first = [np.zeros(len(block), np.int32) for block in coef] if first is None else first
        flat = [np.ravel(block) for block in coef]
        edges = edges or []
        set_of = np.asarray(set_of, dtype=np.int32)
        unbounded = np.full(len(origin), np.inf)
        return cls(
            binning=int(binning),
            degree=int(degree),
            signed=bool(signed),
            zero_at_zero=bool(zero_at_zero),
            set_of=set_of,
            origin=origin,
            resolution=resolution,
            clip_low=-unbounded if clip_low is None else _repeat_for_sets(clip_low, origin),
            clip_high=unbounded if clip_high is None else _repeat_for_sets(clip_high, origin),
            bins=bins,
            width=width,
            band=band,
            edges=np.concatenate([np.float64(e) for e in edges]) if edges else np.zeros(0),
            edge_start=starts_of(edges) if edges else np.zeros(len(origin), np.int64),
            first=np.concatenate(first).astype(np.int32),
            first_start=starts_of(first)[shared],
            coef=np.concatenate(flat).astype(dtype, copy=False),
            coef_start=starts_of(flat)[shared],
            column=np.concatenate([[0], np.cumsum(width[set_of], dtype=np.int64)]),
        )


def _repeat_for_sets(values: Any, like: np.ndarray) -> np.ndarray:
    """Numbers of each set, or one for all of them, as an array."""
    return np.broadcast_to(np.float64(values), like.shape).copy()


def starts_of(parts: Iterable[Sized]) -> np.ndarray:
    """Where each part begins, if they lie one after the other."""
    return np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)[:-1]


def clipping(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Ends to which the values of each set are clipped, on every path.

    Those that the table states; octaves that it does not have are clipped, too.
    """
    if table.binning != LOG2:
        return table.clip_low, table.clip_high
    lowest = np.ldexp(1.0, table.origin.astype(int))
    octaves = table.bins / 2.0**table.resolution
    beyond = np.ldexp(1.0, np.minimum(table.origin + octaves, 1023).astype(int))
    return np.maximum(table.clip_low, lowest), np.minimum(table.clip_high, np.nextafter(beyond, 0))


def code_table(
    values: np.ndarray, set_of: np.ndarray, dtype: np.dtype, zero_at_zero: bool
) -> Table:
    """Look-up table for integer codes: values (S, codes, r)."""
    sets = len(values)
    return Table.build(
        CODE,
        0,
        [block[:, None, :] for block in values],
        set_of,
        origin=np.zeros(sets),
        resolution=np.ones(sets),
        dtype=dtype,
        zero_at_zero=zero_at_zero,
    )


_LINE = 64  # bytes of a cache line: a vector that straddles two is loaded twice


def allocate_aligned(size: int, dtype: Any) -> np.ndarray:
    """Zeros that begin on a cache line."""
    n_bytes = size * np.dtype(dtype).itemsize
    raw = np.zeros(n_bytes + _LINE, np.uint8)
    begin = -raw.__array_interface__["data"][0] % _LINE
    return raw[begin : begin + n_bytes].view(dtype)
