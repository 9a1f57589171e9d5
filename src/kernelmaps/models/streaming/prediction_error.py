"""How far a ridge model on a map can be from the one with the exact kernel.

After Cortes, Mohri and Talwalkar, *On the impact of kernel approximation on learning accuracy*
(AISTATS 2010), who bound kernel ridge regression by ‖K' − K‖ κ M/(λ₀² m); here with an intercept,
with weights, with the approximate kernel in the prediction as well, and with what the fit knows.

Let k̃, k̃' be the exact and the approximate kernel centred on the rows, K̃, K̃' their Gram matrices
scaled by the roots of the weights on both sides, k̃_x, k̃'_x the scaled columns of a new row x, and
|k' − k| ≤ ε for all pairs of rows. The centred models are f(x) − ȳ = k̃_xᵀu and f'(x) − ȳ = k̃'_xᵀu'
with u = (K̃ + αI)⁻¹ỹ, so that

    f'(x) − f(x) = (k̃'_x − k̃_x)ᵀu' + k̃_xᵀ(K̃ + αI)⁻¹ (K̃ − K̃') u'.

- u' are the scaled residuals over α: ‖u'‖ = √RSS / α, which the sums give.
- Centring is an orthogonal projection: ‖K̃ − K̃'‖ ≤ ε W and ‖k̃'_x − k̃_x‖ ≤ 2 ε √W.
- k̃_x = Φφ̃(x) with K̃ = ΦΦᵀ, and s/(s² + α) ≤ 1/(2√α) for each singular value s of Φ:
  ‖(K̃ + αI)⁻¹k̃_x‖ ≤ √k̃(x, x) / (2√α), where k̃(x, x) ≤ ‖φ'(x) − φ̄'‖² + 4ε.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._util.arguments import check_number
from ..._util.devices import is_tensor, to_host
from ..._util.sparse import dense
from ...certificate import Certificate
from .ridge import StreamingRidge


def prediction_error_bound(model: StreamingRidge, X: Any, *, kernel_error: float) -> np.ndarray:
    r"""Bound the difference to the predictions of kernel ridge regression with the exact kernel.

    If \|⟨φ(x), φ(y)⟩ − k(x, y)\| ≤ ε for all pairs of the rows of the fit and of `X`, then the
    model's prediction f'(x) and the prediction f(x) of the same model (same α, an intercept without
    penalty) with the kernel k differ by at most

        √RSS/α · ε (2√W + W/2 · √((‖φ(x) − φ̄‖² + 4ε)/α)),

    where RSS is the sum of squared residuals of the fit and W the sum of its weights. It is
    computed in float64, without the rounding of the solution itself.

    Parameters
    ----------
    model : StreamingRidge
        Fitted with α > 0 and without a PCA.
    X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …
        Rows.
    kernel_error : float
        ε. From a certificate of an additive map: its bound times the number of features, for rows
        in its domain (``map.certificate_.inner`` is the smaller one of values in the fitted range).
        Or a measured error, for a measured statement.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_targets)
        Bounds in the units of the targets.

    Notes
    -----
    It is a worst case over kernels and targets: differences that are seen are often a hundred or
    more times smaller, because the errors of different pairs of rows cancel. It is useful where
    maps are accurate: see the page on streaming models.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).dirichlet(np.ones(4), 200)
    >>> chi2 = km.DesignedMap("chi2", n_components=15).fit(X)
    >>> model = km.StreamingRidge(10.0, chi2).fit(X, X[:, 0] ** 2)
    >>> error = 4 * chi2.certificate_.inner.bound  # of four features in the fitted range
    >>> bool((km.prediction_error_bound(model, X, kernel_error=error) < 1e-4).all())
    True
    """
    name = "prediction_error_bound"
    if not isinstance(model, StreamingRidge):
        raise TypeError(f"{name} takes a fitted StreamingRidge, got {model!r}")
    check_is_fitted(model, "stats_")
    if isinstance(kernel_error, Certificate):
        raise TypeError(
            f"{name}: kernel_error is a number, got a certificate. Its bound is that of one "
            "feature, and features add up: give certificate.bound * n_features"
        )
    check_number(name, "kernel_error", kernel_error, ">= 0", lambda e: e >= 0)
    if model.n_components_ is not None:
        raise ValueError(
            f"{name}: the model has a PCA, which changes the kernel of its map. Fit it "
            "with n_components=None"
        )
    alpha, posterior = model.alpha_, model._posterior()
    if not alpha > 0:
        raise ValueError(f"{name}: without a penalty (alpha=0) there is no bound")
    mean = model._total().mean

    def squared_distances(Z: Any) -> np.ndarray:
        rows = to_host(Z) if is_tensor(Z) else dense(Z)
        return ((rows.astype(np.float64) - mean) ** 2).sum(axis=1)[:, None]

    distances = model._by_blocks(X, squared_distances)
    W, eps = posterior.weight, float(kernel_error)
    factor = eps * (2 * np.sqrt(W) + 0.5 * W * np.sqrt((distances + 4 * eps) / alpha))
    bounds = factor * np.sqrt(posterior.rss) / alpha
    return bounds[:, 0] if model._y_ndim == 1 else bounds
