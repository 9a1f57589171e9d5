"""Joint maps: formulas that act on whole rows, with their compiled counterparts.

A joint family is entered in `FAMILIES` with three functions: its number of columns, its readable
array-API formula, and its fast path for NumPy and CSR rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .outputs import check_out, output_dtype
from .spec import Spec


@dataclass(frozen=True)
class JointFamily:
    """Three readings of one spec: its width, its formula, its fast path."""

    n_columns: Callable[[Spec, int], int]
    formula: Callable[[Any, Spec, Any], Any]  # (xp, spec, X) -> φ(X)
    fast: Callable[[Spec, Any, np.ndarray, int], np.ndarray]  # (spec, X, out, block_bytes)


FAMILIES: dict[str, JointFamily] = {}


def n_columns(spec: Spec, n_features: int) -> int:
    """Output columns of a joint spec."""
    return _family(spec).n_columns(spec, n_features)


def apply(spec: Spec, X: Any, *, out: np.ndarray | None, block_bytes: int) -> np.ndarray:
    """φ(X) by the fast path."""
    shape = (X.shape[0], n_columns(spec, X.shape[1]))
    return _family(spec).fast(spec, X, check_out(out, shape, output_dtype(X.dtype)), block_bytes)


def _family(spec: Spec) -> JointFamily:
    if spec.family not in FAMILIES:
        raise ValueError(
            f"unknown map family {spec.family!r}; was the spec made by a newer version?"
        )
    return FAMILIES[spec.family]
