"""Tables in the layout of the GPU kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..table.layout import Bins, Block, Layout
from ..table.stored import AFFINE, EDGES

__all__ = ["DeviceBins", "DeviceTable", "bins_on", "coefficients", "table_on"]


class DeviceBins(NamedTuple):
    """Where values fall: the arguments of the kernels' finder, then what the compiler knows.

    `numbers` has six lines of `stride` entries, one for each feature: origin, the rest of it,
    factor, low, high, last. `whole` has five: row, key, cell, edge, top.
    """

    numbers: Any
    whole: Any
    guide: Any
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
    feature: Any  # int32[width]: of each output column
    within: Any  # int32[width]: which of its feature's columns it is
    column: Any  # int32[d]: first output column of a feature
    width: int
    band: int
    narrowest: int  # columns of the feature that has the fewest


def bins_on(bins: Bins, put: Any) -> tuple[DeviceBins, dict[str, Any]]:
    """Where values fall, on the card that `put` copies arrays to."""
    kind, search = len(bins.kind), bins.search
    dtype = search.edges.dtype
    # Look-ups must fall into the very bin that the CPU finds, in float64; polynomials go on
    # continuously into the next bin, so that the rows' own precision does.
    exact = kind == AFFINE and not len(bins.placed)
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
        "PLACED": bool(len(bins.placed)),
        "OCTAVES": kind == EDGES and search.shift > 0,
        "CROWD": int(crowd).bit_length(),
    }
    shift = search.shift if kind == EDGES else bins.shift
    packed = DeviceBins(
        put(np.concatenate([_line(a, stride, number) for a in lines])),
        put(np.concatenate([_line(a, stride, np.int32) for a in whole])),
        put(search.guide.astype(np.int32)),
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


def coefficients(block: Block, columns: int, put: Any) -> tuple[Any, int]:
    """Coefficients as the kernels read them, and how many powers there are with the padding.

    [row][column][power]; float32 ones of a polynomial are pairs, read as one 64-bit word.
    """
    powers = len(block.powers)
    pairs = block.coef.dtype == np.float32 and powers > 1
    padded = powers + powers % 2 if pairs else powers
    stored = block.coef.reshape(-1, powers, len(block.chunk) * len(block.parts))
    coef = np.zeros((len(stored), columns, padded), block.coef.dtype)
    coef[:, :, :powers] = stored[:, :, :columns].transpose(0, 2, 1)
    return put(coef.ravel().view(np.int64 if pairs else coef.dtype)), padded


def table_on(layout: Layout, put: Any) -> DeviceTable:
    """A map's layout on the card that `put` copies arrays to."""
    d = len(layout.column) - 1
    bins, constants = bins_on(layout.bins, put)
    band = int(layout.band.max())
    coef, powers = coefficients(layout.values, band, put)
    widths = np.diff(layout.column)
    feature = np.repeat(np.arange(d), widths)
    constants |= {"POWERS": powers, "BANDED": layout.even == 0}
    return DeviceTable(
        bins,
        constants,
        coef,
        put(layout.values.first.astype(np.int32)),
        put(feature.astype(np.int32)),
        put((np.arange(len(feature)) - layout.column[feature]).astype(np.int32)),
        put(layout.column[:-1].astype(np.int32)),
        int(layout.column[-1]),
        band,
        int(widths.min()),
    )


def _line(values: np.ndarray, stride: int, dtype: Any) -> np.ndarray:
    """One line of `stride` entries; what a kind of bins does not have is zero."""
    line = np.zeros(stride, dtype)
    line[: len(values)] = values[:stride]
    return line
