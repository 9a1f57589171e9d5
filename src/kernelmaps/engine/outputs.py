"""Allocation of results, and the record of the path that made them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

_paths: ContextVar[list[str] | None] = ContextVar("paths", default=None)


@contextmanager
def record_paths() -> Iterator[list[str]]:
    """Collect the names of the paths taken within a block: tests prove that fast paths ran.

    Yields
    ------
    list of str
        Filled while the block runs.
    """
    paths: list[str] = []
    token = _paths.set(paths)
    try:
        yield paths
    finally:
        _paths.reset(token)


def note_path(name: str) -> None:
    """Record the path that a call takes (nothing unless `record_paths` is active)."""
    paths = _paths.get()
    if paths is not None:
        paths.append(name)


def output_dtype(dtype: Any) -> np.dtype:
    """float32 for float32 and for small unsigned integers, float64 for all else."""
    small = np.dtype(dtype) in (np.dtype(np.float32), np.dtype(np.uint8), np.dtype(np.uint16))
    return np.dtype(np.float32 if small else np.float64)


def check_out(out: np.ndarray | None, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """The given output array, if it fits, or a new one."""
    if out is None:
        return np.empty(shape, dtype=dtype)
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype:
        got = f"{getattr(out, 'shape', None)} {getattr(out, 'dtype', type(out).__name__)}"
        raise ValueError(f"out must be an array of shape {shape} and dtype {dtype}; got {got}.")
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise ValueError("out must be C-contiguous and writeable.")
    return out


def check_loop(X: Any, n_features: int, out: np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuse rows or results that a compiled loop would read or write beyond their ends.

    Stands next to the call of the loop, and compares what the loop is given: estimators check X
    against their attributes, which may have been changed since, or belong to a later fit.
    """
    if X.shape[1] != n_features or out.shape != shape:
        raise ValueError(
            f"rows of {X.shape[1]} features and results of shape {out.shape} do not fit the model, "
            f"which has {n_features} features and gives {shape}: its attributes were changed after "
            "fit, or another thread fitted it meanwhile. Fit it again, or copy it for each thread."
        )
