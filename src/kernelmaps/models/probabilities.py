"""From the scores of a classifier to probabilities, for arrays of any library."""

from __future__ import annotations

from typing import Any

from ..engine.reference import namespace


def sigmoid(scores: Any) -> Any:
    """1/(1 + exp(−z)) in float64, without overflow."""
    xp = namespace(scores)
    z = xp.astype(scores, xp.float64)
    small = xp.exp(-xp.abs(z))  # the half that does not overflow
    return xp.where(z >= 0, 1 / (1 + small), small / (1 + small))


def class_probabilities(p: Any) -> Any:
    """Probabilities of all classes from those of the outputs, scaled to sum to one."""
    xp = namespace(p)
    if p.shape[1] == 1:
        return xp.concat([1 - p, p], axis=1)
    total = xp.sum(p, axis=1, keepdims=True)
    positive = total > 0
    uniform = xp.full_like(p, 1 / p.shape[1])
    return xp.where(positive, p / xp.where(positive, total, xp.ones_like(total)), uniform)
