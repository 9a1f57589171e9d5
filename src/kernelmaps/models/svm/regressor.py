"""Additive regressors: the objective of :mod:`.classifier` with losses of y − f(x)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if

from ...arguments import check_number
from ...atomic import all_or_nothing
from ...data import Source
from ...engine.reference import namespace
from ...schema import number
from ..device_scores import ScoresAnywhere
from ..gam.route import TABLE_STATE, fits_chunks
from ..gam.sampling import RowChecks, Sample, real_targets
from ..losses import LOSSES, Loss, make_loss
from .inputs import refuse_training_on_card, weights_of
from .out_of_core import OutOfCore
from .summary import SHARED, rounded_to_size

# Of targets: beyond, their squares, or weights in single precision, may overflow.
_LARGEST = {np.float64: 1e150, np.float32: 1e30}
_HUGE = 1e70  # targets of tables, at most: sums of their fourth powers are still finite


@dataclass(eq=False, repr=False)
class AdditiveRegressor(ScoresAnywhere, RegressorMixin, OutOfCore):
    """Regressor that is a sum of one-dimensional functions.

    Parameters
    ----------
    feature_map : AdditiveMap, optional
        Any additive map of this library; ``SplineMap()`` by default.
    C : float or None, default=1.0
        Weight of the losses against ½‖w‖²; for the squared loss, ridge with alpha = 1/(2C).
    loss : str, default="squared_error"
        Of the residual r: "squared_error", r², or "epsilon_insensitive", max(0, \\|r\\| − epsilon).
        For tables also "absolute_error" and "quantile" (both rounded off near zero), and "poisson"
        and "gamma", which predict exp(f).
    epsilon : float, default=0.1
        For ``loss="epsilon_insensitive"``, in units of y.
    fit_intercept : bool, default=True
        As for :class:`AdditiveClassifier`.
    tol : float, default=1e-3
        As for :class:`AdditiveClassifier`.
    max_iter : int, default=1000
        As for :class:`AdditiveClassifier`.
    warm_start : bool, default=False
        As for :class:`AdditiveClassifier`.
    random_state : int, RandomState or None
        As for :class:`AdditiveClassifier`.
    n_jobs : int, optional
        As for :class:`AdditiveClassifier`.
    progress : bool, optional
        As for :class:`AdditiveClassifier`.
    terms : list or dict, optional
        For tables; as for :class:`AdditiveClassifier`.
    interactions : "auto", int or list of pairs, optional
        For tables; as for :class:`AdditiveClassifier`.
    constraints : dict, optional
        For tables; as for :class:`AdditiveClassifier`.
    smoothing : "auto", float or dict, optional
        For tables; as for :class:`AdditiveClassifier`.
    categorical_features : sequence of int, str or bool, optional
        For tables; as for :class:`AdditiveClassifier`.
    solver : {"auto", "dual", "primal"}, default="auto"
        As for :class:`AdditiveClassifier`.
    compact : bool, default=True
        As for :class:`AdditiveClassifier`.
    quantile : float, default=0.5
        For ``loss="quantile"``: the share of the targets that lies below.

    Attributes
    ----------
    intercept_ : float
        b, the means of the terms included.
    feature_map_ : AdditiveMap
        As for :class:`AdditiveClassifier`.
    dual_coef_ : ndarray of shape (n_samples, 1)
        As for :class:`AdditiveClassifier`.
    objective_, duality_gap_ : ndarray
        As for :class:`AdditiveClassifier`.
    n_iter_ : int
        As for :class:`AdditiveClassifier`.
    shape_functions_ : list of ShapeFunction
        As for :class:`AdditiveClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2
    >>> bool(km.AdditiveRegressor(C=100).fit(X, y).score(X, y) > 0.99)
    True
    """

    _: KW_ONLY
    loss: str = "squared_error"
    epsilon: float = 0.1
    quantile: float = 0.5

    _of_labels = False
    _state = OutOfCore._state.extended(
        required={"intercept_": number(), "centre": number()},
        others=(TABLE_STATE.extended(required={"intercept_": number()}),),
    )

    def _n_outputs(self) -> int:
        return 1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "epsilon", self.epsilon, "a number >= 0", lambda e: 0 <= e < np.inf)
        check_number(self, "quantile", self.quantile, "between 0 and 1", lambda q: 0 < q < 1)

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, exposure: Any = None
    ) -> AdditiveRegressor:
        """Train the regressor.

        Parameters
        ----------
        X : array-like, CSR matrix or Codes of shape (n_samples, n_features)
            As for :meth:`AdditiveClassifier.fit`.
        sample_weight : array-like of shape (n_samples,), optional
            As for :meth:`AdditiveClassifier.fit`.
        y : array-like of shape (n_samples,), str or None
            Numbers; otherwise as for :meth:`AdditiveClassifier.fit`.
        exposure : array-like of shape (n_samples,) or str, optional
            For ``loss="poisson"`` and ``"gamma"``: what each row was exposed to (time, insured
            years, area). The model is then of y per unit: log E[y] = log exposure + f(x). For
            files and Dask frames the name of a column.

        Returns
        -------
        self : AdditiveRegressor
            The fitted regressor.
        """
        if exposure is not None:
            self._check_exposure_has_use()
        return self._fit(X, y, sample_weight, exposure)

    def _targets(
        self, y: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._centred(y, weight), np.zeros(1), weight

    def _targets_of_table(
        self, y: np.ndarray, weight: np.ndarray
    ) -> tuple[list[np.ndarray], list[Loss], np.ndarray]:
        y = self._numbers(y)
        if np.abs(y).max(initial=0.0) > _HUGE:
            raise ValueError(
                f"AdditiveRegressor: y reaches {np.abs(y).max():g}, whose powers overflow: scale y."
            )
        loss = self._likelihood(y, weight)
        fault = loss.fault(y[weight > 0])
        if fault:
            raise ValueError(f"AdditiveRegressor: {fault}; found {y.min():g} … {y.max():g}.")
        return [y], [loss], weight

    def _targets_of_source(
        self, source: Source, sample: Sample
    ) -> tuple[RowChecks, list[Loss], list[float]]:
        checks = RowChecks(type(self).__name__)
        of_rows = (checks.targets, checks.weights)
        loss = self._likelihood(*(np.concatenate([*map(f, sample.chunks)]) for f in of_rows))
        return replace(checks, loss=loss), [loss], []

    def _likelihood(self, y: np.ndarray, weight: np.ndarray) -> Loss:
        options = {"quantile": self.quantile, "epsilon": self.epsilon}
        return make_loss(self._loss_name, y, weight, **options)

    def _finish_table(
        self, columns: Any, targets: Sequence[np.ndarray], weight: np.ndarray
    ) -> None:
        self.intercept_ = float(self.table_.intercept[0])

    def _check_exposure_has_use(self) -> None:
        if self._link != "log":
            those = " and ".join(repr(name) for name, kind in LOSSES.items() if kind.link == "log")
            raise ValueError(f"AdditiveRegressor: exposure is for loss={those}, not {self.loss!r}.")

    def _log_exposure(self, exposure: Any, n: int) -> np.ndarray:
        if exposure is None:
            return np.zeros(n)
        self._check_exposure_has_use()
        exposure = column_or_1d(exposure).astype(np.float64)
        if len(exposure) != n or not (np.isfinite(exposure) & (exposure > 0)).all():
            raise ValueError(
                f"AdditiveRegressor: exposure must hold {n} positive numbers, one for each row."
            )
        return np.log(exposure)

    def _centred(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Targets around their weighted mean: the intercept has little left to do.

        The mean of one or two targets is rounded, since it is saved.
        """
        y = self._numbers(y)
        centre = np.average(y, weights=weight) if self.fit_intercept else 0.0
        few = np.count_nonzero(weight) < SHARED
        self._centre = float(rounded_to_size(centre) if few else centre)
        return y - self._centre

    def _numbers(self, y: Any) -> np.ndarray:
        y = column_or_1d(y, warn=True)
        if y.dtype.kind not in "fiubO":
            raise ValueError(f"AdditiveRegressor: y must be numbers, got {y.dtype}.")
        return real_targets(y, "AdditiveRegressor")

    def _check_size(self, rows: Any, y: np.ndarray) -> None:
        """Refuse targets so large that weights may overflow."""
        most = _LARGEST[self._precision(rows)]
        if np.abs(y).max(initial=0.0) > most:
            at = int(np.argmax(np.abs(y)))
            raise ValueError(
                f"AdditiveRegressor: y is {y[at] + self._centre:g} in row {at}; for rows of "
                f"{rows.dtype} targets beyond ±{most:g} may overflow: scale y."
            )

    @available_if(fits_chunks)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdditiveRegressor:
        """Learn from one more chunk of rows; see :meth:`AdditiveClassifier.partial_fit`.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            As for :meth:`fit`, one chunk in memory.
        y : array-like of shape (n_samples,)
            As for :meth:`fit`, one chunk in memory.
        sample_weight : array-like of shape (n_samples,), optional
            As for :meth:`fit`, one chunk in memory.

        Returns
        -------
        self : AdditiveRegressor
            The model after this chunk.
        """
        refuse_training_on_card(self, "partial_fit", X, y, sample_weight)
        first = not hasattr(self, "_weights")
        X, y = self._next_chunk(X, y)
        weight = weights_of(self, sample_weight, len(y))
        y = self._centred(y, weight) if first else np.asarray(y, np.float64) - self._centre
        self._describe(self._learn_chunk(X, y, np.zeros(1), self._costs(weight)), weight)
        return self

    def predict(self, X: Any, *, exposure: Any = None) -> np.ndarray:
        """Predict f(x); for ``"poisson"`` and ``"gamma"`` the exposure times exp(f(x)).

        Parameters
        ----------
        X : array-like, CSR matrix, Codes or frame of shape (n_samples, n_features)
            Rows.
        exposure : array-like of shape (n_samples,), optional
            What each row was exposed to; 1 by default.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        scores = self._all_scores(X)[:, 0]
        xp = namespace(scores)
        if exposure is not None:
            logarithms = self._log_exposure(exposure, len(scores))
            scores = scores + xp.asarray(logarithms, dtype=scores.dtype, device=scores.device)
        return xp.exp(scores) if self._link == "log" else scores

    def _keep(self, found: list) -> None:
        super()._keep(found)
        self._offset = self._offset + self._centre

    def _start(self, n: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray] | None:
        start = super()._start(n, n_outputs)
        return None if start is None else (start[0], start[1] - self._centre)
