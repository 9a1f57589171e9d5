"""Linear models with quadratic loss from one pass (two for the PCA of several kernels).

`StreamingRegression` has fit, partial_fit and predict of the regressors.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np
from scipy.linalg import block_diag
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..._util.arguments import is_number
from ..._util.schema import (
    anything,
    array,
    instance,
    integer,
    many,
    number,
    optional,
    record,
    saved,
)
from ..._util.storage import all_or_nothing
from ...data import Source
from ...stats import FoldMoments, KernelMoments, Moments
from ..device_scores import ScoresAnywhere
from ..solvers.quadratic import check_rows, component_count, principal_axes, squared_errors
from .base import Look, Passes, PathLike, StreamingEstimator
from .feature_maps import Features, affine


@dataclass(frozen=True)
class Path:
    """Models for every PCA size and every regularisation, from the same statistics.

    For classes the targets are one-hot, 0 and 1.

    Attributes
    ----------
    n_components : list
        Sizes (None: no PCA).
    alphas : ndarray
    coef : ndarray of shape (n_sizes, n_alphas, n_targets, D)
    intercept : ndarray of shape (n_sizes, n_alphas, n_targets)
    """

    n_components: list[Any]
    alphas: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray


@record
class LinearSolution:
    """Coefficients of a linear model, and the settings that cross-validation chose."""

    coef: np.ndarray = saved(array("f8", "targets features"))
    intercept: np.ndarray = saved(array("f8", "targets"))
    alpha: float = saved(number(low=0))
    n_components: Any = saved(anything, default=None)
    cv_results: dict[str, Any] | None = saved(optional(anything), default=None)
    n_iter: int = saved(integer(1), default=1)


@dataclass(frozen=True)
class ProjectedStats:
    """The statistics in the coordinates in which the model is solved.

    Attributes
    ----------
    total, folds : Moments, list of Moments
        Projected sums.
    rank, kernel : ndarray of shape (r,)
        Place of each coordinate within the PCA of its kernel, and that kernel.
    back : ndarray of shape (D, r) or None
        U, block-diagonal for several kernels; β = U w (errata 2.20: not Uᵀw).
    projection : ndarray of shape (D, r) or None
        From the features that were folded to the coordinates.
    diagonal : bool
        Whether the scatter is diagonal: a PCA of these very rows.
    """

    total: Moments
    folds: list[Moments]
    rank: np.ndarray
    kernel: np.ndarray
    back: np.ndarray | None = None
    projection: np.ndarray | None = None
    diagonal: bool = False


class Solver(Protocol):
    """What differs between the linear models: the penalty, and how its minimum is computed.

    Attributes
    ----------
    criteria : tuple of str
        Values of `validation`, apart from numbers of folds.
    alpha_rules : tuple of str
        Values of `alpha`, apart from numbers.
    """

    criteria: ClassVar[tuple[str, ...]]
    alpha_rules: ClassVar[tuple[str, ...]]

    def check(self) -> None:
        """Raise ValueError or TypeError for bad parameters."""

    def check_features(self, kernel: np.ndarray, pca: bool) -> None:
        """Raise ValueError if the parameters do not fit features of these kernels."""

    def weights(
        self, at: ProjectedStats, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Weights of shape (n_alphas, t, k) on `columns`, and the number of iterations."""

    def errors(
        self, criterion: str, at: ProjectedStats, problems: list[Moments],
        candidates: list[np.ndarray], alphas: np.ndarray, second_pass: Any,
    ) -> np.ndarray:  # fmt: skip
        """Values of one of the `criteria` for every size and α."""

    def best_alpha(
        self, at: ProjectedStats, problems: list[Moments], columns: np.ndarray
    ) -> tuple[float, float]:
        """The α that the rule says for some columns, and the value of what it maximises."""


@dataclass(eq=False, repr=False)
class StreamingLinear(StreamingEstimator):
    """Base of the linear models, whose `_solver` minimises a centred quadratic problem."""

    alpha: Any = 1.0
    feature_map: Any = None
    _: KW_ONLY
    n_components: Any = None
    validation: Any = 5
    n_jobs: int | None = None
    block_rows: int | None = None
    progress: bool | None = None

    _state = StreamingEstimator._state.extended(
        required={"y_ndim": integer(1, 2)},
        allowed={
            "solution": optional(instance((LinearSolution,))),
            "pca_stats": optional(instance((Moments,))),
            "axes": optional(many(array("f8", "_ _"), least=1)),
        },
    )

    _target = "real"
    # Without annotations, which would make parameters of them.
    _axes = cast("list[np.ndarray] | None", None)  # PCA of each kernel, of several
    _pca_stats = cast("Moments | None", None)  # where unlabelled rows joined the PCA
    _solution = cast("LinearSolution | None", None)  # None until it is asked for

    @property
    def _solver(self) -> Solver:
        """The solver with the parameters of this estimator."""
        raise NotImplementedError

    def _problems(self, stats: Moments) -> list[Moments]:
        """The statistics of each problem that is solved by itself: one of all targets."""
        return [stats]

    def _by_problem(self, W: np.ndarray, *stats: Moments) -> Iterator[tuple[Any, ...]]:
        """The weights of each problem, of shape (…, t, k), and the statistics of its rows."""
        problems = [self._problems(moments) for moments in stats]
        return zip(np.split(W, len(problems[0]), axis=-2), *problems, strict=True)

    def _weights(
        self, at: ProjectedStats, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Weights of shape (n_alphas, n_outputs, k) of all problems; the most iterations of one."""
        solver = self._solver
        solutions = [
            solver.weights(at, problem, columns, alphas) for problem in self._problems(stats)
        ]
        return np.concatenate([W for W, _ in solutions], axis=1), max(n for _, n in solutions)

    def _check_state(self) -> None:
        super()._check_state()
        if not hasattr(self, "stats_"):
            return
        self._check_parameters()
        shapes = [U.shape for U in self._axes or []]
        if shapes and [shape[0] for shape in shapes] != self._fitted_maps.widths:
            raise ValueError("axes have other lengths than the features of the kernels")
        if self._total().target != self._target:
            raise ValueError(f"stats_ are of target {self._total().target!r}")
        solution = self._solution
        if solution is not None and solution.coef.shape[1] != sum(self._fitted_maps.widths):
            raise ValueError("solution has another number of features than the map gives")
        if solution is not None and len(solution.coef) != self._n_outputs():
            raise ValueError("solution has another number of targets than stats_")

    def _n_outputs(self) -> int:
        """Targets that a model is solved for."""
        return max(1, len(self._total().y_shift))

    def _folded_width(self) -> int:
        axes = self._axes
        return super()._folded_width() if axes is None else sum(U.shape[1] for U in axes)

    # ---- fitting ----------------------------------------------------------------------------

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, unlabeled: Any, classes: Any, map_sample: Any,
        passes: Passes,
    ) -> Self:  # fmt: skip
        source = self._open(X, y, sample_weight, reset=True, supervised=True)
        look = self._begin(source, passes.client, map_sample)
        extra = None
        if unlabeled is not None:
            if not self._has_pca():
                raise ValueError(
                    f"{type(self).__name__}: unlabeled= serves the PCA, but n_components is None"
                )
            extra = self._open(unlabeled, reset=False, supervised=False)
        several = look.features.several and self._has_pca()
        if several or self._wants_loo():
            source.keep_chunks()
        folded = look.features
        if several:
            folded = self._kernel_pca(source, extra, passes)
        self.stats_ = self._fold(source, self._empty(folded, classes), folded, passes, "moments")
        if extra is not None and not several:
            unlabelled = self._fold(extra, Moments(tag=folded.tag), folded, passes, "unlabeled")
            self._pca_stats = unlabelled.merge(self._total().features_only())
        self._solve(lambda loo: self._fold(source, loo, folded, passes))
        passes.finished()
        return self

    def _begin(self, source: Source, client: Any = None, map_sample: Any = None) -> Look:
        self._check_parameters()
        look = super()._begin(source, client, map_sample)
        if look.y_ndim == 0:
            raise ValueError(
                f"{type(self).__name__}: {source.describe()} has no targets. Give y, the name of "
                "the target in the file, or chunks (X, y)"
            )
        self._solver.check_features(_kernels(look.features), self._has_pca())
        self._y_ndim, self._solution = look.y_ndim, None
        self._pca_stats = self._axes = None
        return look

    def _empty(self, features: Features, classes: Any = None) -> Any:
        zero = super()._empty(features, classes)
        by_folds = self._chooses() and isinstance(self.validation, Integral)
        return FoldMoments.of(zero, int(self.validation)) if by_folds else zero

    def _kernel_pca(self, source: Source, extra: Source | None, passes: Passes) -> Features:
        """First pass of Algorithm 4: a PCA of each kernel alone (errata 2.22)."""
        features = self._fitted_maps
        zeros = [Moments(tag=kernel.tag) for kernel in features.parts]
        stats = KernelMoments(zeros, features.widths)
        stats = self._fold(source, stats, features, passes, "pca")
        if extra is not None:
            stats.merge(self._fold(extra, stats.zero(), features, passes, "pca-unlabeled"))
        self._axes = []
        for kernel, moments in zip(features.parts, stats.parts):
            check_rows(self, moments)
            with self._solving():
                values, vectors = principal_axes(moments.scatter())
            sizes = [self._size(size, values, moments) for size in kernel.sizes(self._sizes())]
            self._axes.append(vectors[:, : max(sizes)])
        return features.projected(self._axes)

    def _check_one_pass(self) -> None:
        if self._fitted_maps.several and self._has_pca():
            raise ValueError(
                f"{type(self).__name__}: several kernels with PCA need two passes; use fit, or "
                "n_components=None"
            )

    def _grown(self, added: Any = None) -> None:
        if self._pca_stats is not None:  # of an earlier fit with unlabelled rows
            rows = added.total() if isinstance(added, FoldMoments) else added
            self._pca_stats.merge(rows.features_only())
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
        self._check_other(other)
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

    def path(self, alphas: Sequence[float], n_components: Sequence[Any] | None = None) -> Path:
        """Compute the models for all sizes and strengths at once; no row is read again.

        Parameters
        ----------
        alphas : sequence of float
            Strengths of the penalty.
        n_components : sequence of int, optional
            PCA sizes; by default that of the estimator.

        Returns
        -------
        Path
            Coefficients and intercepts by size, strength and target.
        """
        check_is_fitted(self, "stats_")
        alphas = np.asarray(alphas, dtype=np.float64)
        sizes = self._sizes() if n_components is None else list(n_components)
        if not sizes:
            raise ValueError(f"{type(self).__name__}.path: n_components holds no size.")
        at = self._projected_stats(sizes)
        models = [self._models(at, columns, alphas)[:2] for columns in self._candidates(at, sizes)]
        return Path(sizes, alphas, *map(np.array, zip(*models)))

    # ---- solving ----------------------------------------------------------------------------

    def _solve(self, second_pass: Callable[[Any], Any] | None = None) -> None:
        with self._solving():
            self._solution = self._best_solution(second_pass)

    def _best_solution(self, second_pass: Callable[[Any], Any] | None) -> LinearSolution:
        sizes = self._sizes()
        at = self._projected_stats(sizes)
        candidates = self._candidates(at, sizes)
        size, alpha, results = (
            self._by_rule(at, sizes, candidates)
            if self._has_alpha_rule()
            else self._by_errors(at, sizes, candidates, second_pass)
        )
        columns = candidates[size]
        (coef,), (intercept,), n_iter = self._models(at, columns, np.array([alpha]))
        return LinearSolution(coef, intercept, alpha, self._kept(at, columns), results, n_iter)

    def _by_rule(
        self, at: ProjectedStats, sizes: list[Any], candidates: list[np.ndarray]
    ) -> tuple[int, float, dict[str, Any]]:
        """The best size, its α by the rule, and what was compared."""
        problems = self._problems(at.total)
        pairs = [self._solver.best_alpha(at, problems, columns) for columns in candidates]
        alphas, values = np.array(pairs).T
        best = int(np.argmax(values))
        results = {"alpha": alphas, "n_components": sizes, f"log_{self.alpha}": values}
        return best, float(alphas[best]), results

    def _by_errors(
        self, at: ProjectedStats, sizes: list[Any], candidates: list[np.ndarray], second_pass: Any
    ) -> tuple[int, float, dict[str, Any] | None]:
        """The size and the α of smallest error on rows left out, and what was compared."""
        alphas = self._alphas()
        if not self._chooses():
            return 0, float(alphas[0]), None
        errors = self._errors(at, candidates, alphas, second_pass)
        size, best = np.unravel_index(np.argmin(errors), errors.shape)
        results = {"alpha": alphas, "n_components": sizes, "mean_squared_error": errors}
        return int(size), float(alphas[best]), results

    def _errors(
        self, at: ProjectedStats, candidates: list[np.ndarray], alphas: np.ndarray, second_pass: Any
    ) -> np.ndarray:
        """Mean squared error of every size and α on rows that were not used."""
        solver = self._solver
        if self.validation in solver.criteria:
            problems = self._problems(at.total)
            return solver.errors(self.validation, at, problems, candidates, alphas, second_pass)
        if not isinstance(self.validation, Integral) or not at.folds:
            raise ValueError(
                f"{type(self).__name__}: the statistics were folded without folds, so "
                f"validation={self.validation} cannot choose among several alpha or n_components "
                "now; fit again"
            )
        if at.total.n < 2:
            raise ValueError(
                f"{type(self).__name__}: n_samples=1 is too few to choose among several alpha or "
                "n_components"
            )
        errors = np.zeros((len(candidates), len(alphas)))
        for held in at.folds:
            if not held.weight > 0:
                continue
            train = at.total.minus(held)
            check_rows(self, train)
            for s, columns in enumerate(candidates):
                W, _ = self._weights(at, train, columns, alphas)
                for weights, *both in self._by_problem(W, train, held):
                    if both[1].weight > 0:
                        errors[s] += squared_errors(weights, columns, *both).sum(axis=-1)
        return errors / at.total.weight

    def _models(
        self, at: ProjectedStats, columns: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """β = U w and ȳ − wᵀz̄ for each α, on the features, and the number of iterations."""
        W, n_iter = self._weights(at, at.total, columns, alphas)
        means = [
            problem.y_mean - w @ problem.mean[columns]
            for w, problem in self._by_problem(W, at.total)
        ]
        coef = W if at.back is None else W @ at.back[:, columns].T
        return coef, np.concatenate(means, axis=-1), n_iter

    def _projected_stats(self, sizes: list[Any]) -> ProjectedStats:
        total = self._total()
        check_rows(self, total)
        folds = self.stats_.parts if isinstance(self.stats_, FoldMoments) else []
        if self._axes is not None:  # Algorithm 4: folded in these coordinates already
            widths = [U.shape[1] for U in self._axes]
            rank = np.concatenate([np.arange(width) for width in widths])
            kernel = np.repeat(np.arange(len(widths)), widths)
            return ProjectedStats(total, folds, rank, kernel, block_diag(*self._axes))
        if not self._has_pca(sizes):
            kernel = _kernels(self._fitted_maps)
            return ProjectedStats(total, folds, np.zeros_like(kernel), kernel)
        pca = total if self._pca_stats is None else self._pca_stats
        values, vectors = principal_axes(pca.scatter())
        keep = max(self._size(size, values, pca) for size in sizes)
        U = vectors[:, :keep]
        self._values = values
        folds = [fold.projected(U) if fold.H is not None else fold for fold in folds]
        diagonal = self._pca_stats is None  # errata 2.23: otherwise UᵀHU is not diagonal
        rank = np.arange(keep)
        return ProjectedStats(total.projected(U), folds, rank, np.zeros_like(rank), U, U, diagonal)

    def _candidates(self, at: ProjectedStats, sizes: list[Any]) -> list[np.ndarray]:
        """Columns of the coordinates for each size: the first of each kernel's PCA."""
        candidates = []
        for size in sizes:
            keep = np.ones(len(at.rank), dtype=bool)
            for k, kernel in enumerate(self._fitted_maps.parts):
                (n_components,), mine = kernel.sizes([size]), at.kernel == k
                if n_components is None:
                    continue
                if isinstance(n_components, Real) and not isinstance(n_components, Integral):
                    if self._axes is None:
                        keep &= ~mine | (at.rank < self._size(n_components, self._values, at.total))
                    continue  # a fraction of variance was cut in the first pass
                if n_components > mine.sum():
                    raise ValueError(
                        f"{type(self).__name__}: n_components={n_components} is more than the "
                        f"{mine.sum()} that were kept; fit again"
                    )
                keep &= ~mine | (at.rank < n_components)
            candidates.append(np.flatnonzero(keep))
        return candidates

    def _kept(self, at: ProjectedStats, columns: np.ndarray) -> Any:
        if at.back is None:
            return None
        counts = np.bincount(at.kernel[columns], minlength=len(self._fitted_maps.parts)).tolist()
        return counts if self._fitted_maps.several else counts[0]

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
        return isinstance(self.alpha, str) and self.alpha in self._solver.alpha_rules

    def _chooses(self) -> bool:
        """Whether rows that are left out have to choose."""
        if self._has_alpha_rule():
            return False
        return len(self._alphas()) > 1 or len(self._sizes()) > 1

    def _wants_loo(self) -> bool:
        return self._chooses() and self.validation == "loo"

    def _has_pca(self, sizes: list[Any] | None = None) -> bool:
        sizes = self._sizes() if sizes is None else sizes
        requested = [kernel.sizes(sizes) for kernel in self._fitted_maps.parts]
        return any(size is not None for group in requested for size in group)

    def _size(self, size: Any, values: np.ndarray, stats: Moments) -> int:
        """Number of components that a size (None, int, or a fraction of variance) stands for."""
        return component_count(type(self).__name__, size, values, stats.n)

    def _check_parameters(self) -> None:
        name = type(self).__name__
        if not self._has_alpha_rule():
            self._check_alphas()
        if not self._sizes():
            raise ValueError(f"{name}: n_components must be a size, or several, got none")
        folds = is_number(self.validation, Integral) and int(self.validation) >= 2
        criteria = self._solver.criteria
        named = isinstance(self.validation, str) and self.validation in criteria
        if not folds and not named:
            words = ", ".join(repr(word) for word in criteria)
            raise ValueError(
                f"{name}: validation must be a number of folds of at least 2"
                f"{' or ' * bool(words)}{words}, got {self.validation!r}"
            )
        self._solver.check()

    def _check_alphas(self) -> None:
        name = type(self).__name__
        rules = "".join(f" or {rule!r}" for rule in self._solver.alpha_rules)
        try:
            alphas = self._alphas()
        except (TypeError, ValueError):
            message = f"{name}: alpha must be a number{rules}, got {self.alpha!r}"
            raise ValueError(message) from None
        if alphas.ndim != 1 or not len(alphas) or not np.all(alphas >= 0):
            raise ValueError(f"{name}: alpha must be >= 0, or several such, got {self.alpha!r}")

    # ---- what is learned --------------------------------------------------------------------

    def _solved(self) -> LinearSolution:
        check_is_fitted(self, "stats_")
        if self._solution is None:  # after partial_fit or merge: solved when first asked for
            self._solve()
        assert self._solution is not None
        return self._solution

    @property
    def alpha_(self) -> float:
        """Regularisation in use."""
        return self._solved().alpha

    @property
    def n_components_(self) -> Any:
        """PCA size in use: None, an int, or one per kernel."""
        return self._solved().n_components

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Candidates and their mean squared errors on rows left out."""
        results = self._solved().cv_results
        if results is None:
            raise AttributeError("there was nothing to choose: alpha and n_components are single")
        return results

    def _linear(self, X: Any) -> np.ndarray:
        """φ(X) βᵀ + intercept, block by block; float32 features give float32."""
        solution = self._solved()
        outputs = partial(affine, matrix=solution.coef.T, offset=solution.intercept)
        return self._by_blocks(X, outputs)


def _kernels(features: Features) -> np.ndarray:
    """The kernel of each feature."""
    return np.repeat(np.arange(len(features.parts)), features.widths)


class StreamingRegression(ScoresAnywhere, MultiOutputMixin, RegressorMixin, StreamingLinear):
    """fit, partial_fit and predict of the regressors."""

    _y_options: ClassVar[dict[str, Any]] = {"multi_output": True, "y_numeric": True}

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
        outputs = self._linear(X)
        return outputs[:, 0] if self._y_ndim == 1 else outputs
