"""Compiled dynamic programming for exact weighted k-means of sorted numbers.

Costs are differences of running sums of squares, from which little is left for a cluster far from
the origin of the sums. `Sums.wide` therefore keeps the rounding errors of the sums beside them and
takes the differences with twice the digits ("double-double", after Dekker and Knuth).
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from ..engine.table.entry import INNER, entry


class Sums(NamedTuple):
    """Running sums Σw, Σwx and Σwx² of the first i values; with their rounding errors if wide."""

    mass: np.ndarray
    first: np.ndarray
    second: np.ndarray
    first_error: np.ndarray
    second_error: np.ndarray
    wide: bool


class Room(NamedTuple):
    """Memory (made in Python: code that allocates takes long to compile)."""

    before: np.ndarray  # least cost of the first i values in so many clusters
    now: np.ndarray  # and in one more
    split: np.ndarray  # int32[clusters, i]: where the last of them begins
    stack: np.ndarray  # int64[:, 4]: ranges that are left


@nb.njit(cache=True, inline="always")
def _two_sum(a, b):
    """a + b and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@nb.njit(cache=True, inline="always")
def _two_product(a, b):
    """a b and its rounding error (Dekker)."""
    product = a * b
    high_a, high_b = 134217729.0 * a, 134217729.0 * b
    high_a, high_b = high_a - (high_a - a), high_b - (high_b - b)
    low_a, low_b = a - high_a, b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, error


@nb.njit(cache=True, error_model="numpy", inline="always")
def _cost(mass, first, second, i, j):
    """Weighted sum of squares of the values i … j − 1 about their mean, from running sums."""
    total = first[j] - first[i]
    return max(second[j] - second[i] - total * total / (mass[j] - mass[i]), 0.0)


@nb.njit(cache=True, error_model="numpy", inline="always")
def _wide_cost(sums, i, j):
    """The same with twice the digits."""
    mass = sums.mass[j] - sums.mass[i]
    total, lost = _two_sum(sums.first[j], -sums.first[i])
    lost += sums.first_error[j] - sums.first_error[i]
    square, more = _two_product(total, total)
    more += 2 * total * lost
    mean = square / mass
    product, error = _two_product(mean, mass)
    rest = ((square - product) - error + more) / mass
    squares, missing = _two_sum(sums.second[j], -sums.second[i])
    missing += sums.second_error[j] - sums.second_error[i]
    return max((squares - mean) + (missing - rest), 0.0)


@nb.njit(**INNER)
def _run(values, weights, sums):
    """The running sums of some values."""
    for i in range(values.size):
        sums.mass[i + 1] = sums.mass[i] + weights[i]
        product, error = _two_product(weights[i], values[i])
        square, more = _two_product(product, values[i])
        sums.first[i + 1], lost = _two_sum(sums.first[i], product)
        sums.first_error[i + 1] = sums.first_error[i] + (lost + error)
        sums.second[i + 1], lost = _two_sum(sums.second[i], square)
        sums.second_error[i + 1] = sums.second_error[i] + (lost + more + error * values[i])


@nb.njit(**INNER)
def _best(before, sums, low, high, m):
    """The least of before[i] + cost(i, m) over low ≤ i ≤ high, and where it is."""
    best, where = np.inf, low
    mass, first, second = sums.mass, sums.first, sums.second
    for i in range(low, high + 1):
        value = before[i] + _cost(mass, first, second, i, m)
        if value < best:
            best, where = value, i
    return best, where


@nb.njit(**INNER)
def _wide_best(before, sums, low, high, m):
    """The same with twice the digits."""
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
        if sums.wide:
            best, where = _wide_best(before, sums, low, last, middle)
        else:
            best, where = _best(before, sums, low, last, middle)
        now[middle], split[k, middle] = best, where
        if left < middle:
            depth = _push(stack, depth, left, middle - 1, low, where)
        if middle < right:
            depth = _push(stack, depth, middle + 1, right, where, high)


@entry()
def _splits(values, weights, sums, room, starts):
    """First index of each cluster, into `starts`; returns their cost."""
    before, now, split, m = room.before, room.now, room.split, values.size
    _run(values, weights, sums)
    for j in range(1, m + 1):
        before[j] = _wide_cost(sums, 0, j)
    for k in range(2, starts.size + 1):
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
    mass, first, second, first_error, second_error = np.zeros((5, m + 1))
    sums = Sums(mass, first, second, first_error, second_error, wide)
    before, now = np.full((2, m + 1), np.inf)
    split, stack = np.zeros((n + 1, m + 1), np.int32), np.empty((256, 4), np.int64)
    starts = np.zeros(n, np.int64)
    cost = _splits(values, weights, sums, Room(before, now, split, stack), starts)
    return starts, float(cost), float(2.0**-52 * np.sqrt(m) * sums.second[m])
