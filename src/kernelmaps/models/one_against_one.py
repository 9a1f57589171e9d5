"""One against one: pairs of classes, and their votes."""

from __future__ import annotations

import numpy as np


def pairs_of(n_classes: int) -> np.ndarray:
    """All pairs of class codes (a, b), a < b, in scikit-learn's order; b is called +1."""
    return np.stack(np.triu_indices(n_classes, 1), axis=1)


def votes(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Votes of the pairs for each class, ties broken by the sums of their scores.

    The sums are squashed to less than half a vote: these are the values of scikit-learn's
    `OneVsOneClassifier` and, by default, of its `SVC`.

    Parameters
    ----------
    scores : ndarray of shape (n, n_pairs)
        In the order of `pairs_of`; positive for the second class.
    n_classes : int
    """
    from sklearn.utils.multiclass import _ovr_decision_function

    return _ovr_decision_function((scores > 0).astype(int), scores, n_classes)


def decided(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Codes of the classes that scores of outputs (one, one per class, or one per pair) stand for.

    Parameters
    ----------
    scores : ndarray of shape (n, 1), (n, n_classes) or (n, n_pairs)
    n_classes : int
        Three classes have three pairs: scores of pairs are turned into votes before.
    """
    if n_classes == 2:
        return (scores[:, 0] > 0).astype(int)
    return scores.argmax(axis=1)
