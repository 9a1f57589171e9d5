r"""The compiled form of every additive map: local polynomials on bins.

Any function of one feature can be tabulated: find the bin of the value, take the bin's
coefficients, evaluate a polynomial of the position u ∈ [0, 1) within the bin,

.. math:: φ_c(x) = \sum_k \mathrm{coef}[b, k, c]\, u^k.

Degree 0 is a look-up (anchors, 8-bit input), degree 1 linear interpolation, splines are exact at
their own degree, and cosines in log x reach the rounding error of float32 at degree 3. A look-up
costs a memory access where a cosine costs tens of cycles, and one loop serves all maps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from .guide import Guide, build_guide

__all__ = ["AFFINE", "CODE", "EDGES", "LOG2", "Table", "code_table", "tabulate"]

AFFINE, LOG2, EDGES, CODE = range(4)

Curve = Callable[[np.ndarray], np.ndarray]  # t (m,) -> values (m, r)

_DEGREE = {np.dtype(np.float32): 3, np.dtype(np.float64): 5}
_TOLERANCE = {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 2e-14}
_MAX_BITS = 10
_MAX_BYTES = 8 * 2**20
_LANES = (1, 2, 4, 8, 16)


@dataclass(frozen=True, eq=False)
class Table:
    """Local polynomials for d features in S sets; features of one set share its coefficients.

    Attributes
    ----------
    binning : int
        AFFINE: t = (x − lo)·scale, bin ⌊t⌋. LOG2: `scale` bits of sub-bins in each octave, starting
        at octave `lo`. EDGES: search among `edges`, with a guide. CODE: the value is the bin.
    degree : int
        Degree of the local polynomials.
    signed : bool
        Odd extension φ(−x) = −φ(x).
    zero : bool
        Whether φ(0) = 0 exactly, so that CSR input gives CSR output.
    set_of : int32[d]
        Set of each feature.
    lo, scale, low, high : float64[S]
        Parameters of the binning, and the range to which values are clipped.
    bins, width, band : int32[S]
        Number of bins; output columns of a feature; columns stored (others are zero) in each bin.
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
    zero: bool
    set_of: np.ndarray
    lo: np.ndarray
    scale: np.ndarray
    low: np.ndarray
    high: np.ndarray
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

    def arguments(self) -> tuple[Any, ...]:
        """What the compiled loops take: the fields, and what follows from them."""
        return self._arguments

    @cached_property
    def _arguments(self) -> tuple[Any, ...]:
        mantissa, bias = (23, 127) if self.coef.dtype == np.float32 else (52, 1023)
        bits = int(self.scale[0]) if self.binning == LOG2 else 0
        widths = {*self.width.tolist(), *self.band.tolist()}
        even = widths.pop() if len(widths) == 1 else 0
        lanes = next((size for size in _LANES if size >= even), even)
        coef, coef_start, band = self.coef, self.coef_start, self.band
        if lanes > even > 0:
            # Padded with zeros to a vector's length, so that a value's columns are one vector.
            coef = np.pad(coef.reshape(-1, even), [(0, 0), (0, lanes - even)]).ravel()
            coef_start, band = coef_start // even * lanes, np.full_like(band, lanes)
        stride = (self.degree + 1) * band.astype(np.int64)
        # A block of zeros behind the coefficients is where values with φ(x) = 0 find theirs.
        nothing = len(coef)
        coef = np.concatenate([coef, np.zeros(int(stride.max()), coef.dtype)])
        fields_ = dict(zip((item.name for item in fields(self)), self.values(), strict=True))
        return (
            *(fields_ | {"coef": coef, "coef_start": coef_start}).values(),
            stride,
            even,  # columns, where all features have as many
            lanes,  # and how far apart the coefficients of two powers lie then
            bool(np.isfinite(self.low).any() or np.isfinite(self.high).any()),  # clipped
            (int(self.lo[0]) + bias) << bits if self.binning == LOG2 else 0,  # bits of bin 0
            mantissa - bits,
            2.0 ** -(mantissa - bits),
            nothing,
            *self.guide,
        )

    @cached_property
    def guide(self) -> Guide:
        """Where to look for the bin of a value among uneven edges."""
        if self.binning == EDGES:
            return build_guide(self.edges, self.edge_start, self.bins)
        return build_guide(np.zeros(1), np.zeros(len(self.lo), np.int64), np.ones(len(self.lo)))

    @classmethod
    def build(
        cls,
        binning: int,
        degree: int,
        coef: list[np.ndarray],
        set_of: np.ndarray,
        *,
        lo: np.ndarray,
        scale: np.ndarray,
        dtype: np.dtype | type = np.float64,
        width: np.ndarray | None = None,
        first: list[np.ndarray] | None = None,
        edges: list[np.ndarray] | None = None,
        low: np.ndarray | None = None,
        high: np.ndarray | None = None,
        shared: np.ndarray | None = None,
        signed: bool = False,
        zero: bool = False,
    ) -> Table:
        """Lay out sets of coefficients, each (bins, degree + 1, band), one after the other.

        `shared[s]` says which entry of `coef` (and `first`) set s uses, for sets that differ in
        their binning alone.
        """
        lo, scale = np.atleast_1d(np.float64(lo)), np.atleast_1d(np.float64(scale))
        shared = np.arange(len(coef)) if shared is None else np.asarray(shared)
        bins = np.array([block.shape[0] for block in coef], dtype=np.int32)[shared]
        band = np.array([block.shape[2] for block in coef], dtype=np.int32)[shared]
        width = band if width is None else np.asarray(width, dtype=np.int32)
        starts = np.cumsum([0, *(block.size for block in coef)])[:-1]
        first = [np.zeros(len(block), np.int32) for block in coef] if first is None else first
        first_starts = np.cumsum([0, *(len(item) for item in first)])[:-1]
        edges = edges or []
        set_of = np.asarray(set_of, dtype=np.int32)
        unbounded = np.full(len(lo), np.inf)
        return cls(
            binning=int(binning),
            degree=int(degree),
            signed=bool(signed),
            zero=bool(zero),
            set_of=set_of,
            lo=lo,
            scale=scale,
            low=-unbounded if low is None else np.broadcast_to(np.float64(low), lo.shape).copy(),
            high=unbounded if high is None else np.broadcast_to(np.float64(high), lo.shape).copy(),
            bins=bins,
            width=width,
            band=band,
            edges=np.concatenate([np.float64(e) for e in edges]) if edges else np.zeros(0),
            edge_start=np.cumsum([0, *(len(e) for e in edges)]).astype(np.int64)[:-1]
            if edges
            else np.zeros(len(lo), np.int64),
            first=np.concatenate(first).astype(np.int32),
            first_start=first_starts.astype(np.int64)[shared],
            coef=np.concatenate([np.ravel(block) for block in coef]).astype(dtype, copy=False),
            coef_start=starts.astype(np.int64)[shared],
            column=np.concatenate([[0], np.cumsum(width[set_of], dtype=np.int64)]),
        )


def tabulate(
    curve: Curve,
    argument: str,
    low: float,
    high: float,
    dtype: np.dtype,
    resolution: float | None = None,
) -> tuple[int, int, float, int, np.ndarray] | None:
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
        coef, miss = _local_polynomials(curve, edges, degree)
        if miss <= _TOLERANCE[np.dtype(dtype)] or resolution is not None:
            return binning, degree, lo, candidate, coef
    return None


def _bin_edges(binning: int, low: float, high: float, resolution: int) -> tuple[np.ndarray, float]:
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


def _local_polynomials(curve: Curve, edges: np.ndarray, degree: int) -> tuple[np.ndarray, float]:
    """Interpolating polynomials on each bin, and their largest miss relative to ‖φ‖."""
    nodes = 0.5 - 0.5 * np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    between = np.append(0.0, 0.5 * (nodes[1:] + nodes[:-1]))
    width = np.diff(edges)[:, None]
    values = curve((edges[:-1, None] + width * nodes).ravel())
    values = values.reshape(len(width), degree + 1, -1)
    # Coefficients of the deviation from the first node are small: the monomials' poor
    # conditioning then acts on small numbers only.
    base = values[:, :1]
    coef = np.einsum("kj,bjc->bkc", np.linalg.inv(np.vander(nodes, increasing=True)), values - base)
    coef[:, :1] += base
    tested = curve((edges[:-1, None] + width * between).ravel())
    tested = tested.reshape(len(width), degree + 1, -1)
    powers = np.vander(between, degree + 1, increasing=True)
    error = np.abs(np.einsum("jk,bkc->bjc", powers, coef) - tested).max(axis=(1, 2))
    size = np.sqrt((tested**2).sum(axis=2)).max(axis=1)
    return coef, float(np.max(error / np.maximum(size, np.finfo(float).tiny)))


def code_table(values: np.ndarray, set_of: np.ndarray, dtype: np.dtype, zero: bool) -> Table:
    """Look-up table for integer codes: values (S, codes, r)."""
    sets = len(values)
    return Table.build(
        CODE,
        0,
        [block[:, None, :] for block in values],
        set_of,
        lo=np.zeros(sets),
        scale=np.ones(sets),
        dtype=dtype,
        zero=zero,
    )
