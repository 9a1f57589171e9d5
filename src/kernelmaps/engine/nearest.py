r"""Nearest landmarks: every row is mapped as the landmark that is nearest to it.

.. math:: φ(x) = q_{n(x)}, \qquad n(x) = \arg\min_i \|x - l_i\|_2.

A Spec of family "nearest" has the arrays `landmarks` (m, d) and `mapped` (m, D), the rows q of all
landmarks. Of several landmarks at the same distance, the first is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.schema import array as floats
from .._util.sparse import dense
from .._util.threads import row_blocks
from .joint import FAMILIES, JointFamily
from .schema import FamilySchema, register_schema
from .spec import Spec


def nearest(xp: Any, landmarks: np.ndarray, X: Any) -> Any:
    r"""Indices of the nearest landmarks of dense rows, by :math:`\|l_i\|^2 - 2 x^\top l_i`.

    The mean of the landmarks is subtracted first: values far from 0 would cancel.
    """
    centre = np.mean(landmarks, axis=0)
    centred = landmarks - centre
    middle, points, squares = (
        xp.asarray(values, dtype=xp.float64, device=getattr(X, "device", None))
        for values in (centre, centred, np.sum(centred**2, axis=1))
    )
    rows = xp.astype(X, xp.float64) - middle
    return xp.argmin(squares[None, :] - 2 * (rows @ points.T), axis=1)


def _formula(xp: Any, spec: Spec, X: Any) -> Any:
    device = getattr(X, "device", None)
    mapped = xp.asarray(np.array(spec.arrays["mapped"]), dtype=X.dtype, device=device)
    return xp.take(mapped, nearest(xp, spec.arrays["landmarks"], X), axis=0)


def _fast(spec: Spec, X: Any, out: np.ndarray, block_bytes: int) -> np.ndarray:
    """The same on blocks of rows."""
    landmarks, mapped = spec.arrays["landmarks"], spec.arrays["mapped"]
    for rows in row_blocks(X.shape[0], 8 * (len(landmarks) + X.shape[1]), block_bytes):
        out[rows] = mapped[nearest(np, landmarks, dense(X[rows]))]
    return out


FAMILIES["nearest"] = JointFamily(
    lambda spec, n_features: int(spec.arrays["mapped"].shape[1]), _formula, _fast
)

register_schema(
    "nearest",
    FamilySchema(
        arrays={
            "landmarks": floats("f8", "landmarks features"),
            "mapped": floats("f8", "landmarks columns"),
        },
        takes=lambda spec, n_features: n_features == spec.arrays["landmarks"].shape[1],
    ),
)
