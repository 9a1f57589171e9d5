"""Tables for the training loops, made from the spec of a map."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ...engine import Spec
from ...engine.compile import compiled_table, zero_at_zero
from ...engine.extent import extent_of
from ...engine.piecewise import table_of
from ...engine.reference import evaluate_sets
from ...engine.table import CODE, Table
from ...engine.table.entry import by_address
from ...engine.table.layout import Bins, bins_of
from ...engine.table.layout import Block as TableBlock
from ...engine.table.locate import Found, for_loops, stored_rows
from ...engine.table.memory import LANES, aligned
from ...engine.table.update import Basis, Room, Rows, Squares

_VECTOR = 64  # numbers in one block of weights: four 512-bit registers of float32
_CODE_SHARE = 0.05  # of X's bytes, for look-up tables of its codes
_CODE_BYTES = 2**19  # or this much, which a second-level cache holds


@dataclass(frozen=True)
class Bands:
    """An additive map as bands of a basis: psi_j = R_s Phi, s the set of feature j.

    Attributes
    ----------
    table : Table
        Of Phi, in the engine's layout.
    mix : ndarray (m, n, n) or None
        The R's; None for the identity.
    mix_of : int[sets]
        Which of them a set has.
    """

    table: Table
    mix: np.ndarray | None
    mix_of: np.ndarray

    def cells(self, weights: np.ndarray) -> np.ndarray:
        """Weights of psi, [column][output], as weights of Phi: <w, R Phi> = <R'w, Phi>."""
        set_of = self.table.set_of
        ends = np.concatenate([[0], np.cumsum(self.table.width[set_of])])
        out = np.zeros((len(set_of), int(self.table.width.max()), weights.shape[1]))
        for j, s in enumerate(set_of):
            own = weights[ends[j] : ends[j + 1]]
            turned = own if self.mix is None else self.mix[self.mix_of[s]].T @ own
            out[j, : len(turned)] = turned
        return out


@dataclass(frozen=True)
class Compiled:
    """A basis, its place in memory, and the way back to the map's own columns."""

    basis: Basis
    lanes: tuple
    n_weights: int
    stride: int  # weights of each feature
    bands: Bands


def room_for(compiled: Compiled, rows: Rows) -> Room:
    """Room for one thread that visits such rows."""
    most = int(np.diff(rows.indptr).max(initial=0)) if len(rows.sparse) else rows.width
    dtype, lanes = compiled.basis.values.coef.dtype, len(compiled.lanes)
    found = Found(aligned(most + LANES, np.int32), aligned(most + LANES, dtype))
    f, move = aligned(max(1, most) * lanes, dtype), aligned(lanes, dtype)
    return Room(found, f, move, np.zeros((4, lanes)), np.zeros(1), np.zeros(2, np.int64))


def bands_of(spec: Spec, X: Any, dtype: np.dtype) -> Bands:
    """Bands of a spec: stored ones (splines), or the map's table as it is."""
    if "mix" in spec.arrays:
        whole = table_of(spec)
        coef = spec.arrays["band_coef"]
        _, bins, powers, band = coef.shape
        sets = len(whole.lo)
        first = np.tile(spec.arrays["band_first"], len(coef))
        of = spec.arrays["band_of"].astype(np.int64)
        table = replace(
            whole,
            coef=coef.ravel(),
            coef_start=of * (bins * powers * band),
            first=first,
            first_start=of * bins,
            band=np.full(sets, band, np.int32),
        )
        mix = spec.arrays["mix"]
        plain = len(mix) == 1 and np.array_equal(mix[0], np.eye(len(mix[0])))
        return Bands(table, None if plain else mix, spec.arrays["mix_of"])
    values = X.data[None, :] if sparse.issparse(X) else X
    extent = extent_of(values)[0]
    found = compiled_table(spec, dtype, X.shape[1], extent)
    if found is None:  # finer than a table is worth in this precision
        found = compiled_table(spec, np.dtype(np.float32), X.shape[1], extent)
    if found is None:
        raise ValueError(
            "the values reach so far beyond the ranges that the map was fitted to (or its features "
            "are of so different size) that no table holds its curves: use "
            "out_of_domain='clip' instead of 'extrapolate', or scale the features."
        )
    return Bands(found.astype(np.float64), None, np.zeros(len(found.lo), np.int32))


def lanes_for(count: int) -> tuple:
    """Lanes that hold `count` classes: a power of two up to 16."""
    return (0,) * next(size for size in (1, 2, 4, 8, 16) if size >= count)


def rows_of(X: Any) -> Rows:
    """X as the loops take it: views, no copies."""
    if sparse.issparse(X):
        stored = stored_rows(X.data, X.indices, X.indptr)
        return Rows(*stored, (0,), X.shape[1], X.dtype.itemsize)
    none = np.zeros(0, np.int32)
    return Rows(X.reshape(-1), none, none, (), X.shape[1], X.dtype.itemsize)


def compile_basis(spec: Spec, X: Any, dtype: Any, lanes: tuple, *, whole: bool = False) -> Compiled:
    """Tables for X in the precision of `dtype`, for that many lanes.

    `whole` asks for all codes of an integer type, not only for those up to the largest in X.
    """
    bands = bands_of(spec, X, np.dtype(dtype))
    blocks = _code_blocks(bands, X, whole) if X.dtype.kind == "u" else None
    if blocks is not None:
        block_of = np.arange(len(blocks))
        return _assemble(bands, CODE, blocks, block_of, np.dtype(dtype), lanes)
    table = bands.table
    # Sets that differ in their binning alone share their rows.
    keys = np.stack([table.coef_start, table.first_start, bands.mix_of], axis=1)
    _, which, block_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    blocks = [_table_block(bands, int(s)) for s in which]
    return _assemble(bands, table.binning, blocks, np.ravel(block_of), np.dtype(dtype), lanes)


Block = tuple[np.ndarray, np.ndarray, int]  # first columns, coefficients, index of R


def _table_block(bands: Bands, s: int) -> Block:
    """First columns and coefficients (bins, powers, band) of one set."""
    coef, begin = bands.table.polynomials(s), int(bands.table.first_start[s])
    return bands.table.first[begin : begin + len(coef)], coef, int(bands.mix_of[s])


def _code_blocks(bands: Bands, X: Any, whole: bool) -> list[Block] | None:
    """The basis at every code of each set; None where arithmetic is cheaper than such tables."""
    table = bands.table
    if table.binning == CODE:
        return [_table_block(bands, s) for s in range(len(table.lo))]
    values = X.data if sparse.issparse(X) else X
    whole |= values.itemsize == 1 or values.size == 0
    codes = 1 << 8 * values.itemsize if whole else int(values.max()) + 1
    sets = np.unique(table.set_of)
    taps = int(table.band[sets].max()) + (0 if bands.mix is None else int(table.width.max()))
    if len(sets) * codes * taps * 4 > max(_CODE_BYTES, _CODE_SHARE * values.nbytes):
        return None
    blocks = []
    for s, dense in enumerate(evaluate_sets(table, np.arange(float(codes)))):
        band, width = int(table.band[s]), int(table.width[s])
        first = np.minimum(np.argmax(dense != 0, axis=1), width - band)
        taken = np.take_along_axis(dense, first[:, None] + np.arange(band), axis=1)
        blocks.append((first.astype(np.int32), taken[:, None, :], int(bands.mix_of[s])))
    return blocks


def _assemble(
    bands: Bands,
    binning: int,
    blocks: list[Block],
    block_of: np.ndarray,
    dtype: np.dtype,
    lanes: tuple,
) -> Compiled:
    """Blocks of rows, one after the other, in the layout of the loops."""
    table = bands.table
    powers = max(block.shape[1] for _, block, _ in blocks)
    starts = np.cumsum([0, *(len(first) for first, _, _ in blocks)])
    rows, band = int(starts[-1]), max(block.shape[2] for _, block, _ in blocks)
    width = int(table.width.max())
    chunk, parts = _chunks(band, len(lanes))
    wide, wide_parts = _chunks(width, len(lanes))
    first = np.zeros(rows + 1, np.int32)
    narrow = np.zeros((rows + 1, powers, chunk * parts))
    dense = np.zeros((rows + 1, powers, width))
    column = np.zeros_like(dense)
    for k, (own_first, block, kind) in enumerate(blocks):
        here = slice(starts[k], starts[k + 1])
        first[here] = own_first
        narrow[here, :, : block.shape[2]] = block
        columns = own_first[:, None] + np.arange(block.shape[2])
        np.put_along_axis(dense[here], columns[:, None, :].repeat(powers, 1), block, axis=2)
        if bands.mix is not None:
            mix = bands.mix[kind]
            column[here] = dense[here] @ (mix.T @ mix)
    if bands.mix is None:
        column = dense
    norm = _squares(dense, column)
    mirror = rows + 1 if table.signed and binning != CODE else 0
    if mirror:  # the odd extension: the same rows with their sign changed
        first, norm = np.tile(first, 2), np.tile(norm, (2, 1))
        narrow, column = np.concatenate([narrow, -narrow]), np.concatenate([column, -column])
    values = _table(first, narrow, dtype, chunk, parts)
    columns, padded = values, chunk * parts
    if bands.mix is not None:
        full = np.zeros((*column.shape[:2], wide * wide_parts))
        full[:, :, :width] = column
        columns = _table(np.zeros_like(first), full, dtype, wide, wide_parts)
        padded = wide * wide_parts
    stride = max(padded, int(first.max()) + chunk * parts)
    bins = _placed(bands, binning, starts, block_of, dtype)
    basis = Basis(
        bins=bins,
        handed=by_address(for_loops(bins)),
        values=values,
        column=columns,
        squares=Squares(norm.ravel(), (0,) * norm.shape[1]),
        stride=stride,
    )
    return Compiled(basis, lanes, table.n_features * stride, stride, bands)


def _placed(
    bands: Bands, binning: int, starts: np.ndarray, block_of: np.ndarray, dtype: np.dtype
) -> Bins:
    """Where values fall: rows of the blocks, one after the other."""
    table, row = bands.table, starts[block_of]
    if binning == CODE:
        codes = np.diff(starts)[block_of].astype(np.int32)
        table = replace(table, binning=CODE, bins=codes, signed=False)
    return bins_of(table, row, dtype)


def _chunks(taps: int, lanes: int) -> tuple[int, int]:
    """Size and number of the vectors that hold `taps` entries for every lane."""
    most = 16 if lanes == 1 else max(1, _VECTOR // (2 * lanes))
    size = min(most, 1 << (taps - 1).bit_length())
    return size, -(-taps // size)


def _table(
    first: np.ndarray, coef: np.ndarray, dtype: np.dtype, chunk: int, parts: int
) -> TableBlock:
    flat = aligned(coef.size, dtype)
    flat[:] = coef.ravel()
    return TableBlock(first, flat, (0,) * coef.shape[1], (0,) * chunk, (0,) * (parts > 1), parts)


def _squares(phi: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Coefficients in u of <phi(u), column(u)>, a polynomial of twice the degree."""
    powers = phi.shape[1]
    out = np.zeros((len(phi), 2 * powers - 1))
    for k in range(powers):
        for m in range(powers):
            out[:, k + m] += np.einsum("rc,rc->r", phi[:, k], column[:, m])
    return out


def vanishes(spec: Spec) -> bool:
    """Whether the map is zero at zero, so that CSR rows need their stored values alone."""
    return zero_at_zero(spec)
