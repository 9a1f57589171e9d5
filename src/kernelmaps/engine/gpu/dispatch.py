"""Application of specs to rows on a GPU: a kernel where there is one, else the formula.

Arrays are torch tensors on a GPU; what launches kernels is not particular to torch, so that the
tests run the same code on NumPy arrays.
"""

from __future__ import annotations

from functools import lru_cache, partial
from importlib.util import find_spec
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from ..._util.devices import is_tensor, multiply, namespace_of
from ..._util.threads import power_of_two
from ..extent import Extent
from ..families import CURVES, FAMILIES, joint_columns
from ..projections import project
from ..reference import evaluate, real_rows
from ..spec import Spec
from ..table import CODE, EDGES, Table
from ..table.layout import code_bins, layout_of
from ..table.stored import LOG2
from ..tabulated import make_code_table, make_table, n_columns
from .device_tables import (
    COLUMNS,
    DeviceCodes,
    DeviceSums,
    DeviceTable,
    contiguous,
    device_of,
    put_bins,
    put_sums,
    put_table,
)

ANY, FINITE, NON_NEGATIVE = range(3)
VALUES = 32  # that a program locates at a time: one for each of its threads
STEPS = 8  # how often it does so
SHARES = 16  # of the features of a sum, at most
FUSED = {"enable_fp_fusion": True}  # products are added unrounded, whatever Triton's default is
_CHAIN_BYTES = 2**30  # of intermediate results


class Sizes(NamedTuple):
    """What a program does at a time, which its compiler knows; each kernel has its own few."""

    tile: int = 0  # values (a field of that name would be hidden by that of Triton's tuples)
    rows: int = 0
    columns: int = 0
    features: int = 0
    steps: int = 1


def usable_for(X: Any) -> bool:
    """Whether rows lie on a GPU, and there is a Triton for it."""
    return is_tensor(X) and bool(X.is_cuda) and _has_triton()


@lru_cache
def _has_triton() -> bool:
    """Whether torch has a Triton that takes tuples and descriptors: from 3.4 on (torch 2.8)."""
    try:
        return bool(find_spec("torch") and find_spec("triton.tools.tensor_descriptor"))
    except ModuleNotFoundError:  # no Triton at all
        return False


def apply(spec: Spec, X: Any, *, check: int = ANY) -> tuple[Any, bool]:
    """φ(X), and whether a value was found that `check` refuses.

    Parameters
    ----------
    spec : Spec
        The map.
    X : array of shape (n, d)
        Rows on a GPU: float64, float32, float16, bfloat16, or unsigned integers.
    check : int
        What is refused: nothing (0), values that are not finite (1), or negative ones, too (2). The
        result is only meaningful if there is none.
    """
    return _apply(namespace_of(X), spec, X, check)


def _apply(xp: Any, spec: Spec, X: Any, check: int) -> tuple[Any, bool]:
    if spec.family == "chain":
        return _chain(xp, spec, X, check)
    if spec.family in ("fourier", "projection"):
        Z, dtype = _linear(xp, spec, _floats(xp, X)), _result(xp, X)
        return Z if Z.dtype == dtype else xp.astype(Z, dtype), _has_refused_values(xp, X, check)
    if X.dtype != xp.uint8:
        X = real_rows(X, xp)
    if spec.family != "piecewise" and spec.family not in CURVES:
        return evaluate(spec, X, xp=xp), _has_refused_values(xp, X, check)
    table = _find_table(xp, spec, X)
    if table is None:
        return evaluate(spec, real_rows(X, xp), xp=xp), _has_refused_values(xp, X, check)
    flag = _flag(xp, X, check)
    out = xp.empty((X.shape[0], table.width), dtype=_result(xp, X), device=device_of(X))
    if X.shape[0]:
        _launch_transform(table, contiguous(X), out, flag, check)
    return out, bool(check) and bool(flag[0])


def _launch_transform(table: DeviceTable, X: Any, out: Any, flag: Any, check: int) -> None:
    """φ(X) into `out`; the flag is set where `check` finds a value that it refuses."""
    from . import kernels

    n, d = X.shape
    n_columns = int(table.n_columns)
    columns = min(COLUMNS, power_of_two(n_columns))
    # Octaves of few columns: two for each thread, which has registers left.
    values = 2 * VALUES if table.bins.kind == LOG2 and columns <= 8 else VALUES
    group = values // gcd(values, d)  # rows of which whole tiles are made
    grid = (-(-n // (group * STEPS)), group * d // values, -(-n_columns // columns))
    sizes = Sizes(tile=values, columns=columns, steps=STEPS)
    kernels.transform[grid](X, out, flag, n, group, table, check, sizes, num_warps=1, **FUSED)


def sums(table: Table, X: Any, check: int) -> tuple[Any, bool]:
    """Sums of a table's columns over the features, and whether a value is refused or outside.

    With ``check=ANY`` nobody looks, and nothing waits for the GPU. The shares of a sum, some
    dozens of features each, have the rows' precision, their total has float64's.
    """
    xp = namespace_of(X)
    X = contiguous(_floats(xp, X) if table.binning != CODE else X)
    (n, d), outputs, device = X.shape, int(table.width[0]), device_of(X)
    if not n:
        return xp.zeros((0, outputs), dtype=xp.float64, device=device), False
    from . import kernels

    device_table, flag = _put_sums(table, _kind(xp, X), xp, device), _flag(xp, X, check)
    columns = min(COLUMNS, power_of_two(outputs))
    rows, features = (32, 4) if columns > 4 else (16, 8)
    split = -(-d // (SHARES * features)) * features
    shares = -(-d // split)
    dtype = xp.float64 if X.dtype == xp.float64 else xp.float32
    out = xp.empty((shares, n, outputs), dtype=dtype, device=device)
    grid = (-(-n // rows), shares, -(-outputs // columns))
    sizes = Sizes(rows=rows, features=features, columns=columns)
    kernels.dot[grid](
        X, out, flag, n, split, device_table, check, sizes, num_warps=rows // 16, **FUSED
    )
    # Adding the shares in their order gives the same numbers every time.
    return xp.sum(out, axis=0, dtype=xp.float64), bool(check) and bool(flag[0])


def encode(
    table: Table, ends: np.ndarray, unit: float, X: Any, dtype: np.dtype
) -> tuple[Any, bool]:
    """Codes of rows, and whether all values were within `ends`, one pair for each feature."""
    xp = namespace_of(X)
    X, flag = contiguous(_floats(xp, X)), _flag(xp, X, FINITE)
    device_table = _put_codes(table, ends.tobytes(), unit, xp, device_of(X))
    out = xp.empty(X.shape, dtype=getattr(xp, dtype.name), device=device_of(X))
    if X.shape[0]:
        launch_encode(device_table, X, out, flag)
    return out, not bool(flag[0])


def launch_encode(table: DeviceCodes, X: Any, out: Any, flag: Any) -> None:
    """Codes into `out`; the flag is set where values are outside."""
    from . import kernels

    n, d = X.shape
    values = VALUES if table.bins.kind == EDGES else 2 * VALUES  # edges take registers
    group = values // gcd(values, d)
    grid = (-(-n // (group * STEPS)), group * d // values)
    sizes = Sizes(tile=values, steps=STEPS)
    # Products are rounded before they are added, as elsewhere.
    kernels.encode[grid](X, out, flag, n, group, table, sizes, num_warps=1, enable_fp_fusion=False)


@lru_cache(maxsize=16)
def _put_sums(table: Table, dtype: np.dtype, xp: Any, device: Any) -> DeviceSums:
    from ..table.dot import sum_table

    return put_sums(sum_table(table, dtype), partial(_put, xp, device))


@lru_cache(maxsize=16)
def _put_codes(table: Table, ends: bytes, unit: float, xp: Any, device: Any) -> DeviceCodes:
    low, high = np.frombuffer(ends).reshape(2, -1).copy()  # torch takes writable arrays
    put = partial(_put, xp, device)
    return DeviceCodes(unit, put(low), put(high), len(low), put_bins(code_bins(table), put))


def _put(xp: Any, device: Any, array: np.ndarray) -> Any:
    return xp.asarray(np.ascontiguousarray(array), device=device)


def _kind(xp: Any, X: Any) -> np.dtype:
    """NumPy's name for the precision of rows and tables."""
    return np.dtype(np.float64 if X.dtype == xp.float64 else np.float32)


def _flag(xp: Any, X: Any, check: int) -> Any:
    """The flag that kernels set; if it is not read, it need not be cleared."""
    make = xp.zeros if check else xp.empty
    return make(1, dtype=xp.int32, device=device_of(X))


def _find_table(xp: Any, spec: Spec, X: Any) -> DeviceTable | None:
    kind = _kind(xp, X)
    code = X.dtype == xp.uint8
    extent = None if code else _extent(xp, spec, X, kind)
    return _put_table(spec, kind, X.shape[1], extent, code, xp, device_of(X))


@lru_cache(maxsize=32)
def _put_table(
    spec: Spec, dtype: np.dtype, d: int, extent: Extent | None, code: bool, xp: Any, device: Any
) -> DeviceTable | None:
    if code:
        table = make_code_table(spec, 256, d, 1 << 26)
    else:
        assert extent is not None
        table = make_table(spec, dtype, d, extent)
    if table is None:
        return None
    return put_table(layout_of(table), partial(_put, xp, device))


def _extent(xp: Any, spec: Spec, X: Any, dtype: np.dtype) -> Extent:
    """A range that the table has to cover; asking the rows would wait for the GPU.

    All of float32's range is a small table on octaves. Only curves that go on without bounds, or
    that have float64's range, are made for the rows at hand.
    """
    limits = np.finfo(dtype)
    log = spec.family != "piecewise" and CURVES[spec.family].argument == "log"
    bounded = spec.family == "piecewise" or "lower" in spec.arrays
    if not X.shape[0]:
        return Extent(0.0, 1.0, 1.0)
    if bounded or (log and dtype == np.float32):
        # Tables end before the last octave; `check` tells of values in it.
        largest = float(limits.max) / 2
        return Extent(-largest, largest, float(limits.tiny))
    size = xp.abs(X)
    least = xp.min(xp.where(size > 0, size, xp.full_like(size, xp.inf)))
    return Extent(float(xp.min(X)), float(xp.max(X)), float(least))


def _chain(xp: Any, spec: Spec, X: Any, check: int) -> tuple[Any, bool]:
    """Stage after stage, on so many rows that what lies between them stays small.

    Of halves, only the result has half precision.
    """
    X = X if X.dtype == xp.uint8 else real_rows(X, xp)
    head, dtype = spec.parts[0], _result(xp, X)
    X = X if X.dtype == xp.uint8 else _floats(xp, X)
    width = (joint_columns if head.family in FAMILIES else n_columns)(head, X.shape[1])
    step = max(1024, _CHAIN_BYTES // (8 * width))
    parts, refused = [], False
    for start in range(0, max(1, X.shape[0]), step):
        block = X if X.shape[0] <= step else X[start : start + step]
        Z, wrong = _apply(xp, head, block, check)
        refused |= wrong
        for stage in spec.parts[1:]:
            Z, _ = _apply(xp, stage, Z, ANY)
        parts.append(Z if Z.dtype == dtype else xp.astype(Z, dtype))
    return (parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)), refused


def _floats(xp: Any, X: Any) -> Any:
    """Rows in a precision that products are computed in."""
    return X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float32)


def _has_refused_values(xp: Any, X: Any, check: int) -> bool:
    if check == ANY or not xp.isdtype(X.dtype, "real floating"):
        return False
    wrong = ~xp.all(xp.isfinite(X))
    if check == NON_NEGATIVE:
        wrong = wrong | xp.any(X < 0)
    return bool(wrong)


def _result(xp: Any, X: Any) -> Any:
    """Floats keep their width; bytes become float32."""
    return X.dtype if xp.isdtype(X.dtype, "real floating") else xp.float32


# ---- maps that act on whole rows -----------------------------------------------------------------

# Products of matrices, and cosines where the angles stand. Constants stay on the GPU between calls,
# and products have the precision that was asked for (`_util.devices.precision`).


def _linear(xp: Any, spec: Spec, X: Any) -> Any:
    """Fourier features and projections, without a copy of the angles."""
    if "lower" in spec.arrays:
        X = xp.clip(X, _constant(xp, spec, "lower", X), _constant(xp, spec, "upper", X))
    Z = _product(X, _put_matrix(xp, spec, X.shape[1], X.dtype, device_of(X)))
    if spec.family == "projection":
        return Z
    if spec.numbers["paired"]:
        Z = xp.concat([Z, Z], axis=1)
        half = Z.shape[1] // 2
        xp.cos(Z[:, :half], out=Z[:, :half])
        xp.sin(Z[:, half:], out=Z[:, half:])
    else:
        Z += _constant(xp, spec, "phases", X)
        xp.cos(Z, out=Z)
    if "amplitudes" in spec.arrays:
        Z *= _constant(xp, spec, "amplitudes", X)
    Z *= spec.numbers["scale"]
    return Z


def _product(A: Any, B: Any) -> Any:
    return multiply(A, B) if is_tensor(A) else A @ B  # NumPy's in the tests, which have no GPU


@lru_cache(maxsize=32)
def _put_matrix(xp: Any, spec: Spec, width: int, dtype: Any, device: Any) -> Any:
    """The matrix of a projection; fast transforms would read all rows at each of their steps."""
    if spec.numbers["operator"] == "matrix":
        return _put_constant(xp, spec, "matrix", dtype, device)
    return project(xp, spec, xp.eye(width, dtype=dtype, device=device))


def _constant(xp: Any, spec: Spec, name: str, X: Any) -> Any:
    return _put_constant(xp, spec, name, X.dtype, device_of(X))


@lru_cache(maxsize=32)
def _put_constant(xp: Any, spec: Spec, name: str, dtype: Any, device: Any) -> Any:
    return xp.asarray(np.array(spec.arrays[name]), dtype=dtype, device=device)
