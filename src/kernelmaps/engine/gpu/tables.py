"""Tables in the layout of the GPU kernels.

A kernel takes a table as one argument. It is compiled for the values of the fields that are marked
`constexpr`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._util.threads import power_of_two
from ..table.layout import Bins, Layout, LocalPolynomials
from ..table.stored import AFFINE, EDGES

if TYPE_CHECKING:
    from ..table.dot import SummedTable


COLUMNS = 32  # that a program evaluates at a time, at most


def constexpr(value: int) -> Any:
    """A number that the kernels' compiler has to know."""
    import triton.language as tl

    return tl.constexpr(value)


class DeviceBins(NamedTuple):
    """Where values fall.

    `numbers` has six lines of `stride` entries, one for each feature: origin, its rounding error,
    factor, low, high, last. `integers` has five: first piece, key, cell, edge, top.
    """

    kind: Any  # constexpr, as are the next six
    signed: Any
    zero_at_zero: Any
    clipped: Any
    position: Any  # 0: look-ups; 1: positions; 2: those that are rounded as on the CPU
    octaves: Any  # whether cells of the search are
    crowd: Any  # how often edges of a cell are halved
    numbers: Any
    integers: Any
    before: Any
    edges: Any
    stride: int
    shift: int
    start: int
    limit: int
    unit: float
    zero_piece: int
    mirror: int


class DeviceBlock(NamedTuple):
    """Local polynomials on a GPU."""

    powers: Any  # constexpr: of each column, with the padding
    coef: Any  # see `block_on`
    columns: int  # of a piece, with the padding


class DeviceTable(NamedTuple):
    """A map on a GPU."""

    bins: DeviceBins
    block: DeviceBlock
    banded: Any  # constexpr: pieces have columns of their own, from `first` on
    uniform: Any  # constexpr: all features have as many columns
    n_columns: Any  # constexpr: columns of every feature, if `uniform`; else of the widest
    first: Any  # int32[pieces]
    column: Any  # int32[d]: first output column of a feature
    count: Any  # int32[d]: how many columns it has
    features: int
    width: int
    margin: int  # columns before the first piece of the block
    band: int  # columns that are stored


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

    scale: float  # positions in a bin; 1 for look-ups
    half: float  # what is added to a position before its digits are dropped
    low: Any  # by feature
    high: Any
    bins: DeviceBins


def bins_on(bins: Bins, put: Any, *, exact: bool = False) -> DeviceBins:
    """Where values fall, on the GPU that `put` copies arrays to.

    Look-ups must fall into the very bin that the CPU finds, in float64, and so must all with
    `exact`; polynomials go on continuously into the next bin: the rows' own precision does.
    """
    kind, dtype = int(bins.kind), bins.number.dtype
    search = bins.search
    position = bool(bins.position) * (2 if exact else 1)
    exact = kind == AFFINE and (exact or not bins.position)
    number = np.dtype(np.float64) if exact else dtype
    origin = bins.origin.astype(number)
    error = (bins.origin.astype(np.float64) - origin.astype(np.float64)).astype(number)
    lines = [origin, error, bins.factor, bins.low, bins.high, bins.last]
    integers = [bins.first_piece, search.key, search.cell, search.edge, bins.top]
    stride = len(bins.first_piece)
    crowd = int(search.crowd.max()) if kind == EDGES else 0
    shift = search.shift if kind == EDGES else bins.shift
    return DeviceBins(
        constexpr(kind),
        constexpr(bool(bins.signed)),
        constexpr(bool(bins.zero_at_zero)),
        constexpr(bool(bins.clipped)),
        constexpr(position),
        constexpr(kind == EDGES and search.shift > 0),
        constexpr(crowd.bit_length()),
        put(np.concatenate([_line(a, stride, number) for a in lines])),
        put(np.concatenate([_line(a, stride, np.int32) for a in integers])),
        put(search.before),
        put(search.edges),
        stride,
        int(shift),
        int(bins.start),
        int(bins.limit),
        2.0 ** -int(bins.shift),
        int(bins.zero_piece),
        int(bins.mirror),
    )


def padded_columns(columns: int) -> int:
    """Columns of a piece on the GPU: a power of two, or whole tiles of the kernels."""
    return -(-columns // COLUMNS) * COLUMNS if columns > COLUMNS else power_of_two(columns)


def block_on(block: LocalPolynomials, columns: int, put: Any, *, margin: int = 0) -> DeviceBlock:
    """Coefficients as the kernels read them, on the GPU that `put` copies arrays to.

    [piece][power][column] as on the CPU, with columns of zeros up to `padded_columns`. Of a float32
    polynomial with two to four coefficients they lie side by side, [piece][column][power], in words
    of 64 bits. `margin`: as many columns of zeros before the first piece and behind the last.
    """
    powers, padded = int(block.powers), columns if margin else padded_columns(columns)
    words = block.coef.dtype == np.float32 and 2 <= powers <= 4
    n_stored = (powers + 1) // 2 * 2 if words else powers
    stored = block.coef.reshape(-1, powers, block.chunk * block.parts)
    coef = np.zeros((len(stored), n_stored, padded), block.coef.dtype)
    coef[:, :powers, :columns] = stored[:, :, :columns]
    coef = np.ascontiguousarray(coef.transpose(0, 2, 1)) if words else coef
    around = np.zeros(margin * (n_stored if words else 1), coef.dtype)
    flat = np.concatenate([around, coef.ravel(), around])
    return DeviceBlock(constexpr(n_stored), put(flat.view(np.int64) if words else flat), padded)


def table_on(layout: Layout, put: Any) -> DeviceTable:
    """A map's layout on the GPU that `put` copies arrays to."""
    band, widths = int(layout.band.max()), np.diff(layout.column)
    n_columns, banded = int(widths.max()), layout.uniform_width == 0
    margin = padded_columns(n_columns) if banded else 0
    return DeviceTable(
        bins_on(layout.bins, put),
        block_on(layout.values, band, put, margin=margin),
        constexpr(banded),
        constexpr(bool((widths == n_columns).all())),
        constexpr(n_columns),
        put(layout.values.first.astype(np.int32)),
        put(layout.column[:-1].astype(np.int32)),
        put(widths.astype(np.int32)),
        len(widths),
        int(layout.column[-1]),
        margin,
        band,
    )


def sums_on(table: SummedTable, put: Any) -> DeviceSums:
    """A model's layout on the GPU that `put` copies arrays to."""
    return DeviceSums(
        bins_on(table.bins, put),
        block_on(table.values, table.outputs, put),
        constexpr(bool(len(table.low))),
        put(table.low),
        put(table.high),
        table.features,
        table.outputs,
    )


def codes_on(
    bins: Bins, low: np.ndarray, high: np.ndarray, fraction_bits: int, put: Any
) -> DeviceCodes:
    """Bins of codes with so many bits behind the point, on the GPU that `put` copies to."""
    half = 0.5 if fraction_bits else 0.0
    on_device = bins_on(bins, put, exact=True)
    return DeviceCodes(float(1 << fraction_bits), half, put(low), put(high), on_device)


def _line(values: np.ndarray, stride: int, dtype: Any) -> np.ndarray:
    """One line of `stride` entries; what a kind of bins does not have is zero."""
    line = np.zeros(stride, dtype)
    line[: len(values)] = values[:stride]
    return line


def device_of(X: Any) -> Any:
    """Where an array lies; None for NumPy's that have no device."""
    return getattr(X, "device", None)


def contiguous(X: Any) -> Any:
    """Rows one after the other."""
    return X.contiguous() if hasattr(X, "contiguous") else np.ascontiguousarray(X)


def empty(X: Any, shape: tuple[int, ...]) -> Any:
    """An empty result with the type and on the device of X."""
    return X.new_empty(shape) if hasattr(X, "new_empty") else np.empty(shape, X.dtype)
