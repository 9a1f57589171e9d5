r"""Baseline hazards of survival models, and the errors of survival curves.

The cumulative hazard of a row with the score η is :math:`e^η Λ_0(t)`, where
:math:`Λ_0(t) = \sum_{u ≤ t} \bar w \sum_l 1/s_l` (Efron; see :mod:`..risk_sets`) depends on the
coefficients β with :math:`∂ \log Λ_0(t)/∂β = -\bar a(t)`, the mean over the times up to t of the
means of the rows at risk. By the delta method, with the posterior covariance V of β,

.. math:: \operatorname{Var} \log Λ(t \mid x)
          = \frac{\sum_{u ≤ t} \bar w \sum_l s_l^{-2}}{Λ_0(t)^2}
          + (z - \bar a(t))^\top V (z - \bar a(t)),

the variance of the baseline for given coefficients, and that of both by the coefficients (Andersen
and Gill 1982). Bands are symmetric for :math:`\log Λ = \log(-\log S)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._util.schema import SchemaError, array, labels, number, optional, record, saved
from ..risk_sets import RiskSets

_MAX_MEANS = 256  # times of a stratum at which means of rows at risk are kept, of others between
_MAX_ALL_MEANS = 4096  # of all strata together


@record
class BaselineHazard:
    """Cumulative hazards of a row with score 0, which jump at the times of events.

    Attributes
    ----------
    time, hazard, variance : ndarray of shape (n_times,)
        Times of events, the stratum by stratum, the cumulative hazard there, and its variance for
        given coefficients.
    stratum : ndarray of int, of shape (n_times,)
        Codes of the strata.
    strata : ndarray or None
        Labels of the strata.
    positions : ndarray of int, of shape (n_means,)
        Times at which means of the rows at risk are known.
    means : ndarray of float32, of shape (n_means, n_coefficients)
        ā(t)ᵀL with V = LLᵀ.
    last_time : float
        The latest time of all rows, with an event or without.
    """

    time: np.ndarray = saved(array("f8", "times", low=0))
    hazard: np.ndarray = saved(array("f8", "times", low=0))
    variance: np.ndarray = saved(array("f8", "times", low=0))
    stratum: np.ndarray = saved(array("i8", "times", low=0))
    strata: np.ndarray | None = saved(optional(labels))
    positions: np.ndarray = saved(array("i8", "means", low=0, increasing=True))
    means: np.ndarray = saved(array("f4", "means _"))
    last_time: float = saved(number(low=0))

    def _check_state(self) -> None:
        n_strata = 1 if self.strata is None else len(self.strata)
        increasing = np.lexsort((self.time, self.stratum))
        if (
            self.stratum.max() >= n_strata
            or self.positions.max() >= len(self.time)
            or (increasing != np.arange(len(self.time))).any()
        ):
            raise SchemaError("the baseline hazard has times of other strata, or not in order")

    @classmethod
    def from_fit(
        cls, sets: RiskSets, eta: np.ndarray, strata: np.ndarray | None,
        deviations: Callable[[np.ndarray], np.ndarray], width: int,
    ) -> BaselineHazard:  # fmt: skip
        """That of the rows of a fit with the scores `eta`.

        `deviations` returns zᵀL for some rows, an array of this width.
        """
        sums = sets.sums(eta)
        unit = np.exp(-sums.shift)
        weight = sets.mean_weight / sums.size**2
        c0, c1 = (sets.sum_events(weight * sets.tie_share**k) for k in range(2))
        increments = sets.increments(sums)
        hazard, variance = map(sets.cumulative_hazard, (increments, c0))
        n_strata = int(sets.stratum.max()) + 1
        n_means = int(np.clip(_MAX_ALL_MEANS // n_strata, 2, _MAX_MEANS))
        order = np.lexsort((sets.time, sets.stratum))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        ends = np.searchsorted(sets.stratum[order], np.arange(n_strata), side="right").tolist()
        positions = np.unique(np.concatenate([
            np.linspace(begin, end - 1, n_means).round() if end > begin else []
            for begin, end in zip([0, *ends[:-1]], ends, strict=True)
        ]).astype(np.int64))  # fmt: skip
        integrals = np.zeros((len(positions), width))
        for block, risk_means, tied in sets.means(sums.risk, deviations, width):
            jumps = c0[block, None] * risk_means - c1[block, None] * tied
            np.add.at(integrals, np.searchsorted(positions, place[block]), jumps)
        new = np.diff(sets.stratum[order][positions], prepend=-1) != 0
        integrals = np.cumsum(integrals, axis=0)
        begins = np.flatnonzero(new)
        before = np.vstack([np.zeros(width), integrals])[begins]
        integrals -= before[np.cumsum(new) - 1]
        hazard, variance = hazard[order], variance[order]
        means = (integrals / hazard[positions, None]).astype(np.float32)
        return cls(
            sets.time[order], unit * hazard, unit**2 * variance, sets.stratum[order], strata,
            positions, means, sets.last_time,
        )  # fmt: skip

    def _places(self, times: np.ndarray, stratum: int) -> np.ndarray:
        """The last time of an event in a stratum up to each of some times; −1 before all."""
        begin, end = np.searchsorted(self.stratum, [stratum, stratum + 1])
        places = begin + np.searchsorted(self.time[begin:end], times, side="right") - 1
        return np.where(places >= begin, places, -1)

    def cumulative(self, times: np.ndarray, stratum: int) -> np.ndarray:
        """Λ₀ of a stratum at times."""
        return np.append(self.hazard, 0.0)[self._places(times, stratum)]

    def log_variances(self, times: np.ndarray, stratum: int, deviations: np.ndarray) -> np.ndarray:
        """Variances of log Λ for rows with these zᵀL: shape (n_samples, n_times)."""
        places = self._places(times, stratum)
        if not (places >= 0).any():
            return np.zeros((len(deviations), len(times)))
        positions = np.flatnonzero(self.stratum[self.positions] == stratum)
        index = np.interp(places, self.positions[positions], positions)
        lower = np.floor(index).astype(np.int64)
        share = (index - lower)[:, None]
        upper = np.minimum(lower + 1, positions[-1])
        means = (1 - share) * self.means[lower] + share * self.means[upper]
        variances = np.sum(deviations**2, axis=1)[:, None] - 2 * deviations @ means.T
        variances += np.sum(means**2, axis=1) + self.variance[places] / self.hazard[places] ** 2
        return np.where(places >= 0, np.maximum(variances, 0.0), 0.0)

    def to_frame(self) -> Any:
        """Return the hazards as a pandas frame, one row for each time of an event.

        Returns
        -------
        pandas.DataFrame
            Columns ``time``, ``cumulative_hazard``, ``survival``, ``standard_error`` (of the
            cumulative hazard, for given coefficients) and, where there are strata, ``stratum``.
        """
        import pandas as pd

        columns = {
            "time": self.time, "cumulative_hazard": self.hazard, "survival": np.exp(-self.hazard),
            "standard_error": np.sqrt(self.variance),
        }  # fmt: skip
        if self.strata is not None:
            columns = {"stratum": self.strata[self.stratum], **columns}
        return pd.DataFrame(columns)
