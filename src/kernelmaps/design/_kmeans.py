"""Compiled dynamic programming for exact weighted k-means of sorted numbers.

Costs are differences of running sums of squares, from which little is left for a cluster far from
the origin of the sums. `Sums.wide` therefore keeps the rounding errors of the sums beside them and
takes the differences with twice the digits ("double-double", after Dekker and Knuth).
"""

from typing import NamedTuple

import numba as nb
import numpy as np
from numba.extending import overload

from ..engine.table.entry import INNER, entry


class Sums(NamedTuple):
    """Running sums Σw, Σwx and Σwx² of the first i values; with their rounding errors if wide."""

    mass: np.ndarray
    first: np.ndarray
    second: np.ndarray
    first_error: np.ndarray
    second_error: np.ndarray
    wide: tuple  # length 1: costs with twice the digits, which are compiled where they are needed


class Room(NamedTuple):
    """Memory (made in Python: code that allocates takes long to compile)."""

    before: np.ndarray  # least cost of the first i values in so many clusters
    now: np.ndarray  # and in one more
    split: np.ndarray  # int32[clusters, i]: where the last of them begins
    stack: np.ndarray  # int64[:, 4]: ranges that are left


def _two_sum(a, b):
    """a + b and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a, b):
    """a b and its rounding error (Dekker)."""
    product = a * b
    high_a, high_b = 134217729.0 * a, 134217729.0 * b
    high_a, high_b = high_a - (high_a - a), high_b - (high_b - b)
    low_a, low_b = a - high_a, b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, error


def _running_sums(values: np.ndarray, weights: np.ndarray, wide: bool) -> Sums:
    """The running sums of some values: each is the rounded sum of the one before and a number."""
    product, error = _two_product(weights, values)
    square, more = _two_product(product, values)
    parts = []
    for numbers, own in ((product, error), (square, more + error * values)):
        total = np.append(0.0, np.cumsum(numbers))
        lost = _two_sum(total[:-1], numbers)[1]
        parts.append((total, np.append(0.0, np.cumsum(lost + own))))
    (first, first_error), (second, second_error) = parts
    mass = np.append(0.0, np.cumsum(weights))
    return Sums(mass, first, second, first_error, second_error, (0,) * wide)


@nb.njit(**INNER)
def _cost(mass, first, second, i, j):
    """Weighted sum of squares of the values i … j − 1 about their mean, from running sums."""
    total = first[j] - first[i]
    return max(second[j] - second[i] - total * total / (mass[j] - mass[i]), 0.0)


_added, _multiplied = nb.njit(**INNER)(_two_sum), nb.njit(**INNER)(_two_product)


@nb.njit(**INNER)
def _wide_cost(sums, i, j):
    """The same with twice the digits."""
    mass = sums.mass[j] - sums.mass[i]
    total, lost = _added(sums.first[j], -sums.first[i])
    lost += sums.first_error[j] - sums.first_error[i]
    square, more = _multiplied(total, total)
    more += 2 * total * lost
    mean = square / mass
    product, error = _multiplied(mean, mass)
    rest = ((square - product) - error + more) / mass
    squares, missing = _added(sums.second[j], -sums.second[i])
    missing += sums.second_error[j] - sums.second_error[i]
    return max((squares - mean) + (missing - rest), 0.0)


def _least(before, sums, low, high, m):
    """The least of before[i] + cost(i, m) over low ≤ i ≤ high, and where it is."""
    return (_wide_best if len(sums.wide) else _best)(before, sums, low, high, m)


@overload(_least, jit_options=INNER)
def _least_of(before, sums, low, high, m):
    return _wide_best if len(sums.types[sums.fields.index("wide")]) else _best


def _best(before, sums, low, high, m):
    best, where = np.inf, low
    mass, first, second = sums.mass, sums.first, sums.second
    for i in range(low, high + 1):
        value = before[i] + _cost(mass, first, second, i, m)
        if value < best:
            best, where = value, i
    return best, where


def _wide_best(before, sums, low, high, m):
    best, where = np.inf, low
    for i in range(low, high + 1):
        value = before[i] + _wide_cost(sums, i, m)
        if value < best:
            best, where = value, i
    return best, where


@nb.njit(**INNER)
def _push(stack, depth, left, right, low, high):
    stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = left, right, low, high
    return depth + 1


@nb.njit(**INNER)
def _layer(before, now, split, k, sums, stack):
    """now[m] = min_i before[i] + cost(i, m) for all m ≥ k, middle first: the best i grows."""
    m = now.size - 1
    depth = _push(stack, 0, k, m, k - 1, m - 1)
    while depth > 0:
        depth -= 1
        left, right = stack[depth, 0], stack[depth, 1]
        low, high = stack[depth, 2], stack[depth, 3]
        middle = (left + right) // 2
        last = min(middle - 1, high)
        best, where = _least(before, sums, low, last, middle)
        now[middle], split[k, middle] = best, where
        if left < middle:
            depth = _push(stack, depth, left, middle - 1, low, where)
        if middle < right:
            depth = _push(stack, depth, middle + 1, right, where, high)


@entry()
def _splits(sums, room, starts):
    """First index of each cluster, into `starts`; returns their cost."""
    before, now, split, m = room.before, room.now, room.split, room.now.size - 1
    for k in range(1, starts.size + 1):
        for j in range(m + 1):
            now[j] = np.inf
        _layer(before, now, split, k, sums, room.stack)
        before, now = now, before
    end = m
    for k in range(starts.size, 1, -1):
        end = np.int64(split[k, end])
        starts[k - 1] = end
    return before[m]


def optimal_splits(
    values: np.ndarray, weights: np.ndarray, n: int, wide: bool
) -> tuple[np.ndarray, float, float]:
    """First index of each of the n clusters of least weighted sum of squares.

    Also returned: the cost, and the size of the rounding errors in it.
    """
    m = len(values)
    sums = _running_sums(values, weights, wide)
    before, now = np.full((2, m + 1), np.inf)
    before[0] = 0.0  # nothing is in no cluster
    split, stack = np.zeros((n + 1, m + 1), np.int32), np.empty((256, 4), np.int64)
    starts = np.zeros(n, np.int64)
    cost = _splits(sums, Room(before, now, split, stack), starts)
    return starts, float(cost), float(2.0**-52 * np.sqrt(m) * sums.second[m])
