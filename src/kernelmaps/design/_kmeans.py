"""Compiled dynamic programming for exact weighted k-means of sorted numbers.

Costs are differences of running sums of squares, from which little is left for a cluster far from
the origin of the sums. `RunningSums.wide` therefore keeps the rounding errors of the sums next to
them and takes the differences with twice the digits ("double-double", after Dekker and Knuth).
"""

from typing import NamedTuple

import numpy as np

from .._util.compiling import INNER, loop, njit, static
from ..engine.simd import item


class RunningSums(NamedTuple):
    """Running sums Σw, Σwx and Σwx² of the first i values; with their rounding errors if wide."""

    mass: np.ndarray
    linear: np.ndarray
    squares: np.ndarray
    linear_error: np.ndarray
    squares_error: np.ndarray
    wide: tuple  # static flag: costs with twice the digits, compiled where they are needed


def _two_sum(a, b):
    """a + b and its rounding error."""
    total = a + b
    b_rounded = total - a
    return total, (a - (total - b_rounded)) + (b - b_rounded)


def _two_product(a, b):
    """a b and its rounding error (Dekker)."""
    product = a * b
    high_a, high_b = 134217729.0 * a, 134217729.0 * b
    high_a, high_b = high_a - (high_a - a), high_b - (high_b - b)
    low_a, low_b = a - high_a, b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, error


def _running_sums(values: np.ndarray, weights: np.ndarray, wide: bool) -> RunningSums:
    """The running sums of some values: each is the rounded sum of the one before and a number."""
    product, error = _two_product(weights, values)
    square, square_error = _two_product(product, values)
    sums = []
    for terms, term_errors in ((product, error), (square, square_error + error * values)):
        total = np.append(0.0, np.cumsum(terms))
        sum_errors = _two_sum(total[:-1], terms)[1]
        sums.append((total, np.append(0.0, np.cumsum(sum_errors + term_errors))))
    (linear, linear_error), (squares, squares_error) = sums
    mass = np.append(0.0, np.cumsum(weights))
    return RunningSums(mass, linear, squares, linear_error, squares_error, static(wide))


_added, _multiplied = njit(**INNER)(_two_sum), njit(**INNER)(_two_product)


@njit(**INNER)
def _cost(sums, wide, i, j):
    """Weighted sum of squares of the values i … j − 1 about their mean, from running sums.

    `wide` is that of the sums, as an argument by itself: it decides what is compiled.
    """
    mass = item(sums.mass, j) - item(sums.mass, i)
    if len(wide) == 0:
        total = item(sums.linear, j) - item(sums.linear, i)
        return item(sums.squares, j) - item(sums.squares, i) - total * total / mass
    total, lost = _added(item(sums.linear, j), -item(sums.linear, i))
    lost += item(sums.linear_error, j) - item(sums.linear_error, i)
    square, more = _multiplied(total, total)
    more += 2 * total * lost
    mean = square / mass
    product, error = _multiplied(mean, mass)
    mean_error = ((square - product) - error + more) / mass
    squares, squares_error = _added(item(sums.squares, j), -item(sums.squares, i))
    squares_error += item(sums.squares_error, j) - item(sums.squares_error, i)
    return (squares - mean) + (squares_error - mean_error)


@loop(_nrt=False)
def _fill(sums, least, split, clusters, step):
    """D(k, m) = min_i D(k − 1, i) + cost(i, m) for all k ≤ clusters and m, and each best i.

    All are flat: `least` has two rows, that of k where k is even or odd, `split` one for every k.
    The best i grows with m: those of the multiples of 2·step beyond k − 1 bound the search of the
    ones between them. `step` begins with a power of two.
    """
    width = np.int64(sums.mass.size)
    for k in range(1, clusters + 1):
        old, new, best = (1 - k % 2) * width, (k % 2) * width, k * width
        half = step
        for m in range(k):  # fewer values than clusters
            least[new + m] = np.inf
        while half > 0:
            m = k - 1 + half
            while m < width:
                i = k - 1 if m - half < k else np.int64(item(split, best + m - half))
                last = m if m + half >= width else np.int64(item(split, best + m + half))
                smallest, where = np.inf, i
                while i <= last and i < m:
                    cost = _cost(sums, sums.wide, i, m)
                    value = item(least, old + i) + (cost if cost > 0 else 0.0)
                    if value < smallest:
                        smallest, where = value, i
                    i += 1
                least[new + m], split[best + m] = smallest, where
                m += 2 * half
            half >>= 1


def optimal_splits(
    values: np.ndarray, weights: np.ndarray, n: int, wide: bool
) -> tuple[np.ndarray, float, float]:
    """First index of each of the n clusters of least weighted sum of squares.

    Also returned: the cost, and the size of the rounding errors in it.
    """
    m = len(values)
    sums = _running_sums(values, weights, wide)
    least, split = np.full((2, m + 1), np.inf), np.zeros((n + 1, m + 1), np.int32)
    least[0, 0] = 0.0  # nothing is in no cluster
    _fill(sums, least.reshape(-1), split.reshape(-1), n, 1 << m.bit_length())
    starts = np.zeros(n, np.int64)
    end = m
    for k in range(n, 1, -1):
        starts[k - 1] = end = int(split[k, end])
    cost = float(least[n % 2, m])
    return starts, cost, float(2.0**-52 * np.sqrt(m) * sums.squares[m])
