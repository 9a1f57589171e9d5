"""One against one: pairs of classes, their votes, and probabilities from those of pairs."""

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


def coupled(p: np.ndarray, n_classes: int) -> np.ndarray:
    r"""Probabilities of the classes from those of pairs, by the rule of LIBSVM.

    With r_ab the probability of a against b, the second method of Wu, Lin and Weng (2004):

    .. math:: \min_p \sum_a \sum_{b ≠ a} (r_{ba} p_a - r_{ab} p_b)^2, \qquad \sum_a p_a = 1,

    a linear system of n_classes + 1 unknowns, whose solution is not negative.

    Parameters
    ----------
    p : ndarray of shape (n, n_pairs)
        Probabilities of the second class of each pair.
    n_classes : int
    """
    a, b = pairs_of(n_classes).T
    r = np.zeros((len(p), n_classes, n_classes))
    p = np.clip(p, 1e-7, 1 - 1e-7)  # as LIBSVM: a pair that is sure would decide alone
    r[:, b, a], r[:, a, b] = p, 1 - p
    system = np.ones((len(p), n_classes + 1, n_classes + 1))
    system[:, -1, -1] = 0.0
    diagonal = np.arange(n_classes)
    system[:, :-1, :-1] = -r * r.transpose(0, 2, 1)
    system[:, diagonal, diagonal] = (r**2).sum(axis=1)
    right = np.zeros((len(p), n_classes + 1, 1))
    right[:, -1] = 1.0
    probabilities = np.maximum(np.linalg.solve(system, right)[:, :-1, 0], 0.0)
    return probabilities / probabilities.sum(axis=1, keepdims=True)
