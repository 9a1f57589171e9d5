"""Ridge regression and classification on data larger than memory, from mergeable statistics.

Algorithms 3 and 4 of Li, Lebanon and Sminchisescu, *Chebyshev approximations to the histogram
χ² kernel*, section 6, with the corrections of the errata (2.17 to 2.24). The cost is
O(nD² + nDc + D³ + D²c) time for c targets (errata 2.24: the Hessian is not free) and O(D² + Dc)
memory, whatever n.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy.stats import t as student_t
from sklearn.utils.validation import check_is_fitted

from ..._util.arguments import check_number, refuse_masked
from ..._util.devices import is_tensor, join, to_host
from ..._util.sparse import dense
from ...certificate import Certificate
from ...stats import Moments
from ...stats.moments import cast_like, to_columns
from ..solvers import quadratic
from ..solvers.quadratic import Spectrum, spectrum_of
from . import rows
from .linear import LinearProblem, StreamingClassification, StreamingRegression

# Fewer residual degrees of freedom say nothing about the noise. Without a penalty there is a whole
# number of them. Where a table has more columns than rows, the evidence may be largest for the
# smallest α, which fits all rows: of 560 tables of 2 to 20 rows, 150 left less than 0.01, and 30
# between 0.01 and 1.
LEAST_RESIDUAL_DF = 0.5


class LeaveOneOut:
    """Σ w (y − f₋ᵢ(x))² for every size and every α, as statistics that can be folded.

    The fit without row i is never made: with the leverage of a weighted row

        h_i(α) = w_i (1/W + Σ_j p_ij² / (λ_j + α)),   p_i = axesᵀ (z_i − z̄),

    where 1/W is the intercept's share, y_i − f₋ᵢ(x_i) = (y_i − f(x_i)) / (1 − h_i). The PCA, which
    has not seen the targets, is held fixed. Leverages are not sums over rows, hence the second
    pass; all α and targets share it.

    Parameters
    ----------
    at : LinearProblem
        That in whose coordinates `spectra` are.
    spectra : sequence of (columns, Spectrum)
        One for each size.
    alphas : ndarray
    """

    shift = ()  # nothing to be centred on: see `fold`

    def __init__(
        self,
        base: LinearProblem,
        spectra: Sequence[tuple[np.ndarray, Spectrum]],
        alphas: np.ndarray,
    ) -> None:
        stats, self.projection = base.total, base.projection
        self.tag, self.classes, self.multilabel = stats.tag, stats.classes, stats.multilabel
        self.mean, self.y_mean, self.weight = stats.mean, stats.y_mean, stats.weight
        self.spectra, self.alphas = spectra, alphas
        self.errors = np.zeros((len(spectra), len(alphas)))

    def zero(self) -> Self:
        """Return the same question without an answer."""
        out = copy.copy(self)
        out.errors = np.zeros_like(self.errors)
        return out

    def merge(self, other: Self) -> Self:
        """Add the errors of other rows."""
        self.errors += other.errors
        return self

    def to_host(self) -> Self:
        """Errors are numbers of the host already."""
        return self

    def partial(self, Z: Any, y: Any, w: Any = None, start: int = 0) -> Self:
        """Errors of one block."""
        out, Z = self.zero(), to_host(Z) if is_tensor(Z) else Z
        kind = np.float32 if Z.dtype == np.float32 else np.float64
        w = np.ones(Z.shape[0]) if w is None else np.asarray(w, dtype=np.float64)
        C = dense(Z if self.projection is None else Z @ self.projection.astype(kind))
        C = C - self.mean.astype(kind)
        one_hot = self.classes is not None and not self.multilabel
        Y = (np.asarray(y)[:, None] == self.classes if one_hot else to_columns(y)) - self.y_mean
        for s, (columns, spectrum) in enumerate(self.spectra):
            P = C[:, columns]
            P = P if spectrum.axes is None else P @ spectrum.axes.astype(kind)
            inverse = np.array([spectrum._inverse(alpha) for alpha in self.alphas])
            leverage = w[:, None] * (1 / self.weight + (P * P) @ inverse.T.astype(kind))
            for a in range(len(self.alphas)):
                residual = Y - P @ (spectrum.c * inverse[a]).T.astype(kind)
                # A row that alone determines its fit has h = 1 and says nothing about α.
                factor = w / np.maximum(1.0 - leverage[:, a], np.finfo(float).eps) ** 2
                out.errors[s, a] = float((factor[:, None] * residual**2).sum())
        return out


@dataclass(eq=False, repr=False)
class RidgeModel:
    """Ridge regression on statistics: one factorisation serves all targets, or all α as well."""

    _: KW_ONLY
    device: Any = None
    precision: str | None = None

    _criteria: ClassVar[tuple[str, ...]] = ("loo", "gcv")
    _alpha_rules: ClassVar[tuple[str, ...]] = ("evidence",)
    _is_rotation_invariant = True

    def _solve_path(
        self, base: LinearProblem, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Solve the normal equations; one iteration, so to say."""
        return quadratic.ridge_path(
            stats, columns, alphas, base.diagonal and stats is base.total
        ), 1

    def _errors_by(
        self, criterion: str, base: LinearProblem, problems: list[Moments],
        candidates: list[np.ndarray], alphas: np.ndarray, second_pass: Any,
    ) -> np.ndarray:  # fmt: skip
        """Generalised cross-validation or leave-one-out for every size and α."""
        if criterion == "gcv":
            spectra = [self._decompose(base, problems, columns) for columns in candidates]
            return np.array([[sum(s.gcv(a) for s in some) for a in alphas] for some in spectra])
        if second_pass is None:
            raise ValueError(
                f"{type(self).__name__}: leave-one-out needs a second pass over the rows, which "
                "partial_fit, merge and refit do not have; use 'gcv' or a number of folds"
            )
        by_size = [
            (columns, spectrum_of(base.total, columns, base.diagonal)) for columns in candidates
        ]
        loo = second_pass(LeaveOneOut(base, by_size, alphas))
        return loo.errors / base.total.weight

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

    This is Gaussian-process regression with the kernel ⟨φ(x), φ(y)⟩ σ²/α plus a constant. g(z_i)
    times the weight of row i is its leverage h_i, and leaving row i out gives (Sherman–Morrison)

        y_i − f₋ᵢ(z_i) = (y_i − f(z_i)) / (1 − h_i),   g₋ᵢ(z_i) = g(z_i) / (1 − h_i).

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
        P = rows.multiply_rows(Z, self.root, -self.offset)
        return (P * P).sum(axis=1)[:, None] + 1.0 / self.weight

    def predict_with_spread(self, Z: Any, coef: np.ndarray, intercept: np.ndarray) -> Any:
        """The predictions of all targets, and g(z) as a last column."""
        means, spread = rows.multiply_rows(Z, coef.T, intercept), self.spread(Z)
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
        `n_components`, that of largest marginal likelihood, too.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        φ. A fitted transformer is used as it is; an unfitted one is cloned and fitted on a sample
        of rows (4096 random ones and the ends of each column). A list
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
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …, or Codes
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
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …, or Codes
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

    def conformity_scores(
        self, X: Any, y: Any, *, leave_one_out: bool = False, sample_weight: Any = None
    ) -> np.ndarray:
        """Residuals of rows in units of the standard deviation of a new observation.

        They are |y − f(x)| / (σ √(1 + g(x))) for rows that the model was not fitted to (split
        conformal prediction: at least `level` of new rows lie in their intervals, on average over
        calibration rows, if all these rows are exchangeable). With ``leave_one_out``, the rows are
        those of the fit, and f and g are those of the model without the row, exactly, for one more
        pass over the rows (the jackknife, which has no such guarantee, but needs no other rows).

        Parameters
        ----------
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …, or Codes
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        leave_one_out : bool, default=False
            Whether the model was fitted to these rows.
        sample_weight : array-like of shape (n_samples,), optional
            The weights that the rows had in the fit; for ``leave_one_out``.

        Returns
        -------
        ndarray of the shape of y
            Scores, of which `predict_interval` takes the quantile.
        """
        name = type(self).__name__
        refuse_masked(self, "y", y)
        refuse_masked(self, "sample_weight", sample_weight)
        means, spread = map(to_host, self._means_and_spread(X))
        Y = to_columns(to_host(y))
        if Y.shape != means.shape:
            raise ValueError(
                f"{name}.conformity_scores: y has shape {np.shape(y)}, and the predictions of X "
                f"have shape {means.shape}"
            )
        if sample_weight is not None and not leave_one_out:
            raise ValueError(
                f"{name}.conformity_scores: sample_weight holds weights of the fit, which only "
                "leave_one_out=True needs"
            )
        residuals = np.abs(Y - means)
        if leave_one_out:
            w = 1.0 if sample_weight is None else to_columns(sample_weight)
            # A row that alone determines its fit has leverage 1.
            unexplained = np.maximum(1.0 - w * spread, np.finfo(np.float64).eps)
            residuals, spread = residuals / unexplained, spread / unexplained
        variance = self._posterior().noise_variance(name)
        scores = residuals / deviations(variance, 1.0 + spread)
        return scores[:, 0] if self._y_ndim == 1 else scores


@dataclass(eq=False, repr=False)
class StreamingRidgeClassifier(RidgeModel, StreamingClassification):
    """Ridge classifier on data larger than memory: least squares on ±1 targets, one per class.

    With one-hot labels ZᵀY is a grouped sum of rows, so that n D additions serve any number of
    classes; after the eigendecomposition each class costs O(D²). Classes need not be known
    beforehand in `fit`: statistics of a new class are zero until it is met. A row may have any
    number of labels: y is then an indicator matrix, and each label is a problem of its own.

    Parameters
    ----------
    alpha : float, sequence of float, or "evidence"
        α. Of several, the best is chosen by `validation`. "evidence": the α of largest marginal
        likelihood of the targets, which the sums give without folds or a second pass; of several
        `n_components`, that of largest marginal likelihood, too.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        φ. A fitted transformer is used as it is; an unfitted one is cloned and fitted on a sample
        of rows (4096 random ones and the ends of each column). A list
        makes a joint model of several kernels, each with a PCA of its own (Algorithm 4), for
        which the data are read twice; `columns` is a slice, integers, a mask, or None for all.
    n_components : int, float, sequence of int, or None
        PCA size, of each kernel if there are several; a fraction in (0, 1) of the variance; of a
        sequence, the best is chosen by `validation`; None for no PCA.
    validation : int, "gcv" or "loo"
        How to choose: by k folds of rows, whose sums are kept apart in the same pass and whose
        held-out errors follow from them exactly; by generalised cross-validation, which needs
        nothing more; or by exact leave-one-out, with a second pass over the rows. The criterion
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
        factorisation for every pair; ``validation="loo"`` is not there for it.

    Attributes
    ----------
    classes_ : ndarray
        Sorted labels; for an indicator matrix, the numbers of its columns.
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


# ---- the error of the kernel, in predictions ----------------------------------------------------
#
# After Cortes, Mohri and Talwalkar, *On the impact of kernel approximation on learning accuracy*
# (AISTATS 2010), who bound kernel ridge regression by ‖K' − K‖ κ M/(λ₀² m); here with an intercept,
# with weights, with the approximate kernel in the prediction as well, and with what the fit knows.
#
# Let k̃, k̃' be the exact and the approximate kernel centred on the rows, K̃, K̃' their Gram matrices
# scaled by the roots of the weights on both sides, k̃_x, k̃'_x the scaled columns of a new row x, and
# |k' − k| ≤ ε for all pairs of rows. The centred models are f(x) − ȳ = k̃_xᵀu and
# f'(x) − ȳ = k̃'_xᵀu' with u = (K̃ + αI)⁻¹ỹ, so that
#
#     f'(x) − f(x) = (k̃'_x − k̃_x)ᵀu' + k̃_xᵀ(K̃ + αI)⁻¹ (K̃ − K̃') u'.
#
# - u' are the scaled residuals over α: ‖u'‖ = √RSS / α, which the sums give.
# - Centring is an orthogonal projection: ‖K̃ − K̃'‖ ≤ ε W and ‖k̃'_x − k̃_x‖ ≤ 2 ε √W.
# - k̃_x = Φφ̃(x) with K̃ = ΦΦᵀ, and s/(s² + α) ≤ 1/(2√α) for each singular value s of Φ:
#   ‖(K̃ + αI)⁻¹k̃_x‖ ≤ √k̃(x, x) / (2√α), where k̃(x, x) ≤ ‖φ'(x) − φ̄'‖² + 4ε.


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

    distances = rows.map_blocks(model, X, squared_distances)
    W, eps = posterior.weight, float(kernel_error)
    factor = eps * (2 * np.sqrt(W) + 0.5 * W * np.sqrt((distances + 4 * eps) / alpha))
    bounds = factor * np.sqrt(posterior.rss) / alpha
    return bounds[:, 0] if model._y_ndim == 1 else bounds
