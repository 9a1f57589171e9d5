"""Application of specs to rows on a GPU: a kernel where there is one, else the formula."""

from __future__ import annotations

from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ...device import is_tensor, multiply
from .. import joint
from ..compile import Extent, compiled_codes, compiled_table, n_columns
from ..families import CURVES
from ..linear import n_outputs, project
from ..reference import evaluate, namespace, real_rows
from ..signs import cauchy_columns
from ..spec import Spec
from ..table import CODE
from ..table.layout import Bins, layout_of
from . import launch
from .tables import DeviceCodes, DeviceSums, DeviceTable, codes_on, sums_on, table_on

if TYPE_CHECKING:
    from ..table.dot import Summed

__all__ = ["apply", "apply_stored", "encode", "sums", "usable_for"]

_CHAIN_BYTES = 2**30  # of intermediate results


def usable_for(X: Any) -> bool:
    """Whether rows lie on a card, and there is a Triton for it."""
    library = type(X).__module__.partition(".")[0]
    on_card = library == "cupy" or (library == "torch" and X.is_cuda)
    return on_card and _has("torch") and _has("triton")


@lru_cache
def _has(module: str) -> bool:
    return find_spec(module) is not None


def apply(spec: Spec, X: Any, *, check: int = launch.ANY) -> tuple[Any, bool]:
    """φ(X), and whether a value was found that `check` refuses.

    Parameters
    ----------
    spec : Spec
        The map.
    X : array of shape (n, d)
        Rows on a card: float64, float32, float16, bfloat16, or unsigned integers.
    check : int
        What is refused: nothing (0), values that are not finite (1), or negative ones, too (2). The
        result is only meaningful if there is none.
    """
    if type(X).__module__.partition(".")[0] == "cupy":
        return _for_cupy(spec, X, check)
    xp = namespace(X)
    if spec.family == "chain":
        return _chain(xp, spec, X, check)
    if spec.family in _JOINT:
        return _JOINT[spec.family](xp, spec, _floats(xp, X)), _refused(xp, X, check)
    if X.dtype != xp.uint8:
        X = real_rows(X, xp)
    if spec.family != "piecewise" and spec.family not in CURVES:
        return evaluate(spec, X, xp), _refused(xp, X, check)
    table = _table_for(xp, spec, X)
    if table is None:
        return evaluate(spec, real_rows(X, xp), xp), _refused(xp, X, check)
    flag = _flag(xp, X)
    out = xp.empty((X.shape[0], table.width), dtype=_result(xp, X), device=_device(X))
    if X.shape[0]:
        launch.emit(table, _contiguous(X), out, flag, check)
    return out, bool(check) and bool(flag[0])


def apply_stored(spec: Spec, values: Any, features: Any, d: int, check: int) -> Any:
    """Columns of single values, each of its own feature: those of CSR rows where φ(0) = 0.

    Returns their numbers and the output columns that these stand in, both (values, band), and
    whether a value was found that `check` refuses; None where the map has no table for them.
    """
    xp = namespace(values)
    values = real_rows(values, xp)
    table = _table_for(xp, spec, values[:, None], d)
    if table is None or not table.constants["EVEN"]:
        return None
    flag, shape = _flag(xp, values), (values.shape[0], table.band)
    out = xp.empty(shape, dtype=values.dtype, device=_device(values))
    to = xp.empty(shape, dtype=xp.int32, device=_device(values))
    if values.shape[0]:
        launch.emit_stored(table, values, features, out, to, flag, check)
    return out, to, bool(check) and bool(flag[0])


def sums(table: Summed, X: Any, check: int) -> tuple[Any, bool]:
    """Sums of a table's columns over the features, and whether a value is refused or outside.

    With ``check=ANY`` nobody looks, and nothing waits for the card. The shares of a sum, some
    dozens of features each, have the rows' precision, their total has float64's.
    """
    xp = namespace(X)
    X = _contiguous(_floats(xp, X) if len(table.bins.kind) != CODE else X)
    found, flag = _sums_on(_Held(table), xp, _device(X)), _flag(xp, X)
    dtype = xp.float64 if X.dtype == xp.float64 else xp.float32
    empty = partial(xp.empty, dtype=dtype, device=_device(X))
    if not X.shape[0]:
        return xp.zeros((0, table.outputs), dtype=xp.float64, device=_device(X)), False
    shares = launch.dot(found, X, flag, check, empty)
    return xp.sum(shares, axis=0, dtype=xp.float64), bool(check) and bool(flag[0])


def encode(
    bins: Bins, ends: tuple[np.ndarray, np.ndarray], bits: int, X: Any, dtype: np.dtype
) -> tuple[Any, bool]:
    """Codes of rows, and whether all values were within `ends`, one pair for each feature."""
    xp = namespace(X)
    X, flag = _contiguous(_floats(xp, X)), _flag(xp, X)
    low, high = (end.tobytes() for end in ends)
    found = _codes_on(_Held(bins), low, high, ends[0].dtype, bits, xp, _device(X))
    out = xp.empty(X.shape, dtype=getattr(xp, dtype.name), device=_device(X))
    if X.shape[0]:
        launch.encode(found, X, out, flag)
    return out, not bool(flag[0])


class _Held:
    """An object with arrays as the key of a cache: the same if it is the same object."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self.held is other.held


@lru_cache(maxsize=16)
def _sums_on(table: _Held, xp: Any, device: Any) -> DeviceSums:
    return sums_on(table.held, partial(_put, xp, device))


@lru_cache(maxsize=16)
def _codes_on(
    bins: _Held, low: bytes, high: bytes, dtype: np.dtype, bits: int, xp: Any, device: Any
) -> DeviceCodes:
    least, most = (np.frombuffer(end, dtype).copy() for end in (low, high))
    return codes_on(bins.held, least, most, bits, partial(_put, xp, device))


def _put(xp: Any, device: Any, array: np.ndarray) -> Any:
    return xp.asarray(np.ascontiguousarray(array), device=device)


def _flag(xp: Any, X: Any) -> Any:
    return xp.zeros(1, dtype=xp.int32, device=_device(X))


def _for_cupy(spec: Spec, X: Any, check: int) -> tuple[Any, bool]:
    """Rows of CuPy: the same memory, seen as a tensor and back; nothing is copied."""
    import cupy
    import torch

    Z, refused = apply(spec, torch.from_dlpack(X), check=check)
    return cupy.from_dlpack(Z), refused


def _table_for(xp: Any, spec: Spec, X: Any, d: int | None = None) -> DeviceTable | None:
    kind = np.dtype(np.float64 if X.dtype == xp.float64 else np.float32)
    code = X.dtype == xp.uint8
    extent = None if code else _extent(xp, spec, X, kind)
    return _table_on(spec, kind, d or X.shape[1], extent, code, xp, _device(X))


@lru_cache(maxsize=32)
def _table_on(
    spec: Spec, dtype: np.dtype, d: int, extent: Extent | None, code: bool, xp: Any, device: Any
) -> DeviceTable | None:
    if code:
        table = compiled_codes(spec, 256, d, 1 << 26)
    else:
        assert extent is not None
        table = compiled_table(spec, dtype, d, extent)
    if table is None:
        return None
    return table_on(layout_of(table), partial(_put, xp, device))


def _extent(xp: Any, spec: Spec, X: Any, dtype: np.dtype) -> Extent:
    """A range that the table has to cover; asking the rows would wait for the card.

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
        most = float(limits.max) / 2
        return Extent(-most, most, float(limits.tiny))
    size = xp.abs(X)
    least = xp.min(xp.where(size > 0, size, xp.full_like(size, xp.inf)))
    return Extent(float(xp.min(X)), float(xp.max(X)), float(least))


def _joint(xp: Any, spec: Spec, X: Any) -> Any:
    """Fourier features and projections: a product, then cosines where the angles stand."""
    waves = spec.family == "fourier"
    if waves and "lower" in spec.arrays:
        X = xp.clip(X, _constant(xp, spec, "lower", X), _constant(xp, spec, "upper", X))
    paired = waves and bool(spec.numbers["paired"])
    width = n_outputs(spec)
    # Angles stand where their cosines will: nothing is copied between them.
    shape = (X.shape[0], 2 * width if paired else width)
    if spec.numbers["operator"] == "hadamard":
        Z = xp.zeros(shape, dtype=X.dtype, device=_device(X))
        signs, to, gains = _structure(xp, spec, str(X.dtype), _device(X))
        launch.hadamard(_contiguous(X), Z, signs, to, gains)
    else:
        Z = xp.empty(shape, dtype=X.dtype, device=_device(X))
        dct = spec.numbers["operator"] == "dct"
        own = _dct(xp, spec, X.dtype, _device(X)) if dct else _constant(xp, spec, "matrix", X)
        _product(xp, X, own, out=Z[:, :width])
    if not waves:
        return Z
    phases, amplitudes = _wave_constants(xp, spec, X.dtype, _device(X))
    launch.waves(Z, phases, amplitudes, paired)
    return Z


def _landmarks(xp: Any, spec: Spec, X: Any) -> Any:
    """Landmarks and random features beside them, by four products (:mod:`..landmarks`)."""
    points, random = spec.parts
    own = partial(_constant, xp, spec, X=X)
    away = X - own("center")
    near = _product(xp, away, _constant(xp, points, "matrix", X))
    near = 2 * near - xp.sum(away * away, axis=1)[:, None] - own("sizes")
    kernel = xp.exp(spec.numbers["gamma"] * xp.clip(near, None, 0))
    known = _product(xp, kernel, own("whitening"))
    beside, _ = apply(random, X)
    return xp.concat([known, beside - _product(xp, known, own("along"))], axis=1)


def _signs(xp: Any, spec: Spec, X: Any) -> Any:
    """Signs of Cauchy projections; the matrix is drawn once."""
    n = int(spec.numbers["n_components"])
    return xp.sign(_product(xp, X, _cauchy(xp, spec, X.dtype, _device(X)))) / n**0.5


_JOINT = {"fourier": _joint, "projection": _joint, "landmarks": _landmarks, "signs": _signs}


@lru_cache(maxsize=4)
def _cauchy(xp: Any, spec: Spec, dtype: Any, device: Any) -> Any:
    columns = cauchy_columns(spec, 0, int(spec.numbers["n_components"]))
    return xp.asarray(columns, dtype=dtype, device=device)


@lru_cache(maxsize=4)
def _dct(xp: Any, spec: Spec, dtype: Any, device: Any) -> Any:
    """The matrix of a discrete cosine transform with signs before and gains behind it."""
    signs = spec.arrays["signs"].astype(np.float64)
    matrix = project(np, spec, np.eye(len(signs)))
    return xp.asarray(matrix, dtype=dtype, device=device)


def _product(xp: Any, A: Any, B: Any, out: Any = None) -> Any:
    if is_tensor(A):
        return multiply(A, B, out=out)
    return np.matmul(A, B, out=out)  # in the tests, which have no card


@lru_cache(maxsize=16)
def _wave_constants(xp: Any, spec: Spec, dtype: Any, device: Any) -> tuple[Any, Any]:
    """Phases (zero for pairs) and amplitudes of all columns."""
    columns = n_outputs(spec) * (2 if spec.numbers["paired"] else 1)
    phases = spec.arrays.get("phases", np.zeros(1))
    own = np.broadcast_to(spec.arrays.get("amplitudes", 1.0), columns)
    put = partial(xp.asarray, dtype=dtype, device=device)
    return put(np.array(phases)), put(spec.numbers["scale"] * own)


@lru_cache(maxsize=16)
def _structure(xp: Any, spec: Spec, dtype: str, device: Any) -> tuple[Any, Any, Any]:
    """Signs, places and gains of a structured projection."""
    signs, rows = spec.arrays["signs"], spec.arrays["rows"]
    to = np.full(signs.shape[0] * signs.shape[2], -1, np.int32)
    to[rows] = np.arange(len(rows))
    kind = np.float64 if dtype.endswith("64") else np.float32
    arrays = signs.astype(kind), to, spec.arrays["gains"].astype(kind)
    return tuple(xp.asarray(np.ascontiguousarray(a), device=device) for a in arrays)


def _chain(xp: Any, spec: Spec, X: Any, check: int) -> tuple[Any, bool]:
    """Stage after stage, on so many rows that what lies between them stays small."""
    head = spec.parts[0]
    width = (joint.n_columns if head.family in joint.FAMILIES else n_columns)(head, X.shape[1])
    step = max(1024, _CHAIN_BYTES // (8 * width))
    parts, refused = [], False
    for start in range(0, max(1, X.shape[0]), step):
        Z, wrong = apply(spec.parts[0], X[start : start + step], check=check)
        refused |= wrong
        for stage in spec.parts[1:]:
            Z, _ = apply(stage, Z)
        parts.append(Z)
    return (parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)), refused


@lru_cache(maxsize=32)
def _constant_on(xp: Any, spec: Spec, name: str, dtype: Any, device: Any) -> Any:
    return xp.asarray(np.array(spec.arrays[name]), dtype=dtype, device=device)


def _floats(xp: Any, X: Any) -> Any:
    """Rows in a precision that products are computed in."""
    return X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float32)


def _constant(xp: Any, spec: Spec, name: str, X: Any) -> Any:
    return _constant_on(xp, spec, name, X.dtype, _device(X))


def _refused(xp: Any, X: Any, check: int) -> bool:
    if check == launch.ANY or not xp.isdtype(X.dtype, "real floating"):
        return False
    wrong = ~xp.all(xp.isfinite(X))
    if check == launch.NON_NEGATIVE:
        wrong = wrong | xp.any(X < 0)
    return bool(wrong)


def _result(xp: Any, X: Any) -> Any:
    """Floats keep their width; bytes become float32."""
    return X.dtype if xp.isdtype(X.dtype, "real floating") else xp.float32


def _device(X: Any) -> Any:
    return getattr(X, "device", None)


def _contiguous(X: Any) -> Any:
    return X.contiguous() if hasattr(X, "contiguous") else np.ascontiguousarray(X)
