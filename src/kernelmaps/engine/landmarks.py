r"""A Gaussian kernel exactly along landmarks, and by random Fourier features beside them.

For k(x, y) = exp(−γ ‖x − y‖²), landmarks l_1, …, l_m with Gram matrix K, and any random features f
with E ⟨f(x), f(y)⟩ = k(x, y), let T be a "whitening" with Tᵀ K T = I and

.. math:: φ(x) = \bigl[\, ν(x),\; f(x) - ν(x)\, R \,\bigr], \qquad
          ν(x) = [k(x, l_i)]_i\, T, \quad R = T^\top f(l).

ν is the Nyström map, and the rest is what random features see beside the landmarks. Because
E f(x) f(l)ᵀ = k(x, l), the mean of ⟨φ(x), φ(y)⟩ is ν(x)ν(y)ᵀ + k(x, y) − ν(x)ν(y)ᵀ = k(x, y):
unbiased for every pair, like f alone. If K is invertible, f(l_i) = ν(l_i) R, so that the rest
vanishes at landmarks: every pair with a landmark in it has *exactly* its kernel value.

A Spec of family "landmarks" has the parts (projection on the landmarks, random features), the
arrays `sizes` ‖l‖², `whitening` T and `along` R, and the number `gamma`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..blocks import row_blocks
from . import joint
from .families import array
from .joint import FAMILIES, JointFamily
from .linear import project
from .spec import Spec

__all__ = ["landmark_spec"]


def landmark_spec(points: np.ndarray, whitening: np.ndarray, gamma: float, random: Spec) -> Spec:
    """Spec of the map with landmarks `points` (rows) and the features `random` beside them."""
    dtype = points.dtype
    features = joint.apply(random, points, out=None, block_bytes=2**24)
    arrays = {
        "sizes": np.einsum("ij,ij->i", points, points, dtype=np.float64),
        "whitening": whitening.astype(dtype),
        "along": (whitening.T @ features).astype(dtype),
    }
    projection = Spec("projection", {"matrix": points.T}, {"operator": "matrix"})
    # `operator` tells a chain that blocks are multiplied by a matrix.
    numbers = {"gamma": gamma, "operator": "matrix"}
    return Spec("landmarks", arrays, numbers, (projection, random))


def _n_columns(spec: Spec, n_features: int) -> int:
    random = spec.parts[1]
    known = spec.arrays["whitening"].shape[1]
    return int(known + FAMILIES[random.family].n_columns(random, n_features))


def _formula(xp: Any, spec: Spec, X: Any) -> Any:
    points, random = spec.parts
    squares = xp.sum(X * X, axis=1)[:, None] + array(xp, spec, "sizes", X)
    kernel = xp.exp(spec.numbers["gamma"] * (2 * project(xp, points, X) - squares))
    known = kernel @ array(xp, spec, "whitening", X)
    beside = FAMILIES[random.family].formula(xp, random, X)
    return xp.concat([known, beside - known @ array(xp, spec, "along", X)], axis=1)


def _fast(spec: Spec, X: Any, out: np.ndarray, block_bytes: int) -> np.ndarray:
    """The same by the fast paths of both parts, on row blocks that keep temporaries small."""
    points, random = spec.parts
    whitening = spec.arrays["whitening"].astype(out.dtype, copy=False)
    along = spec.arrays["along"].astype(out.dtype, copy=False)
    m, known = whitening.shape
    gamma, sizes = out.dtype.type(spec.numbers["gamma"]), spec.arrays["sizes"].astype(out.dtype)
    width = m + known + 2 * along.shape[1]
    for rows in row_blocks(X.shape[0], out.dtype.itemsize * width, max(block_bytes, 2**26)):
        block = X[rows]
        n = block.shape[0]
        kernel = np.empty((n, m), out.dtype)
        FAMILIES["projection"].fast(points, block, kernel, block_bytes)
        kernel *= 2
        kernel -= sizes
        kernel -= _squares(block, out.dtype)[:, None]
        kernel *= gamma
        np.exp(kernel, out=kernel)
        left = kernel @ whitening
        beside = np.empty((n, along.shape[1]), out.dtype)
        FAMILIES[random.family].fast(random, block, beside, block_bytes)
        out[rows, :known] = left
        np.subtract(beside, left @ along, out=out[rows, known:])
    return out


def _squares(X: Any, dtype: np.dtype) -> np.ndarray:
    """‖x‖² of dense or CSR rows."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=dtype).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=dtype)


FAMILIES["landmarks"] = JointFamily(_n_columns, _formula, _fast)
