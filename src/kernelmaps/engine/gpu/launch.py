"""Launch of the GPU kernels, one function for each.

Arrays are torch tensors on a card; nothing here is particular to torch, so that the tests run the
same code on NumPy arrays.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from .tables import COLUMNS, DeviceCodes, DeviceSums, DeviceTable, power_of_two

__all__ = ["dot", "emit", "emit_stored", "encode", "hadamard", "waves"]

ANY, FINITE, NON_NEGATIVE = range(3)
VALUES = 32  # that a program locates at a time: one for each of its threads
STEPS = 4  # how often it does so
SHARES = 16  # of the features of a sum, at most


def emit(table: DeviceTable, X: Any, out: Any, flag: Any, check: int) -> None:
    """φ(X) into `out`; the flag is set where `check` finds a value that it refuses."""
    from . import kernels

    n, d = X.shape
    columns = min(COLUMNS, power_of_two(table.own))
    group = VALUES // gcd(VALUES, d)  # rows of which whole tiles are made
    grid = (-(-n // (group * STEPS)), group * d // VALUES, -(-table.own // columns))
    kernels.emit[grid](
        X, out, flag, n, d, group, table.width, table.padded, table.margin, table.column,
        table.count, table.first, table.coef, *table.bins, **table.constants, OWN=table.own,
        CHECK=check, VALUES=VALUES, COLUMNS=columns, STEPS=STEPS, num_warps=VALUES // 32,
    )  # fmt: skip


def emit_stored(
    table: DeviceTable, values: Any, features: Any, out: Any, to: Any, flag: Any, check: int
) -> None:
    """The stored columns of `values` of `features` into `out`, and their places into `to`."""
    from . import kernels

    columns = min(COLUMNS, power_of_two(table.band))
    constants = {name: v for name, v in table.constants.items() if name not in ("BANDED", "EVEN")}
    kernels.emit_stored[(-(-len(values) // VALUES), -(-table.band // columns))](
        values, features, out, to, flag, len(values), table.band, table.padded, table.margin,
        table.column, table.first, table.coef, *table.bins, **constants, CHECK=check, VALUES=VALUES,
        COLUMNS=columns,
    )  # fmt: skip


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
    kernels.dot[(-(-n // rows), shares, -(-table.outputs // columns))](
        X, out, flag, n, d, table.outputs, table.padded, split, table.coef, table.low, table.high,
        *table.bins, **table.constants, CHECK=check, ROWS=rows, FEATURES=features,
        COLUMNS=columns, num_warps=rows // 16,
    )  # fmt: skip
    return out


def encode(table: DeviceCodes, X: Any, out: Any, flag: Any) -> None:
    """Codes of X into `out`; the flag is set by values outside their feature's range."""
    from . import kernels

    count, size = X.shape[0] * X.shape[1], 1024
    kernels.encode[(-(-count // size),)](
        X, out, flag, count, X.shape[1], float(table.scale), 0.5 if table.scale > 1 else 0.0,
        table.low, table.high, *table.bins, **table.constants, VALUES=size,
    )  # fmt: skip


def waves(Z: Any, phases: Any, amplitudes: Any, paired: bool) -> None:
    """Angles in Z become cosines; those of a paired map have their sines in the second half."""
    from . import kernels

    n, stride = Z.shape
    width = stride // 2 if paired else stride
    columns = min(512, power_of_two(width))
    rows = max(1, 2048 // columns)
    kernels.waves[(-(-n // rows), -(-width // columns))](
        Z, phases, amplitudes, n, width, stride, PAIRED=paired, ROWS=rows, COLUMNS=columns
    )


def hadamard(X: Any, out: Any, signs: Any, to: Any, gains: Any) -> None:
    """Structured projections of rows; `signs` (blocks, rounds, size), `to` the place of each."""
    from . import kernels

    blocks, rounds, size = signs.shape
    kernels.hadamard[(X.shape[0], blocks)](
        X, out, signs, to, gains, X.shape[0], X.shape[1], out.shape[1],
        ROUNDS=rounds, LOG=size.bit_length() - 1, SIZE=size, num_warps=max(1, min(16, size // 256)),
    )  # fmt: skip
