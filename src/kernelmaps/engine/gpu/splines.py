"""Smooth piecewise cubics as sums of B-splines, whose weights are multiplied on tensor cores.

On uniform knots, a cubic with two continuous derivatives is a sum of B-splines, of which four are
not zero at a value. Written into a row of zeros, they are a factor of a matrix product, and the
weights of all outputs are the other: a value then costs the same few instructions for ten outputs
as for one, where the coefficients of its polynomials are forty numbers to read.

Tensor cores multiply halves, of 11 bits. Each factor is a sum of two halves, and the product of the
two small ones is left out or negligible: the errors are those of float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..table.stored import AFFINE

if TYPE_CHECKING:
    from ..table.dot import SummedTable


BINS = 7  # of a feature, at most: their ten B-splines fill five words of two halves
WORDS = 5
OUTPUTS = 16  # at a time
_MAX_POLYNOMIAL_OUTPUTS = 4  # up to so many, reading the coefficients of polynomials is as fast
_TOLERANCE = 2.0**-18
"""Of the largest weight: what float32's rounding of coefficients may differ by at a knot."""

# B-spline weights c_b … c_{b+3} of the cubic with coefficients a_0 … a_3 on bin b: its polar form
# at the knots (-2, -1, 0), (-1, 0, 1), (0, 1, 2) and (1, 2, 3).
_POLAR = np.array([[1, -1, 2 / 3, 0], [1, 0, -1 / 3, 0], [1, 1, 2 / 3, 0], [1, 2, 11 / 3, 6]])


class SplineWeights(NamedTuple):
    """Weights of six times the B-splines, and what sums of them are multiplied by.

    `halves` is [tile][block of features][word][feature][half of the word][large or small parts],
    the parts of so many outputs each, with features of zeros up to a whole number of blocks.
    """

    halves: np.ndarray
    size: int  # halves of a tile
    unit: float
    pairs: np.ndarray  # by feature, int64, and a block of zeros: float32 numbers −origin and factor
    selectors: np.ndarray  # see `_selectors`
    last: float  # bins
    features: int
    outputs: int


def _selectors() -> np.ndarray:
    """Bytes of the four B-splines of a bin that go into the ten halves, five words, of a row.

    A selector has a nibble for each byte of a word: 0 to 7 takes that byte of two words, 9 repeats
    the sign of byte 1, which is 0. The last two selectors share a word. A position on the end of
    the range has a bin of its own, of whose B-splines the last is zero.
    """
    table = np.zeros((BINS + 1, 4), np.uint32)
    for b in range(BINS + 1):
        nibbles = np.full(2 * (BINS + 1) + 8, 9)
        nibbles[2 * b : 2 * b + 8] = np.arange(8)
        words = nibbles[: 4 * WORDS].reshape(WORDS, 4) @ (1 << 4 * np.arange(4))
        table[b] = [*words[:3], words[3] | words[4] << 16]
    return table.view(np.int32).ravel()


SELECTORS = _selectors()


def spline_weights(table: SummedTable, block: int) -> SplineWeights | None:
    """Weights of a table's outputs; None unless it has smooth cubics on a few uniform bins.

    Parameters
    ----------
    table : SummedTable
        A table whose columns are summed over the features.
    block : int
        Features at a time.
    """
    if not _suits(table):
        return None
    weights = _weights(table)
    if weights is None:
        return None
    d = table.features
    largest = float(np.abs(weights).max())
    # Halves reach from 2^-24 to 2^16.
    shift = 12 - int(np.frexp(largest)[1]) if largest > 0 else 0
    bases, outputs = weights.shape[1:]
    tiles, blocks = -(-outputs // OUTPUTS), -(-d // block)
    scaled = np.zeros((blocks * block, bases, tiles * OUTPUTS))
    scaled[:d, :, :outputs] = np.ldexp(weights, shift)
    large = scaled.astype(np.float16)
    small = (scaled - large).astype(np.float16)
    parts = np.stack([large, small]).reshape(2, blocks, block, WORDS, 2, tiles, OUTPUTS)
    halves = parts.transpose(5, 1, 3, 2, 4, 0, 6).reshape(tiles, blocks, WORDS, 2 * block, -1)
    pairs = np.zeros(((blocks + 1) * block, 2), np.float32)
    pairs[:d] = _positions(table)
    unit = float(np.ldexp(1 / 6, -shift))
    last = float(table.bins.top[0] + 1)
    return SplineWeights(
        np.ascontiguousarray(halves),
        halves[0].size,
        unit,
        pairs.view(np.int64).ravel(),
        SELECTORS,
        last,
        d,
        outputs,
    )


def _positions(table: SummedTable) -> np.ndarray:
    """−origin and factor of every feature: positions (x − origin)·factor are shares of the range.

    Rounded as on the GPU, no value of the range is beyond it: the factor is the largest for which
    this holds. Zero is subtracted as a positive number, lest −0 be outside.
    """
    d = table.features
    origin, high = table.bins.origin[:d], table.high[:d]
    factor = (table.bins.factor[:d] / (table.bins.top[:d] + 1)).astype(np.float32)
    while (beyond := (high - origin) * factor > 1).any():
        factor[beyond] = np.nextafter(factor[beyond], np.float32(0))
    return np.stack([np.float32(0) - origin, factor], axis=1)


def _suits(table: SummedTable) -> bool:
    """Whether values are located in as many uniform bins of every feature, for cubics of float32.

    Ranges are the bins, and not so far from zero that float32 has no origin for them.
    """
    bins, d = table.bins, table.features
    if bins.kind != AFFINE or not bins.position or table.outputs <= _MAX_POLYNOMIAL_OUTPUTS:
        return False
    if bins.origin.dtype != np.float32 or table.values.powers != 4:
        return False
    count, low, high = bins.top[:d] + 1, bins.low[:d], bins.high[:d]
    same = bool(np.all((count == count[0]) & (low == 0) & (np.abs(high - count) <= 1e-5)))
    reach = (table.high[:d] - bins.origin[:d]) * bins.factor[:d]
    same &= len(reach) == d and bool(np.all(reach <= count * (1 + 1e-5)))
    return same and count[0] <= BINS and not (bins.signed or bins.zero_at_zero)


def _weights(table: SummedTable) -> np.ndarray | None:
    """Weights [feature][basis][output]; None where the cubics do not join smoothly."""
    bins, block, d = table.bins, table.values, table.features
    stored = block.coef.reshape(-1, 4, block.chunk * block.parts)
    weights = np.zeros((d, 2 * WORDS, table.outputs))
    cubics = []
    for b in range(int(bins.top[:d].max()) + 1):
        features = np.flatnonzero(bins.top[:d] >= b)
        a = stored[bins.first_piece[features] + b, :, : table.outputs].astype(np.float64)
        c = np.matmul(_POLAR, a)
        weights[features, b + 3] = c[:, 3]
        if b == 0:
            weights[features, :4] = c
        cubics.append((features, a))
    allowed = _TOLERANCE * float(np.abs(weights).max())
    back = np.linalg.inv(_POLAR)
    for b, (features, a) in enumerate(cubics):
        gap = np.abs(np.matmul(back, weights[features, b : b + 4]) - a).sum(axis=1)
        if not np.all(gap <= allowed):
            return None
    return weights
