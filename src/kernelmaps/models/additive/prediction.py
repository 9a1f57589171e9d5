r"""Prediction compiled to per-feature polynomials: its cost does not depend on the basis.

:func:`.terms.terms_table` turns a trained model into one table of local polynomials; here it gets
the layout of the loops, for the kind of rows at hand: float64 polynomials for float64 rows,
float32 for all others, and for integers, where these fit the caches, the values themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import binom

from ...engine import Table
from ...engine.reference import evaluate_table
from ...engine.simd import permutes
from ...engine.table import AFFINE, CODE, EDGES
from ...threads import in_threads
from ._prediction_loops import CODES, Columns, Form, columns, csr, dense
from .basis import lanes_for, zeros

__all__ = ["forms", "sums"]

_CODE_BYTES = 2**21  # of values at every code of an integer type: a second-level cache
_MOST_BYTES = 2**25  # of polynomials: beyond, the band of the basis is read instead
_GRAIN = 2**17  # values times outputs that are worth a thread
_FEATURES = 256  # at least so many at a time
_REGISTER = 64  # bytes; where registers are shorter, the compiler takes several
_REGISTERS = 4  # of a table that are permuted; of larger ones, blocks are loaded
_HEIGHT = {True: 4, False: 64}  # vectors of rows at a time, in registers or not
_WIDTH = 32  # features of them that are transposed
_NO_EDGES = (np.zeros(0), np.zeros(0, np.int64))


Forms = list[tuple[slice, Form | Columns]]


def forms(table: Table, rows: np.dtype, dtype: np.dtype, *, stored: bool) -> Forms | None:
    """A model's table for rows of one kind (`stored`: CSR), in groups of outputs.

    None if it is not worth it.
    """
    bins, powers = int(table.bins.max()), 1 << int(table.degree).bit_length()
    outputs, d = int(table.width[0]), table.n_features
    step = min(outputs, 16 if dtype == np.float32 else 8)  # four sums of blocks fit the registers
    width = -(-outputs // step) * len(lanes_for(step))
    if table.signed or not _known(table):
        return None
    codes, by_code = 1 << 8 * rows.itemsize, table.binning == CODE
    if rows.kind == "u" and not by_code and codes * d * width * 4 <= _CODE_BYTES:
        coef, by_code = _at_codes(table, codes), True
    elif bins * powers * d * width * dtype.itemsize <= _MOST_BYTES:
        coef = _padded(table, bins, powers)
    else:
        return None
    even = table.binning == AFFINE and not by_code
    short = powers * dtype.itemsize <= _REGISTER
    if outputs == 1 and even and short and not stored and permutes():
        return [(slice(0, 1), _columns(table, coef[..., 0], dtype))]
    groups = [slice(k, min(k + step, outputs)) for k in range(0, outputs, step)]
    return [(own, _form(table, coef[..., own], dtype, by_code)) for own in groups]


def _known(table: Table) -> bool:
    """Whether the loops know the binning: even bins that end where values are clipped, …"""
    if table.binning != AFFINE:
        return table.binning in (EDGES, CODE)
    ends = np.stack([table.low - table.lo, table.high - table.lo]) * table.scale
    if np.isinf(ends).all():
        return True
    alike = len(set(table.bins.tolist())) == 1  # one end of t for all features
    return bool(alike and np.allclose(ends, np.stack([0 * table.bins, table.bins]), rtol=1e-9))


def _padded(table: Table, bins: int, powers: int) -> np.ndarray:
    """Coefficients [feature][bin][power][output], as many bins and powers for all features.

    Where a feature has fewer bins, the polynomial of its last one goes on: p(u + s) in the s-th
    bin after it, Σ_j c_j (u + s)^j = Σ_k u^k Σ_j C(j, k) s^{j−k} c_j.
    """
    coef = np.zeros((table.n_features, bins, powers, int(table.width[0])))
    k, j = np.arange(powers)[:, None], np.arange(powers)
    shift = binom(j, k) * np.arange(bins)[:, None, None] ** np.maximum(j - k, 0.0)
    for d, s in enumerate(table.set_of):
        own = (int(table.bins[s]), table.degree + 1, int(table.band[s]))
        start = int(table.coef_start[s])
        coef[d, : own[0], : own[1]] = table.coef[start : start + np.prod(own)].reshape(own)
        coef[d, own[0] :] = shift[1 : bins - own[0] + 1] @ coef[d, own[0] - 1]
    return coef


def _at_codes(table: Table, codes: int) -> np.ndarray:
    """Values [feature][code][1][output] at all codes of an integer type."""
    import array_api_compat.numpy as xp

    grid = np.tile(np.arange(float(codes))[:, None], table.n_features)
    values = evaluate_table(table, grid, xp).reshape(codes, table.n_features, 1, -1)
    return np.ascontiguousarray(values.transpose(1, 0, 2, 3))


def _form(table: Table, coef: np.ndarray, dtype: np.dtype, by_code: bool) -> Form:
    """One group of outputs in the loops' layout."""
    d, bins, powers, outputs = coef.shape
    lanes = lanes_for(outputs)
    flat = zeros(d * bins * powers * len(lanes), dtype)
    flat.reshape(d, bins, powers, len(lanes))[..., :outputs] = coef
    ends, floor, ceiling = np.zeros((2, d)), 0.0, 0.0
    edges, guide = _NO_EDGES, (np.zeros(0, np.uint16), *_NO_EDGES[::-1], _NO_EDGES[1], 0)
    sets = table.set_of
    if not by_code and table.binning == AFFINE:
        ends, floor, ceiling = _even(table, dtype)
    elif not by_code:
        far = float(np.finfo(dtype).max)
        ends = np.clip([table.low[sets], table.high[sets]], -far, far)
        edges, guide = (table.edges, table.edge_start), tuple(table.guide)
    kind = CODES if by_code else table.binning
    real = dtype.type
    block = powers * len(lanes)
    group = max(1, _REGISTER // (block * dtype.itemsize))
    shape = ((0,) * powers, lanes, (0,) * block, (0,) * group)
    return Form(
        (0,) * kind,
        ends.astype(dtype),
        real(floor),
        real(ceiling),
        bins,
        flat,
        *shape,
        *edges,
        guide,
    )


def _columns(table: Table, coef: np.ndarray, dtype: np.dtype) -> Columns:
    """The only output in the layout of vectors of rows."""
    d, bins, powers = coef.shape
    lanes = _REGISTER // dtype.itemsize
    registers = 1 << (-(-bins // lanes) - 1).bit_length()
    if registers <= _REGISTERS:
        coef = np.pad(coef, ((0, 0), (0, registers * lanes - bins), (0, 0))).transpose(0, 2, 1)
    else:
        registers = 0
    flat = zeros(coef.size, dtype)
    flat.reshape(coef.shape)[...] = coef
    ends, floor, ceiling = _even(table, dtype)
    real = dtype.type
    return Columns(
        ends,
        real(floor),
        real(ceiling),
        real(bins - 1),
        flat,
        flat.size // d,
        power=(0,) * powers,
        registers=(0,) * registers,
        lanes=(0,) * lanes,
    )


def _even(table: Table, dtype: np.dtype) -> tuple[np.ndarray, float, float]:
    """Origin and scale of even bins, and the range of t.

    The scale is made smaller by a few units in the last place where the upper end would be mapped
    beyond the last bin: values at the end are inside the domain.
    """
    sets = table.set_of
    lo, scale = table.lo[sets].astype(dtype), table.scale[sets].astype(dtype)
    if not np.isfinite(table.high).all():
        far = float(np.finfo(dtype).max)
        return np.stack([lo, scale]), -far, far
    high, bins = table.high[sets].astype(dtype), dtype.type(table.bins[0])
    with np.errstate(divide="ignore"):  # a range that this precision does not see
        scale = np.where((high - lo) * scale > bins, bins / (high - lo), scale)
    while ((high - lo) * scale > bins).any():
        scale = np.where((high - lo) * scale > bins, np.nextafter(scale, dtype.type(0)), scale)
    return np.stack([lo, scale]), 0.0, float(bins)


def sums(found: Forms, X: Any, out: np.ndarray, n_jobs: int | None) -> float:
    """Add the outputs of all rows to `out`; how far values were from the domain, in all.

    Zero if none was outside; not finite if one is not finite.
    """
    grain = max(1, _GRAIN // (X.shape[1] * out.shape[1]))

    def work(begin: int, end: int) -> float:
        beyond = 0.0
        for own, form in found:
            part = out if len(found) == 1 else np.zeros((len(out), own.stop - own.start))
            if isinstance(form, Columns):
                height = _HEIGHT[len(form.registers) > 0] * len(form.lanes)
                step = -(-X.shape[1] // -(-X.shape[1] // _WIDTH))  # parts of about one size
                beyond += columns(form, X, begin, end, height, step, part)
            elif sparse.issparse(X):
                longest = int(np.diff(X.indptr[begin : end + 1]).max(initial=1))
                beyond += csr(form, X.data, X.indices, X.indptr, begin, end, longest, part)
            else:
                bytes_ = form.coef.nbytes // X.shape[1]
                step = min(X.shape[1], max(_FEATURES, _CODE_BYTES // max(bytes_, 1)))
                beyond += dense(form, X, begin, end, step, part)
            if len(found) > 1:
                out[begin:end, own] += part[begin:end]
        return beyond

    return sum(in_threads(work, X.shape[0], n_jobs, grain))
