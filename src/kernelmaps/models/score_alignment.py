"""Scores of classes on one scale, for many classes that were trained one against the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.arguments import check_count


def align_scores(scores: Any, rank: int) -> np.ndarray:
    """Shift the scores of each class so that the score of a given rank is zero in every class.

    Classes that are trained one against the rest have scores whose level depends on how common a
    class is: the most common ones win too often. Where classes are about equally common among the
    rows to predict, the same number of rows should have a positive score for each class. Li,
    Lebanon and Sminchisescu (*Chebyshev approximations to the histogram χ² kernel*, section 7.3)
    make the 500th highest score of each class the same, at 150 rows of a class.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_classes)
        Values of `decision_function` of the rows to predict.
    rank : int
        Which score becomes zero, counted from the highest; from 1 to n_samples.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        Shifted scores. The highest of a row is that of its class: ``classes_[aligned.argmax(1)]``.

    Examples
    --------
    >>> import kernelmaps as km
    >>> km.align_scores([[0.9, -0.1], [0.5, -0.2], [0.4, -0.9]], rank=2)
    array([[ 0.4,  0.1],
           [ 0. ,  0. ],
           [-0.1, -0.7]])
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise ValueError(
            "align_scores: scores must have a row for each sample and a column for each of two "
            f"or more classes, found shape {scores.shape}"
        )
    if not np.isfinite(scores).all():
        raise ValueError("align_scores: scores must be finite, but some are NaN or infinite")
    rank = check_count("align_scores", "rank", rank)
    n = len(scores)
    if rank > n:
        raise ValueError(f"align_scores: rank={rank} is more than the {n} rows")
    return scores - np.partition(scores, n - rank, axis=0)[n - rank]
