"""Scores of classes on one scale, for many classes that were trained one against the rest."""

from __future__ import annotations

import numpy as np


def align_scores(scores: np.ndarray, rank: int) -> np.ndarray:
    """Shift the scores of each class so that the score of a given rank is zero in every class.

    Classes that are trained one against the rest have scores whose level depends on how common a
    class is. Li, Lebanon and Sminchisescu (*Chebyshev approximations to the histogram χ² kernel*,
    section 7.3) make the 500th highest score of each class the same, at 150 rows of a class.

    Parameters
    ----------
    scores : array of shape (n_samples, n_classes)
        Values of `decision_function` of the rows to predict.
    rank : int
        Which score becomes zero, counted from the highest; from 1 to n_samples.
    """
    return scores - np.partition(scores, len(scores) - rank, axis=0)[len(scores) - rank]
