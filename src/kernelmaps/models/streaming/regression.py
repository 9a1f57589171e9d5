"""fit, partial_fit and predict of the streaming regressors."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ...atomic import all_or_nothing
from ..device_scores import ScoresAnywhere
from .base import Passes, PathLike
from .linear import StreamingLinear


class StreamingRegression(ScoresAnywhere, MultiOutputMixin, RegressorMixin, StreamingLinear):
    """fit, partial_fit and predict of the regressors."""

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
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
        y : array-like of shape (n,) or (n, t), str or None
            Targets; the name of a column or dataset in files that have names; None if the chunks
            or the file carry them.
        sample_weight : array-like, str or None
            A weight of 2 is a row that occurs twice.
        unlabeled : array, path, …, optional
            More rows, without targets, for the PCA alone: the paper's PCA on training and test
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
            The fitted model.
        """
        passes = Passes(client, checkpoint, checkpoint_every)
        return self._fit(X, y, sample_weight, unlabeled, None, map_sample, passes)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add one chunk of rows; the model is solved when it is next used.

        Parameters
        ----------
        X : array-like, sparse matrix or Codes
            Rows of the chunk.
        y : array-like of shape (n,) or (n, t)
            Targets.
        sample_weight : array-like, optional
            Weights of the rows.

        Returns
        -------
        self
            The model of all rows so far.
        """
        return self._partial_fit(X, y, sample_weight)

    def _y_options(self) -> dict[str, Any]:
        return {"multi_output": True, "y_numeric": True}

    @property
    def coef_(self) -> np.ndarray:
        """β, on the features."""
        coef = self._solved().coef
        return coef[0] if self._y_ndim == 1 else coef

    @property
    def intercept_(self) -> Any:
        """ȳ − βᵀz̄."""
        intercept = self._solved().intercept
        return float(intercept[0]) if self._y_ndim == 1 else intercept

    def predict(self, X: Any) -> np.ndarray:
        """Predict the targets of rows from any source.

        Parameters
        ----------
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …, or Codes
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        """
        check_is_fitted(self, "stats_")
        outputs = self._linear(X)
        return outputs[:, 0] if self._y_ndim == 1 else outputs
