r"""Linear operators on rows, y = A x: by a stored matrix, or by fast transforms without one.

===========  =============================================================  ==================
operator     A                                                              arrays
===========  =============================================================  ==================
"matrix"     any                                                            matrix (d, D)
"hadamard"   blocks G (H D_R ⋯ H D_1), D of random signs, H of ±1           signs (B, R, p)
"dct"        G C D, C the orthonormal DCT-II                                signs (d,)
===========  =============================================================  ==================

The fast forms keep of the concatenated blocks the outputs `rows`, times `gains` (G). Rows shorter
than p, a power of two, are padded with zeros. A Spec of family "projection" *is* such an operator;
"fourier" puts cosines behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from .families import array
from .joint import FAMILIES, JointFamily
from .spec import Spec

__all__ = ["n_outputs", "padded_length", "project", "tiles"]

Tile = tuple[slice, Callable[[Any, np.ndarray], None]]
ROW_BYTES = 2**20
"""Size of the output pieces that are worked on while they are in the cache."""


def padded_length(d: int) -> int:
    """The smallest power of two that is at least d."""
    return 1 << max(0, int(d) - 1).bit_length()


def n_outputs(spec: Spec) -> int:
    """Rows of A."""
    return int(
        spec.arrays["matrix"].shape[1]
        if spec.numbers["operator"] == "matrix"
        else spec.arrays["rows"].size
    )


def project(xp: Any, spec: Spec, X: Any) -> Any:
    """X Aᵀ in array-API form."""
    operator = spec.numbers["operator"]
    if operator == "matrix":
        return X @ array(xp, spec, "matrix", X)
    signs = array(xp, spec, "signs", X)
    rows = xp.asarray(spec.arrays["rows"], device=getattr(X, "device", None))
    if operator == "dct":
        values = (X * signs) @ xp.asarray(dct_matrix(X.shape[1]).T, dtype=X.dtype, device=X.device)
    else:
        missing = signs.shape[2] - X.shape[1]
        padding = xp.zeros((X.shape[0], missing), dtype=X.dtype, device=getattr(X, "device", None))
        padded = xp.concat([X, padding], axis=1)
        values = xp.concat(
            [_signed_transforms(xp, padded, signs[b, ...]) for b in range(signs.shape[0])], axis=1
        )
    return xp.take(values, rows, axis=1) * array(xp, spec, "gains", X)


def _signed_transforms(xp: Any, X: Any, signs: Any) -> Any:
    for turn in range(signs.shape[0]):
        X = hadamard(xp, X * signs[turn, :])
    return X


def hadamard(xp: Any, X: Any) -> Any:
    """Walsh-Hadamard transform of each row: H_{2p} = [[H_p, H_p], [H_p, −H_p]]."""
    n, p = X.shape
    h = 1
    while h < p:
        parts = xp.reshape(X, (n, p // (2 * h), 2, h))
        a, b = parts[:, :, 0, :], parts[:, :, 1, :]
        X = xp.reshape(xp.stack([a + b, a - b], axis=2), (n, p))
        h *= 2
    return X


def dct_matrix(d: int) -> np.ndarray:
    """The orthonormal DCT-II: C[k, j] = √(2/d) cos(π k (2j + 1) / 2d), the first row over √2."""
    k, j = np.arange(d)[:, None], np.arange(d)[None, :]
    matrix = np.sqrt(2 / d) * np.cos(np.pi * k * (2 * j + 1) / (2 * d))
    matrix[0] /= np.sqrt(2)
    return matrix


def tiles(spec: Spec, dtype: np.dtype, block_bytes: int) -> Iterator[Tile]:
    """Column tiles of the operator, each with a function that writes X Aᵀ into its columns.

    A matrix is turned to the precision of the data tile by tile, never whole.
    """
    operator = spec.numbers["operator"]
    if operator != "matrix":
        fast = _hadamard_rows if operator == "hadamard" else _dct_rows
        yield slice(0, n_outputs(spec)), lambda X, out: fast(spec, X, out)
        return
    matrix = spec.arrays["matrix"]
    width = matrix.shape[1]
    if matrix.dtype != dtype:
        width = max(1, block_bytes // (matrix.shape[0] * dtype.itemsize))
    for start in range(0, matrix.shape[1], width):
        columns = slice(start, min(matrix.shape[1], start + width))
        tile = np.ascontiguousarray(matrix[:, columns], dtype=dtype)
        yield columns, lambda X, out, tile=tile: _matrix_rows(tile, X, out)


def _matrix_rows(matrix: np.ndarray, X: Any, out: np.ndarray) -> None:
    if not sparse.issparse(X):
        np.matmul(X.astype(out.dtype, copy=False), matrix, out=out)
        return
    from numba import get_num_threads

    from . import _waves

    data = X.data.astype(out.dtype, copy=False)
    _waves.csr_product(data, X.indices, X.indptr, matrix, get_num_threads(), out)


def _hadamard_rows(spec: Spec, X: Any, out: np.ndarray) -> None:
    from numba import get_num_threads

    from . import _hadamard

    signs, rows = spec.arrays["signs"], spec.arrays["rows"]
    starts = np.searchsorted(rows, np.arange(signs.shape[0] + 1) * signs.shape[2])
    gains = spec.arrays["gains"].astype(out.dtype)
    arguments = (signs, starts, rows, gains, get_num_threads(), out)
    if sparse.issparse(X):
        data = X.data.astype(out.dtype, copy=False)
        _hadamard.apply_csr(data, X.indices, X.indptr, *arguments)
    else:
        _hadamard.apply_dense(X, *arguments)


def _dct_rows(spec: Spec, X: Any, out: np.ndarray) -> None:
    from numba import get_num_threads
    from scipy.fft import dct

    block = X.toarray() if sparse.issparse(X) else X
    block = block.astype(out.dtype, copy=False) * spec.arrays["signs"].astype(out.dtype)
    values = dct(block, norm="ortho", axis=1, overwrite_x=True, workers=get_num_threads())
    np.multiply(values[:, spec.arrays["rows"]], spec.arrays["gains"].astype(out.dtype), out=out)


def _project_fast(spec: Spec, X: Any, out: np.ndarray, block_bytes: int) -> np.ndarray:
    from .apply import note_path, row_blocks

    note_path(f"{spec.numbers['operator']}:{'csr' if sparse.issparse(X) else 'dense'}")
    for columns, write in tiles(spec, out.dtype, block_bytes):
        for rows in row_blocks(X.shape[0], out.itemsize * X.shape[1], block_bytes // 4):
            write(X[rows], out[rows, columns])
    return out


FAMILIES["projection"] = JointFamily(lambda spec, d: n_outputs(spec), project, _project_fast)
