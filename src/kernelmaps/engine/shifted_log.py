"""The family ``shifted_log``: log(x + c), the stage before random features of the skewed χ²."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.schema import number
from .._util.sparse import dense
from .._util.threads import row_blocks
from .joint import FAMILIES, JointFamily
from .schema import FamilySchema, register_schema
from .spec import Spec


def _formula(xp: Any, spec: Spec, X: Any) -> Any:
    return xp.log(X + spec.numbers["shift"])


def _fast(spec: Spec, X: Any, out: np.ndarray, block_bytes: int) -> np.ndarray:
    for rows in row_blocks(X.shape[0], out.itemsize * X.shape[1], block_bytes):
        np.add(dense(X[rows]), spec.numbers["shift"], out=out[rows], dtype=out.dtype)
        np.log(out[rows], out=out[rows])
    return out


FAMILIES["shifted_log"] = JointFamily(lambda spec, n_features: n_features, _formula, _fast)

register_schema("shifted_log", FamilySchema(numbers={"shift": number(above=0)}))
