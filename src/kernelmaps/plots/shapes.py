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

from .._util.sparse import dense
from ..maps.base import AdditiveMap
from ..models.gam import summary
from ..models.gam.predictor import AdditivePredictor
from ..models.shapes import (
    PairFunction,
    ShapeFunction,
    estimator_name,
    predictor_of,
    require_fitted,
    tabulated_importance,
)

_POINTS = 60
_BINS = 24


def shape_functions(
    model: Any, *, names: Sequence[str] | None = None, domain: Any = None
) -> list[ShapeFunction]:
    """Return the shape functions of a fitted model, in the order of the features.

    Parameters
    ----------
    model : estimator or predictor
        An additive model, or a linear model on an additive map that has `feature_map_` and `coef_`
        (StreamingRidge, …).
    names : sequence of str, optional
        Names of all features; by default those seen in `fit`.
    domain : (low, high), optional
        Range of each feature, for models that have not kept it.

    Returns
    -------
    list of ShapeFunction
        One for each feature, as arrays.
    """
    require_fitted(model)
    owner, model = estimator_name(model), predictor_of(model)
    is_gam = isinstance(model, AdditivePredictor)
    if is_gam or hasattr(model, "shape_functions_"):
        shapes = summary.shape_functions(model) if is_gam else model.shape_functions_
        if names is None:
            return shapes
        return [replace(shape, name=str(new)) for shape, new in zip(shapes, names, strict=True)]
    feature_map, coef = getattr(model, "feature_map_", None), getattr(model, "coef_", None)
    if not isinstance(feature_map, AdditiveMap) or coef is None:
        on = "" if feature_map is None else f" on {type(feature_map).__name__}"
        raise ValueError(
            f"{owner}{on} is not a sum of functions of one feature, so that it "
            "cannot be drawn. Fit an additive model, or a ridge model on an additive map."
        )
    if names is None:
        fitted_names = getattr(feature_map, "feature_names_in_", None)
        names = getattr(model, "feature_names_in_", None)
        names = fitted_names if names is None else names
    # All features are moved at once: as each acts on its own columns alone, row i of the grid gives
    # every feature its own i-th value. Means and densities are taken over the domain.
    coef, d = np.atleast_2d(coef), feature_map.n_features_in_
    if domain is None:
        domain = getattr(feature_map, "domain_", None) or (np.zeros(1), np.ones(1))
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), d) for end in domain)
    grid = low + np.linspace(0, 1, _POINTS)[:, None] * (high - low)
    Z = dense(drop_names(feature_map).transform(grid))
    ends = np.cumsum([0, *feature_map._columns_per_feature()])
    density = np.full(_BINS, 1 / _BINS)
    shapes = []
    for j in range(d):
        columns = slice(int(ends[j]), int(ends[j + 1]))
        values = Z[:, columns] @ coef[:, columns].T
        edges = np.linspace(low[j], high[j] if high[j] > low[j] else low[j] + 1, _BINS + 1)
        centres = (edges[1:] + edges[:-1]) / 2  # of the bins of the density
        at_data = np.stack([np.interp(centres, grid[:, j], curve) for curve in values.T], axis=1)
        centred = values - at_data.T @ density
        values = centred[:, 0] if len(coef) == 1 else centred
        name = f"x{j}" if names is None else str(names[j])
        total = tabulated_importance(at_data, density)
        shapes.append(ShapeFunction(name, grid[:, j], values, edges, density, importance=total))
    return shapes


def pair_functions(model: Any) -> list[PairFunction]:
    """The functions of pairs of a generalised additive model; others have none."""
    model = predictor_of(model)
    return summary.pair_functions(model) if isinstance(model, AdditivePredictor) else []


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

    One against one, they are the pairs of classes; of a mean and its scale, both.
    """
    model = predictor_of(model)
    classes = getattr(model, "classes_", ())
    names = getattr(model, "output_names", classes if len(classes) > 2 else ())
    return [str(name) for name in names] if len(names) > 1 else None


def n_features_used(model: Any) -> int:
    """Number of features in the terms of a model; a date, which has several terms, is one."""
    model = predictor_of(model)
    reader = getattr(model, "reader", None)
    if reader is None:
        return int(model.n_features_in_)
    names = {reader.feature_names[j] for term in model.terms for j in term.columns}
    return sum(not names.isdisjoint(column.features) for column in reader.columns)


def drop_names(feature_map: AdditiveMap) -> AdditiveMap:
    """The same map for rows without names of columns, such as a grid."""
    plain = copy.copy(feature_map)
    plain.__dict__.pop("feature_names_in_", None)
    return plain
