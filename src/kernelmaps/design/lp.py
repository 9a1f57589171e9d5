r"""Linear programs for frequencies that move, and p-norms that scout for them.

**Taylor programs** (eqs. 9-13), repeated with a trust region. With frequencies allowed to move by
d_ω, and β_ω = α_ω d_ω,

.. math:: \hat k(λ) = \sum_ω α_ω \cos ωλ - \sum_ω β_ω λ \sin ωλ \quad (12), \qquad
          |β_ω| \le α_ω d^{max} \quad (13)

is linear in (α, β): no product of a move with a change of weight is neglected. The paper halves
d_max in every step, so that no frequency can travel further than 2 d_max, and gets stuck. Here a
step is kept only if the true error, recomputed on the fine grid, has fallen; d_max then grows or
shrinks with the quality of the prediction, as in every trust-region method. Constraints are kept
at a coarse set of lags and at all local maxima of the error; those of every step join as cutting
planes, of a rejected one, too. One loop serves designs of one dimension and of several.

**Norms of high order** and cosines of least p-norm are cheap scouts for the minimax problem.
Minimising Σ |w(k − k̂)|^p for p = 2, 8, 32 in turn costs fractions of a millisecond per step, where
a linear program costs several; the minima for large p lie in the valleys of the minimax problem.
Weights are α = e^t, so that they stay positive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import Bounds, LinearConstraint, linprog, milp, nnls

from .._util.arguments import parameter
from ..exceptions import DesignError
from .problem import CosineProblem, Cosines


def solve_lp(
    cost: np.ndarray, rows: np.ndarray, limit: np.ndarray, lower: np.ndarray | float = 0.0
) -> np.ndarray:
    """The x ≥ lower of least cost with rows x ≤ limit, by HiGHS.

    Programs are small and dense: presolving them and `linprog` around them would take half of the
    time. What fails without is tried with both, and by the interior point method, which survives
    what simplex may not; then a :class:`DesignError` says what to do.
    """
    within = LinearConstraint(rows, -np.inf, limit)
    result = milp(
        cost, constraints=within, bounds=Bounds(lower, np.inf), options={"presolve": False}
    )
    for method in ("highs", "highs-ipm"):
        if result.x is not None:
            break
        ends = np.stack(np.broadcast_arrays(lower, np.inf, cost)[:2], axis=1)
        result = linprog(cost, A_ub=rows, b_ub=limit, bounds=ends, method=method)
    if result.x is None:
        raise DesignError(
            f"the linear program could not be solved: HiGHS says {result.message!r} (status "
            f"{result.status}). Check that the signature and the weight are finite and of similar "
            f"size over the whole domain; a shorter domain or a larger "
            f"{parameter('n_components')} may help."
        )
    return result.x


def error_rows(model: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|model x − target| <= t as rows of a linear program in (x, t), and their limits."""
    slack = -np.ones((target.size, 1))
    rows = np.vstack([np.hstack([model, slack]), np.hstack([-model, slack])])
    return rows, np.r_[target, -target]


def least_error(model: np.ndarray, target: np.ndarray, prices: Any = 0.0) -> np.ndarray:
    """The non-negative x of least max |model x − target| + prices · x."""
    rows, limit = error_rows(model, target)
    cost = np.r_[np.zeros(model.shape[1]) + prices, 1.0]
    return np.maximum(solve_lp(cost, rows, limit)[:-1], 0.0)


def least_error_step(
    model: np.ndarray, target: np.ndarray, weights: np.ndarray, moving: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Changes of weights and their moves β of least error, within (13), and that error.

    Parameters
    ----------
    model : ndarray of shape (lags, n + m)
        Columns of the n changes of weights, then of the m moves in units of their radius.
    target : ndarray of shape (lags,)
    weights : ndarray of shape (n,)
        Which no change makes negative.
    moving : ndarray of int of shape (m,)
        The weight that each move belongs to.
    """
    n, m = weights.size, moving.size
    rows, limit = error_rows(model, target)
    cone = np.zeros((2 * m, rows.shape[1]))
    pair = np.arange(m)
    for sign in (0, 1):
        cone[2 * pair + sign, moving] = -1.0
        cone[2 * pair + sign, n + pair] = 1.0 - 2.0 * sign
    lower = np.r_[-weights, np.full(m, -np.inf), 0.0]
    cost = np.r_[np.zeros(n + m), 1.0]
    limit = np.r_[limit, np.repeat(weights[moving], 2)]
    x = solve_lp(cost, np.vstack([rows, cone]), limit, lower)
    return x[:n], x[n : n + m], float(x[-1])


def fit_weights(problem: CosineProblem, frequencies: np.ndarray) -> np.ndarray:
    """Non-negative least-squares weights of given frequencies."""
    lags, target, weight = problem.sampled(250)
    matrix = weight[:, None] * problem.atoms(lags, frequencies)
    try:
        return nnls(matrix, weight * target, maxiter=30 * frequencies.size)[0]
    except RuntimeError:  # columns equal to rounding: any sensible start will do
        return np.maximum(np.linalg.lstsq(matrix, weight * target, rcond=1e-10)[0], 0.0)


def taylor_step(
    problem: Any, cosines: Cosines, radius: float, lags: np.ndarray, scale: float
) -> tuple[Cosines, float]:
    """Solve (12), (13) at the given lags; returns the moved cosines and the predicted error.

    The program is written in changes: α' = α + s·u, β = s·radius·v, with s the change of weights
    that matters at the current error `scale`. All its numbers are then of order one, and HiGHS's
    absolute tolerance of 1e-7 is relative to the error.
    """
    frequencies, weights = cosines
    free = problem.free(frequencies)
    weight = problem.weight(lags)
    unit = scale / max(float(np.max(weight)), 1e-300)
    shape = (weight * unit / scale)[:, None]
    derivatives = radius * shape * problem.derivatives(lags, frequencies)[:, free]
    model = np.hstack([shape * problem.atoms(lags, frequencies), derivatives])
    target, entry = problem.residual(lags, cosines) / scale, np.nonzero(free)[0]
    changes, moves, error = least_error_step(model, target, weights / unit, entry)
    changed = np.maximum(weights + unit * changes, 0.0)
    moves, share = unit * radius * moves, changed[entry]
    alive = share > 1e-14 * max(np.sum(changed), 1e-300)
    step = np.where(alive, moves / np.where(alive, share, 1.0), 0.0)
    moved = frequencies.copy()
    moved[free] += np.clip(step, -radius, radius)
    return (moved, changed), error * scale


def sequential_lp(
    problem: Any, cosines: Cosines, *, radius: float, steps: int = 60, tolerance: float = 1e-7
) -> Cosines:
    """Follow Taylor steps downhill until none improves the true error by more than `tolerance`.

    Parameters
    ----------
    problem : CosineProblem or JointProblem
        Of one dimension or of several.
    cosines : (frequencies, weights)
        Where to start. Frequencies may become negative.
    radius : float
        The first steps of frequencies are no longer, in units of the inverse of the span.
    steps, tolerance : int, float
    """
    radius = radius / problem.span
    always = problem.coarse_lags(len(cosines[0]))
    current, cuts = problem.max_error(cosines), problem.peaks(cosines)
    for _ in range(steps):
        if current <= 1e-10 * problem.scale or radius < 1e-11:
            break  # below that, levelling is the tool
        lags = np.unique(np.concatenate([always, cuts]), axis=0)
        try:
            moved, predicted = taylor_step(problem, cosines, radius, lags, current)
        except DesignError:  # the design so far stands: its error was computed, not promised
            break
        before, after = current, problem.max_error(moved)
        gain, expected = before - after, max(before - predicted, 1e-300)
        cuts = np.concatenate([cuts, problem.peaks(moved)])[-1500:]
        if gain > 0:
            cosines, current = moved, after
            radius *= 2.0 if gain > 0.5 * expected else 0.6 if gain < 0.25 * expected else 1.0
        else:
            radius /= 2
        if expected < tolerance * before:
            break
    return cosines


_POWERS = (2, 8, 32)  # p of the norms that approach the largest error
_STEPS = 25  # of L-BFGS for each p


def log_p_norm(error: np.ndarray, power: int) -> tuple[float, np.ndarray]:
    """log ‖e‖_p and its gradient in e; powers are powers of two, by repeated squaring."""
    size = np.abs(error)
    top = max(float(np.max(size)), 1e-300)
    size /= top
    # What would underflow counts for nothing, and processors are slow at it.
    size *= size > 1e-280 ** (1 / power)
    gradient, square, exponent = error / top, size * size, power // 2 - 1
    while exponent:
        if exponent & 1:
            gradient *= square
        exponent >>= 1
        if exponent:
            square *= square
    total = np.vdot(gradient, error) / top
    return float(np.log(top) + np.log(total) / power), gradient / (total * top)


def _solve_damped(matrix: np.ndarray, diagonal: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of a positive system with more on its diagonal; the least one if it has many."""
    system = matrix.copy()
    system.flat[:: len(system) + 1] += diagonal
    _, solution, info = lapack.dposv(system, right, lower=1)
    return solution if info == 0 else np.linalg.lstsq(system, right, rcond=None)[0]


def least_p_norm(problem: CosineProblem, cosines: Cosines, fixed_zero: bool) -> Cosines:
    """Descend from given cosines through growing powers p; the frequencies come back sorted."""
    lags, target, weight = problem.sampled(160)
    weight = weight / problem.scale
    frequencies, weights = cosines[0].copy(), cosines[1]
    free, n = slice(int(fixed_zero), None), weights.size
    logs = np.log(np.maximum(weights, 1e-4 * np.max(weights, initial=1e-300)))
    longest = 0.5 * np.pi / problem.span

    def residual(logs: np.ndarray, frequencies: np.ndarray) -> tuple[np.ndarray, ...]:
        angles = np.multiply.outer(lags, frequencies)
        cosines = np.cos(angles)
        return weight * (target - cosines @ np.exp(logs)), angles, cosines

    error, angles, cosine = residual(logs, frequencies)
    for power in _POWERS:
        damping = 1e-2
        for _ in range(_STEPS):
            top = np.max(np.abs(error))
            if top < 1e-14:
                break
            # |e|^p as reweighted least squares: sqrt of the weight is |e|^(p/2 − 1)
            focus = (np.abs(error) / top) ** (power / 2 - 1)
            rows = (weight * focus)[:, None] * np.exp(logs)
            derivatives = (-rows * lags[:, None] * np.sin(angles))[:, free]
            jacobian = np.concatenate([rows * cosine, derivatives], axis=1)
            hessian = jacobian.T @ jacobian
            gradient = jacobian.T @ (focus * error) / (power - 1)
            diagonal = hessian.diagonal()
            diagonal = diagonal + 1e-9 * np.sum(diagonal)
            before = np.sum((np.abs(error) / top) ** power)
            for _ in range(6):
                move = _solve_damped(hessian, damping * diagonal, gradient)
                new_logs = logs + np.clip(move[:n], -1.5, 1.5)
                new_frequencies = frequencies.copy()
                new_frequencies[free] += np.clip(move[n:], -longest, longest)
                new = residual(new_logs, new_frequencies)
                after = np.sum((np.abs(new[0]) / top) ** power)
                if after < before:
                    break
                damping *= 8
            else:
                break
            logs, frequencies, (error, angles, cosine) = new_logs, new_frequencies, new
            damping = max(damping / 8, 1e-7)
            if after > before * (1 - 1e-3):
                break
    order = np.argsort(np.abs(frequencies))
    return np.abs(frequencies)[order], np.exp(logs)[order]


def count_columns(frequencies: np.ndarray) -> np.ndarray:
    """D_ω: one column for the zero frequency, two for others."""
    return np.where(np.asarray(frequencies) == 0, 1, 2)


def columns(frequencies: np.ndarray) -> int:
    """D(k̂) = Σ D_ω (eq. 3)."""
    return int(np.sum(count_columns(frequencies)))


def largest_that_fit(weights: np.ndarray, need: np.ndarray, n_columns: int) -> np.ndarray:
    """Indices of the largest weights whose columns fit together."""
    selected = []
    for index in np.argsort(-weights, kind="stable"):
        if weights[index] > 0 and need[index] <= n_columns:
            selected.append(int(index))
            n_columns -= int(need[index])
    return np.array(sorted(selected), dtype=int)


def harmonic_design(problem: CosineProblem, n_columns: int) -> Cosines:
    """Orthogonal projection on the harmonics of 2M, largest non-negative coefficients (section 3).

    The comparison of section 4.1: k is continued periodically, which makes some coefficients
    negative (they are left out) and slows the decay of the others.
    """
    count = 4096
    step = problem.span / count
    lags = (np.arange(count) + 0.5) * step
    values = problem.signature(lags)
    order = np.arange(max(16, 3 * n_columns))
    frequencies = order * np.pi / problem.span
    weights = np.cos(np.outer(frequencies, lags)) @ values * (2 / count)
    weights[0] /= 2
    if n_columns % 2 == 0:
        frequencies, weights = frequencies[1:], weights[1:]
    selected = largest_that_fit(weights, count_columns(frequencies), n_columns)
    return frequencies[selected], weights[selected]
