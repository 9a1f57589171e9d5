"""Compiled dynamic programming for exact weighted k-means of sorted numbers.

Costs are differences of running sums of squares, from which little is left for a cluster far from
the origin of the sums. `Sums.wide` therefore keeps the rounding errors of the sums beside them and
takes the differences with twice the digits ("double-double", after Dekker and Knuth).
"""

from typing import NamedTuple

import numba as nb
import numpy as np


class Sums(NamedTuple):
    """Running sums Σw, Σwx and Σwx² of the first i values; with their rounding errors if wide."""

    mass: np.ndarray
    first: np.ndarray
    second: np.ndarray
    first_error: np.ndarray
    second_error: np.ndarray
    wide: bool


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


@nb.njit(cache=True, error_model="numpy")
def _running_sums(values, weights, wide):
    m = len(values)
    zero = np.zeros(m + 1)
    sums = Sums(zero, zero.copy(), zero.copy(), zero.copy(), zero.copy(), wide)
    for i in range(m):
        sums.mass[i + 1] = sums.mass[i] + weights[i]
        product, error = _two_product(weights[i], values[i])
        square, more = _two_product(product, values[i])
        sums.first[i + 1], lost = _two_sum(sums.first[i], product)
        sums.first_error[i + 1] = sums.first_error[i] + (lost + error)
        sums.second[i + 1], lost = _two_sum(sums.second[i], square)
        sums.second_error[i + 1] = sums.second_error[i] + (lost + more + error * values[i])
    return sums


@nb.njit(cache=True, error_model="numpy")
def _best(before, sums, low, high, m):
    """The least of before[i] + cost(i, m) over low ≤ i ≤ high, and where it is."""
    best, where = np.inf, low
    mass, first, second = sums.mass, sums.first, sums.second
    for i in range(low, high + 1):
        value = before[i] + _cost(mass, first, second, i, m)
        if value < best:
            best, where = value, i
    return best, where


@nb.njit(cache=True, error_model="numpy")
def _wide_best(before, sums, low, high, m):
    """The same with twice the digits."""
    best, where = np.inf, low
    for i in range(low, high + 1):
        value = before[i] + _wide_cost(sums, i, m)
        if value < best:
            best, where = value, i
    return best, where


@nb.njit(cache=True, error_model="numpy")
def _layer(before, now, split, least, sums, stack):
    """now[m] = min_i before[i] + cost(i, m) for all m ≥ least, middle first: the best i grows."""
    m = len(now) - 1
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = least, m, least - 1, m - 1
    depth = 1
    while depth > 0:
        depth -= 1
        left, right, low, high = stack[depth]
        middle = (left + right) // 2
        last = min(middle - 1, high)
        if sums.wide:
            best, where = _wide_best(before, sums, low, last, middle)
        else:
            best, where = _best(before, sums, low, last, middle)
        now[middle], split[middle] = best, where
        if left < middle:
            stack[depth] = (left, middle - 1, low, where)
            depth += 1
        if middle < right:
            stack[depth] = (middle + 1, right, where, high)
            depth += 1


@nb.njit(cache=True, error_model="numpy")
def optimal_splits(values, weights, n, wide):
    """First index of each of the n clusters of least weighted sum of squares.

    Also returned: the cost, and the size of the rounding errors in it.
    """
    m = len(values)
    sums = _running_sums(values, weights, wide)
    before, now = np.full(m + 1, np.inf), np.full(m + 1, np.inf)
    split = np.zeros((n + 1, m + 1), np.int32)
    stack = np.empty((256, 4), np.int64)
    for j in range(1, m + 1):
        before[j] = _wide_cost(sums, 0, j)
    for k in range(2, n + 1):
        now[:] = np.inf
        _layer(before, now, split[k], k, sums, stack)
        before, now = now, before
    starts = np.zeros(n, np.int64)
    end = m
    for k in range(n, 1, -1):
        end = split[k, end]
        starts[k - 1] = end
    return starts, before[m], 2.0**-52 * np.sqrt(m) * sums.second[m]
