"""Additive support vector machines of classes and of numbers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if

from ..._util.arguments import check_choice, check_number
from ..._util.devices import is_foreign
from ..._util.schema import labels
from ..._util.storage import all_or_nothing
from .. import decision, inputs
from .base import AdditiveSVM, refuse_pairs
from .problem import Targets


def _has_probabilities(model: AdditiveSVC) -> bool:
    """Whether scores are log odds of single classes."""
    if model.loss == "log_loss" and model.multi_class == "ovr":
        return True
    raise AttributeError(
        f"{type(model).__name__}.predict_proba is for loss='log_loss' and multi_class='ovr', got "
        f"loss={model.loss!r} and multi_class={model.multi_class!r}. Scores of other losses are "
        "calibrated by sklearn.calibration.CalibratedClassifierCV(model)."
    )


@dataclass(eq=False, repr=False)
class AdditiveSVC(decision.ScoresAnywhere, ClassifierMixin, AdditiveSVM):
    r"""Support vector classifier that is a sum of one-dimensional functions.

    It is a linear machine on an additive feature map, :math:`f(x) = b + \sum_j g_j(x_j)` with
    :math:`g_j(x_j) = ⟨w_j, ψ_j(x_j)⟩`, which minimises

    .. math:: \tfrac12 \|w\|^2 + C \sum_i s_i\, ℓ(y_i f(x_i))

    without storing ψ(X). The intercept b is not penalised. For tables with text, categories or
    missing values, and functions whose smoothness is estimated, there is
    :class:`AdditiveClassifier`.

    Parameters
    ----------
    feature_map : AdditiveMap, optional
        Any additive map of this library; ``SplineMap()`` by default. A fitted one is used as it
        is, an unfitted one is cloned and fitted. Searches and cross-validation clone the model,
        whose map then loses its fit: there, ``sklearn.frozen.FrozenEstimator(map)`` preserves it.
    C : float, "scale" or sequence of float, default="scale"
        Weight of the losses against ½‖w‖². "scale" is 6 over the largest second derivative of the
        loss times the mean squared distance of ψ(x) from its mean: for the squared hinge 3 over
        that distance. It does not depend on the units of a map; `C_` is the number. Of several
        values the one with the highest cross-validated accuracy is taken (the smallest of these,
        if there is a tie).
    loss : {"squared_hinge", "hinge", "log_loss"}, default="squared_hinge"
        max(0, 1 − m)², max(0, 1 − m) or log(1 + exp(−m)) of the margin m = y f(x).
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    tol : float, default=1e-3
        Training ends with a certified duality gap of at most `tol` times the objective.
    max_iter : int, default=1000
        Largest number of epochs of coordinate descent; if they are not enough, a ConvergenceWarning
        states the gap.
    class_weight : dict or "balanced", optional
        Weights of the classes' examples.
    multi_class : {"ovr", "ovo"}, default="ovr"
        Many classes one against the rest, or one against one: a model for each pair of classes on
        the rows of the two, all on one map, whose votes decide as in scikit-learn's
        `OneVsOneClassifier`. The latter is for rows in memory, takes several times as long, and is
        worth a try from eight classes on: a mean gain of 2.9 points of accuracy on six tables.
    cv : int, splitter or iterable, default=5
        Folds that choose among several values of C.
    solver : {"auto", "dual", "primal"}, default="auto"
        Coordinate descent on the dual, or Newton's method on the weights (for losses with kinks, an
        interior-point method). "auto" takes the second up to 1000 weights, the hinge losses only
        where C is large: C times the mean squared distance of ψ(x) from its mean above 15.
        Both end at the same minimum, with the same certificate; `solver_` says which one it was.
    random_state : int, RandomState, Generator or None
        Determines the order of the examples.
    n_jobs : int, optional
        Threads; None means all that are available.
    progress : bool, optional
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    intercept_ : ndarray of shape (n_outputs,)
        b, the means of the terms included. Outputs are one for two classes, else the classes, or
        for ``multi_class="ovo"`` the pairs (0, 1), (0, 2), … of classes.
    feature_map_ : AdditiveMap
        The fitted map.
    C_ : float
        C of the model.
    Cs_ : ndarray of shape (n_Cs,)
        The values of C in increasing order, if there are several.
    cv_scores_ : ndarray of shape (n_folds, n_Cs)
        Accuracies on the held-out folds, if C has several values.
    dual_coef_ : ndarray of shape (n_samples, n_outputs)
        α with w = Σ α_i ψ(x_i), for ``solver_ == "primal"`` to the duality gap. Not part of files
        and pickles.
    objective_, duality_gap_ : ndarray of shape (n_outputs,)
        ½‖w‖² + C Σ ℓ for each output, and the certified distance to its minimum.
    n_iter_ : int
        Epochs, or Newton steps.
    solver_ : str
        "dual" or "primal".
    shape_functions_ : list of ShapeFunction
        The functions g_j on a grid.
    feature_importances_ : ndarray of shape (n_features,)
        Standard deviations of the terms.
    term_names_ : list of str
        Names of the features, in the order of `eval_terms`.
    predictor_ : AdditiveMachine
        The fitted model itself: map, weights and intercepts.

    See Also
    --------
    AdditiveSVR : The same for numbers.
    AdditiveClassifier : A generalised additive model of classes, for tables.

    Notes
    -----
    Many classes are trained one against the rest, together: they are the lanes of the vectors in
    one pass over the data. One against one, K classes have K (K − 1)/2 outputs, each with weights
    of its own; `eval_terms` and `shape_functions_` are then those of the pairs.

    ``predict_proba`` is there for ``loss="log_loss"``, one class against the rest: sigmoids of the
    scores, scaled to sum to one. Scores of other losses are no log odds;
    ``sklearn.calibration.CalibratedClassifierCV(model)`` turns them into probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> y = np.abs(X - 0.5).sum(1) > 0.5
    >>> bool(km.AdditiveSVC(C=10).fit(X, y).score(X, y) > 0.95)
    True
    >>> model = km.AdditiveSVC(km.SplineMap(8), C=[0.01, 1, 100], cv=3).fit(X, y)
    >>> model.cv_scores_.shape
    (3, 3)

    The columns of a frame name the terms:

    >>> import pandas as pd
    >>> frame = pd.DataFrame(X, columns=["width", "height"])
    >>> km.AdditiveSVC(C=10).fit(frame, y).term_names_
    ['width', 'height']
    """

    C: Any = "scale"
    _: KW_ONLY
    class_weight: Any = None
    multi_class: str = "ovr"

    _state = AdditiveSVM._state.extended(required={"classes_": labels})

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AdditiveSVC:
        """Train the classifier.

        Parameters
        ----------
        X : array-like, CSR matrix or Codes of shape (n_samples, n_features)
            uint8, uint16, float32 and float64 are used without a copy. Anything else that
            `kernelmaps.data.open_source` opens (files, chunks, Dask), and a `Source` itself, is
            read block by block and never as a whole.
        y : array-like of shape (n_samples,), str or None
            Labels of any kind; for files and frames the name of the column, None if the
            chunks or the file carry them.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C; examples of weight 0 do not take part.

        Returns
        -------
        self : AdditiveSVC
            The fitted classifier.
        """
        self._fit(X, y, sample_weight)
        return self

    def _targets(self, y: np.ndarray, weight: np.ndarray) -> Targets:
        y = column_or_1d(y, warn=True)
        self.classes_, codes = inputs.coded_labels(y)
        inputs.check_classes(self, self.classes_)
        weight = inputs.weigh_classes(self, y, codes, weight)
        return Targets(codes, self._outputs(), weight)

    def _check_parameters(self) -> np.ndarray | None:
        check_choice(self, "multi_class", self.multi_class, ("ovr", "ovo"))
        return super()._check_parameters()

    # -- outputs: one for two classes, else one for each class, or for each pair of classes --------

    @property
    def _pairwise(self) -> bool:
        """Whether outputs are pairs of classes."""
        return self.multi_class == "ovo" and len(self.classes_) > 2

    def _outputs(self) -> np.ndarray:
        """The code that each output calls +1; of pairs, both codes."""
        if self._pairwise:
            return decision.class_pairs(len(self.classes_))
        return np.ones(1) if len(self.classes_) == 2 else np.arange(len(self.classes_))

    def _kind_of_outputs(self) -> tuple[str, np.ndarray | None]:
        return "pairs" if self._pairwise else "classes", self.classes_

    def _class_scores(self, scores: Any) -> Any:
        """Scores of outputs as the values of `decision_function`."""
        if not self._pairwise:
            return scores
        if is_foreign(scores):
            refuse_pairs(type(self).__name__, "rows of other array libraries")
        return decision.count_votes(scores, len(self.classes_))

    def _score_of_fold(self, scores: np.ndarray, y: np.ndarray, counts: np.ndarray) -> float:
        best = decision.best_codes(self._class_scores(scores), len(self.classes_))
        return float(np.average(best == y, weights=counts))

    # -- predictions ------------------------------------------------------------------------------

    @property
    def intercept_(self) -> np.ndarray:
        """The intercept of each output, the means of the terms included."""
        return self._model.intercept

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the scores of the classes.

        Parameters
        ----------
        X : array-like, CSR matrix, Codes or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            One column for two classes, for the second of them. One against one, the votes for each
            class, ties broken by the scores of the pairs.
        """
        scores = self._class_scores(self._scores(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class with the highest score.

        Parameters
        ----------
        X : array-like, CSR matrix, Codes or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        return decision.best_labels(self, self._class_scores(self._scores(X)))

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities of the classes: sigmoids of the scores, scaled to sum to one.

        For ``loss="log_loss"`` and ``multi_class="ovr"`` alone; see the notes of the class.

        Parameters
        ----------
        X : array-like, CSR matrix, Codes or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return decision.class_probabilities(decision.sigmoid(self._scores(X)))


@dataclass(eq=False, repr=False)
class AdditiveSVR(decision.ScoresAnywhere, RegressorMixin, AdditiveSVM):
    r"""Support vector regressor, or ridge, that is a sum of one-dimensional functions.

    It is a linear machine on an additive feature map, :math:`f(x) = b + \sum_j g_j(x_j)` with
    :math:`g_j(x_j) = ⟨w_j, ψ_j(x_j)⟩`, which minimises

    .. math:: \tfrac12 \|w\|^2 + C \sum_i s_i\, ℓ(y_i - f(x_i))

    without storing ψ(X). The intercept b is not penalised. For tables with text, categories or
    missing values, and functions whose smoothness is estimated, there is
    :class:`AdditiveRegressor`.

    Parameters
    ----------
    feature_map : AdditiveMap, optional
        Any additive map of this library; ``SplineMap()`` by default. A fitted one is used as it
        is, an unfitted one is cloned and fitted. Searches and cross-validation clone the model,
        whose map then loses its fit: there, ``sklearn.frozen.FrozenEstimator(map)`` preserves it.
    C : float, "scale" or sequence of float, default=1.0
        Weight of the losses against ½‖w‖²; for the squared error, ridge with alpha = 1/(2C).
        "scale": see :class:`AdditiveSVC`. Of several values the one with the highest
        cross-validated R² is taken (the smallest of these, if there is a tie).
    loss : {"squared_error", "epsilon_insensitive"}, default="squared_error"
        Of the residual r: r², or max(0, \|r\| − epsilon). The default differs from that of
        scikit-learn's LinearSVR, "epsilon_insensitive": the squared error estimates the mean of y,
        and has no `epsilon` to choose.
    epsilon : float, default=0.0
        For ``loss="epsilon_insensitive"``, in units of y.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    tol : float, default=1e-3
        Training ends with a certified duality gap of at most `tol` times the objective.
    max_iter : int, default=1000
        Largest number of epochs of coordinate descent; if they are not enough, a ConvergenceWarning
        states the gap.
    cv : int, splitter or iterable, default=5
        Folds that choose among several values of C.
    solver : {"auto", "dual", "primal"}, default="auto"
        Coordinate descent on the dual, or Newton's method on the weights (for losses with kinks, an
        interior-point method). "auto" takes the second up to 1000 weights, the
        epsilon-insensitive loss only where C is large: C times the mean squared distance of ψ(x)
        from its mean above 15 mean absolute deviations of y.
        Both end at the same minimum, with the same certificate; `solver_` says which one it was.
    random_state : int, RandomState, Generator or None
        Determines the order of the examples.
    n_jobs : int, optional
        Threads; None means all that are available.
    progress : bool, optional
        Show a progress bar.

    Attributes
    ----------
    intercept_ : float
        b, the means of the terms included.
    feature_map_ : AdditiveMap
        The fitted map.
    C_ : float
        C of the model.
    Cs_ : ndarray of shape (n_Cs,)
        The values of C in increasing order, if there are several.
    cv_scores_ : ndarray of shape (n_folds, n_Cs)
        R² on the held-out folds, if C has several values.
    dual_coef_ : ndarray of shape (n_samples, 1)
        α with w = Σ α_i ψ(x_i), for ``solver_ == "primal"`` to the duality gap. Not part of files
        and pickles.
    objective_, duality_gap_ : ndarray of shape (1,)
        ½‖w‖² + C Σ ℓ, and the certified distance to its minimum.
    n_iter_ : int
        Epochs, or Newton steps.
    solver_ : str
        "dual" or "primal".
    shape_functions_ : list of ShapeFunction
        The functions g_j on a grid.
    feature_importances_ : ndarray of shape (n_features,)
        Standard deviations of the terms.
    term_names_ : list of str
        Names of the features, in the order of `eval_terms`.
    predictor_ : AdditiveMachine
        The fitted model itself: map, weights and intercept.

    See Also
    --------
    AdditiveSVC : The same for classes.
    AdditiveRegressor : A generalised additive model of numbers, for tables.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2
    >>> bool(km.AdditiveSVR(C=100).fit(X, y).score(X, y) > 0.99)
    True
    >>> km.AdditiveSVR(C=[0.01, 1, 100], cv=3).fit(X, y).C_
    100.0

    The columns of a frame name the terms:

    >>> import pandas as pd
    >>> frame = pd.DataFrame(X, columns=["width", "height"])
    >>> km.AdditiveSVR(C=100).fit(frame, y).term_names_
    ['width', 'height']
    """

    _: KW_ONLY
    loss: str = "squared_error"
    epsilon: float = 0.0

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AdditiveSVR:
        """Train the regressor.

        Parameters
        ----------
        X : array-like, CSR matrix or Codes of shape (n_samples, n_features)
            uint8, uint16, float32 and float64 are used without a copy. Anything else that
            `kernelmaps.data.open_source` opens (files, chunks, Dask), and a `Source` itself, is
            read block by block and never as a whole.
        y : array-like of shape (n_samples,), str or None
            Numbers; for files and frames the name of the column, None if the chunks or the
            file carry them.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C; examples of weight 0 do not take part.

        Returns
        -------
        self : AdditiveSVR
            The fitted regressor.
        """
        self._fit(X, y, sample_weight)
        return self

    def _targets(self, y: np.ndarray, weight: np.ndarray) -> Targets:
        """Targets around their weighted mean: the intercept has little left to do."""
        name = type(self).__name__
        y = column_or_1d(y, warn=True)
        if y.dtype.kind not in "fiubO":
            raise ValueError(f"{name}: y must be numbers, got {y.dtype}.")
        y = inputs.real_targets(y, name)
        centre = float(np.average(y, weights=weight)) if self.fit_intercept else 0.0
        return Targets(y - centre, np.zeros(1), weight, centre)

    def _check_parameters(self) -> np.ndarray | None:
        check_number(self, "epsilon", self.epsilon, "a number >= 0", lambda e: 0 <= e < np.inf)
        return super()._check_parameters()

    def _score_of_fold(self, scores: np.ndarray, y: np.ndarray, counts: np.ndarray) -> float:
        spread = float(counts @ (y - np.average(y, weights=counts)) ** 2)
        missed = float(counts @ (scores[:, 0] - y) ** 2)
        return 1.0 - missed / spread if spread > 0 else float(missed == 0)

    @property
    def intercept_(self) -> float:
        """The intercept, the means of the terms included."""
        return float(self._model.intercept[0])

    def predict(self, X: Any) -> np.ndarray:
        """Predict f(x).

        Parameters
        ----------
        X : array-like, CSR matrix, Codes or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        return self._scores(X)[:, 0]
