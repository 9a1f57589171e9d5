r"""``design_map``: the best map for a kernel, a domain and a size or an error; its solvers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._util import storage
from .._util.arguments import argument, check_choice, check_count, check_positive, seed_of
from .._util.display import announce
from .._util.threads import limit_blas
from ..exceptions import DesignError
from ..kernels import Kernel
from . import cache as store
from . import certify
from . import problem as problems
from .gram import GridKernel, grid_kernel, rank_bound
from .lp import bounded_lp, columns, frequency_pool, harmonic_design, refitted
from .multidim import design_joint_map
from .problem import CosineProblem
from .refine import RefineOptions, pool_design, refined_design
from .result import Design, cosines_spec, sines_spec, values_of
from .tables import RankTable, eigen_table, minimax_table, sine_design

LARGEST = 48
"""Columns that a search for the least size goes up to."""
VERSION = {"minimax": 2}
"""Raised for a method when its designs improve; others are at 1."""

Arrays = dict[str, np.ndarray]


@dataclass
class DesignSolver(ABC):
    """Designs of one kernel, domain, error and method, in any size.

    Parameters
    ----------
    grid : GridKernel or None
        The kernel on a grid of values, where the rank bound applies.
    problem : CosineProblem or None
        That of cosines: the one that is solved, or beside a table.
    method : str
    search : RefineOptions
    unit, norm : float, str
        Those of the problem that is solved.
    """

    grid: GridKernel | None
    problem: CosineProblem | None
    method: str
    search: RefineOptions
    unit: float = 1.0
    norm: str = "max"

    @abstractmethod
    def identity(self) -> tuple[dict[str, Any], Arrays]:
        """Numbers and arrays that tell its designs from those of others."""

    @abstractmethod
    def solve(self, n_columns: int) -> Arrays:
        """A design as arrays."""

    @abstractmethod
    def finish(self, arrays: Arrays, lower_bound: float) -> Design:
        """The design of the arrays, with its certificate."""

    def entry(self, n_columns: int) -> store.Entry:
        """What the cache stores of a design: its lower bound, and what `solve` found."""
        arrays = self.solve(n_columns)
        # With all its arguments, as a table asks for it: what is known is not computed again.
        lower = 0.0 if self.grid is None else rank_bound(self.grid, n_columns, True)[0]
        return {"lower_bound": lower / self.unit}, arrays

    def key(self, n_columns: int) -> str:
        """The content key under which a design is stored."""
        header, arrays = self.identity()
        header |= {"columns": n_columns, "method": self.method, "norm": self.norm}
        header |= {"seed": self.search.seed, "effort": self.search.effort}
        header["solver"] = VERSION.get(self.method, 1)
        return storage.digest("design-key", header, arrays)

    def _design(
        self,
        of: CosineProblem | GridKernel,
        n_columns: int,
        error: float,
        certificate: certify.DesignCertificate,
        **fields: Any,
    ) -> Design:
        domain = of.domain  # a name, two ends, or the values themselves
        design = Design(
            kernel=of.kernel.name,
            method=self.method,
            error=of.error,
            domain=tuple(map(float, domain)) if len(domain) == 2 else domain,
            n_columns=n_columns,
            max_error=error,
            rms=np.nan,
            certificate=certificate,
            homogeneous=of.kernel.homogeneous,
            gamma=of.kernel.gamma,
            **({"objective": error} | fields),
        )
        return design.replace(rms=_rms(design, of.kernel.component))


class CosineSolver(DesignSolver):
    """Cosine designs of one problem, any size."""

    problem: CosineProblem

    def identity(self) -> tuple[dict[str, Any], Arrays]:
        problem = self.problem
        sample = np.linspace(0, problem.span, 65)
        if problem.points is not None:
            sample = np.r_[sample, problem.points]
        header = {"kind": "cosines", "span": round(problem.span, 12), "tail": problem.tail}
        header |= {"period": problem.period, "discrete": problem.points is not None}
        header |= {"gamma": problem.kernel.gamma, "homogeneous": problem.kernel.homogeneous}
        return header, {
            # frequencies and weights depend on lags alone: the unit b^γ is left out
            "signature": np.round(problem.signature(sample), 10),
            "weight": np.round(problem.weight(sample) / problem.unit, 10),
        }

    def solve(self, n_columns: int) -> Arrays:
        if self.method == "harmonic":
            frequencies, weights = harmonic_design(self.problem, n_columns)
        elif self.method == "lp":
            frequencies, weights = pool_design(self.problem, n_columns)
        else:
            frequencies, weights = refined_design(self.problem, n_columns, self.search)
        return {"frequencies": frequencies, "weights": weights}

    def finish(self, arrays: Arrays, lower_bound: float) -> Design:
        problem, cosines = self.problem, (arrays["frequencies"], arrays["weights"])
        if problem.tail:
            span = 2 / problem.kernel.gamma * np.log(2 * np.sum(cosines[1]) / 1e-9)
            problem = replace(problem, span=min(span, 60.0))
        n_columns = columns(cosines[0])
        certificate = certify.certify_cosines(problem, cosines, n_columns, lower_bound)
        error, objective = problem.max_error(cosines), problem.cost(cosines)
        return self._design(
            problem, n_columns, error, certificate, norm=self.norm, objective=objective, **arrays
        )


class TableSolver(DesignSolver):
    """Tables of one kernel, any size."""

    grid: GridKernel

    def identity(self) -> tuple[dict[str, Any], Arrays]:
        grid = self.grid
        power = grid.kernel.gamma / 2 if grid.log else 0.0
        header = {"kind": "table", "low": grid.low, "high": grid.high, "rough": grid.rough}
        header |= {"power": power, "log": grid.log, "error": grid.error}
        values = np.zeros(0) if grid.values is None else grid.values
        sample = grid.gram(grid.nodes[::3]) / np.max(np.abs(grid.gram(grid.nodes[-1:])))
        return header, {"gram": np.round(sample, 10), "values": values}

    def solve(self, n_columns: int) -> Arrays:
        if self.method == "eigen":
            table = eigen_table(self.grid, n_columns)
        else:
            table = minimax_table(self.grid, n_columns, self._others(n_columns))
        return {"coefficients": table.coefficients, "nodes": table.nodes}

    def _others(self, n_columns: int) -> list[Callable]:
        """The maps of other methods, which the best table starts from and may not fall behind."""
        specs = []
        if self.problem is not None:
            gamma = self.problem.kernel.gamma if self.grid.log else 0.0
            cosines = refined_design(self.problem, n_columns, self.search)
            specs.append(cosines_spec(cosines, gamma))
        if has_sines(self.grid):
            specs.append(sines_spec(sine_design(self.grid.high, n_columns)))
        return [partial(values_of, spec) for spec in specs]

    def finish(self, arrays: Arrays, lower_bound: float) -> Design:
        grid = self.grid
        table = RankTable(grid, **arrays)
        certificate = certify.certify_table(table, lower_bound, self.method == "minimax")
        n_columns = table.coefficients.shape[1]
        return self._design(grid, n_columns, table.max_error, certificate, table=table)


def has_sines(grid: GridKernel) -> bool:
    """Whether the sines of Brownian motion are a map of the kernel."""
    return grid.brownian and grid.error == "absolute"


class SineSolver(TableSolver):
    """The closed form of the intersection kernel, with weights by linear programming."""

    def solve(self, n_columns: int) -> Arrays:
        frequencies, weights = sine_design(self.grid.high, n_columns)
        return {"frequencies": frequencies, "weights": weights}

    def finish(self, arrays: Arrays, lower_bound: float) -> Design:
        points = np.linspace(0, self.grid.high, 1601)
        phi = values_of(sines_spec((arrays["frequencies"], arrays["weights"])), points)
        miss = float(np.max(np.abs(np.minimum.outer(points, points) - phi @ phi.T)))
        # e(x, y) has slope at most 1 + Σ aω in each variable; half a step in both reaches all
        slope = 1 + float(arrays["weights"] @ arrays["frequencies"])
        bound = miss + slope * float(points[1] - points[0])
        proof = certify.Proof(bound, miss, "grid of 1601² pairs and slopes")
        certificate = certify.certified(proof, miss, lower_bound, bound_to_zero=bound)
        return self._design(self.grid, len(arrays["weights"]), miss, certificate, **arrays)


def _rms(design: Design, component: Callable) -> float:
    """Root mean square of the kernel's error over pairs (of the relative one, where k > 0)."""
    low, high = design.range or (0.0, 1.0)
    values = np.linspace(0.0 if design.homogeneous else low, high, 256)
    if not isinstance(design.domain, str) and len(design.domain) > 2:
        values = np.r_[0.0, design.domain] if design.homogeneous else np.asarray(design.domain)
    phi = values_of(design.spec, values)
    exact = component(values[:, None], values[None, :])
    miss = phi @ phi.T - exact
    if design.error == "relative":
        miss = miss[exact > 0] / exact[exact > 0]
    return float(np.sqrt(np.mean(miss**2)))


COSINE_METHODS = ("refined", "lp", "harmonic")
TABLE_METHODS = ("minimax", "eigen")
METHODS = (*COSINE_METHODS, *TABLE_METHODS, "sine")


def design_map(
    kernel: Any,
    n_components: int | None = None,
    *,
    max_error: float | None = None,
    domain: Any = (1, 255),
    error: str | Callable = "absolute",
    method: str = "refined",
    norm: str = "max",
    lags: Any = None,
    period: Any = None,
    homogeneous: bool | None = None,
    random_state: Any = 0,
    effort: int = 1,
    cache: bool = True,
    progress: bool | None = None,
) -> Design:
    """Design the best map of a size, or the smallest map whose error stays below a bound.

    Parameters
    ----------
    kernel : str, kernel or callable
        A homogeneous or stationary kernel, or a function: the signature k(λ) of a stationary
        kernel, or with ``homogeneous=True`` of a homogeneous one. Tables also take
        ``kernels.Additive``.
    n_components : int, optional
        Columns D. Odd numbers include the zero frequency, even ones do not.
    max_error : float, optional
        Instead of `n_components`: take the smallest D whose error does not exceed it.
    domain : (m, b), array of values, or "universal", default=(1, 255)
        Range of the values, or the set of values that occur. For homogeneous kernels m is the
        smallest value that is not zero, and "universal" asks for the smallest absolute error over
        all ratios of values up to b = 1 (times b for other b). Two or three pairs (low, high)
        ask for a joint map of as many coordinates (section 6), a ``JointDesign``.
    error : {"absolute", "relative", "signature"} or callable, default="absolute"
        What to minimise: |k − k̂| of the kernel, |k − k̂|/k, the error of the signature, or
        w(λ)|k(λ) − k̂(λ)| with a weight that you provide.
    method : str, default="refined"
        "refined": the best cosines. "lp": cosines from a finite pool. "harmonic": the orthogonal
        projection on harmonics. "minimax": the best table of D columns. "eigen": the table of
        smallest mean square error. "sine": closed form of the intersection kernel.
    norm : {"max", "sum"}, default="max"
        C∞ (eq. 5) or C₁ (eq. 4) over the evaluation set.
    lags : array-like, optional
        The evaluation set Z itself, in place of all lags of the domain.
    period : float, optional
        Period of the signature; frequencies are then its harmonics (section 3). One per axis for
        joint maps.
    homogeneous : bool, optional
        Whether a function given as kernel is the signature of a homogeneous kernel.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the starts. Equal arguments give equal designs.
    effort : int, default=1
        Multiplies the number of starts for rough kernels.
    cache : bool, default=True
        Look up and store the design on disk (``KERNELMAPS_CACHE``).
    progress : bool, optional
        Show a bar for long designs; None shows it on a terminal.

    Returns
    -------
    Design
        The best map found, with its certificate.

    Raises
    ------
    DesignError
        If `max_error` cannot be met (``.best`` holds the best design) or a linear program fails.
    NotPositiveDefiniteError
        If no non-negative mixture of cosines can approach the signature.

    Examples
    --------
    >>> import kernelmaps as km
    >>> design = km.design_map("chi2", 5, domain=(1, 255), cache=False)
    >>> round(design.max_error, 4)
    0.1634
    """
    _check_arguments(n_components, max_error, method, norm, effort)
    if np.ndim(domain) == 2:
        how = {"periods": period, "effort": effort, "cache": cache, "progress": progress}
        return _joint(kernel, n_components, domain, method, (error, norm, lags, homogeneous), **how)
    with limit_blas(1):  # matrices are small: threads of BLAS would only wait
        solver = make_solver(
            kernel, domain=domain, error=error, method=method, norm=norm, lags=lags, period=period,
            homogeneous=homogeneous, random_state=random_state, effort=effort, progress=progress,
        )  # fmt: skip
        if max_error is not None:
            return _least(solver, float(max_error), cache)
        return _one(solver, int(n_components or 0), cache)


def _joint(
    kernel: Any, n_components: Any, domain: Any, method: str, one_dimensional: tuple, **how: Any
) -> Any:
    """A joint map of several coordinates (section 6); `one_dimensional` options are refused."""
    error, norm, lags, homogeneous = one_dimensional
    given = {"error": error != "absolute", "norm": norm != "max", "lags": lags is not None}
    given["homogeneous"] = bool(homogeneous)
    wrong = [f"{name}=" for name, was in given.items() if was]
    if wrong:
        raise ValueError(
            f"design_map: a domain of several ranges does not take {', '.join(wrong)}. Its designs "
            "minimise the largest error |k − k̂| over all lags."
        )
    if n_components is None or method not in ("refined", "lp"):
        raise ValueError(
            "design_map: a domain of several ranges needs n_components, and method='refined' "
            "or 'lp'; see kernelmaps.design.multidim.design_joint_map for its other options."
        )
    return design_joint_map(kernel, int(n_components), domain, refine=method == "refined", **how)


def make_solver(
    kernel: Any,
    *,
    domain: Any = (1, 255),
    error: Any = "absolute",
    method: str = "refined",
    norm: str = "max",
    lags: Any = None,
    period: float | None = None,
    homogeneous: bool | None = None,
    random_state: Any = 0,
    effort: int = 1,
    progress: bool | None = None,
) -> DesignSolver:
    """What solves designs of any size for these arguments."""
    search = RefineOptions(seed_of(random_state), int(effort), progress)
    if method in COSINE_METHODS:
        problem = problems.build_problem(
            kernel, domain, error, lags=lags, period=period, homogeneous=homogeneous, norm=norm
        )
        _refuse_indefinite(problem, kernel)
        within = _grid_or_none(problem, error)
        return CosineSolver(within, problem, method, search, problem.unit, norm)
    if norm != "max" or lags is not None or period is not None or isinstance(domain, str):
        raise ValueError(
            f"design_map: {argument('method', method)} needs a range or a set of values as domain, "
            "norm='max' and neither lags nor period."
        )
    beside = None
    if problems.feature_kernel(kernel, homogeneous).signature is None:
        problems.check_domain(domain, False)
    else:  # a function as error is refused by `grid_kernel`, which knows what tables can do
        error_name = "absolute" if callable(error) else error
        beside = problems.build_problem(kernel, domain, error_name, homogeneous=homogeneous)
    grid = grid_kernel(kernel, domain, error, homogeneous)
    if method != "sine":
        return TableSolver(grid, beside, method, search)
    if not has_sines(grid):
        raise ValueError(
            f"design_map: {argument('method', 'sine')} is a closed form of the intersection kernel "
            f"with absolute error; got {grid.kernel.name!r}, {grid.error!r}. Use "
            f"{argument('method', 'refined')}."
        )
    return SineSolver(grid, None, method, search)


def _check_arguments(
    n_components: Any, max_error: Any, method: str, norm: str, effort: int
) -> None:
    """Refuse wrong arguments of `design_map` before the work."""
    if (n_components is None) == (max_error is None):
        raise ValueError(
            f"design_map: give either {argument('n_components')} or {argument('max_error')}, and "
            "only one."
        )
    if n_components is not None:
        check_count("design_map", "n_components", n_components)
    if max_error is not None:
        check_positive("design_map", "max_error", max_error, "positive")
    check_choice("design_map", "method", method, METHODS)
    if norm not in ("max", "sum"):
        raise ValueError(f"design_map: norm must be 'max' (eq. 5) or 'sum' (eq. 4), got {norm!r}.")
    check_count("design_map", "effort", effort)


def _grid_or_none(problem: CosineProblem, error: Any) -> GridKernel | None:
    """The kernel on a grid of values, where the rank bound applies to the problem."""
    kernel, domain = problem.kernel, problem.domain
    if callable(error):
        return None
    if problem.period is not None:
        kernel = problems.of_lags(kernel.name, problem.signature)
        domain = 0.0, problem.period * 63 / 64
    elif problem.tail:
        domain = 1e-5, 1.0
    elif problem.points is not None and np.size(domain) == 2:
        return None  # lags without values
    return grid_kernel(kernel, domain, error)


def _refuse_indefinite(problem: CosineProblem, kernel: Any) -> None:
    """Krein: a function on [−M, M] is a mixture of cosines iff its kernel on [0, M] is definite."""
    if isinstance(kernel, str | Kernel):
        return
    size = 161
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    if problem.period is None:
        lag = apart * problem.span / (size - 1)
    else:
        lag = np.minimum(apart, size - apart) * problem.period / size

    def distance_in_words() -> str:
        distance = refitted(problem, frequency_pool(problem, 31, halvings=1))[0]
        return (
            f"; the best one found misses it by {distance:.3g} ({distance / problem.scale:.1%} of "
            "its peak). Check the formula, or use its positive-definite part."
        )

    gram = problem.signature(lag)
    problems.refuse_indefinite("design_map", problem.kernel.name, gram, distance_in_words)


def _one(solver: DesignSolver, n_columns: int, cache: bool) -> Design:
    """One size: from the cache, or solved and stored."""
    header, arrays = store.stored(solver.key(n_columns), partial(solver.entry, n_columns), cache)
    return solver.finish(dict(arrays), float(header["lower_bound"]) * solver.unit)


def _least(solver: DesignSolver, max_error: float, cache: bool) -> Design:
    """The least D with an error of at most `max_error`: doubling, then bisection."""
    largest = LARGEST
    if solver.problem is not None and solver.method == "lp":
        # Columns of the paper's first program: an upper bound on the least D.
        pool = frequency_pool(solver.problem, 31, halvings=1)
        weights = bounded_lp(solver.problem, pool, max_error)
        if weights is not None:
            largest = min(LARGEST, columns(pool[weights > 1e-9 * np.max(weights)]))
    holding, failed, tried, designs = 0, 0, 1, []
    while holding - failed != 1:
        designs.append(_one(solver, tried, cache))
        size, error = designs[-1].n_columns, designs[-1].objective
        announce(
            f"{size} column{'s' * (size > 1)}: error {error:.3g}, at most {max_error:.3g} "
            "is asked for"
        )
        if error <= max_error:
            holding, held = tried, designs[-1]
        else:
            failed = tried
        if failed == largest:
            best = min(designs, key=lambda design: design.objective)
            raise DesignError(
                f"design_map: no {solver.method} map of up to {largest} columns has an error of at "
                f"most {max_error:.3g}; the best found has {best.n_columns} columns and "
                f"{best.objective:.3g}. Allow a larger error, shorten the domain, or use "
                f"{argument('method', 'minimax')}.",
                best=best,
            )
        tried = (holding + failed) // 2 if holding else min(2 * tried, largest)
    return held
