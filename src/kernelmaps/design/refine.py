r"""The best cosine map of a size: continuous frequencies (low-dim-maps section 4.2).

Smooth signatures (χ², Jensen-Shannon, Gaussian) have one equalised solution, which
:mod:`~kernelmaps.design.remez` finds in milliseconds. Rough ones (intersection, Laplacian), and
those that are narrow for their domain, have several local optima that all equioscillate; there
p-norm scouts run from many starts, sequential linear programs from the best of them and from
perturbed optima. The result is polished by levelling its lobes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..progress import track
from .lp import lp_design, periodic_design, pool_start
from .pnorm import least_p_norm
from .problem import Cosines, Problem
from .remez import equalise_lobes, remez_design
from .slp import fit_weights, sequential_lp

# Relative errors below which a equalised solution is the only one, as far as many starts can tell:
# for signatures with a kink at zero, and without.
_ALONE = {True: 2e-3, False: 0.15}
_DENSE = 1500  # lags from which a discrete set is as good as an interval


def alternation(problem: Problem, cosines: Cosines, slack: float = 1e-2) -> np.ndarray:
    """Lags where the error touches its maximum (within `slack`) with alternating sign."""
    lags, errors = problem.extrema(*cosines)
    top = np.max(np.abs(errors), initial=0.0)
    kept: list[int] = []
    for i in np.flatnonzero(np.abs(errors) >= (1 - slack) * top):
        if kept and np.sign(errors[kept[-1]]) == np.sign(errors[i]):
            if abs(errors[i]) > abs(errors[kept[-1]]):
                kept[-1] = i
        else:
            kept.append(i)
    return lags[kept]


def refined_design(
    problem: Problem,
    n_columns: int,
    norm: str = "max",
    *,
    seed: int = 0,
    effort: int = 1,
    progress: bool | None = False,
) -> Cosines:
    """Frequencies and weights of the best map found with at most `n_columns` columns."""
    if problem.period is not None:
        return periodic_design(problem, n_columns, norm)
    if problem.tail:
        return _universal(problem, n_columns, norm, seed, effort, progress)
    return _refine(problem, n_columns, norm, seed, effort, progress)[0]


def _universal(
    problem: Problem, n_columns: int, norm: str, seed: int, effort: int, progress: bool | None
) -> Cosines:
    """Lengthen [0, M] until the tail beyond, at most w(M)(k(M) + Σα), is below the error inside."""
    for _ in range(8):
        cosines, solved = _refine(problem, n_columns, norm, seed, effort, progress)
        inside = max(solved.max_error(*cosines), 1e-14 * problem.scale)
        amplitude = float(np.sum(cosines[1])) + float(problem.signature(np.array([solved.span]))[0])
        needed = 2 / problem.gamma * np.log(amplitude * problem.unit / inside)
        if needed <= solved.span:
            return cosines
        problem = problem.with_span(1.02 * needed)
    return cosines


def _refine(
    problem: Problem, n_columns: int, norm: str, seed: int, effort: int, progress: bool | None
) -> tuple[Cosines, Problem]:
    """Dispatch on smoothness; never worse than the design with one column less."""
    fixed_zero = bool(n_columns % 2)
    continuous = problem
    if problem.points is not None:
        continuous = Problem(problem.signature, problem.weight, problem.span, problem.unit)
    found = remez_design(continuous, n_columns)
    equalised = found is not None and alternation(continuous, found).size > n_columns
    candidates = [] if found is None else [found]
    if not equalised and n_columns > 1 and _nearly_exact(continuous, n_columns):
        less, _ = _refine(problem, n_columns - 1, norm, seed, effort, progress)
        # Lobes drown in the rounding of k: neither linear programs nor starts can help.
        both = [*candidates, less]
        return min(both, key=lambda pair: problem.max_error(*pair)), problem
    alone = _ALONE[continuous.has_kink] * continuous.scale
    if found is None or not (equalised and continuous.max_error(*found) < alone):
        candidates += _many_starts(continuous, n_columns, candidates, seed, effort, progress)
    if norm == "sum" or (problem.points is not None and problem.points.size < _DENSE):
        candidates = [
            sequential_lp(problem, pair, fixed_zero or pair[0][0] == 0, norm=norm)
            for pair in candidates
        ]
    measure = problem.max_error if norm == "max" else problem.sum_error
    best = min(candidates, key=lambda pair: measure(*pair))
    return _tidy(best), problem


def _nearly_exact(problem: Problem, n_columns: int) -> bool:
    """Whether three columns less already come close to the rounding of k."""
    fewer = remez_design(problem, max(1, n_columns - 3))
    return fewer is not None and problem.max_error(*fewer) < 1e-6 * problem.scale


def _tidy(cosines: Cosines) -> Cosines:
    """Sorted, without frequencies of no weight."""
    frequencies, weights = cosines
    alive = weights > 1e-15 * np.sum(weights)
    order = np.argsort(frequencies[alive])
    return frequencies[alive][order], weights[alive][order]


def _starts(
    problem: Problem, n_columns: int, known: list[Cosines], rng: np.random.Generator, count: int
) -> Iterator[np.ndarray]:
    """Frequencies to start from: the known, the pool's, and gaps that grow geometrically."""
    fixed_zero, n = n_columns % 2, (n_columns + 1) // 2
    yield from (frequencies for frequencies, _ in known)
    pooled = pool_start(problem, n_columns)
    if pooled.size == n and (pooled[0] == 0) == bool(fixed_zero):
        yield pooled
    for _ in range(count):
        gaps = np.exp(rng.uniform(0, 0.8)) ** np.arange(n) * np.exp(rng.normal(0, 0.2, n))
        place = np.cumsum(gaps)
        place = place - place[0] if fixed_zero else place - 0.5 * place[0]
        top = np.exp(rng.uniform(np.log(1.2), np.log(4.5))) * n_columns / problem.span
        yield place * top / place[-1] if place[-1] > 0 else place


def _many_starts(
    problem: Problem,
    n_columns: int,
    known: list[Cosines],
    seed: int,
    effort: int,
    progress: bool | None,
) -> list[Cosines]:
    """Scouts by p-norms from many starts; linear programs from the best of them; then kicks."""
    rng = np.random.default_rng(seed)
    fixed_zero = bool(n_columns % 2)
    count = 12 * effort if n_columns > 2 else 3
    starts = list(_starts(problem, n_columns, known, rng, count))
    scouts = []
    for frequencies in track(starts, f"design, {n_columns} columns", enabled=progress):
        start = frequencies, fit_weights(problem, frequencies)
        scouts.append(least_p_norm(problem, start, fixed_zero))
    best = [_polish(problem, pair) for pair in _distinct(problem, scouts)[: 1 + effort]]
    best.sort(key=lambda pair: problem.max_error(*pair))
    for _ in range(1 + 2 * effort):
        kicked = _kick(problem, best[0], fixed_zero)
        if kicked is best[0]:
            break
        best.insert(0, kicked)
    return best[:1]


def _distinct(problem: Problem, found: list[Cosines]) -> list[Cosines]:
    """Best first, without those that are as good as the one before."""
    errors = [problem.max_error(*pair) for pair in found]
    kept: list[int] = []
    for index in np.argsort(errors, kind="stable"):
        if not kept or errors[index] > 1.01 * errors[kept[-1]]:
            kept.append(int(index))
    return [found[index] for index in kept]


def _kick(problem: Problem, cosines: Cosines, fixed_zero: bool) -> Cosines:
    """The best optimum found from here with a high frequency displaced; `cosines` if none is.

    The optima of rough kernels differ in how far out their last frequencies lie.
    """
    frequencies = cosines[0]
    moves = [(-1, 0.8), (-1, 1.2), (-1, 1.45), (-2, 0.85), (-2, 1.2)]
    found = []
    for index, factor in moves:
        if -index > frequencies.size - int(fixed_zero):
            continue
        moved = frequencies.copy()
        moved[index] *= factor
        start = moved, fit_weights(problem, moved)
        found.append(sequential_lp(problem, start, fixed_zero, steps=16, tolerance=1e-3))
    if not found:
        return cosines
    best = _polish(problem, min(found, key=lambda pair: problem.max_error(*pair)))
    gain = problem.max_error(*best) < problem.max_error(*cosines) * (1 - 1e-6)
    return best if gain else cosines


def _polish(problem: Problem, cosines: Cosines) -> Cosines:
    """Level the lobes exactly, where the design alternates often enough to have lobes."""
    finished = _tidy(sequential_lp(problem, cosines, cosines[0].min() == 0))
    peaks = alternation(problem, finished)
    n_columns = 2 * finished[0].size - int(finished[0][0] == 0)
    if peaks.size != n_columns + 1 or problem.points is not None:
        return finished
    nodes = _zeros_between(problem, finished, peaks)
    equalised = equalise_lobes(problem, finished, nodes)[0]
    return min(finished, equalised, key=lambda pair: problem.max_error(*pair))


def _zeros_between(problem: Problem, cosines: Cosines, peaks: np.ndarray) -> np.ndarray:
    """One zero of the error between consecutive peaks, by bisection."""
    low, high = peaks[:-1].copy(), peaks[1:].copy()
    sign = np.sign(problem.residual(low, *cosines))
    for _ in range(40):
        middle = 0.5 * (low + high)
        same = np.sign(problem.residual(middle, *cosines)) == sign
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return 0.5 * (low + high)


def pool_design(problem: Problem, n_columns: int, norm: str = "max") -> Cosines:
    """Method "lp": the best of the pools Ω_2, Ω_3, and of Ω_2 with one column less."""
    measure = problem.max_error if norm == "max" else problem.sum_error
    designs = [lp_design(problem, n_columns, norm, halvings=j) for j in (2, 3)]
    if n_columns > 1:
        designs.append(lp_design(problem, n_columns - 1, norm, halvings=2))
    return min(designs, key=lambda pair: measure(*pair))
