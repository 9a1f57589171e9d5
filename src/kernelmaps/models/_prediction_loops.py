"""Compiled loops of prediction: the sum over the features of one local polynomial each.

A trained model is a :class:`Form`: for every feature and bin the coefficients of its outputs, and
nothing of the basis that it was trained with.  A row takes two passes, as in
:mod:`kernelmaps.engine._loops`: the first finds bins and positions and is plain arithmetic on
contiguous numbers, which the compiler vectorises; the second loads, for each value, one block of
coefficients ``[power][output]``, multiplies it by the powers of the position and adds it up, all
in registers.

The first pass also says by how much values were outside the domain, and whether all were finite:
nobody has to look at them before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic

from ..engine._loops import _locate_edges
from ..engine._vectors import (
    Vector,
    _llvm,
    _mask,
    add,
    fold,
    load,
    multiply_add,
    prefetch,
    repeat,
    store,
    zeros,
)

AFFINE, LOG2, EDGES, CODES = range(4)

# A NaN must be seen: no "nnan".
_FAST = {"reassoc", "nsz", "arcp", "contract"}
_options = {"cache": True, "nogil": True, "fastmath": _FAST, "error_model": "numpy"}
_inner = {"fastmath": _FAST, "error_model": "numpy"}


class Form(NamedTuple):
    """A trained model as local polynomials, for a group of outputs (lanes)."""

    binning: tuple  # length AFFINE, EDGES or CODES
    ends: np.ndarray  # [2, feature]; AFFINE: lo, scale of t = (x - lo) * scale; EDGES: low, high
    floor: float  # AFFINE: t is clipped to floor ... ceiling, as EDGES' values to low ... high
    ceiling: float
    bins: int  # blocks of each feature
    coef: np.ndarray  # flat [feature][bin][power][lane]
    power: tuple  # length: coefficients of a polynomial, a power of two
    lanes: tuple  # length: outputs, a power of two
    block: tuple  # length: len(power) * len(lanes)
    group: tuple  # length: values whose blocks fill a register together
    edges: np.ndarray  # EDGES: the bins' ends, and a guide to them (engine.guide)
    edge_start: np.ndarray
    guide: tuple


@intrinsic
def _powers(typing_context, values, size):
    """The powers 1, u, u^2, ... of each value, ``len(size)`` (a power of two) in a row."""
    kind = Vector(values.dtype, values.size * len(size))

    def build(context, builder, signature, args):
        spread = _mask([k // len(size) for k in range(kind.size)])
        factor = builder.shuffle_vector(args[0], args[0], spread)
        product = one = ir.Constant(factor.type, [1.0] * kind.size)
        for bit in range(len(size).bit_length() - 1):
            has = [k >> bit & 1 for k in range(kind.size)]
            mask = ir.Constant(ir.VectorType(ir.IntType(1), kind.size), has)
            chosen = builder.select(mask, factor, one)
            product = chosen if bit == 0 else builder.fmul(product, chosen, flags=("fast",))
            factor = builder.fmul(factor, factor, flags=("fast",))
        return product

    return kind(values, size), build


@intrinsic
def _blocks(typing_context, coef, origin, place, offset, group, block):
    """Side by side: ``block`` numbers from ``(origin + place[offset + k]) * len(block)`` on."""
    size = len(block)
    kind = Vector(coef.dtype, len(group) * size)

    def build(context, builder, signature, args):
        table, places = (
            context.make_array(array)(context, builder, value).data
            for array, value in ((coef, args[0]), (place, args[2]))
        )
        vector, long = _llvm(Vector(coef.dtype, size)), ir.IntType(64)
        parts = []
        for k in range(len(group)):
            at = builder.load(builder.gep(places, [builder.add(args[3], long(k))]))
            at = builder.mul(builder.add(builder.sext(at, long), args[1]), long(size))
            where = builder.bitcast(builder.gep(table, [at]), ir.PointerType(vector))
            parts.append(builder.load(where, align=coef.dtype.bitwidth // 8))
        while len(parts) > 1:
            mask = _mask(range(2 * parts[0].type.count))
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [builder.shuffle_vector(a, b, mask) for a, b in pairs]
        return parts[0]

    return kind(coef, types.int64, place, types.int64, group, block), build


@njit(**_inner)
def _clip(x, low, high, size):
    """Values within the domain, and by how much they were not: not zero for a NaN, either."""
    beyond = size.dtype.type(0)
    for d in range(x.size):
        value = size.dtype.type(x[d])
        inside = value if value > low[d] else low[d]
        inside = inside if inside < high[d] else high[d]
        beyond += abs(inside - value)
        size[d] = inside
    return beyond


@njit(**_inner)
def _locate_affine(x, lo, scale, floor, ceiling, bins, u, place):
    """Blocks and positions of values in even bins; by how much they were outside."""
    last, nought, beyond = u.dtype.type(bins - 1), u.dtype.type(0), u.dtype.type(0)
    for d in range(x.size):
        t = (u.dtype.type(x[d]) - lo[d]) * scale[d]
        inside = t if t > floor else floor  # a NaN, too
        inside = inside if inside < ceiling else ceiling
        beyond += abs(inside - t)
        whole = inside if inside > nought else nought
        whole = whole if whole < last else last
        b = np.int32(whole)
        place[d] = np.int32(d) * np.int32(bins) + b
        u[d] = inside - u.dtype.type(b)
    return beyond


@njit(**_inner)
def _locate_uneven(form, x, features, low, high, u, place):
    """The same between edges."""
    beyond = _clip(x, low, high, u)
    guide, start, scale, key, shift = form.guide
    width = form.edge_start.size
    nothing, one = np.zeros(width, np.int64), np.ones(width, np.int64)
    bin_of = np.empty(x.size, np.int64)
    _locate_edges(
        u[: x.size], features, form.edges, form.edge_start, nothing, one,
        guide, start, scale, key, shift, bin_of, place, u,
    )  # fmt: skip
    for d in range(x.size):
        place[d] += np.int32(d) * np.int32(form.bins)
    return beyond


@njit(**_inner)
def _locate(form, x, features, first, second, u, place):
    """First pass: block d·bins + b of the d-th value, and u; not 0 if one was outside the domain.

    `first` and `second` hold the two numbers of `form.ends` for these features.
    """
    if len(form.binning) == CODES:
        for d in range(x.size):
            place[d] = np.int32(d) * np.int32(form.bins) + np.int32(x[d])
        return u.dtype.type(0)
    if len(form.binning) == EDGES:
        return _locate_uneven(form, x, features, first, second, u, place)
    return _locate_affine(x, first, second, form.floor, form.ceiling, form.bins, u, place)


@njit(**_inner)
def _values(form, group, origin, place, u, k, total):
    """Add the polynomials of ``len(group)`` values, the k-th and those after it."""
    factors = repeat(_powers(load(u, k, group), form.power), form.lanes)
    return multiply_add(_blocks(form.coef, origin, place, k, group, form.block), factors, total)


@njit(**_inner)
def _sum(form, origin, place, u, count, out):
    """``out[lane]`` = sum of the polynomials; four sums at a time hide the latency of the adds."""
    n = len(form.group)
    a = repeat(zeros(form.coef, form.block), form.group)
    b, c, d = a, a, a
    whole = count - count % (4 * n)
    for k in range(0, whole, 4 * n):
        a = _values(form, form.group, origin, place, u, k, a)
        b = _values(form, form.group, origin, place, u, k + n, b)
        c = _values(form, form.group, origin, place, u, k + 2 * n, c)
        d = _values(form, form.group, origin, place, u, k + 3 * n, d)
    rest = zeros(form.coef, form.block)
    for k in range(whole, count):
        rest = _values(form, (0,), origin, place, u, k, rest)
    total = fold(add(add(a, b), add(c, d)), form.lanes)
    store(out, 0, add(total, fold(rest, form.lanes)))


@njit(**_options)
def dense(form, X, begin, end, step, out):
    """out[i, lane] += the sums of rows begin..end; returns how far values were from the domain.

    `step` features at a time, whose coefficients stay in the cache for all of these rows.
    """
    width = X.shape[1]
    u, place = np.zeros(step, form.coef.dtype), np.zeros(step, np.int32)
    features = np.arange(width).astype(np.int32)
    sums = np.zeros(len(form.lanes), form.coef.dtype)
    beyond = 0.0
    for a in range(0, width, step):
        b = min(a + step, width)
        first, second = form.ends[0, a:b], form.ends[1, a:b]
        for i in range(begin, end):
            beyond += _locate(form, X[i, a:b], features[a:b], first, second, u, place)
            if i + 1 < end:
                for k in range(i * width + width + a, i * width + width + b, 64 // X.itemsize):
                    prefetch(X, k)
            _sum(form, a * form.bins, place, u, b - a, sums)
            for lane in range(out.shape[1]):
                out[i, lane] += sums[lane]
    return beyond


@njit(**_options)
def csr(form, data, indices, indptr, begin, end, step, out):
    """The same for CSR rows; features that are not stored add nothing.  (`step`: one row.)"""
    u, place = np.zeros(step, form.coef.dtype), np.zeros(step, np.int32)
    first, second = np.zeros(step, form.ends.dtype), np.zeros(step, form.ends.dtype)
    sums = np.zeros(len(form.lanes), form.coef.dtype)
    beyond = 0.0
    for i in range(begin, end):
        count = indptr[i + 1] - indptr[i]
        features = indices[indptr[i] : indptr[i + 1]]
        for k in range(count):
            first[k], second[k] = form.ends[0, features[k]], form.ends[1, features[k]]
        x = data[indptr[i] : indptr[i + 1]]
        beyond += _locate(form, x, features, first, second, u, place)
        for k in range(count):
            place[k] += (features[k] - np.int32(k)) * np.int32(form.bins)
        _sum(form, 0, place, u, count, sums)
        for lane in range(out.shape[1]):
            out[i, lane] += sums[lane]
    return beyond
