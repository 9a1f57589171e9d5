r"""Cosine maps of two and three dimensions (Chum 2015, section 6).

*Projection* (eq. 19): k̂(λ) = Σ α cos(ωᵀλ), two columns per frequency vector. *Modulation* (eq. 20):
k̂(λ) = Σ α Π_i cos(ω^i λ^i), with D_ω = Π D_{ω^i} columns: 2^m for m non-zero coordinates. A
modulation is the sum of the projections on all reflections (±ω^1, …, ±ω^n), at the same number of
columns; projections are more general, modulations are symmetric by construction and smaller to
optimise.

Frequencies come from products of one-dimensional designs (eq. 21). Linear programs select, then the
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
from .._util.arguments import check_count
from .._util.display import track
from .._util.threads import limit_blas
from . import joint, lp
from . import result as store
from .bounds import descend
from .certify import make_certificate
from .joint import BoxWaves, JointProblem, lag_axes, product_grid
from .problem import CosineProblem, Cosines, lag_kernel, refuse_indefinite
from .refine import distinct_optima, refined_design


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
    flat = CosineProblem(lag_kernel("axis", signature), span)
    return lp.harmonic_design(flat, size) if period else refined_design(flat, size)


def _refit_weights(
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
    """Constants of the search for a joint design."""

    # Disturbed selections of each pool. Without them, four of five designs are as good, in half of
    # the time, and one (of three coordinates) has an error that is larger by a quarter.
    disturbed: int = 16
    n_descended: int = 12  # designs that follow high p-norms
    n_finished: int = 4  # designs that the Taylor programs finish
    lags: tuple[int, int] = (25, 11)  # of an axis, for the optimisation of two and three axes


_OPTIONS = JointSearchOptions()
JointResult = tuple[JointProblem, Cosines, float, bool]  # with its rank bound; locally optimal
FORMS = ("modulation", "projection")


def design_joint_map(
    kernel: Any,
    n_components: int,
    domain: Sequence[tuple[float, float]],
    *,
    periods: Sequence[float | None] | None = None,
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
    periods : sequence of float or None, optional
        Period of each axis, None where it has none.
    cache : bool, default=True
        Look up and store the design on disk (``KERNELMAPS_CACHE``).
    progress : bool, optional
        Show a bar; None shows it on a terminal.

    Returns
    -------
    JointDesign
        The better one of both forms, eqs. (19) and (20).

    Raises
    ------
    NotPositiveDefiniteError
        If no non-negative mixture of cosines can approach the signature.

    Examples
    --------
    >>> import kernelmaps as km
    >>> from kernelmaps.design.multidim import design_joint_map
    >>> design = design_joint_map(km.kernels.Gaussian(1.0), 9, [(0, 1), (0, 1)])
    >>> design.certificate.proved
    True
    """
    check_count("design_joint_map", "n_components", n_components)
    if len(domain) not in (2, 3) or any(not high > low for low, high in domain):
        raise ValueError(
            "design_joint_map: domain holds two or three ranges (low, high) with low < high; got "
            f"{domain!r}. Evaluation sets grow too fast beyond three dimensions: use "
            "RandomFourierMap there."
        )
    if periods is not None and len(periods) != len(domain):
        raise ValueError("design_joint_map: give one period (or None) per axis.")
    target = joint.resolve_signatures(kernel, len(domain))
    search = JointSearch(target, n_components, cache, progress)
    with limit_blas(1):  # matrices are small: threads of BLAS would only wait
        designs = search.designs(search.problems(domain, periods))
    best = min(designs, key=lambda item: item[0].max_error(item[1]))
    return describe_design(target, best, domain)


def describe_design(target: joint.Target, result: JointResult, domain: Any) -> joint.JointDesign:
    """The design of a result of the search, with its certificate."""
    problem, pair, lower, optimal = result
    proof, rms = joint.bound_everywhere(problem, pair, target.is_product)
    return joint.JointDesign(
        kernel=target.name,
        form=problem.form,
        method=f"{problem.form}, refined",
        domain=tuple((float(low), float(high)) for low, high in domain),
        periods=problem.periods,
        frequencies=pair[0],
        weights=pair[1],
        n_columns=int(np.sum(problem.columns(pair[0]))),
        max_error=proof.found,
        rms=rms,
        certificate=make_certificate(proof, proof.found, lower, locally_optimal=optimal),
    )


@dataclass(frozen=True)
class JointSearch:
    """What is looked for, and how."""

    target: joint.Target
    n_columns: int
    cache: bool = True
    progress: bool | None = None

    def problems(
        self, domain: Sequence[tuple[float, float]], periods: Sequence[float | None] | None = None
    ) -> list[JointProblem]:
        """A problem for each form that the signature allows, modulations first."""
        signature = self.target.joint
        periods = (None,) * len(domain) if periods is None else tuple(periods)
        ends = zip(domain, periods, strict=True)
        # Floats: ends in whole numbers name the same design.
        spans = np.array([high - low if p is None else p / 2 for (low, high), p in ends], float)
        symmetric = joint.is_symmetric(signature, spans)
        if not self.target.trusted:
            places = np.linspace(0, 1, 13 if spans.size == 2 else 6)
            gram = joint.evaluate_gram(signature, spans, periods, places)
            refuse_indefinite("design_joint_map", self.target.name, gram)
        steps = _OPTIONS.lags[len(domain) - 2]
        forms = FORMS if symmetric else FORMS[1:]
        return [JointProblem(signature, spans, periods, form, steps) for form in forms]

    def designs(self, problems: list[JointProblem]) -> list[JointResult]:
        """A design of each form; a modulation is a start for projections."""
        designs: list[JointResult] = []
        for problem in problems:
            starts = [joint.reflections(*one[1]) for one in designs]
            designs.append(self.design(problem, starts))
        return designs

    def design(self, problem: JointProblem, starts: list[Cosines]) -> JointResult:
        """Frequencies and weights of one form, the rank bound, and whether they are optimal."""
        entry = partial(self._entry, problem, starts)
        header, arrays = store.load_or_solve(self._key(problem), entry, self.cache)
        pair = arrays["frequencies"], arrays["weights"]
        return problem, pair, float(header["lower_bound"]), bool(header["optimal"])

    def _entry(self, problem: JointProblem, starts: list[Cosines]) -> store.Entry:
        frequencies, weights = self.solve(problem, starts)
        alive = weights > 1e-12 * np.sum(weights)
        pair = frequencies[alive], weights[alive]
        lower = joint.lower_bound(problem, int(np.sum(problem.columns(pair[0]))))
        optimal = is_locally_optimal(problem, pair)
        arrays = dict(zip(("frequencies", "weights"), pair, strict=True))
        return {"lower_bound": lower, "optimal": optimal}, arrays

    def _key(self, problem: JointProblem) -> str:
        """Content key of a design: the signature on a coarse grid, and the size."""
        sample = problem.signature(product_grid(lag_axes(problem.spans, 7, "projection")))
        header = {"kind": "joint", "columns": self.n_columns, "form": problem.form}
        header |= {"pool": "product", "select": "lp", "refine": True, "effort": 1}
        if problem.form == "projection":
            header["rules"] = 2  # modulations as starts
        header |= {"periods": [p or 0.0 for p in problem.periods], "steps": problem.steps}
        header["solver"] = SOLVER_VERSION
        arrays = {"signature": np.round(sample, 10), "spans": np.round(problem.spans, 12)}
        return storage.digest("design-key", header, arrays)

    def solve(self, problem: JointProblem, starts: list[Cosines]) -> Cosines:
        """Select from the pool, descend in p-norms; Taylor programs finish these and the starts."""
        rng, designs = np.random.default_rng(0), []
        pools = self.pools(problem)
        for vectors, products in pools:
            ranks = [*_lp_weights(problem, vectors), products]
            designs += [_refit_weights(problem, vectors, rank, self.n_columns) for rank in ranks]
        for pool in pools:
            designs += self._disturb_selections(problem, *pool, rng)
        designs = list({pair[0].tobytes(): pair for pair in designs}.values())  # pools repeat
        designs = [
            descend_p_norms(problem, p, (2, 8)) for p in self._show_progress(designs, "scouts")
        ]
        designs = sorted(designs, key=problem.max_error)[: _OPTIONS.n_descended]
        designs = [
            descend_p_norms(problem, p, (32, 128)) for p in self._show_progress(designs, "p-norms")
        ]
        candidates = distinct_optima(problem, designs, 1e-3)[: _OPTIONS.n_finished] + starts
        programs = self._show_progress(candidates, "Taylor programs")
        ends = [taylor_programs(problem, pair, steps=12) for pair in programs]
        return taylor_programs(problem, min(ends, key=problem.max_error))

    def pools(self, problem: JointProblem) -> list[Cosines]:
        """Products of one-dimensional designs of some fewer and some more columns than needed."""
        per_axis = round(self.n_columns ** (1 / len(problem.spans)))
        sizes = sorted({s | 1 for s in (per_axis - 1, per_axis + 1, per_axis + 3) if s > 0})
        return [_product_pool(problem, self.target.marginals, size) for size in sizes]

    def _disturb_selections(
        self,
        problem: JointProblem,
        vectors: np.ndarray,
        products: np.ndarray,
        rng: np.random.Generator,
    ) -> Iterator[Cosines]:
        """Selections by the products of weights, disturbed: sets that no program would choose."""
        alike = np.unique(np.round(products / np.max(products), 6), return_inverse=True)[1]
        for turn in range(_OPTIONS.disturbed):
            noise = rng.normal(0, 0.7, products.size)
            if turn % 2:  # equal weights alike: a symmetric kernel may want a symmetric set
                noise = noise[alike]
            yield _refit_weights(problem, vectors, products * np.exp(noise), self.n_columns)

    def _show_progress(self, items: Any, stage: str) -> Any:
        """The items, one after the other, with a bar."""
        return track(items, f"joint design: {stage}", enabled=self.progress)
