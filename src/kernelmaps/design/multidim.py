r"""Cosine maps of two and three dimensions (low-dim-maps section 6).

*Projection* (eq. 19): k̂(λ) = Σ α cos(ωᵀλ), two columns per frequency vector. *Modulation* (eq. 20):
k̂(λ) = Σ α Π_i cos(ω^i λ^i), with D_ω = Π D_{ω^i} columns: 2^m for m non-zero coordinates. A
modulation is the sum of the projections on all reflections (±ω^1, …, ±ω^n), at the same number of
columns; projections are more general, modulations are symmetric by construction and smaller to
optimise.

Frequencies come from a pool: a polar grid ("polar") or the product of one-dimensional designs
("product", eq. 21). A linear program selects (or the greedy rule α = Π α^i, "⊗ no LP"), then the
continuous extension moves them: p-norms by L-BFGS to reach the valley, sequential linear programs
with a trust region (as in :mod:`~kernelmaps.design.slp`) to its ground. On a periodic axis the
frequencies are harmonics and stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls

from ..kernels import StationaryKernel, get
from ..progress import track
from .lp import harmonic_design
from .problem import Problem
from .refine import refined_design
from .slp import solve_lp

__all__ = ["JointDesign", "JointProblem", "design_joint_map"]

FORMS = ("projection", "modulation")
POOLS = ("product", "polar")


@dataclass(frozen=True, eq=False)
class JointProblem:
    """A signature on Π[−M_i, M_i], its form of approximation and its evaluation sets.

    Parameters
    ----------
    signature : callable
        k(λ) of lags (..., n).
    spans : ndarray of shape (n,)
        M_i; half a period on periodic axes.
    periods : tuple of float or None
        Period of each axis.
    form : {"projection", "modulation"}
        Eq. (19) or (20).
    grid, fine : ndarray of shape (N, n)
        Lags for optimisation, and for the reported error.
    """

    signature: Callable[[np.ndarray], np.ndarray]
    spans: np.ndarray
    periods: tuple[float | None, ...]
    form: str
    grid: np.ndarray
    fine: np.ndarray

    @property
    def moving(self) -> np.ndarray:
        """Axes whose frequencies may move."""
        return np.array([period is None for period in self.periods])

    def atoms(self, lags: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """cos(ωᵀλ) or Π cos(ω^i λ^i), shape (N, m)."""
        if self.form == "projection":
            return np.cos(lags @ frequencies.T)
        return np.prod(np.cos(lags[:, None, :] * frequencies), axis=2)

    def slopes(self, lags: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """Derivatives of the atoms in each coordinate of ω, shape (N, m, n)."""
        if self.form == "projection":
            return -np.sin(lags @ frequencies.T)[:, :, None] * lags[:, None, :]
        angles = lags[:, None, :] * frequencies
        cosines, sines = np.cos(angles), np.sin(angles)
        out = np.empty(angles.shape)
        for axis in range(angles.shape[2]):
            others = np.prod(np.delete(cosines, axis, axis=2), axis=2)
            out[:, :, axis] = -lags[:, None, axis] * sines[:, :, axis] * others
        return out

    def columns(self, frequencies: np.ndarray) -> np.ndarray:
        """D_ω of each frequency vector (eq. 21)."""
        nonzero = np.sum(frequencies != 0, axis=1)
        return np.where(nonzero > 0, 2, 1) if self.form == "projection" else 2**nonzero

    def residual(
        self, lags: np.ndarray, frequencies: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        return self.signature(lags) - self.atoms(lags, frequencies) @ weights

    def max_error(self, frequencies: np.ndarray, weights: np.ndarray) -> float:
        """Largest error on the fine grid."""
        return float(np.max(np.abs(self.residual(self.fine, frequencies, weights))))


@dataclass(frozen=True, eq=False)
class JointDesign:
    """A cosine map of two or three dimensions.

    Attributes
    ----------
    form : str
        "projection" or "modulation".
    frequencies : ndarray of shape (m, n)
    weights : ndarray of shape (m,)
    n_columns : int
        Columns of the map.
    max_error : float
        Largest error over the domain, on a grid finer than that of the optimisation.
    """

    form: str
    frequencies: np.ndarray
    weights: np.ndarray
    n_columns: int
    max_error: float
    method: str

    def projections(self) -> tuple[np.ndarray, np.ndarray]:
        """The same signature as a sum of projections: Π cos(a_i) is the mean of cos(Σ ± a_i)."""
        if self.form == "projection":
            return self.frequencies, self.weights
        vectors, weights = [], []
        for frequency, weight in zip(self.frequencies, self.weights, strict=True):
            active = np.flatnonzero(frequency)
            flips = product((1, -1), repeat=max(active.size - 1, 0))
            signs = [np.array((1, *rest))[: active.size] for rest in flips]
            for sign in signs:
                vector = np.zeros(frequency.size)
                vector[active] = sign * frequency[active]
                vectors.append(vector)
                weights.append(weight / len(signs))
        return np.array(vectors), np.array(weights)

    def transform(self, X: Any) -> np.ndarray:
        """φ(X) for rows of n coordinates: √α cos(ωᵀx), √α sin(ωᵀx), one column for ω = 0.

        A modulation is applied as its projections, which span the same columns.
        """
        X = np.asarray(X)
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
        frequencies, weights = self.projections()
        angles = X.astype(np.float64) @ frequencies.T
        zero = ~np.any(frequencies != 0, axis=1)
        root = np.sqrt(weights)
        parts = [root * np.cos(angles), (root * np.sin(angles))[:, ~zero]]
        return np.hstack(parts).astype(dtype, copy=False)


def design_joint_map(
    kernel: Any,
    n_components: int,
    domain: Sequence[tuple[float, float]],
    *,
    form: str = "auto",
    pool: str = "product",
    select: str = "lp",
    refine: bool = True,
    periods: Sequence[float | None] | None = None,
    resolution: int | None = None,
    progress: bool | None = None,
) -> JointDesign:
    """Design a map of a stationary kernel of two or three coordinates.

    Parameters
    ----------
    kernel : kernel, callable or sequence
        A stationary kernel, a signature k(λ) of lag vectors (..., n), or one kernel or
        one-dimensional signature per axis, whose product is meant.
    n_components : int
        Largest number of columns.
    domain : sequence of (low, high)
        Range of each coordinate.
    form : {"auto", "modulation", "projection"}
        Eq. (20) or (19). "auto" designs both and returns the better one.
    pool : {"product", "polar"}
        Frequencies to select from: products of one-dimensional designs, or a polar grid
        (projections only).
    select : {"lp", "greedy"}
        By linear programs, or the largest products of one-dimensional weights ("⊗ no LP").
    refine : bool, default=True
        Move the frequencies (section 4.2).
    periods : sequence of float or None, optional
        Period of each axis, None where it has none.
    resolution : int, optional
        Grid points per axis and span for the optimisation.
    progress : bool, optional
        Show a bar; None shows it on a terminal.

    Returns
    -------
    JointDesign
    """
    _check_joint(n_components, domain, form, pool, select, periods)
    if form == "auto":
        options = {"periods": periods, "resolution": resolution, "progress": progress}
        options |= {"pool": pool, "select": select, "refine": refine}
        both = [design_joint_map(kernel, n_components, domain, form=f, **options) for f in FORMS]
        return min(both, key=lambda design: design.max_error)
    axes = len(domain)
    periods = (None,) * axes if periods is None else tuple(periods)
    problem, marginals = _joint_problem(kernel, domain, periods, form, resolution)
    designs = _selections(problem, marginals, n_components, pool, select)
    if refine:
        scouts = track(designs, "joint design: scouts", enabled=progress)
        designs = [_p_norm(problem, *pair, powers=(2, 8)) for pair in scouts]
        designs.sort(key=lambda pair: problem.max_error(*pair))
        valleys = track(designs[:6], "joint design: p-norms", enabled=progress)
        designs = [_p_norm(problem, *pair) for pair in valleys]
    best = min(designs, key=lambda pair: problem.max_error(*pair))
    if refine:
        best = _sequential(problem, *best, progress=progress)
    return _finished(problem, best, f"{pool} pool, {select}" + (", continuous" if refine else ""))


def _joint_problem(
    kernel: Any,
    domain: Sequence[tuple[float, float]],
    periods: tuple[float | None, ...],
    form: str,
    resolution: int | None,
) -> tuple[JointProblem, list[Callable]]:
    """The problem, and the signatures along its axes."""
    signature, marginals = _signatures(kernel, len(domain))
    spans = np.array(
        [high - low if p is None else p / 2 for (low, high), p in zip(domain, periods, strict=True)]
    )
    steps = resolution or (25 if len(domain) == 2 else 11)
    grids = _lag_grid(spans, steps, form), _lag_grid(spans, 2 * steps + 1, form)
    return JointProblem(signature, spans, periods, form, *grids), marginals


def _finished(
    problem: JointProblem, best: tuple[np.ndarray, np.ndarray], method: str
) -> JointDesign:
    """The design without entries of no weight."""
    alive = best[1] > 1e-12 * np.sum(best[1])
    frequencies, weights = best[0][alive], best[1][alive]
    return JointDesign(
        form=problem.form,
        frequencies=frequencies,
        weights=weights,
        n_columns=int(np.sum(problem.columns(frequencies))),
        max_error=problem.max_error(frequencies, weights),
        method=f"{problem.form}, {method}",
    )


def _check_joint(
    n_components: Any, domain: Any, form: str, pool: str, select: str, periods: Any
) -> None:
    if not isinstance(n_components, int | np.integer) or n_components < 1:
        raise ValueError(f"design_joint_map: n_components must be >= 1, got {n_components!r}.")
    if len(domain) not in (2, 3) or any(not high > low for low, high in domain):
        raise ValueError(
            "design_joint_map: domain holds two or three ranges (low, high) with low < high; got "
            f"{domain!r}. Evaluation sets grow too fast beyond three dimensions: use "
            "RandomFourierMap there."
        )
    if form not in (*FORMS, "auto") or pool not in POOLS or select not in ("lp", "greedy"):
        raise ValueError(
            f"design_joint_map: form is one of {FORMS} or 'auto', pool one of {POOLS}, select "
            f"'lp' or 'greedy'; got {form!r}, {pool!r}, {select!r}."
        )
    if pool == "polar" and (form != "projection" or select == "greedy"):
        raise ValueError("design_joint_map: a polar pool is for projections selected by 'lp'.")
    if pool == "polar" and (len(domain) != 2 or (periods and any(periods))):
        raise ValueError("design_joint_map: a polar pool needs two axes without period.")
    if periods is not None and len(periods) != len(domain):
        raise ValueError("design_joint_map: give one period (or None) per axis.")


def _signatures(kernel: Any, axes: int) -> tuple[Callable, list[Callable]]:
    """The joint signature, and one-dimensional ones along the axes for the pools."""
    if isinstance(kernel, list | tuple):
        if len(kernel) != axes:
            raise ValueError(f"design_joint_map: {len(kernel)} kernels for {axes} axes.")
        single = [_flat_signature(item) for item in kernel]
        return lambda lag: np.prod(
            [f(np.abs(lag[..., i])) for i, f in enumerate(single)], axis=0
        ), single
    if callable(kernel) and not hasattr(kernel, "signature"):
        joint = kernel
    else:
        kernel = get(kernel)
        if not isinstance(kernel, StationaryKernel):
            raise ValueError(f"design_joint_map: {kernel!r} is not stationary.")
        if kernel.isotropic:

            def joint(lag: np.ndarray) -> np.ndarray:
                return kernel.signature(np.sqrt(np.sum(lag**2, axis=-1)))
        else:

            def joint(lag: np.ndarray) -> np.ndarray:
                return np.prod(kernel.signature(lag), axis=-1)

    def along(axis: int) -> Callable:
        def one(lag: np.ndarray) -> np.ndarray:
            vector = np.zeros((*np.shape(lag), axes))
            vector[..., axis] = lag
            return joint(vector)

        return one

    return joint, [along(axis) for axis in range(axes)]


def _flat_signature(kernel: Any) -> Callable[[np.ndarray], np.ndarray]:
    """A one-dimensional signature from itself, a kernel, or a kernel's name."""
    if callable(kernel) and not hasattr(kernel, "signature"):
        return kernel
    return get(kernel).signature


def _lag_grid(spans: np.ndarray, steps: int, form: str) -> np.ndarray:
    """Π[0, M_i] for modulations; Π[−M_i, M_i] × [0, M_n] for projections."""
    axes = []
    for i, span in enumerate(spans):
        if form == "projection" and i < spans.size - 1:
            axes.append(np.linspace(-span, span, 2 * steps - 1))
        else:
            axes.append(np.linspace(0, span, steps))
    return np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)


def _axis_designs(
    problem: JointProblem, marginals: list[Callable], size: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """One-dimensional designs of `size` columns along each axis."""
    out = []
    for signature, span, period in zip(marginals, problem.spans, problem.periods, strict=True):
        flat = Problem(signature, lambda lag: np.ones(np.shape(lag)), float(span), period=period)
        design = harmonic_design(flat, size) if period else refined_design(flat, size)
        out.append(design)
    return out


def _product_pool(
    problem: JointProblem, marginals: list[Callable], size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Ω_⊗ and the products of weights (eq. 21); for projections with all reflections."""
    designs = _axis_designs(problem, marginals, size)
    vectors, weights = [], []
    for choice in product(*(range(d[0].size) for d in designs)):
        vector = np.array([designs[i][0][c] for i, c in enumerate(choice)])
        weight = float(np.prod([designs[i][1][c] for i, c in enumerate(choice)]))
        signs = [np.ones(vector.size)]
        if problem.form == "projection":
            free = np.flatnonzero(vector)[1:]
            for flips in product((1, -1), repeat=free.size):
                if any(f < 0 for f in flips):
                    sign = np.ones(vector.size)
                    sign[free] = flips
                    signs.append(sign)
        vectors += [sign * vector for sign in signs]
        weights += [weight / len(signs)] * len(signs)
    return np.array(vectors), np.array(weights)


def _polar_pool(problem: JointProblem, n_columns: int) -> np.ndarray:
    """Zero and a polar grid of half the plane."""
    base = np.pi / float(np.max(problem.spans))
    radii = np.arange(1, int(np.ceil(1.3 * np.sqrt(n_columns))) + 2) * 0.75 * base
    vectors = [np.zeros(2)]
    for ring, radius in enumerate(radii):
        count = max(4, 2 * ring + 4)
        angle = np.pi * np.arange(count) / count
        vectors += list(radius * np.stack([np.cos(angle), np.sin(angle)], axis=1))
    return np.array(vectors)


def _cut(
    problem: JointProblem, pool: np.ndarray, weights: np.ndarray, n_columns: int
) -> np.ndarray:
    """Indices of the largest weights that fit into `n_columns` columns."""
    need, room, chosen = problem.columns(pool), n_columns, []
    for index in np.argsort(-weights, kind="stable"):
        if weights[index] > 0 and need[index] <= room:
            chosen.append(int(index))
            room -= int(need[index])
    return np.array(sorted(chosen))


def _selections(
    problem: JointProblem, marginals: list[Callable], n_columns: int, pool: str, select: str
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Candidate sets of frequencies with refitted weights."""
    if pool == "polar":
        pools = [(_polar_pool(problem, n_columns), None)]
    else:
        per_axis = round(n_columns ** (1 / len(problem.spans)))
        sizes = sorted({s | 1 for s in (per_axis - 1, per_axis + 1, per_axis + 3) if s > 0})
        pools = [_product_pool(problem, marginals, size) for size in sizes]
    found = []
    for vectors, products in pools:
        if select == "greedy":
            chosen = _cut(problem, vectors, products, n_columns)
            found.append((vectors[chosen], products[chosen]))
            continue
        for weights in _lp_weights(problem, vectors):
            chosen = _cut(problem, vectors, weights, n_columns)
            found.append((vectors[chosen], _refit(problem, vectors[chosen])))
        if products is not None:
            chosen = _cut(problem, vectors, products, n_columns)
            found.append((vectors[chosen], _refit(problem, vectors[chosen])))
    return found


def _lp_weights(problem: JointProblem, pool: np.ndarray) -> list[np.ndarray]:
    """Weights of least D̄ + γC for a few γ, on a thinned grid."""
    steps = 13 if problem.spans.size == 2 else 7
    grid = _lag_grid(problem.spans, steps, problem.form)
    atoms, target = problem.atoms(grid, pool), problem.signature(grid)
    slack = -np.ones((target.size, 1))
    rows = np.vstack([np.hstack([atoms, slack]), np.hstack([-atoms, slack])])
    limit = np.r_[target, -target]
    out = []
    for gamma in (10.0, 100.0, 1000.0):
        cost = np.r_[problem.columns(pool).astype(float), gamma] / gamma
        out.append(np.maximum(solve_lp(cost, A_ub=rows, b_ub=limit)[:-1], 0.0))
    return out


def _refit(problem: JointProblem, frequencies: np.ndarray) -> np.ndarray:
    """Non-negative least squares on the grid: a start for the continuous extension."""
    return nnls(problem.atoms(problem.grid, frequencies), problem.signature(problem.grid))[0]


def _p_norm(
    problem: JointProblem,
    frequencies: np.ndarray,
    weights: np.ndarray,
    powers: tuple[int, ...] = (4, 8, 16, 48),
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise p-norms of the error over moving frequencies and log-weights."""
    target = problem.signature(problem.grid)
    free = (frequencies != 0) & problem.moving  # a zero coordinate stays: moving it costs columns
    logs = np.log(np.maximum(weights, 1e-3 * np.max(weights)))
    m = logs.size

    def value(x: np.ndarray, power: int) -> tuple[float, np.ndarray]:
        moved = frequencies.copy()
        moved[free] = x[m:]
        alpha = np.exp(x[:m])
        atoms = problem.atoms(problem.grid, moved)
        error = target - atoms @ alpha
        top = np.max(np.abs(error))
        scaled = error / top
        slope = np.sign(scaled) * np.abs(scaled) ** (power - 1)
        total = float(np.sum(slope * scaled))
        pull = -slope / (total * top)
        slopes = np.einsum("z,zmn->mn", pull, problem.slopes(problem.grid, moved))
        gradient = np.r_[alpha * (pull @ atoms), (alpha[:, None] * slopes)[free]]
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


def _sequential(
    problem: JointProblem,
    frequencies: np.ndarray,
    weights: np.ndarray,
    steps: int = 25,
    progress: bool | None = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Taylor programs (12), (13) with a trust region, as in one dimension."""
    reach = 0.1 / float(np.max(problem.spans))
    current = problem.max_error(frequencies, weights)
    for _ in track(range(steps), "joint refinement", enabled=progress):
        moved, refit, predicted = _taylor(problem, frequencies, weights, reach, current)
        after = problem.max_error(moved, refit)
        if after < current:
            gain, promise = current - after, max(current - predicted, 1e-300)
            frequencies, weights, current = moved, refit, after
            reach *= 2.0 if gain > 0.5 * promise else 0.6 if gain < 0.25 * promise else 1.0
            if gain < 1e-4 * current:
                break
        else:
            reach /= 3
            if reach < 1e-7 or current - predicted < 1e-4 * current:
                break
    return frequencies, weights


def _taylor(
    problem: JointProblem,
    frequencies: np.ndarray,
    weights: np.ndarray,
    reach: float,
    scale: float,
) -> tuple[np.ndarray, np.ndarray, float]:
    """One linear program in changes of weights and frequencies, at lags of large error."""
    size = np.abs(problem.residual(problem.fine, frequencies, weights))
    count = min(size.size, 12 * weights.size + 150)
    lags = problem.fine[np.argpartition(-size, count - 1)[:count]]
    thin = problem.grid[:: max(1, problem.grid.shape[0] // 200)]
    lags = np.unique(np.vstack([lags, thin]), axis=0)
    free = (frequencies != 0) & problem.moving
    entry = np.nonzero(free)[0]
    m, f = weights.size, entry.size
    unit = scale
    slopes = problem.slopes(lags, frequencies)[:, free] * reach
    model = np.hstack([problem.atoms(lags, frequencies), slopes]) * (unit / scale)
    target = problem.residual(lags, frequencies, weights) / scale
    slack = -np.ones((lags.shape[0], 1))
    cone = np.zeros((2 * f, m + f + 1))
    pair = np.arange(f)
    for sign in (0, 1):
        cone[2 * pair + sign, entry] = -1.0
        cone[2 * pair + sign, m + pair] = 1.0 - 2.0 * sign
    rows = np.vstack([np.hstack([model, slack]), np.hstack([-model, slack]), cone])
    held = np.repeat(weights[entry] / unit, 2)
    bounds = [(-w / unit, None) for w in weights] + [(None, None)] * f + [(0, None)]
    x = solve_lp(
        np.r_[np.zeros(m + f), 1.0], A_ub=rows, b_ub=np.r_[target, -target, held], bounds=bounds
    )
    changed = np.maximum(weights + unit * x[:m], 0.0)
    share = np.maximum(changed[entry], 1e-14)
    step = np.clip(unit * reach * x[m : m + f] / share, -reach, reach)
    moved = frequencies.copy()
    moved[free] += np.where(changed[entry] > 1e-12, step, 0.0)
    return moved, changed, float(x[-1]) * scale
