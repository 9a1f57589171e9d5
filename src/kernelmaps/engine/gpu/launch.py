"""Launch of the GPU kernels, one function for each.

Arrays are torch tensors on a card; nothing here is particular to torch, so that the tests run the
same code on NumPy arrays.
"""

from __future__ import annotations

from typing import Any

from .tables import DeviceBins, DeviceTable

__all__ = ["dot", "emit", "emit_stored", "hadamard", "waves"]

TILE_COLUMNS = 256  # of the result, that a program writes at a time
TILE_ROWS = 8  # that it writes one after the other
ANY, FINITE, NON_NEGATIVE = range(3)


def _power_of_two(n: int) -> int:
    return 1 << max(0, int(n) - 1).bit_length()


def emit(table: DeviceTable, X: Any, out: Any, flag: Any, check: int) -> None:
    """φ(X) into `out`; the flag is set where `check` finds a value that it refuses."""
    from . import kernels

    n, d = X.shape
    columns = min(TILE_COLUMNS, _power_of_two(table.width))
    kernels.emit[(-(-n // TILE_ROWS), -(-table.width // columns))](
        X, out, flag, n, d, table.width, table.band, table.feature, table.within, table.first,
        table.coef, *table.bins, **table.constants, CHECK=check, ROWS=TILE_ROWS, COLUMNS=columns,
        VALUES=_power_of_two(min(d, columns // table.narrowest + 2)), num_warps=2,
    )  # fmt: skip


def emit_stored(
    table: DeviceTable, values: Any, features: Any, out: Any, to: Any, flag: Any, check: int
) -> None:
    """The stored columns of `values` of `features` into `out`, and their places into `to`."""
    from . import kernels

    kernels.emit_stored[(-(-len(values) * table.band // 512),)](
        values, features, out, to, flag, len(values), table.band, table.column, table.first,
        table.coef, *table.bins, **table.constants, CHECK=check, VALUES=512,
    )  # fmt: skip


def dot(
    bins: DeviceBins, constants: dict[str, Any], coef: Any, X: Any, out: Any, flag: Any, check: int
) -> None:
    """Add the sums over the features of their polynomials to `out` (n, outputs)."""
    from . import kernels

    n, d = X.shape
    outputs = out.shape[1]
    programs = -(-n * outputs // 256)
    # Enough programs to fill a card, whatever the number of rows.
    shares = max(1, min(-(-d // 32), 4096 // max(1, programs)))
    kernels.dot[(programs, shares)](
        X, out, flag, n, d, outputs, -(-d // shares), coef, *bins, **constants, CHECK=check,
        PLACES=256,
    )  # fmt: skip


def waves(Z: Any, phases: Any, amplitudes: Any, paired: bool) -> None:
    """Angles in Z become cosines; those of a paired map have their sines in the second half."""
    from . import kernels

    n, stride = Z.shape
    width = stride // 2 if paired else stride
    columns = min(512, _power_of_two(width))
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
