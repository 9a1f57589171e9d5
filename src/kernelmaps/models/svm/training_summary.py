"""Summary of the training rows that a saved additive model keeps: no rows.

Shape functions are drawn over the range and the density of each feature, exports reach a little
beyond the values seen, and importances are spreads of the terms. All of it follows from a sample
of the rows, which stays in memory; files and pickles hold this summary instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._util.schema import SchemaError, array, boolean, number, record, saved, text
from ...engine.extent import EXACT_SIZES
from ...maps.base import differ, range_of_constant

DENSITY_BINS = 24  # of the histogram below a curve
SHARED = 3  # rows that have a value which may be saved
_ROWS = "float64 float32 uint8 uint16 uint32"


@record
class Summary:
    """Ranges, histograms and spreads of a sample of the training rows.

    Attributes
    ----------
    low, high : ndarray of shape (n_features,)
        Range of each feature; ends that are values of single rows are left out.
    density : ndarray of shape (n_features, 24)
        Shares of the sample in uniform bins over the range.
    importances : ndarray of shape (n_features,)
        Standard deviations of the terms, classes averaged.
    least : float
        Smallest magnitude that is not zero (0 if there is none), rounded down.
    dtype : str
        Type of the rows.
    """

    low: np.ndarray = saved(array("f8", "features"))
    high: np.ndarray = saved(array("f8", "features"))
    density: np.ndarray = saved(array("f8", f"features {DENSITY_BINS}", low=0, high=1))
    importances: np.ndarray = saved(array("f8 f4", "features", low=0))
    least: float = saved(number(low=0))
    dtype: str = saved(text(tuple(_ROWS.split())))

    def _check_state(self) -> None:
        if np.any(self.low > self.high):
            raise SchemaError("Summary: 'low' is above 'high'")


@record
class Progress:
    """Where `partial_fit` stands: enough to go on with the next chunk.

    Attributes
    ----------
    weights : ndarray of shape (n_features, n_bases, n_outputs)
        After the last chunk; the model itself predicts by the mean over the chunks.
    offset : ndarray of shape (n_outputs,)
        Likewise.
    balance : ndarray of shape (n_outputs,)
        Sum of all dual variables so far.
    sparse : bool
        Whether the chunks were CSR.
    dtype : str
        Type of their values.
    """

    weights: np.ndarray = saved(array("f8", "features bases outputs"))
    offset: np.ndarray = saved(array("f8", "outputs"))
    balance: np.ndarray = saved(array("f8", "outputs"))
    sparse: bool = saved(boolean)
    dtype: str = saved(text(tuple(_ROWS.split())))

    @property
    def kind(self) -> tuple[bool, np.dtype]:
        """Whether the rows are sparse, and their type."""
        return self.sparse, np.dtype(self.dtype)


def summarise(sample: Any, importances: np.ndarray) -> Summary:
    """Summary of a sample of rows, dense or CSR."""
    stored = sample.data if sparse.issparse(sample) else sample
    magnitudes = np.abs(stored[stored != 0].astype(np.float64))
    rows = sample.toarray() if sparse.issparse(sample) else sample
    low, high = _inner_range(rows)
    counts = [
        np.histogram(np.clip(rows[:, j], a, b), density_edges(float(a), float(b)))[0]
        for j, (a, b) in enumerate(zip(low, high, strict=True))
    ]
    return Summary(
        low=low,
        high=high,
        density=np.array(counts) / len(rows),
        importances=importances,
        # A power of two: tables may reach a little lower, and no value of a row is kept.
        least=float(2.0 ** np.floor(np.log2(magnitudes.min()))) if magnitudes.size else 0.0,
        dtype=str(rows.dtype),
    )


def _inner_range(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranges of columns, without the last thousandth where an end is the value of a single row.

    Whole numbers of a range in which that is less than two stay: ages, counts, years, codes. Of
    fewer than three rows only the sizes of the ends are kept.
    """
    low, high = (np.float64(end) for end in (rows.min(axis=0), rows.max(axis=0)))
    if len(rows) < SHARED:
        sizes = (rounded_to_size(end) for end in (low, high))
        low, high = (np.where(np.abs(size) >= EXACT_SIZES[0], size, 0.0) for size in sizes)
        return low, high
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        step = 2.0 ** np.floor(np.log2((high - low) / 1024))
        inner = (np.floor(low / step) + 1) * step, (np.ceil(high / step) - 1) * step
    ends = []
    for end, other in zip((low, high), inner, strict=True):
        shared = np.count_nonzero(rows == end, axis=0) >= SHARED
        integral = (end == np.rint(end)) & (step < 2)
        exact = shared | integral | ~(np.abs(other) >= EXACT_SIZES[0])
        ends.append(np.where(exact, end, other))
    return ends[0], ends[1]


def rounded_to_size(values: Any) -> Any:
    """Numbers rounded towards zero to a power of two, so that they tell a size and no value."""
    with np.errstate(divide="ignore"):
        size = 2.0 ** np.floor(np.log2(np.abs(values)))
    return np.copysign(size, values) * (np.asarray(values) != 0)


def density_edges(low: float, high: float) -> np.ndarray:
    """Ends of the bins of a density; a constant, or nearly, gets a range around it."""
    if not differ(low, high):
        low, high = low - range_of_constant(low, high) / 2, high + range_of_constant(low, high) / 2
    return np.linspace(low, high, DENSITY_BINS + 1)
