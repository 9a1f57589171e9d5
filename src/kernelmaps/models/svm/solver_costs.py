r"""Predicted costs of the two solvers: the cheaper one is taken at once.

Coordinate descent converges linearly, at a rate that depends on the dual's diagonal
:math:`\|ψ_i - m\|^2` in units of :math:`1/(c_iℓ'')`, the strong convexity of the conjugate loss.
The number of visits to an example grows as

.. math:: κ = c\,ℓ''\, \overline{\|ψ - m\|^2},

the means of costs and norms taken over the examples (:mod:`.scale`). Newton's method, and the
interior-point method of losses with corners, need few steps more where κ grows (it is their
logarithm that counts), each of which takes some passes over the rows. Their passes are shorter than
visits, but not shared by the outputs.

Of losses with corners and small costs, nearly all dual variables are at their bounds, and a few
conditional gradient steps (:mod:`..solvers.conditional_gradient`) find those that are not. How many
depends on the ratio of the dual's second derivative to its first one along the bounds
(:meth:`.scale.MappedSample.bound_ratio`).

The constants were read off times of one core of an ARM Neoverse N1: splines of order 0, 1 and 2 and
trigonometric functions, three losses, C from 0.001 to 1000, 2000 × 50 and 10,000 × 20 values. Their
ratios matter, which are similar on other machines; a wrong choice near the crossing costs little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..rows.band_rows import COSTS as GRAM_COSTS
from ..rows.band_rows import MEMORY_LIMIT


@dataclass(frozen=True)
class SolverCosts:
    """Times of the solvers' operations in seconds, and how many of them a fit takes."""

    # Coordinate descent. Each visit to an example looks its values up: 23 to 30 ns each (splines),
    # 36 to 47 ns (trigonometric), 10 to 15 ns (sparse codes).
    per_value: float = 12e-9
    per_function: float = 3.3e-9  # of a value's band
    per_code: float = 8e-9  # the same for dense rows of integers: usps, 10 lanes
    per_visit: float = 120e-9  # the same for each example: codes of 2000 × 180 and 32,561 × 123
    shared_lanes: float = 1.5  # outputs that take as long as what is done once for all of them
    first_visits: float = 6.0  # visits to each example for κ → 0
    visits_per_ratio: float = 4.0  # further visits per κ; measured: 2.5 to 6
    # The same of losses with corners: for many more rows than weights (measured: 1.8 to 3.1), and
    # for as many weights as rows (0.2 weights a row: 5.5 for noise, 1.4 to 2.8 for spambase). They
    # are fewer where classes differ, since fewer examples are active: their difference explains
    # 0.003 of the variance of 2000 × 50 noisy rows, 0.06 of spambase.
    visits_with_corners: float = 2.3
    visits_of_weights: float = 14.0
    visits_of_difference: float = 100.0  # by how much an explained share of one divides them
    # An example is visited while it is active for any output: the share of further visits for each
    # doubling of the outputs (three classes of 0/1 columns: 0.9 to 1.5).
    visits_of_outputs: float = 1.0
    measured_gap: float = 1e-3  # the relative duality gap that visits were counted to
    # Losses with corners: epochs, in which few examples are active, per visit to each example
    # (measured: 3 to 7), and the time of one besides its visits.
    epochs_per_visit: float = 4.0
    per_epoch: float = 1e-4

    # Newton's method: passes over the bands of the rows, of 2 ns for a value with four functions.
    per_entry: float = 0.55e-9  # a function of a value's band, in a pass
    per_located_value: float = 10e-9  # once, or in each pass
    per_pass: float = 5e-5  # what a pass does beside its sums
    per_row: float = 1e-7  # losses and their derivatives, in a step
    passes: float = 14.0  # in a step: products, the gradient, blocks, scores
    steps: float = 2.0  # for κ → 0; measured: 1 to 4
    steps_per_digit: float = 1.7  # further steps for each factor of ten in κ; measured: 1 to 3

    # The interior-point method: the same, read off fits of the hinge loss to 2000 × 50 values, 0/1
    # columns, spambase and adult one-hot.
    interior_steps: float = 11.0  # measured: 5 to 17
    interior_steps_per_digit: float = 1.5  # measured: 1 to 3
    interior_passes: float = 14.0
    interior_passes_per_digit: float = 16.0  # a product takes two
    # Hessians that are factorised, per step (measured: 0.15 to 0.4), where products of more passes
    # would take longer; those before the factor take as long as it.
    factors_per_step: float = 0.33
    per_interior_value: float = 1.2e-9  # a value in a pass, beside its functions
    per_interior_step: float = 7e-4
    per_interior_row: float = 3e-7  # in a step

    # Conditional gradient steps of losses with corners, to the measured gap: 1 to 6 for ratios up
    # to 0.5 (2000 × 50, 10,000 × 20, 0/1 columns, spambase), 7 and 18 (magic) for 0.56.
    first_gradient_steps: float = 1.0
    gradient_steps_per_square: float = 40.0  # further steps per square of the ratio
    per_sorted_row: float = 7e-8  # in a step
    bound_rows: int = 256  # whose products give the ratio, exact to a quarter

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
    band : int
        Functions of a value that are not zero.
    n_outputs : int
    n_weights : int
        Of one output.
    curvature_ratio : float
        κ.
    tol : float
        Relative duality gap.
    has_corners : bool
        Whether the derivative of the loss jumps.
    of_codes : bool
        Whether rows are dense integers, whose functions are looked up.
    bound_ratio : float
        That of :class:`.scale.MappedSample`, the largest of the outputs; infinity for smooth
        losses.
    """

    n_rows: int
    n_values: int
    band: int
    n_outputs: int
    n_weights: int
    curvature_ratio: float
    tol: float
    has_corners: bool
    of_codes: bool = False
    bound_ratio: float = np.inf

    @property
    def visits(self) -> float:
        """Visits of coordinate descent to each example."""
        digits = np.log(min(self.tol, 0.1)) / np.log(COSTS.measured_gap)  # linear convergence
        per_ratio = COSTS.visits_per_ratio
        if self.has_corners:
            weights_per_row = min(self.n_weights / self.n_rows, 1.0)
            explained = self.bound_ratio / (self.n_rows * max(self.curvature_ratio, 1e-300))
            of_weights = COSTS.visits_of_weights / (1 + COSTS.visits_of_difference * explained)
            per_ratio = COSTS.visits_with_corners + of_weights * weights_per_row
            per_ratio *= 1 + COSTS.visits_of_outputs * np.log2(self.n_outputs)
        return COSTS.first_visits + per_ratio * self.curvature_ratio * digits

    @property
    def _visit_seconds(self) -> float:
        """Of one visit to each example; of losses with corners, with that of epochs."""
        lanes = (COSTS.shared_lanes + self.n_outputs) / (COSTS.shared_lanes + 1)
        per_value = COSTS.per_value + COSTS.per_function * self.band
        if self.of_codes:
            per_value = COSTS.per_code
        a_visit = per_value * self.n_values + COSTS.per_visit * self.n_rows
        epochs = COSTS.epochs_per_visit if self.has_corners else 0.0
        return a_visit * lanes + epochs * COSTS.per_epoch

    @property
    def dual_seconds(self) -> float:
        return self._visit_seconds * self.visits

    @property
    def max_visits(self) -> float:
        """Visits to each example after which coordinate descent has taken longer than predicted.

        It has then taken as long as the other solver takes, and twice what was predicted: both
        together take at most twice the time of the better one, or of its prediction.
        """
        return max(2 * self.visits, self.primal_seconds / self._visit_seconds)

    @property
    def gradient_steps(self) -> float:
        """Conditional gradient steps of each output; their gap shrinks as one over the steps."""
        further = COSTS.gradient_steps_per_square * self.bound_ratio**2
        return COSTS.first_gradient_steps + further * COSTS.measured_gap / self.tol

    @property
    def max_gradient_steps(self) -> int:
        """Conditional gradient steps to take before other solvers; 0 where these cost less."""
        a_step = 2 * self._pass_seconds + COSTS.per_sorted_row * self.n_rows
        a_step *= self.n_outputs
        seconds = self._located_once + (1 + self.gradient_steps) * a_step
        if seconds > min(self.primal_seconds, self.dual_seconds):
            return 0
        return int(2 * (1 + self.gradient_steps))

    @property
    def primal_seconds(self) -> float:
        digits = np.log10(1 + self.curvature_ratio)
        steps, seconds = COSTS.steps + COSTS.steps_per_digit * digits, COSTS.per_row * self.n_rows
        if self.has_corners:
            steps = COSTS.interior_steps + COSTS.interior_steps_per_digit * digits
            seconds = COSTS.per_interior_step + COSTS.per_interior_row * self.n_rows
            seconds += COSTS.interior_passes * self._pass_seconds
            products = COSTS.interior_passes_per_digit * digits * self._pass_seconds
            seconds += min(products, 2 * COSTS.factors_per_step * self._factor_seconds)
        else:
            seconds += COSTS.passes * self._pass_seconds
        return self._located_once + self.n_outputs * steps * seconds

    @property
    def _pass_seconds(self) -> float:
        """Of a pass over bands."""
        per_value = COSTS.per_interior_value if self.has_corners else 0.0
        per_value += COSTS.per_entry * self.band
        return COSTS.per_pass + per_value * self.n_values + self._located_each

    @property
    def _factor_seconds(self) -> float:
        """Of forming the Hessian and factorising it."""
        pairs = GRAM_COSTS.per_pair * (self.n_values * self.band / self.n_rows) ** 2 / 2
        a_row = min(pairs, GRAM_COSTS.per_multiplication * self.n_weights**2)
        return self.n_rows * a_row + GRAM_COSTS.per_multiplication * self.n_weights**3 / 3

    @property
    def _locates_once(self) -> bool:
        """Whether bands are stored, not computed in each pass."""
        return 8 * self.n_values * self.band <= MEMORY_LIMIT

    @property
    def _located_once(self) -> float:
        """Seconds, before the first pass over bands."""
        return COSTS.per_located_value * self.n_values if self._locates_once else 0.0

    @property
    def _located_each(self) -> float:
        """Seconds, in each pass over bands."""
        return 0.0 if self._locates_once else COSTS.per_located_value * self.n_values

    @property
    def cheaper(self) -> str:
        """The name of the solver that takes less time."""
        return "primal" if self.primal_seconds < self.dual_seconds else "dual"
