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

# κ beyond which a penalty lies below the rounding of the losses, and Newton's method has nothing to
# go by; the gap of coordinate descent stays at most twice the objective.
WORST_CONDITION = 1e12
SAMPLE_ROWS = 32  # for κ: the mean of many terms is exact to some percent
_SECONDS_PER_VALUE = 30e-9  # of a visit; between 20 (order 0) and 50 (log loss, trigonometric)
_SHARED_LANES = 1.5  # lanes that take as long as what is done once for all of them
_FIRST_VISITS, _VISITS_PER_CONDITION = 6.0, 4.0  # the latter between 2.5 and 6, to a gap of
_TOLERANCE = 1e-3
# Newton's method: products of columns, entries of ψ(X) that are read for a score or a gradient
# (stored, or computed anew), and what a step does beside them, per step and per row.
_SECONDS_PER_PRODUCT = 1 / 1.5e10
_SECONDS_PER_ENTRY, _SECONDS_PER_COMPUTED_ENTRY = 0.5e-9, 3e-9
_SECONDS_PER_STEP, _SECONDS_PER_ROW = 3e-4, 5e-8
# Hessians, and steps with each, for κ < 1 and for each further factor of ten; rounded corners need
# more of them, but few rows lie on a corner.
_HESSIANS, _STEPS_PER_HESSIAN = 1.0, 8.0
_HESSIANS_WITH_CORNERS, _STEPS_WITH_CORNERS, _ROWS_ON_CORNERS = 15.0, 4.5, 1 / 6


@dataclass(frozen=True)
class TrainingSize:
    """What the cost of a fit depends on.

    Attributes
    ----------
    n_rows : int
    n_values : int
        Values of all rows that are looked up: those that are stored, of sparse rows.
    n_columns : int
        Coefficients of an output.
    n_outputs : int
    condition : float
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
    condition: float
    tol: float
    has_corners: bool

    @property
    def visits(self) -> float:
        """Visits of coordinate descent to each example."""
        digits = np.log(min(self.tol, 0.1)) / np.log(_TOLERANCE)  # linear convergence
        return _FIRST_VISITS + _VISITS_PER_CONDITION * self.condition * digits

    @property
    def dual_seconds(self) -> float:
        lanes = (_SHARED_LANES + self.n_outputs) / (_SHARED_LANES + 1)
        return _SECONDS_PER_VALUE * self.n_values * lanes * self.visits

    @property
    def primal_seconds(self) -> float:
        n, d, growth = self.n_rows, self.n_columns, 1 + np.log10(1 + self.condition)
        hessians, steps, share = _HESSIANS * growth, _STEPS_PER_HESSIAN, 1.0
        if self.has_corners:
            hessians, steps = _HESSIANS_WITH_CORNERS * growth, _STEPS_WITH_CORNERS
            share = _ROWS_ON_CORNERS
        stored = 8 * n * d <= MEMORY_LIMIT
        entry = _SECONDS_PER_ENTRY if stored else _SECONDS_PER_COMPUTED_ENTRY
        a_step = _SECONDS_PER_STEP + _SECONDS_PER_ROW * n + 2 * entry * n * d
        a_hessian = _SECONDS_PER_PRODUCT * (share * n * d**2 + d**3 / 3)
        map_once = _SECONDS_PER_COMPUTED_ENTRY * n * d
        return map_once + self.n_outputs * hessians * (a_hessian + steps * a_step)

    @property
    def cheaper(self) -> str:
        """The name of the solver that takes less time."""
        return "primal" if self.primal_seconds < self.dual_seconds else "dual"
