"""Application of specs to rows: choose a path, run it, and record which it was."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._util.compiling import is_interpreted, make_read_only
from .._util.devices import namespace_of
from .._util.lazy import scipy
from .._util.sparse import check_sparse, is_sparse
from .._util.threads import BLOCK_BYTES, limit_threads, row_blocks, rows_per_thread, run_in_threads
from . import gpu
from .extent import Extent, extent_of
from .families import CURVES, FAMILIES, joint_columns
from .outputs import check_out, note_path, output_dtype
from .reference import evaluate, evaluate_table, real_rows
from .spec import Spec, check_width
from .table import CODE, Table
from .table.layout import layout_of
from .tabulated import PER_FEATURE, make_code_table, make_table, n_columns, zero_at_zero

MAX_READABLE = 2**14  # values up to which the readable form is about as fast as a loop
_CSR_RESULT = "CSR input of a map with phi(0) = 0, whose result is CSR"


def apply(
    spec: Spec,
    X: Any,
    *,
    out: np.ndarray | None = None,
    n_jobs: int | None = None,
    extent: Extent | None = None,
) -> Any:
    """φ(X) for the map that `spec` is.

    Parameters
    ----------
    spec : Spec
        The map.
    X : array or CSR matrix
        Rows. NumPy arrays (float32, float64, uint8, uint16) and CSR matrices run on
        compiled loops, arrays of other libraries on the array-API formulas, on their own device.
    out : ndarray, optional
        Where a dense result is written; it may overlap X, which is then copied first.
    n_jobs : int, optional
        Threads; None means all that are available.
    extent : Extent, optional
        Range of the values, if the caller has looked already.

    Returns
    -------
    array or CSR matrix
        CSR for CSR input wherever φ(0) = 0, otherwise dense.
    """
    if not (isinstance(X, np.ndarray) or is_sparse(X)):
        _refuse_out(out, "arrays that are not NumPy's")
        return apply_array_api(spec, X)[0]
    if extent is None:  # else the caller has looked at the rows
        check_sparse(X, "apply")
    check_width(spec, X.shape[1])
    if spec.family == "piecewise" and spec.numbers["binning"] == CODE:
        _check_codes(spec, X)
    parts = (X.data, X.indices, X.indptr) if is_sparse(X) else (X,)
    if out is not None and any(np.may_share_memory(out, array) for array in parts):
        X = X.copy()  # results of the first rows would change the values of later ones
    if spec.family == "chain":
        return _apply_chain(spec, X, out, n_jobs)
    if is_interpreted():
        return _apply_interpreted(spec, X, out)
    if _is_joint(spec):
        note_path(f"joint:{spec.family}")
        shape = (X.shape[0], joint_columns(spec, X.shape[1]))
        out = check_out(out, shape, output_dtype(X.dtype))
        with limit_threads(n_jobs):
            return FAMILIES[spec.family].fast(spec, X, out)
    if is_sparse(X):
        return _apply_additive_csr(spec, X, out, extent, n_jobs)
    return _apply_additive_dense(spec, X, out, extent, n_jobs)


def _apply_interpreted(spec: Spec, X: Any, out: Any) -> Any:
    """φ(X) by the readable form, where nothing is compiled; of CSR rows, a block is made dense."""
    note_path(f"reference:{spec.family}")
    shape, dtype = (X.shape[0], stage_columns(spec, X.shape[1])), output_dtype(X.dtype)
    stored = is_sparse(X) and not _is_joint(spec) and zero_at_zero(spec)
    if stored:
        _refuse_out(out, _CSR_RESULT)
    else:
        out = check_out(out, shape, dtype)
    parts = [scipy.sparse.csr_matrix((0, shape[1]), dtype=dtype)]
    for rows in row_blocks(X.shape[0], 4 * 8 * shape[1]):
        block = X[rows].toarray() if is_sparse(X) else X[rows]
        values = evaluate(spec, block.astype(dtype, copy=False))
        if stored:
            parts.append(scipy.sparse.csr_matrix(values))
        else:
            out[rows] = values
    return scipy.sparse.vstack(parts, format="csr") if stored else out


def _check_codes(spec: Spec, X: Any) -> None:
    """Codes are places in a table: refuse those that it does not have."""
    if X.dtype.kind != "u" or is_sparse(X):
        raise ValueError(f"codes must be a dense array of unsigned integers, found {X.dtype}.")
    largest = X.max(axis=0, initial=0)
    if (largest >= spec.arrays["bins"][spec.arrays["set_of"]]).any():
        raise ValueError(f"the code {largest.max()} is beyond the last bin of its feature.")


def apply_array_api(spec: Spec, X: Any, check: int = gpu.ANY) -> tuple[Any, bool]:
    """φ of rows of another array library, on their own device.

    Rows on a GPU run on its kernels, which look at the values as they read them: the second
    result says whether one was found that `check` refuses. The readable form does not look.
    """
    if gpu.usable_for(X):
        note_path(f"gpu:{spec.family}")
        return gpu.apply(spec, X, check=check)
    note_path(f"reference:{spec.family}")
    return evaluate(spec, real_rows(X, namespace_of(X))), False


def sums_array_api(table: Table, X: Any, check: int = gpu.FINITE) -> tuple[Any, bool]:
    """Sums of a table's columns over the features, for rows of another array library.

    Also, whether a value was found that `check` refuses, or that is outside the table's range.
    """
    xp = namespace_of(X)
    if gpu.usable_for(X):
        note_path("gpu:sums")
        return gpu.sums(table, X, check)
    note_path("reference:sums")
    X, outputs = real_rows(X, xp), int(table.width[0])
    ends = (end[table.set_of] for end in (table.clip_low, table.clip_high))
    put = partial(xp.asarray, dtype=X.dtype, device=X.device)
    kind = np.float64 if X.dtype == xp.float64 else np.float32
    low, high = (put(end.astype(kind)) for end in ends)
    parts, inside = [xp.zeros((0, outputs), dtype=xp.float64, device=X.device)], True
    for rows in row_blocks(X.shape[0], 8 * 8 * table.n_columns):
        block = X[rows, :]
        inside &= bool(xp.all((block >= low) & (block <= high)))
        terms = evaluate_table(table, block, xp)
        shape = (block.shape[0], table.n_features, outputs)
        parts.append(xp.sum(xp.reshape(terms, shape), axis=1, dtype=xp.float64))
    return xp.concat(parts, axis=0), not inside


def _apply_additive_dense(
    spec: Spec,
    X: np.ndarray,
    out: np.ndarray | None,
    extent: Extent | None,
    n_jobs: int | None,
) -> np.ndarray:
    n, d = X.shape
    dtype = output_dtype(X.dtype)
    out = check_out(out, (n, n_columns(spec, d)), dtype)
    if X.dtype.kind == "u":
        table = make_code_table(spec, 2 ** (8 * X.itemsize), d, out.nbytes // 8)
        if table is None:
            for rows in row_blocks(n, 4 * d):
                block = X[rows].astype(dtype)
                _apply_additive_dense(spec, block, out[rows], None, n_jobs)
            return out
    else:
        X = np.ascontiguousarray(X, dtype=dtype)
        table = make_table(spec, dtype, d, extent or extent_of(X, n_jobs))
    if table is not None:
        _transform_dense(table, X, out, n_jobs)
        return out
    note_path("formula:dense")
    for rows in row_blocks(n, 4 * 8 * out.shape[1]):
        out[rows] = evaluate(spec, X[rows], xp=np)
    return out


def _transform_dense(table: Table, X: np.ndarray, out: np.ndarray, n_jobs: int | None) -> None:
    """φ of dense rows, by the compiled loop."""
    from .table.transform import transform_dense, transform_workspace

    note_path(f"table:{_BINNINGS[table.binning]}:dense")
    layout, x, flat = layout_of(table), make_read_only(X.reshape(-1)), out.reshape(-1)
    run_in_threads(
        lambda begin, end: transform_dense(
            layout, x, transform_workspace(layout), begin, end, flat
        ),
        X.shape[0],
        n_jobs,
        rows_per_thread(out.shape[1]),
    )


def apply_table(
    table: Table, X: np.ndarray, missing: np.ndarray, max_readable: int = MAX_READABLE
) -> np.ndarray:
    """φ of dense float64 rows, with the numbers of `missing` for NaN.

    Up to `max_readable` results are not worth a compiled loop: loading one takes a second.
    """
    shape = (len(X), table.n_columns)
    if np.prod(shape) <= max_readable or is_interpreted():
        note_path("reference:table")
        return evaluate_table(table, X, np, missing)
    out = np.empty(shape)
    _transform_dense(table, X, out, n_jobs=1)
    gaps = np.isnan(X)
    if gaps.any():
        gaps = np.repeat(gaps, np.diff(table.column), axis=1)
        np.copyto(out, missing, where=gaps)
    return out


def _apply_additive_csr(
    spec: Spec,
    X: scipy.sparse.csr_matrix,
    out: np.ndarray | None,
    extent: Extent | None,
    n_jobs: int | None,
) -> Any:
    dtype = output_dtype(X.dtype)
    if not zero_at_zero(spec):  # dense results; of the input, one block at a time is made dense
        out = check_out(out, (X.shape[0], n_columns(spec, X.shape[1])), dtype)
        note_path("table:csr-to-dense")
        for rows in row_blocks(X.shape[0], dtype.itemsize * X.shape[1]):
            block = X[rows].toarray().astype(dtype, copy=False)
            _apply_additive_dense(spec, block, out[rows], None, n_jobs)
        return out
    _refuse_out(out, _CSR_RESULT)
    data = np.ascontiguousarray(X.data, dtype=dtype)
    table = make_table(spec, dtype, X.shape[1], extent or extent_of(data[None, :], n_jobs))
    if table is None:
        return _formula_csr(spec, X, data)
    note_path(f"table:{_BINNINGS[table.binning]}:csr")
    return stored_columns(table, data, X.indices, X.indptr, n_jobs)


def stored_columns(
    table: Table, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_jobs: int | None
) -> scipy.sparse.csr_matrix:
    """Every stored value of CSR rows becomes the stored columns of its bin."""
    from .table.locate import Stored, stored_rows
    from .table.transform import transform_stored, transform_workspace

    n = len(indptr) - 1
    n_stored = table.band[table.set_of].astype(np.int64)
    if len(set(n_stored.tolist())) == 1:
        starts = indptr.astype(np.int64) * n_stored[0]
    else:
        starts = np.concatenate([[0], np.cumsum(n_stored[indices])])[indptr]
    wide = max(int(starts[-1]), table.n_columns) > np.iinfo(np.int32).max
    index = np.int64 if wide else np.int32
    values, columns = np.empty(starts[-1], dtype=data.dtype), np.empty(starts[-1], dtype=index)
    layout, rows = layout_of(table), stored_rows(data, indices, indptr)
    out = Stored(values, columns, starts)
    run_in_threads(
        lambda begin, end: transform_stored(
            layout, rows, transform_workspace(layout), begin, end, out
        ),
        n,
        n_jobs,
        rows_per_thread(int(starts[-1]) // max(1, n)),
    )
    shape = (n, table.n_columns)
    return scipy.sparse.csr_matrix((values, columns, starts.astype(index)), shape=shape, copy=False)


def _formula_csr(
    spec: Spec, X: scipy.sparse.csr_matrix, data: np.ndarray
) -> scipy.sparse.csr_matrix:
    """Stored values through the formula, for curves that no table is worth building for."""
    from .reference import curve_values

    note_path("formula:csr")
    width, arrays = n_columns(spec, 1), dict(spec.arrays)
    shape = (X.shape[0], X.shape[1] * width)
    if not data.size:
        return scipy.sparse.csr_matrix(shape, dtype=data.dtype)
    for name in PER_FEATURE:
        if len(arrays.get(name, ())) > 1:  # of each value: they are features of one long row
            arrays[name] = arrays[name][X.indices]
    values = curve_values(Spec(spec.family, arrays, spec.numbers), data, np)
    columns = X.indices[:, None].astype(np.int64) * width + np.arange(width)
    parts = values.ravel().astype(data.dtype), columns.ravel(), X.indptr.astype(np.int64) * width
    return scipy.sparse.csr_matrix(parts, shape=shape)


def _apply_chain(spec: Spec, X: Any, out: np.ndarray | None, n_jobs: int | None) -> np.ndarray:
    """Stage after stage on row blocks, so that no intermediate result is ever stored whole.

    Blocks have at least 512 rows, and 1024 before a matrix product, which would otherwise wait for
    its matrix; all are of nearly the same size.
    """
    head, *tail = spec.parts
    width = stage_columns(head, X.shape[1])
    shape = (X.shape[0], stage_columns(spec, X.shape[1]))
    out = check_out(out, shape, output_dtype(X.dtype))
    is_matrix = tail[0].numbers.get("operator") == "matrix"
    step = max(1024 if is_matrix else 512, BLOCK_BYTES // (2 * out.itemsize * width))
    step = max(1, -(-X.shape[0] // max(1, -(-X.shape[0] // step))))
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(X.shape[0], start + step))
        block = X[rows]
        # Dense rows are multiplied faster: BLAS makes up for nine zeros in ten.
        if is_matrix and is_sparse(X) and block.nnz > 0.1 * block.shape[0] * block.shape[1]:
            block = block.toarray()
        Z = apply(head, block, n_jobs=n_jobs)
        for index, stage in enumerate(tail):
            target = out[rows] if index == len(tail) - 1 else None
            Z = apply(stage, Z, out=target, n_jobs=n_jobs)
    return out


def stage_columns(spec: Spec, n_features: int) -> int:
    """Output columns of any spec; ValueError if rows of so many features do not fit it."""
    check_width(spec, n_features)
    if spec.family == "chain":
        for stage in spec.parts:
            n_features = stage_columns(stage, n_features)
        return n_features
    return joint_columns(spec, n_features) if _is_joint(spec) else n_columns(spec, n_features)


def _is_joint(spec: Spec) -> bool:
    return spec.family not in CURVES and spec.family not in ("piecewise", "chain")


def _refuse_out(out: Any, kind: str) -> None:
    if out is not None:
        raise ValueError(f"out= cannot be used with {kind}.")


_BINNINGS = ("affine", "log2", "edges", "code")
