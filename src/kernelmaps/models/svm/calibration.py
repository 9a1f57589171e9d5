"""Platt's sigmoid: from scores to probabilities, and the rows whose scores it is fitted to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..._util.schema import State, array
from ..._util.threads import mixed_bits
from ..losses import Logistic
from ..probabilities import calibrated
from ..rows.matrix import MatrixRows
from ..solvers.newton import Objective, minimise
from .choosing import held_out_scores
from .fitted_map import FittedMap
from .model import AdditiveMachine
from .problem import Options, Targets

_FOLDS = 3  # of the rows, whose scores come from models without them
_MOST_ROWS = 2_500  # whose scores a sigmoid is fitted to, of a fitted model
_FEW = 50  # rows of a class that its probabilities should rest on
_MOST_VALUES = 2**22  # rows times features times outputs that are trained again, without folds


class Calibration:
    """Slopes and shifts of the outputs' sigmoids, fitted when they are first asked for.

    Parameters
    ----------
    values : ndarray of shape (n_outputs, 2)
        Slope and shift of each output; (1, 0) is the sigmoid itself.
    on_rows : ndarray of bool, shape (n_outputs,)
        Outputs whose sigmoid was fitted to rows.
    pending : callable, optional
        Returns both, fitted: called once, before they are used, saved or copied.
    """

    _state: ClassVar[State] = State(
        required={"sigmoid": array("f8", "outputs 2"), "on_rows": array("b1", "outputs")},
        attributes={"sigmoid": "_values", "on_rows": "_on_rows"},
    )
    _pending: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None

    def __init__(
        self,
        values: np.ndarray,
        on_rows: np.ndarray,
        pending: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None,
    ) -> None:
        self._values, self._on_rows, self._pending = values, on_rows, pending

    @classmethod
    def none(cls, n_outputs: int) -> Calibration:
        """The sigmoid itself, for the loss of logistic regression."""
        return cls(np.tile([1.0, 0.0], (n_outputs, 1)), np.zeros(n_outputs, bool))

    @property
    def values(self) -> np.ndarray:
        """Slopes and shifts."""
        self.finish()
        return self._values

    @property
    def on_rows(self) -> np.ndarray:
        """Outputs whose sigmoid was fitted to rows."""
        self.finish()
        return self._on_rows

    def finish(self) -> None:
        """Fit the sigmoids, if that is still to be done, and forget the rows."""
        if self._pending is not None:
            self._values, self._on_rows = self._pending()
            self._pending = None

    def _saved(self) -> dict[str, np.ndarray]:
        self.finish()
        return self._state.of(self)

    def __getstate__(self) -> dict[str, Any]:
        self.finish()
        return dict(vars(self))

    def probabilities(self, scores: Any) -> Any:
        """Probabilities of the outputs by themselves, of scores of any array library."""
        return calibrated(scores, self.values)


def calibrate_fit(
    machine: AdditiveMachine, rows: Any, targets: Targets, C: float, options: Options,
    start: tuple[np.ndarray, np.ndarray] | None,
) -> Calibration:  # fmt: skip
    """The calibration of a machine that was just trained.

    Up to 4 million values (rows times features times outputs) the sigmoids are fitted to scores of
    rows that took no part in the training that scores them: three more trainings, which start from
    the solution. They are put off until the sigmoids are asked for, on a copy of the rows (the
    caller may change X meanwhile): at most 32 MB. Of more values, and where `start` is None because
    `rows` are only some of those of the training, the fitted machine's own scores are taken.

    Parameters
    ----------
    machine : AdditiveMachine
        The fitted machine.
    rows : array or CSR
        All rows of the training, or some.
    targets : Targets
        Of these rows.
    C : float
        Of the training.
    options : Options
        Of the training.
    start : (ndarray, ndarray), optional
        Duals and intercepts of the solution, where the rows are all of the training.
    """
    calibration = Calibration.none(machine.n_outputs)
    if options.loss == "log_loss":
        return calibration
    size = rows.shape[0] * rows.shape[1] * machine.n_outputs
    if start is None or size > _MOST_VALUES:
        return calibrate_by_own_scores(machine, rows, targets, calibration)
    copy = rows.copy()

    def pending() -> tuple[np.ndarray, np.ndarray]:
        fold = folds_by_content(copy, targets.strata, targets.weight)
        if fold is None:
            fitted = calibrate_by_own_scores(machine, copy, targets, calibration)
            return fitted.values, fitted.on_rows
        scores = out_of_fold_scores(copy, targets, C, machine.fitted, options, start, fold)
        taken = np.flatnonzero(fold >= 0)
        return fit_sigmoids(scores[taken], taken, targets, calibration)

    return Calibration(calibration._values, calibration._on_rows, pending)


def calibrate_by_own_scores(
    machine: AdditiveMachine, rows: Any, targets: Targets, before: Calibration
) -> Calibration:
    """A calibration by the machine's own scores of rows.

    A class with none of the rows, or with all of them, keeps the sigmoid that it had `before`. The
    scores are computed now, the sigmoids when they are asked for.
    """
    before.finish()  # or chunks of a stream would wait for one another
    taken = some_of_all(targets.strata, targets.weight)
    scores = machine.trained_scores(rows, taken).astype(np.float64)

    def pending() -> tuple[np.ndarray, np.ndarray]:
        return fit_sigmoids(scores, taken, targets, before)

    return Calibration(before.values, before.on_rows, pending)


def fit_sigmoids(
    scores: np.ndarray, taken: np.ndarray, targets: Targets, before: Calibration
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and shifts from the scores of some rows, and which outputs have them."""
    values, on_rows = before.values.copy(), before.on_rows.copy()
    weight = standing_for_all(taken, targets.strata, targets.weight)
    for k in range(len(targets.positive)):
        members, is_positive = targets.positives(k, taken)
        is_positive = is_positive[members]
        if is_positive.any() and not is_positive.all():
            values[k] = platt(scores[members, k], is_positive, weight[members])
            on_rows[k] = True
        elif not on_rows[k] and not is_positive.any():
            values[k] = 0.0, -np.log(len(targets.y) + 1.0)  # Platt's target without rows
    return values, on_rows


def out_of_fold_scores(
    rows: Any, targets: Targets, C: float, fitted: FittedMap, options: Options,
    start: tuple[np.ndarray, np.ndarray], fold: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Scores of rows by machines that were trained without them, from the solution with them."""
    rough = replace(options, tol=10 * options.tol, progress=None)  # scores of rows need no more
    scores = np.zeros((len(targets.y), len(targets.positive)))
    for k in range(int(fold.max()) + 1):
        held_out = np.flatnonzero(fold == k)
        scores[held_out] = held_out_scores(rows, targets, held_out, C, fitted, rough, start)[0]
    return scores


def platt(scores: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Slope a > 0 and shift b of P(positive | f) = 1/(1 + exp(−(a f + b))).

    Maximum likelihood with Platt's targets (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2) in place of 1 and 0,
    which keep the slope finite for separable scores: a row of target t counts as t rows of the
    positive label and 1 − t rows of the negative one.
    """
    many, few = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (many + 1) / (many + 2), 1 / (few + 2))
    spread = float(scores.std()) or 1.0
    Z = np.column_stack([np.tile(scores / spread, 2), np.ones(2 * len(scores))])
    labels = np.repeat([1.0, -1.0], len(scores))
    rows = MatrixRows(Z, labels, np.concatenate([weight * target, weight * (1 - target)]))
    objective = Objective(rows, Logistic(), np.zeros(2))
    start = objective.at(np.array([1.0, np.log((many + 1) / (few + 1))]))
    slope, shift = minimise(objective, start).point.beta.tolist()
    return max(slope / spread, 0.0), shift


def folds_by_content(rows: Any, codes: np.ndarray, weight: np.ndarray) -> np.ndarray | None:
    """Fold of each row, −1 for rows of weight 0; None if a class has too few different rows.

    Folds hold the classes in their shares. They go by the content of the rows: a row that occurs
    twice is in one fold, so that none is scored by a model that knows it, and a weight of 2 gives
    the folds of a row that occurs twice.
    """
    fold, key = np.full(len(codes), -1), _content(rows)
    for code in np.unique(codes[weight > 0]):
        members = np.flatnonzero((codes == code) & (weight > 0))
        different, place = np.unique(key[members], return_inverse=True)
        if len(different) < 2:
            return None
        turn = np.empty(len(different), np.int64)
        turn[np.argsort(mixed_bits(different))] = np.arange(len(different)) % _FOLDS
        fold[members] = turn[place]
    return fold


def _content(rows: Any) -> np.ndarray:
    """A number for each row that depends on its values alone, on every machine.

    Whole numbers are summed modulo 2⁶⁴, so that no order and no rounding matters. A zero adds
    nothing: sparse rows have the numbers of dense ones.
    """
    weights = mixed_bits(np.arange(rows.shape[1])) | np.uint64(1)
    if sparse.issparse(rows):
        bits = rows.astype(np.float64)  # a copy
        bits.sum_duplicates()
        bits.data = _bits(bits.data) * weights[bits.indices]
        return np.asarray(bits @ np.ones(bits.shape[1], np.uint64))
    step = max(1, 2**15 // max(1, rows.shape[1]))  # a few rows at a time: they become float64
    starts = range(0, len(rows), step)
    return np.concatenate([(_bits(rows[k : k + step]) * weights).sum(axis=1) for k in starts])


def _bits(values: np.ndarray) -> np.ndarray:
    """Bits of float64 values; those of the exponent, alone in short numbers, at both ends."""
    bits = (values + 0.0).astype(np.float64).view(np.uint64)  # no sign on a zero
    return bits ^ (bits >> np.uint64(32))


def some_of_all(codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Rows of positive weight: all, or some at random with enough of every class."""
    rng, taken = np.random.default_rng(0), np.flatnonzero(weight > 0)
    if len(taken) == 0:  # a chunk of weight 0
        return np.arange(len(weight))
    if len(taken) <= _MOST_ROWS:
        return taken
    some = np.sort(rng.permutation(taken)[:_MOST_ROWS])
    have = np.bincount(codes[some], minlength=int(codes.max(initial=0)) + 1)
    more = [some]
    for code in np.flatnonzero(have < _FEW):
        candidates = np.setdiff1d(taken[codes[taken] == code], some)
        more.append(rng.permutation(candidates)[: _FEW - have[code]])
    return np.concatenate(more)


def standing_for_all(taken: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weights of some rows that stand for all.

    Classes have the weights that they have among all rows, and Platt's targets count a weight of
    two as a row that occurs twice. But a row counts as no less than one on average: weights that
    sum to one, say, only set shares.
    """
    of_taken, labels = weight[taken].astype(np.float64), codes[taken]
    count = int(codes.max(initial=0)) + 1
    total, of_sample = (np.bincount(c, w, count) for c, w in ((codes, weight), (labels, of_taken)))
    of_taken *= np.divide(total, of_sample, out=np.zeros(count), where=of_sample > 0)[labels]
    return of_taken * max(1.0, np.count_nonzero(weight > 0) / max(of_taken.sum(), 1e-300))
