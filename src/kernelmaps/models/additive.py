r"""Additive models: a linear model on any additive map, trained on the fly.

f(x) = b + Σ_j g_j(x_j), g_j = ⟨w_j, ψ_j(x_j)⟩, with the objective

.. math:: \tfrac12 \|w\|^2 + C \sum_i s_i\, ℓ(y_i, f(x_i))

of LIBLINEAR, the intercept b not penalised.  ψ(X) is never stored: see
:mod:`kernelmaps.models._solver` for the algorithm and :mod:`kernelmaps.models._loops` for the
form in which the weights are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from ..maps.base import AdditiveMap
from ._additive_base import AdditiveModel, ShapeFunction, checked, weights_of
from ._calibration import platt

__all__ = ["AdditiveClassifier", "AdditiveRegressor", "ShapeFunction"]


class AdditiveClassifier(ClassifierMixin, AdditiveModel):
    """Classifier that is a sum of one-dimensional functions: an additive kernel machine.

    Parameters
    ----------
    feature_map : AdditiveMap, optional
        Any additive map of this library; ``SplineMap()`` by default. A fitted one is used as it
        is, an unfitted one is cloned and fitted.
    C : float, default=1.0
        Weight of the losses against ½‖w‖².
    loss : {"squared_hinge", "hinge", "log"}, default="squared_hinge"
        max(0, 1 − m)², max(0, 1 − m) or log(1 + exp(−m)) of the margin m.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    tol : float, default=1e-3
        Training ends with a certified duality gap of at most `tol` times the objective.
    max_iter : int, default=1000
        Most epochs; a ConvergenceWarning says what gap was left.
    class_weight : dict or "balanced", optional
        Weights of the classes' examples.
    warm_start : bool, default=False
        Start from the last fit's duals (same rows, another C, say).
    random_state : int, RandomState or None
        For the order of the examples.
    n_jobs : int, optional
        Threads; None means all that are available.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray
        Labels.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        b, the means of the terms included.
    feature_map_ : AdditiveMap
        The fitted map.
    dual_coef_ : ndarray of shape (n_samples, n_outputs)
        β with w = Σ β_i ψ(x_i).
    objective_, duality_gap_ : ndarray
        ½‖w‖² + C Σ ℓ for each one-vs-rest problem, and the certified distance to its minimum.
    n_iter_ : int
        Epochs.
    shape_functions_ : list of ShapeFunction
        The functions g_j on a grid.
    feature_importances_ : ndarray of shape (n_features,)
        Standard deviations of the terms.

    Notes
    -----
    Many classes are trained one against the rest, together: they are the lanes of the vectors in
    one pass over the data.

    ``predict_proba`` is the sigmoid itself for ``loss="log"``, else Platt's sigmoid fitted to the
    scores of (a sample of) the training data, as in the paper. For probabilities that are honest
    about overfitting use ``sklearn.calibration.CalibratedClassifierCV`` (sigmoid or isotonic).

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> y = np.abs(X - 0.5).sum(1) > 0.5
    >>> bool(km.AdditiveClassifier(C=10).fit(X, y).score(X, y) > 0.95)
    True
    """

    _losses = ("squared_hinge", "hinge", "log")

    def __init__(
        self,
        feature_map: AdditiveMap | None = None,
        C: float = 1.0,
        loss: str = "squared_hinge",
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.feature_map = feature_map
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdditiveClassifier:
        """Train.

        Parameters
        ----------
        X : array-like, CSR matrix or Codes of shape (n_samples, n_features)
            uint8, uint16, float32 and float64 are used as they lie in memory.
        y : array-like of shape (n_samples,)
            Labels of any kind.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C; examples of weight 0 do not take part.
        """
        rows, codes, positive, weight = self._problem(X, y, sample_weight)
        self._train(rows, codes, positive, self.C * weight)
        self._describe(rows)
        self._calibrate(codes[:: self._step], positive, weight[:: self._step])
        return self

    def _problem(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """Rows, codes of the labels, the code that each output calls +1, and weights."""
        self._check_parameters()
        X, y = checked(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"AdditiveClassifier needs examples of at least 2 classes; y has only one class, "
                f"{self.classes_[0]!s}."
            )
        weight = weights_of(self, sample_weight, codes.size)
        if self.class_weight is not None:
            weight = (
                weight * compute_class_weight(self.class_weight, classes=self.classes_, y=y)[codes]
            )
        if len(np.unique(codes[weight > 0])) < 2:
            raise ValueError(
                "AdditiveClassifier: examples of positive weight belong to only one class; "
                "check sample_weight and class_weight."
            )
        positive = np.arange(len(self.classes_)) if len(self.classes_) > 2 else np.ones(1)
        return self._prepare(X), codes, positive, weight

    def _calibrate(self, codes: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> None:
        """Platt's sigmoid of each output, on the scores of the sample."""
        self._sigmoid = np.tile([1.0, 0.0], (len(positive), 1))
        if self.loss == "log":
            return
        scores = self._trained_scores(self._sample).astype(np.float64)
        for k, code in enumerate(positive):
            self._sigmoid[k] = platt(scores[:, k], codes == code, weight)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        scores = self._scores(self._rows(X), look=True)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of the highest score."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes (one-vs-rest sigmoids, scaled to sum to one)."""
        scores = self._scores(self._rows(X), look=True).astype(np.float64)
        p = expit(scores * self._sigmoid[:, 0] + self._sigmoid[:, 1])
        if p.shape[1] == 1:
            return np.hstack([1 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1), 1 / p.shape[1])


class AdditiveRegressor(RegressorMixin, AdditiveModel):
    """Regressor that is a sum of one-dimensional functions.

    Parameters
    ----------
    feature_map : AdditiveMap, optional
        Any additive map of this library; ``SplineMap()`` by default.
    C : float, default=1.0
        Weight of the losses against ½‖w‖²; for the squared loss, ridge with alpha = 1/(2C).
    loss : {"squared", "epsilon_insensitive"}, default="squared"
        r² or max(0, \\|r\\| − epsilon) of the residual r.
    epsilon : float, default=0.1
        For ``loss="epsilon_insensitive"``, in units of y.
    fit_intercept, tol, max_iter, warm_start, random_state, n_jobs, verbose
        As for :class:`AdditiveClassifier`.

    Attributes
    ----------
    intercept_ : float
        b, the means of the terms included.
    feature_map_, dual_coef_, objective_, duality_gap_, n_iter_, shape_functions_
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

    _losses = ("squared", "epsilon_insensitive")

    def __init__(
        self,
        feature_map: AdditiveMap | None = None,
        C: float = 1.0,
        loss: str = "squared",
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.feature_map = feature_map
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdditiveRegressor:
        """Train; `y` holds numbers, for the rest see :meth:`AdditiveClassifier.fit`."""
        self._check_parameters()
        if isinstance(self.epsilon, bool) or not self.epsilon >= 0:
            raise ValueError(
                f"AdditiveRegressor: epsilon must be a number >= 0, got {self.epsilon!r}."
            )
        X, y = checked(self, X, y)
        y = np.asarray(y, dtype=np.float64)
        weight = weights_of(self, sample_weight, y.size)
        # Solved around the weighted mean: the intercept has little left to do.
        self._centre = float(np.average(y, weights=weight)) if self.fit_intercept else 0.0
        rows = self._prepare(X)
        self._train(rows, y - self._centre, np.zeros(1), self.C * weight)
        self._describe(rows)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The values of f."""
        return self._scores(self._rows(X), look=True)[:, 0]

    def _keep(self, found: list) -> None:
        super()._keep(found)
        self._offset = self._offset + self._centre

    def _start(self, n: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray] | None:
        start = super()._start(n, n_outputs)
        return None if start is None else (start[0], start[1] - self._centre)
