r"""Shape functions of a fitted model, and their importance.

The score is :math:`f(x) = b + \sum_d g_d(x_d)` with :math:`g_d(t) = w_d^\top φ_d(t)`. Models that
know their own shape functions are asked; for any other linear model on an additive map they are
read off the map, one feature at a time.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._util.sparse import dense
from ..maps.base import AdditiveMap
from ..models.shapes import PairFunction, ShapeFunction, tabulated_importance

_POINTS = 60
_BINS = 24


def shape_functions(
    model: Any, *, names: Sequence[str] | None = None, domain: Any = None
) -> list[ShapeFunction]:
    """Return the shape functions of a fitted model, in the order of the features.

    Parameters
    ----------
    model : estimator
        An additive model, a search over such models, or a linear model on an additive map that has
        `feature_map_` and `coef_` (StreamingRidge, …).
    names : sequence of str, optional
        Names of all features; by default those seen in `fit`.
    domain : (low, high), optional
        Range of each feature, for models that have not kept it.

    Returns
    -------
    list of ShapeFunction
        One for each feature, as arrays.
    """
    check_is_fitted(model)
    if hasattr(model, "shape_functions_"):
        shapes = model.shape_functions_
        if names is None:
            return shapes
        return [replace(shape, name=str(new)) for shape, new in zip(shapes, names, strict=True)]
    feature_map, coef = getattr(model, "feature_map_", None), getattr(model, "coef_", None)
    if not isinstance(feature_map, AdditiveMap) or coef is None:
        on = "" if feature_map is None else f" on {type(feature_map).__name__}"
        raise ValueError(
            f"{type(model).__name__}{on} is not a sum of functions of one feature, so that it "
            "cannot be drawn. Fit an additive model, or a ridge model on an additive map."
        )
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    return linear_shape_functions(feature_map, coef, names=names, domain=domain)


def linear_shape_functions(
    feature_map: AdditiveMap,
    coef: Any,
    *,
    names: Sequence[str] | None = None,
    domain: Any = None,
    X: Any = None,
) -> list[ShapeFunction]:
    """Shape functions of coefficients (n_outputs, D) on an additive map.

    All features are moved at once: as each acts on its own columns alone, row i of the grid gives
    every feature its own i-th value. With rows `X` the functions have mean zero over them, and
    their density; without, both are taken over the domain.
    """
    coef = np.atleast_2d(coef)
    d = feature_map.n_features_in_
    if names is None:
        names = getattr(feature_map, "feature_names_in_", None)
    rows = None if X is None else dense(X)
    if rows is not None:
        domain = rows.min(axis=0), rows.max(axis=0)
    elif domain is None:
        domain = getattr(feature_map, "domain_", None) or (np.zeros(1), np.ones(1))
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), d) for end in domain)
    grid = low + np.linspace(0, 1, _POINTS)[:, None] * (high - low)
    Z = dense(drop_names(feature_map).transform(grid))
    ends = np.cumsum([0, *feature_map._columns_per_feature()])
    shapes = []
    for j in range(d):
        columns = slice(int(ends[j]), int(ends[j + 1]))
        values = Z[:, columns] @ coef[:, columns].T
        edges = np.linspace(low[j], high[j] if high[j] > low[j] else low[j] + 1, _BINS + 1)
        density = np.full(_BINS, 1 / _BINS)
        if rows is not None:
            density = np.histogram(rows[:, j], edges)[0] / len(rows)
        name = f"x{j}" if names is None else str(names[j])
        shape = ShapeFunction(name, grid[:, j], values, edges, density)
        centres = (edges[1:] + edges[:-1]) / 2  # of the bins of the density
        curves = values.reshape(_POINTS, -1).T
        at_data = np.stack([np.interp(centres, shape.grid, curve) for curve in curves], axis=1)
        centred = values - at_data.T @ density
        values = centred[:, 0] if len(coef) == 1 else centred
        shapes.append(
            replace(shape, values=values, importance=tabulated_importance(at_data, density))
        )
    return shapes


def importance(shape: ShapeFunction | PairFunction) -> float:
    """Standard deviation of a function over the data, averaged over outputs.

    For additive models this is the number of `feature_importances_`. Linear models on maps keep no
    rows: theirs is over the density that the shape function carries. A curve that is steep where
    there are no data does not count.

    Parameters
    ----------
    shape : ShapeFunction or PairFunction
        The function.

    Returns
    -------
    float
        Its importance.
    """
    return shape.importance


def sort_by_importance(functions: Iterable[Any]) -> list[Any]:
    """Functions of features or of pairs, the most important first."""
    return sorted(functions, key=lambda function: -importance(function))


def output_names(model: Any) -> list[str] | None:
    """Names of the curves of a panel: the classes where there are more than two, else None.

    One against one, they are the pairs of classes.
    """
    if getattr(model, "_pairwise", False):
        return model._output_names()
    classes = getattr(model, "classes_", None)
    return None if classes is None or len(classes) <= 2 else [str(item) for item in classes]


def drop_names(feature_map: AdditiveMap) -> AdditiveMap:
    """The same map for rows without names of columns, such as a grid."""
    plain = copy.copy(feature_map)
    plain.__dict__.pop("feature_names_in_", None)
    return plain
