r"""Landmarks: kernel values with some points, times a matrix, alone or next to random features.

*Nyström maps* (the family "nystroem") are

.. math:: φ(x) = [k(x, l_1), …, k(x, l_m)]\, T, \qquad T T^\top ≈ K^{-1},

K the Gram matrix of the landmarks. A Spec of family "nystroem" has the array `landmarks` (m, d) and
`whitening` T of shape (m, D); its text `kernel` says which kernel it is
(:func:`kernelmaps.kernels.registry.kernel_text`). An *additive* one has a whitening of shape
(d, m, r): feature j alone has the columns [c(x_j, l_1j), …, c(x_j, l_mj)] T_j.

Whitening enlarges rounding errors of kernel values, so that all is computed in float64.

*Random features that are exact at landmarks* (the family "landmarks"): for the Gaussian kernel
k(x, y) = exp(−γ ‖x − y‖²), landmarks l_1, …, l_m with Gram matrix K, and any random features f
with E ⟨f(x), f(y)⟩ = k(x, y), let T be a "whitening" with Tᵀ K T = I and

.. math:: φ(x) = \bigl[\, ν(x),\; f(x) - ν(x)\, R \,\bigr], \qquad
          ν(x) = [k(x, l_i)]_i\, T, \quad R = T^\top f(l).

ν is the Nyström map, and the rest is what random features see next to the landmarks. Because
E f(x) f(l)ᵀ = k(x, l), the mean of ⟨φ(x), φ(y)⟩ is ν(x)ν(y)ᵀ + k(x, y) − ν(x)ν(y)ᵀ = k(x, y):
unbiased for every pair, like f alone. If K is invertible, f(l_i) = ν(l_i) R, so that the rest
vanishes at landmarks: every pair with a landmark in it has *exactly* its kernel value.

Distances are those of x − c and l − c, c the `center` of the landmarks: far from the origin they
would be lost in rounding. CSR rows stay sparse, and have double precision instead. A Spec of family
"landmarks" has the parts (projection on the centred landmarks, random features), the arrays
`center`, `sizes` ‖l − c‖², `whitening` T and `along` R, and the number `gamma`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .._util.schema import Lengths, SchemaError, either, number, text
from .._util.schema import array as floats
from .._util.sparse import dense, is_sparse
from .._util.threads import row_blocks
from .families import FAMILIES, JointFamily, apply_joint, array
from .projections import project
from .spec import FamilySchema, Spec, check_width, register_schema


def landmark_spec(points: np.ndarray, whitening: np.ndarray, gamma: float, random: Spec) -> Spec:
    """Spec of the map with landmarks `points` (rows) and the features `random` next to them."""
    dtype = points.dtype
    features = apply_joint(random, points)
    center = points.mean(axis=0, dtype=np.float64).astype(dtype)
    away = points - center
    arrays = {
        "center": center,
        "sizes": np.einsum("ij,ij->i", away, away, dtype=np.float64),
        "whitening": whitening.astype(dtype),
        "along": (whitening.T @ features).astype(dtype),
    }
    projection = Spec("projection", {"matrix": away.T}, {"operator": "matrix"})
    # `operator` tells a chain that blocks are multiplied by a matrix.
    numbers = {"gamma": gamma, "operator": "matrix"}
    return Spec("landmarks", arrays, numbers, (projection, random))


def _n_columns(spec: Spec, n_features: int) -> int:
    random = spec.parts[1]
    n_whitened = spec.arrays["whitening"].shape[1]
    return int(n_whitened + FAMILIES[random.family].n_columns(random, n_features))


def _formula(xp: Any, spec: Spec, X: Any) -> Any:
    points, random = spec.parts
    away = X - array(xp, spec, "center", X)
    squares = xp.sum(away * away, axis=1)[:, None] + array(xp, spec, "sizes", X)
    exponent = 2 * project(xp, points, away) - squares
    kernel = xp.exp(spec.numbers["gamma"] * xp.minimum(exponent, xp.zeros_like(exponent)))
    whitened = kernel @ array(xp, spec, "whitening", X)
    features = FAMILIES[random.family].formula(xp, random, X)
    return xp.concat([whitened, features - whitened @ array(xp, spec, "along", X)], axis=1)


def _fast(spec: Spec, X: Any, out: np.ndarray) -> np.ndarray:
    """The same by the fast paths of both parts, on row blocks that keep temporaries small."""
    random = spec.parts[1]
    whitening = spec.arrays["whitening"].astype(out.dtype, copy=False)
    along = spec.arrays["along"].astype(out.dtype, copy=False)
    m, n_whitened = whitening.shape
    width = m + n_whitened + 2 * along.shape[1]
    for rows in row_blocks(X.shape[0], out.dtype.itemsize * width, 2**26):
        block = X[rows]
        left = _gaussian(spec, block, out.dtype) @ whitening
        features = np.empty((block.shape[0], along.shape[1]), out.dtype)
        FAMILIES[random.family].fast(random, block, features)
        out[rows, :n_whitened] = left
        np.subtract(features, left @ along, out=out[rows, n_whitened:])
    return out


def _gaussian(spec: Spec, block: Any, dtype: np.dtype) -> np.ndarray:
    """k(x, l_i) for rows x."""
    points = spec.parts[0]
    if is_sparse(block):
        wide = block.astype(np.float64)
        matrix = points.arrays["matrix"].astype(np.float64)
        center = spec.arrays["center"].astype(np.float64)
        exponent = 2 * (np.asarray(wide @ matrix) - center @ matrix)
        squares = np.asarray(wide.multiply(wide).sum(axis=1)).ravel()
        squares += center @ center - 2 * (wide @ center)
    else:
        away = np.subtract(block, spec.arrays["center"], dtype=dtype)
        exponent = np.empty((len(away), len(spec.arrays["sizes"])), dtype)
        FAMILIES["projection"].fast(points, away, exponent)
        exponent *= 2
        squares = np.einsum("ij,ij->i", away, away)
    exponent -= spec.arrays["sizes"].astype(exponent.dtype)
    exponent -= squares[:, None]
    np.minimum(exponent, 0, out=exponent)  # rounding
    exponent *= exponent.dtype.type(spec.numbers["gamma"])
    return np.exp(exponent, out=exponent).astype(dtype, copy=False)


FAMILIES["landmarks"] = JointFamily(_n_columns, _formula, _fast)


def _relations(spec: Spec, lengths: Lengths) -> None:
    """The parts are the projection on the landmarks, and features of the same rows."""
    points, random = spec.parts
    where = "the spec of family 'landmarks'"
    if points.family != "projection" or points.numbers["operator"] != "matrix":
        raise SchemaError(f"{where}: its first part must be a matrix")
    if points.arrays["matrix"].shape != (lengths["features"], lengths["landmarks"]):
        raise SchemaError(f"{where}: its first part has another shape than the landmarks")
    if random.family not in FAMILIES:
        raise SchemaError(f"{where}: its second part must be a joint map")
    try:
        check_width(random, lengths["features"])
    except ValueError as error:
        raise SchemaError(f"{where}: {error}") from error
    if FAMILIES[random.family].n_columns(random, lengths["features"]) != lengths["columns"]:
        raise SchemaError(f"{where}: 'along' has other columns than its second part")


register_schema(
    "landmarks",
    FamilySchema(
        arrays={
            "center": floats("f8 f4", "features"),
            "sizes": floats("f8", "landmarks", low=0),
            "whitening": floats("f8 f4", "landmarks kept"),
            "along": floats("f8 f4", "kept columns"),
        },
        numbers={"gamma": number(above=0), "operator": text(("matrix",))},
        parts=(2, 2),
        relations=_relations,
        takes=lambda spec, n_features: n_features == len(spec.arrays["center"]),
    ),
)


# ---- Nyström maps ----


@lru_cache(maxsize=64)
def _nystroem_kernel(description: str) -> Any:
    from ..kernels.registry import kernel_of_text  # scikit-learn, which few maps need

    return kernel_of_text(description)


def _nystroem_columns(spec: Spec, n_features: int) -> int:
    whitening = spec.arrays["whitening"]
    return int(whitening.shape[-1] * (len(whitening) if whitening.ndim == 3 else 1))


def _nystroem_formula(xp: Any, spec: Spec, X: Any) -> Any:
    kernel, device = _nystroem_kernel(spec.numbers["kernel"]), getattr(X, "device", None)
    landmarks, whitening = (
        xp.asarray(np.array(spec.arrays[name]), dtype=xp.float64, device=device)
        for name in ("landmarks", "whitening")
    )
    rows = xp.astype(X, xp.float64)
    if whitening.ndim == 2:
        return xp.astype(kernel._gram_array_api(xp, rows, landmarks) @ whitening, X.dtype)
    columns = []
    for j in range(landmarks.shape[1]):
        gram = kernel.feature(j).component(rows[:, j][:, None], landmarks[:, j][None, :])
        columns.append(gram @ whitening[j, :, :])
    return xp.astype(xp.concat(columns, axis=1), X.dtype)


def _nystroem_fast(spec: Spec, X: Any, out: np.ndarray) -> np.ndarray:
    """The same by the compiled sums of the kernel, on blocks of rows."""
    kernel, landmarks = _nystroem_kernel(spec.numbers["kernel"]), spec.arrays["landmarks"]
    whitening = spec.arrays["whitening"]
    for rows in row_blocks(X.shape[0], 8 * (len(landmarks) + X.shape[1])):
        block = X[rows].astype(np.float64, copy=False)
        if whitening.ndim == 2:
            np.matmul(kernel(block, landmarks), whitening, out=out[rows], casting="same_kind")
            continue
        values = dense(block)
        for j, factor in enumerate(whitening):
            columns = slice(j * factor.shape[1], (j + 1) * factor.shape[1])
            gram = kernel.feature(j).component(values[:, j, None], landmarks[None, :, j])
            out[rows, columns] = gram @ factor
    return out


FAMILIES["nystroem"] = JointFamily(_nystroem_columns, _nystroem_formula, _nystroem_fast)


def _nystroem_relations(spec: Spec, lengths: Lengths) -> None:
    """The kernel can be read; one of an additive spec is a sum over features."""
    try:
        kernel = _nystroem_kernel(spec.numbers["kernel"])
    except (TypeError, ValueError) as error:
        raise SchemaError(f"the spec of family 'nystroem': {error}") from error
    from ..kernels.additive import AdditiveKernel

    additive = spec.arrays["whitening"].ndim == 3
    if additive and not isinstance(kernel, AdditiveKernel):
        raise SchemaError("the spec of family 'nystroem': only additive kernels have features")


register_schema(
    "nystroem",
    FamilySchema(
        arrays={
            "landmarks": floats("f8", "landmarks features"),
            "whitening": either(
                (floats("f8", "landmarks columns"), floats("f8", "features landmarks columns"))
            ),
        },
        numbers={"kernel": text()},
        relations=_nystroem_relations,
        takes=lambda spec, n_features: n_features == spec.arrays["landmarks"].shape[1],
    ),
)
