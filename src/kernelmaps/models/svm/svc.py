"""Additive support vector machines of classes."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..._util.arguments import check_choice
from ..._util.devices import is_foreign
from ..._util.schema import boolean, labels
from ..._util.storage import all_or_nothing
from ..device_scores import ScoresAnywhere, best_labels, indicators
from ..inputs import coded_labels, refuse_training_on_gpu, weights_of
from ..one_against_one import decided, pairs_of, votes
from ..probabilities import class_probabilities, sigmoid
from .base import AdditiveSVM, no_indicators, no_pairs, takes_chunks
from .inputs import is_indicators
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
class AdditiveSVC(ScoresAnywhere, ClassifierMixin, AdditiveSVM):
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
        `OneVsOneClassifier`. The latter is for rows in memory.
    cv : int, splitter or iterable, default=5
        Folds that choose among several values of C.
    solver : {"auto", "dual", "primal"}, default="auto"
        Coordinate descent on the dual, or Newton's method on the weights (for losses with kinks, an
        interior-point method). "auto" takes the second up to 1000 weights, the hinge losses only
        where C is large: C times the mean squared distance of ψ(x) from its mean above 15.
        Both end at the same minimum, with the same certificate; `solver_` says which one it was.
    warm_start : bool, default=False
        Start from the dual variables of the last fit (the same rows with another C, for example).
    random_state : int, RandomState or None
        Determines the order of the examples.
    n_jobs : int, optional
        Threads; None means all that are available.
    progress : bool, optional
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; for an indicator matrix, the numbers of its columns.
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
    n_samples_seen_ : int
        Rows so far, after `partial_fit`.
    machine_ : AdditiveMachine
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

    _state = AdditiveSVM._state.extended(
        required={"classes_": labels},
        allowed={"multilabel": boolean},
    )

    _multilabel = False  # whether y was an indicator matrix

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AdditiveSVC:
        """Train the classifier.

        Parameters
        ----------
        X : array-like, CSR matrix or Codes of shape (n_samples, n_features)
            uint8, uint16, float32 and float64 are used without a copy. Anything else that
            `kernelmaps.data.open_source` opens (files, chunks, Dask), and a `Source` itself, is
            read block by block and never as a whole.
        y : array-like of shape (n_samples,) or (n_samples, n_labels), str or None
            Labels of any kind; for files with names the column that holds them, None if the
            chunks or the file carry them. An indicator matrix of zeros and ones, for rows in
            memory, has a column for each label: a row has any number of them.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C; examples of weight 0 do not take part.

        Returns
        -------
        self : AdditiveSVC
            The fitted classifier.
        """
        self._fit(X, y, sample_weight)
        return self

    @available_if(takes_chunks)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> AdditiveSVC:
        """Learn from one more chunk of rows.

        The chunk's dual variables are optimised, given the weights that all chunks before have
        left, and then stay as they are: one pass of block dual descent.  The result depends on the
        order of the chunks and is close to, but not, the minimum that `fit` certifies; a chunk
        given twice counts as twice as many rows.  What predicts is the mean of the weights after
        each chunk.  After `fit` it continues from the fitted weights.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            One chunk in memory.
        y : array-like of shape (n_samples,)
            Its labels.
        classes : array-like, optional
            All labels that will ever occur; needed at the first call, unless `fit` was called.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C; examples of weight 0 do not take part.

        Returns
        -------
        self : AdditiveSVC
            The model after this chunk.
        """
        refuse_training_on_gpu(self, "partial_fit", X, y, sample_weight)
        first = not hasattr(self, "machine_")
        if is_indicators(self, y) or (self._multilabel and not first):
            raise ValueError(no_indicators(type(self).__name__, "partial_fit"))
        X, y = self._check_chunk(X, y)
        check_classification_targets(y)
        self._check_classes_of_chunk(y, classes, first)
        codes = np.searchsorted(self.classes_, y)
        weight = weights_of(self, sample_weight, len(y))
        if self.class_weight is not None:
            weight = weight * self._weights_by_class(y)[codes]
        if len(np.unique(codes[weight > 0])) < 2:
            warnings.warn(
                f"{type(self).__name__}.partial_fit: all rows of this chunk belong to one class, "
                "so little or nothing can be learned from it. Shuffle the data, or make the chunks "
                "larger.",
                UserWarning,
                stacklevel=2,
            )
        targets = Targets(codes, self._outputs(), weight)
        self._fit_chunk(X, targets)
        return self

    def _check_classes_of_chunk(self, y: np.ndarray, classes: Any, first: bool) -> None:
        """Learn the classes from the first chunk, and refuse other labels."""
        name = f"{type(self).__name__}.partial_fit"
        if first:
            if classes is None:
                raise ValueError(
                    f"{name}: classes must be passed at the first call: all labels that will ever "
                    "occur."
                )
            self.classes_ = np.unique(classes)
            if len(self.classes_) < 2:
                raise ValueError(f"{name}: needs at least 2 classes.")
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"{name}: classes={np.unique(classes)} are not those of the first call, "
                f"{self.classes_}."
            )
        unseen = np.setdiff1d(y, self.classes_)
        if len(unseen):
            raise ValueError(
                f"{name}: y has the labels {unseen.tolist()}, which were not among the classes "
                f"{self.classes_.tolist()} of the first call."
            )
        if self._pairwise:
            raise ValueError(no_pairs(type(self).__name__, "partial_fit"))
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"{name}: class_weight='balanced' needs all labels at once; pass a dict of weights."
            )

    def _targets(self, y: np.ndarray, weight: np.ndarray) -> Targets:
        name = type(self).__name__
        self._multilabel = y.ndim == 2 and y.shape[1] > 1
        if self._multilabel:
            return self._indicator_targets(y, weight)
        y = y if y.ndim == 1 else column_or_1d(y, warn=True)
        self.classes_, codes = coded_labels(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{name} needs examples of at least 2 classes; y has only one class, "
                f"{self.classes_[0]!s}."
            )
        if self.class_weight is not None:
            weight = weight * self._weights_by_class(y)[codes]
        if np.count_nonzero(np.bincount(codes, weight)) < 2:
            raise ValueError(
                f"{name}: examples of positive weight belong to only one class; check "
                "sample_weight and class_weight."
            )
        return Targets(codes, self._outputs(), weight)

    def _indicator_targets(self, y: np.ndarray, weight: np.ndarray) -> Targets:
        """Targets of rows with several labels, each of which is a problem of its own."""
        name = type(self).__name__
        if not np.isin(y, (0, 1)).all():
            raise ValueError(
                f"{name}: y has {y.shape[1]} columns, and must then be an indicator matrix of "
                "zeros and ones, with a column for each label."
            )
        if self.class_weight is not None or self.multi_class == "ovo":
            setting = "class_weight" if self.class_weight is not None else "multi_class='ovo'"
            raise ValueError(
                f"{name}: {setting} is about classes that exclude each other, and y is an "
                "indicator matrix. Leave it out."
            )
        self.classes_ = np.arange(y.shape[1])
        return Targets(np.asarray(y, np.float64), self._outputs(), weight)

    def _weights_by_class(self, y: np.ndarray) -> np.ndarray:
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError(
                f"{type(self).__name__}: class_weight must hold finite numbers >= 0, got "
                f"{self.class_weight!r}."
            )
        return weights

    def _check_parameters(self) -> np.ndarray | None:
        check_choice(self, "multi_class", self.multi_class, ("ovr", "ovo"))
        return super()._check_parameters()

    def _check_state(self) -> None:
        """Raise ValueError or TypeError if entries that were loaded contradict each other."""
        if hasattr(self, "classes_") and len(self.classes_) < 2:
            raise ValueError("classes_ must have at least two entries")
        super()._check_state()

    # -- outputs: one for two classes, else one for each class, or for each pair of classes --------

    @property
    def _pairwise(self) -> bool:
        """Whether outputs are pairs of classes."""
        return self.multi_class == "ovo" and len(self.classes_) > 2

    @property
    def _has_one_score(self) -> bool:
        """Whether there are two classes, of which the second one's score says all."""
        return len(self.classes_) == 2 and not self._multilabel

    def _outputs(self) -> np.ndarray:
        """The code that each output calls +1; of pairs, both codes."""
        if self._pairwise:
            return pairs_of(len(self.classes_))
        return np.ones(1) if self._has_one_score else np.arange(len(self.classes_))

    def _kind_of_outputs(self) -> tuple[str, np.ndarray | None, bool]:
        kind = "labels" if self._multilabel else "pairs" if self._pairwise else "classes"
        return kind, self.classes_, self.loss == "log_loss" and kind != "pairs"

    def _output_names(self) -> list[str]:
        classes = [str(label) for label in self.classes_]
        if self._pairwise:
            return [f"{classes[b]}, not {classes[a]}" for a, b in self._outputs()]
        return classes[1:] if self._has_one_score else classes

    def _output_to_explain(self, scores: np.ndarray) -> int:
        if not self._pairwise:
            return super()._output_to_explain(scores)
        winner = int(np.argmax(votes(scores[None], len(self.classes_))[0]))
        sign = (self._outputs() == winner) @ [-1, 1]  # of scores that speak for this class
        margin = np.where((sign != 0) & (sign * scores >= 0), np.abs(scores), np.inf)
        return int(np.argmin(margin))

    def _by_class(self, scores: Any) -> Any:
        """Scores of outputs as the values of `decision_function`."""
        if self._pairwise and is_foreign(scores):
            raise ValueError(no_pairs(type(self).__name__, "rows of other array libraries"))
        return votes(scores, len(self.classes_)) if self._pairwise else scores

    def _score_of_fold(self, scores: np.ndarray, y: np.ndarray, counts: np.ndarray) -> float:
        if self._multilabel:
            return float(np.average((indicators(scores) == y).all(axis=1), weights=counts))
        best = decided(self._by_class(scores), len(self.classes_))
        return float(np.average(best == y, weights=counts))

    # -- predictions ------------------------------------------------------------------------------

    @property
    def intercept_(self) -> np.ndarray:
        """The intercept of each output, the means of the terms included."""
        check_is_fitted(self)
        return self.machine_.intercept

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
        scores = self._by_class(self._scores(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class with the highest score.

        Parameters
        ----------
        X : array-like, CSR matrix, Codes or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_labels) after an indicator matrix
            Labels; of several, the indicators of those with a positive score.
        """
        scores = self._by_class(self._scores(X))
        return indicators(scores) if self._multilabel else best_labels(self, scores)

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
            Probabilities, in the order of `classes_`. Those of the labels of an indicator matrix
            do not sum to one: each is that of the label by itself.
        """
        p = sigmoid(self._scores(X))
        return p if self._multilabel else class_probabilities(p)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.multi_class != "ovo"
        return tags
