r"""Norms of high order, and cosines of least p-norm: cheap scouts for the minimax problem.

Minimising Σ |w(k − k̂)|^p for p = 2, 8, 32 in turn costs fractions of a millisecond per step, where
a linear program costs several; the minima for large p lie in the valleys of the minimax problem.
Weights are α = e^t, so that they stay positive.
"""

from __future__ import annotations

import numpy as np

from .problem import Cosines, Problem

_POWERS, _STEPS = (2, 8, 32), 25  # steps for each of them


def log_p_norm(error: np.ndarray, power: int) -> tuple[float, np.ndarray]:
    """log ‖e‖_p and its gradient in e; powers are powers of two, by repeated squaring."""
    size = np.abs(error)
    top = max(float(np.max(size)), 1e-300)
    size /= top
    # What would underflow counts for nothing, and processors are slow at it.
    size *= size > 1e-280 ** (1 / power)
    slope, square, exponent = error / top, size * size, power // 2 - 1
    while exponent:
        if exponent & 1:
            slope *= square
        exponent >>= 1
        if exponent:
            square *= square
    total = np.vdot(slope, error) / top
    return float(np.log(top) + np.log(total) / power), slope / (total * top)


def least_p_norm(problem: Problem, cosines: Cosines, fixed_zero: bool) -> Cosines:
    """Descend from given cosines through growing powers p; the frequencies come back sorted."""
    lags, target, weight = problem.sampled(160)
    weight = weight / problem.scale
    frequencies, weights = cosines[0].copy(), cosines[1]
    free, n = slice(int(fixed_zero), None), weights.size
    logs = np.log(np.maximum(weights, 1e-4 * np.max(weights, initial=1e-300)))
    longest = 0.5 * np.pi / problem.span

    def residual(logs: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        return weight * (target - np.cos(np.outer(lags, frequencies)) @ np.exp(logs))

    error = residual(logs, frequencies)
    for power in _POWERS:
        damping = 1e-2
        for _ in range(_STEPS):
            top = np.max(np.abs(error))
            if top < 1e-14:
                break
            # |e|^p as reweighted least squares: sqrt of the weight is |e|^(p/2 − 1)
            focus = (np.abs(error) / top) ** (power / 2 - 1)
            angles = np.outer(lags, frequencies)
            rows = (weight * focus)[:, None] * np.exp(logs)
            slopes = (-rows * lags[:, None] * np.sin(angles))[:, free]
            jacobian = np.hstack([rows * np.cos(angles), slopes])
            hessian = jacobian.T @ jacobian
            gradient = jacobian.T @ (focus * error) / (power - 1)
            diagonal = np.diag(np.diag(hessian) + 1e-9 * np.trace(hessian))
            before = np.sum((np.abs(error) / top) ** power)
            for _ in range(6):
                move = np.linalg.lstsq(hessian + damping * diagonal, gradient, rcond=None)[0]
                new_logs = logs + np.clip(move[:n], -1.5, 1.5)
                new_frequencies = frequencies.copy()
                new_frequencies[free] += np.clip(move[n:], -longest, longest)
                new_error = residual(new_logs, new_frequencies)
                after = np.sum((np.abs(new_error) / top) ** power)
                if after < before:
                    break
                damping *= 8
            else:
                break
            logs, frequencies, error = new_logs, new_frequencies, new_error
            damping = max(damping / 8, 1e-7)
            if after > before * (1 - 1e-3):
                break
    order = np.argsort(np.abs(frequencies))
    return np.abs(frequencies)[order], np.exp(logs)[order]
