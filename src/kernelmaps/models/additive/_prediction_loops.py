"""Compiled loops of prediction: the sum over the features of one local polynomial each.

A trained model is a :class:`Form`: for every feature and bin the coefficients of its outputs, and
nothing of the basis that it was trained with.  A row takes two passes, as in
:mod:`kernelmaps.engine._loops`: the first finds bins and positions and is plain arithmetic on
contiguous numbers, which the compiler vectorises; the second loads, for each value, one block of
coefficients ``[power][output]``, multiplies it by the powers of the position and adds it up, all
in registers.

A model of one output on dense rows and even bins (:class:`Columns`) does better with rows side by
side: squares of the rows are transposed, and a vector then holds one feature of several rows. Their
coefficients come out of a register or a few, in which a feature's table fits, by one permutation or
a few for each power; of larger tables the blocks of coefficients are loaded and transposed, too.

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

from ...engine._loops import _locate_edges
from ...engine.simd import (
    Vector,
    add,
    between,
    bin_and_rest,
    fill,
    fold,
    from_origin,
    gather_blocks,
    llvm,
    load,
    look_up,
    mask,
    multiply_add,
    plus_distance,
    prefetch,
    repeat,
    side_by_side,
    store,
    store_places,
    transpose,
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


class Columns(NamedTuple):
    """A trained model of one output as local polynomials in even bins."""

    ends: np.ndarray  # [2, feature]: lo, scale of t = (x - lo) * scale
    floor: float  # t is clipped to floor ... ceiling
    ceiling: float
    last: float  # bin
    coef: np.ndarray  # flat: [feature][power][bin] for registers, [feature][bin][power] else
    table: int  # numbers of a feature
    power: tuple  # length: coefficients of a polynomial
    registers: tuple  # length: vectors that hold a coefficient in all bins; 0: too many
    lanes: tuple  # length: rows of a vector


@intrinsic
def _powers(typing_context, values, size):
    """The powers 1, u, u^2, ... of each value, ``len(size)`` (a power of two) in a row."""
    kind = Vector(values.dtype, values.size * len(size))

    def build(context, builder, signature, args):
        spread = mask([k // len(size) for k in range(kind.size)])
        factor = builder.shuffle_vector(args[0], args[0], spread)
        product = one = ir.Constant(factor.type, [1.0] * kind.size)
        for bit in range(len(size).bit_length() - 1):
            has = [k >> bit & 1 for k in range(kind.size)]
            lanes = ir.Constant(ir.VectorType(ir.IntType(1), kind.size), has)
            chosen = builder.select(lanes, factor, one)
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
        vector, long = llvm(Vector(coef.dtype, size)), ir.IntType(64)
        parts = []
        for k in range(len(group)):
            at = builder.load(builder.gep(places, [builder.add(args[3], long(k))]))
            at = builder.mul(builder.add(builder.sext(at, long), args[1]), long(size))
            where = builder.bitcast(builder.gep(table, [at]), ir.PointerType(vector))
            parts.append(builder.load(where, align=coef.dtype.bitwidth // 8))
        return side_by_side(builder, parts)

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


@njit(**_inner)
def _permuted(form, d, b, u):
    """The polynomials of feature d in bins b, at u: Horner's rule, a coefficient at a time."""
    apart = len(form.registers) * len(form.lanes)
    at = (d + 1) * form.table - apart
    value = look_up(form.coef, at, b, form.registers)
    for _ in range(len(form.power) - 1):
        at -= apart
        value = multiply_add(value, u, look_up(form.coef, at, b, form.registers))
    return value


@njit(**_inner)
def _column(form, x, at, rows, d, place, sums, beyond):
    """Add the polynomials of feature d at x[at : at + rows] to the sums, whole vectors of rows."""
    lo, scale = fill(x, form.ends[0, d], form.lanes), fill(x, form.ends[1, d], form.lanes)
    floor, ceiling = fill(x, form.floor, form.lanes), fill(x, form.ceiling, form.lanes)
    last = fill(x, form.last, form.lanes)
    for r in range(0, rows, len(form.lanes)):
        t = from_origin(load(x, at + r, form.lanes), lo, scale)
        inside = between(t, floor, ceiling)  # a NaN, too
        beyond = plus_distance(beyond, inside, t)
        b, u = bin_and_rest(inside, last)
        if len(form.registers) > 0:
            store(sums, r, add(load(sums, r, form.lanes), _permuted(form, d, b, u)))
        else:
            store(x, at + r, u)
            store_places(place, r, b, form.power)
    if len(form.registers) == 0:
        for k in range((d + 1) * form.table, (d + 2) * form.table, 64 // form.coef.itemsize):
            prefetch(form.coef, k)  # of the next feature
        for r in range(0, rows, len(form.lanes)):
            u = load(x, at + r, form.lanes)
            c = gather_blocks(form.coef, d * form.table, place, r, form.power, form.lanes)
            value = c[len(form.power) - 1]
            for k in range(len(form.power) - 2, -1, -1):
                value = multiply_add(value, u, c[k])
            store(sums, r, add(load(sums, r, form.lanes), value))
    return beyond


@njit(**_inner)
def _turn(X, i, rows, a, b, apart, lanes, turned):
    """turned[j · apart + r] = X[i + r, a + j], j < b − a; vectors end with the last row again."""
    n, width = len(lanes), X.shape[1]
    square = rows >= n and b - a >= n
    for s in range(0, rows if square else 0, n):
        r = min(s, rows - n)  # the last square overlaps the one before
        for k in range(0, b - a, n):
            j = min(k, b - a - n)
            transpose(X, (i + r) * width + a + j, width, turned, j * apart + r, apart, lanes)
    for j in range(b - a):
        for r in range(rows if square else 0, rows + -rows % n):
            turned[j * apart + r] = X[i + min(r, rows - 1), a + j]


@njit(**_options)
def columns(form, X, begin, end, height, step, out):
    """out[i, 0] += the sums of rows begin..end; returns how far values were from the domain.

    `height` rows (whole vectors) and `step` features at a time.
    """
    n, width = len(form.lanes), X.shape[1]
    apart = height + n  # columns that begin at multiples of 4096 bytes would share a cache's places
    turned, sums = np.zeros(step * apart, form.coef.dtype), np.zeros(height, form.coef.dtype)
    place = np.zeros(height, np.int64)
    beyond = zeros(form.coef, form.lanes)
    for i in range(begin, end, height):
        rows = min(height, end - i)
        for a in range(0, width, step):
            b = min(a + step, width)
            _turn(X, i, rows, a, b, apart, form.lanes, turned)
            sums[:] = 0
            for d in range(a, b):
                at, whole = (d - a) * apart, rows + -rows % n
                beyond = _column(form, turned, at, whole, d, place, sums, beyond)
            for r in range(rows):
                out[i + r, 0] += sums[r]
    store(sums, 0, beyond)
    return sums[:n].sum()
