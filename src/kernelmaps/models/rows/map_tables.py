"""Tables for the training loops, made from the spec of a map."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ..._util.compiling import is_interpreted, make_read_only, static
from ...engine.encode import encode_into
from ...engine.reference import evaluate_sets
from ...engine.table import AFFINE, CODE
from ...engine.table.layout import bins_of, polynomials_of
from ...engine.table.locate import locations_for, stored_rows
from ...engine.table.stored import allocate_aligned
from ...engine.table.update import Basis, RowArrays, RowWorkspace, Squares
from .map_basis import MapBasis

_VECTOR = 64  # numbers in one block of weights: four 512-bit registers of float32
_CODE_SHARE = 0.05  # of X's bytes, for look-up tables of its codes
_CODE_BYTES = 2**19  # or this much, which a second-level cache holds
_FRACTIONS = 2**12  # of all bins, at most, of positions that are rounded
_FEWEST_BITS = 4  # of a fraction: with fewer, positions are too far from those of the values
_FEWEST_FEATURES = 32  # of rows whose values take more time than what is done once for each row


@dataclass(frozen=True)
class BasisTables:
    """The tables of a basis, the layout of its weights, and the way back to the map's columns."""

    basis: Basis
    lanes: int
    n_weights: int
    stride: int  # weights of each feature
    map_basis: MapBasis


def weight_memory(tables: BasisTables) -> np.ndarray:
    """Weights of zero, flat [feature][basis][lane].

    There is one vector more: that of the last feature may reach beyond its weights.
    """
    size = (tables.n_weights + _VECTOR) * tables.lanes
    return allocate_aligned(size, tables.basis.values.coef.dtype)


def make_workspace(tables: BasisTables, rows: RowArrays) -> RowWorkspace:
    """Memory for one thread that reads such rows."""
    longest = int(np.diff(rows.indptr).max(initial=0)) if rows.sparse else rows.width
    dtype, lanes = tables.basis.values.coef.dtype, tables.lanes
    f, move = allocate_aligned(max(1, longest) * lanes, dtype), allocate_aligned(lanes, dtype)
    return RowWorkspace(locations_for(longest), f, move)


def unpack_weights(flat: np.ndarray, tables: BasisTables, n_outputs: int) -> np.ndarray:
    """Weights of the loops as [feature][basis][output]."""
    stride, lanes = tables.stride, tables.lanes
    width = int(tables.map_basis.table.width.max())
    weights = flat[: tables.n_weights * lanes].reshape(-1, stride, lanes)
    return weights[:, :width, :n_outputs].copy()


def rows_of(X: Any) -> RowArrays:
    """X as the loops take it: views, no copies."""
    if sparse.issparse(X):
        stored = stored_rows(X.data, X.indices, X.indptr)
        return RowArrays(*stored, static(True), X.shape[1])
    none = np.zeros(0, np.int32)
    return RowArrays(make_read_only(X.reshape(-1)), none, none, static(False), X.shape[1])


def make_tables(
    basis: MapBasis, X: Any, dtype: Any, lanes: int, *, all_codes: bool = False,
    values_only: bool = False,
) -> BasisTables:  # fmt: skip
    """Tables for rows X in the precision of `dtype`, for that many lanes (a power of two).

    `all_codes` asks for all codes of an integer type, not only for those up to the largest in X;
    `values_only` for a basis whose values are read and whose weights are not updated.
    """
    precision = np.dtype(dtype)
    options: Any = (precision, lanes, values_only)
    blocks = _code_blocks(basis, X, all_codes) if X.dtype.kind == "u" else None
    if blocks is not None:
        return _assemble(basis, CODE, blocks, np.arange(len(blocks)), *options)
    return _assemble(basis, basis.table.binning, *_table_blocks(basis), *options)


def round_rows(basis: MapBasis, X: Any, threads: int) -> tuple[np.ndarray, int] | None:
    """Positions of rows, rounded to fractions of a bin: two bytes a value; bits of a fraction.

    None where rows are no dense floats of many features, where values may lie outside the bins, or
    where what is looked up for all fractions would not stay in a cache.
    """
    table = basis.table
    is_float = X.dtype.kind == "f" and not sparse.issparse(X)
    if not is_float or X.shape[1] < _FEWEST_FEATURES or is_interpreted():
        return None
    if table.binning != AFFINE or table.degree == 0 or table.signed or table.zero_at_zero:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        low = (table.clip_low - table.origin) * table.resolution
        high = (table.clip_high - table.origin) * table.resolution
    if not np.all((low >= -0.01) & (high <= table.bins + 0.01)):
        return None
    blocks, bins = len(_table_blocks(basis)[0]), int(table.bins.max())
    bits = (_FRACTIONS // (blocks * bins)).bit_length() - 1
    if bits < _FEWEST_BITS or blocks * (bins << bits) * _numbers_per_code(basis) * 4 > _CODE_BYTES:
        return None
    codes = np.empty(X.shape, np.uint16)
    encode_into(table.astype(X.dtype), X, (-np.inf, np.inf), bits, codes, threads)
    return codes, bits


def tabulate_fractions(tables: BasisTables, bits: int) -> BasisTables:
    """The same basis for such positions, in float32: it is looked up, which takes half the time."""
    blocks, block_of = _table_blocks(tables.map_basis)
    looked_up = []
    # From the left end of the first bin to the right end of the last.
    for first_column, coef, transform in blocks:
        fractions = np.arange((len(coef) << bits) + 1)
        b = np.minimum(fractions >> bits, len(coef) - 1)
        powers = (fractions / 2.0**bits - b)[:, None] ** np.arange(coef.shape[1])
        values = np.einsum("fpc,fp->fc", coef[b], powers)
        looked_up.append((first_column[b], values[:, None, :], transform))
    single = np.dtype(np.float32)
    return _assemble(tables.map_basis, CODE, looked_up, block_of, single, tables.lanes)


Block = tuple[np.ndarray, np.ndarray, int]  # first columns, coefficients, index of R


def _table_blocks(basis: MapBasis) -> tuple[list[Block], np.ndarray]:
    """Blocks of a table, and the one of each set: sets that differ in their bins alone share it."""
    table = basis.table
    keys = zip(
        table.coef_start.tolist(), table.first_start.tolist(), basis.transform_of.tolist(),
        strict=True,
    )  # fmt: skip
    numbers: dict[tuple[int, ...], int] = {}
    block_of = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
    first_sets = np.unique(block_of, return_index=True)[1]
    return [_table_block(basis, int(s)) for s in first_sets], block_of


def _table_block(basis: MapBasis, s: int) -> Block:
    """First columns and coefficients (bins, powers, stored columns) of one set."""
    coef, begin = basis.table.polynomials(s), int(basis.table.first_start[s])
    return basis.table.first[begin : begin + len(coef)], coef, int(basis.transform_of[s])


def _code_blocks(basis: MapBasis, X: Any, all_codes: bool) -> list[Block] | None:
    """The basis at every code of each set; None where arithmetic is cheaper than such tables."""
    table = basis.table
    if table.binning == CODE:
        return [_table_block(basis, s) for s in range(len(table.origin))]
    values = X.data if sparse.issparse(X) else X
    all_codes |= values.itemsize == 1 or values.size == 0
    codes = 1 << 8 * values.itemsize if all_codes else int(values.max()) + 1
    sets = np.unique(table.set_of)
    bytes_per_code = 4 * _numbers_per_code(basis)
    if len(sets) * codes * bytes_per_code > max(_CODE_BYTES, _CODE_SHARE * values.nbytes):
        return None
    blocks = []
    for s, dense in enumerate(evaluate_sets(table, np.arange(float(codes)))):
        n_stored, width = int(table.band[s]), int(table.width[s])
        first_column = np.argmax(dense != 0, axis=1).astype(np.int32)
        first_column = np.minimum(first_column, np.int32(width - n_stored))
        nonzero = np.take_along_axis(dense, first_column[:, None] + np.arange(n_stored), axis=1)
        blocks.append((first_column, nonzero[:, None, :], int(basis.transform_of[s])))
    return blocks


def _numbers_per_code(basis: MapBasis) -> int:
    """Numbers that a code has in look-up tables: Φ, and RᵀRΦ where that is another table."""
    n_stored, width = int(basis.table.band.max()), int(basis.table.width.max())
    return n_stored if basis.transforms is None else n_stored + width


def _assemble(
    map_basis: MapBasis,
    binning: int,
    blocks: list[Block],
    block_of: np.ndarray,
    dtype: np.dtype,
    lanes: int,
    values_only: bool = False,
) -> BasisTables:
    """Blocks of pieces, one after the other, in the layout of the loops."""
    table, transforms = map_basis.table, map_basis.transforms
    first_columns, coef, transform_of = zip(*blocks, strict=True)
    starts, width = np.cumsum([0, *map(len, first_columns)]), int(table.width.max())
    if binning == CODE:
        codes = np.diff(starts)[block_of].astype(np.int32)
        table = replace(table, binning=CODE, bins=codes, signed=False)
    # A vector has columns of all lanes.
    max_chunk = 16 if lanes == 1 else max(1, _VECTOR // (2 * lanes))
    lay_out = partial(polynomials_of, dtype=dtype, mirrored=table.signed, max_chunk=max_chunk)
    values = update = lay_out(first_columns, coef)
    squares = Squares(np.zeros(0), static(1))
    if not values_only:
        phi = updates = [_spread(*block[:2], width) for block in blocks]
        if transforms is not None:
            products = [R.T @ R for R in transforms]
            updates = [block @ products[r] for block, r in zip(phi, transform_of, strict=True)]
            update = lay_out([np.zeros_like(columns) for columns in first_columns], updates)
        squares = _squares(phi, updates, table.signed)
    # Columns of a piece, those that fill vectors included.
    ends = (block.n_columns + int(block.first_column.max()) for block in (values, update))
    stride = max(width, *ends)
    bins = bins_of(table, starts[block_of])
    basis = Basis(bins, values, update, squares, stride)
    return BasisTables(basis, lanes, table.n_features * stride, stride, map_basis)


def _spread(first_column: np.ndarray, coef: np.ndarray, width: int) -> np.ndarray:
    """Coefficients (pieces, powers, stored columns), among all columns of a feature."""
    if coef.shape[2] == width:
        return coef
    out = np.zeros((*coef.shape[:2], width))
    columns = first_column[:, None] + np.arange(coef.shape[2])
    np.put_along_axis(out, columns[:, None, :].repeat(coef.shape[1], 1), coef, axis=2)
    return out


def _squares(phi: list[np.ndarray], update: list[np.ndarray], mirrored: bool) -> Squares:
    """Coefficients in u of ⟨Φ(u), RᵀRΦ(u)⟩, a polynomial of twice the degree, of each piece."""
    pieces, changes = np.concatenate(phi), np.concatenate(update)
    powers = pieces.shape[1]
    norms = np.zeros((len(pieces) + 1, 2 * powers - 1))
    products = pieces @ changes.transpose(0, 2, 1)
    for k in range(powers):
        norms[:-1, k : k + powers] += products[:, k]
    return Squares(np.tile(norms, (1 + mirrored, 1)).ravel(), static(norms.shape[1]))
