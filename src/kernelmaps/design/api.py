r"""``design_map``: the best map for a kernel, a domain and a size or an error; its solvers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from .._util import storage
from .._util.arguments import argument, check_choice, check_count, check_positive, seed_of
from .._util.threads import limit_blas
from ..engine import evaluate
from ..exceptions import DesignError
from ..kernels import Kernel
from . import approximation, certify
from . import result as store
from .approximation import CosineProblem
from .cosines import count_columns, refined_design
from .joint import design_joint_map
from .rank_tables import GridKernel, RankTable, grid_kernel, minimax_table, rank_bound
from .result import Design, cosines_spec

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
        That of cosines: the one that is solved, or that a table starts from.
    method : str
    seed : int
        Of the starts.
    progress : bool, optional
    """

    grid: GridKernel | None
    problem: CosineProblem | None
    method: str
    seed: int = 0
    progress: bool | None = None
    unit: ClassVar[float] = 1.0  # of the error that is solved for

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
        header |= {"columns": n_columns, "method": self.method, "seed": self.seed}
        header["solver"] = VERSION.get(self.method, 1)
        return storage.digest("design-key", header, arrays)

    def _design(
        self,
        problem: CosineProblem | GridKernel,
        n_columns: int,
        error: float,
        certificate: certify.DesignCertificate,
        **fields: Any,
    ) -> Design:
        domain = problem.domain  # a name, two ends, or the values themselves
        design = Design(
            kernel=problem.kernel.name,
            method=self.method,
            error=problem.error,
            domain=tuple(map(float, domain)) if len(domain) == 2 else domain,
            n_columns=n_columns,
            max_error=error,
            rms=np.nan,
            certificate=certificate,
            homogeneous=problem.kernel.homogeneous,
            gamma=problem.kernel.gamma,
            **fields,
        )
        return replace(design, rms=_rms(design, problem.kernel.component))


class CosineSolver(DesignSolver):
    """Cosine designs of one problem, any size."""

    problem: CosineProblem

    @property
    def unit(self) -> float:  # type: ignore[override]
        return self.problem.unit

    def identity(self) -> tuple[dict[str, Any], Arrays]:
        problem = self.problem
        sample = np.linspace(0, problem.span, 65)
        if problem.points is not None:
            sample = np.r_[sample, problem.points]
        header = {"kind": "cosines", "span": round(problem.span, 12), "tail": problem.tail}
        header |= {"discrete": problem.points is not None, "gamma": problem.kernel.gamma}
        header["homogeneous"] = problem.kernel.homogeneous
        return header, {
            # frequencies and weights depend on lags alone: the unit b^γ is left out
            "signature": np.round(problem.signature(sample), 10),
            "weight": np.round(problem.weight(sample) / problem.unit, 10),
        }

    def solve(self, n_columns: int) -> Arrays:
        frequencies, weights = refined_design(self.problem, n_columns, self.seed, self.progress)
        return {"frequencies": frequencies, "weights": weights}

    def finish(self, arrays: Arrays, lower_bound: float) -> Design:
        problem, cosines = self.problem, (arrays["frequencies"], arrays["weights"])
        if problem.tail:
            span = 2 / problem.kernel.gamma * np.log(2 * np.sum(cosines[1]) / 1e-9)
            problem = replace(problem, span=min(span, 60.0))
        n_columns = int(np.sum(count_columns(cosines[0])))
        certificate = certify.certify_cosines(problem, cosines, n_columns, lower_bound)
        return self._design(problem, n_columns, problem.max_error(cosines), certificate, **arrays)


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
        curves = []  # that the best table starts from and may not fall behind
        if self.problem is not None:
            gamma = self.problem.kernel.gamma if self.grid.log else 0.0
            cosines = refined_design(self.problem, n_columns, self.seed, self.progress)
            spec = cosines_spec(cosines, gamma)
            curves.append(lambda x: evaluate(spec, x[:, None]))
        table = minimax_table(self.grid, n_columns, curves)
        return {"coefficients": table.coefficients, "nodes": table.nodes}

    def finish(self, arrays: Arrays, lower_bound: float) -> Design:
        grid = self.grid
        table = RankTable(grid, **arrays)
        proof = certify.bound_table_everywhere(table)
        to_zero = certify.bound_table_to_zero(table, proof.bound)
        facts = {"locally_optimal": True, "bound_to_zero": to_zero}
        certificate = certify.make_certificate(proof, table.max_error, lower_bound, **facts)
        n_columns = table.coefficients.shape[1]
        return self._design(grid, n_columns, table.max_error, certificate, table=table)


def _rms(design: Design, component: Callable) -> float:
    """Root mean square of the kernel's error over pairs (of the relative one, where k > 0)."""
    low, high = design.range or (0.0, 1.0)
    values = np.linspace(0.0 if design.homogeneous else low, high, 256)
    if not isinstance(design.domain, str) and len(design.domain) > 2:
        values = np.r_[0.0, design.domain] if design.homogeneous else np.asarray(design.domain)
    phi = evaluate(design.spec, values[:, None])
    exact = component(values[:, None], values[None, :])
    miss = phi @ phi.T - exact
    if design.error == "relative":
        miss = miss[exact > 0] / exact[exact > 0]
    return float(np.sqrt(np.mean(miss**2)))


METHODS = ("refined", "minimax")


def design_map(
    kernel: Any,
    n_components: int | None = None,
    *,
    max_error: float | None = None,
    domain: Any = (1, 255),
    error: str | Callable = "absolute",
    method: str = "refined",
    homogeneous: bool | None = None,
    random_state: Any = 0,
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
        |k − k̂|, |k − k̂|/k, the error of the signature, or w(λ)|k(λ) − k̂(λ)| with your weight w.
    method : {"refined", "minimax"}, default="refined"
        "refined": the best cosines. "minimax": the best table of D columns.
    homogeneous : bool, optional
        Whether a function given as kernel is the signature of a homogeneous kernel.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the starts. Equal arguments give equal designs.
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
    if np.ndim(domain) == 2:
        if n_components is None or method != "refined" or error != "absolute" or homogeneous:
            raise ValueError(
                "design_map: a domain of several ranges needs n_components, method='refined', "
                "error='absolute' and a stationary kernel."
            )
        joint: Any = design_joint_map(
            kernel, int(n_components), domain, cache=cache, progress=progress
        )
        return joint
    with limit_blas(1):  # matrices are small: threads of BLAS would only wait
        solver = make_solver(
            kernel, domain=domain, error=error, method=method, homogeneous=homogeneous,
            random_state=random_state, progress=progress,
        )  # fmt: skip
        if max_error is not None:
            return _find_smallest(solver, float(max_error), cache)
        return _load_design(solver, int(n_components or 0), cache)


def make_solver(
    kernel: Any,
    *,
    domain: Any = (1, 255),
    error: Any = "absolute",
    method: str = "refined",
    homogeneous: bool | None = None,
    random_state: Any = 0,
    progress: bool | None = None,
) -> DesignSolver:
    """What solves designs of any size for these arguments."""
    search = method, seed_of(random_state), progress
    if method == "refined":
        problem = approximation.build_problem(kernel, domain, error, homogeneous=homogeneous)
        if not isinstance(kernel, str | Kernel):
            # Krein: a function on [−M, M] is a mixture of cosines iff it is definite on [0, M].
            places = np.linspace(0, problem.span, 161)
            gram = problem.signature(np.abs(np.subtract.outer(places, places)))
            approximation.refuse_indefinite("design_map", problem.kernel.name, gram)
        values = (1e-5, 1.0) if problem.tail else problem.domain
        within = None if callable(error) else grid_kernel(problem.kernel, values, error)
        return CosineSolver(within, problem, *search)
    if isinstance(domain, str):
        raise ValueError(
            f"design_map: {argument('method', method)} needs a range or a set of values as domain."
        )
    cosines = None
    if approximation.feature_kernel(kernel, homogeneous).signature is None:
        approximation.check_domain(domain, False)
    else:  # a function as error is refused by `grid_kernel`, which knows what tables can do
        error_name = "absolute" if callable(error) else error
        cosines = approximation.build_problem(kernel, domain, error_name, homogeneous=homogeneous)
    return TableSolver(grid_kernel(kernel, domain, error, homogeneous), cosines, *search)


def _load_design(solver: DesignSolver, n_columns: int, cache: bool) -> Design:
    """One size: from the cache, or solved and stored."""
    header, arrays = store.load_or_solve(
        solver.key(n_columns), partial(solver.entry, n_columns), cache
    )
    return solver.finish(dict(arrays), float(header["lower_bound"]) * solver.unit)


def _find_smallest(solver: DesignSolver, max_error: float, cache: bool) -> Design:
    """The least D with an error of at most `max_error`: doubling, then bisection."""
    holding, failed, tried, designs = 0, 0, 1, []
    while holding - failed != 1:
        designs.append(_load_design(solver, tried, cache))
        error = designs[-1].max_error
        if error <= max_error:
            holding, held = tried, designs[-1]
        else:
            failed = tried
        if failed == LARGEST:
            best = min(designs, key=lambda design: design.max_error)
            raise DesignError(
                f"design_map: no {solver.method} map of up to {LARGEST} columns has an error of at "
                f"most {max_error:.3g}; the best found has {best.n_columns} columns and "
                f"{best.max_error:.3g}. Allow a larger error, shorten the domain, or use "
                f"{argument('method', 'minimax')}.",
                best=best,
            )
        tried = (holding + failed) // 2 if holding else min(2 * tried, LARGEST)
    return held
