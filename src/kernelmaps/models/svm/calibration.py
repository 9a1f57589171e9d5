"""Platt's sigmoid: from scores to probabilities, and the rows whose scores it is fitted to."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from ...engine.reference import namespace
from ...hashing import mixed_bits
from .out_of_core import OutOfCore

_FOLDS = 3
_MOST_ROWS = 2_500  # whose scores a sigmoid is fitted to, of a fitted model
_FEW = 50  # rows of a class that its probabilities should rest on
_MOST_VALUES = 2**22  # rows times features times outputs that are trained again, without folds


class Calibrated(OutOfCore):
    """An additive classifier whose scores become probabilities."""

    calibration: str
    _sigmoid: np.ndarray  # slope and shift of each output
    _calibrated: np.ndarray  # outputs whose sigmoid rests on rows

    @property
    def _pairwise(self) -> bool:
        """Whether the outputs are pairs of classes."""
        raise NotImplementedError

    def _finish(
        self, rows: Any, y: np.ndarray, positive: np.ndarray, weight: np.ndarray, *,
        every: bool = False,
    ) -> None:  # fmt: skip
        """Describe the model, and fit Platt's sigmoid of each output to scores of the rows.

        A class with none of the rows, or with all of them, keeps the sigmoid that it has. Folds
        can be left out of the rows if these are `every` row of the training.
        """
        super()._finish(rows, y, positive, weight, every=every)
        if self._loss_name == "log_loss" or not (self._streaming and hasattr(self, "_sigmoid")):
            self._sigmoid = np.tile([1.0, 0.0], (len(positive), 1))
            self._calibrated = np.zeros(len(positive), bool)
        if self._loss_name == "log_loss":
            return
        fold = self._folds(rows, y, weight) if every else None
        if fold is not None:
            taken = np.flatnonzero(fold >= 0)
            scores = self._out_of_fold(rows, y, positive, weight, fold)[taken]
        else:
            taken = some_of_all(y, weight)
            scores = self._trained_scores(rows, taken).astype(np.float64)
        kinds, standing = y[taken], standing_for_all(taken, y, weight)
        for k, code in enumerate(positive):
            own = np.isin(kinds, code)  # the rows of a pair; or those of the class
            part = own if self._pairwise else np.ones(len(own), bool)
            own = kinds == code[1] if self._pairwise else own
            if own[part].any() and not own[part].all():
                self._sigmoid[k] = platt(scores[part, k], own[part], standing[part])
                self._calibrated[k] = True
            elif not self._calibrated[k] and not own[part].any():
                # Platt's target of a class without rows
                self._sigmoid[k] = 0.0, -np.log(len(y) + 1.0)

    def _folds(self, rows: Any, codes: np.ndarray, weight: np.ndarray) -> np.ndarray | None:
        """Folds for scores of rows left out; None where those of the fitted model are taken."""
        size = rows.shape[0] * rows.shape[1] * self._n_outputs()
        asked = self.calibration == "out_of_fold" or size <= _MOST_VALUES
        if self.calibration == "in_sample" or not asked:
            return None
        return folds_by_content(rows, codes, weight)

    def _out_of_fold(
        self,
        rows: Any,
        codes: np.ndarray,
        positive: np.ndarray,
        weight: np.ndarray,
        fold: np.ndarray,
    ) -> np.ndarray:
        """Scores of rows by models that were trained without them, from the solution with them."""
        params = self.get_params(deep=False)
        twin = type(self)(**{**params, "tol": 10 * self.tol})  # scores of rows need no more
        for name in ("_spec", "_on_codes", "feature_map_", "classes_", "n_features_in_"):
            setattr(twin, name, getattr(self, name))
        start, scores = (self.dual_coef_, self._offset), np.zeros((len(codes), len(positive)))
        for k in range(int(fold.max()) + 1):
            held_out = np.flatnonzero(fold == k)
            own = weight.copy()
            own[held_out] = 0.0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the fit itself has warned
                twin._train(rows, codes, positive, twin._costs(own), start)
            scores[held_out] = twin._trained_scores(rows, held_out)
        return scores


def sigmoids(scores: Any, sigmoid: np.ndarray) -> Any:
    """Probabilities of the outputs by themselves, of scores of any array library."""
    xp = namespace(scores)
    slope, shift = (xp.asarray(own, dtype=xp.float64, device=scores.device) for own in sigmoid.T)
    z = xp.astype(scores, xp.float64) * slope + shift
    small = xp.exp(-xp.abs(z))  # the half that does not overflow
    return xp.where(z >= 0, 1 / (1 + small), small / (1 + small))


def shares(p: Any) -> Any:
    """Probabilities of all classes from those of the outputs, scaled to sum to one."""
    xp = namespace(p)
    if p.shape[1] == 1:
        return xp.concat([1 - p, p], axis=1)
    total = xp.sum(p, axis=1, keepdims=True)
    some = total > 0
    even = xp.full_like(p, 1 / p.shape[1])
    return xp.where(some, p / xp.where(some, total, xp.ones_like(total)), even)


def platt(scores: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Slope a > 0 and shift b of P(positive | f) = 1/(1 + exp(−(a f + b))).

    Maximum likelihood with Platt's targets (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2) in place of 1 and 0,
    which keep the slope finite for separable scores.  Newton with step halving.
    """
    many, few = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (many + 1) / (many + 2), 1 / (few + 2))
    spread = float(scores.std()) or 1.0
    theta = np.array([1 / spread, np.log((many + 1) / (few + 1))])

    def cost(theta: np.ndarray) -> float:
        z = theta[0] * scores + theta[1]
        return float(weight @ (np.logaddexp(0, z) - target * z))

    now = cost(theta)
    for _ in range(100):
        p = expit(theta[0] * scores + theta[1])
        slope, bend = weight * (p - target), weight * p * (1 - p)
        gradient = np.array([slope @ scores, slope.sum()])
        curvature = np.array([[(bend * scores) @ scores, bend @ scores], [0.0, bend.sum()]])
        curvature[1, 0] = curvature[0, 1]
        ridge = 1e-12 * (np.trace(curvature) + weight.sum())  # never singular, however sure p is
        step = np.linalg.solve(curvature + ridge * np.eye(2), gradient)
        size, before = 1.0, now
        while (now := cost(theta - size * step)) > before and size > 1e-6:
            size /= 2
        theta = theta - size * step
        if np.abs(gradient).max() <= 1e-8 * weight.sum() or size <= 1e-6:
            break
    return max(float(theta[0]), 0.0), float(theta[1])


def folds_by_content(rows: Any, codes: np.ndarray, weight: np.ndarray) -> np.ndarray | None:
    """Fold of each row, −1 for rows of weight 0; None if a class has too few different rows.

    Folds hold the classes in their shares. They go by the content of the rows: a row that occurs
    twice is in one fold, so that none is scored by a model that knows it, and a weight of 2 gives
    the folds of a row that occurs twice.
    """
    fold, key = np.full(len(codes), -1), _content(rows)
    for code in np.unique(codes[weight > 0]):
        own = np.flatnonzero((codes == code) & (weight > 0))
        different, place = np.unique(key[own], return_inverse=True)
        if len(different) < 2:
            return None
        turn = np.empty(len(different), np.int64)
        turn[np.argsort(mixed_bits(different))] = np.arange(len(different)) % _FOLDS
        fold[own] = turn[place]
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
        others = np.setdiff1d(taken[codes[taken] == code], some)
        more.append(rng.permutation(others)[: _FEW - have[code]])
    return np.concatenate(more)


def standing_for_all(taken: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weights of some rows that stand for all.

    Classes have the weights that they have among all rows, and Platt's targets count a weight of
    two as a row that occurs twice. But a row counts as no less than one on average: weights that
    sum to one, say, only set shares.
    """
    own, kinds = weight[taken].astype(np.float64), codes[taken]
    count = int(codes.max(initial=0)) + 1
    whole, part = (np.bincount(c, w, count) for c, w in ((codes, weight), (kinds, own)))
    own *= np.divide(whole, part, out=np.zeros(count), where=part > 0)[kinds]
    return own * max(1.0, np.count_nonzero(weight > 0) / max(own.sum(), 1e-300))
