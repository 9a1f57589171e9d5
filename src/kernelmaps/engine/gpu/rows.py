"""Rows on a device, whatever library they belong to."""

from __future__ import annotations

from typing import Any

import numpy as np


def device_of(X: Any) -> Any:
    """Where an array lies; None for NumPy's that have no device."""
    return getattr(X, "device", None)


def contiguous(X: Any) -> Any:
    """Rows one after the other."""
    return X.contiguous() if hasattr(X, "contiguous") else np.ascontiguousarray(X)


def empty(X: Any, shape: tuple[int, ...]) -> Any:
    """An empty result with the type and on the device of X."""
    return X.new_empty(shape) if hasattr(X, "new_empty") else np.empty(shape, X.dtype)
