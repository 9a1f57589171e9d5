"""The range of each feature that a basis is laid over."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .base import AdditiveMap

__all__ = ["differ", "feature_ranges", "positive_range", "resolve_zero", "room"]

_QUANTILE = 0.001
_DOMAINS = "'auto', 'data' or a pair (low, high) of numbers or arrays"


def resolve_zero(owner: Any, X: Any) -> bool:
    """Whether Ψ(0) = 0 is asked for: "auto" says yes for CSR rows, whose zeros are not stored."""
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
    if isinstance(domain, str):
        if domain not in ("auto", "data"):
            raise _bad_domain(owner, domain)
        if domain == "auto" and X.dtype.kind == "u":
            low = np.zeros_like(low)
            high = 2.0 ** np.ceil(np.log2(np.maximum(high, 1) + 1)) - 1
    else:
        low, high = _given(owner, domain, len(low))
    if with_zero:
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    return low, np.where(differ(low, high), high, low + room(low, high))


def differ(low: Any, high: Any) -> Any:
    """Whether the ends of a range differ by more than their last digits: else it is a constant."""
    # Halves first: the difference of the ends may be more than the largest number.
    size = np.maximum(np.abs(low), np.abs(high))
    return high / 2 - low / 2 > np.maximum(2.0**-45 * size, 1e-290)


def room(low: Any, high: Any) -> Any:
    """A range for a constant: of length 1, or so long that its values have digits to differ in."""
    return np.maximum(1.0, 2.0**-20 * np.maximum(np.abs(low), np.abs(high)))


def _given(owner: Any, domain: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    try:
        low, high = (np.broadcast_to(np.float64(end), n_features) for end in domain)
    except (TypeError, ValueError):
        raise _bad_domain(owner, domain) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise _bad_domain(owner, domain)
    return low.copy(), high.copy()


def _bad_domain(owner: Any, domain: Any) -> ValueError:
    return ValueError(
        f"{type(owner).__name__}: domain must be {_DOMAINS} with low < high, got {domain!r}."
    )


def positive_range(X: Any) -> tuple[float, float]:
    """A robust smallest non-zero magnitude and the largest: the 0.1 % quantile, and the maximum.

    With fewer than 1000 non-zero values the quantile is the smallest of them. Data without a
    non-zero value have the range (1/255, 1).
    """
    values = np.abs((X.data if sparse.issparse(X) else X).ravel())
    values = values[values > 0].astype(np.float64)
    if values.size == 0:
        return 1 / 255, 1.0
    rank = int(_QUANTILE * (values.size - 1))
    return float(np.partition(values, rank)[rank]), float(values.max())
