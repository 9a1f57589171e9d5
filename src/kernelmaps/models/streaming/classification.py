"""What the streaming classifiers share: labels, one against one, and scores.

Classes are targets 0 and 1 in the statistics; what is learned is that of targets −1 and 1. Rows
with any number of labels have indicator matrices as targets, and a score for each label.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from ..._util.arguments import check_choice
from ..._util.devices import refuse_gpu_array, to_host
from ..._util.sparse import dense
from ..._util.storage import all_or_nothing
from ...data import Source
from ...stats import Moments
from ..device_scores import ScoresAnywhere, best_labels, indicators
from ..one_against_one import pairs_of, votes
from .base import Look, Passes, PathLike, on_host
from .feature_maps import Features
from .linear import StreamingLinear


@dataclass(eq=False, repr=False)
class StreamingClassification(ScoresAnywhere, ClassifierMixin, StreamingLinear):
    """fit, partial_fit and predict of the classifiers; the next base solves for the weights."""

    _target = "class"
    _y_options: ClassVar[dict[str, Any]] = {"multi_output": True}
    _: KW_ONLY
    multi_class: str = "ovr"

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        classes: Any = None,
        unlabeled: Any = None,
        client: Any = None,
        checkpoint: PathLike | None = None,
        checkpoint_every: int = 1,
        map_sample: Any = None,
    ) -> Self:
        """Read all rows once and solve.

        Parameters
        ----------
        X : array, sparse matrix, path, iterable of chunks, Dask collection, …, or Codes
            Whatever `kernelmaps.data.open_source` opens; or codes of an `AnchorMap`, which is
            then the fitted `feature_map`, and which decodes them block by block.
        y : array-like of shape (n,) or (n, n_labels), str or None
            Labels, or an indicator matrix of zeros and ones for rows with several labels; the name
            of a column in files that have names; None if the chunks or the file carry them.
        sample_weight : array-like, str or None
            A weight of 2 is a row that occurs twice.
        classes : array-like, optional
            All labels; others are then refused.
        unlabeled : array, path, …, optional
            More rows, without labels, for the PCA alone: the paper's PCA on training and test
            rows. Their Hessian does not enter the regression (errata 2.23).
        client : distributed.Client or str, optional
            Fold on its workers; a string is the address of a scheduler. A Dask collection is
            folded where Dask computes it anyway.
        checkpoint, checkpoint_every : path, int
            Where and how often (in blocks) the state is kept; an interrupted fit continues from
            there. Files with this name and a suffix per pass are removed when the fit is done.
        map_sample : array-like, optional
            Rows to fit the map on, instead of a sample of X.

        Returns
        -------
        self
            The fitted classifier.
        """
        passes = Passes(client, checkpoint, checkpoint_every)
        return self._fit(X, y, sample_weight, unlabeled, classes, map_sample, passes)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add one chunk of rows; the model is solved when it is next used.

        Parameters
        ----------
        X : array-like, sparse matrix or Codes
            Rows of the chunk.
        y : array-like of shape (n,) or (n, n_labels)
            Labels, or an indicator matrix.
        classes : array-like
            All labels: required in the first call, as in scikit-learn. Not for indicator matrices,
            whose columns are the labels.
        sample_weight : array-like, optional
            Weights of the rows.

        Returns
        -------
        self
            The classifier of all rows so far.
        """
        first, classes = not hasattr(self, "stats_"), on_host(classes)
        several = sp.issparse(y) or np.asarray(on_host(y)).ndim == 2  # an indicator matrix
        if first and classes is None and not several:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        same_classes = first or classes is None or np.array_equal(np.unique(classes), self.classes_)
        if not same_classes:
            raise ValueError(
                f"classes={np.unique(classes)!r} is not the same as on the first call to "
                f"partial_fit, {self.classes_!r}"
            )
        return self._partial_fit(X, y, sample_weight, classes)

    def _check_y(self, y: Any) -> np.ndarray:
        y = dense(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if y.ndim == 2 and type_of_target(y) != "multilabel-indicator":
            raise ValueError(
                f"{type(self).__name__}: y must be a vector of labels, or an indicator matrix of "
                f"zeros and ones for rows with several labels; found shape {y.shape}"
            )
        return y

    def _empty(self, features: Features, classes: Any = None) -> Any:
        name = type(self).__name__
        if self._multilabel and classes is not None:
            raise ValueError(
                f"{name}: the labels of an indicator matrix are its columns; leave classes out"
            )
        if self._multilabel and self.multi_class == "ovo":
            raise ValueError(
                f"{name}: y is an indicator matrix, whose labels do not exclude each other, and "
                "multi_class='ovo' compares pairs of classes. Use multi_class='ovr'"
            )
        return super()._empty(features, classes)

    @property
    def _multilabel(self) -> bool:
        """Whether the targets are indicator matrices."""
        return getattr(self, "_y_ndim", 1) == 2

    def _begin(self, source: Source, client: Any = None, map_sample: Any = None) -> Look:
        look = super()._begin(source, client, map_sample)
        if look.n_targets == 1:  # a column of labels
            self._y_ndim = 1
        return look

    def _check_state(self) -> None:
        super()._check_state()
        if hasattr(self, "stats_") and self._total().multilabel != self._multilabel:
            raise ValueError("stats_ and y_ndim disagree on whether rows have several labels")

    def _solve(self, second_pass: Any = None) -> None:
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least 2 classes; the data contain only "
                f"one class: {self.classes_.tolist()}"
            )
        super()._solve(second_pass)

    @property
    def classes_(self) -> np.ndarray:
        """Sorted labels."""
        check_is_fitted(self, "stats_")
        labels_of_parts = [stats.classes for stats in getattr(self.stats_, "parts", [self.stats_])]
        return np.unique(
            np.concatenate([labels for labels in labels_of_parts if len(labels)] or labels_of_parts)
        )

    # ---- one against one --------------------------------------------------------------------

    @property
    def _pairwise(self) -> bool:
        """Whether outputs are pairs of classes."""
        return self.multi_class == "ovo" and len(self.classes_) > 2

    def _problems(self, stats: Moments) -> list[Moments]:
        """The sums of all rows; one against one, those of every pair of classes."""
        if not self._pairwise:
            return [stats]
        if stats.G is None:
            raise ValueError(
                f"{type(self).__name__}: the statistics were folded without sums by class, which "
                "multi_class='ovo' needs; fit again"
            )
        positions = np.searchsorted(stats.classes, self.classes_)
        return [stats.pair(*positions[pair]) for pair in pairs_of(len(positions))]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        name = type(self).__name__
        check_choice(self, "multi_class", self.multi_class, ("ovr", "ovo"))
        if self.multi_class == "ovo" and self._wants_loo():
            raise ValueError(
                f"{name}: validation='loo' is not there for multi_class='ovo'; use 'gcv' or a "
                "number of folds"
            )

    def _n_outputs(self) -> int:
        return len(pairs_of(len(self.classes_))) if self._pairwise else super()._n_outputs()

    # ---- what is learned --------------------------------------------------------------------

    @property
    def _has_one_score(self) -> bool:
        """Whether there are two classes, of which the second one's score says all."""
        return len(self.classes_) == 2 and not self._multilabel

    @property
    def coef_(self) -> np.ndarray:
        """β for targets ±1, on the features."""
        coef = 2.0 * self._solved().coef  # from targets 0 and 1 to −1 and 1
        return coef[1:] if self._has_one_score else coef

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts for targets ±1."""
        intercept = 2.0 * self._solved().intercept - 1.0
        return intercept[1:] if self._has_one_score else intercept

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the scores of rows from any source.

        Parameters
        ----------
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …, or Codes
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            One column for each label of an indicator matrix, one for two classes, for the second
            of them. One against one, the votes for each class, ties broken by the scores of the
            pairs.
        """
        scores = self._by_class(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _by_class(self, X: Any) -> np.ndarray:
        """Scores with a column for each class, or one for two classes."""
        scores = 2 * self._linear(X) - 1
        if self._pairwise:
            refuse_gpu_array(X, f"{type(self).__name__} one against one", "Pass X.cpu().numpy()")
            return votes(to_host(scores), len(self.classes_))
        return scores[:, 1:] if self._has_one_score else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels of rows from any source.

        Parameters
        ----------
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …, or Codes
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_labels) after an indicator matrix
            Labels; of several, the indicators of those with a positive score.
        """
        scores = self._by_class(X)
        return indicators(scores) if self._multilabel else best_labels(self, scores)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.multi_class != "ovo"
        return tags
