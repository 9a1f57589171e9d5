r"""``design_map``: the best map for a kernel, a domain and a size or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arguments import check_choice, check_count, check_positive
from ..exceptions import DesignError
from ..progress import announce
from ..seeding import seed_of
from ..threads import limit_blas
from . import cache as store
from . import solvers
from .gram import GridKernel, grid_kernel, rank_bound
from .lp import fit_error, frequency_pool
from .multidim import design_joint_map
from .problem import (
    NotPositiveDefiniteError,
    Problem,
    build_problem,
    check_domain,
    feature_kernel,
    of_lags,
)
from .result import Design

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
    check_arguments(n_components, max_error, method, norm, effort)
    if np.ndim(domain) == 2:
        return _joint(kernel, n_components, domain, method, period, progress)
    with limit_blas(1):  # matrices are small: threads of BLAS would only wait
        solver = make_solver(
            kernel, domain=domain, error=error, method=method, norm=norm, lags=lags, period=period,
            homogeneous=homogeneous, random_state=random_state, effort=effort, progress=progress,
        )  # fmt: skip
        if max_error is not None:
            return _least(solver, float(max_error), cache)
        return _one(solver, int(n_components or 0), cache)


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
) -> solvers.Solver:
    """What solves designs of any size for these arguments."""
    search = solvers.Search(seed_of(random_state), int(effort), progress)
    if method in COSINE_METHODS:
        problem = build_problem(
            kernel, domain, error, lags=lags, period=period, homogeneous=homogeneous, norm=norm
        )
        _refuse_indefinite(problem, kernel)
        return solvers.CosineSolver(problem, _grid_or_none(problem, error), method, search)
    if norm != "max" or lags is not None or period is not None or isinstance(domain, str):
        raise ValueError(
            f"design_map: method={method!r} needs a range or a set of values as domain, "
            "norm='max' and neither lags nor period."
        )
    beside = None
    if feature_kernel(kernel, homogeneous).signature is None:
        check_domain(domain, False)
    else:  # a function as error is refused by `grid_kernel`, which knows what tables can do
        wanted = "absolute" if callable(error) else error
        beside = build_problem(kernel, domain, wanted, homogeneous=homogeneous)
    grid = grid_kernel(kernel, domain, error, homogeneous)
    if method != "sine":
        return solvers.TableSolver(grid, method, search, beside)
    if not solvers.has_sines(grid):
        raise ValueError(
            "design_map: method='sine' is a closed form of the intersection kernel with "
            f"absolute error; got {grid.kernel.name!r}, {grid.error!r}. Use method='refined'."
        )
    return solvers.SineSolver(grid, method, search)


def design_key(kernel: Any, n_components: int, **arguments: Any) -> str:
    """The content key under which a design is stored."""
    return make_solver(kernel, **arguments).key(n_components)


def check_arguments(n_components: Any, max_error: Any, method: str, norm: str, effort: int) -> None:
    """Refuse wrong arguments of `design_map` before the work."""
    if (n_components is None) == (max_error is None):
        raise ValueError("design_map: give either n_components= or max_error=, and only one.")
    if n_components is not None:
        check_count("design_map", "n_components", n_components)
    if max_error is not None:
        check_positive("design_map", "max_error", max_error, "positive")
    check_choice("design_map", "method", method, METHODS)
    if norm not in ("max", "sum"):
        raise ValueError(f"design_map: norm must be 'max' (eq. 5) or 'sum' (eq. 4), got {norm!r}.")
    check_count("design_map", "effort", effort)


def _grid_or_none(problem: Problem, error: Any) -> GridKernel | None:
    """The kernel on a grid of values, where the rank bound applies to the problem."""
    kernel, domain = problem.kernel, problem.domain
    if callable(error):
        return None
    if problem.period is not None:
        kernel, domain = of_lags(kernel.name, problem.signature), (0.0, problem.period * 63 / 64)
    elif problem.tail:
        domain = 1e-5, 1.0
    elif problem.points is not None and np.size(domain) == 2:
        return None  # lags without values
    return grid_kernel(kernel, domain, error)


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
    distance = fit_error(problem, frequency_pool(problem, 31, halvings=1))
    raise NotPositiveDefiniteError(
        f"design_map: the signature {problem.kernel.name!r} is not positive definite: its Gram "
        f"matrix on {size} even points of the domain has the eigenvalue {least:.3g} (largest "
        f"{most:.3g}). No non-negative mixture of cosines fits it; the best one found misses it by "
        f"{distance:.3g} ({distance / problem.scale:.1%} of its peak). Check the formula, or use "
        "its positive-definite part."
    )


def _one(solver: solvers.Solver, n_columns: int, cache: bool) -> Design:
    """One size: from the cache, or solved and stored."""
    key = solver.key(n_columns)
    found = store.load(key) if cache else None
    if found is None:
        solved = solver.solve(n_columns)
        lower = 0.0 if solver.grid is None else rank_bound(solver.grid, n_columns)[0]
        if cache:
            store.save(key, {"lower_bound": lower / solver.unit}, solved)
    else:
        lower, solved = float(found[0]["lower_bound"]) * solver.unit, found[1]
    return solver.finish(dict(solved), lower)


def _least(solver: solvers.Solver, max_error: float, cache: bool) -> Design:
    """The least D with an error of at most `max_error`: doubling, then bisection."""
    largest = min(solvers.LARGEST, solver.enough_columns(max_error) or solvers.LARGEST)
    holding, failed, tried, designs = 0, 0, 1, []
    while holding - failed != 1:
        designs.append(_one(solver, tried, cache))
        columns, error = designs[-1].n_columns, designs[-1].objective
        announce(
            f"{columns} column{'s' * (columns > 1)}: error {error:.3g}, at most {max_error:.3g} "
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
                "method='minimax'.",
                best=best,
            )
        tried = (holding + failed) // 2 if holding else min(2 * tried, largest)
    return held
