"""Scaling of all features by one factor, so that C means the same for every map."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ..device import refuse_card
from ..sparse_rows import check_sparse


class MeanNormScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Multiply all rows by one number, so that their mean squared norm is 1.

    Behind a map φ this makes the mean of k(x, x) ≈ ‖φ(x)‖² equal to 1: a penalty C of a linear
    model then means the same for every kernel and every unit of the data. Zeros stay zeros.

    Attributes
    ----------
    scale_ : float
        The factor.
    n_features_in_ : int
        Columns seen in `fit`.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> Z = km.MeanNormScaler().fit_transform(np.array([[3.0, 4.0], [0.0, 5.0]]))
    >>> float(np.mean(np.sum(Z**2, axis=1)))
    1.0
    """

    def fit(self, X: Any, y: Any = None) -> MeanNormScaler:
        """Learn the factor from the mean squared norm of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored

        Returns
        -------
        self : MeanNormScaler
            The fitted scaler.
        """
        X = self._rows(X, reset=True)
        values = X.data if sparse.issparse(X) else X
        mean = float(np.square(values, dtype=np.float64).sum()) / X.shape[0]
        self.scale_ = float(1 / np.sqrt(mean)) if 0 < mean < np.inf else 1.0
        return self

    def transform(self, X: Any) -> Any:
        """Multiply rows by the factor.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; float32 stays float32, CSR stays CSR.

        Returns
        -------
        ndarray or sparse matrix
            The scaled rows.
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        return X * X.dtype.type(self.scale_)

    def _rows(self, X: Any, *, reset: bool) -> Any:
        name = type(self).__name__
        refuse_card(X, name, "Pass X.cpu().numpy(), or multiply X by scale_ where it is.")
        check_sparse(X, name)
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32]
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
