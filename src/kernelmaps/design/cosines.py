r"""The best cosine map of a size: continuous frequencies (Chum 2015, section 4.2).

Smooth signatures (χ², Jensen-Shannon, Gaussian) have one equalised solution, which
:func:`remez_design` finds in milliseconds. Rough ones (intersection, Laplacian), and
those that are narrow for their domain, have several local optima that all equioscillate; there
p-norm scouts run from many starts, sequential linear programs from the best of them and from
optima whose highest frequencies are displaced.

**Interpolation and levelling**: a Remez exchange that moves zeros. A locally best k̂ with D
parameters (D columns) has an error that touches ±E with alternating sign at D + 1 lags, and so it
has D zeros in between: k̂ *interpolates* k at D lags. Two facts make that the right way to look for
it:

*Start.* At the lags (j + 1/2)h the values cos(ωλ) are, with x = cos(ωh), the numbers
√((1+x)/2) V_j(x), V_j the Chebyshev polynomials of the third kind. To interpolate k at D = 2n such
lags with n cosines is to find the n-point Gauss rule of a positive measure from 2n modified
moments; a fixed zero frequency (D = 2n + 1) makes it a Gauss-Radau rule. No iteration is needed.

*Levelling.* Near the solution the error behaves like G(λ) Π_j (λ² − x_j²) with a smooth G. The
sizes of the D + 1 lobes between the zeros x_j then respond to the zeros like

.. math:: ∂\log|e(z_i)|/∂x_j ≈ -2x_j/(z_i^2 - x_j^2),

which is well conditioned, while the map from (ω, α) to the error is not at all: its Jacobian loses
about one digit per column. Moving zeros, with an interpolation by Newton's method after each move,
levels lobes down to errors of 1e-13 of k(0), where the rounding of k itself ends the game.

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

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, eigh, lapack
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, linprog, milp, minimize, nnls

from .._util.arguments import parameter
from .._util.display import track
from ..exceptions import DesignError
from .approximation import CosineProblem, Cosines, has_kink, parabola_top

_ROUNDING = 8e-16  # of the sum of cosines, per unit of their weight


def solve_lp(
    cost: np.ndarray, rows: np.ndarray, limit: np.ndarray, lower: np.ndarray | float = 0.0
) -> np.ndarray:
    """The x ≥ lower of least cost with rows x ≤ limit, by HiGHS.

    Programs are small and dense: presolving them and `linprog` around them would take half of the
    time. What fails is tried by the interior point method, which survives what simplex may not;
    then a :class:`DesignError` says what to do.
    """
    within = LinearConstraint(rows, -np.inf, limit)
    result = milp(
        cost, constraints=within, bounds=Bounds(lower, np.inf), options={"presolve": False}
    )
    if result.x is None:
        ends = np.stack(np.broadcast_arrays(lower, np.inf, cost)[:2], axis=1)
        result = linprog(cost, A_ub=rows, b_ub=limit, bounds=ends, method="highs-ipm")
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
    lags, target, weight = problem.sample_lags(250)
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
    if not total > 0:  # an exact map
        return -700.0, np.zeros_like(error)
    return float(np.log(top) + np.log(total) / power), gradient / (total * top)


def descend(value: Callable, x: np.ndarray, arguments: tuple, **options: Any) -> OptimizeResult:
    """Minimise a function that returns its value and its gradient, by L-BFGS."""
    return minimize(value, x, arguments, jac=True, method="L-BFGS-B", options=options)


LARGEST_LOGARITHM = 300.0
"""Logarithm of weights that a descent tries: a long step must not overflow."""


def least_p_norm(
    problem: CosineProblem,
    cosines: Cosines,
    fixed_zero: bool,
    powers: tuple[int, ...] = (2, 8, 32),
    steps: int = 40,
) -> Cosines:
    """Descend from given cosines through growing powers p; the frequencies come back sorted."""
    lags, target, weight = problem.sample_lags(160)
    weight, n = weight / problem.scale, cosines[1].size
    free = slice(int(fixed_zero), None)
    logs = np.log(np.maximum(cosines[1], 1e-4 * np.max(cosines[1], initial=1e-300)))
    # In units in which all parameters move alike: that of frequencies is the inverse of the span.
    x = np.r_[logs, cosines[0] * problem.span]

    def value(x: np.ndarray, power: int) -> tuple[float, np.ndarray]:
        angles = np.multiply.outer(lags / problem.span, x[n:])
        atoms, alpha = np.cos(angles), np.exp(np.minimum(x[:n], LARGEST_LOGARITHM))
        norm, gradient = log_p_norm(weight * (target - atoms @ alpha), power)
        sums = -gradient * weight
        moves = (sums * lags / problem.span) @ -np.sin(angles) * alpha
        moves[: free.start] = 0.0
        return norm, np.r_[(sums @ atoms) * alpha, moves]

    for power in powers:
        x = descend(value, x, (power,), maxiter=steps, maxcor=20).x
    order = np.argsort(np.abs(x[n:]))
    return np.abs(x[n:])[order] / problem.span, np.exp(x[:n])[order]


def count_columns(frequencies: np.ndarray) -> np.ndarray:
    """D_ω: one column for the zero frequency, two for others."""
    return np.where(np.asarray(frequencies) == 0, 1, 2)


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


def gauss_start(problem: CosineProblem, n_columns: int, span: float) -> Cosines | None:
    """Cosines that interpolate k at (j + 1/2) span/(D − 1/2), j < D; None where they do not exist.

    The Gram matrix L(V_i V_j) of the measure is filled from the moments L(V_j) by the recurrence
    2x V_j = V_{j+1} + V_{j−1}, V_{−1} = V_0.
    """
    fixed_zero, n = n_columns % 2, n_columns // 2
    step = span / (n_columns - 0.5)
    nodes = (np.arange(n_columns + 1) + 0.5) * step
    frequencies = np.zeros(fixed_zero)
    if n:
        gram = np.zeros((n + 2, n_columns + 1))
        gram[0] = problem.signature(nodes)
        for i in range(n + 1):
            width = n_columns - i
            before = gram[max(i - 1, 0), :width]
            below = np.r_[gram[i, 0], gram[i, : width - 1]]
            gram[i + 1, :width] = gram[i, 1 : width + 1] + below - before
        gram = gram[:, :n]
        times_x = (gram[1:] + np.vstack([gram[:1], gram[:-2]])) / 2
        plain, moved = gram[:n], times_x[:n]
        if fixed_zero:
            times_x2 = (times_x[1:] + np.vstack([times_x[:1], times_x[:-2]])) / 2
            plain, moved = plain - moved, moved - times_x2[:n]
        try:
            cosines = eigh((moved + moved.T) / 2, (plain + plain.T) / 2, eigvals_only=True)
        except LinAlgError:
            return None  # not positive definite: k is not, or its moments are lost in rounding
        if np.max(np.abs(cosines)) >= 1:
            return None
        frequencies = np.r_[frequencies, np.sort(np.arccos(cosines)) / step]
    nodes = nodes[:n_columns]
    matrix = np.cos(np.outer(nodes, frequencies))
    weights = np.linalg.lstsq(matrix, problem.signature(nodes), rcond=None)[0]
    return (frequencies, weights) if np.min(weights) > 0 else None


def interpolate(
    problem: CosineProblem, cosines: Cosines, nodes: np.ndarray, tolerance: float = 0.0
) -> Cosines | None:
    """Newton's method in (ω, log α) for k̂ = k at the D nodes, from a nearby solution."""
    frequencies, weights = cosines
    free = slice(nodes.size % 2, None)
    n = weights.size
    target = problem.signature(nodes)
    longest = 0.8 / problem.span
    for _ in range(10):
        angles = np.multiply.outer(nodes, frequencies)
        cosine = np.cos(angles)
        residual = target - cosine @ weights
        if np.max(np.abs(residual)) <= max(tolerance, _ROUNDING * np.sum(weights)):
            return frequencies, weights
        derivatives = (-nodes[:, None] * np.sin(angles) * weights)[:, free]
        jacobian = np.concatenate([cosine * weights, derivatives], axis=1)
        size = np.abs(jacobian).max(axis=0)
        if not size.min() > 0:
            return None
        _, _, move, info = lapack.dgesv(jacobian / size, residual)
        if info != 0:
            return None
        move = move / size
        length = max(np.max(np.abs(move[:n])), np.max(np.abs(move[n:]), initial=0.0) / longest)
        if not np.isfinite(length):
            return None
        fraction = min(1.0, 1.0 / max(length, 1e-300))
        weights = weights * np.exp(fraction * move[:n])
        frequencies = frequencies.copy()
        frequencies[free] += fraction * move[n:]
        if not (np.all(frequencies[free] > 0) and np.all(np.isfinite(weights))):
            return None
        if length < 1e-7:
            return frequencies, weights
    # Near rounding the parameters wander in their last digits while the residual cannot improve.
    residual = target - np.cos(np.outer(nodes, frequencies)) @ weights
    return (frequencies, weights) if np.max(np.abs(residual)) < 1e-14 * np.sum(weights) else None


_WITHIN = np.linspace(0, 1, 33)  # where a lobe's top is looked for


def _join_ends(inner: np.ndarray, last: float) -> np.ndarray:
    """Zero, some numbers, and a last one."""
    return np.concatenate([[0.0], inner, [last]])


def _lobes(
    problem: CosineProblem, cosines: Cosines, nodes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Place and size of the largest |error| in each of the D + 1 intervals between zeros."""
    edges = _join_ends(nodes, problem.span)
    width = edges[1:] - edges[:-1]
    grid = edges[:-1, None] + width[:, None] * _WITHIN
    size = np.abs(problem.residual(grid.ravel(), cosines).reshape(grid.shape))
    top = np.argmax(size, axis=1)
    row, middle = np.arange(top.size), np.clip(top, 1, 31)
    shift = parabola_top(*(size[row, middle + side] for side in (-1, 0, 1)))
    inside = (top > 0) & (top < 32)
    peaks = grid[row, top] + np.where(inside, shift * width / 32, 0.0)
    return peaks, np.abs(problem.residual(peaks, cosines))


def equalise_lobes(
    problem: CosineProblem, cosines: Cosines, nodes: np.ndarray
) -> tuple[Cosines, float]:
    """Move the zeros until all lobes are equally high, or as far as that goes.

    Returns the cosines and how far from level they are: the logarithm of the ratio of the highest
    lobe to the lowest.
    """
    peaks, heights = _lobes(problem, cosines, nodes)
    for _ in range(40):
        if np.min(heights) <= 0 or np.ptp(np.log(heights)) < 1e-9:
            break
        gap = peaks[:, None] ** 2 - nodes**2
        if np.any(gap == 0):
            break  # a lobe without height: nothing is left to level
        system = np.hstack([-2 * nodes / gap, -np.ones((heights.size, 1))])
        try:
            move = np.linalg.solve(system, -np.log(heights))[:-1]
        except np.linalg.LinAlgError:
            break
        gaps = np.diff(_join_ends(nodes, problem.span))
        crowding = np.max(np.abs(np.diff(_join_ends(move, 0.0))) / gaps)
        fraction = min(1.0, 0.7 / max(crowding, 1e-300))
        better = None
        while better is None and fraction > 1e-3:
            better = _try_move(problem, cosines, nodes + fraction * move, heights)
            fraction /= 2
        if better is None:
            break
        cosines, nodes, peaks, heights = better
    return cosines, float(np.ptp(np.log(np.maximum(heights, 1e-300))))


def _try_move(
    problem: CosineProblem, cosines: Cosines, nodes: np.ndarray, heights: np.ndarray
) -> tuple[Cosines, np.ndarray, np.ndarray, np.ndarray] | None:
    """Interpolate at moved zeros; None unless the lobes come out more level than `heights`."""
    least = float(np.min(heights)) / float(np.max(problem.weight(nodes)))
    moved = interpolate(problem, cosines, nodes, tolerance=1e-5 * least)
    if moved is None:
        return None
    peaks, after = _lobes(problem, moved, nodes)
    if np.min(after) <= 0 or np.ptp(np.log(after)) >= np.ptp(np.log(heights)):
        return None
    return moved, nodes, peaks, after


def remez_design(problem: CosineProblem, n_columns: int) -> Cosines | None:
    """Gauss start, levelled; for short spans by way of longer ones, where rounding is no trouble.

    Returns None where k is too rough for it (it then has no Gauss rule that can be levelled, or
    only one for frequencies beyond the reach of the nodes).
    """
    best, least = None, np.inf
    for stretch in (0.99, 0.98, 0.995, 1.5, 2.2, 3.3, 5.0, 7.5):
        length = stretch * problem.span
        cosines = gauss_start(problem, n_columns, length)
        nodes = (np.arange(n_columns) + 0.5) * length / (n_columns - 0.5)
        while cosines is not None and nodes[-1] > problem.span * 0.999:
            nodes = nodes * max(0.85, 0.99 * problem.span / nodes[-1])
            cosines = interpolate(problem, cosines, nodes)
        if cosines is None:
            continue
        cosines, uneven = equalise_lobes(problem, cosines, nodes)
        error = problem.max_error(cosines)
        if error < least:
            best, least = cosines, error
        if uneven < 1e-3 or least > 1e-7 * problem.scale:
            break  # level, or too rough for longer spans to help
    return best


# Constants of the search from many starts; measured on 160 designs of 20 kernels.
# Relative errors below which an equalised design is the only one, as far as many starts can tell
# (with a kink at zero, without one). If every equalised design were taken, 15 designs would be
# worse, by up to 17 % (one twelvefold), in 0.4 of the time; if none were, none of 48 would be
# better, in 3 times that.
_UNIQUE_BELOW_WITH_KINK, _UNIQUE_BELOW = 2e-3, 0.15
_STARTS, _STARTS_OF_TWO_COLUMNS = 12, 3
_FIRST_RADIUS = 0.5  # of the trust region of frequencies, over the span
_DENSE_LAGS = 1500  # from which a discrete set is as good as an interval
# Highest frequencies that are displaced, and by which factors. Without this, designs of kernels
# with a kink have errors that are up to 11 % larger, in half of the time.
_DISPLACED = (-1, 0.8), (-1, 1.2), (-1, 1.45), (-2, 0.85), (-2, 1.2)


def alternation(problem: CosineProblem, cosines: Cosines, slack: float = 1e-2) -> np.ndarray:
    """Lags where the error touches its maximum (within `slack`) with alternating sign."""
    lags, errors = problem.extrema(cosines)
    top = np.max(np.abs(errors), initial=0.0)
    peaks: list[int] = []
    for i in np.flatnonzero(np.abs(errors) >= (1 - slack) * top):
        if peaks and np.sign(errors[peaks[-1]]) == np.sign(errors[i]):
            if abs(errors[i]) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    return lags[peaks]


def refined_design(
    problem: CosineProblem, n_columns: int, seed: int = 0, progress: bool | None = False
) -> Cosines:
    """Frequencies and weights of the best map found with at most `n_columns` columns."""
    if not problem.tail:
        return _refine(problem, n_columns, seed, progress)
    for _ in range(8):
        # Lengthen [0, M] until the tail, at most w(M)(k(M) + Σα), is below the error inside.
        cosines = _refine(problem, n_columns, seed, progress)
        inside = max(problem.max_error(cosines), 1e-14 * problem.scale)
        end = float(problem.signature(np.array([problem.span]))[0])
        amplitude = float(np.sum(cosines[1])) + end
        needed = 2 / problem.kernel.gamma * np.log(amplitude * problem.unit / inside)
        if needed <= problem.span:
            break
        problem = replace(problem, span=1.02 * needed)
    return cosines


def _refine(problem: CosineProblem, n_columns: int, seed: int, progress: bool | None) -> Cosines:
    """Dispatch on smoothness; never worse than the design with one column less."""
    continuous = replace(problem, points=None)
    remez = remez_design(continuous, n_columns)
    equalised = remez is not None and alternation(continuous, remez).size > n_columns
    candidates = [] if remez is None else [remez]
    if not equalised and n_columns > 1:
        fewer = remez_design(continuous, max(1, n_columns - 3))
        if fewer is not None and continuous.max_error(fewer) < 1e-6 * continuous.scale:
            # Lobes drown in the rounding of k: neither linear programs nor starts can help.
            candidates.append(_refine(problem, n_columns - 1, seed, progress))
            return min(candidates, key=problem.max_error)
    kink = has_kink(problem.signature, problem.span)
    limit = continuous.scale * (_UNIQUE_BELOW_WITH_KINK if kink else _UNIQUE_BELOW)
    if remez is None or not (equalised and continuous.max_error(remez) < limit):
        candidates.append(_many_starts(continuous, n_columns, candidates, seed, progress))
    if problem.points is not None and problem.points.size < _DENSE_LAGS:
        candidates = [sequential_lp(problem, pair, radius=_FIRST_RADIUS) for pair in candidates]
    return _tidy(min(candidates, key=problem.max_error))


def _tidy(cosines: Cosines) -> Cosines:
    """Sorted and non-negative, without frequencies of no weight."""
    frequencies, weights = np.abs(cosines[0]), cosines[1]
    alive = weights > 1e-15 * np.sum(weights)
    order = np.argsort(frequencies[alive])
    return frequencies[alive][order], weights[alive][order]


def _starts(
    problem: CosineProblem,
    n_columns: int,
    designs: list[Cosines],
    rng: np.random.Generator,
    count: int,
) -> Iterator[np.ndarray]:
    """Frequencies to start from: those of known designs, and gaps that grow geometrically."""
    fixed_zero, n = n_columns % 2, (n_columns + 1) // 2
    yield from (frequencies for frequencies, _ in designs)
    for _ in range(count):
        gaps = np.exp(rng.uniform(0, 0.8)) ** np.arange(n) * np.exp(rng.normal(0, 0.2, n))
        place = np.cumsum(gaps)
        place = place - place[0] if fixed_zero else place - 0.5 * place[0]
        top = np.exp(rng.uniform(np.log(1.2), np.log(4.5))) * n_columns / problem.span
        yield place * top / place[-1] if place[-1] > 0 else place


def _many_starts(
    problem: CosineProblem,
    n_columns: int,
    designs: list[Cosines],
    seed: int,
    progress: bool | None,
) -> Cosines:
    """p-norms from many starts, linear programs from the best, then from displaced frequencies."""
    rng = np.random.default_rng(seed)
    fixed_zero = bool(n_columns % 2)
    count = _STARTS if n_columns > 2 else _STARTS_OF_TWO_COLUMNS
    starts = list(_starts(problem, n_columns, designs, rng, count))
    scouts = []
    for frequencies in track(starts, f"design, {n_columns} columns", enabled=progress):
        start = frequencies, fit_weights(problem, frequencies)
        scouts.append(least_p_norm(problem, start, fixed_zero))
    valleys = distinct_optima(problem, scouts, 1e-2)[:2]
    valleys = [least_p_norm(problem, pair, fixed_zero, (32, 128), 200) for pair in valleys]
    best = min((_polish(problem, pair) for pair in valleys), key=problem.max_error)
    for _ in range(3):
        displaced = _displace_frequencies(problem, best, fixed_zero)
        if displaced is best:
            break
        best = displaced
    return best


def distinct_optima(problem: Any, designs: list[Cosines], margin: float) -> list[Cosines]:
    """Best first, without those whose error is that of the one before: starts that met."""
    distinct: list[tuple[float, Cosines]] = []
    for error, pair in sorted(((problem.max_error(p), p) for p in designs), key=lambda e: e[0]):
        if not distinct or error > (1 + margin) * distinct[-1][0]:
            distinct.append((error, pair))
    return [pair for _, pair in distinct]


def _displace_frequencies(problem: CosineProblem, cosines: Cosines, fixed_zero: bool) -> Cosines:
    """The best optimum found from here with a high frequency displaced; `cosines` if none is.

    The optima of rough kernels differ in how far out their last frequencies lie.
    """
    frequencies, designs = cosines[0], []
    for index, factor in _DISPLACED:
        if -index > frequencies.size - int(fixed_zero):
            continue
        moved = frequencies.copy()
        moved[index] *= factor
        start = moved, fit_weights(problem, moved)
        designs.append(
            sequential_lp(problem, start, radius=_FIRST_RADIUS, steps=16, tolerance=1e-3)
        )
    if not designs:
        return cosines
    best = _polish(problem, min(designs, key=problem.max_error))
    gain = problem.max_error(best) < problem.max_error(cosines) * (1 - 1e-6)
    return best if gain else cosines


def _polish(problem: CosineProblem, cosines: Cosines) -> Cosines:
    """Linear programs until none improves the error; without frequencies of no weight."""
    return _tidy(sequential_lp(problem, cosines, radius=_FIRST_RADIUS))
