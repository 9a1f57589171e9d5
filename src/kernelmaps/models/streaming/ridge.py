"""Ridge regression and classification on data larger than memory, from mergeable statistics.

Algorithms 3 and 4 of Li, Lebanon and Sminchisescu, *Chebyshev approximations to the histogram
χ² kernel*, section 6, with the corrections of the errata (2.17 to 2.24). The cost is
O(nD² + nDc + D³ + D²c) time for c targets (errata 2.24: the Hessian is not free) and O(D² + Dc)
memory, whatever n.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ...atomic import all_or_nothing
from ...stats import Moments
from ..one_against_one import decided, pairs_of, votes
from .leave_one_out import LeaveOneOut
from .linear import StreamingLinear
from .projection import Coordinates
from .quadratic import ridge_path, spectrum_of
from .regression import PathLike, StreamingRegression

__all__ = ["StreamingRidge", "StreamingRidgeClassifier"]


class _Ridge(StreamingLinear):
    """Ridge regression on statistics: one factorisation serves all targets, or all α as well."""

    _CRITERIA = ("loo", "gcv")

    def __init__(
        self,
        alpha: Any = 1.0,
        feature_map: Any = None,
        *,
        n_components: Any = None,
        validation: Any = 5,
        n_jobs: int | None = None,
        block_rows: int | None = None,
        progress: bool | None = None,
        device: Any = None,
        precision: str | None = None,
    ) -> None:
        self.alpha = alpha
        self.feature_map = feature_map
        self.n_components = n_components
        self.validation = validation
        self.n_jobs = n_jobs
        self.block_rows = block_rows
        self.progress = progress
        self.device = device
        self.precision = precision

    def _solutions(
        self, at: Coordinates, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> np.ndarray:
        return ridge_path(stats, columns, alphas, at.diagonal and stats is at.total)

    def _errors(
        self, at: Coordinates, candidates: list[np.ndarray], alphas: np.ndarray, second_pass: Any
    ) -> np.ndarray:
        if self.validation not in self._CRITERIA:
            return super()._errors(at, candidates, alphas, second_pass)
        if self.validation == "gcv":
            return np.array([self._by_gcv(at, columns, alphas) for columns in candidates])
        spectra = [(c, spectrum_of(at.total, c, at.diagonal)) for c in candidates]
        if second_pass is None:
            raise ValueError(
                f"{type(self).__name__}: leave-one-out needs a second pass over the rows, which "
                "partial_fit, merge and refit do not have; use 'gcv' or a number of folds"
            )
        loo = second_pass(LeaveOneOut(at.total, spectra, alphas, at.projection))
        return loo.errors / at.total.weight

    def _by_gcv(self, at: Coordinates, columns: np.ndarray, alphas: np.ndarray) -> list[float]:
        """The criterion of every α on some columns."""
        spectrum = spectrum_of(at.total, columns, at.diagonal)
        return [spectrum.gcv(alpha) for alpha in alphas]


class StreamingRidge(StreamingRegression, _Ridge):
    """Ridge regression on data larger than memory (Algorithm 3; Algorithm 4 for several kernels).

    Minimises Σ w (y − f(x))² + α ‖w‖² over f(x) = wᵀŪᵀ(φ(x) − z̄) + ȳ, where Ū holds the principal
    components if `n_components` is given and is the identity otherwise. As only ZᵀZ, Zᵀ1 and Zᵀy
    are needed, one pass gives the models of all α, all targets and all PCA sizes. The projection
    is folded into the weights, β = Ūw (errata 2.20), so that predicting is β ᵀφ(x) + intercept.

    Parameters
    ----------
    alpha : float or sequence of float
        α. Of several, the best is chosen by `validation`.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        φ. A fitted transformer is used as it is; an unfitted one is cloned and fitted on a sample
        of rows (4096, spread over the data where they can be sliced, else the first ones). A list
        makes a joint model of several kernels, each with a PCA of its own (Algorithm 4), for
        which the data are read twice; `columns` is a slice, integers, a mask, or None for all.
    n_components : int, float, sequence of int, or None
        PCA size, of each kernel if there are several; a fraction in (0, 1) of the variance; of a
        sequence, the best is chosen by `validation`; None for no PCA.
    validation : int, "gcv" or "loo"
        How to choose: by k folds of rows, whose sums are kept apart in the same pass and whose
        held-out errors follow from them exactly; by generalised cross-validation, which needs
        nothing more; or by exact leave-one-out, with a second pass over the rows. The criterion
        is the squared error. The PCA, which does not see targets, is made once, of all rows.
    n_jobs, block_rows, progress, device, precision
        See `StreamingPCA`.

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (n_targets, D)
        β, on the features.
    intercept_ : float or ndarray
        ȳ − βᵀz̄.
    alpha_, n_components_ : float, int (or list, one per kernel)
        In use.
    cv_results_ : dict
        "alpha", "n_components" and "mean_squared_error" of shape (n_sizes, n_alphas).
    stats_ : Moments or FoldMoments
        The sums; they can be saved and merged.
    feature_map_ : transformer, list or None
        Fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmaps import StreamingRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + 5
    >>> chunks = [(X[:400], y[:400]), (X[400:], y[400:])]
    >>> model = StreamingRidge(alpha=[1e-6, 1.0]).fit(chunks)
    >>> model.coef_.round(3), round(model.intercept_, 3), model.alpha_
    (array([1., 2., 3.]), 5.0, 1e-06)
    """


class StreamingRidgeClassifier(ClassifierMixin, _Ridge):
    """Ridge classifier on data larger than memory: least squares on ±1 targets, one per class.

    With one-hot labels ZᵀY is a grouped sum of rows, so that n D additions serve any number of
    classes; after the eigendecomposition each class costs O(D²). Classes need not be known
    beforehand in `fit`: statistics of a new class are zero until it is met.

    Parameters
    ----------
    alpha, feature_map, n_components, validation, n_jobs, block_rows, progress, device, precision
        See `StreamingRidge`. The criterion of `validation` is the squared error of the one-hot
        targets.
    multi_class : {"ovr", "ovo"}, default="ovr"
        Many classes one against the rest, or one against one, in the same pass: ZᵀZ of every class
        is kept apart, and the sums of a pair are those of its two classes. Votes decide, as in
        scikit-learn's `OneVsOneClassifier`. It takes D² numbers for every class, and a
        factorisation for every pair; ``validation="loo"`` is not there for it.

    Attributes
    ----------
    classes_ : ndarray
        Sorted labels.
    coef_, intercept_ : ndarray of shape (c, D) and (c,); (1, D) and (1,) for two classes
        On the features, as scikit-learn's RidgeClassifier; one against one, of the pairs of classes
        (0, 1), (0, 2), …
    alpha_, n_components_, cv_results_, stats_, feature_map_
        See `StreamingRidge`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmaps import StreamingRidgeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> model = StreamingRidgeClassifier()
    >>> for a in range(0, 600, 200):
    ...     model = model.partial_fit(X[a : a + 200], y[a : a + 200], classes=["left", "right"])
    >>> bool(model.score(X, y) > 0.97)
    True
    """

    _target = "class"

    def __init__(
        self,
        alpha: Any = 1.0,
        feature_map: Any = None,
        *,
        n_components: Any = None,
        validation: Any = 5,
        n_jobs: int | None = None,
        block_rows: int | None = None,
        progress: bool | None = None,
        device: Any = None,
        precision: str | None = None,
        multi_class: str = "ovr",
    ) -> None:
        super().__init__(
            alpha, feature_map, n_components=n_components, validation=validation, n_jobs=n_jobs,
            block_rows=block_rows, progress=progress, device=device, precision=precision,
        )  # fmt: skip
        self.multi_class = multi_class

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
        X, sample_weight, unlabeled, client, checkpoint, checkpoint_every, map_sample
            As for :meth:`StreamingRidge.fit`.
        y : array-like of shape (n,), str or None
            Labels; the name of a column in files that have names; None if the chunks or the file
            carry them.
        classes : array-like, optional
            All labels; others are then refused.

        Returns
        -------
        self : StreamingRidgeClassifier
            The fitted classifier.
        """
        return self._fit(
            X,
            y,
            sample_weight,
            unlabeled=unlabeled,
            classes=classes,
            client=client,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            map_sample=map_sample,
        )

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add one chunk of rows; the model is solved when it is next used.

        Parameters
        ----------
        X : array-like, sparse matrix or Codes
            Rows of the chunk.
        y : array-like of shape (n,)
            Labels.
        classes : array-like
            All labels: required in the first call, as in scikit-learn.
        sample_weight : array-like, optional
            Weights of the rows.

        Returns
        -------
        self : StreamingRidgeClassifier
            The classifier of all rows so far.
        """
        first = not hasattr(self, "stats_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if (
            not first
            and classes is not None
            and not np.array_equal(np.unique(classes), self.classes_)
        ):
            raise ValueError(
                f"classes={np.unique(classes)!r} is not the same as on the first call to "
                f"partial_fit, {self.classes_!r}"
            )
        return self._partial_fit(X, y, sample_weight, classes)

    def _check_y(self, y: np.ndarray) -> np.ndarray:
        check_classification_targets(y)
        return y

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
        found = [part.classes for part in getattr(self.stats_, "parts", [self.stats_])]
        return np.unique(np.concatenate([labels for labels in found if len(labels)] or found))

    # ---- one against one --------------------------------------------------------------------

    @property
    def _pairwise(self) -> bool:
        """Whether outputs are pairs of classes."""
        return self.multi_class == "ovo" and len(self.classes_) > 2

    def _pairs(self, stats: Moments) -> list[Moments]:
        """The sums of every pair of classes."""
        if stats.G is None:
            raise ValueError(
                f"{type(self).__name__}: the statistics were folded without sums by class, which "
                "multi_class='ovo' needs; fit again"
            )
        places = np.searchsorted(stats.classes, self.classes_)
        return [stats.pair(*places[pair]) for pair in pairs_of(len(places))]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        name = type(self).__name__
        if self.multi_class not in ("ovr", "ovo"):
            raise ValueError(
                f"{name}: multi_class must be 'ovr' or 'ovo', got {self.multi_class!r}"
            )
        if self.multi_class == "ovo" and self._wants_loo():
            raise ValueError(
                f"{name}: validation='loo' is not there for multi_class='ovo'; use 'gcv' or a "
                "number of folds"
            )

    def _no_rows(self, folded: Any, classes: Any) -> Moments:
        by_class = self.multi_class == "ovo"
        return Moments(self._target, classes=classes, tag=folded.tag, by_class=by_class)

    def _n_outputs(self) -> int:
        return len(pairs_of(len(self.classes_))) if self._pairwise else super()._n_outputs()

    def _solutions(
        self, at: Coordinates, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> np.ndarray:
        if not self._pairwise:
            return super()._solutions(at, stats, columns, alphas)
        found = [super(StreamingRidgeClassifier, self)._solutions(at, pair, columns, alphas)
                 for pair in self._pairs(stats)]  # fmt: skip
        return np.concatenate(found, axis=1)

    def _intercepts(self, stats: Moments, W: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if not self._pairwise:
            return super()._intercepts(stats, W, columns)
        pairs = self._pairs(stats)
        means = np.array([pair.mean[columns] for pair in pairs])
        return np.array([pair.y_mean[0] for pair in pairs]) - (W * means).sum(axis=-1)

    def _held_out_errors(
        self, W: np.ndarray, columns: np.ndarray, train: Moments, held: Moments
    ) -> np.ndarray:
        if not self._pairwise:
            return super()._held_out_errors(W, columns, train, held)
        known = [self._pairs(stats) for stats in (train, held)]
        parts = [
            super(StreamingRidgeClassifier, self)._held_out_errors(W[:, k : k + 1], columns, *both)
            for k, both in enumerate(zip(*known))
            if both[1].weight > 0
        ]
        return np.sum(parts, axis=0)

    def _by_gcv(self, at: Coordinates, columns: np.ndarray, alphas: np.ndarray) -> list[float]:
        if not self._pairwise:
            return super()._by_gcv(at, columns, alphas)
        spectra = [spectrum_of(pair, columns) for pair in self._pairs(at.total)]
        return [sum(spectrum.gcv(alpha) for spectrum in spectra) for alpha in alphas]

    # ---- what is learned --------------------------------------------------------------------

    @property
    def coef_(self) -> np.ndarray:
        """β for targets ±1, on the features."""
        coef = 2.0 * self._solved().coef  # from targets 0 and 1 to −1 and 1
        return coef[1:] if len(coef) == 2 else coef

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts for targets ±1."""
        intercept = 2.0 * self._solved().intercept - 1.0
        return intercept[1:] if len(intercept) == 2 else intercept

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the scores of rows from any source.

        Parameters
        ----------
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …, or Codes
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            One column for two classes, for the second of them. One against one, the votes for each
            class, ties broken by the scores of the pairs.
        """
        scores = self._by_class(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _by_class(self, X: Any) -> np.ndarray:
        """Scores with a column for each class, or one for two classes."""
        check_is_fitted(self, "stats_")
        scores = 2 * self._linear(X) - 1
        if self._pairwise:
            return votes(scores, len(self.classes_))
        return scores[:, 1:] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels of rows from any source.

        Parameters
        ----------
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …, or Codes
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        return self.classes_[decided(self._by_class(X), len(self.classes_))]
