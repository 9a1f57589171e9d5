"""Platt's sigmoid: from scores to probabilities."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

__all__ = ["platt"]


def platt(scores: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Slope a > 0 and shift b of P(positive | f) = 1/(1 + exp(−(a f + b))).

    Maximum likelihood with Platt's targets (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2) in place of 1 and 0,
    which keep the slope finite for separable scores.  Newton with step halving.
    """
    many, few = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (many + 1) / (many + 2), 1 / (few + 2))
    design = np.stack([scores, np.ones_like(scores)], axis=1)
    spread = float(scores.std()) or 1.0
    theta = np.array([1 / spread, np.log((many + 1) / (few + 1))])

    def cost(theta: np.ndarray) -> float:
        z = design @ theta
        return float(weight @ (np.logaddexp(0, z) - target * z))

    for _ in range(100):
        p = expit(design @ theta)
        gradient = design.T @ (weight * (p - target))
        curvature = design.T @ (design * (weight * p * (1 - p))[:, None])
        ridge = 1e-12 * (np.trace(curvature) + weight.sum())  # never singular, however sure p is
        step = np.linalg.solve(curvature + ridge * np.eye(2), gradient)
        size, before = 1.0, cost(theta)
        while cost(theta - size * step) > before and size > 1e-6:
            size /= 2
        theta = theta - size * step
        if np.abs(gradient).max() <= 1e-8 * weight.sum() or size <= 1e-6:
            break
    return max(float(theta[0]), 0.0), float(theta[1])
