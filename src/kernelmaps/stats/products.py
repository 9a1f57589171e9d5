"""Products of blocks of rows that moments are summed from: dense, sparse, and on a card."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..device import is_tensor, multiply, to_device, to_host


def block_mean(Z: Any, w: np.ndarray | None) -> np.ndarray:
    """Weighted mean of a block's rows, in float64; 0 for sparse ones."""
    if sp.issparse(Z):
        return np.zeros(Z.shape[1])
    if is_tensor(Z):
        weights = np.ones(Z.shape[0]) if w is None else w
        return to_host(to_device(weights / weights.sum(), Z.device) @ Z.double())
    return np.average(Z, axis=0, weights=w)


def products(Z: Any, Y: Any, w: np.ndarray | None) -> tuple[Any, Any, Any]:
    """wᵀZ, YZ (None without targets) and ZᵀWZ."""
    dtype = float_type(Z)
    ones = np.ones(Z.shape[0], dtype) if w is None else w.astype(dtype)
    V: Any = None if Y is None else Y.astype(dtype) @ Z
    H = _gram(Z if w is None else _scale_rows(Z, np.sqrt(ones)))
    return np.asarray(ones @ Z, dtype=np.float64), V.toarray() if sp.issparse(V) else V, H


def class_grams(Z: Any, labels: np.ndarray, classes: np.ndarray, w: np.ndarray | None) -> Any:
    """ZᵀWZ of the rows of each class, of shape (t, D, D)."""
    parts = []
    for label in classes:
        rows = np.flatnonzero(labels == label)
        own = Z[rows]
        if is_tensor(own):
            root = None if w is None else to_device(np.sqrt(w[rows]), own.device).to(own.dtype)
            own = own if root is None else own * root[:, None]
            parts.append(multiply(own.T, own).double())
        else:
            parts.append(_gram(own if w is None else _scale_rows(own, np.sqrt(w[rows]))))
    if is_tensor(Z):
        import torch

        return torch.stack(parts)
    return np.stack(parts).astype(np.float64)


def products_on_device(Z: Any, Y: Any, w: np.ndarray | None) -> tuple[Any, Any, Any]:
    """The same for tensors; products in the precision of the features, or as it is chosen."""
    ones = to_device(np.ones(Z.shape[0]) if w is None else w, Z.device).to(Z.dtype)
    V = None
    if Y is not None:
        Y = Y.toarray() if sp.issparse(Y) else Y
        V = multiply(to_device(Y, Z.device).to(Z.dtype), Z).double()
    m = (ones @ Z).double()
    if w is not None:
        Z = Z * ones.sqrt()[:, None]
    return m, V, multiply(Z.T, Z)


def zeros_on(device: Any) -> Any:
    """A function that makes tensors of zeros, in float64."""
    import torch

    return partial(torch.zeros, dtype=torch.float64, device=device)


def _gram(Z: Any) -> np.ndarray:
    """ZᵀZ: numpy sends a product with its own transpose to SYRK, half the flops of GEMM.

    It does so without holding the interpreter's lock, which SciPy's wrapper of SYRK keeps:
    two threads then do one thread's work.
    """
    if sp.issparse(Z):
        return (Z.T @ Z).toarray()
    return Z.T @ Z


def _scale_rows(Z: Any, factor: np.ndarray) -> Any:
    if sp.issparse(Z):
        return sp.diags_array(factor, dtype=factor.dtype) @ Z
    return Z * factor[:, None]


def float_type(Z: Any) -> np.dtype:
    """float32 stays; everything else is float64 (sums of integers outgrow float32 quickly).

    Sparse blocks are summed about 0, so they get float64 where float32 would cancel later.
    """
    return np.dtype(np.float32 if Z.dtype == np.float32 and not sp.issparse(Z) else np.float64)


def as_columns(y: Any) -> np.ndarray:
    y = np.asarray(y, dtype=np.float64)
    return y[:, None] if y.ndim == 1 else y
