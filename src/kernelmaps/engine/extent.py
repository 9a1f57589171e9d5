"""Where the values of a matrix lie, and what maps say of values that they refuse or clip.

The range, the columns', and whether all are finite: by NumPy's loops on blocks that stay in the
cache, as fast as one loop of our own that finds all at once, which every first use would have to
compile. Maps and models that are loaded only to predict say it in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._util.schema import array, either, pair
from .._util.threads import rows_per_thread, run_in_threads

EXACT_SIZES = (1e-150, 1e150)
"""Of float64 values: their squares and products are floating-point numbers, too."""

DOMAIN = pair(either(tuple(array("f8 f4", shape, finite=False) for shape in ("1", "features"))))
"""What a file says of the ranges that a map was fitted for: one, or one for each feature."""

OUT_OF_DOMAIN: tuple[str, ...] = ("clip", "raise", "extrapolate")
"""What may be done with values outside a fitted domain."""

_TAIL = 0.1  # of the fitted range, by which values may leave it before it is worth a warning
_LONG_ROW = 512  # values of a row for which NumPy's loops are fast
_BLOCK = 2**17  # values: shorter ones wait for the interpreter's lock
_NAMED_COLUMNS = 5  # names of columns that a message shows


ColumnRange = tuple[np.ndarray, np.ndarray]  # the smallest and the largest value of each column


@dataclass(frozen=True)
class Extent:
    """Where the values of a batch lie.

    Attributes
    ----------
    minimum, maximum : float
        Their range.
    least_size : float or callable
        The smallest magnitude that is not zero, or what computes it: few maps ask for it.
    columns : ColumnRange, optional
    """

    minimum: float
    maximum: float
    least_size: float | Callable[[], float]
    columns: ColumnRange | None = None

    @property
    def tiny(self) -> float:
        """The smallest magnitude that is not zero."""
        return self.least_size() if callable(self.least_size) else self.least_size

    @property
    def is_finite(self) -> bool:
        """Whether all values are finite: the ends are NaN if one value is."""
        return bool(np.isfinite([self.minimum, self.maximum]).all())


def extent_of(X: np.ndarray, n_jobs: int | None = None) -> Extent:
    """Range of a dense matrix."""
    if X.size == 0:
        return Extent(0.0, 0.0, np.inf)
    if X.dtype.kind == "u":
        return Extent(float(X.min()), float(X.max()), 1.0)
    values = X.ravel(order="K")
    parts = run_in_threads(partial(_extremes, values), -(-values.size // _BLOCK), n_jobs)
    low, high, least = np.array(parts).T
    return Extent(float(low.min()), float(high.max()), float(least.min()))


def extent_of_rows(X: np.ndarray, n_jobs: int | None = None) -> Extent:
    """Range of a dense matrix, and those of its columns."""
    if X.size == 0:
        return extent_of(X, n_jobs)
    low, high = column_range(X, n_jobs)
    ends = float(low.min()), float(high.max())
    return Extent(*ends, lambda: extent_of(X, n_jobs).tiny, (low, high))


def _extremes(values: np.ndarray, begin: int, end: int) -> np.ndarray:
    """Smallest and largest value of blocks begin..end (NaN if one is), smallest size but zero."""
    extremes = []
    for start in range(begin * _BLOCK, end * _BLOCK, _BLOCK):
        block = values[start : start + _BLOCK]
        low, high = block.min(), block.max()
        extremes.append((low, high, _least_size(block, low, high)))
    lows, highs, magnitudes = np.array(extremes, values.dtype).T
    return np.array([lows.min(), highs.max(), magnitudes.min()])


def _least_size(block: np.ndarray, low: Any, high: Any) -> Any:
    """Smallest size but zero of values low … high; infinity if all are zero.

    Bits of positive floats are in the order of their values; less one, those of zero are the last.
    """
    if low > 0 or high < 0:
        return low if low > 0 else -high
    kind = np.dtype(f"u{block.itemsize}").type
    magnitudes = np.abs(block) if low < 0 else block
    bits = (magnitudes.view(kind) - kind(1)).min()
    infinity = block.dtype.type(np.inf)
    return infinity if bits >= infinity.view(kind) else (bits + kind(1)).view(block.dtype)


def column_range(X: np.ndarray, n_jobs: int | None = None) -> ColumnRange:
    """Smallest and largest value of each column of a dense matrix."""

    def find_ends(begin: int, end: int) -> np.ndarray:
        rows = X[begin:end]
        if not len(rows):
            return np.repeat([[np.inf], [-np.inf]], X.shape[1], axis=1)
        return np.stack([_reduce_columns(np.min, rows), _reduce_columns(np.max, rows)])

    parts = run_in_threads(find_ends, len(X), n_jobs, rows_per_thread(X.shape[1]))
    lows, highs = zip(*parts, strict=True)
    return np.min(lows, axis=0).astype(np.float64), np.max(highs, axis=0).astype(np.float64)


def _reduce_columns(reduce: Callable[..., np.ndarray], rows: np.ndarray) -> np.ndarray:
    """The smallest or largest value of each column.

    Several short rows are looked at as a long one, since NumPy's loops go along rows.
    """
    d = rows.shape[1]
    count = min(_LONG_ROW // d, len(rows)) if rows.flags.c_contiguous else 1
    if count < 2:
        return reduce(rows, axis=0)
    split = len(rows) // count * count
    ends = reduce(rows[:split].reshape(-1, count * d), axis=0).reshape(count, d)
    return reduce(np.concatenate([ends, rows[split:]]), axis=0)


def describe_not_finite(owner: str, value: float, row: int, column: int) -> str:
    """The message about a value that is NaN or infinite."""
    kind = "NaN" if np.isnan(value) else "infinity (inf)"
    return (
        f"Input X contains {kind} (row {row}, column {column}): {owner} does not "
        "accept missing values encoded as NaN, nor infinite ones. Impute or drop them first."
    )


def describe_negative(owner: str, low: float, has_signed: bool) -> str:
    """The message about negative values of a map for x >= 0, which may have a setting `signed`."""
    remedy = " or set signed=True (odd extension)" if has_signed else ""
    return (
        f"Negative values in data passed to {owner}: X goes down to "
        f"{low:g}, but the map is defined for x >= 0. Shift or clip the data{remedy}."
    )


def describe_outside_domain(
    owner: str,
    data_range: ColumnRange,
    domain: ColumnRange,
    policy: str,
    names: Sequence[str] | None,
) -> str | None:
    """The warning if columns leave the fitted domain, or None; the policy "raise" raises it.

    `domain` has one range, or one for each column; without `names`, columns have numbers.
    """
    (low, high), n_columns = data_range, len(data_range[0])
    lower, upper = (np.broadcast_to(end, n_columns) for end in domain)
    # The tail of a test set leaves the range of the training set by a little nearly always.
    slack = 0.0 if policy == "raise" else _TAIL * (upper - lower)
    outside = (low < lower - slack) | (high > upper + slack)
    if not outside.any():
        return None
    columns = np.flatnonzero(outside)
    labels = [str(j) if names is None else repr(str(names[j])) for j in columns]
    worst = int(np.argmax(outside))
    listed = ", ".join(labels[:_NAMED_COLUMNS]) + (", …" if len(labels) > _NAMED_COLUMNS else "")
    more = f" ({listed})" if labels[1:] else ""
    message = (
        f"{owner}: {len(labels)} of {n_columns} columns have values outside the "
        f"fitted domain{more}; column {labels[0]} reaches [{low[worst]:g}, "
        f"{high[worst]:g}] in these rows, fitted [{lower[worst]:g}, {upper[worst]:g}]."
    )
    if policy == "raise":
        raise ValueError(
            f"{message} Fit on data that cover the range, or use out_of_domain='clip'."
        )
    return f"{message} They are clipped to it."
