r"""Joint frequencies that move (low-dim-maps section 4.2, in several dimensions).

p-norms by L-BFGS reach the valley, sequential linear programs with a trust region (as in
:mod:`~kernelmaps.design.slp`) its ground. A frequency of a periodic axis is a harmonic and stays,
and so does a zero coordinate: moving it would cost columns.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .boxes import BoxWaves, JointProblem
from .pnorm import log_p_norm
from .problem import Cosines
from .slp import sequential_lp

_LARGEST = 300.0
"""Logarithm of weights that a descent tries: a long step must not overflow."""


def descend_p_norms(
    problem: JointProblem, cosines: Cosines, powers: tuple[int, ...] = (2, 8, 32, 128)
) -> Cosines:
    """Minimise p-norms of the error over moving frequencies and log-weights."""
    frequencies, weights = cosines
    free = problem.free(frequencies)
    logs = np.log(np.maximum(weights, 1e-3 * np.max(weights)))
    m = logs.size

    def value(x: np.ndarray, power: int) -> tuple[float, np.ndarray]:
        moved = frequencies.copy()
        moved[free] = x[m:]
        alpha = np.exp(np.minimum(x[:m], _LARGEST))
        waves = BoxWaves(problem.coarse.axes, moved, problem.form)
        norm, pull = log_p_norm(problem.coarse.target - waves.sum(alpha), power)
        pulls, slopes = waves.pulled(-pull)
        return norm, np.r_[alpha * pulls, (alpha[:, None] * slopes)[free]]

    x = np.r_[logs, frequencies[free]]
    for power in powers:
        x = minimize(
            value, x, args=(power,), jac=True, method="L-BFGS-B",
            options={"maxiter": 120, "maxcor": 20},
        ).x  # fmt: skip
    moved = frequencies.copy()
    moved[free] = x[m:]
    return moved, np.exp(x[:m])


def taylor_programs(problem: JointProblem, cosines: Cosines, steps: int = 40) -> Cosines:
    """Taylor programs (12), (13) with a trust region."""
    return sequential_lp(problem, cosines, reach=0.1, steps=steps, tolerance=1e-4)


def shaken(
    problem: JointProblem, cosines: Cosines, size: float, rng: np.random.Generator
) -> Cosines:
    """Frequencies moved by a part of their distance from each other; weights kept."""
    frequencies, free = cosines[0], problem.free(cosines[0])
    moved = frequencies + free * rng.normal(0, size, frequencies.shape) / problem.spans
    return np.where(free & (moved == 0), frequencies, moved), cosines[1]


def is_locally_optimal(problem: JointProblem, cosines: Cosines) -> bool:
    """Whether small steps of the Taylor program gain less than a thousandth (Kolmogorov)."""
    moved = sequential_lp(problem, cosines, reach=1e-2, steps=6, tolerance=1e-4)
    return problem.max_error(moved) > problem.max_error(cosines) * (1 - 1e-3)
