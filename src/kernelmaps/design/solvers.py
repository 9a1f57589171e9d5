r"""Solvers for designs of any size: cosines, tables, sines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .certify import DesignCertificate, certify_cosines
from .certify_tables import table_everywhere, table_to_zero
from .gram import GridKernel
from .lp import bounded_lp, columns, frequency_pool, harmonic_design
from .problem import Problem
from .refine import pool_design, refined_design
from .result import Design, cosine_values, sine_values
from .sine import sine_design
from .tables import RankTable, eigen_table, minimax_table

LARGEST = 48
"""Columns that a search for the least size goes up to."""


class CosineSolver:
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
        pool = frequency_pool(self.problem, 31, halvings=1)
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
            domain=_domain(problem.domain),
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


class TableSolver:
    """Tables of one kernel, any size."""

    unit = 1.0

    def __init__(self, grid: GridKernel, method: str, problem: Problem | None = None) -> None:
        self.grid, self.method, self.problem = grid, method, problem

    def identity(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        grid = self.grid
        header = {"kind": "table", "low": grid.low, "high": grid.high, "rough": grid.rough}
        header |= {"power": grid.power, "log": grid.log, "error": grid.error}
        values = np.zeros(0) if grid.values is None else grid.values
        sample = grid.gram(grid.nodes[::3]) / np.max(np.abs(grid.gram(grid.nodes[-1:])))
        return header, {"gram": np.round(sample, 10), "values": values}

    def solve(self, n_columns: int, options: dict[str, Any]) -> dict[str, np.ndarray]:
        if self.method == "eigen":
            table = eigen_table(self.grid, n_columns)
        else:
            table = minimax_table(self.grid, n_columns, self._others(n_columns, options))
        return {"coefficients": table.coefficients, "nodes": table.nodes}

    def _others(self, n_columns: int, options: dict[str, Any]) -> list[Callable]:
        """The maps of other methods, which the best table starts from and may not fall behind."""
        maps: list[Callable] = []
        if self.problem is not None:
            gamma = self.problem.gamma if self.problem.homogeneous else 0.0
            pair = refined_design(self.problem, n_columns, **options)
            maps.append(partial(cosine_values, frequencies=pair[0], weights=pair[1], gamma=gamma))
        if _has_sines(self.grid):
            sines = sine_design(self.grid.high, n_columns)
            maps.append(partial(sine_values, frequencies=sines[0], weights=sines[1]))
        return maps

    def enough_columns(self, max_error: float, norm: str) -> int:
        return LARGEST

    def finish(
        self, arrays: dict[str, np.ndarray], lower_bound: float, options: dict[str, Any]
    ) -> Design:
        grid = self.grid
        table = RankTable(grid, arrays["coefficients"], arrays["nodes"], not grid.rough)
        error = table.max_error()
        proof = table_everywhere(table)
        ratio = error / lower_bound if lower_bound > 0 else np.inf
        certificate = DesignCertificate(
            proof.bound, proof.found, proof.words, 0, 0, self.method == "minimax", lower_bound,
            float(ratio), table_to_zero(table, proof.bound),
        )  # fmt: skip
        return self._design(table, error, certificate, table.coefficients.shape[1], table=table)

    def _design(
        self,
        curve: Callable,
        error: float,
        certificate: DesignCertificate,
        n_columns: int,
        **own: Any,
    ) -> Design:
        grid = self.grid
        return Design(
            kernel=grid.name,
            method=self.method,
            error=grid.error,
            domain=(grid.low, grid.high) if grid.values is None else grid.values,
            n_columns=n_columns,
            max_error=error,
            rms=_grid_rms(grid, curve),
            certificate=certificate,
            homogeneous=grid.log,
            gamma=2 * grid.power if grid.log else 1.0,
            objective=error,
            **own,
        )


def _has_sines(grid: GridKernel) -> bool:
    """Whether the sines of Brownian motion are a map of the kernel."""
    return grid.name == "intersection" and grid.power == 0.5 and grid.error == "absolute"


class SineSolver(TableSolver):
    """The closed form of the intersection kernel, with weights by linear programming."""

    def __init__(self, grid: GridKernel) -> None:
        if not _has_sines(grid):
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
        values: Callable = partial(sine_values, **arrays)
        points = np.linspace(0, self.grid.high, 1601)
        phi = values(points)
        miss = float(np.max(np.abs(np.minimum.outer(points, points) - phi @ phi.T)))
        # e(x, y) has slope at most 1 + Σ aω in each variable; half a step in both reaches all
        slope = 1 + float(arrays["weights"] @ arrays["frequencies"])
        bound = miss + slope * float(points[1] - points[0])
        certificate = DesignCertificate(
            bound, miss, "grid of 1601² pairs and slopes", 0, 0, False, lower_bound,
            miss / lower_bound if lower_bound > 0 else np.inf, bound,
        )  # fmt: skip
        return self._design(values, miss, certificate, len(arrays["weights"]), **arrays)


def _domain(domain: str | np.ndarray) -> Any:
    """A domain as a result states it: a name, two ends, or the values themselves."""
    if isinstance(domain, str) or domain.size != 2:
        return domain
    return tuple(float(end) for end in domain)


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
