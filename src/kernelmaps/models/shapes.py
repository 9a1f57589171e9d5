r"""Functions of models as arrays: shapes, pairs, bands around them, explanations of rows.

An estimate :math:`\hat f(x)` with normal errors and the standard errors s(x) has the band
:math:`\hat f ± c s`. The t distribution gives c for single points. For all points at once c is that
of Weyl's tube formula (Sun and Loader 1994; of penalised splines, Krivobokova, Kneib and Claeskens
2010): with :math:`κ` the length of the path that the errors, scaled to unit variance, take along x,
and ν residual degrees of freedom,

.. math:: P(\max_x |\hat f - f|/s > c) ≈ \frac{κ}{π} (1 + c^2/ν)^{-ν/2} + P(|t_ν| > c) .

The angle between neighbours on that path is the arc cosine of the correlation of their errors. A
function that is given at m points needs no more than Bonferroni's c, of level (1 − p)/m.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._util.display import plain_number, signed_number, write_numbers
from .._util.lazy import scipy
from .decision import PredictsRows

_LARGEST = 1e3  # critical value that is searched up to: that of few rows and many points


def pointwise_critical_value(level: float, residual_df: float) -> float:
    """c of a band that covers each point with a probability."""
    p = (1 + level) / 2
    return float(
        scipy.special.ndtri(p) if residual_df == np.inf else scipy.special.stdtrit(residual_df, p)
    )


def simultaneous_critical_value(
    level: float, path_length: float, n_points: int, residual_df: float
) -> float:
    """c of a band that covers all points with a probability.

    `path_length` is κ; infinity for points without an order, whose c is Bonferroni's.
    """
    bonferroni = pointwise_critical_value(1 - (1 - level) / max(n_points, 1), residual_df)
    if path_length == np.inf:
        return bonferroni

    def excess(c: float) -> float:
        one_sided, decay = scipy.special.ndtr(-c), -0.5 * c**2
        if residual_df < np.inf:
            one_sided = scipy.special.stdtr(residual_df, -c)
            decay = -0.5 * residual_df * np.log1p(c**2 / residual_df)
        return float(path_length / np.pi * np.exp(decay) + 2 * one_sided - (1 - level))

    single = pointwise_critical_value(level, residual_df)
    if path_length <= 0:
        return single
    return min(bonferroni, float(scipy.optimize.brentq(excess, single, max(_LARGEST, 2 * single))))


def path_length(errors: np.ndarray, increment_errors: np.ndarray) -> float:
    """κ, from the standard errors at points and those of the increments from point to point."""
    before, after = errors[:-1], errors[1:]
    covariance = 0.5 * (before**2 + after**2 - increment_errors**2)
    product = before * after
    positive = product > 0
    correlation = covariance[positive] / product[positive]
    return float(np.arccos(np.clip(correlation, -1.0, 1.0)).sum())


def importance_of(variances: np.ndarray) -> np.ndarray:
    """How much a function matters: its standard deviation over rows, averaged over outputs.

    This is the one measure of importance. Variances (..., n_outputs) are those of its values
    over the training rows or a sample of them, where a model has these.
    """
    return np.sqrt(np.maximum(variances, 0)).mean(axis=-1)


def tabulated_importance(values: np.ndarray, weight: np.ndarray) -> float:
    """Importance of a function, from values (..., n_outputs) in cells and weights of the cells."""
    share = weight / max(float(weight.sum()), 1e-300)
    mean = np.tensordot(share, values, axes=share.ndim)
    variances = np.tensordot(share, np.square(values - mean), axes=share.ndim)
    return float(importance_of(variances))


def predictor_of(model: Any) -> Any:
    """The fitted object of an additive or streaming model; of anything else, itself."""
    return getattr(model, "predictor_", model)


def estimator_name(model: Any) -> str:
    """The class of an estimator, also of the one that a predictor stands for."""
    return model.estimator if isinstance(model, PredictsRows) else type(model).__name__


def require_fitted(model: Any) -> None:
    """Raise NotFittedError unless an estimator is fitted; predictors always are."""
    if not isinstance(model, PredictsRows):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model)


def score_name(model: Any, target: str = "prediction", output: int | None = None) -> str:
    """What the scores of a fitted model are: "log-odds of class Yes", say.

    That is of all outputs, or of one of several.
    """
    model = predictor_of(model)
    classes, link = getattr(model, "classes_", None), getattr(model, "_link", "")
    if getattr(model, "_is_survival", False):
        return "log hazard"
    if classes is None:
        name = {"log": f"logarithm of {target}", "logit": f"log-odds of {target}"}.get(link, target)
        return model.output_names[output] if output else name
    if link == "cumulative logit":
        return f"log-odds of classes above {classes[0]}"
    which = "each class"
    if len(classes) == 2 or output is not None:
        names = classes[1:] if len(classes) == 2 else classes  # of other linear models
        which = f"class {getattr(model, 'output_names', names)[output or 0]}"
    what = {"logit": "log-odds", "softmax": "softmax score"}.get(link, "score")
    return f"{what} of {which}"


@dataclass(frozen=True)
class ShapeFunction:
    """One feature's part of the score.

    Attributes
    ----------
    name : str
        Of the feature.
    grid : ndarray of shape (m,)
        Points from the smallest to the largest value of (a sample of) the training data; 0, 1, …
        for the levels of a category.
    values : ndarray of shape (m,) or (m, n_classes)
        g_j there, with mean zero over (the sample of) the training data.
    edges, density : ndarray
        Histogram of the feature, as shares of the data.
    errors : ndarray like `values`, optional
        Standard errors; `values` ± 2 `errors` is a band of about 95 %.
    levels : tuple of str, optional
        Names of a category's levels.
    missing : ndarray of shape (2,) or (2, n_classes), optional
        The value for rows where the feature is missing, and its standard error.
    importance : float
        Standard deviation over the training data (see `importance_of`), as in
        `feature_importances_`.
    ticks : tuple of (float, str), optional
        Values that have a name, with their names: January begins at 1, "Jan".
    increment_errors : ndarray of shape (m - 1,) or (m - 1, n_classes), optional
        Standard errors of the differences between neighbours of the grid.
    residual_df : float
        Residual degrees of freedom of the standard errors; infinity where the dispersion is known.
    is_ordered : bool
        Whether the levels have an order, in which they stand.
    """

    name: str
    grid: np.ndarray
    values: np.ndarray
    edges: np.ndarray
    density: np.ndarray
    errors: np.ndarray | None = None
    levels: tuple[str, ...] | None = None
    missing: np.ndarray | None = None
    importance: float = 0.0
    ticks: tuple[tuple[float, str], ...] | None = None
    increment_errors: np.ndarray | None = None
    residual_df: float = np.inf
    is_ordered: bool = False

    def two_values_as_levels(self) -> ShapeFunction:
        """The function of a feature of two values, such as 0 and 1, as that of two levels."""
        if self.levels is not None or len(self.grid) != 2:
            return self
        names = dict(self.ticks or ())
        levels = tuple(names.get(value, plain_number(value)) for value in self.grid.tolist())
        return replace(
            self, grid=np.arange(2.0), edges=np.arange(3) - 0.5, density=self.density[[0, -1]],
            levels=levels, ticks=None, is_ordered=True,
        )  # fmt: skip

    def level_order(self, output: int = -1) -> np.ndarray:
        """Positions of the levels as they are shown: in their order, by number, or by effect."""
        values = self.values.reshape(len(self.grid), -1)[:, output]
        if self.is_ordered:
            return np.arange(len(values))
        try:
            return np.argsort([float(level) for level in self.levels or ()], kind="stable")
        except ValueError:
            return np.argsort(-values, kind="stable")

    def band(
        self, level: float = 0.95, *, simultaneous: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute a band around the function.

        Parameters
        ----------
        level : float, default=0.95
            Probability that the band covers the function.
        simultaneous : bool, default=False
            Whether the band covers all points at once with that probability, or each of them.

        Returns
        -------
        lower, upper : ndarray like `values`
            Ends of the band.
        """
        if not 0 < level < 1:
            raise ValueError(f"band: level must be between 0 and 1, got {level!r}.")
        if self.errors is None:
            raise ValueError(f"band: the function of {self.name!r} has no standard errors.")
        width = self._critical_values(level, simultaneous) * self.errors
        return self.values - width, self.values + width

    def _critical_values(self, level: float, simultaneous: bool) -> np.ndarray:
        """How many standard errors wide a band is, for all outputs."""
        assert self.errors is not None
        errors = self.errors.reshape(len(self.grid), -1)
        if not simultaneous:
            return np.full(self.errors.shape[1:], pointwise_critical_value(level, self.residual_df))
        lengths = [np.inf] * errors.shape[1]
        if self.increment_errors is not None:
            increments = self.increment_errors.reshape(len(self.grid) - 1, -1)
            pairs = zip(errors.T, increments.T, strict=True)
            lengths = [path_length(*of_output) for of_output in pairs]
        values = [
            simultaneous_critical_value(level, length, len(self.grid), self.residual_df)
            for length in lengths
        ]
        return np.array(values).reshape(self.errors.shape[1:])

    @property
    def has_derivative(self) -> bool:
        """Whether the function is a curve: of numbers, with two points or more."""
        return self.levels is None and len(self.grid) > 1

    def derivative(self) -> ShapeFunction:
        """Return the slope of the function, with standard errors, as a function between the grid.

        Returns
        -------
        ShapeFunction
            Difference quotients in the middle between neighbours of the grid; a band around them
            that leaves zero out shows where the function rises or falls.
        """
        if not self.has_derivative:
            raise ValueError(
                f"derivative: {self.name!r} has levels or a single value, and no slope."
            )
        steps = np.diff(self.grid)
        steps = steps.reshape(-1, *[1] * (self.values.ndim - 1))
        errors = None if self.increment_errors is None else self.increment_errors / steps
        return replace(
            self, name=f"slope of {self.name}", grid=(self.grid[1:] + self.grid[:-1]) / 2,
            values=np.diff(self.values, axis=0) / steps, errors=errors, missing=None,
            increment_errors=None,
        )  # fmt: skip


@dataclass(frozen=True)
class PairFunction:
    """The part of the score that two features have beyond their own functions.

    Attributes
    ----------
    name : str
        "first × second".
    first, second : tuple of str
        Labels of the cells along both features.
    values, errors : ndarray of shape (m, k) or (m, k, n_classes)
        The function in each cell, and its standard error.
    density : ndarray of shape (m, k)
        Shares of the training data.
    importance : float
        Standard deviation over the training data.
    across : str
        Name of the first feature.
    """

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    values: np.ndarray
    errors: np.ndarray
    density: np.ndarray
    importance: float = 0.0
    across: str = ""


@dataclass(frozen=True)
class Explanation:
    """What each term adds to the score of one row, the largest first.

    Attributes
    ----------
    names : list of str
        Terms.
    shown : list of str
        The row's values of their columns.
    values, errors : ndarray of shape (n_terms,)
        Contributions and, where the model knows them, standard errors.
    intercept, score : float
        ``intercept + values.sum() == score``.
    output : str
        What the score is of: the class, or the prediction.
    scale : str
        What the score is, in words: "log-odds of class Yes", say.
    mean : float, optional
        The probability or the prediction that belongs to the score, where that is another number.
    """

    names: list[str]
    shown: list[str]
    values: np.ndarray
    intercept: float
    score: float
    output: str = "score"
    errors: np.ndarray | None = None
    scale: str = "score"
    mean: float | None = None

    @property
    def summary(self) -> str:
        """The score in words, and the probability or prediction that belongs to it."""
        of_class = "class" in self.scale
        mean = "" if self.mean is None else plain_number(self.mean, 4)
        mean = mean and f" ({'probability' if of_class else 'prediction'} {mean})"
        return f"{self.scale}: {plain_number(self.score)}{mean}"

    def __str__(self) -> str:
        order = np.argsort(-np.abs(self.values), kind="stable")
        width = max([len(name) for name in self.names] + [9])
        value_width = max([len(text) for text in self.shown] + [0])
        space = " " * value_width
        lines = [
            self.summary, f"  {'intercept'.ljust(width)}  {space}  {signed_number(self.intercept)}"
        ]  # fmt: skip
        for k in order:
            name, text = self.names[k].ljust(width), self.shown[k].ljust(value_width)
            error = "" if self.errors is None else f"  (se {plain_number(self.errors[k], 2)})"
            lines.append(f"  {name}  {text}  {signed_number(self.values[k])}{error}")
        return "\n".join(lines)

    def largest(self, n_terms: int) -> list[tuple[str, float, float]]:
        """Return the terms with the largest contributions, and the sum of the others.

        Parameters
        ----------
        n_terms : int
            How many.

        Returns
        -------
        list of (str, float, float)
            The term and the row's value, the contribution, and twice its standard error (NaN where
            that is not known).
        """
        order = np.argsort(-np.abs(self.values), kind="stable")
        errors = np.full(len(order), np.nan) if self.errors is None else self.errors
        contributions = [
            (f"{self.names[k]} = {self.shown[k]}", float(self.values[k]), float(2 * errors[k]))
            for k in order[:n_terms]
        ]
        remaining = order[n_terms:]
        if len(remaining):
            more = "1 more term" if len(remaining) == 1 else f"{len(remaining)} more terms"
            contributions.append((more, float(self.values[remaining].sum()), np.nan))
        return contributions

    def plot(self, ax: Any = None, *, n_terms: int = 15) -> Any:
        """Draw the largest contributions as bars; needs matplotlib."""
        import matplotlib.pyplot as plt

        labels, values, bands = zip(*reversed(self.largest(n_terms)), strict=True)
        if ax is None:
            _, ax = plt.subplots(figsize=(6, 0.3 * len(labels) + 1.2), layout="constrained")
        colors = ["#d1495b" if value < 0 else "#2a6f97" for value in values]
        ax.barh(
            range(len(labels)), values, color=colors, xerr=bands,
            error_kw={"ecolor": "0.4", "lw": 1},
        )  # fmt: skip
        ax.set_yticks(range(len(labels)), labels, fontsize=8)
        ax.axvline(0, color="0.5", lw=0.7)
        ax.set_title(
            f"{self.summary}\nintercept {signed_number(self.intercept)}", fontsize=9, loc="left"
        )
        write_numbers(ax.xaxis)
        ax.set_xlabel(f"contribution to the {self.scale}", fontsize=8)
        ax.spines[["top", "right"]].set_visible(False)
        return ax
