r"""Cosine maps of two and three dimensions (Chum 2015, section 6).

*Projection* (eq. 19): k̂(λ) = Σ α cos(ωᵀλ), two columns per frequency vector. *Modulation* (eq. 20):
k̂(λ) = Σ α Π_i cos(ω^i λ^i), with D_ω = Π D_{ω^i} columns: 2^m for m non-zero coordinates. A
modulation is the sum of the projections on all reflections (±ω^1, …, ±ω^n), at the same number of
columns; projections are more general, modulations are symmetric by construction and smaller to
optimise.

Frequencies come from a pool: a polar grid ("polar") or the product of one-dimensional designs
("product", eq. 21). A linear program selects (or the greedy rule α = Π α^i, "⊗ no LP"), then the
continuous extension moves them: p-norms by L-BFGS to reach the valley, sequential linear programs
with a trust region (as in :mod:`~kernelmaps.design.lp`) to its ground. A frequency of a periodic
axis is a harmonic and stays, and so does a zero coordinate: moving it would cost columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.optimize import nnls

from .._util import storage
from .._util.arguments import check_choice, check_count
from .._util.display import track
from .._util.threads import limit_blas
from . import cache as store
from . import joint, lp
from .bounds import descend
from .boxes import BoxWaves, JointProblem, Periods, lag_axes, product_grid
from .certify import certified
from .problem import CosineProblem, Cosines, of_lags, refuse_indefinite
from .refine import distinct_optima, refined_design

_POLAR_STEPS = (0.75, 1.0, 1.2, 1.3, 1.4)  # distances of a polar grid, in units of π / span


def _product_pool(problem: JointProblem, marginals: list[Callable], size: int) -> Cosines:
    """Ω_⊗ and the products of weights (eq. 21); for projections with all reflections.

    Each axis has a one-dimensional design of `size` columns.
    """
    designs = [
        _axis_design(signature, float(span), period, size)
        for signature, span, period in zip(marginals, problem.spans, problem.periods, strict=True)
    ]
    vectors = product_grid(tuple(frequencies for frequencies, _ in designs))
    weights = np.prod(product_grid(tuple(weights for _, weights in designs)), axis=1)
    pool = vectors, weights
    return pool if problem.form == "modulation" else joint.reflections(*pool)


@lru_cache(maxsize=32)
def _axis_design(signature: Callable, span: float, period: float | None, size: int) -> Cosines:
    """The design of one axis: both forms, their disturbed selections and equal axes share it."""
    flat = CosineProblem(of_lags("axis", signature), span, period=period)
    return lp.harmonic_design(flat, size) if period else refined_design(flat, size)


def _polar_pool(problem: JointProblem, n_columns: int, step: float) -> np.ndarray:
    """Zero and a polar grid of half the plane, of even density, with twice as many as needed.

    The distance of the grid decides how good a selection can become, and the best one is not known
    beforehand: about what the lags [−M, M] and the width of the kernel together can tell apart.
    """
    step = step * np.pi / float(np.max(problem.spans))
    outer = step * np.sqrt(2 * n_columns / np.pi)  # half a disc holds π r² / (2 step²) of them
    vectors = [np.zeros(2)]
    for radius in np.arange(step, outer + step, step):
        count = max(3, round(np.pi * radius / step))
        angle = np.pi * np.arange(count) / count
        vectors += list(radius * np.stack([np.cos(angle), np.sin(angle)], axis=1))
    return np.array(vectors)


def _refitted(
    problem: JointProblem, pool: np.ndarray, weights: np.ndarray, n_columns: int
) -> Cosines:
    """The largest that fit, with least-squares weights: a start for the continuous extension."""
    selected = pool[lp.largest_that_fit(weights, problem.columns(pool), n_columns)]
    return selected, nnls(problem.atoms(problem.coarse.lags, selected), problem.coarse.target)[0]


def _lp_weights(problem: JointProblem, pool: np.ndarray) -> list[np.ndarray]:
    """Weights of least D̄ + γC for a few γ, on a thinned grid."""
    steps = 13 if problem.spans.size == 2 else 7
    grid = product_grid(lag_axes(problem.spans, steps, problem.form))
    atoms, target = problem.atoms(grid, pool), problem.signature(grid)
    prices = [problem.columns(pool) / gamma for gamma in (10.0, 100.0, 1000.0)]
    return [lp.least_error(atoms, target, price) for price in prices]


_LARGEST = 300.0
"""Logarithm of weights that a descent tries: a long step must not overflow."""


def descend_p_norms(problem: JointProblem, cosines: Cosines, powers: tuple[int, ...]) -> Cosines:
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
        norm, gradient = lp.log_p_norm(problem.coarse.target - waves.sum(alpha), power)
        by_weight, by_frequency = waves.weighted_sums(-gradient)
        return norm, np.concatenate([alpha * by_weight, (alpha[:, None] * by_frequency)[free]])

    x = np.r_[logs, frequencies[free]]
    for power in powers:
        x = descend(value, x, (power,), maxiter=120, maxcor=20).x
    moved = frequencies.copy()
    moved[free] = x[m:]
    return moved, np.exp(x[:m])


def taylor_programs(problem: JointProblem, cosines: Cosines, steps: int = 40) -> Cosines:
    """Taylor programs (12), (13) with a trust region."""
    return lp.sequential_lp(problem, cosines, radius=0.1, steps=steps, tolerance=1e-4)


def is_locally_optimal(problem: JointProblem, cosines: Cosines) -> bool:
    """Whether small steps of the Taylor program gain less than a thousandth (Kolmogorov)."""
    moved = lp.sequential_lp(problem, cosines, radius=1e-2, steps=6, tolerance=1e-4)
    return problem.max_error(moved) > problem.max_error(cosines) * (1 - 1e-3)


SOLVER_VERSION = 1  # raised when designs improve: stored ones are computed anew


@dataclass(frozen=True)
class JointSearchOptions:
    """Constants of the search for a joint design; `effort` multiplies those of all but one."""

    # Disturbed selections of each pool. Without them, four of five designs are as good, in half of
    # the time, and one (of three coordinates) has an error that is larger by a quarter.
    disturbed: int = 16
    n_descended: int = 12  # designs that follow high p-norms, whatever the effort
    n_finished: int = 3  # designs that the Taylor programs finish, beside the best


_OPTIONS = JointSearchOptions()
JointResult = tuple[JointProblem, Cosines, float, bool]  # with its rank bound; locally optimal
FORMS = ("modulation", "projection")


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
) -> joint.JointDesign:
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
    target = joint.signatures_of(kernel, len(domain))
    search = _JointSearch(target, n_components, pool, select, refine, effort, cache, progress)
    problems = search.problems(domain, periods, form, resolution)
    with limit_blas(1):  # matrices are small: threads of BLAS would only wait
        designs = search.designs(problems, form)
    problem, pair, lower, optimal = min(designs, key=lambda item: item[0].max_error(item[1]))
    proof, rms = joint.bound_everywhere(problem, pair, target.is_product)
    return joint.JointDesign(
        kernel=target.name,
        form=problem.form,
        method=f"{problem.form}, {search.words}",
        domain=tuple((float(low), float(high)) for low, high in domain),
        periods=periods,
        frequencies=pair[0],
        weights=pair[1],
        n_columns=int(np.sum(problem.columns(pair[0]))),
        max_error=proof.found,
        rms=rms,
        certificate=certified(proof, proof.found, lower, locally_optimal=optimal),
    )


def _check_joint(
    n_components: Any, domain: Any, form: str, pool: str, select: str, periods: Any, effort: Any
) -> None:
    check_count("design_joint_map", "n_components", n_components)
    check_count("design_joint_map", "effort", effort, least=0)
    if len(domain) not in (2, 3) or any(not high > low for low, high in domain):
        raise ValueError(
            "design_joint_map: domain holds two or three ranges (low, high) with low < high; got "
            f"{domain!r}. Evaluation sets grow too fast beyond three dimensions: use "
            "RandomFourierMap there."
        )
    check_choice("design_joint_map", "form", form, (*FORMS, "auto"))
    check_choice("design_joint_map", "pool", pool, ("product", "polar"))
    check_choice("design_joint_map", "select", select, ("lp", "greedy"))
    if pool == "polar" and (form != "projection" or select == "greedy"):
        raise ValueError("design_joint_map: a polar pool is for projections selected by 'lp'.")
    if pool == "polar" and (len(domain) != 2 or (periods and any(periods))):
        raise ValueError("design_joint_map: a polar pool needs two axes without period.")
    if periods is not None and len(periods) != len(domain):
        raise ValueError("design_joint_map: give one period (or None) per axis.")


@dataclass(frozen=True)
class _JointSearch:
    """What is looked for, and how."""

    target: joint.Target
    n_columns: int
    pool: str
    select: str
    refine: bool
    effort: int
    cache: bool
    progress: bool | None

    @property
    def words(self) -> str:
        return f"{self.pool} pool, {self.select}" + (", continuous" if self.refine else "")

    def problems(
        self, domain: Sequence[tuple[float, float]], periods: Periods, form: str, steps: int | None
    ) -> list[JointProblem]:
        """A problem for each form that the signature allows, modulations first or alone."""
        signature = self.target.joint
        ends = zip(domain, periods, strict=True)
        # Floats: ends in whole numbers name the same design.
        spans = np.array([high - low if p is None else p / 2 for (low, high), p in ends], float)
        symmetric = joint.reflects(signature, spans)
        if form == "modulation" and not symmetric:
            raise ValueError(
                "design_joint_map: the signature changes when one coordinate changes its sign; "
                "sums of products of cosines do not. Use form='projection'."
            )
        if not self.target.trusted:
            places = np.linspace(0, 1, 13 if spans.size == 2 else 6)
            gram = joint.gram_on(signature, spans, periods, places)
            refuse_indefinite("design_joint_map", self.target.name, gram)
        steps = steps or (25 if len(domain) == 2 else 11)
        forms = FORMS[:1] if form == "modulation" else FORMS if symmetric else FORMS[1:]
        return [JointProblem(signature, spans, periods, f, steps) for f in forms]

    def designs(self, problems: list[JointProblem], form: str) -> list[JointResult]:
        """The designs of the requested form."""
        # A modulation is a start for projections: they have the same pool, and move.
        descends = self.refine and self.pool == "product"
        designs: list[JointResult] = []
        starts: list[Cosines] = []
        for problem in problems:
            is_requested = form in ("auto", problem.form)
            if is_requested or descends:
                one = self.design(problem, starts)
                designs += [one] * is_requested
                starts = [joint.reflections(*one[1])] if descends else []
        return designs

    def design(self, problem: JointProblem, starts: list[Cosines]) -> JointResult:
        """Frequencies and weights of one form, the rank bound, and whether they are optimal."""
        entry = partial(self._entry, problem, starts)
        header, arrays = store.stored(self._key(problem), entry, self.cache)
        pair = arrays["frequencies"], arrays["weights"]
        return problem, pair, float(header["lower_bound"]), bool(header["optimal"])

    def _entry(self, problem: JointProblem, starts: list[Cosines]) -> store.Entry:
        frequencies, weights = self.solve(problem, starts)
        alive = weights > 1e-12 * np.sum(weights)
        pair = frequencies[alive], weights[alive]
        lower = joint.lower_bound(problem, int(np.sum(problem.columns(pair[0]))))
        optimal = self.refine and is_locally_optimal(problem, pair)
        arrays = dict(zip(("frequencies", "weights"), pair, strict=True))
        return {"lower_bound": lower, "optimal": optimal}, arrays

    def _key(self, problem: JointProblem) -> str:
        """Content key of a design: the signature on a coarse grid, and all choices."""
        sample = problem.signature(product_grid(lag_axes(problem.spans, 7, "projection")))
        header = {"kind": "joint", "columns": self.n_columns, "form": problem.form}
        header |= {name: getattr(self, name) for name in ("pool", "select", "refine", "effort")}
        if problem.form == "projection" or not self.refine:
            header["rules"] = 2  # several polar grids; modulations as starts; least errors
        header |= {"periods": [p or 0.0 for p in problem.periods], "steps": problem.steps}
        header["solver"] = SOLVER_VERSION
        arrays = {"signature": np.round(sample, 10), "spans": np.round(problem.spans, 12)}
        return storage.digest("design-key", header, arrays)

    def solve(self, problem: JointProblem, starts: list[Cosines]) -> Cosines:
        """Select from the pool, descend in p-norms; Taylor programs finish these and the starts."""
        pools, grid = self._pools(problem), problem.coarse
        designs = [pair for pool in pools for pair in self._selected(problem, *pool)]
        if not self.refine:
            if self.select == "lp":  # weights of least largest error: nothing moves any more
                designs = [
                    (vectors, lp.least_error(problem.atoms(grid.lags, vectors), grid.target))
                    for vectors, _ in designs
                ]
            return min(designs, key=problem.max_error)
        rng = np.random.default_rng(0)
        if self.pool == "product":
            designs += [pair for pool in pools for pair in self._disturbed(problem, *pool, rng)]
        designs = list({pair[0].tobytes(): pair for pair in designs}.values())  # pools repeat
        designs = [descend_p_norms(problem, p, (2, 8)) for p in self._shown(designs, "scouts")]
        designs = sorted(designs, key=problem.max_error)[: _OPTIONS.n_descended]
        designs = [descend_p_norms(problem, p, (32, 128)) for p in self._shown(designs, "p-norms")]
        candidates = (
            distinct_optima(problem, designs, 1e-3)[: 1 + _OPTIONS.n_finished * self.effort]
            + starts
        )
        programs = self._shown(candidates, "Taylor programs")
        ends = [taylor_programs(problem, pair, steps=12) for pair in programs]
        return taylor_programs(problem, min(ends, key=problem.max_error))

    def _pools(self, problem: JointProblem) -> list[tuple[np.ndarray, Any]]:
        """Vectors to select from, and for products of one-dimensional designs their weights."""
        if self.pool == "polar":
            return [(_polar_pool(problem, self.n_columns, step), None) for step in _POLAR_STEPS]
        # One-dimensional designs of some fewer and of some more columns than needed.
        per_axis = round(self.n_columns ** (1 / len(problem.spans)))
        sizes = sorted({s | 1 for s in (per_axis - 1, per_axis + 1, per_axis + 3) if s > 0})
        return [_product_pool(problem, self.target.marginals, size) for size in sizes]

    def _selected(self, problem: JointProblem, vectors: np.ndarray, products: Any) -> list[Cosines]:
        """Candidate sets of frequencies of a pool with refitted weights."""
        if self.select == "greedy":
            selected = lp.largest_that_fit(products, problem.columns(vectors), self.n_columns)
            total = problem.signature(np.zeros((1, len(problem.spans))))[0]
            selected_weights = products[selected]
            return [
                (vectors[selected], selected_weights),
                (vectors[selected], selected_weights * total / selected_weights.sum()),
            ]
        ranks = _lp_weights(problem, vectors) + ([] if products is None else [products])
        return [_refitted(problem, vectors, weights, self.n_columns) for weights in ranks]

    def _disturbed(
        self, problem: JointProblem, vectors: np.ndarray, products: Any, rng: np.random.Generator
    ) -> Iterator[Cosines]:
        """Selections by the products of weights, disturbed: sets that no program would choose."""
        alike = np.unique(np.round(products / np.max(products), 6), return_inverse=True)[1]
        for turn in range(_OPTIONS.disturbed * self.effort):
            noise = rng.normal(0, 0.7, products.size)
            if turn % 2:  # equal weights alike: a symmetric kernel may want a symmetric set
                noise = noise[alike]
            yield _refitted(problem, vectors, products * np.exp(noise), self.n_columns)

    def _shown(self, items: Any, stage: str) -> Any:
        """The items, one after the other, with a bar."""
        return track(items, f"joint design: {stage}", enabled=self.progress)
