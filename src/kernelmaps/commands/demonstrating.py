"""The demonstration: one comparison of the maps on the bundled digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import load
from ..evaluation.comparison import compare

_LOADING = """import numpy as np

digits = km.datasets.load("digits")
X = np.concatenate([digits.X_train, digits.X_test])
y = np.concatenate([digits.y_train, digits.y_test])"""


def demonstrate(budget: float | None = None) -> Any:
    """Compare maps of an additive, an exponentiated and a stationary kernel on 1797 digits."""
    digits = load("digits")
    return compare(
        np.concatenate([digits.X_train, digits.X_test]),
        np.concatenate([digits.y_train, digits.y_test]),
        task="classification",
        kernels=["chi2", "exp_chi2", "gaussian"],
        sizes=(3,),
        joint_sizes=(256,),
        budget=budget,
        name="digits",
        loading_code=_LOADING,
    )
