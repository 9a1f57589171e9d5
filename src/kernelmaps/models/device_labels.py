"""Labels of scores, wherever these are."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from ..device import is_foreign
from .one_against_one import decided


def best_labels(model: Any, found: Any) -> Any:
    """The classes of the highest scores, where the scores are.

    Parameters
    ----------
    model : classifier
        Has `classes_`.
    found : array of shape (n, outputs)
        Scores; one output is that of the second of two classes.
    """
    classes = model.classes_
    if not is_foreign(found):
        return classes[decided(found, len(classes))]
    xp = array_namespace(found)
    if classes.dtype.kind not in "biuf":
        raise TypeError(
            f"{type(model).__name__}.predict: labels of type {classes.dtype} have no form on "
            f"{found.device}. Take classes_[k] of the k with the highest decision_function(X)."
        )
    two = found.shape[1] == 1
    best = xp.astype(found[:, 0] > 0, xp.int64) if two else xp.argmax(found, axis=1)
    return xp.take(xp.asarray(classes, device=found.device), best, axis=0)
