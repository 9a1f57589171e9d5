"""Linear models with quadratic loss as functions of sums: all sizes and all α, and the best.

What differs between the models is the penalty: a *solver* computes the weights (`weights`), checks
its parameters (`check`, `check_features`) and may have criteria other than folds to choose by
(`criteria`, `errors`) and rules for α (`alpha_rules`, `best_alpha`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from ..._util.schema import anything, array, integer, number, optional, record, saved
from ...stats import FoldMoments, Moments
from ..solvers.quadratic import check_rows, component_count, principal_axes, squared_errors


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
        if self.back is None:
            return None
        features = self.model._fitted_maps
        counts = np.bincount(self.kernel[columns], minlength=len(features.parts)).tolist()
        return counts if features.several else counts[0]

    def solve(self, columns: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """β = U w and ȳ − wᵀz̄ for each α, on the features, and the number of iterations."""
        W, n_iter = self._weights(self.total, columns, alphas)
        intercepts = [
            problem.y_mean - w @ problem.mean[columns]
            for w, problem in self._by_problem(W, self.total)
        ]
        coef = W if self.back is None else W @ self.back[:, columns].T
        return coef, np.concatenate(intercepts, axis=-1), n_iter

    def best_solution(
        self, sizes: list[Any], second_pass: Callable[[Any], Any] | None
    ) -> LinearSolution:
        """The model of the best size and α, by the rule or by errors on rows left out."""
        model, candidates = self.model, self.candidates(sizes)
        size, results = 0, None
        if model._has_alpha_rule():
            problems = model._problems(self.total)
            rule = model._solver.best_alpha
            alphas, values = np.array([rule(self, problems, columns) for columns in candidates]).T
            size = int(np.argmax(values))
            alpha = float(alphas[size])
            results = {"alpha": alphas, "n_components": sizes, f"log_{model.alpha}": values}
        elif not model._chooses():
            alpha = float(model._alphas()[0])
        else:
            alphas = model._alphas()
            errors = self._errors(candidates, alphas, second_pass)
            size, best = (int(i) for i in np.unravel_index(np.argmin(errors), errors.shape))
            alpha = float(alphas[best])
            results = {"alpha": alphas, "n_components": sizes, "mean_squared_error": errors}
        columns = candidates[size]
        (coef,), (intercept,), n_iter = self.solve(columns, np.array([alpha]))
        count = self.count_components(columns)
        return LinearSolution(coef, intercept, alpha, count, results, n_iter)

    def _errors(
        self, candidates: list[np.ndarray], alphas: np.ndarray, second_pass: Any
    ) -> np.ndarray:
        """Mean squared error of every size and α on rows that were not used."""
        model, solver, validation = self.model, self.model._solver, self.model.validation
        name = type(model).__name__
        if validation in solver.criteria:
            problems = model._problems(self.total)
            return solver.errors(validation, self, problems, candidates, alphas, second_pass)
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
            for s, columns in enumerate(candidates):
                W, _ = self._weights(train, columns, alphas)
                for weights, *both in self._by_problem(W, train, held_out):
                    if both[1].weight > 0:
                        errors[s] += squared_errors(weights, columns, *both).sum(axis=-1)
        return errors / self.total.weight

    def _weights(
        self, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Weights of shape (n_alphas, n_outputs, k) of all problems; the most iterations of one."""
        solver, problems = self.model._solver, self.model._problems(stats)
        solutions = [solver.weights(self, problem, columns, alphas) for problem in problems]
        return np.concatenate([W for W, _ in solutions], axis=1), max(n for _, n in solutions)

    def _by_problem(self, W: np.ndarray, *stats: Moments) -> Iterator[tuple[Any, ...]]:
        """The weights of each problem, of shape (…, t, k), and the statistics of its rows."""
        problems = [self.model._problems(moments) for moments in stats]
        return zip(np.split(W, len(problems[0]), axis=-2), *problems, strict=True)
