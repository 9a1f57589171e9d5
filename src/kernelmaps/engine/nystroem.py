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
from .._util.sparse import dense
from .._util.threads import row_blocks
from .joint import FAMILIES, JointFamily
from .schema import FamilySchema, register_schema
from .spec import Spec


@lru_cache(maxsize=64)
def _kernel_of(description: str) -> Any:
    from ..kernels.registry import kernel_of_text  # scikit-learn, which few maps need

    return kernel_of_text(description)


def _n_columns(spec: Spec, n_features: int) -> int:
    whitening = spec.arrays["whitening"]
    return int(whitening.shape[-1] * (len(whitening) if whitening.ndim == 3 else 1))


def _formula(xp: Any, spec: Spec, X: Any) -> Any:
    kernel, device = _kernel_of(spec.numbers["kernel"]), getattr(X, "device", None)
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


def _fast(spec: Spec, X: Any, out: np.ndarray, block_bytes: int) -> np.ndarray:
    """The same by the compiled sums of the kernel, on blocks of rows."""
    kernel, landmarks = _kernel_of(spec.numbers["kernel"]), spec.arrays["landmarks"]
    whitening = spec.arrays["whitening"]
    for rows in row_blocks(X.shape[0], 8 * (len(landmarks) + X.shape[1]), block_bytes):
        block = X[rows].astype(np.float64)
        if whitening.ndim == 2:
            out[rows] = kernel(block, landmarks) @ whitening
            continue
        values = dense(block)
        for j, factor in enumerate(whitening):
            columns = slice(j * factor.shape[1], (j + 1) * factor.shape[1])
            gram = kernel.feature(j).component(values[:, j, None], landmarks[None, :, j])
            out[rows, columns] = gram @ factor
    return out


FAMILIES["nystroem"] = JointFamily(_n_columns, _formula, _fast)


def _relations(spec: Spec, lengths: Lengths) -> None:
    """The kernel can be read; one of an additive spec is a sum over features."""
    try:
        kernel = _kernel_of(spec.numbers["kernel"])
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
        relations=_relations,
        takes=lambda spec, n_features: n_features == spec.arrays["landmarks"].shape[1],
    ),
)
