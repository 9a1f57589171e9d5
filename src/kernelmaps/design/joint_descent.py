r"""Joint frequencies that move (low-dim-maps section 4.2, in several dimensions).

p-norms by L-BFGS reach the valley, sequential linear programs with a trust region (as in
:mod:`~kernelmaps.design.slp`) its ground. A frequency of a periodic axis is a harmonic and stays,
and so does a zero coordinate: moving it would cost columns.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .boxes import BoxWaves, JointProblem
from .problem import Cosines
from .slp import least_error_step


def descend_p_norms(
    problem: JointProblem,
    frequencies: np.ndarray,
    weights: np.ndarray,
    powers: tuple[int, ...] = (2, 8, 32, 128),
) -> Cosines:
    """Minimise p-norms of the error over moving frequencies and log-weights."""
    free = (frequencies != 0) & problem.moving  # a zero coordinate stays: moving it costs columns
    logs = np.log(np.maximum(weights, 1e-3 * np.max(weights)))
    m = logs.size

    def value(x: np.ndarray, power: int) -> tuple[float, np.ndarray]:
        moved = frequencies.copy()
        moved[free] = x[m:]
        alpha = np.exp(x[:m])
        waves = BoxWaves(problem.axes, moved, problem.form)
        error = problem.target - waves.sum(alpha)
        top = np.max(np.abs(error))
        scaled = error / top
        slope = np.sign(scaled) * np.abs(scaled) ** (power - 1)
        total = float(np.sum(slope * scaled))
        pulls, slopes = waves.pulled(-slope / (total * top))
        gradient = np.r_[alpha * pulls, (alpha[:, None] * slopes)[free]]
        return float(np.log(top) + np.log(total) / power), gradient

    x = np.r_[logs, frequencies[free]]
    for power in powers:
        x = minimize(
            value, x, args=(power,), jac=True, method="L-BFGS-B",
            options={"maxiter": 120, "maxcor": 20},
        ).x  # fmt: skip
    moved = frequencies.copy()
    moved[free] = x[m:]
    return moved, np.exp(x[:m])


def taylor_programs(
    problem: JointProblem,
    frequencies: np.ndarray,
    weights: np.ndarray,
    steps: int = 40,
    reach: float = 0.1,
) -> Cosines:
    """Taylor programs (12), (13) with a trust region, as in one dimension.

    A step that fails shows where the error would grow: its peaks join the next program.
    """
    reach = reach / float(np.max(problem.spans))
    current = problem.max_error(frequencies, weights)
    lags = problem.peaks(frequencies, weights)
    for _ in range(steps):
        moved, refit, predicted = _taylor_step(problem, frequencies, weights, reach, lags)
        after, promise = problem.max_error(moved, refit), current - predicted
        if promise < 1e-4 * current or reach < 1e-7:
            break
        lags = np.vstack([lags, problem.peaks(moved, refit)])[-1500:]
        if after < current:
            gain = current - after
            reach *= 2.0 if gain > 0.5 * promise else 0.6 if gain < 0.25 * promise else 1.0
            frequencies, weights, current = moved, refit, after
        else:
            reach /= 2
    return frequencies, weights


def _taylor_step(
    problem: JointProblem,
    frequencies: np.ndarray,
    weights: np.ndarray,
    reach: float,
    lags: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
    """One linear program in changes of weights and frequencies, at some lags and a thin grid."""
    scale = problem.max_error(frequencies, weights)
    thin = problem.grid[:: max(1, problem.grid.shape[0] // 200)]
    lags = np.unique(np.vstack([lags, thin]), axis=0)
    free = (frequencies != 0) & problem.moving
    entry = np.nonzero(free)[0]
    slopes = problem.slopes(lags, frequencies)[:, free] * reach
    model = np.hstack([problem.atoms(lags, frequencies), slopes])
    target = problem.residual(lags, frequencies, weights) / scale
    changes, moves, error = least_error_step(model, target, weights / scale, entry, "max")
    changed = np.maximum(weights + scale * changes, 0.0)
    share = np.maximum(changed[entry], 1e-14)
    step = np.clip(scale * reach * moves / share, -reach, reach)
    moved = frequencies.copy()
    moved[free] += np.where(changed[entry] > 1e-12, step, 0.0)
    return moved, changed, error * scale


def shaken(problem: JointProblem, pair: Cosines, size: float, rng: np.random.Generator) -> Cosines:
    """Frequencies moved by a part of their distance from each other; weights kept."""
    free = (pair[0] != 0) & problem.moving
    moved = pair[0] + free * rng.normal(0, size, pair[0].shape) / problem.spans
    return np.where(free & (moved == 0), pair[0], moved), pair[1]


def is_locally_optimal(problem: JointProblem, frequencies: np.ndarray, weights: np.ndarray) -> bool:
    """Whether small steps of the Taylor program gain less than a thousandth (Kolmogorov)."""
    moved = taylor_programs(problem, frequencies, weights, steps=6, reach=1e-2)
    return problem.max_error(*moved) > problem.max_error(frequencies, weights) * (1 - 1e-3)
