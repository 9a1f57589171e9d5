r"""``design_map``: from a kernel, a domain and a size (or an error) to the best map there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import storage
from ..exceptions import DesignError
from ..seeding import seed_of
from ..threads import limit_blas
from . import cache as store
from .bounds import rank_bound
from .certify import DesignCertificate, certify_cosines
from .certify_tables import table_everywhere
from .gram import GridKernel, grid_kernel
from .lp import bounded_lp, columns, fit_error, frequency_pool, harmonic_design
from .multidim import design_joint_map
from .problem import NotPositiveDefiniteError, Problem, build_problem
from .refine import pool_design, refined_design
from .result import Design, cosine_values
from .sine import sine_design
from .tables import RankTable, eigen_table, minimax_table

__all__ = ["Design", "NotPositiveDefiniteError", "design_map"]

SOLVER_VERSION = 1
COSINE_METHODS = ("refined", "lp", "harmonic")
TABLE_METHODS = ("minimax", "eigen")
METHODS = (*COSINE_METHODS, *TABLE_METHODS, "sine")
_LARGEST = 48


def design_map(
    kernel: Any,
    n_components: int | None = None,
    max_error: float | None = None,
    domain: Any = (1, 255),
    error: str | Callable = "absolute",
    method: str = "refined",
    *,
    norm: str = "max",
    lags: Any = None,
    period: Any = None,
    homogeneous: bool | None = None,
    random_state: Any = 0,
    effort: int = 1,
    cache: bool = True,
    progress: bool | None = None,
) -> Design:
    """Design the best map of a size, or the smallest map of an error.

    Parameters
    ----------
    kernel : str, kernel or callable
        A homogeneous or stationary kernel, or a function: the signature k(λ) of a stationary
        kernel, or with ``homogeneous=True`` of a homogeneous one. Tables also take
        ``kernels.Additive``.
    n_components : int, optional
        Columns D. Odd numbers include the zero frequency, even ones do not.
    max_error : float, optional
        Instead of `n_components`: the least D whose error does not exceed it.
    domain : (m, b), array of values, or "universal", default=(1, 255)
        Range of the values, or the set of values that occur. For homogeneous kernels m is the
        smallest value that is not zero, and "universal" asks for the least absolute error over
        all ratios of values up to b = 1 (times b for other b). Two or three pairs (low, high)
        ask for a joint map of as many coordinates (section 6), a ``JointDesign``.
    error : {"absolute", "relative", "signature"} or callable, default="absolute"
        What to minimise: |k − k̂| of the kernel, |k − k̂|/k, the error of the signature, or
        w(λ)|k(λ) − k̂(λ)| with a weight of your own.
    method : str, default="refined"
        "refined": the best cosines. "lp": cosines from a finite pool. "harmonic": the orthogonal
        projection on harmonics. "minimax": the best table of D columns. "eigen": the table of
        least mean square error. "sine": closed form of the intersection kernel.
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
        return _joint(kernel, n_components, domain, method, period, progress)
    with limit_blas(1):  # matrices are small: threads of BLAS would only wait
        solver, options = make_solver(
            kernel, domain=domain, error=error, method=method, norm=norm, lags=lags, period=period,
            homogeneous=homogeneous, random_state=random_state, effort=effort, progress=progress,
        )  # fmt: skip
        if n_components is not None:
            return _one(solver, int(n_components), options, cache)
        return _least(solver, float(max_error), options, cache)


def _joint(
    kernel: Any, n_components: Any, domain: Any, method: str, periods: Any, progress: bool | None
) -> Any:
    """A joint map of several coordinates (section 6)."""
    if n_components is None or method not in ("refined", "lp"):
        raise ValueError(
            "design_map: a domain of several ranges needs n_components, and method='refined' "
            "or 'lp'; see kernelmaps.design.multidim.design_joint_map for its other options."
        )
    refine = method == "refined"
    return design_joint_map(
        kernel, int(n_components), domain, refine=refine, periods=periods, progress=progress
    )


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
    n_components: int | None = None,
) -> tuple[Any, dict[str, Any]]:
    """What solves designs of any size for these arguments, and its options."""
    options = {
        "norm": norm,
        "seed": seed_of(random_state),
        "effort": int(effort),
        "progress": progress,
    }
    if method in COSINE_METHODS:
        problem = build_problem(
            kernel, domain, error, lags=lags, period=period, homogeneous=homogeneous
        )
        _refuse_indefinite(problem, kernel)
        grid = _grid_or_none(kernel, problem, error, homogeneous)
        return _CosineSolver(problem, grid, method), options
    if norm != "max" or lags is not None or period is not None or isinstance(domain, str):
        raise ValueError(
            f"design_map: method={method!r} needs a range or a set of values as domain, "
            "norm='max' and neither lags nor period."
        )
    _check_table_domain(domain, kernel, homogeneous)
    grid = grid_kernel(kernel, domain, error, homogeneous)
    return _SineSolver(grid) if method == "sine" else _TableSolver(grid, method), options


def design_key(kernel: Any, n_components: int, **arguments: Any) -> str:
    """The content key under which a design is stored."""
    solver, options = make_solver(kernel, **arguments)
    return _key(solver, n_components, options)


def _key(solver: Any, n_columns: int, options: dict[str, Any]) -> str:
    header, arrays = solver.identity()
    header |= {"columns": n_columns, "method": solver.method, "solver": SOLVER_VERSION}
    header |= {name: options[name] for name in ("norm", "seed", "effort")}
    return storage.digest("design-key", header, arrays)


def _check_arguments(
    n_components: Any, max_error: Any, method: str, norm: str, effort: int
) -> None:
    if (n_components is None) == (max_error is None):
        raise ValueError("design_map: give either n_components or max_error.")
    if n_components is not None and (
        isinstance(n_components, bool)
        or not isinstance(n_components, int | np.integer)
        or n_components < 1
    ):
        raise ValueError(f"design_map: n_components must be an integer >= 1, got {n_components!r}.")
    if max_error is not None and not (np.isfinite(max_error) and max_error > 0):
        raise ValueError(f"design_map: max_error must be positive, got {max_error!r}.")
    if method not in METHODS:
        raise ValueError(f"design_map: method={method!r}; it is one of {METHODS}.")
    if norm not in ("max", "sum"):
        raise ValueError(f"design_map: norm={norm!r}; it is 'max' (eq. 5) or 'sum' (eq. 4).")
    if effort < 1:
        raise ValueError(f"design_map: effort must be >= 1, got {effort!r}.")


def _check_table_domain(domain: Any, kernel: Any, homogeneous: bool | None) -> None:
    """The checks of a domain that :func:`build_problem` makes, for kernels without a signature."""
    from ..kernels import AdditiveKernel, HomogeneousKernel

    if isinstance(kernel, AdditiveKernel) and not isinstance(kernel, HomogeneousKernel):
        build_problem(lambda lag: np.ones_like(lag), domain)
    else:
        build_problem(kernel, domain, homogeneous=homogeneous)


def _grid_or_none(
    kernel: Any, problem: Problem, error: Any, homogeneous: bool | None
) -> GridKernel | None:
    """The kernel on a grid of values, where the rank bound applies to the problem."""
    if callable(error):
        return None
    if problem.period is not None:
        period = problem.period

        def wrapped(lag: np.ndarray) -> np.ndarray:
            within = np.mod(lag, period)
            return problem.signature(np.minimum(within, period - within))

        return grid_kernel(wrapped, (0.0, period * 63 / 64), error, False)
    if problem.tail:
        return grid_kernel(kernel, (1e-5, 1.0), error, homogeneous)
    if problem.points is not None and np.size(problem.domain) == 2:
        return None  # lags without values
    return grid_kernel(kernel, problem.domain, error, homogeneous)


def _refuse_indefinite(problem: Problem, kernel: Any) -> None:
    """Krein: a function on [−M, M] is a mixture of cosines iff its kernel on [0, M] is definite."""
    from ..kernels import Kernel

    if isinstance(kernel, str | Kernel):
        return
    size = 161
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    if problem.period is None:
        lag = apart * problem.span / (size - 1)
    else:
        lag = np.minimum(apart, size - apart) * problem.period / size
    eigenvalues = np.linalg.eigvalsh(problem.signature(lag))
    least, most = eigenvalues[0], np.max(np.abs(eigenvalues))
    if least >= -1e-9 * most:
        return
    distance = fit_error(problem, frequency_pool(problem, 31, level=1))
    raise NotPositiveDefiniteError(
        f"design_map: the signature {problem.name!r} is not positive definite: its Gram matrix on "
        f"{size} even points of the domain has the eigenvalue {least:.3g} (largest {most:.3g}). No "
        "non-negative mixture of cosines fits it; the best one found misses it by "
        f"{distance:.3g} ({distance / problem.scale:.1%} of its peak). Check the formula, or use "
        "its positive-definite part."
    )


class _CosineSolver:
    """Cosine designs of one problem, any size."""

    def __init__(self, problem: Problem, grid: GridKernel | None, method: str) -> None:
        self.problem, self.grid, self.method = problem, grid, method

    def identity(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        problem = self.problem
        sample = np.linspace(0, problem.span, 65)
        if problem.points is not None:
            sample = np.r_[sample, problem.points]
        header = {"kind": "cosines", "span": round(problem.span, 12), "tail": problem.tail}
        header |= {"period": problem.period, "discrete": problem.points is not None}
        header |= {"gamma": problem.gamma, "homogeneous": problem.homogeneous}
        return header, {
            # frequencies and weights depend on lags alone: the unit b^γ is left out
            "signature": np.round(problem.signature(sample), 10),
            "weight": np.round(problem.weight(sample) / problem.unit, 10),
        }

    @property
    def unit(self) -> float:
        return self.problem.unit

    def solve(self, n_columns: int, options: dict[str, Any]) -> dict[str, np.ndarray]:
        if self.method == "harmonic":
            frequencies, weights = harmonic_design(self.problem, n_columns)
        elif self.method == "lp":
            frequencies, weights = pool_design(self.problem, n_columns, options["norm"])
        else:
            frequencies, weights = refined_design(self.problem, n_columns, **options)
        return {"frequencies": frequencies, "weights": weights}

    def enough_columns(self, max_error: float, norm: str) -> int:
        """Columns of the paper's first program, an upper bound on the least D; 0 if it has none."""
        pool = frequency_pool(self.problem, 31, level=1)
        weights = bounded_lp(self.problem, pool, max_error, norm)
        return 0 if weights is None else columns(pool[weights > 1e-9 * np.max(weights)])

    def finish(
        self, arrays: dict[str, np.ndarray], lower_bound: float, options: dict[str, Any]
    ) -> Design:
        problem, norm = self.problem, options["norm"]
        pair = arrays["frequencies"], arrays["weights"]
        if problem.tail:
            reach = 2 / problem.gamma * np.log(2 * np.sum(pair[1]) / 1e-9)
            problem = problem.with_span(min(reach, 60.0))
        n_columns = columns(pair[0])
        certificate = certify_cosines(problem, pair, n_columns, lower_bound)
        objective = problem.max_error(*pair) if norm == "max" else problem.sum_error(*pair)
        design = Design(
            kernel=problem.name,
            method=self.method,
            error=problem.error,
            domain=problem.domain if isinstance(problem.domain, str) else _plain(problem.domain),
            n_columns=n_columns,
            frequencies=pair[0],
            weights=pair[1],
            max_error=problem.max_error(*pair),
            rms=np.nan,
            certificate=certificate,
            homogeneous=problem.homogeneous,
            gamma=problem.gamma,
            norm=norm,
            objective=objective,
        )
        return design.replace(rms=_cosine_rms(problem, pair))


class _TableSolver:
    """Tables of one kernel, any size."""

    unit = 1.0

    def __init__(self, grid: GridKernel, method: str) -> None:
        self.grid, self.method = grid, method

    def identity(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        grid = self.grid
        header = {"kind": "table", "low": grid.low, "high": grid.high, "rough": grid.rough}
        header |= {"power": grid.power, "log": grid.log, "error": grid.error}
        values = np.zeros(0) if grid.values is None else grid.values
        sample = grid.gram(grid.nodes[::3]) / np.max(np.abs(grid.gram(grid.nodes[-1:])))
        return header, {"gram": np.round(sample, 10), "values": values}

    def solve(self, n_columns: int, options: dict[str, Any]) -> dict[str, np.ndarray]:
        make = minimax_table if self.method == "minimax" else eigen_table
        table = make(self.grid, n_columns)
        return {"coefficients": table.coefficients, "nodes": table.nodes}

    def enough_columns(self, max_error: float, norm: str) -> int:
        return _LARGEST

    def finish(
        self, arrays: dict[str, np.ndarray], lower_bound: float, options: dict[str, Any]
    ) -> Design:
        grid = self.grid
        table = RankTable(grid, arrays["coefficients"], arrays["nodes"], not grid.rough)
        error = table.max_error()
        bound, proved, how = table_everywhere(table)
        ratio = error / lower_bound if lower_bound > 0 else np.inf
        certificate = DesignCertificate(
            bound, how, proved, 0, 0, self.method == "minimax", lower_bound, float(ratio),
        )  # fmt: skip
        return Design(
            kernel=grid.name,
            method=self.method,
            error=grid.error,
            domain=(grid.low, grid.high) if grid.values is None else grid.values,
            n_columns=table.coefficients.shape[1],
            table=table,
            max_error=error,
            rms=_grid_rms(grid, table),
            certificate=certificate,
            homogeneous=grid.log,
            gamma=2 * grid.power if grid.log else 1.0,
            objective=error,
        )


class _SineSolver(_TableSolver):
    """The closed form of the intersection kernel, with weights by linear programming."""

    def __init__(self, grid: GridKernel) -> None:
        if grid.name != "intersection" or grid.power != 0.5 or grid.error != "absolute":
            raise ValueError(
                "design_map: method='sine' is a closed form of the intersection kernel with "
                f"absolute error; got {grid.name!r}, {grid.error!r}. Use method='refined'."
            )
        super().__init__(grid, "sine")

    def solve(self, n_columns: int, options: dict[str, Any]) -> dict[str, np.ndarray]:
        frequencies, weights = sine_design(self.grid.high, n_columns)
        return {"frequencies": frequencies, "weights": weights}

    def finish(
        self, arrays: dict[str, np.ndarray], lower_bound: float, options: dict[str, Any]
    ) -> Design:
        frequencies, weights = arrays["frequencies"], arrays["weights"]
        grid = self.grid

        def values(x: np.ndarray) -> np.ndarray:
            return np.sqrt(weights) * np.sin(np.multiply.outer(x, frequencies))

        points = np.linspace(0, grid.high, 1601)
        phi = values(points)
        miss = float(np.max(np.abs(np.minimum.outer(points, points) - phi @ phi.T)))
        # e(x, y) has slope at most 1 + Σ aω in each variable; half a step in both reaches all
        slope = 1 + float(weights @ frequencies)
        bound = miss + slope * (points[1] - points[0])
        certificate = DesignCertificate(
            bound, "grid of 1601² pairs and slopes", True, 0, 0, False, lower_bound,
            miss / lower_bound if lower_bound > 0 else np.inf,
        )  # fmt: skip
        return Design(
            kernel=grid.name,
            method="sine",
            error="absolute",
            domain=(grid.low, grid.high) if grid.values is None else grid.values,
            n_columns=frequencies.size,
            frequencies=frequencies,
            weights=weights,
            max_error=miss,
            rms=_grid_rms(grid, values),
            certificate=certificate,
            homogeneous=True,
            objective=miss,
        )


def _one(solver: Any, n_columns: int, options: dict[str, Any], cache: bool) -> Design:
    """One size: from the cache, or solved and stored."""
    key = _key(solver, n_columns, options)
    found = store.load(key) if cache else None
    if found is None:
        solved = solver.solve(n_columns, options)
        lower = 0.0 if solver.grid is None else rank_bound(solver.grid, n_columns)[0]
        if cache:
            store.save(key, {"lower_bound": lower / solver.unit}, solved)
    else:
        lower, solved = float(found[0]["lower_bound"]) * solver.unit, found[1]
    return solver.finish(dict(solved), lower, options)


def _least(solver: Any, max_error: float, options: dict[str, Any], cache: bool) -> Design:
    """The least D with an error of at most `max_error`: doubling, then bisection."""
    norm = options["norm"]

    def size_of(design: Design) -> float:
        return design.max_error if norm == "max" else design.objective

    largest = _LARGEST
    if solver.method == "lp":  # the paper's first program says how many are enough
        largest = min(_LARGEST, solver.enough_columns(max_error, norm) or _LARGEST)
    best, failed, tried = None, 0, 1
    while True:
        design = _one(solver, tried, options, cache)
        if best is None or size_of(design) < size_of(best):
            best = design
        if size_of(design) <= max_error:
            break
        failed = tried
        if tried == largest:
            raise DesignError(
                f"design_map: no {solver.method} map of up to {largest} columns has an error of at "
                f"most {max_error:.3g}; the best found has {best.n_columns} columns and "
                f"{size_of(best):.3g} (it is the attribute .best of this exception). Relax "
                "max_error, shorten the domain, or use method='minimax'.",
                best=best,
            )
        tried = min(2 * tried, largest)
    while tried - failed > 1:
        middle = (tried + failed) // 2
        smaller = _one(solver, middle, options, cache)
        if size_of(smaller) <= max_error:
            design, tried = smaller, middle
        else:
            failed = middle
    return design


def _plain(values: np.ndarray) -> Any:
    return tuple(float(v) for v in values) if values.size == 2 else values


def _values_for_rms(low: float, high: float, values: Any, homogeneous: bool) -> np.ndarray:
    if values is not None:
        return np.r_[0.0, values] if homogeneous else np.asarray(values)
    return np.linspace(0.0 if homogeneous else low, high, 256)


def _cosine_rms(problem: Problem, pair: tuple[np.ndarray, np.ndarray]) -> float:
    """Root mean square of the kernel's error over pairs (of the relative one, where k > 0)."""
    if isinstance(problem.domain, str):
        values = np.linspace(0, 1, 256)
    else:
        low, high = problem.domain[0], problem.domain[-1]
        chosen = problem.domain if problem.domain.size > 2 else None
        values = _values_for_rms(low, high, chosen, problem.homogeneous)
    gamma = problem.gamma if problem.homogeneous else 0.0
    phi = cosine_values(values, *pair, gamma)
    if problem.homogeneous:
        positive = values > 0
        place = np.log(np.where(positive, values, 1.0))
        root = np.where(positive, values, 0.0) ** (gamma / 2)
        exact = np.outer(root, root) * problem.signature(np.abs(np.subtract.outer(place, place)))
    else:
        lag = np.abs(np.subtract.outer(values, values))
        if problem.period is not None:
            lag = np.mod(lag, problem.period)
            lag = np.minimum(lag, problem.period - lag)
        exact = problem.signature(lag)
    return _rms(exact, phi @ phi.T, problem.error)


def _grid_rms(grid: GridKernel, curve: Callable[[np.ndarray], np.ndarray]) -> float:
    values = _values_for_rms(grid.low, grid.high, grid.values, grid.log)
    low = grid.low if grid.log else values[0]
    # between 0 and the domain's low end the map is clipped; zero itself is exact
    inside = np.maximum(values, low)
    phi = curve(inside) * (values > 0 if grid.log else np.ones(values.size))[:, None]
    exact = grid.component(values[:, None], values[None, :])
    return _rms(exact, phi @ phi.T, grid.error)


def _rms(exact: np.ndarray, approximate: np.ndarray, error: str) -> float:
    miss = approximate - exact
    if error == "relative":
        miss = miss[exact > 0] / exact[exact > 0]
    return float(np.sqrt(np.mean(miss**2)))
