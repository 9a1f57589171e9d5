"""φ of a table, value by value, from what `Table` says of its fields and nothing else.

The readable form, the compiled loops and the exports all read the layout that is built from a
table: this is the one form that does not.
"""

import math

import numpy as np

from kernelmaps.engine.table import AFFINE, CODE, LOG2


def phi(table, X):
    """Columns of all rows."""
    out = np.zeros((len(X), table.n_columns))
    for i, row in enumerate(np.asarray(X, dtype=np.float64)):
        for j, x in enumerate(row):
            s = int(table.set_of[j])
            size = abs(x) if table.signed else x
            if table.zero_at_zero and x == 0:
                continue
            b, u = _bin(table, s, size)
            first, powers = int(table.first[table.first_start[s] + b]), table.degree + 1
            for c in range(int(table.band[s])):
                at = int(table.coef_start[s]) + b * powers * int(table.band[s]) + c
                value = sum(table.coef[at + k * int(table.band[s])] * u**k for k in range(powers))
                out[i, table.column[j] + first + c] = -value if table.signed and x < 0 else value
    return out


def _bin(table, s, x):
    """Bin and position of a number in a set."""
    last = int(table.bins[s]) - 1
    if table.binning == CODE:
        return int(x), 0.0
    x = min(max(x, float(table.clip_low[s])), float(table.clip_high[s]))
    lo, scale = float(table.origin[s]), float(table.resolution[s])
    if table.binning == AFFINE:
        t = (x - lo) * scale
        b = min(max(math.floor(t), 0), last)
        return b, t - b
    if table.binning == LOG2:
        end = 2.0 ** (lo + (last + 1) / 2**scale)
        fraction, exponent = math.frexp(min(max(x, 2.0**lo), math.nextafter(end, 0)))
        t = (2 * fraction - 1) * 2**scale
        return int((exponent - 1 - lo) * 2**scale) + math.floor(t), t % 1
    edges = table.edges[table.edge_start[s] :][: last + 2]
    b = max(k for k in range(last + 1) if k == 0 or edges[k] <= x)
    return b, (x - edges[b]) / (edges[b + 1] - edges[b])
