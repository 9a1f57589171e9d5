"""Launch of the GPU kernels, one function for each.

Arrays are torch tensors on a GPU; nothing here is particular to torch, so that the tests run the
same code on NumPy arrays.
"""

from __future__ import annotations

from math import gcd
from typing import Any, NamedTuple

from ..._util.threads import power_of_two
from ..table.stored import LOG2
from .tables import COLUMNS, DeviceCodes, DeviceSums, DeviceTable

ANY, FINITE, NON_NEGATIVE = range(3)
VALUES = 32  # that a program locates at a time: one for each of its threads
STEPS = 8  # how often it does so
SHARES = 16  # of the features of a sum, at most
FUSED = {"enable_fp_fusion": True}  # products are added unrounded, whatever Triton's default is


class Sizes(NamedTuple):
    """What a program does at a time, which its compiler knows; each kernel has its own few."""

    tile: int = 0  # values (a field of that name would be hidden by that of Triton's tuples)
    rows: int = 0
    columns: int = 0
    features: int = 0
    steps: int = 1


def transform(table: DeviceTable, X: Any, out: Any, flag: Any, check: int) -> None:
    """φ(X) into `out`; the flag is set where `check` finds a value that it refuses."""
    from . import kernels

    n, d = X.shape
    n_columns = int(table.n_columns)
    columns = min(COLUMNS, power_of_two(n_columns))
    # Octaves of few columns: two for each thread, which has registers left.
    values = 2 * VALUES if table.bins.kind == LOG2 and columns <= 8 else VALUES
    group = values // gcd(values, d)  # rows of which whole tiles are made
    grid = (-(-n // (group * STEPS)), group * d // values, -(-n_columns // columns))
    sizes = Sizes(tile=values, columns=columns, steps=STEPS)
    kernels.transform[grid](X, out, flag, n, group, table, check, sizes, num_warps=1, **FUSED)


def dot(table: DeviceSums, X: Any, flag: Any, check: int, empty: Any) -> Any:
    """Sums over the features, in shares of them: (shares, n, outputs), made by ``empty(shape)``.

    Adding the shares in their order gives the same numbers every time.
    """
    from . import kernels

    n, d = X.shape
    columns = min(COLUMNS, power_of_two(table.outputs))
    rows, features = (32, 4) if columns > 4 else (16, 8)
    split = -(-d // (SHARES * features)) * features
    shares = -(-d // split)
    out = empty((shares, n, table.outputs))
    grid = (-(-n // rows), shares, -(-table.outputs // columns))
    sizes = Sizes(rows=rows, features=features, columns=columns)
    kernels.dot[grid](X, out, flag, n, split, table, check, sizes, num_warps=rows // 16, **FUSED)
    return out


def encode(table: DeviceCodes, X: Any, out: Any, flag: Any) -> None:
    """Codes of X into `out`; the flag is set by values outside their feature's range."""
    from . import kernels

    count, size = X.shape[0] * X.shape[1], 1024
    kernels.encode[(-(-count // size),)](
        X, out, flag, count, X.shape[1], table, size,
        enable_fp_fusion=False,  # products are rounded before they are added, as on the processor
    )  # fmt: skip
