r"""Predicted costs of the two solvers: the cheaper one is taken at once.

Coordinate descent converges linearly, at a rate that depends on the dual's diagonal
:math:`\|ψ_i - m\|^2` in units of :math:`1/(c_iℓ'')`, the strong convexity of the conjugate loss.
The number of visits to an example grows as

.. math:: κ = c\,ℓ''\, \overline{\|ψ - m\|^2},

the means of costs and norms taken over the examples (:mod:`.scale`). Newton's method needs few
steps more where κ grows (it is their logarithm that counts), but each costs a product of all pairs
of columns.

The constants were read off times of one core of an ARM Neoverse N1: splines of order 0, 1 and 2 and
trigonometric functions, three losses, C from 0.001 to 1000, 2000 × 50 and 10,000 × 20 values. Their
ratios matter, which are similar on other machines; a wrong choice near the crossing costs little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..rows.mapped import MEMORY_LIMIT


@dataclass(frozen=True)
class SolverCosts:
    """Times of the solvers' operations in seconds, and how many of them a fit takes."""

    # Coordinate descent. Each visit to an example looks its values up: 20 ns (order 0) to 50 ns
    # (log loss, trigonometric) each.
    per_value: float = 30e-9
    per_visit: float = 120e-9  # the same for each example: codes of 2000 × 180 and 32,561 × 123
    shared_lanes: float = 1.5  # outputs that take as long as what is done once for all of them
    first_visits: float = 6.0  # visits to each example for κ → 0
    visits_per_ratio: float = 4.0  # further visits per κ; measured: 2.5 to 6
    measured_gap: float = 1e-3  # the relative duality gap that visits were counted to

    # Newton's method.
    per_product: float = 1 / 1.5e10  # of two columns, per row: a matrix product of BLAS
    per_entry: float = 0.5e-9  # of a stored ψ(X) that is read for a score or a gradient
    per_computed_entry: float = 3e-9  # of ψ(X) that is computed anew
    per_step: float = 3e-4  # what a step does beside its sums over entries
    per_row: float = 5e-8  # the same for each row: losses and their derivatives
    hessians: float = 1.0  # for κ < 1, and for each further factor of ten
    steps_per_hessian: float = 8.0
    # Smoothed corners need more Hessians, but few rows lie on a corner.
    hessians_with_corners: float = 15.0
    steps_with_corners: float = 4.5
    rows_on_corners: float = 1 / 6

    # κ beyond which a penalty lies below the rounding of the losses, and Newton's method has
    # nothing to go by; the gap of coordinate descent stays at most twice the objective.
    max_curvature_ratio: float = 1e12
    sample_rows: int = 32  # whose norms give κ: their mean is exact to some percent


COSTS = SolverCosts()


@dataclass(frozen=True)
class TrainingSize:
    """What the cost of a fit depends on.

    Attributes
    ----------
    n_rows : int
    n_values : int
        Values of all rows that are looked up: those that are stored, of sparse rows; of columns of
        two values, those that are not the smaller one.
    n_columns : int
        Coefficients of an output.
    n_outputs : int
    curvature_ratio : float
        κ.
    tol : float
        Relative duality gap.
    has_corners : bool
        Whether the derivative of the loss jumps.
    """

    n_rows: int
    n_values: int
    n_columns: int
    n_outputs: int
    curvature_ratio: float
    tol: float
    has_corners: bool

    @property
    def visits(self) -> float:
        """Visits of coordinate descent to each example."""
        digits = np.log(min(self.tol, 0.1)) / np.log(COSTS.measured_gap)  # linear convergence
        return COSTS.first_visits + COSTS.visits_per_ratio * self.curvature_ratio * digits

    @property
    def dual_seconds(self) -> float:
        lanes = (COSTS.shared_lanes + self.n_outputs) / (COSTS.shared_lanes + 1)
        a_visit = COSTS.per_value * self.n_values + COSTS.per_visit * self.n_rows
        return a_visit * lanes * self.visits

    @property
    def primal_seconds(self) -> float:
        n, d, growth = self.n_rows, self.n_columns, 1 + np.log10(1 + self.curvature_ratio)
        hessians, steps, share = COSTS.hessians * growth, COSTS.steps_per_hessian, 1.0
        if self.has_corners:
            hessians, steps = COSTS.hessians_with_corners * growth, COSTS.steps_with_corners
            share = COSTS.rows_on_corners
        stored = 8 * n * d <= MEMORY_LIMIT
        entry = COSTS.per_entry if stored else COSTS.per_computed_entry
        a_step = COSTS.per_step + COSTS.per_row * n + 2 * entry * n * d
        a_hessian = COSTS.per_product * (share * n * d**2 + d**3 / 3)
        map_once = COSTS.per_computed_entry * n * d
        return map_once + self.n_outputs * hessians * (a_hessian + steps * a_step)

    @property
    def cheaper(self) -> str:
        """The name of the solver that takes less time."""
        return "primal" if self.primal_seconds < self.dual_seconds else "dual"
