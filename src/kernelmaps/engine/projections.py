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

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from .._util.schema import Check, Lengths, SchemaError, either, text
from .._util.schema import array as numbers_in
from .._util.sparse import is_sparse
from .._util.threads import BLOCK_BYTES, limit_blas, power_of_two, run_in_threads
from .families import FAMILIES, JointFamily, array
from .outputs import note_path
from .spec import FamilySchema, Spec, register_schema

Write = Callable[[slice, np.ndarray, slice], None]
PIECE_ROWS = 1024
"""Rows that are made at a time where it is not BLAS that makes them, and"""
LEAST_ROWS = 64
"""rows that are worth a task of their own."""
BLAS_VALUES = 1 << 23
"""Values of one product of BLAS, at most, and `BLAS_COLUMNS` of its columns."""
BLAS_COLUMNS = 4096
CSR_COLUMNS = 256
"""Columns of a matrix at a time for CSR rows, so that the cache holds them; BLAS has its own."""


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
    rows = xp.asarray(np.array(spec.arrays["rows"]), device=getattr(X, "device", None))
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


def run_in_pieces(
    spec: Spec,
    X: Any,
    dtype: np.dtype,
    work: Callable[[slice, slice, Write], None],
) -> None:
    """Call ``work(rows, columns, write)`` for pieces that cover X Aᵀ, in threads.

    ``write(rows, out, columns)`` puts the piece into `out`. Each thread runs BLAS on its own piece,
    since threads *inside* of BLAS would have to meet after every piece. A matrix of another
    precision is turned into that of the data tile by tile, never whole.
    """
    from numba import get_num_threads

    n_threads = get_num_threads()
    columns, ranges, max_rows = _partition(spec, X, dtype, BLOCK_BYTES // n_threads, n_threads)
    ends = sorted({X.shape[0] * k // ranges for k in range(ranges + 1)})
    tasks = [(tile, rows) for tile in columns for rows in pairwise(ends)]

    def run(begin: int, end: int) -> None:
        for tile, (start, stop) in tasks[begin:end]:
            write, count = _writer(spec, tile, X, dtype), stop - start
            pieces = max(1, round(count / max_rows))  # of equal size: BLAS is slow on short ones
            ends = [start + count * k // pieces for k in range(pieces + 1)]
            for rows in pairwise(ends):
                work(slice(*rows), tile, write)
            del write  # and with it a tile, before the next one is made

    with limit_blas(1):
        run_in_threads(run, len(tasks), n_threads)


def _partition(
    spec: Spec, X: Any, dtype: np.dtype, tile_bytes: int, n_threads: int
) -> tuple[list[slice], int, int]:
    """Tiles of columns, the number of ranges of rows, and the rows of a piece.

    A product of h × w values copies its h rows and its w columns into BLAS' own order first, at a
    cost of 1/h + 1/w of the rest (up to 20 % for h = w = 500): threads share the rows or the
    columns so that this is least, and pieces are large. A cosine of values that have left the cache
    in the meantime takes hardly longer.
    """
    rows, n = X.shape[0], n_outputs(spec)
    ranges = max(1, min(4 * n_threads, rows // LEAST_ROWS))  # where it is not BLAS
    if spec.numbers["operator"] != "matrix":
        return [slice(0, n)], ranges, PIECE_ROWS
    matrix, blas = spec.arrays["matrix"], not is_sparse(X)
    shares = [k for k in range(1, n_threads + 1) if n_threads % k == 0]
    share = min(shares, key=lambda k: k / n + n_threads / k / max(1, rows))  # of the columns
    width = min(-(-n // share), BLAS_COLUMNS) if blas else CSR_COLUMNS
    if not blas or matrix.dtype != dtype:  # else a tile is a view, and costs no memory
        width = min(width, max(8, tile_bytes // (matrix.shape[0] * dtype.itemsize)))
    count = -(-n // width)
    count = min(n, -(-count // share) * share) if blas else count
    tiles = [slice(n * k // count, n * (k + 1) // count) for k in range(count)]
    if not blas:
        return tiles, 1 if count >= 4 * n_threads else ranges, PIECE_ROWS
    converted = X.dtype != dtype
    return tiles, n_threads // share, PIECE_ROWS if converted else max(1, BLAS_VALUES // width)


def _writer(spec: Spec, columns: slice, X: Any, dtype: np.dtype) -> Write:
    operator = spec.numbers["operator"]
    if operator == "matrix":
        tile = spec.arrays["matrix"][:, columns].astype(dtype, copy=False)
        return partial(_matrix_rows, np.ascontiguousarray(tile) if is_sparse(X) else tile, X)
    if operator == "dct":
        return partial(_dct_rows, spec, X)
    signs, rows = spec.arrays["signs"], spec.arrays["rows"]
    starts = np.searchsorted(rows, np.arange(signs.shape[0] + 1) * signs.shape[2])
    from ._joint_loops import Transform

    transform = Transform(signs, starts, rows, spec.arrays["gains"].astype(dtype))
    return partial(_hadamard_rows, transform, X)


def _matrix_rows(matrix: np.ndarray, X: Any, rows: slice, out: np.ndarray, columns: slice) -> None:
    if not is_sparse(X):
        np.matmul(X[rows].astype(out.dtype, copy=False), matrix, out=out[rows, columns])
        return
    from . import _joint_loops

    ends = X.indptr[rows.start : rows.stop + 1]  # slices of the matrix itself would be checked
    stored = slice(ends[0], ends[-1])
    data, ends = X.data[stored].astype(out.dtype, copy=False), ends - ends[0]
    _joint_loops.csr_product(data, X.indices[stored], ends, matrix, rows.start, columns.start, out)


def _hadamard_rows(transform: Any, X: Any, rows: slice, out: np.ndarray, columns: slice) -> None:
    from . import _joint_loops

    block = X[rows].toarray() if is_sparse(X) else X[rows]
    block = np.ascontiguousarray(block, dtype=out.dtype)
    workspace = _joint_loops.make_workspace(transform, out.dtype)
    _joint_loops.transform_rows(block, transform, workspace, rows.start, out)


def _dct_rows(spec: Spec, X: Any, rows: slice, out: np.ndarray, columns: slice) -> None:
    from scipy.fft import dct

    block = X[rows].toarray() if is_sparse(X) else X[rows]
    block = block.astype(out.dtype, copy=False) * spec.arrays["signs"].astype(out.dtype)
    values = dct(block, norm="ortho", axis=1, overwrite_x=True)[:, spec.arrays["rows"]]
    np.multiply(values, spec.arrays["gains"].astype(out.dtype), out=out[rows, columns])


def _project_fast(spec: Spec, X: Any, out: np.ndarray) -> np.ndarray:
    note_path(f"{spec.numbers['operator']}:{'csr' if is_sparse(X) else 'dense'}")
    run_in_pieces(spec, X, out.dtype, lambda rows, tile, write: write(rows, out, tile))
    return out


FAMILIES["projection"] = JointFamily(lambda spec, d: n_outputs(spec), project, _project_fast)


# ---- schema -------------------------------------------------------------------------------------

OPERATOR_NUMBERS: dict[str, Check] = {"operator": text(("matrix", "hadamard", "dct"))}


OPERATOR_ARRAYS: dict[str, Check] = {
    "matrix": numbers_in("f8 f4", "_ _", low=-1e150, high=1e150),  # products stay finite
    "rows": numbers_in("i8 i4", "outputs", low=0),
    "gains": numbers_in("f8 f4", "outputs", low=-1e150, high=1e150),
    # Of blocks (B, R, p) for Hadamard transforms, or (d,) for the DCT.
    "signs": either(tuple(numbers_in("i1", shape, low=-1, high=1) for shape in ("_ _ _", "_"))),
}


def check_operator(spec: Spec, lengths: Lengths) -> None:
    """The arrays of one operator, with rows that it has: the loops gather them in order."""
    where, operator = f"the spec of family {spec.family!r}", spec.numbers["operator"]
    needed = {"matrix"} if operator == "matrix" else {"signs", "rows", "gains"}
    present = {name for name in OPERATOR_ARRAYS if name in spec.arrays}
    if present != needed:
        raise SchemaError(
            f"{where} needs {sorted(needed)} for {operator!r}, found {sorted(present)}"
        )
    if operator == "matrix":
        if 0 in spec.arrays["matrix"].shape:
            raise SchemaError(f"{where}: 'matrix' is empty")
        return
    signs, rows = spec.arrays["signs"], spec.arrays["rows"]
    if signs.ndim != (3 if operator == "hadamard" else 1) or not signs.size:
        raise SchemaError(f"{where}: 'signs' has the wrong shape for {operator!r}")
    if operator == "hadamard" and signs.shape[2] != power_of_two(signs.shape[2]):
        raise SchemaError(f"{where}: 'signs' must have a power of two for its length")
    n_transformed = signs.shape[0] * signs.shape[2] if operator == "hadamard" else signs.size
    if np.any(np.diff(rows) < 0) or rows[-1] >= n_transformed:
        raise SchemaError(f"{where}: 'rows' must ascend and be less than {n_transformed}")


def takes_rows(spec: Spec, n_features: int) -> bool:
    """Whether an operator takes rows of so many features; fast transforms pad shorter ones."""
    operator = spec.numbers["operator"]
    if operator == "hadamard":
        return 1 <= n_features <= spec.arrays["signs"].shape[2]
    name = "matrix" if operator == "matrix" else "signs"
    return n_features == spec.arrays[name].shape[0]


register_schema(
    "projection",
    FamilySchema(
        optional_arrays=OPERATOR_ARRAYS,
        numbers=OPERATOR_NUMBERS,
        relations=check_operator,
        takes=takes_rows,
    ),
)
