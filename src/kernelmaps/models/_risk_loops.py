"""Compiled sums over the rows at risk, from late times to early ones."""

from __future__ import annotations

import numpy as np

from .._util.compiling import INNER, loop, njit


@loop()
def cumulate(values: np.ndarray, resets: np.ndarray, running: np.ndarray) -> None:
    """Replace rows by running sums, which begin anew at resets; `running` is carried over."""
    for r in range(values.shape[0]):
        if resets[r]:
            running[:] = 0.0
        for k in range(values.shape[1]):
            running[k] += values[r, k]
            values[r, k] = running[k]


@njit(**INNER)
def _add(tree, rank, weight):
    """Add a weight at a rank."""
    k = rank + 1
    while k < tree.size:
        tree[k] += weight
        k += k & -k


@njit(**INNER)
def _sum_below(tree, rank):
    """Sum of the weights of lower ranks."""
    total, k = 0.0, rank
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@loop()
def count_pairs(
    rows: np.ndarray, signs: np.ndarray, ends: np.ndarray, events: np.ndarray,
    event_ends: np.ndarray, ranks: np.ndarray, weight: np.ndarray, tree: np.ndarray,
    totals: np.ndarray,
) -> None:  # fmt: skip
    """Weights of the pairs of an event and a row that is at risk beyond it, by their ranks.

    Adds to `totals` the pairs where the row's rank is lower than that of the event, and those where
    it is the same. `rows` enter the risk set or leave it (`signs`); `ends` says how many have done
    so at the time of each set of `events`, which end at `event_ends`. `ranks` has that of each row,
    and the lowest one of its stratum. `tree` holds sums of weights by rank (Fenwick 1994).
    """
    next_row, begin = 0, 0
    for t in range(ends.size):
        while next_row < ends[t]:
            _add(tree, ranks[rows[next_row], 0], signs[next_row] * weight[rows[next_row]])
            next_row += 1
        end = event_ends[t]
        for k in range(begin, end):  # those of the same time are in no pair
            _add(tree, ranks[events[k], 0], -weight[events[k]])
        for k in range(begin, end):
            i = events[k]
            below = _sum_below(tree, ranks[i, 0])
            totals[0] += weight[i] * (below - _sum_below(tree, ranks[i, 1]))
            totals[1] += weight[i] * (_sum_below(tree, ranks[i, 0] + 1) - below)
        for k in range(begin, end):
            _add(tree, ranks[events[k], 0], weight[events[k]])
        begin = end
