r"""Nyström maps: kernel values with landmarks, times a matrix.

.. math:: φ(x) = [k(x, l_1), …, k(x, l_m)]\, T, \qquad T T^\top ≈ K^{-1},

K the Gram matrix of the landmarks. A Spec of family "nystroem" has the array `landmarks` (m, d) and
`whitening` T of shape (m, D); its text `kernel` says which kernel it is
(:func:`kernelmaps.kernels.registry.kernel_text`). An *additive* one has a whitening of shape
(d, m, r): feature j alone has the columns [c(x_j, l_1j), …, c(x_j, l_mj)] T_j.

Whitening enlarges rounding errors of kernel values, so that all is computed in float64.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .._util.schema import Lengths, SchemaError, either, text
from .._util.schema import array as floats
from .._util.sparse import dense, is_sparse
from .._util.threads import row_blocks
from .families import FAMILIES, JointFamily
from .spec import FamilySchema, Spec, register_schema

# ‖x‖²/2σ² up to which the exponent is right to a thousand ε: a typical row is below 10.
_MAX_HALF_SQUARE = 1e3


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


def _gaussian_gram(X: np.ndarray, Y: np.ndarray) -> np.ndarray | None:
    """exp(−‖x − y‖²/2) by one product, of [x, −‖x‖²/2, 1] and [y, 1, −‖y‖²/2].

    A third less time than squared distances that are kept exact, which kernels with a kink need
    (`python -m benchmarks exponential:nystroem`). None for rows so long that rounding is seen.
    """
    squares = [-0.5 * np.einsum("ij,ij->i", rows, rows)[:, None] for rows in (X, Y)]
    if not all(half.min(initial=0.0) > -_MAX_HALF_SQUARE for half in squares):
        return None
    ones = [np.ones((len(rows), 1)) for rows in (X, Y)]
    gram = np.hstack([X, squares[0], ones[0]]) @ np.hstack([Y, ones[1], squares[1]]).T
    return np.exp(gram, out=gram)


def _nystroem_fast(spec: Spec, X: Any, out: np.ndarray) -> np.ndarray:
    """The same by the compiled sums of the kernel, on blocks of rows."""
    kernel, landmarks = _nystroem_kernel(spec.numbers["kernel"]), spec.arrays["landmarks"]
    whitening, centre = spec.arrays["whitening"], landmarks.mean(axis=0)
    for rows in row_blocks(X.shape[0], 8 * (len(landmarks) + X.shape[1])):
        block = X[rows].astype(np.float64, copy=False)
        if whitening.ndim == 2:
            gram = None
            if getattr(kernel, "name", None) == "gaussian" and not is_sparse(X):
                gram = _gaussian_gram(
                    (block - centre) / kernel.sigma, (landmarks - centre) / kernel.sigma
                )
            gram = kernel(block, landmarks) if gram is None else gram
            np.matmul(gram, whitening, out=out[rows], casting="same_kind")
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
