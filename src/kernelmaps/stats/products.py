"""Products of blocks of rows that moments are summed from: dense, sparse, and on a GPU."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._util.devices import is_tensor, multiply, to_device, to_host


def block_mean(Z: Any, w: np.ndarray | None) -> np.ndarray:
    """Weighted mean of a block's rows, in float64; 0 for sparse ones."""
    if sp.issparse(Z):
        return np.zeros(Z.shape[1])
    if is_tensor(Z):
        weights = np.ones(Z.shape[0]) if w is None else w
        return to_host(to_device(weights / weights.sum(), Z.device) @ Z.double())
    return np.average(Z, axis=0, weights=w)


def products(Z: Any, Y: Any, w: np.ndarray | None) -> tuple[Any, Any, Any]:
    """wᵀZ, YZ (None without targets) and ZᵀWZ; of tensors where they are."""
    m = like(np.ones(Z.shape[0]) if w is None else w, Z) @ Z
    V: Any = None
    if Y is not None and is_tensor(Z):
        V = multiply(like(Y.toarray() if sp.issparse(Y) else Y, Z), Z).double()
    elif Y is not None:
        V = like(Y, Z) @ Z
    m = m.double() if is_tensor(m) else np.asarray(m, dtype=np.float64)
    return m, V.toarray() if sp.issparse(V) else V, _gram(Z, w)


def class_grams(Z: Any, labels: np.ndarray, classes: np.ndarray, w: np.ndarray | None) -> Any:
    """ZᵀWZ of the rows of each class, of shape (t, D, D)."""
    parts = []
    for label in classes:
        rows = np.flatnonzero(labels == label)
        parts.append(_gram(Z[rows], None if w is None else w[rows]))
    if is_tensor(Z):
        import torch

        return torch.stack(parts).double()
    return np.stack(parts).astype(np.float64)


def zeros_on(device: Any) -> Any:
    """A function that makes tensors of zeros, in float64."""
    import torch

    return partial(torch.zeros, dtype=torch.float64, device=device)


def _gram(Z: Any, w: np.ndarray | None) -> Any:
    """ZᵀWZ: numpy sends a product with its own transpose to SYRK, half the flops of GEMM.

    It does so without holding the interpreter's lock, which SciPy's wrapper of SYRK keeps:
    two threads then do one thread's work. On a GPU, products are in the precision that is chosen.
    """
    if w is not None:
        root = like(np.sqrt(w), Z)
        Z = sp.diags_array(root, dtype=root.dtype) @ Z if sp.issparse(Z) else Z * root[:, None]
    if is_tensor(Z):
        return multiply(Z.T, Z)
    return (Z.T @ Z).toarray() if sp.issparse(Z) else Z.T @ Z


def like(values: Any, Z: Any) -> Any:
    """Factors of Z in its precision, and where it is; of integers, in float64."""
    if is_tensor(Z):
        return to_device(values, Z.device).to(Z.dtype)
    return values.astype(np.float32 if Z.dtype == np.float32 else np.float64)


def float_type(Z: Any) -> np.dtype:
    """float32 stays; everything else is float64 (sums of integers outgrow float32 quickly).

    Sparse blocks are summed about 0, so they get float64 where float32 would cancel later.
    """
    return np.dtype(np.float32 if Z.dtype == np.float32 and not sp.issparse(Z) else np.float64)


def as_columns(y: Any) -> np.ndarray:
    y = np.asarray(y, dtype=np.float64)
    return y[:, None] if y.ndim == 1 else y
