r"""Shape functions: what a linear model on an additive map does with each feature.

The score is :math:`f(x) = b + \sum_d g_d(x_d)` with :math:`g_d(t) = w_d^\top φ_d(t)`. Models that
know their own shape functions are asked; for any other linear model on an additive map they are
read off the map, one feature at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..maps.base import AdditiveMap

__all__ = ["Shape", "shapes_of", "shapes_of_linear"]

_POINTS = 60


@dataclass(frozen=True)
class Shape:
    """g_d on a grid.

    Attributes
    ----------
    name : str
    grid : ndarray of shape (m,)
    values : ndarray of shape (m, n_outputs)
        Centred: zero mean over the grid, or over the data where they are known.
    outputs : list of str
        What each column of `values` speaks for (classes, or "score").
    """

    name: str
    grid: np.ndarray
    values: np.ndarray
    outputs: list[str]

    @property
    def importance(self) -> float:
        """How far the feature moves the score between its ends, at most over outputs."""
        return float(np.ptp(self.values, axis=0).max())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "name": self.name,
            "importance": self.importance,
            "outputs": self.outputs,
            "grid": self.grid.tolist(),
            "values": self.values.tolist(),
        }


def shapes_of(model: Any, names: Sequence[str] | None = None, domain: Any = None) -> list[Shape]:
    """Shape functions of a fitted model, in the order of the features."""
    if hasattr(model, "shape_functions_"):
        own = model.shape_functions_
        outputs = _outputs(model, np.atleast_2d(own[0].values.T).shape[0])
        return [
            Shape(
                names[d] if names else item.name,
                np.asarray(item.grid),
                np.asarray(item.values).reshape(len(item.grid), -1),
                outputs,
            )
            for d, item in enumerate(own)
        ]
    feature_map, coef = getattr(model, "feature_map_", None), getattr(model, "coef_", None)
    if not isinstance(feature_map, AdditiveMap) or coef is None:
        on = "" if feature_map is None else f" on {type(feature_map).__name__}"
        raise ValueError(
            f"a {type(model).__name__}{on} is not a sum of functions of one feature, so that it "
            "cannot be drawn. Fit an additive model, or a ridge model "
            "on an additive map."
        )
    coef = np.atleast_2d(coef)
    outputs = _outputs(model, len(coef))
    return shapes_of_linear(feature_map, coef, outputs, names=names, domain=domain)


def shapes_of_linear(
    feature_map: AdditiveMap,
    coef: np.ndarray,
    outputs: list[str],
    *,
    names: Sequence[str] | None = None,
    domain: Any = None,
) -> list[Shape]:
    """Shape functions of coefficients (n_outputs, D) on an additive map.

    All features are moved at once: as each acts on its own columns alone, row i of the grid gives
    every feature its own i-th value.
    """
    d = feature_map.n_features_in_
    if domain is None:
        domain = getattr(feature_map, "domain_", None) or (np.zeros(1), np.ones(1))
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), d) for end in domain)
    grid = low + np.linspace(0, 1, _POINTS)[:, None] * (high - low)
    Z = feature_map.transform(grid)
    Z = Z.toarray() if sparse.issparse(Z) else Z
    ends = np.cumsum([0, *feature_map._columns_per_feature()])
    shapes = []
    for j in range(d):
        own = slice(int(ends[j]), int(ends[j + 1]))
        values = Z[:, own] @ coef[:, own].T
        name = names[j] if names else f"x{j}"
        shapes.append(Shape(name, grid[:, j], values - values.mean(axis=0), outputs))
    return shapes


def _outputs(model: Any, count: int) -> list[str]:
    classes = [str(item) for item in getattr(model, "classes_", [])]
    if count == 1 or len(classes) != count:
        return [f"towards {classes[1]}" if len(classes) == 2 else "score"] * count
    return classes
