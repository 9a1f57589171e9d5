r"""Signs of Cauchy projections: φ(x) = [sign⟨r_1, x⟩, …, sign⟨r_D, x⟩] / √D, r_j iid Cauchy.

The projection matrix is nowhere stored in a spec: columns come in blocks of 64, and block b is
drawn from the counter-based generator Philox with key (seed, b). Any block can be drawn at any
time, on any machine, so that a matrix that is too large to keep is drawn again, tile by tile.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .._util.schema import integer
from .._util.sparse import is_sparse
from .._util.threads import row_blocks
from .joint import FAMILIES, JointFamily
from .outputs import note_path
from .schema import FamilySchema, register_schema
from .spec import Spec

BLOCK_COLUMNS = 64
"""Columns that are drawn with one key: any block can be drawn alone."""
KEPT_BYTES = 64 * 2**20
"""Size up to which a matrix is kept from one call to the next."""


def sign_spec(n_features: int, n_components: int, seed: int) -> Spec:
    """Spec of signs of Cauchy projections."""
    numbers = {"n_features": n_features, "n_components": n_components, "seed": seed}
    return Spec("signs", {}, numbers)


def cauchy_columns(spec: Spec, start: int, stop: int) -> np.ndarray:
    """Columns start..stop of the projection matrix, in double precision."""
    d, seed = int(spec.numbers["n_features"]), int(spec.numbers["seed"])
    first = start // BLOCK_COLUMNS
    blocks = [
        np.random.Generator(np.random.Philox(key=np.array([seed, block], np.uint64)))
        .standard_cauchy((BLOCK_COLUMNS, d))
        .T
        for block in range(first, -(-stop // BLOCK_COLUMNS))
    ]
    offset = first * BLOCK_COLUMNS
    return np.concatenate(blocks, axis=1)[:, start - offset : stop - offset]


@lru_cache(maxsize=4)
def _small_matrix(spec: Spec, dtype: np.dtype) -> np.ndarray:
    """The whole matrix, for specs whose matrix is small."""
    return cauchy_columns(spec, 0, int(spec.numbers["n_components"])).astype(dtype)


def _formula(xp: Any, spec: Spec, X: Any) -> Any:
    n = int(spec.numbers["n_components"])
    matrix = xp.asarray(
        cauchy_columns(spec, 0, n), dtype=X.dtype, device=getattr(X, "device", None)
    )
    return xp.sign(X @ matrix) / n**0.5


def _fast(spec: Spec, X: Any, out: np.ndarray, block_bytes: int) -> np.ndarray:
    d, n = X.shape[1], int(spec.numbers["n_components"])
    keep = d * n * out.dtype.itemsize <= KEPT_BYTES
    note_path(f"signs:{'kept' if keep else 'streamed'}:{'csr' if is_sparse(X) else 'dense'}")
    # A tile is drawn in double precision and turned into the precision of the rows.
    width = n if keep else max(1, block_bytes // (16 * d * BLOCK_COLUMNS)) * BLOCK_COLUMNS
    scale = out.dtype.type(n**-0.5)
    for start in range(0, n, width):
        stop = min(n, start + width)
        if keep:
            matrix = _small_matrix(spec, out.dtype)
        else:
            matrix = cauchy_columns(spec, start, stop).astype(out.dtype)
        for rows in row_blocks(X.shape[0], out.dtype.itemsize * (d + stop - start), block_bytes):
            signs = np.sign(X[rows].astype(out.dtype, copy=False) @ matrix)
            np.multiply(signs, scale, out=out[rows, start:stop])
    return out


FAMILIES["signs"] = JointFamily(lambda spec, d: int(spec.numbers["n_components"]), _formula, _fast)
register_schema(
    "signs",
    FamilySchema(
        numbers={
            "n_features": integer(1, 2**31 - 1),
            "n_components": integer(1, 2**24),
            "seed": integer(0, 2**64 - 1),
        },
        takes=lambda spec, n_features: n_features == spec.numbers["n_features"],
    ),
)
