"""Launch of the GPU kernels, one function for each.

Arrays are torch tensors on a card; nothing here is particular to torch, so that the tests run the
same code on NumPy arrays.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd, prod
from typing import Any, NamedTuple

from ...device import tf32_chosen
from ..table.stored import LOG2
from .rows import device_of
from .splines import OUTPUTS, WORDS
from .tables import COLUMNS, FEATURES, DeviceCodes, DeviceSums, DeviceTable, power_of_two

ANY, FINITE, NON_NEGATIVE = range(3)
VALUES = 32  # that a program locates at a time: one for each of its threads
STEPS = 8  # how often it does so
SHARES = 16  # of the features of a sum, at most
PROGRAMS = 792  # of a sum of B-splines, at least: three rounds of all processors of an H200
UNIT = 4  # numbers that a thread reads at a time
INNER = 32  # terms of a sum that a product takes at a time
FUSED = {"enable_fp_fusion": True}  # products are added unrounded, whatever Triton's default is
BITS = 5  # levels of a Hadamard transform at a time: a thread has 32 numbers


def emit(table: DeviceTable, X: Any, out: Any, flag: Any, check: int) -> None:
    """φ(X) into `out`; the flag is set where `check` finds a value that it refuses."""
    from . import kernels

    n, d = X.shape
    columns = min(COLUMNS, power_of_two(table.own))
    # Octaves of few columns: two for each thread, which has registers left.
    values = 2 * VALUES if table.constants["KIND"] == LOG2 and columns <= 8 else VALUES
    group = values // gcd(values, d)  # rows of which whole tiles are made
    grid = (-(-n // (group * STEPS)), group * d // values, -(-table.own // columns))
    kernels.emit[grid](
        X, out, flag, n, d, group, table.width, table.padded, table.margin, table.column,
        table.count, table.first, table.coef, *table.bins, **table.constants, OWN=table.own,
        CHECK=check, VALUES=values, COLUMNS=columns, STEPS=STEPS, num_warps=1, **FUSED,
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
        COLUMNS=columns, **FUSED,
    )  # fmt: skip


def dot(table: DeviceSums, X: Any, flag: Any, check: int, empty: Any) -> Any:
    """Sums over the features, in shares of them: (shares, n, outputs).

    They are made by ``empty(shape, double)``: a single share may have float64's precision at once.
    Adding the shares in their order gives the same numbers every time.
    """
    from . import kernels

    if table.splines is not None and check != NON_NEGATIVE and _has_halves(device_of(X)):
        return _dot_splines(table, X, flag, empty)
    n, d = X.shape
    columns = min(COLUMNS, power_of_two(table.outputs))
    rows, features = (32, 4) if columns > 4 else (16, 8)
    split = -(-d // (SHARES * features)) * features
    shares = -(-d // split)
    out = empty((shares, n, table.outputs), False)
    kernels.dot[(-(-n // rows), shares, -(-table.outputs // columns))](
        X, out, flag, n, d, table.outputs, table.padded, split, table.coef, table.low, table.high,
        *table.bins, **table.constants, CHECK=check, ROWS=rows, FEATURES=features,
        COLUMNS=columns, num_warps=rows // 16, **FUSED,
    )  # fmt: skip
    return out


def _dot_splines(table: DeviceSums, X: Any, flag: Any, empty: Any) -> Any:
    """`dot` of a model of smooth cubics on even bins."""
    from . import kernels

    assert table.splines is not None
    (n, d), rows = X.shape, _spline_rows(device_of(X))
    weights, unit, pairs, places, last = table.splines
    tiles, size, tall = weights.shape[0], prod(weights.shape[1:]), -(-n // rows)
    split = -(-d // (min(SHARES, max(1, PROGRAMS // (tall * tiles))) * FEATURES)) * FEATURES
    shares = -(-d // split)
    out = empty((shares, n, table.outputs), shares == 1)
    kernels.dot_splines[(tall, shares, tiles)](
        X, out, flag, n, d, table.outputs, split, weights, size, unit, pairs, places, last,
        EVEN=d % FEATURES == 0, PARTS=1 if tf32_chosen() else 2, WORDS=WORDS, ROWS=rows,
        FEATURES=FEATURES, OUTPUTS=OUTPUTS, num_warps=4, num_stages=3, **FUSED,
    )  # fmt: skip
    return out


def _has_halves(device: Any) -> bool:
    """Whether a card multiplies and converts pairs of halves: NVIDIA's, from Ampere on."""
    return _capability(device) >= (8, 0)


def _spline_rows(device: Any) -> int:
    """Rows of which a program multiplies B-splines: from Hopper on, warps multiply together."""
    return 128 if _capability(device) >= (9, 0) else 64


@lru_cache
def _capability(device: Any) -> tuple[int, int]:
    """What an NVIDIA card can do; that of an H200 where there is no card, nothing of others."""
    if getattr(device, "type", "cpu") != "cuda":
        return (9, 0)
    import torch

    return torch.cuda.get_device_capability(device) if torch.version.cuda else (0, 0)


def encode(table: DeviceCodes, X: Any, out: Any, flag: Any) -> None:
    """Codes of X into `out`; the flag is set by values outside their feature's range."""
    from . import kernels

    count, size = X.shape[0] * X.shape[1], 1024
    kernels.encode[(-(-count // size),)](
        X, out, flag, count, X.shape[1], float(table.scale), 0.5 if table.scale > 1 else 0.0,
        table.low, table.high, *table.bins, **table.constants, VALUES=size,
        enable_fp_fusion=False,  # products are rounded before they are added, as on the processor
    )  # fmt: skip


def waves(Z: Any, phases: Any, amplitudes: Any, paired: bool) -> None:
    """Angles in turns become cosines; those of a paired map have their sines in the second half."""
    from . import kernels

    n, stride = Z.shape
    width = stride // 2 if paired else stride
    columns = min(1024, power_of_two(width))
    rows, unit = max(1, 2048 // columns), _unit(width)
    kernels.waves[(-(-n // rows), -(-width // columns))](
        Z, phases, amplitudes, n, width // unit, PAIRED=paired, UNIT=unit, ROWS=rows,
        COLUMNS=columns, num_warps=8 if rows * columns > 1024 else 4, **FUSED,
    )  # fmt: skip


@lru_cache
def _describes() -> bool:
    """Whether this Triton describes arrays to the card's copy engine."""
    try:
        from triton.tools.tensor_descriptor import TensorDescriptor
    except ImportError:
        return False
    return bool(TensorDescriptor)


def can_fuse(X: Any, width: int) -> bool:
    """Whether rows lie as the copy engine wants them, and a product is worth a kernel."""
    d, data = X.shape[1], getattr(X, "data_ptr", int)()
    return d % UNIT == 0 and width % UNIT == 0 and d >= INNER and data % 16 == 0 and _describes()


class Tile(NamedTuple):
    """How a product is divided among the processors of a card."""

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
    """Memory that a program may share among its threads; of an H200 where there is no card."""
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


def fourier(X: Any, by: Factor, phases: Any, amplitudes: Any, out: Any, paired: bool) -> None:
    """Cosines of X·matrixᵀ, in turns, the product in TF32; see `can_fuse`."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    from . import kernels

    (n, d), tile = X.shape, by.tile
    rows = TensorDescriptor.from_tensor(X, [tile.rows, INNER])
    kernels.fourier[(-(-n // tile.rows) * -(-by.width // tile.columns),)](
        rows, by.described, phases, amplitudes, out, n, by.width // UNIT, d, PAIRED=paired,
        UNIT=UNIT, ROWS=tile.rows, COLUMNS=tile.columns, INNER=INNER, GROUP=8,
        num_warps=tile.warps, num_stages=tile.stages, **FUSED,
    )  # fmt: skip


def _unit(width: int) -> int:
    return UNIT if width % UNIT == 0 else 1


def hadamard(X: Any, out: Any, signs: Any, to: Any, gains: Any, count: int) -> None:
    """Structured projections of rows; `signs` (blocks, rounds, size), `to` the place of each.

    The first `count` numbers of all blocks are wanted: of the last block, fewer are made.
    """
    from . import kernels

    rounds, size = signs.shape[1:]
    blocks = -(-count // size)
    log, rest = size.bit_length() - 1, count - (blocks - 1) * size
    options = {
        "ROUNDS": rounds,
        "LOG": log,
        "BITS": min(BITS, log),
        "num_warps": max(1, min(16, size >> (5 + BITS))),
    }
    for first, several, kept in (
        (0, blocks - 1, log),
        (blocks - 1, 1, max(1, power_of_two(rest).bit_length() - 1)),
    ):
        if several:
            kernels.hadamard[(X.shape[0], several)](
                X, out, signs, to, gains, X.shape[1], out.shape[1], first,
                KEPT=kept, LAST=min(BITS, kept), **options, **FUSED,
            )  # fmt: skip
