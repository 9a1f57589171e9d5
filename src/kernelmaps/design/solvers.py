r"""Solvers for designs of any size: cosines, tables, sines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .. import storage
from .certify import (
    DesignCertificate,
    Proof,
    certified,
    certify_cosines,
    table_everywhere,
    table_to_zero,
)
from .gram import GridKernel
from .lp import bounded_lp, columns, frequency_pool, harmonic_design
from .problem import Problem
from .refine import Search, pool_design, refined_design
from .result import Design, cosines_spec, sines_spec, values_of
from .tables import RankTable, eigen_table, minimax_table, sine_design

LARGEST = 48
"""Columns that a search for the least size goes up to."""
VERSION = {"minimax": 2}
"""Raised for a method when its designs improve; others are at 1."""

Arrays = dict[str, np.ndarray]


class Solver(ABC):
    """Designs of one kernel, domain, error and method, in any size.

    Parameters
    ----------
    grid : GridKernel or None
        The kernel on a grid of values, where the rank bound applies.
    method : str
    search : Search
    """

    unit, norm = 1.0, "max"

    def __init__(self, grid: GridKernel | None, method: str, search: Search) -> None:
        self.grid, self.method, self.search = grid, method, search

    @abstractmethod
    def identity(self) -> tuple[dict[str, Any], Arrays]:
        """Numbers and arrays that tell its designs from those of others."""

    @abstractmethod
    def solve(self, n_columns: int) -> Arrays:
        """A design as arrays: what the cache stores."""

    @abstractmethod
    def finish(self, arrays: Arrays, lower_bound: float) -> Design:
        """The design of the arrays, with its certificate."""

    def enough_columns(self, max_error: float) -> int:
        """An upper bound on the columns for an error; 0 if none is known."""
        return 0

    def key(self, n_columns: int) -> str:
        """The content key under which a design is stored."""
        header, arrays = self.identity()
        header |= {"columns": n_columns, "method": self.method, "norm": self.norm}
        header |= {"seed": self.search.seed, "effort": self.search.effort}
        header["solver"] = VERSION.get(self.method, 1)
        return storage.digest("design-key", header, arrays)

    def _design(
        self,
        of: Problem | GridKernel,
        n_columns: int,
        error: float,
        certificate: DesignCertificate,
        **own: Any,
    ) -> Design:
        design = Design(
            kernel=of.kernel.name,
            method=self.method,
            error=of.error,
            domain=_domain(of.domain),
            n_columns=n_columns,
            max_error=error,
            rms=np.nan,
            certificate=certificate,
            homogeneous=of.kernel.homogeneous,
            gamma=of.kernel.gamma,
            **({"objective": error} | own),
        )
        return design.replace(rms=_rms(design, of.kernel.component))


class CosineSolver(Solver):
    """Cosine designs of one problem, any size."""

    def __init__(
        self, problem: Problem, grid: GridKernel | None, method: str, search: Search
    ) -> None:
        super().__init__(grid, method, search)
        self.problem, self.unit, self.norm = problem, problem.unit, problem.norm

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

    def enough_columns(self, max_error: float) -> int:
        """Columns of the paper's first program, an upper bound on the least D; 0 if it has none."""
        if self.method != "lp":
            return 0
        pool = frequency_pool(self.problem, 31, halvings=1)
        weights = bounded_lp(self.problem, pool, max_error)
        if weights is None:
            return 0
        return columns(pool[weights > 1e-9 * np.max(weights)])

    def finish(self, arrays: Arrays, lower_bound: float) -> Design:
        problem, cosines = self.problem, (arrays["frequencies"], arrays["weights"])
        if problem.tail:
            reach = 2 / problem.kernel.gamma * np.log(2 * np.sum(cosines[1]) / 1e-9)
            problem = replace(problem, span=min(reach, 60.0))
        n_columns = columns(cosines[0])
        certificate = certify_cosines(problem, cosines, n_columns, lower_bound)
        error, objective = problem.max_error(cosines), problem.cost(cosines)
        return self._design(
            problem, n_columns, error, certificate, norm=self.norm, objective=objective, **arrays
        )


class TableSolver(Solver):
    """Tables of one kernel, any size; `problem` is that of cosines beside it, if there is one."""

    grid: GridKernel

    def __init__(
        self, grid: GridKernel, method: str, search: Search, problem: Problem | None = None
    ) -> None:
        super().__init__(grid, method, search)
        self.problem = problem

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
        table = RankTable(grid, arrays["coefficients"], arrays["nodes"], not grid.rough)
        error, proof = table.max_error(), table_everywhere(table)
        certificate = certified(
            proof,
            error,
            lower_bound,
            locally_optimal=self.method == "minimax",
            bound_to_zero=table_to_zero(table, proof.bound),
        )
        n_columns = table.coefficients.shape[1]
        return self._design(grid, n_columns, error, certificate, table=table)


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
        proof = Proof(bound, miss, "grid of 1601² pairs and slopes")
        certificate = certified(proof, miss, lower_bound, bound_to_zero=bound)
        return self._design(self.grid, len(arrays["weights"]), miss, certificate, **arrays)


def _domain(domain: Any) -> Any:
    """A domain as a result states it: a name, two ends, or the values themselves."""
    if isinstance(domain, str) or len(domain) != 2:
        return domain
    return tuple(float(end) for end in domain)


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
