"""Range of each feature for spline, trigonometric and Hermite bases."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse

from .._util.threads import in_threads
from .base import AdditiveMap

_QUANTILE = 0.001  # of the positive values: the least value of a domain; smaller ones are rare
_SAMPLE = 1 << 15  # values that suggest where the quantile lies
_GRAIN = 1 << 16  # values of a block


def resolve_zero(owner: Any, X: Any) -> bool:
    """Whether Ψ(0) = 0 is required: "auto" says yes for CSR rows, whose zeros are not stored."""
    if owner.zero_at_zero == "auto":
        return bool(sparse.issparse(X))
    if not isinstance(owner.zero_at_zero, bool | np.bool_):
        raise ValueError(
            f"{type(owner).__name__}: zero_at_zero must be True, False or 'auto', "
            f"got {owner.zero_at_zero!r}."
        )
    return bool(owner.zero_at_zero)


def feature_ranges(
    owner: AdditiveMap, X: Any, domain: Any, with_zero: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends, one per feature; a constant one gets a range of length 1 (a large one
    a longer range).

    ``domain="auto"`` takes the data's own range, but for unsigned integers the smallest
    [0, 2^k − 1] that holds it: features then share a handful of ranges, and their tables.
    """
    low, high = (np.asarray(end, dtype=np.float64) for end in owner._column_range(X))
    named = isinstance(domain, str)
    if not named or domain not in ("auto", "data"):
        low, high = _given(owner, domain, len(low), named)
    elif domain == "auto" and X.dtype.kind == "u":
        low = np.zeros_like(low)
        high = 2.0 ** np.ceil(np.log2(np.maximum(high, 1) + 1)) - 1
    if with_zero:
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    return low, np.where(differ(low, high), high, low + range_of_constant(low, high))


def differ(low: Any, high: Any) -> Any:
    """Whether the ends of a range differ by more than their last digits: else it is a constant."""
    # Halves first: the difference of the ends may be more than the largest number.
    size = np.maximum(np.abs(low), np.abs(high))
    return high / 2 - low / 2 > np.maximum(2.0**-45 * size, 1e-290)


def range_of_constant(low: Any, high: Any) -> Any:
    """A range for a constant: of length 1, or so long that its values have digits to differ in."""
    return np.maximum(1.0, 2.0**-20 * np.maximum(np.abs(low), np.abs(high)))


def _given(owner: Any, domain: Any, n_features: int, named: bool) -> tuple[np.ndarray, np.ndarray]:
    """The ends of a domain that was given, unless it is an unknown name."""
    with suppress(TypeError, ValueError):
        low, high = (np.broadcast_to(np.float64(end), n_features) for end in domain)
        finite = np.isfinite(low).all() and np.isfinite(high).all()
        if finite and (low < high).all() and not named:
            return low.copy(), high.copy()
    raise ValueError(
        f"{type(owner).__name__}: domain must be 'auto', 'data' or a pair (low, high) of numbers "
        f"or arrays with low < high, got {domain!r}."
    )


def positive_range(X: Any, n_jobs: int | None = None) -> tuple[float, float]:
    """A robust smallest non-zero magnitude and the largest: the 0.1 % quantile, and the maximum.

    With fewer than 1000 non-zero values the quantile is the smallest of them. Data without a
    non-zero value have the range (1/255, 1).

    The quantile is exact, so that the order of the rows does not matter, but only the smallest
    values are sorted: those up to a threshold that a sample of the values suggests.
    """
    values = (X.data if sparse.issparse(X) else X).ravel(order="K")
    threshold = _threshold(values)

    def look(start: int, stop: int) -> tuple[list[np.ndarray], int, float]:
        return _small_values(values[start:stop], threshold)

    parts = in_threads(look, values.size, n_jobs, _GRAIN)
    small = np.concatenate([values for summary in parts for values in summary[0]])
    count = sum(summary[1] for summary in parts)
    largest = max((summary[2] for summary in parts), default=0.0)
    if count == 0:
        return 1 / 255, 1.0
    rank = int(_QUANTILE * (count - 1))
    if rank >= small.size:  # the sample misled: sort them all
        small = np.abs(values[values != 0].astype(np.float64))
    return float(np.partition(small, rank)[rank]), float(largest)


def _threshold(values: np.ndarray) -> float:
    """A magnitude that is most likely above the quantile, and below most values."""
    sample = np.abs(values[:: max(1, values.size // _SAMPLE)].astype(np.float64))
    sample = np.sort(sample[sample > 0])
    if values.size <= 4 * _SAMPLE or sample.size < _SAMPLE // 8:
        return np.inf
    return float(sample[int(4 * _QUANTILE * sample.size) + 8])


def _small_values(values: np.ndarray, threshold: float) -> tuple[list[np.ndarray], int, float]:
    """Non-zero magnitudes up to the threshold; how many are not zero; the largest."""
    small, count, largest = [np.empty(0)], 0, 0.0
    for start in range(0, values.size, _GRAIN):  # blocks that stay in the cache
        block = values[start : start + _GRAIN]
        low, high = float(block.min()), float(block.max())
        largest = max(largest, high, -low)
        zeros = block.size - np.count_nonzero(block) if low <= 0 <= high else 0
        count += block.size - zeros
        candidates = block[block <= threshold]
        if low < 0:
            candidates = np.abs(candidates.astype(np.float64))
            candidates = candidates[candidates <= threshold]
        small.append(candidates[candidates > 0].astype(np.float64))
    return small, count, largest
