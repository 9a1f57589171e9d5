r"""The penalised-complexity prior on smoothing parameters, which is added to the REML criterion.

Each smoothing parameter stands for a variance that is estimated. With nearly as many of them as
rows, many small functions explain noise as well as noise does: the dispersion goes to zero. And the
variance of a linear effect is estimated from a single coefficient: of many small effects, those
that chance makes smaller would vanish. The prior prefers the simpler explanation. With :math:`σ_j`
the standard deviation of a term's function relative to the noise of a row, and m smoothing
parameters,

.. math:: -\log p = \log(1 + κσ_c) + \sum_{j \in \text{null spaces}} (g_1(σ_j) - g_1(σ_c))
          + \sum_{j \in \text{range spaces}} g_w(σ_j),
          \qquad g_w(σ) = w\log(1 + \sqrt n σ) + κσ,

.. math:: κ = \min\Bigl(\frac{2m^2}{n^2}, 3\Bigr)\sqrt n, \qquad
          w = \min\Bigl(\frac{5m}{n}, 1\Bigr)^2, \qquad σ_j ≥ σ_c \text{ for null spaces}.

In PIRLS, n is the number of rows in the two minima, and the sum of the working weights in
:math:`\sqrt n`, so that :math:`1/\sqrt n` is the standard error of a linear effect. The density is
one of σ. The criterion :math:`ℓ - \log p` is minimised over :math:`ρ = \log λ`, which is a function
of σ, without a Jacobian: the estimate is the posterior mode of σ.

The range space of a term's penalty has its curve, or the levels of a category. The null space has
what the penalty does not see (:mod:`..gam.bases`): a straight line, the indicators of missing
values and of jumps, the contrast of a category of two levels.

The first part of g is uniform in σ below :math:`1/\sqrt n`, and in log σ above: a function that the
data hardly show has to earn its place, and large ones stay as they are. The second part is
exponential (Simpson et al. 2017, *Penalising model component complexity*). In standard errors, its
rate is 2m²/n², 3 at most. For range spaces, both parts fall with the square of the rows for each
smoothing parameter. Null spaces share the variance :math:`σ_c^2`, which is nearly free, also if it
is large, as it is for collinear columns. So a model without curves is a ridge regression, a linear
effect has a larger variance if the data clearly show it, and the null space of a term is the last
to vanish.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..._util.threads import cached_property
from .levels import IndexBlocks


@dataclass(frozen=True)
class PriorOptions:
    """Constants of the prior, chosen by the errors of predictions in simulations.

    These had no effects, one, three curved ones and a hundred linear ones, with one to ten rows for
    each column (`benchmarks/bench_wide.py`).
    """

    # Rate in units of the standard error of a linear effect, for the square of the smoothing
    # parameters per row. With n = 100, 50 columns of noise have an error of 0.08, and a curved
    # effect of three among 50 columns 0.80; a rate of 3 leaves 0.08 and 1.04, and 2m/n (not its
    # square), which has 0.08 and 0.80, raises the errors of four curves by 5 to 10 % and makes
    # their bands too narrow.
    rate: float = 2.0
    # Largest rate. A linear effect with a t-statistic of about twice that survives: with a rate of
    # 2, terms fit noise where columns are four times the rows; with 8, effects as large as the
    # noise vanish.
    max_rate: float = 3.0
    # w is the square of this for each smoothing parameter per row, up to one. Larger values favour
    # linear effects: with 10m/n (not squared), their errors are 6 % smaller (8 columns, 100 and 200
    # rows), those of four curves 5 to 10 % larger (100 rows), and bands of curves cover 2 to 8 %
    # less. With 4 and with 5, errors differ by 1 %.
    range_weight: float = 5.0


PRIOR = PriorOptions()


@dataclass(frozen=True)
class SmoothingPrior:
    """The prior of some smoothing parameters.

    Attributes
    ----------
    variance : ndarray
        Variance of the functions of each smoothing parameter λ = 1, relative to the noise's.
    in_null_space : ndarray of bool
        Which of them belong to the null spaces of terms.
    total : int
        Smoothing parameters of the whole model.
    working_weight : float, optional
        Sum of the working weights, if problems do not have it as the intercept's entry of ZᵀWZ.
    """

    variance: np.ndarray
    in_null_space: np.ndarray
    total: int
    working_weight: float | None = None

    def restrict(self, groups: np.ndarray) -> SmoothingPrior:
        """The prior of some of the smoothing parameters, in the same model."""
        in_null_space = self.in_null_space[groups]
        return replace(self, variance=self.variance[groups], in_null_space=in_null_space)

    def rate(self, n_rows: float, working_weight: float) -> float:
        """Rate κ of the exponential distribution of σ.

        `working_weight` is the sum of the working weights, which is n for squared loss.
        """
        weight = self.working_weight or working_weight
        per_row = self.total / n_rows
        return min(PRIOR.rate * per_row**2, PRIOR.max_rate) * float(np.sqrt(weight))

    def range_weight(self, n_rows: float) -> float:
        """The weight w of log(1 + √nσ) for range spaces."""
        return min(PRIOR.range_weight * self.total / n_rows, 1.0) ** 2

    @property
    def offset(self) -> np.ndarray:
        """ρ of a function whose standard deviation is one."""
        return np.log(np.maximum(self.variance, 1e-300))

    def parameterisation(
        self, free: np.ndarray, n_rows: float, working_weight: float
    ) -> PriorParameterisation:
        """The prior of the smoothing parameters that are estimated, and their coordinates."""
        root_weight = float(np.sqrt(self.working_weight or working_weight))
        rate = self.rate(n_rows, working_weight)
        return PriorParameterisation(
            self.offset, self.in_null_space & free, rate, root_weight, self.range_weight(n_rows)
        )


@dataclass(frozen=True)
class PriorParameterisation:
    r"""−log p, and coordinates θ in which its constraint is a bound.

    :math:`ρ_j = o_j + θ_j + θ_c [j \text{ is of a null space}]`. Null spaces share :math:`θ_c`, the
    last coordinate, and have :math:`θ_j ≤ 0`, which is :math:`σ_j ≥ σ_c`.

    Attributes
    ----------
    offset : ndarray
        o, for which σ = exp(−(ρ − o) / 2).
    in_null_space : ndarray of bool
    rate : float
        κ.
    root_weight : float
        √n, n the sum of the working weights.
    range_weight : float
        w.
    """

    offset: np.ndarray
    in_null_space: np.ndarray
    rate: float
    root_weight: float = 0.0
    range_weight: float = 0.0

    @cached_property
    def null_spaces(self) -> np.ndarray:
        """Positions of the smoothing parameters of null spaces."""
        return np.flatnonzero(self.in_null_space)

    def to_theta(self, rho: np.ndarray) -> np.ndarray:
        """θ for some ρ."""
        theta = rho - self.offset
        if not len(self.null_spaces):
            return theta
        common = theta[self.null_spaces].max()
        theta[self.null_spaces] -= common
        return np.concatenate([theta, [common]])

    def to_rho(self, theta: np.ndarray) -> np.ndarray:
        """ρ for some θ."""
        rho = self.offset + theta[: len(self.offset)]
        if len(self.null_spaces):
            rho[self.null_spaces] += theta[-1]
        return rho

    def extend(self, free: np.ndarray) -> np.ndarray:
        """Which coordinates move if these smoothing parameters are estimated."""
        return np.concatenate([free, [True]]) if len(self.null_spaces) else free

    def bounds(self, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of θ that are those of ρ."""
        lowest, highest = low - self.offset, high - self.offset
        if not len(self.null_spaces):
            return lowest, highest
        offsets = self.offset[self.in_null_space]
        common = low - offsets.min(), high - offsets.max()
        lowest[self.in_null_space], highest[self.in_null_space] = common[0] - common[1], 0.0
        return np.append(lowest, common[0]), np.append(highest, common[1])

    def _terms(self, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """g of each smoothing parameter and its first two derivatives by ρ."""
        deviation = np.exp(-0.5 * (rho - self.offset))
        exponential, normal = self.rate * deviation, self.root_weight * deviation
        weight, above_one = np.where(self.in_null_space, 1.0, self.range_weight), 1 + normal
        share = weight * normal / above_one
        value = weight * np.log1p(normal) + exponential
        return value, -0.5 * (share + exponential), 0.25 * (share / above_one + exponential)

    def _common(self, rho: np.ndarray) -> tuple[int, float]:
        """The smoothing parameter of a null space that has the shared variance, and its κσ."""
        relative = (rho - self.offset)[self.null_spaces]
        smallest = int(np.argmax(relative))
        return self.null_spaces[smallest], self.rate * float(np.exp(-0.5 * relative[smallest]))

    def curvature(self, rho: np.ndarray) -> np.ndarray:
        """Second derivatives of g by ρ."""
        return self._terms(rho)[2]

    def penalised_criterion(self, criterion: float, rho: np.ndarray) -> float:
        """ℓ − log p, from the REML criterion ℓ at ρ: what is minimised."""
        value = self._terms(rho)[0]
        density = float(value.sum())  # minus its logarithm
        if len(self.null_spaces):
            smallest, common = self._common(rho)
            density -= len(self.null_spaces) * float(value[smallest])
            density += float(np.log1p(common))
        return criterion + density

    def penalised_gradient(self, gradient: np.ndarray, rho: np.ndarray) -> np.ndarray:
        """Derivatives of ℓ − log p by θ, from those of ℓ by ρ."""
        slopes = self._terms(rho)[1]
        out = gradient + slopes
        if not len(self.null_spaces):
            return out
        smallest, common = self._common(rho)
        shared = len(self.null_spaces) * slopes[smallest] + 0.5 * common / (1 + common)
        return np.concatenate([out, [out[self.null_spaces].sum() - shared]])

    def penalised_hessian(
        self, hessian_of: Callable[[IndexBlocks], np.ndarray], rho: np.ndarray, moving: np.ndarray
    ) -> np.ndarray:
        """Second derivatives of ℓ − log p by the coordinates θ that are `moving`.

        Few move in a model of many columns: most null spaces have the shared variance.
        ``hessian_of(blocks)`` gives the second derivatives of ℓ by ρ, added up over blocks of
        smoothing parameters.
        """
        second, count = self.curvature(rho), len(rho)
        alone = np.flatnonzero(moving[:count])
        index, common_moves = np.full(count, -1), bool(len(moving) > count and moving[-1])
        index[alone] = np.arange(len(alone))
        if common_moves:
            index[self.in_null_space & ~moving[:count]] = len(alone)
        blocks = IndexBlocks(index, len(alone) + common_moves)
        hessian = hessian_of(blocks)
        hessian.flat[:: len(hessian) + 1] += blocks.sums(second)
        if not common_moves:
            return hessian
        in_common = self.in_null_space[alone].astype(np.float64)  # θ_c moves all null spaces
        hessian[:, -1] += hessian[:, :-1] @ in_common
        hessian[-1] += in_common @ hessian[:-1]
        smallest, common = self._common(rho)
        hessian[-1, -1] += 0.25 * common / (1 + common) ** 2
        hessian[-1, -1] -= len(self.null_spaces) * second[smallest]
        return hessian
