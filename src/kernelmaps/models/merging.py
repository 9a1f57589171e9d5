"""Merging models that were fitted on parts of the rows, from the sums that they keep."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any


def merge(models: Iterable[Any]) -> Any:
    """Merge models of parts of the rows into the model of all rows.

    The sums of their normal equations are added up, so that the result is the model that one `fit`
    of all rows gives, up to rounding errors; no row is read again.

    Parameters
    ----------
    models : sequence of fitted StreamingRidge, StreamingRidgeClassifier, StreamingLasso, …
        Models of one class that keep their sums, with the same fitted feature map; the parameters
        of the first one count. They may come from files.

    Returns
    -------
    estimator
        A new model. Generalised additive models and additive SVMs are refused: they keep their
        functions, and no sums.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).random((400, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1]
    >>> curves = km.SplineMap(10).fit(X)
    >>> parts = [
    ...     km.StreamingRidge(feature_map=curves).fit(X[rows], y[rows])
    ...     for rows in (slice(200), slice(200, 400))
    ... ]
    >>> whole = km.StreamingRidge(feature_map=curves).fit(X, y)
    >>> bool(np.allclose(km.merge(parts).predict(X), whole.predict(X)))
    True
    """
    models = list(models) if isinstance(models, Iterable) else []
    if not models:
        raise ValueError("merge: models must be a sequence of fitted models, with at least one.")
    for model in models:
        if not hasattr(model, "merge"):
            raise TypeError(
                f"merge: {type(model).__name__} keeps no sums of its rows. Fit it to all parts "
                "at once, which may be chunks or files, or fit StreamingRidge with one fitted map, "
                "such as SplineMap, to each part."
            )
    merged = deepcopy(models[0])
    for other in models[1:]:
        merged.merge(other)
    return merged
