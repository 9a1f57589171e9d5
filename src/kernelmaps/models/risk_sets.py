r"""Sets of rows at risk, and what Cox's partial likelihood needs of them.

With strata s, times t of events in them, :math:`r_j = w_j e^{η_j}` and the risk set
:math:`R_t` of the rows j of the stratum with :math:`\mathrm{entry}_j < t ≤ \mathrm{time}_j`,
d rows of which have their event at t, Efron's partial likelihood of a time is

.. math:: \bar w \sum_{l=0}^{d-1} \log s_l - \sum_{i} w_i η_i, \qquad
          s_l = \sum_{j ∈ R_t} r_j - \frac{l}{d} \sum_{i} r_i,

as a loss, with sums over i of the d rows and the mean :math:`\bar w` of their weights. Its
derivatives by the scores are :math:`r_iΛ_i - w_iδ_i` with the hazard
:math:`Λ_i = \sum_t \bar w \sum_l 1/s_l` that row i was exposed to (with :math:`1 - l/d` in the
place of 1 at the time of its own event). Its Hessian is

.. math:: \mathrm{diag}(r_iΛ_i) - \sum_t \bar w \sum_l a_{tl} a_{tl}^\top, \qquad
          a_{tl} = s_l'/s_l,

that of a Poisson loss less the risk-set means. Times of an event have one such matrix of rank two
or, without ties, of rank one: with :math:`A = \sum_{R_t} r_j z_j`, :math:`B = \sum_i r_i z_i` and
:math:`c_k = \bar w \sum_l (l/d)^k / s_l^2`, it is
:math:`c_0 AA^\top - c_1 (AB^\top + BA^\top) + c_2 BB^\top`.

Sums over risk sets are running sums over *records*, rows that enter the sets of a stratum at their
time, in the order of falling times, and leave them at their time of entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

_BLOCK_VALUES = 2**21  # of rows of the model matrix that are in memory at a time


class SurvivalTimes(NamedTuple):
    """Times of rows, whether they end with an event, times of entry, and codes of strata."""

    time: np.ndarray
    event: np.ndarray
    entry: np.ndarray
    stratum: np.ndarray


class RiskSums(NamedTuple):
    """Sums over the risk sets at some scores.

    Attributes
    ----------
    risk : ndarray of shape (n_rows,)
        r, in units of exp(shift).
    shift : float
    size : ndarray of shape (n_events,)
        s_l, one for each event of a time.
    """

    risk: np.ndarray
    shift: float
    size: np.ndarray


def concordance(time: np.ndarray, event: np.ndarray, scores: np.ndarray) -> float:
    """Concordance index of rows in one stratum, at risk from the beginning."""
    times = SurvivalTimes(time, event, np.full(len(time), -1.0), np.zeros(len(time), np.int64))
    return RiskSets.from_times(times, np.ones(len(time))).concordance(scores)


@dataclass(frozen=True)
class RiskSets:
    """The risk sets of all distinct times of events, those of a stratum together, late ones first.

    Attributes
    ----------
    weight : ndarray of shape (n_rows,)
    rows, signs, resets : ndarray of shape (n_records,)
        Rows that enter (1) or leave (−1) the sets, and whether a stratum begins.
    ends : ndarray of shape (n_sets,)
        Records up to each set.
    time, stratum : ndarray of shape (n_sets,)
    events, event_set : ndarray of shape (n_events,)
        Rows with an event, in the order of the sets, and their sets.
    counts : ndarray of shape (n_sets,)
        Events of each set, d.
    tie_share : ndarray of shape (n_events,)
        l/d.
    first_set, entry_set : ndarray of shape (n_rows,)
        The latest set that each row is in, and the latest one before it enters: n_sets if there is
        none.
    row_strata : ndarray of shape (n_rows,)
    last_time : float
        Of all rows.
    """

    weight: np.ndarray
    rows: np.ndarray
    signs: np.ndarray
    resets: np.ndarray
    ends: np.ndarray
    time: np.ndarray
    stratum: np.ndarray
    events: np.ndarray
    event_set: np.ndarray
    counts: np.ndarray
    tie_share: np.ndarray
    first_set: np.ndarray
    entry_set: np.ndarray
    row_strata: np.ndarray
    last_time: float

    @classmethod
    def from_times(cls, times: SurvivalTimes, weight: np.ndarray) -> RiskSets:
        """Those of rows of positive weight."""
        time, event, entry, stratum = times
        values, index = np.unique(np.concatenate([time, entry]), return_inverse=True)
        n_times = len(values)
        # Keys are in the order of strata, and within them of falling times.
        exits, entries = stratum * n_times + (n_times - 1 - index.reshape(2, -1))
        positive = weight > 0
        happened = np.flatnonzero(positive & (event > 0))
        events = happened[np.argsort(exits[happened], kind="stable")]
        keys, starts, event_set, counts = np.unique(
            exits[events], return_index=True, return_inverse=True, return_counts=True
        )
        # Rows that enter before the first time of an event leave no set.
        first_key = np.full(stratum.max(initial=0) + 1, -1)
        first_key[keys // n_times] = keys  # the last one, of the earliest time
        late = np.flatnonzero(positive & (entries <= first_key[stratum]))
        inside = np.flatnonzero(positive)
        rows = np.concatenate([inside, late])
        record_keys = np.concatenate([exits[inside], entries[late]])
        order = np.argsort(record_keys, kind="stable")
        rows, record_keys = rows[order], record_keys[order]
        signs = np.repeat([1.0, -1.0], [len(inside), len(late)])[order]

        def latest_set(keys_of_rows: np.ndarray) -> np.ndarray:
            """The latest set of the stratum at a time or before it."""
            place = np.searchsorted(keys, keys_of_rows)
            same = np.append(keys // n_times, -1)[place] == stratum
            return np.where(same, place, len(keys))

        return cls(
            weight, rows, signs, np.diff(record_keys // n_times, prepend=-1) != 0,
            np.searchsorted(record_keys, keys, side="right"), values[n_times - 1 - keys % n_times],
            keys // n_times, events, event_set, counts,
            (np.arange(len(events)) - starts[event_set]) / counts[event_set],
            latest_set(exits), latest_set(entries), stratum, float(time[positive].max()),
        )  # fmt: skip

    @property
    def n_sets(self) -> int:
        return len(self.ends)

    def sum_events(self, values: np.ndarray) -> np.ndarray:
        """Sums over the events of each set."""
        return np.bincount(self.event_set, values, self.n_sets)

    @property
    def mean_weight(self) -> np.ndarray:
        """Mean weight of the events of the same time, by event."""
        return (self.sum_events(self.weight[self.events]) / self.counts)[self.event_set]

    def sums(self, eta: np.ndarray) -> RiskSums:
        """Sums over the risk sets at scores of all rows."""
        shift = float(eta[self.rows].max())
        risk = self.weight * np.exp(np.minimum(eta - shift, 0.0))  # above: rows without weight
        in_set = self._running_sums(self.signs * risk[self.rows], self.resets)[self.ends - 1]
        tied = self.sum_events(risk[self.events])
        in_set = np.maximum(in_set, tied)  # what rows that left leave of the others is rounded
        size = in_set[self.event_set] - self.tie_share * tied[self.event_set]
        return RiskSums(risk, shift, size)

    @staticmethod
    def _running_sums(values: np.ndarray, resets: np.ndarray) -> np.ndarray:
        from ._risk_loops import cumulate

        sums = values.reshape(-1, 1).copy()
        cumulate(sums, resets, np.zeros(1))
        return sums[:, 0]

    def losses(self, eta: np.ndarray) -> np.ndarray:
        """Losses of rows, whose weighted sum is −log of the partial likelihood."""
        sums, losses = self.sums(eta), np.zeros(len(eta))
        with np.errstate(divide="ignore", invalid="ignore"):
            logarithms = np.log(sums.size)
        means = self.sum_events(logarithms) / self.counts
        losses[self.events] = means[self.event_set] + sums.shift - eta[self.events]
        return losses

    def increments(self, sums: RiskSums, power: int = 0) -> np.ndarray:
        """Σ w̄ (l/d)^power / s_l of each set: of power 0, those of the baseline hazard."""
        return self.sum_events(self.mean_weight * self.tie_share**power / sums.size)

    def cumulative_hazard(self, increments: np.ndarray) -> np.ndarray:
        """Sums over the sets of a stratum up to the time of each; from their increments."""
        resets = np.diff(self.stratum[::-1], prepend=-1) != 0
        return self._running_sums(increments[::-1], resets)[::-1]

    def relative_risks(self, eta: np.ndarray) -> np.ndarray:
        """exp(η)Λ of the rows, the numbers of events that each would have had."""
        sums = self.sums(eta)
        hazard = np.append(self.cumulative_hazard(self.increments(sums)), 0.0)
        exposed = hazard[self.first_set] - hazard[self.entry_set]
        exposed[self.events] -= self.increments(sums, 1)[self.event_set]
        return np.exp(np.minimum(eta - sums.shift, 0.0)) * exposed

    def means(
        self, risk: np.ndarray, matrix: Callable[[np.ndarray], np.ndarray], width: int
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Some sets at a time, with their A and B; `matrix` returns the z_j of some rows."""
        from ._risk_loops import cumulate

        running, step = np.zeros(width), max(1, _BLOCK_VALUES // width)
        several = self.counts[self.event_set] > 1
        for start in range(0, len(self.rows), step):
            rows = self.rows[start : start + step]
            values = matrix(rows) * (self.signs[start : start + step] * risk[rows])[:, None]
            cumulate(values, self.resets[start : start + step], running)
            begin, end = np.searchsorted(self.ends, [start, start + step], side="right").tolist()
            tied = np.zeros((end - begin, width))
            chosen = np.flatnonzero(several & (self.event_set >= begin) & (self.event_set < end))
            if len(chosen):
                events, sets = self.events[chosen], self.event_set[chosen] - begin
                starts = np.flatnonzero(np.diff(sets, prepend=-1))
                tied[sets[starts]] = np.add.reduceat(matrix(events) * risk[events, None], starts)
            yield slice(begin, end), values[self.ends[begin:end] - 1 - start], tied

    def gram_of_means(
        self, eta: np.ndarray, matrix: Callable[[np.ndarray], np.ndarray], width: int
    ) -> np.ndarray:
        """Sum over the sets of what their means take from the Hessian of a Poisson loss."""
        sums, gram = self.sums(eta), np.zeros((width, width))
        weight, share = self.mean_weight / sums.size**2, self.tie_share
        c0, c1, c2 = (self.sum_events(weight * share**k) for k in range(3))
        for sets, at_risk, tied in self.means(sums.risk, matrix, width):
            root, ratio = np.sqrt(c0[sets]), c1[sets] / c0[sets]
            left = root[:, None] * (at_risk - ratio[:, None] * tied)
            gram += left.T @ left
            residual_sd = np.sqrt(np.maximum(c2[sets] - c1[sets] * ratio, 0.0))
            if residual_sd.any():
                right = residual_sd[residual_sd > 0, None] * tied[residual_sd > 0]
                gram += right.T @ right
        return gram

    def concordance(self, eta: np.ndarray) -> float:
        """Share of the comparable pairs in which the row with the earlier event scores higher.

        Pairs are an event and a row of its stratum that is at risk beyond it; the same scores count
        as a half (Harrell). NaN where there is no pair.
        """
        from ._risk_loops import count_pairs

        order = np.lexsort((eta, self.row_strata))
        strata, scores = self.row_strata[order], eta[order]
        begins = np.diff(strata, prepend=-1) != 0
        rank = np.cumsum(begins | (np.diff(scores, prepend=np.nan) != 0)) - 1
        ranks = np.empty((len(eta), 2), np.int64)
        ranks[order, 0], ranks[order, 1] = rank, rank[begins][np.cumsum(begins) - 1]
        totals, event_ends = np.zeros(2), np.cumsum(self.counts)
        count_pairs(
            self.rows, self.signs, self.ends, self.events, event_ends, ranks, self.weight,
            np.zeros(rank[-1] + 2), totals,
        )  # fmt: skip
        weight = self.weight
        risk_weight = self._running_sums(self.signs * weight[self.rows], self.resets)[self.ends - 1]
        event_weight = self.sum_events(weight[self.events])
        n_pairs = float(event_weight @ (risk_weight - event_weight))
        return float((totals[0] + 0.5 * totals[1]) / n_pairs) if n_pairs > 0 else np.nan
