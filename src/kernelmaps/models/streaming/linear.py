"""Bases of the linear models with quadratic loss, from one pass (two for several kernels' PCA).

`LinearProblem` gives the models of all sizes and all α as functions of the sums, and the best. What
differs between the models is the penalty: their other base class (`RidgeModel`, `LassoModel`)
computes the weights (`_solve_path`), checks its parameters (`_check_penalty`, `_check_features`),
and, of ridge models, has generalised cross-validation beside folds (`_errors_by_gcv`) and the
evidence as a rule for α (`_best_alpha`).

`StreamingRegression` and `StreamingClassification` have fit, partial_fit and predict. Classes are
targets 0 and 1 in the statistics; what is learned is that of targets −1 and 1.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeGuard, cast

import numpy as np
from scipy.linalg import block_diag
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..._util import schema
from ..._util.arguments import check_choice, is_number
from ..._util.devices import refuse_gpu_array, to_host
from ..._util.schema import array, instance, integer, many, optional
from ..._util.storage import all_or_nothing
from ...data import Source
from ...data.sources import SlicedSource
from ...stats import FoldMoments, KernelMoments, Moments
from ...stats.moments import Target
from ..decision import ScoresAnywhere, best_labels, class_pairs, count_votes
from ..solvers.quadratic import (
    check_rows,
    component_count,
    principal_axes,
    squared_errors,
)
from . import rows
from .predictor import LinearPredictor, LinearSolution

# Columns per row from which the basis of the rows costs no more than one Cholesky factor.
COLUMNS_PER_ROW = 4
LEAST_COLUMNS = 200  # that few rows are rotated for: below, there are few milliseconds to save


@dataclass(frozen=True)
class LinearProblem:
    """The statistics of a model in the coordinates in which it is solved.

    Attributes
    ----------
    model : StreamingLinear
        Whose parameters, solver and maps these are.
    total, folds : Moments, list of Moments
        Projected sums.
    rank, kernel : ndarray of shape (r,)
        Place of each coordinate within the PCA of its kernel, and that kernel.
    back : ndarray of shape (D, r) or None
        U, block-diagonal for several kernels; β = U w (errata 2.20: not Uᵀw).
    projection : ndarray of shape (D, r) or None
        From the features that were folded to the coordinates.
    values : ndarray of shape (D,) or None
        Eigenvalues of the PCA of all features.
    """

    model: Any
    total: Moments
    folds: list[Moments]
    rank: np.ndarray
    kernel: np.ndarray
    back: np.ndarray | None = None
    projection: np.ndarray | None = None
    values: np.ndarray | None = None

    @classmethod
    def project(cls, model: Any, sizes: list[Any]) -> LinearProblem:
        """Make the problem of a model for some PCA sizes."""
        total, stats = model._total(), model.stats_
        check_rows(model, total)
        folds = stats.parts if isinstance(stats, FoldMoments) else []
        if model._axes is not None:  # Algorithm 4: folded in these coordinates already
            widths = [U.shape[1] for U in model._axes]
            rank = np.concatenate([np.arange(width) for width in widths])
            kernel = np.repeat(np.arange(len(widths)), widths)
            return cls(model, total, folds, rank, kernel, block_diag(*model._axes))
        if not model._has_pca(sizes):
            kernel = model._fitted_maps.kernel_of_feature
            return cls(model, total, folds, np.zeros_like(kernel), kernel)
        pca = total if model._pca_stats is None else model._pca_stats
        values, vectors = principal_axes(pca.scatter())
        name = type(model).__name__
        U = vectors[:, : max(component_count(name, size, values, pca.n) for size in sizes)]
        folds = [fold.projected(U) if fold.H is not None else fold for fold in folds]
        rank = np.arange(U.shape[1])
        kernel = np.zeros_like(rank)
        return cls(model, total.projected(U), folds, rank, kernel, U, U, values)

    @classmethod
    def from_axes(cls, model: Any, stats: Any, axes: np.ndarray) -> LinearProblem:
        """Make the problem of few rows from sums in orthonormal coordinates of their span."""
        folds = stats.parts if isinstance(stats, FoldMoments) else []
        total = stats.total() if folds else stats
        check_rows(model, total)
        zeros = np.zeros(axes.shape[1], dtype=np.intp)
        return cls(model, total, folds, zeros, zeros, axes)

    @property
    def diagonal(self) -> bool:
        """Whether the scatter is diagonal: a PCA of these very rows (errata 2.23)."""
        return self.projection is not None and self.model._pca_stats is None

    def candidates(self, sizes: list[Any]) -> list[np.ndarray]:
        """Columns of the coordinates for each size: the first of each kernel's PCA."""
        name, candidates = type(self.model).__name__, []
        for size in sizes:
            keep = np.ones(len(self.rank), dtype=bool)
            for k, kernel in enumerate(self.model._fitted_maps.parts):
                (n_components,), mine = kernel.sizes([size]), self.kernel == k
                if isinstance(n_components, Real) and not isinstance(n_components, Integral):
                    if self.values is None:
                        continue  # a fraction of variance was cut in the first pass
                    n_components = component_count(name, n_components, self.values, self.total.n)
                if n_components is None:
                    continue
                if n_components > mine.sum():
                    raise ValueError(
                        f"{name}: n_components={n_components} is more than the {mine.sum()} that "
                        "were kept; fit again"
                    )
                keep &= ~mine | (self.rank < n_components)
            candidates.append(np.flatnonzero(keep))
        return candidates

    def count_components(self, columns: np.ndarray) -> Any:
        """PCA size that some columns are: None, a number, or one for each kernel."""
        if self.back is None or not self.model._has_pca():
            return None
        features = self.model._fitted_maps
        counts = np.bincount(self.kernel[columns], minlength=len(features.parts)).tolist()
        return counts if features.several else counts[0]

    def solve(self, columns: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """β = U w and ȳ − wᵀz̄ for each α, on the features, and the number of iterations."""
        W, n_iter = self._weights(self.total, columns, alphas)
        intercepts = [
            problem.y_mean - w @ problem.mean[columns]
            for w, problem in self._split_by_problem(W, self.total)
        ]
        coef = W if self.back is None else W @ self.back[:, columns].T
        return coef, np.concatenate(intercepts, axis=-1), n_iter

    def best_solution(self, sizes: list[Any]) -> LinearSolution:
        """The model of the best size and α, by the rule or by errors on rows left out."""
        model, candidates = self.model, self.candidates(sizes)
        size, results = 0, None
        if model._has_alpha_rule():
            problems = model._problems(self.total)
            best_alphas = [model._best_alpha(self, problems, columns) for columns in candidates]
            alphas, values = np.array(best_alphas).T
            size = int(np.argmax(values))
            alpha = float(alphas[size])
            results = {"alpha": alphas, "n_components": sizes, f"log_{model.alpha}": values}
        elif not model._chooses():
            alpha = float(model._alphas()[0])
        else:
            alphas = model._alphas()
            errors = self._errors(candidates, alphas)
            size, best = (int(i) for i in np.unravel_index(np.argmin(errors), errors.shape))
            alpha = float(alphas[best])
            results = {"alpha": alphas, "n_components": sizes, "mean_squared_error": errors}
        columns = candidates[size]
        (coef,), (intercept,), n_iter = self.solve(columns, np.array([alpha]))
        count = self.count_components(columns)
        return LinearSolution(coef, intercept, alpha, count, results, n_iter)

    def _errors(self, candidates: list[np.ndarray], alphas: np.ndarray) -> np.ndarray:
        """Mean squared error of every size and α on rows that were not used."""
        model, validation = self.model, self.model.validation
        name = type(model).__name__
        if isinstance(validation, str):
            return model._errors_by_gcv(self, model._problems(self.total), candidates, alphas)
        if not isinstance(validation, Integral) or not self.folds:
            raise ValueError(
                f"{name}: the statistics were folded without folds, so validation={validation} "
                "cannot choose among several alpha or n_components now; fit again"
            )
        if self.total.n < 2:
            raise ValueError(
                f"{name}: n_samples=1 is too few to choose among several alpha or n_components"
            )
        errors = np.zeros((len(candidates), len(alphas)))
        for held_out in self.folds:
            if not held_out.weight > 0:
                continue
            train = self.total.minus(held_out)
            check_rows(model, train)
            held_out = held_out.with_classes(self.total.classes)
            for s, columns in enumerate(candidates):
                W, _ = self._weights(train, columns, alphas)
                for weights, *both in self._split_by_problem(W, train, held_out):
                    if both[1].weight > 0:
                        errors[s] += squared_errors(weights, columns, *both).sum(axis=-1)
        return errors / self.total.weight

    def _weights(
        self, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Weights of shape (n_alphas, n_outputs, k) of all problems; the most iterations of one."""
        model = self.model
        problems = model._problems(stats)
        solutions = [model._solve_path(self, problem, columns, alphas) for problem in problems]
        return np.concatenate([W for W, _ in solutions], axis=1), max(n for _, n in solutions)

    def _split_by_problem(self, W: np.ndarray, *stats: Moments) -> Iterator[tuple[Any, ...]]:
        """The weights of each problem, of shape (…, t, k), and the statistics of its rows."""
        problems = [self.model._problems(moments) for moments in stats]
        return zip(np.split(W, len(problems[0]), axis=-2), *problems, strict=True)


@dataclass(eq=False, repr=False)
class StreamingLinear(BaseEstimator):
    """Base of the linear models, whose weights minimise a centred quadratic problem."""

    alpha: Any = 1.0
    feature_map: Any = None
    _: KW_ONLY
    n_components: Any = None
    validation: Any = 5
    n_jobs: int | None = None
    block_rows: int | None = None
    progress: bool | None = None

    _state = rows.STATE.extended(
        required={"y_ndim": integer(1, 2)},
        allowed={
            "solution": optional(instance((LinearSolution,))),
            "pca_stats": optional(instance((Moments,))),
            "axes": optional(many(array("f8", "_ _"), least=1)),
        },
    )

    _target: ClassVar[Target] = "real"  # of the statistics
    _y_options: ClassVar[dict[str, Any]] = {}  # of scikit-learn's checks
    feature_map_ = property(rows.fitted_maps)
    n_samples_seen_ = property(rows.count_rows_seen)
    __getstate__ = rows.portable_state
    # Without annotations, which would make parameters of them: maps and rows of the fit.
    _fitted_maps = cast("rows.Features", None)
    _rows_on = cast("str | None", None)  # device of the tensor that was fitted
    device = cast("Any", None)
    precision = cast("str | None", None)
    _axes = cast("list[np.ndarray] | None", None)  # PCA of each kernel, of several
    _pca_stats = cast("Moments | None", None)  # where unlabelled rows joined the PCA
    _solution = cast("LinearSolution | None", None)  # None until it is asked for

    # Whether the penalty is a ridge: the same in all orthonormal bases, with `validation="gcv"` and
    # `alpha="evidence"`.
    _is_ridge = False

    def _check_penalty(self) -> None:
        """Refuse parameters of the penalty that no data could fit."""

    def _check_features(self, kernel: np.ndarray, pca: bool) -> None:
        """Refuse parameters of the penalty that do not fit the features."""

    def _problems(self, stats: Moments) -> list[Moments]:
        """The statistics of each problem that is solved by itself: one of all targets."""
        return [stats]

    def _check_y(self, y: Any) -> Any:
        return y

    def _check_state(self) -> None:
        """Raise ValueError if parameters that were loaded are not valid."""
        if hasattr(self, "stats_"):
            self._check_parameters()

    # ---- fitting ----------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any, unlabeled: Any, classes: Any) -> Self:
        source = rows.open_rows(self, X, y, sample_weight, reset=True, supervised=True)
        extra = None
        self._begin(source)
        features = self._fitted_maps
        if unlabeled is not None:
            if not self._has_pca():
                raise ValueError(
                    f"{type(self).__name__}: unlabeled= serves the PCA, but n_components is None"
                )
            extra = rows.open_rows(self, unlabeled, reset=False, supervised=False)
        several = features.several and self._has_pca()
        if several:
            source.keep_chunks()
            features = self._fit_kernel_pca(source, extra)
        self.stats_ = rows.fold_rows(self, source, self._empty(features, classes), features)
        if extra is not None and not several:
            unlabelled = rows.fold_rows(self, extra, Moments(tag=features.tag), features)
            self._pca_stats = unlabelled.merge(self._total().features_only())
        problem = None
        if self._has_few_rows(source):
            source, axes = rows.rotate_rows(self, source)
            features = rows.Features([rows.Part(None, None)])
            stats = rows.fold_rows(self, source, self._empty(features, classes), features)
            problem = LinearProblem.from_axes(self, stats, axes)
        self._solve(problem)
        return self

    def _begin(self, source: Source) -> None:
        self._check_parameters()
        y = rows.begin_fit(self, source)
        if y is None:
            raise ValueError(
                f"{type(self).__name__}: {source.describe()} has no targets. Give y, the name of "
                "the target in the file, or chunks (X, y)"
            )
        self._check_features(self._fitted_maps.kernel_of_feature, self._has_pca())
        self._y_ndim, self._solution = 1 if self._target == "class" else y.ndim, None
        self._pca_stats = self._axes = None

    def _empty(self, features: rows.Features, classes: Any = None, **options: Any) -> Any:
        """Statistics of no rows."""
        zero = Moments(self._target, classes=classes, tag=features.tag, **options)
        has_folds = self._chooses() and isinstance(self.validation, Integral)
        return FoldMoments.empty(zero, int(self.validation)) if has_folds else zero

    def _fit_kernel_pca(self, source: Source, extra: Source | None) -> rows.Features:
        """First pass of Algorithm 4: a PCA of each kernel alone (errata 2.22)."""
        name, features = type(self).__name__, self._fitted_maps
        zeros = [Moments(tag=kernel.tag) for kernel in features.parts]
        stats = KernelMoments(zeros, features.widths)
        stats = rows.fold_rows(self, source, stats, features)
        if extra is not None:
            stats.merge(rows.fold_rows(self, extra, stats.zero(), features))
        self._axes = []
        for kernel, moments in zip(features.parts, stats.parts):
            check_rows(self, moments)
            with rows.solve_on_device(self):
                values, vectors = principal_axes(moments.scatter())
            sizes = kernel.sizes(self._sizes())
            largest = max(component_count(name, size, values, moments.n) for size in sizes)
            self._axes.append(vectors[:, :largest])
        return features.project(self._axes)

    def _check_one_pass(self) -> None:
        """Refuse chunks where a fit has to read its rows twice."""
        if self._fitted_maps.several and self._has_pca():
            raise ValueError(
                f"{type(self).__name__}: several kernels with PCA need two passes; use fit, or "
                "n_components=None"
            )

    def _discard_solution(self, added: Any) -> None:
        """Forget what was solved before rows were added; `added` are their statistics."""
        if self._pca_stats is not None:  # of an earlier fit with unlabelled rows
            total = added.total() if isinstance(added, FoldMoments) else added
            self._pca_stats.merge(total.features_only())
        self._solution = None

    def merge(self, other: Self) -> Self:
        """Add the rows of another fitted estimator, as if they had been read here.

        Parameters
        ----------
        other : estimator of the same class
            Fitted with the same map; statistics of another map are refused.

        Returns
        -------
        self
            The estimator of all rows.
        """
        rows.check_mergeable(self, other)
        pca = None
        if self._pca_stats or other._pca_stats:
            pca_stats, other_pca_stats = (
                e._pca_stats or e._total().features_only() for e in (self, other)
            )
            pca = pca_stats.copy().merge(other_pca_stats)
        self.stats_.merge(other.stats_)
        self._pca_stats, self._solution = pca, None
        return self

    def refit(self, **params: Any) -> Self:
        """Return a copy with other parameters, from the same statistics; no row is read again.

        Parameters
        ----------
        **params : dict
            Parameters by name: alpha, n_components, …

        Returns
        -------
        estimator
            The fitted copy.
        """
        check_is_fitted(self, "stats_")
        out = copy.copy(self).set_params(**params)
        out._check_parameters()
        out.stats_ = self.stats_.copy()  # rows added to one are not added to the other
        out._solution = None
        out._solve()
        return out

    def _has_few_rows(self, source: Source) -> TypeGuard[SlicedSource]:
        """Whether rows are so few that it pays to solve in their span."""
        on_device = isinstance(source, rows.DeviceRows) or self.device is not None
        if on_device or not isinstance(source, SlicedSource):
            return False
        width, has_rule = sum(self._fitted_maps.widths), self._has_alpha_rule()
        max_rows = width if self._chooses() or has_rule else width // COLUMNS_PER_ROW
        is_penalised = has_rule or bool(self._alphas().min() > 0)
        single = not (self._has_pca() or self._fitted_maps.several)
        is_small = width >= LEAST_COLUMNS and source.n_rows < max_rows
        return is_small and self._is_ridge and is_penalised and single

    def _solve(self, problem: LinearProblem | None = None) -> None:
        sizes = self._sizes()
        with rows.solve_on_device(self):
            problem = LinearProblem.project(self, sizes) if problem is None else problem
            self._solution = problem.best_solution(sizes)

    # ---- parameters -------------------------------------------------------------------------

    def _total(self) -> Moments:
        return self.stats_.total() if isinstance(self.stats_, FoldMoments) else self.stats_

    def _alphas(self) -> np.ndarray:
        return np.atleast_1d(np.asarray(self.alpha, dtype=np.float64))

    def _sizes(self) -> list[Any]:
        if isinstance(self.n_components, list | tuple | np.ndarray | range):
            return np.atleast_1d(np.asarray(self.n_components, dtype=object)).tolist()
        return [self.n_components]

    def _has_alpha_rule(self) -> bool:
        """Whether α is not a number, but a rule by which the sums give one."""
        return self._is_ridge and isinstance(self.alpha, str) and self.alpha == "evidence"

    def _chooses(self) -> bool:
        """Whether rows that are left out have to choose."""
        if self._has_alpha_rule():
            return False
        return len(self._alphas()) > 1 or len(self._sizes()) > 1

    def _has_pca(self, sizes: list[Any] | None = None) -> bool:
        sizes = self._sizes() if sizes is None else sizes
        requested = [kernel.sizes(sizes) for kernel in self._fitted_maps.parts]
        return any(size is not None for group in requested for size in group)

    def _check_parameters(self) -> None:
        name = type(self).__name__
        if not self._has_alpha_rule():
            try:
                valid = self._alphas().ndim == 1 and bool(np.all(self._alphas() >= 0))
                valid &= len(self._alphas()) > 0
            except (TypeError, ValueError):
                valid = False
            if not valid:
                rules = " or 'evidence'" * self._is_ridge
                raise ValueError(
                    f"{name}: alpha must be a number >= 0, several such{rules}, got {self.alpha!r}"
                )
        if not self._sizes():
            raise ValueError(f"{name}: n_components must be a size, or several, got none")
        validation = self.validation
        folds = is_number(validation, Integral) and int(validation) >= 2
        if not folds and not (self._is_ridge and str(validation) == "gcv"):
            words = " or 'gcv'" * self._is_ridge
            raise ValueError(
                f"{name}: validation must be a number of folds of at least 2{words}, got "
                f"{validation!r}"
            )
        self._check_penalty()

    # ---- what is learned --------------------------------------------------------------------

    def _find_solution(self) -> LinearSolution:
        check_is_fitted(self, "stats_")
        if self._solution is None:  # after partial_fit or merge: solved when first asked for
            self._solve()
        assert self._solution is not None
        return self._solution

    @property
    def predictor_(self) -> LinearPredictor:
        """The fitted object."""
        return LinearPredictor(
            type(self).__name__, self._fitted_maps, self._find_solution(), self.n_features_in_,
            self._y_ndim, getattr(self, "classes_", None), getattr(self, "multi_class", "ovr"),
            getattr(self, "feature_names_in_", None),
        )  # fmt: skip

    @property
    def alpha_(self) -> float:
        """Regularisation in use."""
        return self._find_solution().alpha

    @property
    def n_components_(self) -> Any:
        """PCA size in use: None, an int, or one per kernel."""
        return self._find_solution().n_components

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Candidates and their mean squared errors on rows left out."""
        results = self._find_solution().cv_results
        if results is None:
            raise AttributeError("there was nothing to choose: alpha and n_components are single")
        return results

    def _linear(self, X: Any) -> np.ndarray:
        """Outputs of rows, block by block; float32 features give float32."""
        return rows.map_blocks(self, X, self.predictor_.scores)

    def __sklearn_tags__(self) -> Tags:
        return rows.input_tags(self, super().__sklearn_tags__())


class StreamingRegression(ScoresAnywhere, MultiOutputMixin, RegressorMixin, StreamingLinear):
    """fit, partial_fit and predict of the regressors."""

    _y_options: ClassVar[dict[str, Any]] = {"multi_output": True, "y_numeric": True}

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, unlabeled: Any = None,
    ) -> Self:  # fmt: skip
        """Read all rows once and solve.

        Parameters
        ----------
        X : array, sparse matrix, path, iterable of chunks, Dask collection, …
            Whatever `kernelmaps.data.open_source` opens.
        y : array-like of shape (n,) or (n, t), str or None
            Targets; the name of a column or dataset in files that have names; None if the chunks
            or the file carry them.
        sample_weight : array-like, str or None
            A weight of 2 is a row that occurs twice.
        unlabeled : array, path, …, optional
            More rows, without targets, for the PCA alone: the paper's PCA on training and test
            rows. Their Hessian does not enter the regression (errata 2.23).

        Returns
        -------
        self
            The fitted model.
        """
        return self._fit(X, y, sample_weight, unlabeled, None)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add one chunk of rows; the model is solved when it is next used.

        Parameters
        ----------
        X : array-like or sparse matrix
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
        rows.add_chunk(self, X, y, sample_weight)
        return self

    @property
    def coef_(self) -> np.ndarray:
        """β, on the features."""
        coef = self._find_solution().coef
        return coef[0] if self._y_ndim == 1 else coef

    @property
    def intercept_(self) -> Any:
        """ȳ − βᵀz̄."""
        intercept = self._find_solution().intercept
        return float(intercept[0]) if self._y_ndim == 1 else intercept

    def predict(self, X: Any) -> np.ndarray:
        """Predict the targets of rows from any source.

        Parameters
        ----------
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        """
        return self.predictor_.predictions(self._linear(X))


@dataclass(eq=False, repr=False)
class StreamingClassification(ScoresAnywhere, ClassifierMixin, StreamingLinear):
    """fit, partial_fit and predict of the classifiers; the next base solves for the weights."""

    _state = StreamingLinear._state.extended(allowed={"classes": schema.labels})
    _target = "class"
    _: KW_ONLY
    multi_class: str = "ovr"

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None,
        unlabeled: Any = None,
    ) -> Self:  # fmt: skip
        """Read all rows once and solve.

        Parameters
        ----------
        X : array, sparse matrix, path, iterable of chunks, Dask collection, …
            Whatever `kernelmaps.data.open_source` opens.
        y : array-like of shape (n,), str or None
            Labels; the name of a column in files that have names; None if the chunks or the file
            carry them.
        sample_weight : array-like, str or None
            A weight of 2 is a row that occurs twice.
        classes : array-like, optional
            All labels; others are then refused.
        unlabeled : array, path, …, optional
            More rows, without labels, for the PCA alone: the paper's PCA on training and test
            rows. Their Hessian does not enter the regression (errata 2.23).

        Returns
        -------
        self
            The fitted classifier.
        """
        return self._fit(X, y, sample_weight, unlabeled, classes)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add one chunk of rows; the model is solved when it is next used.

        Parameters
        ----------
        X : array-like or sparse matrix
            Rows of the chunk.
        y : array-like of shape (n,)
            Labels.
        classes : array-like
            All labels: required in the first call, as in scikit-learn.
        sample_weight : array-like, optional
            Weights of the rows.

        Returns
        -------
        self
            The classifier of all rows so far.
        """
        is_first, classes = not hasattr(self, "stats_"), rows.copy_to_host(classes)
        if is_first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        labels = None if is_first or classes is None else np.unique(classes)
        if labels is not None and not np.array_equal(labels, self.classes_):
            raise ValueError(
                f"classes={labels!r} is not the same as on the first call to "
                f"partial_fit, {self.classes_!r}"
            )
        rows.add_chunk(self, X, y, sample_weight, classes)
        return self

    def _check_y(self, y: Any) -> np.ndarray:
        check_classification_targets(y)
        return y

    def _empty(self, features: rows.Features, classes: Any = None, **options: Any) -> Any:
        return super()._empty(features, classes, by_class=self.multi_class == "ovo")

    def _solve(self, problem: LinearProblem | None = None) -> None:
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least 2 classes; the data contain only "
                f"one class: {self.classes_.tolist()}"
            )
        self._classes = self.classes_
        super()._solve(problem)

    @property
    def classes_(self) -> np.ndarray:
        """Sorted labels."""
        check_is_fitted(self, "stats_")
        labels = [stats.classes for stats in getattr(self.stats_, "parts", [self.stats_])]
        return np.unique(np.concatenate([values for values in labels if len(values)] or labels))

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
        return [stats.pair(*positions[pair]) for pair in class_pairs(len(positions))]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self, "multi_class", self.multi_class, ("ovr", "ovo"))

    # ---- what is learned --------------------------------------------------------------------

    @property
    def coef_(self) -> np.ndarray:
        """β for targets ±1, on the features."""
        return self.predictor_.weights[0]

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts for targets ±1."""
        return self.predictor_.weights[1]

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the scores of rows from any source.

        Parameters
        ----------
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            One column for two classes, for the second of them. One against one, the votes for each
            class, ties broken by the scores of the pairs.
        """
        scores = self._class_scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _class_scores(self, X: Any) -> np.ndarray:
        """Scores with a column for each class, or one for two classes."""
        scores = self._linear(X)
        if self._pairwise:
            refuse_gpu_array(X, f"{type(self).__name__} one against one", "Pass X.cpu().numpy()")
            return count_votes(to_host(scores), len(self.classes_))
        return scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels of rows from any source.

        Parameters
        ----------
        X : array-like, sparse matrix, path, iterable of chunks, Dask collection, …
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        return best_labels(self, self._class_scores(X))
