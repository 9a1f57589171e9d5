r"""The best cosine map of a size: continuous frequencies (low-dim-maps section 4.2).

Smooth signatures (χ², Jensen-Shannon, Gaussian) have one equalised solution, which
:mod:`~kernelmaps.design.remez` finds in milliseconds. Rough ones (intersection, Laplacian), and
those that are narrow for their domain, have several local optima that all equioscillate; there
p-norm scouts run from many starts, sequential linear programs from the best of them and from
perturbed optima. The result is polished by levelling its lobes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..progress import track
from .lp import columns, lp_design, periodic_design, pool_start
from .problem import Cosines, Problem
from .remez import equalise_lobes, remez_design
from .slp import fit_weights, least_p_norm, sequential_lp

# Relative errors below which a equalised solution is the only one, as far as many starts can tell:
# for signatures with a kink at zero, and without.
_ALONE = {True: 2e-3, False: 0.15}
_REACH = 0.5  # first steps of frequencies, over the span
_DENSE = 1500  # lags from which a discrete set is as good as an interval


def alternation(problem: Problem, cosines: Cosines, slack: float = 1e-2) -> np.ndarray:
    """Lags where the error touches its maximum (within `slack`) with alternating sign."""
    lags, errors = problem.extrema(cosines)
    top = np.max(np.abs(errors), initial=0.0)
    kept: list[int] = []
    for i in np.flatnonzero(np.abs(errors) >= (1 - slack) * top):
        if kept and np.sign(errors[kept[-1]]) == np.sign(errors[i]):
            if abs(errors[i]) > abs(errors[kept[-1]]):
                kept[-1] = i
        else:
            kept.append(i)
    return lags[kept]


class Search(NamedTuple):
    """How long frequencies are looked for, and from where."""

    seed: int = 0
    effort: int = 1  # multiplies the number of starts
    progress: bool | None = False


ONCE = Search()


def refined_design(problem: Problem, n_columns: int, search: Search = ONCE) -> Cosines:
    """Frequencies and weights of the best map found with at most `n_columns` columns."""
    if problem.period is not None:
        return periodic_design(problem, n_columns)
    if problem.tail:
        return _universal(problem, n_columns, search)
    return _refine(problem, n_columns, search)


def _universal(problem: Problem, n_columns: int, search: Search) -> Cosines:
    """Lengthen [0, M] until the tail beyond, at most w(M)(k(M) + Σα), is below the error inside."""
    for _ in range(8):
        cosines = _refine(problem, n_columns, search)
        inside = max(problem.max_error(cosines), 1e-14 * problem.scale)
        end = float(problem.signature(np.array([problem.span]))[0])
        amplitude = float(np.sum(cosines[1])) + end
        needed = 2 / problem.kernel.gamma * np.log(amplitude * problem.unit / inside)
        if needed <= problem.span:
            break
        problem = replace(problem, span=1.02 * needed)
    return cosines


def _refine(problem: Problem, n_columns: int, search: Search) -> Cosines:
    """Dispatch on smoothness; never worse than the design with one column less."""
    continuous = replace(problem, points=None, norm="max")
    found = remez_design(continuous, n_columns)
    equalised = found is not None and alternation(continuous, found).size > n_columns
    candidates = [] if found is None else [found]
    if not equalised and n_columns > 1 and _nearly_exact(continuous, n_columns):
        # Lobes drown in the rounding of k: neither linear programs nor starts can help.
        candidates.append(_refine(problem, n_columns - 1, search))
        return min(candidates, key=problem.max_error)
    alone = _ALONE[continuous.has_kink] * continuous.scale
    if found is None or not (equalised and continuous.max_error(found) < alone):
        candidates.append(_many_starts(continuous, n_columns, candidates, search))
    if problem.norm == "sum" or (problem.points is not None and problem.points.size < _DENSE):
        candidates = [sequential_lp(problem, pair, reach=_REACH) for pair in candidates]
    return _tidy(problem.best(candidates))


def _nearly_exact(problem: Problem, n_columns: int) -> bool:
    """Whether three columns less already come close to the rounding of k."""
    fewer = remez_design(problem, max(1, n_columns - 3))
    return fewer is not None and problem.max_error(fewer) < 1e-6 * problem.scale


def _tidy(cosines: Cosines) -> Cosines:
    """Sorted and non-negative, without frequencies of no weight."""
    frequencies, weights = np.abs(cosines[0]), cosines[1]
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


def _many_starts(problem: Problem, n_columns: int, known: list[Cosines], search: Search) -> Cosines:
    """Scouts by p-norms from many starts; linear programs from the best of them; then kicks."""
    rng = np.random.default_rng(search.seed)
    fixed_zero = bool(n_columns % 2)
    count = 12 * search.effort if n_columns > 2 else 3
    starts = list(_starts(problem, n_columns, known, rng, count))
    scouts = []
    for frequencies in track(starts, f"design, {n_columns} columns", enabled=search.progress):
        start = frequencies, fit_weights(problem, frequencies)
        scouts.append(least_p_norm(problem, start, fixed_zero))
    valleys = apart(problem, scouts, 1e-2)[: 1 + search.effort]
    best = min((_polish(problem, pair) for pair in valleys), key=problem.max_error)
    for _ in range(1 + 2 * search.effort):
        kicked = _kick(problem, best, fixed_zero)
        if kicked is best:
            break
        best = kicked
    return best


def apart(problem: Any, found: list[Cosines], margin: float) -> list[Cosines]:
    """Best first, without those whose error is that of the one before: starts that met."""
    kept: list[tuple[float, Cosines]] = []
    for error, pair in sorted(((problem.max_error(p), p) for p in found), key=lambda e: e[0]):
        if not kept or error > (1 + margin) * kept[-1][0]:
            kept.append((error, pair))
    return [pair for _, pair in kept]


def _kick(problem: Problem, cosines: Cosines, fixed_zero: bool) -> Cosines:
    """The best optimum found from here with a high frequency displaced; `cosines` if none is.

    The optima of rough kernels differ in how far out their last frequencies lie.
    """
    frequencies, found = cosines[0], []
    for index, factor in [(-1, 0.8), (-1, 1.2), (-1, 1.45), (-2, 0.85), (-2, 1.2)]:
        if -index > frequencies.size - int(fixed_zero):
            continue
        moved = frequencies.copy()
        moved[index] *= factor
        start = moved, fit_weights(problem, moved)
        found.append(sequential_lp(problem, start, reach=_REACH, steps=16, tolerance=1e-3))
    if not found:
        return cosines
    best = _polish(problem, min(found, key=problem.max_error))
    gain = problem.max_error(best) < problem.max_error(cosines) * (1 - 1e-6)
    return best if gain else cosines


def _polish(problem: Problem, cosines: Cosines) -> Cosines:
    """Level the lobes exactly, where the design alternates often enough to have lobes."""
    finished = _tidy(sequential_lp(problem, cosines, reach=_REACH))
    peaks = alternation(problem, finished)
    if peaks.size != columns(finished[0]) + 1 or problem.points is not None:
        return finished
    nodes = _zeros_between(problem, finished, peaks)
    equalised = equalise_lobes(problem, finished, nodes)[0]
    return min(finished, equalised, key=problem.max_error)


def _zeros_between(problem: Problem, cosines: Cosines, peaks: np.ndarray) -> np.ndarray:
    """One zero of the error between consecutive peaks, by bisection."""
    low, high = peaks[:-1].copy(), peaks[1:].copy()
    sign = np.sign(problem.residual(low, cosines))
    for _ in range(40):
        middle = 0.5 * (low + high)
        same = np.sign(problem.residual(middle, cosines)) == sign
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return 0.5 * (low + high)


def pool_design(problem: Problem, n_columns: int) -> Cosines:
    """Method "lp": the best of the pools Ω_2, Ω_3, and of Ω_2 with one column less."""
    designs = [lp_design(problem, n_columns, halvings=j) for j in (2, 3)]
    if n_columns > 1:
        designs.append(lp_design(problem, n_columns - 1, halvings=2))
    return problem.best(designs)
