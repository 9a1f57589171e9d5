"""Joint maps on a GPU: products of matrices, with cosines fused or where the angles stand.

Angles are in turns, so that their reduction is exact: the matrices of Fourier features are divided
by 2π when they are copied to the GPU.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..._util.devices import is_tensor, multiply, tf32_chosen
from ..linear import n_outputs, project
from ..spec import Spec
from . import launch
from .tables import contiguous, device_of, empty

_MAX_BY_PRODUCT = 128  # numbers of a Hadamard transform, up to which a product is faster


class _Form(NamedTuple):
    """What is known of a linear map before its rows are; found once for a precision and device."""

    width: int
    columns: int
    clipped: bool
    structured: bool
    waves: launch.Waves | None


def _linear(xp: Any, spec: Spec, X: Any) -> Any:
    """Fourier features and projections. Angles stand where their cosines will."""
    place = (X.dtype, device_of(X))
    form = _form(xp, spec, *place)
    if form.clipped:
        X = xp.clip(X, _constant(xp, spec, "lower", X), _constant(xp, spec, "upper", X))
    X = contiguous(X)
    Z = empty(X, (X.shape[0], form.columns))
    if form.waves and not form.structured and _fuses(xp, X, form.width):
        launch.fourier(X, _described(xp, spec, X.shape[1], *place), form.waves, Z)
        return Z
    if form.structured:
        launch.hadamard(X, Z, _structure(xp, spec, *place), int(spec.arrays["rows"][-1]) + 1)
    else:
        _product(X, _matrix(xp, spec, X.shape[1], *place), out=Z[:, : form.width])
    if form.waves:
        launch.waves(Z, form.width, form.waves)
    return Z


def _fuses(xp: Any, X: Any, width: int) -> bool:
    """TF32 is chosen, and the shape suits the kernel; float32 products are left to BLAS."""
    return tf32_chosen() and X.dtype == xp.float32 and launch.can_fuse(X, width)


def _landmarks(xp: Any, spec: Spec, X: Any) -> Any:
    """Landmarks and random features beside them, by four products (:mod:`..landmarks`)."""
    points, random = spec.parts
    constant = partial(_constant, xp, spec, X=X)
    away = X - constant("center")
    exponent = _product(away, _constant(xp, points, "matrix", X))
    exponent = 2 * exponent - xp.sum(away * away, axis=1)[:, None] - constant("sizes")
    kernel = xp.exp(spec.numbers["gamma"] * xp.clip(exponent, None, 0))
    whitened = _product(kernel, constant("whitening"))
    beside = FORMS[random.family](xp, random, X)
    return xp.concat([whitened, beside - _product(whitened, constant("along"))], axis=1)


FORMS = {"fourier": _linear, "projection": _linear, "landmarks": _landmarks}


def _product(A: Any, B: Any, out: Any = None) -> Any:
    if is_tensor(A):
        return multiply(A, B, out=out)
    return np.matmul(A, B, out=out)  # in the tests, which have no GPU


def _is_structured(spec: Spec) -> bool:
    """Whether Hadamard transforms are made one by one: long ones, each output once."""
    if spec.numbers["operator"] != "hadamard" or spec.arrays["signs"].shape[2] <= _MAX_BY_PRODUCT:
        return False
    return bool(np.all(np.diff(spec.arrays["rows"]) > 0))


def _put(xp: Any, array: np.ndarray, dtype: Any, device: Any) -> Any:
    kind = np.float64 if str(dtype).endswith("64") else np.float32
    return xp.asarray(np.ascontiguousarray(array, dtype=kind), device=device)


def _turns(spec: Spec) -> float:
    return 1 / (2 * np.pi) if spec.family == "fourier" else 1.0


def _constant(xp: Any, spec: Spec, name: str, X: Any) -> Any:
    return _constant_on(xp, spec, name, X.dtype, device_of(X))


@lru_cache(maxsize=32)
def _constant_on(xp: Any, spec: Spec, name: str, dtype: Any, device: Any) -> Any:
    return _put(xp, np.array(spec.arrays[name]), dtype, device)


@lru_cache(maxsize=8)
def _matrix(xp: Any, spec: Spec, d: int, dtype: Any, device: Any) -> Any:
    """The matrix of an operator on rows of d features; of a transform, the product of its steps."""
    return _put(xp, _plain_matrix(spec)[:d], dtype, device)


@lru_cache(maxsize=8)
def _described(xp: Any, spec: Spec, d: int, dtype: Any, device: Any) -> launch.Factor:
    """The same with a row for each output, for the fused kernel."""
    return launch.factor(_put(xp, _plain_matrix(spec)[:d].T, dtype, device))


@lru_cache(maxsize=32)
def _form(xp: Any, spec: Spec, dtype: Any, device: Any) -> _Form:
    waves, width = None, n_outputs(spec)
    columns = width
    if spec.family == "fourier":
        paired = bool(spec.numbers["paired"])
        columns = 2 * width if paired else width
        phases = np.mod(_turns(spec) * spec.arrays.get("phases", np.zeros(1)), 1.0)
        amplitudes = np.broadcast_to(spec.arrays.get("amplitudes", 1.0), columns)
        put = partial(_put, xp, dtype=dtype, device=device)
        waves = launch.waves_of(put(phases), put(spec.numbers["scale"] * amplitudes), width, paired)
    clipped = waves is not None and "lower" in spec.arrays
    return _Form(width, columns, clipped, _is_structured(spec), waves)


def _plain_matrix(spec: Spec) -> np.ndarray:
    if spec.numbers["operator"] == "matrix":
        return _turns(spec) * spec.arrays["matrix"].astype(np.float64)
    length = spec.arrays["signs"].shape[-1]
    return _turns(spec) * project(np, spec, np.eye(length))


@lru_cache(maxsize=16)
def _structure(xp: Any, spec: Spec, dtype: Any, device: Any) -> launch.Transforms:
    signs, rows = spec.arrays["signs"], spec.arrays["rows"]
    to = np.full(signs.shape[0] * signs.shape[2], -1, np.int32)
    to[rows] = np.arange(len(rows))
    gains = _turns(spec) * spec.arrays["gains"]
    columns = xp.asarray(to, device=device)
    return launch.Transforms(
        _put(xp, signs, dtype, device), columns, _put(xp, gains, dtype, device)
    )
