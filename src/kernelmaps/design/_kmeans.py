"""Compiled dynamic programming for exact weighted k-means of sorted numbers."""

import numba as nb
import numpy as np


@nb.njit(cache=True, error_model="numpy", inline="always")
def _cost(mass, first, second, i, j):
    """Weighted sum of squares of the values i … j − 1 about their mean, from running sums."""
    total = first[j] - first[i]
    return max(second[j] - second[i] - total * total / (mass[j] - mass[i]), 0.0)


@nb.njit(cache=True, error_model="numpy")
def _layer(before, now, split, least, mass, first, second, stack):
    """now[m] = min_i before[i] + cost(i, m) for all m ≥ least, middle first: the best i grows."""
    m = len(now) - 1
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = least, m, least - 1, m - 1
    depth = 1
    while depth > 0:
        depth -= 1
        left, right, low, high = stack[depth]
        middle = (left + right) // 2
        best, where = np.inf, low
        for i in range(low, min(middle - 1, high) + 1):
            value = before[i] + _cost(mass, first, second, i, middle)
            if value < best:
                best, where = value, i
        now[middle], split[middle] = best, where
        if left < middle:
            stack[depth] = (left, middle - 1, low, where)
            depth += 1
        if middle < right:
            stack[depth] = (middle + 1, right, where, high)
            depth += 1


@nb.njit(cache=True, error_model="numpy")
def optimal_splits(values, weights, n):
    """First index of each of the n clusters of least weighted sum of squares."""
    m = len(values)
    mass, first, second = np.zeros(m + 1), np.zeros(m + 1), np.zeros(m + 1)
    for i in range(m):
        mass[i + 1] = mass[i] + weights[i]
        first[i + 1] = first[i] + weights[i] * values[i]
        second[i + 1] = second[i] + weights[i] * values[i] * values[i]
    before, now = np.full(m + 1, np.inf), np.full(m + 1, np.inf)
    split = np.zeros((n + 1, m + 1), np.int32)
    stack = np.empty((256, 4), np.int64)
    for j in range(1, m + 1):
        before[j] = _cost(mass, first, second, 0, j)
    for k in range(2, n + 1):
        now[:] = np.inf
        _layer(before, now, split[k], k, mass, first, second, stack)
        before, now = now, before
    starts = np.zeros(n, np.int64)
    end = m
    for k in range(n, 1, -1):
        end = split[k, end]
        starts[k - 1] = end
    return starts
