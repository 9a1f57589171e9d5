"""Launch of the GPU kernels, one function for each.

Arrays are torch tensors on a GPU; nothing here is particular to torch, so that the tests run the
same code on NumPy arrays.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple

from ..._util.threads import power_of_two
from ..table.stored import LOG2
from .tables import COLUMNS, DeviceCodes, DeviceSums, DeviceTable, constexpr, device_of

ANY, FINITE, NON_NEGATIVE = range(3)
VALUES = 32  # that a program locates at a time: one for each of its threads
STEPS = 8  # how often it does so
SHARES = 16  # of the features of a sum, at most
UNIT = 4  # numbers that a thread reads at a time
INNER = 32  # terms of a sum that a product takes at a time
FUSED = {"enable_fp_fusion": True}  # products are added unrounded, whatever Triton's default is
LEVELS = 5  # of a Hadamard transform at a time: a thread has 32 numbers


class Sizes(NamedTuple):
    """What a program does at a time, which its compiler knows; each kernel has its own few."""

    tile: int = 0  # values (a field of that name would be hidden by that of Triton's tuples)
    rows: int = 0
    columns: int = 0
    features: int = 0
    inner: int = 0  # terms of a sum
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


def transform_stored(
    table: DeviceTable, values: Any, features: Any, out: Any, to: Any, flag: Any, check: int
) -> None:
    """The stored columns of `values` of `features` into `out`, and their places into `to`."""
    from . import kernels

    n, columns = len(values), min(COLUMNS, power_of_two(table.band))
    grid = (-(-n // VALUES), -(-table.band // columns))
    sizes = Sizes(tile=VALUES, columns=columns)
    kernels.transform_stored[grid](
        values, out, flag, n, (features, to), table, check, sizes, **FUSED
    )


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


class Waves(NamedTuple):
    """Cosines of angles in turns; those of a paired map have their sines in the second half."""

    paired: Any  # constexpr
    unit: Any  # constexpr: numbers that a thread reads at a time
    units: int  # of them in a row of angles
    phases: Any
    amplitudes: Any


def waves_of(phases: Any, amplitudes: Any, width: int, paired: bool) -> Waves:
    """Constants of so many angles in a row."""
    unit = UNIT if width % UNIT == 0 else 1
    return Waves(constexpr(paired), constexpr(unit), width // unit, phases, amplitudes)


def waves(Z: Any, width: int, form: Waves) -> None:
    """Angles become cosines where they stand."""
    from . import kernels

    n, columns = Z.shape[0], min(1024, power_of_two(width))
    rows = max(1, 2048 // columns)
    grid, warps = (-(-n // rows), -(-width // columns)), 8 if rows * columns > 1024 else 4
    kernels.waves[grid](Z, n, form, Sizes(rows=rows, columns=columns), num_warps=warps, **FUSED)


def can_fuse(X: Any, width: int) -> bool:
    """Whether rows lie as the copy engine wants them, and a product is worth a kernel."""
    d, data = X.shape[1], getattr(X, "data_ptr", int)()
    return d % UNIT == 0 and width % UNIT == 0 and d >= INNER and data % 16 == 0


class Tile(NamedTuple):
    """How a product is divided among the processors of a GPU."""

    rows: int
    columns: int
    warps: int
    stages: int

    @property
    def shared_bytes(self) -> int:
        return 4 * INNER * (self.rows + self.columns) * self.stages


LARGE, SMALL = Tile(128, 256, 8, 4), Tile(64, 128, 4, 3)
"""The fastest of two dozen on an H200: for long sums, and for short ones."""


def _tile(d: int, width: int, shared_bytes: int) -> Tile:
    long = d >= 256 and width > SMALL.columns and shared_bytes > LARGE.shared_bytes
    return LARGE if long else SMALL


@lru_cache
def _shared_bytes(device: Any) -> int:
    """Memory that a program may share among its threads; of an H200 where there is no GPU."""
    if getattr(device, "type", "cpu") != "cuda":
        return 227 << 10
    import torch

    return int(torch.cuda.get_device_properties(device).shared_memory_per_block_optin)


class Factor(NamedTuple):
    """A transposed matrix that is described to the copy engine, and how its product is divided."""

    described: Any
    width: int
    tile: Tile


def factor(matrix: Any) -> Factor:
    """What `fourier` needs of a matrix (width, d)."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    width, d = matrix.shape
    tile = _tile(d, width, _shared_bytes(device_of(matrix)))
    described = TensorDescriptor.from_tensor(matrix, [tile.columns, INNER])
    return Factor(described, width, tile)


def fourier(X: Any, by: Factor, form: Waves, out: Any) -> None:
    """Cosines of X·matrixᵀ, in turns, the product in TF32; see `can_fuse`."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    from . import kernels

    (n, d), tile = X.shape, by.tile
    rows = TensorDescriptor.from_tensor(X, [tile.rows, INNER])
    sizes = Sizes(rows=tile.rows, columns=tile.columns, inner=INNER)
    kernels.fourier[(-(-n // tile.rows) * -(-by.width // tile.columns),)](
        rows, by.described, out, n, d, form, sizes,
        num_warps=tile.warps, num_stages=tile.stages, **FUSED,
    )  # fmt: skip


class Transforms(NamedTuple):
    """A structured projection: Hadamard transforms of numbers with other signs."""

    signs: Any  # (blocks, rounds, size)
    to: Any  # int32: the column of each number of each block, or -1
    gains: Any  # by column


class TransformSizes(NamedTuple):
    """What the compiler knows of a transform."""

    rounds: int
    log: int  # of how many numbers there are, to base 2
    levels: int  # at a time
    last_log: int  # the same of the last round, which may make fewer
    last_levels: int  # of the last round, at a time


def hadamard(X: Any, out: Any, transforms: Transforms, count: int) -> None:
    """Structured projections of rows.

    The first `count` numbers of all blocks are needed: of the last block, fewer are computed.
    """
    from . import kernels

    rounds, size = transforms.signs.shape[1:]
    blocks = -(-count // size)
    log, last_count = size.bit_length() - 1, count - (blocks - 1) * size
    warps = max(1, min(16, size >> (5 + LEVELS)))
    for first, several, last_log in (
        (0, blocks - 1, log),
        (blocks - 1, 1, max(1, power_of_two(last_count).bit_length() - 1)),
    ):
        if several:
            kernels.hadamard[(X.shape[0], several)](
                X, out, X.shape[1], out.shape[1], first, transforms,
                TransformSizes(rounds, log, min(LEVELS, log), last_log, min(LEVELS, last_log)),
                num_warps=warps, **FUSED,
            )  # fmt: skip
