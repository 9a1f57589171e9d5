r"""Additive classifiers: a linear model on any additive map, trained on the fly.

f(x) = b + Σ_j g_j(x_j), g_j = ⟨w_j, ψ_j(x_j)⟩, with the objective

.. math:: \tfrac12 \|w\|^2 + C \sum_i s_i\, ℓ(y_i, f(x_i))

of LIBLINEAR, the intercept b not penalised.  ψ(X) is never stored: see
:mod:`.dual` for the algorithm and :mod:`._loops` for the
form in which the weights are kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ...arguments import check_choice
from ...atomic import all_or_nothing
from ...data import Source
from ...device import is_foreign
from ...schema import array, labels
from ..device_scores import ScoresAnywhere, best_labels
from ..gam.route import TABLE_STATE, fits_chunks
from ..gam.sampling import RowChecks, Sample, count_labels
from ..gam.streamed import one_against_rest
from ..losses import Loss, make_loss
from ..one_against_one import coupled, pairs_of, votes
from .calibration import Calibrated, platt, shares, sigmoids
from .inputs import coded_labels, refuse_training_on_card, weights_of


@dataclass(eq=False, repr=False)
class AdditiveClassifier(ScoresAnywhere, ClassifierMixin, Calibrated):
    """Classifier that is a sum of one-dimensional functions: an additive kernel machine.

    Parameters
    ----------
    feature_map : AdditiveMap, optional
        Any additive map of this library; ``SplineMap()`` by default. A fitted one is used as it
        is, an unfitted one is cloned and fitted. Searches and cross-validation clone the model,
        whose map then loses its fit: there, ``sklearn.frozen.FrozenEstimator(map)`` keeps it.
    C : float or None, default=1.0
        Weight of the losses against ½‖w‖². None fits a table, with strengths that are chosen.
    loss : {"squared_hinge", "hinge", "log_loss"}, default="squared_hinge"
        max(0, 1 − m)², max(0, 1 − m) or log(1 + exp(−m)) of the margin m.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    tol : float, default=1e-3
        Training ends with a certified duality gap of at most `tol` times the objective.
    max_iter : int, default=1000
        Largest number of epochs; if they are not enough, a ConvergenceWarning states the gap.
    class_weight : dict or "balanced", optional
        Weights of the classes' examples.
    warm_start : bool, default=False
        Start from the dual variables of the last fit (the same rows with another C, for example).
    random_state : int, RandomState or None
        Determines the order of the examples.
    n_jobs : int, optional
        Threads; None means all that are available.
    progress : bool, optional
        Show a progress bar.
    terms : list or dict, optional
        For tables: a list of all terms (columns, pairs of columns, :class:`Term`), or a mapping
        from columns to kinds ("spline", "linear", "category", "periodic"), a :class:`Term`, or
        None to leave a column out. By default each column has the term that suits it.
    interactions : "auto", int or list of pairs, optional
        For tables: pairs of columns that get an additional term. "auto" looks for at most 40,
        a number for at most as many. Those stay that lower the losses of held-out rows, or that a
        score test on all rows wants, at a level of 1 % for all pairs of columns together.
    constraints : dict, optional
        For tables: "increasing", "decreasing", "convex" or "concave" (or a tuple of these) by
        column.
    smoothing : "auto", float or dict, optional
        For tables: strengths of the penalties, chosen by restricted maximum likelihood ("auto",
        also for None); a number, which has the weight of that many rows; or numbers by column.
    categorical_features : sequence of int, str or bool, optional
        For tables: columns of numbers that are categories. Text and categories of a frame are
        categories anyway.
    solver : {"auto", "dual", "primal"}, default="auto"
        For maps: coordinate descent on the dual, or Newton's method on the weights. "auto" starts
        with the first and switches to the second if 100 epochs are not enough (D2 splines, weak
        regularisation) and the map has at most 3000 columns. Both end at the same minimum, with
        the same certificate; `solver_` says which one it was.
    compact : bool, default=True
        For splines with uniform knots: if X has 2 million values or more, floats of at least 32
        columns, a first solution is found on their positions among the knots, rounded to two bytes
        each; from there training goes on with X itself, whose gap is certified. False trains on X
        alone, without that copy.
    multi_class : {"ovr", "ovo"}, default="ovr"
        Many classes one against the rest, or one against one: a model for each pair of classes on
        the rows of the two, all on one map, whose votes decide as in scikit-learn's
        `OneVsOneClassifier`. For maps, and rows that are in memory.
    calibration : {"auto", "out_of_fold", "in_sample"}, default="auto"
        Scores that probabilities are fitted to, unless the loss is "log_loss": of rows that took
        no part in the training that scores them (three more fits, which start from the solution),
        or of the fitted model itself. "auto" takes the first up to 4 million values (rows times
        features times outputs), and always the second in `partial_fit` and for files.

    Attributes
    ----------
    classes_ : ndarray
        Labels.
    intercept_ : ndarray of shape (n_outputs,)
        b, the means of the terms included. Outputs are one for two classes, else the classes, or
        for ``multi_class="ovo"`` the pairs (0, 1), (0, 2), … of classes.
    feature_map_ : AdditiveMap
        The fitted map.
    dual_coef_ : ndarray of shape (n_samples, n_outputs)
        β with w = Σ β_i ψ(x_i).
    objective_, duality_gap_ : ndarray
        ½‖w‖² + C Σ ℓ for each output, and the certified distance to its minimum.
    n_iter_ : int
        Epochs.
    shape_functions_ : list of ShapeFunction
        The functions g_j on a grid.
    feature_importances_ : ndarray of shape (n_features,)
        Standard deviations of the terms.

    Notes
    -----
    Many classes are trained one against the rest, together: they are the lanes of the vectors in
    one pass over the data. One against one, K classes have K (K − 1)/2 outputs, each with weights
    of its own; `eval_terms` and `shape_functions_` are then those of the pairs. (The machine of
    Crammer and Singer is not offered: its step for an example is one problem over all classes, not
    one for each lane.)

    ``predict_proba`` is the sigmoid itself for ``loss="log_loss"``, else Platt's sigmoid fitted to
    scores of the training rows, as `calibration` says. Probabilities of pairs are coupled as in
    LIBSVM.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> y = np.abs(X - 0.5).sum(1) > 0.5
    >>> bool(km.AdditiveClassifier(C=10).fit(X, y).score(X, y) > 0.95)
    True
    """

    _: KW_ONLY
    class_weight: Any = None
    multi_class: str = "ovr"
    calibration: str = "auto"

    _state = Calibrated._state.extended(
        required={
            "classes_": labels,
            "intercept_": array("f8", "outputs"),
            "sigmoid": array("f8", "outputs 2"),
            "calibrated": array("b1", "outputs"),
        },
        others=(
            TABLE_STATE.extended(
                required={
                    "classes_": labels,
                    "intercept_": array("f8", "outputs"),
                    "sigmoid": array("f8", "outputs 2"),
                }
            ),
        ),
    )

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AdditiveClassifier:
        """Train the classifier.

        Parameters
        ----------
        X : array-like, CSR matrix or Codes of shape (n_samples, n_features)
            uint8, uint16, float32 and float64 are used without a copy. Anything else that
            `kernelmaps.data.open_source` opens (files, chunks, Dask), and a `Source` itself, is
            read block by block and never as a whole. Tables also come from CSV files, and from
            Parquet and Dask frames with text.
        y : array-like of shape (n_samples,), str or None
            Labels of any kind; for files with names the column that holds them, None if the
            chunks or the file carry them.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C; examples of weight 0 do not take part.

        Returns
        -------
        self : AdditiveClassifier
            The fitted classifier.
        """
        return self._fit(X, y, sample_weight)

    def _targets(
        self, y: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Codes of the labels, the code that each output calls +1, and weights."""
        y = column_or_1d(y, warn=True)
        self.classes_, codes = coded_labels(y)
        self._check_classes()
        if self.class_weight is not None:
            weight = weight * self._weights_by_class(y)[codes]
        if np.count_nonzero(np.bincount(codes, weight)) < 2:
            raise ValueError(
                "AdditiveClassifier: examples of positive weight belong to only one class; "
                "check sample_weight and class_weight."
            )
        return codes, self._outputs(), weight

    def _targets_of_table(
        self, y: np.ndarray, weight: np.ndarray
    ) -> tuple[list[np.ndarray], list[Loss], np.ndarray]:
        codes, positive, weight = self._targets(y, weight)
        self._refuse_pairs("the terms of a table")
        targets = list(one_against_rest(codes, positive))
        return targets, [make_loss(self._loss_name, targets[0])] * len(targets), weight

    def _targets_of_source(
        self, source: Source, sample: Sample
    ) -> tuple[RowChecks, list[Loss], list[float]]:
        checks = RowChecks(type(self).__name__, classes=np.zeros(0))
        self.classes_, counts = count_labels(source, checks)
        check_classification_targets(self.classes_)
        self._check_classes()
        self._refuse_pairs("the terms of a table")
        factors = None
        if self.class_weight is not None:
            factors = self._weights_by_class(self.classes_)
            if isinstance(self.class_weight, str):  # "balanced": by the rows of each class
                factors = counts.sum() / (len(counts) * counts)
        checks = replace(checks, classes=self.classes_, class_weight=factors)
        outputs = [float(code) for code in self._outputs()]
        return checks, [make_loss(self._loss_name, np.ones(1))] * len(outputs), outputs

    def _finish_table(
        self, columns: Any, targets: Sequence[np.ndarray], weight: np.ndarray
    ) -> None:
        """Fit Platt's sigmoids to the scores of some rows."""
        self.intercept_ = self.table_.intercept
        self._sigmoid = np.tile([1.0, 0.0], (len(targets), 1))
        if self._loss_name != "log_loss":
            scores = self.table_.scores(columns, type(self).__name__)
            for k, target in enumerate(targets):
                self._sigmoid[k] = platt(scores[:, k], target > 0, weight)

    def _check_classes(self) -> None:
        if len(self.classes_) < 2:
            raise ValueError(
                f"AdditiveClassifier needs examples of at least 2 classes; y has only one class, "
                f"{self.classes_[0]!s}."
            )

    def _weights_by_class(self, y: np.ndarray) -> np.ndarray:
        found = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        if not (np.isfinite(found).all() and (found >= 0).all()):
            raise ValueError(
                "AdditiveClassifier: class_weight must hold finite numbers >= 0, got "
                f"{self.class_weight!r}."
            )
        return found

    def _n_outputs(self) -> int:
        return len(self._outputs())

    def _outputs(self) -> np.ndarray:
        """The code that each output calls +1; of pairs, both codes."""
        if self._pairwise:
            return pairs_of(len(self.classes_))
        return np.arange(len(self.classes_)) if len(self.classes_) > 2 else np.ones(1)

    def _telling(self, scores: np.ndarray) -> int:
        if not self._pairwise:
            return super()._telling(scores)
        won = int(np.argmax(votes(scores[None], len(self.classes_))[0]))
        sign = (self._outputs() == won) @ [-1, 1]  # of scores that speak for this class
        margin = np.where((sign != 0) & (sign * scores >= 0), np.abs(scores), np.inf)
        return int(np.argmin(margin))

    @property
    def _pairwise(self) -> bool:
        """Whether outputs are pairs of classes."""
        return self.multi_class == "ovo" and len(self.classes_) > 2

    def _output_names(self) -> list[str]:
        if not self._pairwise:
            return super()._output_names()
        named = [(str(self.classes_[a]), str(self.classes_[b])) for a, b in self._outputs()]
        return [f"{b}, not {a}" for a, b in named]

    def _refuse_pairs(self, what: str) -> None:
        if self._pairwise:
            raise ValueError(
                f"AdditiveClassifier: multi_class='ovo' is not there for {what}. Use "
                "multi_class='ovr', or sklearn.multiclass.OneVsOneClassifier(AdditiveClassifier())."
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        options = {
            "multi_class": ("ovr", "ovo"),
            "calibration": ("auto", "out_of_fold", "in_sample"),
        }
        for name, known in options.items():
            check_choice(self, name, getattr(self, name), known)

    def _lane_groups(self, count: int, values: float = np.inf) -> list[slice]:
        # A row belongs to two of K classes: most lanes of a visit were idle.
        pairs = [slice(k, k + 1) for k in range(count)]
        return pairs if self._pairwise else super()._lane_groups(count, values)

    def _taking_part(
        self, y: np.ndarray, outputs: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray]:
        if not self._pairwise:
            return super()._taking_part(y, outputs)
        return np.flatnonzero(np.isin(y, outputs[0])), outputs[0, 1:]

    @available_if(fits_chunks)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> AdditiveClassifier:
        """Learn from one more chunk of rows.

        The chunk's dual variables are optimised, given the weights that all chunks before have
        left, and then stay as they are: one pass of block dual descent.  The result depends on the
        order of the chunks and is close to, but not, the minimum that `fit` certifies; a chunk
        given twice counts as twice as many rows.  What predicts is the mean of the weights after
        each chunk.  After `fit` it continues from the fitted weights.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            As for :meth:`fit`, one chunk in memory.
        y : array-like of shape (n_samples,)
            As for :meth:`fit`, one chunk in memory.
        sample_weight : array-like of shape (n_samples,), optional
            As for :meth:`fit`, one chunk in memory.
        classes : array-like, optional
            All labels that will ever occur; needed at the first call, unless `fit` was called.

        Returns
        -------
        self : AdditiveClassifier
            The model after this chunk.
        """
        refuse_training_on_card(self, "partial_fit", X, y, sample_weight)
        first = not hasattr(self, "_weights")
        X, y = self._next_chunk(X, y)
        check_classification_targets(y)
        if first:
            if classes is None:
                raise ValueError(
                    "AdditiveClassifier.partial_fit: classes must be passed at the first call: all "
                    "labels that will ever occur."
                )
            self.classes_ = np.unique(classes)
            if len(self.classes_) < 2:
                raise ValueError("AdditiveClassifier needs at least 2 classes.")
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"AdditiveClassifier.partial_fit: classes={np.unique(classes)} are not those of "
                f"the first call, {self.classes_}."
            )
        unseen = np.setdiff1d(y, self.classes_)
        if len(unseen):
            raise ValueError(
                f"AdditiveClassifier.partial_fit: y has the labels {unseen.tolist()}, which were "
                f"not among the classes {self.classes_.tolist()} of the first call."
            )
        self._refuse_pairs("partial_fit")
        codes = np.searchsorted(self.classes_, y)
        weight = weights_of(self, sample_weight, len(y))
        if isinstance(self.class_weight, str):
            raise ValueError(
                "AdditiveClassifier.partial_fit: class_weight='balanced' needs all labels at once; "
                "pass a dict of weights."
            )
        if self.class_weight is not None:
            weight = weight * self._weights_by_class(y)[codes]
        if len(np.unique(codes[weight > 0])) < 2:
            warnings.warn(
                "AdditiveClassifier.partial_fit: all rows of this chunk belong to one class, so "
                "little or nothing can be learned from it. Shuffle the data, or make the chunks "
                "larger.",
                UserWarning,
                stacklevel=2,
            )
        rows = self._learn_chunk(X, codes, self._outputs(), self._costs(weight))
        self._finish(rows, codes, self._outputs(), weight)
        return self

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
        scores = self._by_class(self._all_scores(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _by_class(self, scores: np.ndarray) -> np.ndarray:
        """Scores of outputs as the values of `decision_function`."""
        if self._pairwise and is_foreign(scores):
            self._refuse_pairs("rows of other array libraries")
        return votes(scores, len(self.classes_)) if self._pairwise else scores

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
        return best_labels(self, self._by_class(self._all_scores(X)))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities of the classes.

        They are sigmoids of the scores, scaled to sum to one; those of pairs are coupled.

        Parameters
        ----------
        X : array-like, CSR matrix, Codes or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        scores = self._all_scores(X)
        if is_foreign(scores):
            self._refuse_pairs("rows of other array libraries")
        p = sigmoids(scores, self._sigmoid)
        return coupled(p, len(self.classes_)) if self._pairwise else shares(p)
