"""Tables in the layout of the GPU kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..table.layout import Bins, Block, Layout
from ..table.search import no_search
from ..table.stored import AFFINE, EDGES
from .splines import SplineWeights, spline_weights

if TYPE_CHECKING:
    from ..table.dot import Summed


COLUMNS = 32  # that a program evaluates at a time, at most
FEATURES = 16  # that a program multiplies B-splines of at a time


def power_of_two(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << max(0, int(n) - 1).bit_length()


class DeviceBins(NamedTuple):
    """Where values fall: the arguments of the kernels' finder, then what the compiler knows.

    `numbers` has six lines of `stride` entries, one for each feature: origin, the rest of it,
    factor, low, high, last. `whole` has five: row, key, cell, edge, top.
    """

    numbers: Any
    whole: Any
    before: Any
    edges: Any
    stride: int
    shift: int
    start: int
    limit: int
    unit: float
    nothing: int
    mirror: int


class DeviceTable(NamedTuple):
    """A map on a card."""

    bins: DeviceBins
    constants: dict[str, Any]  # of the kernels' compiler
    coef: Any  # see `coefficients`
    first: Any  # int32[rows]
    column: Any  # int32[d]: first output column of a feature
    count: Any  # int32[d]: how many columns it has
    features: int
    width: int
    own: int  # columns of every feature, if all have as many; else of the widest
    padded: int  # columns of a row of `coef`
    margin: int  # columns before its first row
    band: int  # columns that are stored


class DeviceSums(NamedTuple):
    """A table whose columns are summed over the features, on a card."""

    bins: DeviceBins
    constants: dict[str, Any]
    coef: Any
    low: Any  # by feature: values outside low … high are noticed; empty: none are
    high: Any
    outputs: int
    padded: int
    splines: SplineWeights | None  # the same as B-splines, for float32 rows, where it can be


class DeviceCodes(NamedTuple):
    """Bins whose numbers are codes, on a card."""

    bins: DeviceBins
    constants: dict[str, Any]
    low: Any  # by feature
    high: Any
    scale: int  # positions in a bin; 1 for look-ups


def bins_on(bins: Bins, put: Any, *, exact: bool = False) -> tuple[DeviceBins, dict[str, Any]]:
    """Where values fall, on the card that `put` copies arrays to.

    Look-ups must fall into the very bin that the CPU finds, in float64, and so must all with
    `exact`; polynomials go on continuously into the next bin: the rows' own precision does.
    """
    kind, dtype = len(bins.kind), bins.number.dtype
    search = bins.search or no_search(dtype)
    placed = int(bool(len(bins.placed))) * (2 if exact else 1)  # 2: rounded as on the CPU
    exact = kind == AFFINE and (exact or not len(bins.placed))
    number = np.dtype(np.float64) if exact else dtype
    origin = bins.origin.astype(number)
    rest = (bins.origin.astype(np.float64) - origin.astype(np.float64)).astype(number)
    lines = [origin, rest, bins.factor, bins.low, bins.high, bins.last]
    whole = [bins.row, search.key, search.cell, search.edge, bins.top]
    stride = len(bins.row)
    crowd = int(search.crowd.max()) if kind == EDGES else 0
    constants = {
        "KIND": kind,
        "SIGNED": bool(len(bins.signed)),
        "VANISHES": bool(len(bins.vanishes)),
        "CLIPPED": bool(len(bins.clipped)),
        "PLACED": placed,
        "OCTAVES": kind == EDGES and search.shift > 0,
        "CROWD": int(crowd).bit_length(),
    }
    shift = search.shift if kind == EDGES else bins.shift
    packed = DeviceBins(
        put(np.concatenate([_line(a, stride, number) for a in lines])),
        put(np.concatenate([_line(a, stride, np.int32) for a in whole])),
        put(search.before.astype(np.int32)),
        put(search.edges),
        stride,
        int(shift),
        int(bins.start),
        int(bins.limit),
        2.0 ** -int(bins.shift),
        int(bins.nothing),
        int(bins.mirror),
    )
    return packed, constants


def padded_columns(columns: int) -> int:
    """Columns of a row on the card: a power of two, or whole tiles of the kernels."""
    return -(-columns // COLUMNS) * COLUMNS if columns > COLUMNS else power_of_two(columns)


def coefficients(block: Block, columns: int, put: Any, *, margin: int = 0) -> tuple[Any, int]:
    """Coefficients as the kernels read them, and how many powers there are with the padding.

    [row][power][column] as on the CPU, with columns of zeros up to `padded_columns`. Of a float32
    polynomial with two to four coefficients they lie side by side, [row][column][power], in words
    of 64 bits. `margin`: as many columns of zeros before the first row and behind the last.
    """
    powers, padded = len(block.powers), columns if margin else padded_columns(columns)
    words = block.coef.dtype == np.float32 and 2 <= powers <= 4
    kept = (powers + 1) // 2 * 2 if words else powers
    stored = block.coef.reshape(-1, powers, len(block.chunk) * block.parts)
    coef = np.zeros((len(stored), kept, padded), block.coef.dtype)
    coef[:, :powers, :columns] = stored[:, :, :columns]
    coef = np.ascontiguousarray(coef.transpose(0, 2, 1)) if words else coef
    around = np.zeros(margin * (kept if words else 1), coef.dtype)
    flat = np.concatenate([around, coef.ravel(), around])
    return put(flat.view(np.int64) if words else flat), kept


def table_on(layout: Layout, put: Any) -> DeviceTable:
    """A map's layout on the card that `put` copies arrays to."""
    bins, constants = bins_on(layout.bins, put)
    band, widths = int(layout.band.max()), np.diff(layout.column)
    own, banded = int(widths.max()), layout.even == 0
    margin = padded_columns(own) if banded else 0
    coef, powers = coefficients(layout.values, band, put, margin=margin)
    constants |= {"POWERS": powers, "BANDED": banded, "EVEN": bool((widths == own).all())}
    return DeviceTable(
        bins,
        constants,
        coef,
        put(layout.values.first.astype(np.int32)),
        put(layout.column[:-1].astype(np.int32)),
        put(widths.astype(np.int32)),
        len(widths),
        int(layout.column[-1]),
        own,
        band if banded else padded_columns(band),
        margin,
        band,
    )


def sums_on(table: Summed, put: Any) -> DeviceSums:
    """A model's layout on the card that `put` copies arrays to."""
    bins, constants = bins_on(table.bins, put)
    coef, powers = coefficients(table.values, table.outputs, put)
    constants |= {"POWERS": powers, "BOUNDED": bool(len(table.low))}
    low, high = (put(end) for end in (table.low, table.high))
    padded, splines = padded_columns(table.outputs), spline_weights(table, FEATURES)
    if splines is not None:
        arrays = ("halves", "pairs", "places")
        splines = splines._replace(**{name: put(getattr(splines, name)) for name in arrays})
    return DeviceSums(bins, constants, coef, low, high, table.outputs, padded, splines)


def codes_on(bins: Bins, low: np.ndarray, high: np.ndarray, bits: int, put: Any) -> DeviceCodes:
    """Bins of codes with so many bits behind the point, on the card that `put` copies to."""
    found, constants = bins_on(bins, put, exact=True)
    return DeviceCodes(found, constants, put(low), put(high), 1 << bits)


def _line(values: np.ndarray, stride: int, dtype: Any) -> np.ndarray:
    """One line of `stride` entries; what a kind of bins does not have is zero."""
    line = np.zeros(stride, dtype)
    line[: len(values)] = values[:stride]
    return line
