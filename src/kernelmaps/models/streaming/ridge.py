"""Ridge regression and classification on data larger than memory, from mergeable statistics.

Algorithms 3 and 4 of Li, Lebanon and Sminchisescu, *Chebyshev approximations to the histogram
χ² kernel*, section 6, with the corrections of the errata (2.17 to 2.24). The cost is
O(nD² + nDc + D³ + D²c) time for c targets (errata 2.24: the Hessian is not free) and O(D² + Dc)
memory, whatever n.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from scipy.stats import t as student_t

from ..._util.arguments import check_number, refuse_masked
from ..._util.devices import cast_like, is_tensor, join, to_host
from ...stats import Moments
from ...stats.moments import to_columns
from ..solvers import quadratic
from ..solvers.quadratic import Spectrum, spectrum_of
from . import rows
from .linear import LinearProblem, StreamingClassification, StreamingRegression
from .predictor import multiply_rows

# Fewer residual degrees of freedom say nothing about the noise. Without a penalty there is a whole
# number of them. Where a table has more columns than rows, the evidence may be largest for the
# smallest α, which fits all rows: of 560 tables of 2 to 20 rows, 150 left less than 0.01, and 30
# between 0.01 and 1.
LEAST_RESIDUAL_DF = 0.5


@dataclass(eq=False, repr=False)
class RidgeModel:
    """Ridge regression on statistics: one factorisation serves all targets, or all α as well."""

    _: KW_ONLY
    device: Any = None
    precision: str | None = None

    _is_ridge = True

    def _solve_path(
        self, base: LinearProblem, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Solve the normal equations; one iteration, so to say."""
        return quadratic.ridge_path(
            stats, columns, alphas, base.diagonal and stats is base.total
        ), 1

    def _errors_by_gcv(
        self, base: LinearProblem, problems: list[Moments], candidates: list[np.ndarray],
        alphas: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Generalised cross-validation for every size and α."""
        spectra = [self._decompose(base, problems, columns) for columns in candidates]
        return np.array([[sum(s.gcv(a) for s in group) for a in alphas] for group in spectra])

    def _best_alpha(
        self, base: LinearProblem, problems: list[Moments], columns: np.ndarray
    ) -> tuple[float, float]:
        """The α of largest evidence, and its logarithm."""
        spectra = self._decompose(base, problems, columns)
        if any(not spectrum.weight > 1 for spectrum in spectra):
            raise ValueError(
                f"{type(self).__name__}: alpha='evidence' needs at least two rows: one says "
                "nothing of noise"
            )
        return quadratic.evidence_alpha(spectra)

    @staticmethod
    def _decompose(
        base: LinearProblem, problems: list[Moments], columns: np.ndarray
    ) -> list[Spectrum]:
        """The eigendecomposition of each problem."""
        return [spectrum_of(p, columns, base.diagonal and p is base.total) for p in problems]


@dataclass(frozen=True)
class RidgePosterior:
    """The posterior of a ridge model, apart from its mean.

    With targets y = b + wᵀz + ε, ε ~ N(0, σ²), a prior w ~ N(0, (σ²/α) I) and a flat one for b, the
    posterior of f(z) = b + wᵀz is normal. Its mean is the ridge prediction, and its variance is

        σ² g(z),   g(z) = 1/W + (z − z̄)ᵀ (A + αI)⁻¹ (z − z̄),   A = Σ w (z − z̄)(z − z̄)ᵀ.

    This is Gaussian-process regression with the kernel ⟨φ(x), φ(y)⟩ σ²/α plus a constant.

    Attributes
    ----------
    root : ndarray of shape (D, k)
        U R with R Rᵀ = (A + αI)⁻¹ in the coordinates Uᵀz of the model.
    offset : ndarray of shape (k,)
        z̄ᵀ U R.
    weight : float
        W.
    rss : ndarray of shape (t,)
        Σ w (y − f(z))², of each target.
    residual_df : float
        Residual degrees of freedom, W − 1 − tr A(A + αI)⁻¹.
    alpha : float
        α.
    """

    root: np.ndarray
    offset: np.ndarray
    weight: float
    rss: np.ndarray
    residual_df: float
    alpha: float

    @classmethod
    def from_sums(
        cls, base: LinearProblem, columns: np.ndarray, alpha: float, W: np.ndarray
    ) -> RidgePosterior:
        """The posterior from the sums; W of shape (t, k) are the weights on `columns`."""
        stats = base.total
        R = quadratic.inverse_root(stats, columns, alpha, base.diagonal)
        trace = np.count_nonzero(R.any(axis=0)) - alpha * (R**2).sum()
        root = R if base.back is None else base.back[:, columns] @ R
        offset = stats.mean[columns] @ R
        # A perfect fit leaves the rounding of the scatter of the targets.
        rounding = np.finfo(np.float64).eps * stats.y_scatter()
        rss = np.maximum(quadratic.squared_errors(W, columns, stats, stats), rounding)
        return cls(root, offset, stats.weight, rss, stats.weight - 1.0 - float(trace), alpha)

    def noise_variance(self, owner: str) -> np.ndarray:
        """σ² of each target, RSS over the residual degrees of freedom.

        It maximises the evidence, together with its α, where α is that of largest evidence
        (MacKay's fixed point); for other α it is the usual unbiased estimate of linear smoothers.
        """
        if not self.residual_df > LEAST_RESIDUAL_DF:
            raise ValueError(
                f"{owner}: the model has as many degrees of freedom as rows (with "
                f"alpha={self.alpha:.3g}), and nothing is left to estimate the noise from. Give a "
                "larger alpha as a number, or more rows"
            )
        return self.rss / self.residual_df

    def spread(self, Z: Any) -> Any:
        """g(z) of each row of features, as one column, where they are."""
        P = multiply_rows(Z, self.root, -self.offset)
        return (P * P).sum(axis=1)[:, None] + 1.0 / self.weight

    def predict_with_spread(self, Z: Any, coef: np.ndarray, intercept: np.ndarray) -> Any:
        """The predictions of all targets, and g(z) as a last column."""
        means, spread = multiply_rows(Z, coef.T, intercept), self.spread(Z)
        return join([means, spread], 1) if is_tensor(means) else np.hstack([means, spread])


def deviations(variance: np.ndarray, spread: Any) -> Any:
    """√variance of each target times √spread of each row, where the rows are."""
    return cast_like(np.sqrt(variance), spread) * spread**0.5


def conformal_quantile(scores: Any, level: float, n_targets: int, owner: str) -> np.ndarray:
    """The ⌈(m + 1) level⌉-th smallest of m scores, of each target (split conformal prediction).

    The score of a new exchangeable row has each rank among m + 1 with the same probability, hence
    it is at most this one with a probability of at least `level`.
    """
    scores = np.sort(to_columns(scores), axis=0)
    m = len(scores)
    if scores.shape[1] != n_targets or not (np.isfinite(scores) & (scores >= 0)).all():
        raise ValueError(
            f"{owner}: conformity_scores must be finite numbers >= 0, with {n_targets} column(s), "
            f"got shape {scores.shape} and values from {np.min(scores, initial=np.inf):.3g} to "
            f"{np.max(scores, initial=-np.inf):.3g}"
        )
    # Rounding must not raise an exact product such as 20 · 0.95 to the next integer.
    rank = int(np.ceil((m + 1) * level * (1 - 1e-12)))
    if rank > m:
        raise ValueError(
            f"{owner}: {m} conformity scores are too few for level={level:g}: it takes "
            f"{int(np.ceil(level / (1 - level)))}"
        )
    return scores[rank - 1]


@dataclass(eq=False, repr=False)
class StreamingRidge(RidgeModel, StreamingRegression):
    """Ridge regression on data larger than memory (Algorithm 3; Algorithm 4 for several kernels).

    Minimises Σ w (y − f(x))² + α ‖w‖² over f(x) = wᵀŪᵀ(φ(x) − z̄) + ȳ, where Ū holds the principal
    components if `n_components` is given and is the identity otherwise. As only ZᵀZ, Zᵀ1 and Zᵀy
    are needed, one pass gives the models of all α, all targets and all PCA sizes. The projection
    is folded into the weights, β = Ūw (errata 2.20), so that predicting is β ᵀφ(x) + intercept.

    Parameters
    ----------
    alpha : float, sequence of float, or "evidence"
        α. Of several, the best is chosen by `validation`. "evidence": the α of largest marginal
        likelihood of the targets, which the sums give without folds or a second pass; of several
        `n_components`, that of largest marginal likelihood, too. A single α such as 1 costs
        accuracy behind random features, while several take hardly more time than one.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        φ. A fitted transformer is used as it is; an unfitted one is cloned and fitted on a sample
        of rows (4096 random ones and the ends of each column). A list
        makes a joint model of several kernels, each with a PCA of its own (Algorithm 4), for
        which the data are read twice; `columns` is a slice, integers, a mask, or None for all.
    n_components : int, float, sequence of int, or None
        PCA size, of each kernel if there are several; a fraction in (0, 1) of the variance; of a
        sequence, the best is chosen by `validation`; None for no PCA.
    validation : int or "gcv"
        How to choose: by k folds of rows, whose sums are kept apart in the same pass and whose
        held-out errors follow from them exactly, or by generalised cross-validation. The criterion
        is the squared error. The PCA, which does not see targets, is made once, of all rows.
    n_jobs : int, optional
        Threads; None means all.
    block_rows : int, optional
        Rows per block; by default such that a block takes about 64 MiB.
    progress : bool, optional
        Whether to show a bar; by default if there is a terminal.
    device : str or torch.device, optional
        Where features are made, multiplied and decomposed: "cuda" or "cuda:1" for a GPU (needs
        torch and a `feature_map` of kernelmaps), "cpu" for torch on the processor. Rows come from
        wherever they are, block by block, and sums stay on the GPU in float64. Torch tensors on a
        GPU are folded there by default, and give tensors.
    precision : {"float64", "float32", "tf32"}, optional
        Precision of features and products on the device; by default that of the rows. "tf32"
        multiplies with 10 bits of each factor, at several times the speed: see
        `kernelmaps.stats.Moments` for what that does to the sums.

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (n_targets, D)
        β, on the features.
    intercept_ : float or ndarray
        ȳ − βᵀz̄.
    alpha_ : float
        α in use.
    n_components_ : int, list of int (one per kernel), or None
        PCA size in use.
    noise_variance_ : float or ndarray of shape (n_targets,)
        σ², the variance of the targets around f.
    cv_results_ : dict
        "alpha", "n_components" and "mean_squared_error" of shape (n_sizes, n_alphas); for
        ``alpha="evidence"``, "alpha", "n_components" and "log_evidence" of shape (n_sizes,).
    stats_ : Moments or FoldMoments
        The sums; they can be saved and merged.
    feature_map_ : transformer, list or None
        Fitted.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of the columns of X, and their names where X had any. Later files and Dask dataframes
        are read by them, in whatever order their columns are.

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

    Gaussian-process regression, from the same sums:

    >>> noisy = y + rng.normal(size=1000)
    >>> model = StreamingRidge("evidence").fit(X, noisy)
    >>> bool(0.8 < model.noise_variance_ < 1.2)
    True
    >>> mean, std = model.predict(X[:2], return_std=True)
    >>> model.predict_interval(X[:2], level=0.9).shape
    (2, 2)

    Frames keep the names of their columns:

    >>> import pandas as pd
    >>> frame = pd.DataFrame(X, columns=["area", "rooms", "age"])
    >>> model = StreamingRidge(alpha=1e-6).fit(frame, y)
    >>> dict(zip(model.feature_names_in_, model.coef_.round(3).tolist()))
    {'area': 1.0, 'rooms': 2.0, 'age': 3.0}
    """

    # Without an annotation, which would make a parameter of it: a solution and its posterior.
    _posterior_of = cast("tuple[Any, RidgePosterior] | None", None)

    def _posterior(self) -> RidgePosterior:
        """The posterior of the model in use; it is computed when it is first asked for."""
        solution = self._find_solution()
        if self._posterior_of is None or self._posterior_of[0] is not solution:
            sizes = self._sizes()
            with rows.solve_on_device(self):
                base = LinearProblem.project(self, sizes)
                candidates = base.candidates(sizes)
                counts = [base.count_components(columns) for columns in candidates]
                # A file may name a size that is none of these: any of them has a posterior.
                count = solution.n_components
                index = counts.index(count) if count in counts else 0
                columns = candidates[index]
                W = solution.coef if base.back is None else solution.coef @ base.back[:, columns]
                posterior = RidgePosterior.from_sums(base, columns, solution.alpha, W)
            self._posterior_of = solution, posterior
        return self._posterior_of[1]

    @property
    def noise_variance_(self) -> Any:
        """σ², the variance of the targets around f."""
        variance = self._posterior().noise_variance(type(self).__name__)
        return float(variance[0]) if self._y_ndim == 1 else variance

    def _means_and_spread(self, X: Any) -> tuple[Any, Any]:
        """Predictions of shape (n, t), and g(z) of shape (n, 1), in one pass over the rows."""
        solution, posterior = self._find_solution(), self._posterior()
        columns = partial(
            posterior.predict_with_spread, coef=solution.coef, intercept=solution.intercept
        )
        outputs = rows.map_blocks(self, X, columns)
        return outputs[:, :-1], outputs[:, -1:]

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the targets of rows from any source.

        Parameters
        ----------
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …
            Rows.
        return_std : bool, default=False
            Whether the posterior standard deviations of f are returned, too: of the mean, as
            scikit-learn's `GaussianProcessRegressor` with ``alpha=noise_variance_`` has them, not
            of a new observation, which `predict_interval` is for.

        Returns
        -------
        predictions : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        std : ndarray of the same shape
            Their standard deviations, if asked for.
        """
        if not return_std:
            return super().predict(X)
        means, spread = self._means_and_spread(X)
        variance = self._posterior().noise_variance(type(self).__name__)
        std = deviations(variance, spread)
        return (means[:, 0], std[:, 0]) if self._y_ndim == 1 else (means, std)

    def predict_interval(
        self, X: Any, level: float = 0.95, *, conformity_scores: Any = None
    ) -> np.ndarray:
        """Predict intervals that a new observation lies in.

        They are f(x) ± q σ √(1 + g(x)), where σ² g(x) is the variance of f(x). By default q is a
        quantile of Student's t with the residual degrees of freedom: the interval of the Bayesian
        model, which holds if the model does. With `conformity_scores`, q is their quantile: the
        intervals then cover new rows whatever the distribution of the targets is.

        Parameters
        ----------
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …
            Rows.
        level : float, default=0.95
            Probability that a new observation lies in its interval.
        conformity_scores : ndarray of shape (m,) or (m, n_targets), optional
            What the method `conformity_scores` returned.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends.
        """
        name, posterior = type(self).__name__, self._posterior()
        check_number(self, "level", level, "between 0 and 1", lambda p: 0 < p < 1)
        means, spread = map(to_host, self._means_and_spread(X))
        if conformity_scores is None:
            quantile = student_t.ppf((1 + level) / 2, posterior.residual_df)
        else:
            quantile = conformal_quantile(conformity_scores, level, means.shape[1], name)
        half = quantile * deviations(posterior.noise_variance(name), 1.0 + spread)
        ends = np.stack([means - half, means + half], axis=-1)
        return ends[:, 0] if self._y_ndim == 1 else ends

    def conformity_scores(self, X: Any, y: Any) -> np.ndarray:
        """Residuals of rows in units of the standard deviation of a new observation.

        They are |y − f(x)| / (σ √(1 + g(x))) for rows that the model was not fitted to (split
        conformal prediction: at least `level` of new rows lie in their intervals, on average over
        calibration rows, if all these rows are exchangeable).

        Parameters
        ----------
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.

        Returns
        -------
        ndarray of the shape of y
            Scores, of which `predict_interval` takes the quantile.
        """
        name = type(self).__name__
        refuse_masked(self, "y", y)
        means, spread = map(to_host, self._means_and_spread(X))
        Y = to_columns(to_host(y))
        if Y.shape != means.shape:
            raise ValueError(
                f"{name}.conformity_scores: y has shape {np.shape(y)}, and the predictions of X "
                f"have shape {means.shape}"
            )
        variance = self._posterior().noise_variance(name)
        scores = np.abs(Y - means) / deviations(variance, 1.0 + spread)
        return scores[:, 0] if self._y_ndim == 1 else scores


@dataclass(eq=False, repr=False)
class StreamingRidgeClassifier(RidgeModel, StreamingClassification):
    """Ridge classifier on data larger than memory: least squares on ±1 targets, one per class.

    With one-hot labels ZᵀY is a grouped sum of rows, so that n D additions serve any number of
    classes; after the eigendecomposition each class costs O(D²). Classes need not be known
    beforehand in `fit`: statistics of a new class are zero until it is met.

    Parameters
    ----------
    alpha : float, sequence of float, or "evidence"
        α. Of several, the best is chosen by `validation`. "evidence": the α of largest marginal
        likelihood of the targets, which the sums give without folds or a second pass; of several
        `n_components`, that of largest marginal likelihood, too. A single α such as 1 costs
        accuracy behind random features, while several take hardly more time than one.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        φ. A fitted transformer is used as it is; an unfitted one is cloned and fitted on a sample
        of rows (4096 random ones and the ends of each column). A list
        makes a joint model of several kernels, each with a PCA of its own (Algorithm 4), for
        which the data are read twice; `columns` is a slice, integers, a mask, or None for all.
    n_components : int, float, sequence of int, or None
        PCA size, of each kernel if there are several; a fraction in (0, 1) of the variance; of a
        sequence, the best is chosen by `validation`; None for no PCA.
    validation : int or "gcv"
        How to choose: by k folds of rows, whose sums are kept apart in the same pass and whose
        held-out errors follow from them exactly, or by generalised cross-validation. The criterion
        is the squared error of the one-hot
        targets. The PCA, which does not see targets, is made once, of all rows.
    n_jobs : int, optional
        Threads; None means all.
    block_rows : int, optional
        Rows per block; by default such that a block takes about 64 MiB.
    progress : bool, optional
        Whether to show a bar; by default if there is a terminal.
    device : str or torch.device, optional
        Where features are made, multiplied and decomposed: "cuda" or "cuda:1" for a GPU (needs
        torch and a `feature_map` of kernelmaps), "cpu" for torch on the processor. Rows come from
        wherever they are, block by block, and sums stay on the GPU in float64. Torch tensors on a
        GPU are folded there by default, and give tensors.
    precision : {"float64", "float32", "tf32"}, optional
        Precision of features and products on the device; by default that of the rows. "tf32"
        multiplies with 10 bits of each factor, at several times the speed: see
        `kernelmaps.stats.Moments` for what that does to the sums.
    multi_class : {"ovr", "ovo"}, default="ovr"
        Many classes one against the rest, or one against one, in the same pass: ZᵀZ of every class
        is kept apart, and the sums of a pair are those of its two classes. Votes decide, as in
        scikit-learn's `OneVsOneClassifier`. It takes D² numbers for every class, and a
        factorisation for every pair.

    Attributes
    ----------
    classes_ : ndarray
        Sorted labels.
    coef_, intercept_ : ndarray of shape (c, D) and (c,); (1, D) and (1,) for two classes
        On the features, as scikit-learn's RidgeClassifier; one against one, of the pairs of classes
        (0, 1), (0, 2), …
    alpha_ : float
        α in use.
    n_components_ : int, list of int (one per kernel), or None
        PCA size in use.
    cv_results_ : dict
        "alpha", "n_components" and "mean_squared_error" of shape (n_sizes, n_alphas); for
        ``alpha="evidence"``, "alpha", "n_components" and "log_evidence" of shape (n_sizes,).
    stats_ : Moments or FoldMoments
        The sums; they can be saved and merged.
    feature_map_ : transformer, list or None
        Fitted.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of the columns of X, and their names where X had any. Later files and Dask dataframes
        are read by them, in whatever order their columns are.

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

    Frames keep the names of their columns:

    >>> import pandas as pd
    >>> frame = pd.DataFrame(X, columns=["east", "north"])
    >>> model = StreamingRidgeClassifier().fit(frame, y)
    >>> model.feature_names_in_.tolist(), model.predict(frame[:1]).tolist()
    (['east', 'north'], ['right'])
    """
