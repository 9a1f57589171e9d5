"""Tables in the layout of the GPU kernels.

A kernel takes a table as one argument. It is compiled for the values of the fields that are marked
`constexpr`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._util.threads import power_of_two
from ..table.layout import Bins, Layout, LocalPolynomials

if TYPE_CHECKING:
    from ..table.dot import SummedTable


COLUMNS = 32  # that a program evaluates at a time, at most


def constexpr(value: int) -> Any:
    """A number that the kernels' compiler has to know."""
    import triton.language as tl

    return tl.constexpr(value)


class DeviceBins(NamedTuple):
    """Where values fall: `layout.Bins`, whose arrays are flat, in rows of `stride`."""

    kind: Any  # constexpr, as are the next four
    signed: Any
    zero_at_zero: Any
    position: Any
    halvings: Any  # how often the edges of a cell are halved
    numbers: Any  # float64
    integers: Any  # int32
    edges: Any  # float64
    before: Any  # int32
    stride: int
    shift: int
    start: int
    unit: float
    zero_piece: int
    mirror: int


class DeviceBlock(NamedTuple):
    """Local polynomials on a GPU."""

    powers: Any  # constexpr: of each column, with the padding
    coef: Any  # see `put_block`
    columns: int  # of a piece, with the padding


class DeviceTable(NamedTuple):
    """A map on a GPU."""

    bins: DeviceBins
    block: DeviceBlock
    banded: Any  # constexpr: pieces have columns of their own, from `first_column` on
    uniform: Any  # constexpr: all features have as many columns
    n_columns: Any  # constexpr: columns of every feature, if `uniform`; else of the widest
    first_column: Any  # int32[pieces]
    column: Any  # int32[d]: first output column of a feature
    count: Any  # int32[d]: how many columns it has
    features: int
    width: int
    margin: int  # columns before the first piece of the block


class DeviceSums(NamedTuple):
    """A table whose columns are summed over the features, on a GPU."""

    bins: DeviceBins
    block: DeviceBlock
    bounded: Any  # constexpr: values outside low … high set the flag
    low: Any  # by feature
    high: Any
    features: int
    outputs: int


class DeviceCodes(NamedTuple):
    """Bins whose numbers are codes, on a GPU."""

    unit: float  # codes in a bin; 1 for look-ups
    low: Any  # by feature
    high: Any
    features: int
    bins: DeviceBins  # the last: in loops, Triton 3.6 forgets the constants of others


def put_bins(bins: Bins, put: Any) -> DeviceBins:
    """Where values fall, on the GPU that `put` copies arrays to."""
    return DeviceBins(
        constexpr(int(bins.binning)),
        constexpr(bins.signed),
        constexpr(bins.zero_at_zero),
        constexpr(bins.position),
        constexpr(bins.halvings),
        put(bins.numbers.ravel()),
        put(bins.integers.ravel().astype(np.int32)),
        put(bins.edges),
        put(bins.before),
        bins.numbers.shape[1],
        int(bins.shift),
        int(bins.start),
        2.0 ** -int(bins.shift),
        int(bins.zero_piece),
        int(bins.mirror),
    )


def padded_columns(columns: int) -> int:
    """Columns of a piece on the GPU: a power of two, or whole tiles of the kernels."""
    return -(-columns // COLUMNS) * COLUMNS if columns > COLUMNS else power_of_two(columns)


def put_block(block: LocalPolynomials, columns: int, put: Any, *, margin: int = 0) -> DeviceBlock:
    """Coefficients as the kernels read them, on the GPU that `put` copies arrays to.

    [piece][power][column] as on the CPU, with columns of zeros up to `padded_columns`. Of a float32
    polynomial with two to four coefficients they lie side by side, [piece][column][power], in words
    of 64 bits. `margin`: as many columns of zeros before the first piece and behind the last.
    """
    powers, padded = len(block.powers), columns if margin else padded_columns(columns)
    words = block.coef.dtype == np.float32 and 2 <= powers <= 4
    n_stored = (powers + 1) // 2 * 2 if words else powers
    stored = block.coef.reshape(-1, powers, block.n_columns)
    coef = np.zeros((len(stored), n_stored, padded), block.coef.dtype)
    coef[:, :powers, :columns] = stored[:, :, :columns]
    coef = np.ascontiguousarray(coef.transpose(0, 2, 1)) if words else coef
    around = np.zeros(margin * (n_stored if words else 1), coef.dtype)
    flat = np.concatenate([around, coef.ravel(), around])
    return DeviceBlock(constexpr(n_stored), put(flat.view(np.int64) if words else flat), padded)


def put_table(layout: Layout, put: Any) -> DeviceTable:
    """A map's layout on the GPU that `put` copies arrays to."""
    n_stored, widths = int(layout.n_stored.max()), np.diff(layout.column)
    n_columns, banded = int(widths.max()), layout.uniform_width == 0
    margin = padded_columns(n_columns) if banded else 0
    return DeviceTable(
        put_bins(layout.bins, put),
        put_block(layout.values, n_stored, put, margin=margin),
        constexpr(banded),
        constexpr(bool((widths == n_columns).all())),
        constexpr(n_columns),
        put(layout.values.first_column.astype(np.int32)),
        put(layout.column[:-1].astype(np.int32)),
        put(widths.astype(np.int32)),
        len(widths),
        int(layout.column[-1]),
        margin,
    )


def put_sums(table: SummedTable, put: Any) -> DeviceSums:
    """A model's layout on the GPU that `put` copies arrays to."""
    return DeviceSums(
        put_bins(table.bins, put),
        put_block(table.values, table.outputs, put),
        constexpr(bool(table.ends.size)),
        put(table.ends[0]),
        put(table.ends[1]),
        table.features,
        table.outputs,
    )


def device_of(X: Any) -> Any:
    """Where an array lies; None for NumPy's that have no device."""
    return getattr(X, "device", None)


def contiguous(X: Any) -> Any:
    """Rows one after the other."""
    return X.contiguous() if hasattr(X, "contiguous") else np.ascontiguousarray(X)
