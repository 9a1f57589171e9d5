"""The regularisation path of an additive model, and the choice of C by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from ...atomic import all_or_nothing
from ...data.frames import is_mixed
from ...data.opening import has_text
from ...default_parts import DefaultParts
from ...maps.base import AdditiveMap
from ...maps.spline import SplineMap
from ...progress import track
from ...schema import State, array, instance, integer, labels, names, number
from ..device_scores import ScoresAnywhere
from ..one_against_one import decided
from ..shapes import ShapeFunction
from .base import AdditiveModel
from .classifier import AdditiveClassifier
from .inputs import refuse_training_on_card, weights_of
from .regressor import AdditiveRegressor

_OWN = ("Cs", "cv", "progress")


def of_chosen(method: Callable[..., Any]) -> Any:
    """A method of the model that a search has chosen, as the search's own."""

    @wraps(method)
    def own(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, method.__name__)(*args, **kwargs)

    return own


@dataclass(eq=False, repr=False)
class SearchOverC(DefaultParts, BaseEstimator):
    """What the searches have in common: folds, paths of warm starts, the choice."""

    feature_map: AdditiveMap | None = None
    Cs: Any = 8
    _: KW_ONLY
    cv: Any = 5
    loss: str = "squared_hinge"
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 1000
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool | None = None

    _chosen: ClassVar[type[AdditiveModel]]  # class of the models
    _state = State(
        required={
            "Cs_": array("f8", "sizes", low=0),
            "scores_": array("f8", "folds sizes", finite=False),
            "C_": number(above=0),
            "n_iter_": integer(),
            "n_features_in_": integer(1),
        },
        allowed={"feature_names_in_": names},
    )

    eval_terms = of_chosen(AdditiveModel.eval_terms)
    explain = of_chosen(AdditiveModel.explain)

    def _default_part(self, name: str) -> Any:
        return SplineMap() if name == "feature_map" else None

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Choose C by cross-validation and train with it on all rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels or numbers.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C, and weights of the rows in the scores of the folds; rows of weight 0
            count as absent.

        Returns
        -------
        self : estimator
            The fitted search.
        """
        refuse_training_on_card(self, "fit", X, y, sample_weight)
        if self.feature_map is None and (is_mixed(X) or has_text(X)):
            raise ValueError(
                f"{type(self).__name__} chooses C of a model on a map, and X is a table with text, "
                f"categories or missing values. Use {self._chosen.__name__}: it takes X as it is, "
                "and chooses the smoothness of each column itself."
            )
        self.Cs_ = self._values()
        model, classes = self._model(float(self.Cs_[0])), isinstance(self, ClassifierMixin)
        model._check_parameters()
        rows, codes, positive, weight = model._problem(X, y, sample_weight)
        counts = weights_of(self, sample_weight, len(codes))  # without the weights of classes
        folds = self._folds(codes, counts, classes)
        self.scores_ = np.empty((len(folds), len(self.Cs_)))
        for k in track(range(len(folds)), "folds", enabled=self.progress):
            own, test = weight.copy(), folds[k]
            own[test] = 0.0
            seen = test[counts[test] > 0]
            self.scores_[k] = self._path(model, rows, codes, positive, own, seen, counts[seen])
        best = int(np.argmax(self.scores_.mean(axis=0) > self.scores_.mean(axis=0).max() - 1e-12))
        self.C_ = float(self.Cs_[best])
        self.estimator_ = self._model(self.C_).fit(X, y, sample_weight)
        for name in ("n_iter_", "n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
            elif hasattr(self, name):
                delattr(self, name)
        return self

    def _folds(self, codes: np.ndarray, counts: np.ndarray, classes: bool) -> list[np.ndarray]:
        """Held-out rows of each fold; rows of weight 0 are not divided, unless splits are given."""
        given = not isinstance(self.cv, Integral | None) and not hasattr(self.cv, "split")
        some = np.arange(len(codes)) if given else np.flatnonzero(counts > 0)
        cut = check_cv(self.cv, codes[some], classifier=classes)
        folds = [some[test] for _, test in cut.split(np.zeros(len(some)), codes[some])]
        empty = [k for k, test in enumerate(folds) if not counts[test].any()]
        if empty:
            raise ValueError(
                f"{type(self).__name__}: all rows that fold {empty[0]} of cv holds out have the "
                "weight 0. Leave that fold out, or give some of its rows a weight."
            )
        return folds

    def _model(self, C: float) -> Any:
        own = {k: v for k, v in self.get_params(deep=False).items() if k not in _OWN}
        return self._chosen(C=C, **own)

    def _path(
        self,
        model: Any,
        X: Any,
        y: np.ndarray,
        positive: np.ndarray,
        weight: np.ndarray,
        test: np.ndarray,
        counts: np.ndarray,
    ) -> list[float]:
        """Held-out scores for all C, each trained from the last one's duals.

        `weight` is that of all rows while training, `counts` of those that are held out.
        """
        scores, start = [], None
        held_out = X[test]
        for C in self.Cs_:
            model.C = float(C)
            model._train(X, y, positive, model._costs(weight), start)
            start = (model.dual_coef_, model._offset - getattr(model, "_centre", 0.0))
            found = model._trained_scores(held_out)
            scores.append(self._score(model, found, y[test], counts))
        return scores

    def _values(self) -> np.ndarray:
        if isinstance(self.Cs, int | np.integer) and not isinstance(self.Cs, bool) and self.Cs > 0:
            return np.logspace(-4, 3, self.Cs) if self.Cs > 1 else np.ones(1)
        try:
            values = np.sort(np.ravel(np.asarray(self.Cs, dtype=np.float64)))
        except (TypeError, ValueError):
            values = np.zeros(1)
        positive = (values > 0).all() and np.isfinite(values).all()
        if values.size == 0 or isinstance(self.Cs, int) or not positive:
            raise ValueError(
                f"{type(self).__name__}: Cs must be a positive number of values, or positive "
                f"values of C, got {self.Cs!r}."
            )
        return values

    def _check_state(self) -> None:
        """Raise ValueError if entries that were loaded contradict each other."""
        if hasattr(self, "estimator_") and self.n_features_in_ != self.estimator_.n_features_in_:
            raise ValueError("n_features_in_ is not that of estimator_")

    @property
    def intercept_(self) -> Any:
        """Of the chosen model, the means of the terms included."""
        check_is_fitted(self)
        return self.estimator_.intercept_

    @property
    def shape_functions_(self) -> list[ShapeFunction]:
        """Functions of the chosen model, one for each feature."""
        check_is_fitted(self)
        return self.estimator_.shape_functions_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._model(1.0).__sklearn_tags__().input_tags
        return tags


@dataclass(eq=False, repr=False)
class AdditiveClassifierCV(ScoresAnywhere, ClassifierMixin, SearchOverC):
    """Additive classifier with C chosen by cross-validation along a path of warm starts.

    The map is fitted once (to all rows: it learns ranges, nothing of the labels), no rows are
    copied (the held-out examples have cost 0), and each C starts from the duals of the one before.

    Parameters
    ----------
    feature_map : AdditiveMap, optional
        As for :class:`AdditiveClassifier`.
    Cs : int or sequence of float, default=8
        Values of C, or how many from 1e-4 to 1e3.
    cv : int or splitter, default=5
        Folds.
    loss : str
        As for :class:`AdditiveClassifier`.
    fit_intercept : bool, default=True
        As for :class:`AdditiveClassifier`.
    tol : float, default=1e-3
        As for :class:`AdditiveClassifier`.
    max_iter : int, default=1000
        As for :class:`AdditiveClassifier`.
    class_weight : dict or "balanced", optional
        As for :class:`AdditiveClassifier`.
    random_state : int, RandomState or None
        As for :class:`AdditiveClassifier`.
    n_jobs : int, optional
        As for :class:`AdditiveClassifier`.
    multi_class : {"ovr", "ovo"}, default="ovr"
        As for :class:`AdditiveClassifier`.
    calibration : {"auto", "out_of_fold", "in_sample"}, default="auto"
        As for :class:`AdditiveClassifier`.
    progress : bool, optional
        Show a progress bar.

    Attributes
    ----------
    Cs_ : ndarray of shape (n_Cs,)
        In increasing order.
    scores_ : ndarray of shape (n_folds, n_Cs)
        Accuracies on the held-out folds.
    C_ : float
        The smallest C of the highest mean accuracy.
    estimator_ : AdditiveClassifier
        Fitted with it to all rows.
    classes_ : ndarray
    n_iter_ : int
        Epochs of that fit.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> y = np.abs(X - 0.5).sum(1) > 0.5
    >>> model = km.AdditiveClassifierCV(Cs=[0.01, 1, 100], cv=3).fit(X, y)
    >>> model.scores_.shape
    (3, 3)
    """

    _: KW_ONLY
    class_weight: Any = None
    multi_class: str = "ovr"
    calibration: str = "auto"

    _chosen = AdditiveClassifier
    _state = SearchOverC._state.extended(
        required={"estimator_": instance((AdditiveClassifier,)), "classes_": labels}
    )

    predict = of_chosen(AdditiveClassifier.predict)
    decision_function = of_chosen(AdditiveClassifier.decision_function)
    predict_proba = of_chosen(AdditiveClassifier.predict_proba)

    def _check_state(self) -> None:
        """Raise ValueError if entries that were loaded contradict each other."""
        super()._check_state()
        if hasattr(self, "estimator_") and not np.array_equal(
            self.classes_, self.estimator_.classes_
        ):
            raise ValueError("classes_ are not those of estimator_")

    def _score(self, model: Any, found: np.ndarray, codes: np.ndarray, counts: np.ndarray) -> float:
        best = decided(model._by_class(found), len(model.classes_))
        return float(np.average(best == codes, weights=counts))


@dataclass(eq=False, repr=False)
class AdditiveRegressorCV(ScoresAnywhere, RegressorMixin, SearchOverC):
    """Additive regressor with C chosen by cross-validation along a path of warm starts.

    Parameters
    ----------
    feature_map : AdditiveMap, optional
        As for :class:`AdditiveRegressor`.
    Cs : int or sequence of float, default=8
        Values of C, or how many from 1e-4 to 1e3.
    cv : int or splitter, default=5
        Folds.
    loss : str
        As for :class:`AdditiveRegressor`.
    epsilon : float, default=0.1
        As for :class:`AdditiveRegressor`.
    fit_intercept : bool, default=True
        As for :class:`AdditiveRegressor`.
    tol : float, default=1e-3
        As for :class:`AdditiveRegressor`.
    max_iter : int, default=1000
        As for :class:`AdditiveRegressor`.
    random_state : int, RandomState or None
        As for :class:`AdditiveRegressor`.
    n_jobs : int, optional
        As for :class:`AdditiveRegressor`.
    progress : bool, optional
        Show a progress bar.

    Attributes
    ----------
    Cs_ : ndarray of shape (n_Cs,)
        In increasing order.
    scores_ : ndarray of shape (n_folds, n_Cs)
        R² on the held-out folds.
    C_ : float
        The smallest C of the highest mean score.
    estimator_ : AdditiveRegressor
        Fitted with it to all rows.
    n_iter_ : int
        Epochs of that fit.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1]
    >>> model = km.AdditiveRegressorCV(Cs=[0.01, 1, 100], cv=3).fit(X, y)
    >>> model.C_
    100.0
    """

    _: KW_ONLY
    loss: str = "squared_error"
    epsilon: float = 0.1

    _chosen = AdditiveRegressor
    _state = SearchOverC._state.extended(required={"estimator_": instance((AdditiveRegressor,))})

    predict = of_chosen(AdditiveRegressor.predict)

    def _score(self, model: Any, found: np.ndarray, y: np.ndarray, counts: np.ndarray) -> float:
        spread = float(counts @ (y - np.average(y, weights=counts)) ** 2)
        missed = float(counts @ (found[:, 0] - model._centre - y) ** 2)
        return 1.0 - missed / spread if spread > 0 else float(missed == 0)
