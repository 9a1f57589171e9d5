"""Joint maps on a GPU: products of matrices, and cosines where the angles stand.

Constants stay on the GPU between calls, and products have the precision that was asked for
(:func:`kernelmaps._util.devices.precision`). All else is the readable form.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..._util.devices import is_tensor, multiply
from ..linear import project
from ..spec import Spec


def _linear(xp: Any, spec: Spec, X: Any) -> Any:
    """Fourier features and projections, without a copy of the angles."""
    if "lower" in spec.arrays:
        X = xp.clip(X, _constant(xp, spec, "lower", X), _constant(xp, spec, "upper", X))
    by_matrix = spec.numbers["operator"] == "matrix"
    Z = _product(X, _constant(xp, spec, "matrix", X)) if by_matrix else project(xp, spec, X)
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


def _landmarks(xp: Any, spec: Spec, X: Any) -> Any:
    """Landmarks and random features beside them, by four products (:mod:`..landmarks`)."""
    points, random = spec.parts
    away = X - _constant(xp, spec, "center", X)
    exponent = 2 * _product(away, _constant(xp, points, "matrix", X))
    exponent = exponent - xp.sum(away * away, axis=1)[:, None] - _constant(xp, spec, "sizes", X)
    kernel = xp.exp(spec.numbers["gamma"] * xp.clip(exponent, None, 0))
    whitened = _product(kernel, _constant(xp, spec, "whitening", X))
    beside = FORMS[random.family](xp, random, X)
    return xp.concat(
        [whitened, beside - _product(whitened, _constant(xp, spec, "along", X))], axis=1
    )


FORMS = {"fourier": _linear, "projection": _linear, "landmarks": _landmarks}


def _product(A: Any, B: Any) -> Any:
    return multiply(A, B) if is_tensor(A) else A @ B  # NumPy's in the tests, which have no GPU


def _constant(xp: Any, spec: Spec, name: str, X: Any) -> Any:
    return _constant_on(xp, spec, name, X.dtype, getattr(X, "device", None))


@lru_cache(maxsize=32)
def _constant_on(xp: Any, spec: Spec, name: str, dtype: Any, device: Any) -> Any:
    return xp.asarray(np.array(spec.arrays[name]), dtype=dtype, device=device)
