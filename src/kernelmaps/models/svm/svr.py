"""Additive support vector machines of numbers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..._util.arguments import check_number
from ..._util.schema import number
from ..._util.storage import all_or_nothing
from ..device_scores import ScoresAnywhere
from ..gam.sampling import real_targets
from ..inputs import refuse_training_on_gpu, weights_of
from .base import AdditiveSVM, takes_chunks
from .problem import Targets


@dataclass(eq=False, repr=False)
class AdditiveSVR(ScoresAnywhere, RegressorMixin, AdditiveSVM):
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
    n_samples_seen_ : int
        Rows so far, after `partial_fit`.
    machine_ : AdditiveMachine
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

    _state = AdditiveSVM._state.extended(required={"centre": number()})

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
            Numbers; for files with names the column that holds them, None if the chunks or the
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

    @available_if(takes_chunks)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdditiveSVR:
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
            Its targets.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C; examples of weight 0 do not take part.

        Returns
        -------
        self : AdditiveSVR
            The model after this chunk.
        """
        refuse_training_on_gpu(self, "partial_fit", X, y, sample_weight)
        first = not hasattr(self, "machine_")
        X, y = self._check_chunk(X, y)
        weight = weights_of(self, sample_weight, len(y))
        if first:
            targets = self._targets(y, weight)
        else:
            numbers = np.asarray(y, np.float64) - self._centre
            targets = Targets(numbers, np.zeros(1), weight, self._centre)
        self._fit_chunk(X, targets)
        return self

    def _targets(self, y: np.ndarray, weight: np.ndarray) -> Targets:
        """Targets around their weighted mean: the intercept has little left to do."""
        name = type(self).__name__
        y = column_or_1d(y, warn=True)
        if y.dtype.kind not in "fiubO":
            raise ValueError(f"{name}: y must be numbers, got {y.dtype}.")
        y = real_targets(y, name)
        centre = np.average(y, weights=weight) if self.fit_intercept else 0.0
        self._centre = float(centre)
        return Targets(y - self._centre, np.zeros(1), weight, self._centre)

    def _check_parameters(self) -> np.ndarray | None:
        check_number(self, "epsilon", self.epsilon, "a number >= 0", lambda e: 0 <= e < np.inf)
        return super()._check_parameters()

    def _output_names(self) -> list[str]:
        return ["prediction"]

    def _score_of_fold(self, scores: np.ndarray, y: np.ndarray, counts: np.ndarray) -> float:
        spread = float(counts @ (y - np.average(y, weights=counts)) ** 2)
        missed = float(counts @ (scores[:, 0] - y) ** 2)
        return 1.0 - missed / spread if spread > 0 else float(missed == 0)

    @property
    def intercept_(self) -> float:
        """The intercept, the means of the terms included."""
        check_is_fitted(self)
        return float(self.machine_.intercept[0])

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
