"""Sparse tensors of torch as rows: which are taken, and what has to hold for them."""

from __future__ import annotations

from typing import Any

from .device import is_tensor


def is_sparse_tensor(X: Any) -> bool:
    """Whether X is a torch tensor that is not stored densely."""
    return is_tensor(X) and str(X.layout) != "torch.strided"


def checked_sparse_tensor(X: Any, owner: str) -> Any:
    """A CSR tensor of two dimensions, floats, whose indices are columns, each once a row."""
    import torch

    if X.layout != torch.sparse_csr or X.ndim != 2:
        raise TypeError(
            f"{owner}: X is a tensor with the layout {X.layout} and {X.ndim} dimensions; of sparse "
            "tensors, CSR matrices are taken: X.to_sparse_csr()."
        )
    values = X.values()
    values = values if values.dtype.is_floating_point else values.double()
    try:
        return torch.sparse_csr_tensor(
            X.crow_indices(), X.col_indices(), values, size=X.shape, check_invariants=True
        )
    except RuntimeError as error:
        raise ValueError(f"{owner}: X is not a valid CSR tensor: {error}") from None
