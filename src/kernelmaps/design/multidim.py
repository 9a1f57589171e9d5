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

from .. import storage
from ..kernels import StationaryKernel, get
from ..progress import track
from ..threads import limit_blas
from . import cache as store
from .boxes import BoxWaves, JointProblem, lag_axes, product_grid
from .certify import DesignCertificate
from .joint import JointDesign, along, everywhere, joint_lower_bound, reflections, wrapped_lags
from .lp import harmonic_design
from .problem import NotPositiveDefiniteError, Problem
from .refine import refined_design
from .slp import solve_lp

__all__ = ["JointDesign", "design_joint_map"]

SOLVER_VERSION = 1
_SCATTERED = 16  # disturbed selections per pool
_HOPS = 24
_FINISHED = 3  # designs that the Taylor programs finish
_POLAR_STEPS = (0.75, 1.0, 1.2, 1.3, 1.4)  # distances of a polar grid, in units of π / span
Cosines = tuple[np.ndarray, np.ndarray]
Found = tuple[JointProblem, Cosines, float, bool]  # the last two: rank bound, whether it stands
FORMS = ("modulation", "projection")
POOLS = ("product", "polar")


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
    effort: int = 1,
    cache: bool = True,
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
    effort : int, default=1
        Multiplies the number of starts; 0 asks for those of the linear programs alone.
    cache : bool, default=True
        Look up and store the design on disk (``KERNELMAPS_CACHE``).
    progress : bool, optional
        Show a bar; None shows it on a terminal.

    Returns
    -------
    JointDesign

    Raises
    ------
    NotPositiveDefiniteError
        If no non-negative mixture of cosines can approach the signature.

    Examples
    --------
    >>> import kernelmaps as km
    >>> from kernelmaps.design.multidim import design_joint_map
    >>> square = [(0, 1), (0, 1)]
    >>> design = design_joint_map(km.kernels.Gaussian(1.0), 9, square, form="modulation")
    >>> design.certificate.proved
    True
    """
    _check_joint(n_components, domain, form, pool, select, periods, effort)
    periods = (None,) * len(domain) if periods is None else tuple(periods)
    target = _signatures(kernel, len(domain))
    search = _Search(pool, select, refine, effort, progress)
    problems = _problems(target, domain, periods, form, resolution)
    with limit_blas(1):  # matrices are small: threads of BLAS would only wait
        found = _each(problems, form, target, n_components, search, cache)
    problem, pair, lower, optimal = min(found, key=lambda item: item[0].max_error(*item[1]))
    sure = everywhere(problem, *pair, target.is_product)
    ratio = sure.largest / lower if lower > 0 else np.inf
    return JointDesign(
        kernel=target.name,
        form=problem.form,
        method=f"{problem.form}, {search.words}",
        domain=tuple((float(low), float(high)) for low, high in domain),
        periods=periods,
        frequencies=pair[0],
        weights=pair[1],
        n_columns=int(np.sum(problem.columns(pair[0]))),
        max_error=sure.largest,
        rms=sure.rms,
        certificate=DesignCertificate(
            sure.bound, sure.largest, sure.words, 0, 0, optimal, lower, float(ratio)
        ),
    )


def _problems(
    target: _Target,
    domain: Sequence[tuple[float, float]],
    periods: tuple[float | None, ...],
    form: str,
    resolution: int | None,
) -> list[JointProblem]:
    """A problem for each form that the signature allows, modulations first; or of them alone."""
    spans = np.array(
        [high - low if p is None else p / 2 for (low, high), p in zip(domain, periods, strict=True)]
    )
    symmetric = _reflects(target.joint, spans)
    if form == "modulation" and not symmetric:
        raise ValueError(
            "design_joint_map: the signature changes when one coordinate changes its sign; sums "
            "of products of cosines do not. Use form='projection'."
        )
    _refuse_indefinite(target, spans, periods)
    steps = resolution or (25 if len(domain) == 2 else 11)
    forms = FORMS[:1] if form == "modulation" else FORMS if symmetric else FORMS[1:]
    return [JointProblem(target.joint, spans, periods, f, steps) for f in forms]


@dataclass(frozen=True)
class _Search:
    """How frequencies are looked for."""

    pool: str
    select: str
    refine: bool
    effort: int
    progress: bool | None

    @property
    def descends(self) -> bool:
        """Whether a modulation is a start for projections: they have the same pool, and move."""
        return self.refine and self.pool == "product"

    @property
    def words(self) -> str:
        return f"{self.pool} pool, {self.select}" + (", continuous" if self.refine else "")


def _each(
    problems: list[JointProblem],
    form: str,
    target: _Target,
    n_columns: int,
    search: _Search,
    cache: bool,
) -> list[Found]:
    """The designs of the form that is asked for; a modulation is a start for projections."""
    found: list[Found] = []
    starts: list[Cosines] = []
    for problem in problems:
        asked = form in ("auto", problem.form)
        if asked or search.descends:
            one = _one(problem, target, n_columns, search, starts, cache)
            found += [one] * asked
            starts = [reflections(*one[1])] if search.descends else []
    return found


def _one(
    problem: JointProblem,
    target: _Target,
    n_columns: int,
    search: _Search,
    starts: list[Cosines],
    cache: bool,
) -> Found:
    """Frequencies and weights of one form, the rank bound, and whether they are locally optimal."""
    key = _key(problem, n_columns, search)
    found = store.load(key) if cache else None
    if found is not None:
        header, arrays = found
        pair = arrays["frequencies"], arrays["weights"]
        return problem, pair, float(header["lower_bound"]), bool(header["optimal"])
    frequencies, weights = _solve(problem, target.marginals, n_columns, search, starts)
    alive = weights > 1e-12 * np.sum(weights)
    frequencies, weights = frequencies[alive], weights[alive]
    lower = joint_lower_bound(problem, int(np.sum(problem.columns(frequencies))))
    optimal = search.refine and _stands(problem, frequencies, weights)
    if cache:
        arrays = {"frequencies": frequencies, "weights": weights}
        store.save(key, {"lower_bound": lower, "optimal": optimal}, arrays)
    return problem, (frequencies, weights), lower, optimal


def _key(problem: JointProblem, n_columns: int, search: _Search) -> str:
    """Content key of a design: the signature on a coarse grid, and all choices."""
    sample = problem.signature(product_grid(lag_axes(problem.spans, 7, "projection")))
    header = {"kind": "joint", "columns": n_columns, "form": problem.form, "steps": problem.steps}
    header |= {"pool": search.pool, "select": search.select, "refine": search.refine}
    header |= {"effort": search.effort}
    if problem.form == "projection" or not search.refine:
        header["rules"] = 2  # several polar grids; modulations as starts; weights of least error
    header |= {"periods": [p or 0.0 for p in problem.periods], "solver": SOLVER_VERSION}
    arrays = {"signature": np.round(sample, 10), "spans": np.round(problem.spans, 12)}
    return storage.digest("design-key", header, arrays)


def _solve(
    problem: JointProblem,
    marginals: list[Callable],
    n_columns: int,
    search: _Search,
    starts: list[Cosines],
) -> Cosines:
    """Select from the pool, descend in p-norms, finish by Taylor programs, as are other starts."""
    designs = _selections(problem, marginals, n_columns, search.pool, search.select)
    if not search.refine:
        if search.select == "lp":
            designs = [(vectors, _minimax(problem, vectors)) for vectors, _ in designs]
        return min(designs, key=lambda pair: problem.max_error(*pair))
    rng = np.random.default_rng(0)
    designs += _scattered(problem, marginals, n_columns, search, rng)
    designs = list({pair[0].tobytes(): pair for pair in designs}.values())  # small pools repeat
    scouts = track(designs, "joint design: scouts", enabled=search.progress)
    designs = [_p_norm(problem, *pair, powers=(2, 8)) for pair in scouts]
    designs.sort(key=lambda pair: problem.max_error(*pair))
    valleys = track(designs[:12], "joint design: p-norms", enabled=search.progress)
    designs = [_p_norm(problem, *pair, powers=(32, 128)) for pair in valleys]
    designs += _hops(problem, designs, search, rng)
    chosen = _different(problem, designs, 1 + _FINISHED * search.effort) + starts
    programs = track(chosen, "joint design: Taylor programs", enabled=search.progress)
    ends = [_sequential(problem, *pair, steps=12) for pair in programs]
    return _sequential(problem, *min(ends, key=lambda pair: problem.max_error(*pair)))


def _hops(
    problem: JointProblem, designs: list[Cosines], search: _Search, rng: np.random.Generator
) -> list[Cosines]:
    """Descents from the best design, disturbed; six in vain are the end."""
    best = min(designs, key=lambda pair: problem.max_error(*pair))
    found, vain = [best], 0
    for hop in track(range(_HOPS * search.effort), "joint design: hops", enabled=search.progress):
        shaken = _shaken(problem, best, 0.3 / (1 + hop / 8), rng)
        found.append(_p_norm(problem, *shaken, powers=(8, 128)))
        better = problem.max_error(*found[-1]) < problem.max_error(*best) * (1 - 1e-3)
        best, vain = (found[-1], 0) if better else (best, vain + 1)
        if vain == 6:
            break
    return found


def _different(problem: JointProblem, designs: list[Cosines], count: int) -> list[Cosines]:
    """The best few of different error: several starts end in the same valley."""
    ranked = sorted(designs, key=lambda pair: problem.max_error(*pair))
    errors = [problem.max_error(*pair) for pair in ranked]
    apart = [i for i, e in enumerate(errors) if i == 0 or e > errors[i - 1] * (1 + 1e-3)]
    return [ranked[i] for i in apart[:count]]


def _scattered(
    problem: JointProblem,
    marginals: list[Callable],
    n_columns: int,
    search: _Search,
    rng: np.random.Generator,
) -> list[Cosines]:
    """Selections by the products of weights, disturbed: sets that no program would choose."""
    if search.pool == "polar":
        return []
    found = []
    for size in _pool_sizes(problem, n_columns):
        vectors, products = _product_pool(problem, marginals, size)
        alike = np.unique(np.round(products / np.max(products), 6), return_inverse=True)[1]
        for turn in range(_SCATTERED * search.effort):
            noise = rng.normal(0, 0.7, products.size)
            if turn % 2:  # equal weights alike: a symmetric kernel may want a symmetric set
                noise = noise[alike]
            noisy = products * np.exp(noise)
            chosen = _cut(problem, vectors, noisy, n_columns)
            found.append((vectors[chosen], _refit(problem, vectors[chosen])))
    return found


def _shaken(problem: JointProblem, pair: Cosines, size: float, rng: np.random.Generator) -> Cosines:
    """Frequencies moved by a part of their distance from each other; weights kept."""
    free = (pair[0] != 0) & problem.moving
    moved = pair[0] + free * rng.normal(0, size, pair[0].shape) / problem.spans
    return np.where(free & (moved == 0), pair[0], moved), pair[1]


def _stands(problem: JointProblem, frequencies: np.ndarray, weights: np.ndarray) -> bool:
    """Whether small steps of the Taylor program gain less than a thousandth (Kolmogorov)."""
    moved = _sequential(problem, frequencies, weights, steps=6, reach=1e-2)
    return problem.max_error(*moved) > problem.max_error(frequencies, weights) * (1 - 1e-3)


def _check_joint(
    n_components: Any,
    domain: Any,
    form: str,
    pool: str,
    select: str,
    periods: Any,
    effort: Any,
) -> None:
    if not isinstance(n_components, int | np.integer) or n_components < 1:
        raise ValueError(f"design_joint_map: n_components must be >= 1, got {n_components!r}.")
    if not isinstance(effort, int | np.integer) or effort < 0:
        raise ValueError(f"design_joint_map: effort must be an integer >= 0, got {effort!r}.")
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


@dataclass(frozen=True)
class _Target:
    """The joint signature, one-dimensional ones along the axes, and whether it is their product."""

    name: str
    joint: Callable[[np.ndarray], np.ndarray]
    marginals: list[Callable]
    is_product: bool
    trusted: bool  # positive definite for sure


def _signatures(kernel: Any, axes: int) -> _Target:
    """What is to be approximated."""
    if isinstance(kernel, list | tuple):
        if len(kernel) != axes:
            raise ValueError(f"design_joint_map: {len(kernel)} kernels for {axes} axes.")
        single = [_flat_signature(item) for item in kernel]

        def product_of(lag: np.ndarray) -> np.ndarray:
            return np.prod([f(np.abs(lag[..., i])) for i, f in enumerate(single)], axis=0)

        known = all(isinstance(item, str | StationaryKernel) for item in kernel)
        name = " x ".join(_name(item) for item in kernel)
        return _Target(name, product_of, single, True, known)
    if callable(kernel) and not hasattr(kernel, "signature"):
        joint, is_product, trusted = kernel, False, False
    else:
        kernel = get(kernel)
        if not isinstance(kernel, StationaryKernel):
            raise ValueError(f"design_joint_map: {kernel!r} is not stationary.")
        is_product, trusted = not kernel.isotropic, True

        def joint(lag: np.ndarray) -> np.ndarray:
            if is_product:
                return np.prod(kernel.signature(lag), axis=-1)
            return kernel.signature(np.sqrt(np.sum(lag**2, axis=-1)))

    marginals = [along(joint, axis, np.ones(axes)).signature for axis in range(axes)]
    return _Target(_name(kernel), joint, marginals, is_product, trusted)


def _name(kernel: Any) -> str:
    if isinstance(kernel, str):
        return kernel
    return getattr(kernel, "name", getattr(kernel, "__name__", "signature"))


def _reflects(signature: Callable, spans: np.ndarray) -> bool:
    """Whether k(±λ^1, …, ±λ^n) is the same for all signs, on a small grid."""
    lags = product_grid(lag_axes(spans, 6, "modulation"))
    values = signature(lags)
    if values.shape != lags.shape[:1] or not np.all(np.isfinite(values)):
        raise ValueError(
            "design_joint_map: a user's signature must map lags (..., n) to finite values of shape "
            f"(...,); it gave shape {np.shape(values)} for {lags.shape}."
        )
    flips = product((1.0, -1.0), repeat=spans.size - 1)
    worst = max(float(np.max(np.abs(signature(lags * (1.0, *f)) - values))) for f in flips)
    return worst <= 1e-9 * float(np.max(np.abs(values)))


def _refuse_indefinite(
    target: _Target, spans: np.ndarray, periods: tuple[float | None, ...]
) -> None:
    """A user's signature must be positive definite: its Gram matrix on points of the domain is."""
    if target.trusted:
        return
    count = 13 if spans.size == 2 else 6
    axes = tuple(
        span * np.linspace(0, 1, count) if period is None else period * np.arange(count) / count
        for span, period in zip(spans, periods, strict=True)
    )
    values = np.linalg.eigvalsh(target.joint(wrapped_lags(product_grid(axes), periods)))
    if values[0] < -1e-9 * np.max(np.abs(values)):
        raise NotPositiveDefiniteError(
            f"design_joint_map: the signature {target.name!r} is not positive definite: its Gram "
            f"matrix on {values.size} points of the domain has the eigenvalue {values[0]:.3g} "
            f"(largest {values[-1]:.3g}). No non-negative mixture of cosines fits it."
        )


def _flat_signature(kernel: Any) -> Callable[[np.ndarray], np.ndarray]:
    """A one-dimensional signature from itself, a kernel, or a kernel's name."""
    if callable(kernel) and not hasattr(kernel, "signature"):
        return kernel
    found: Any = get(kernel)
    return found.signature


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
        vectors.append(vector)
        weights.append(weight)
    pool = np.array(vectors), np.array(weights)
    return pool if problem.form == "modulation" else reflections(*pool)


def _polar_pool(problem: JointProblem, n_columns: int, step: float) -> np.ndarray:
    """Zero and a polar grid of half the plane, of even density, with twice as many as needed.

    The distance of the grid decides how good a selection can become, and the best one is not known
    beforehand: about what the lags [−M, M] and the width of the kernel together can tell apart.
    """
    step = step * np.pi / float(np.max(problem.spans))
    reach = step * np.sqrt(2 * n_columns / np.pi)  # half a disc holds π r² / (2 step²) of them
    vectors = [np.zeros(2)]
    for radius in np.arange(step, reach + step, step):
        count = max(3, round(np.pi * radius / step))
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


def _pool_sizes(problem: JointProblem, n_columns: int) -> list[int]:
    """Columns of the one-dimensional designs of a pool: some fewer and some more than needed."""
    per_axis = round(n_columns ** (1 / len(problem.spans)))
    return sorted({s | 1 for s in (per_axis - 1, per_axis + 1, per_axis + 3) if s > 0})


def _selections(
    problem: JointProblem, marginals: list[Callable], n_columns: int, pool: str, select: str
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Candidate sets of frequencies with refitted weights."""
    pools: list[tuple[np.ndarray, Any]]  # vectors; products of the marginals' weights
    if pool == "polar":
        pools = [(_polar_pool(problem, n_columns, step), None) for step in _POLAR_STEPS]
    else:
        sizes = _pool_sizes(problem, n_columns)
        pools = [_product_pool(problem, marginals, size) for size in sizes]
    found = []
    for vectors, products in pools:
        if select == "greedy":
            chosen = _cut(problem, vectors, products, n_columns)
            total = problem.signature(np.zeros((1, len(problem.spans))))[0]
            kept = products[chosen]
            found += [(vectors[chosen], kept), (vectors[chosen], kept * total / kept.sum())]
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
    grid = product_grid(lag_axes(problem.spans, steps, problem.form))
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
    return nnls(problem.atoms(problem.grid, frequencies), problem.target)[0]


def _minimax(problem: JointProblem, frequencies: np.ndarray) -> np.ndarray:
    """Weights of least largest error on the grid: the end of a design that does not move."""
    atoms, target = problem.atoms(problem.grid, frequencies), problem.target
    slack = -np.ones((target.size, 1))
    rows = np.vstack([np.hstack([atoms, slack]), np.hstack([-atoms, slack])])
    cost = np.r_[np.zeros(atoms.shape[1]), 1.0]
    return np.maximum(solve_lp(cost, A_ub=rows, b_ub=np.r_[target, -target])[:-1], 0.0)


def _p_norm(
    problem: JointProblem,
    frequencies: np.ndarray,
    weights: np.ndarray,
    powers: tuple[int, ...] = (2, 8, 32, 128),
) -> tuple[np.ndarray, np.ndarray]:
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


def _sequential(
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
        moved, refit, predicted = _taylor(problem, frequencies, weights, reach, lags)
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


def _taylor(
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
    m, f = weights.size, entry.size
    slopes = problem.slopes(lags, frequencies)[:, free] * reach
    model = np.hstack([problem.atoms(lags, frequencies), slopes])
    target = problem.residual(lags, frequencies, weights) / scale
    slack = -np.ones((lags.shape[0], 1))
    cone = np.zeros((2 * f, m + f + 1))
    pair = np.arange(f)
    for sign in (0, 1):
        cone[2 * pair + sign, entry] = -1.0
        cone[2 * pair + sign, m + pair] = 1.0 - 2.0 * sign
    rows = np.vstack([np.hstack([model, slack]), np.hstack([-model, slack]), cone])
    held = np.repeat(weights[entry] / scale, 2)
    bounds = [(-w / scale, None) for w in weights] + [(None, None)] * f + [(0, None)]
    x = solve_lp(
        np.r_[np.zeros(m + f), 1.0], A_ub=rows, b_ub=np.r_[target, -target, held], bounds=bounds
    )
    changed = np.maximum(weights + scale * x[:m], 0.0)
    share = np.maximum(changed[entry], 1e-14)
    step = np.clip(scale * reach * x[m : m + f] / share, -reach, reach)
    moved = frequencies.copy()
    moved[free] += np.where(changed[entry] > 1e-12, step, 0.0)
    return moved, changed, float(x[-1]) * scale
