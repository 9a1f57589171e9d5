"""Generalised additive models of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import column_or_1d

from ..._util.arguments import check_number, refuse_masked
from ..._util.storage import all_or_nothing
from ..._util.threads import evenly_spaced
from ...data.columns import Column
from ...data.sources import Source
from ..inputs import numbers_in_text, real_targets, targets_of, weights_of
from ..losses import LINKS, BinomialCounts, Loss
from .base import GeneralizedAdditiveModel
from .model_check import GamCheck
from .predictor import check_exposure_has_use, check_exposures, warn_without_exposure
from .training_rows import RowChecks, Sample

# Standard errors of f up to which the distribution of an observation around exp(f) holds them: a
# gamma distribution of means. What is beyond moves the ends of intervals.
MAX_LOG_ERROR = 0.5
MAX_RESIDUAL_ROWS = 5000  # of which intervals of quantile losses take the residuals
_LARGEST_TARGET = 1e70  # sums of fourth powers of targets are still finite


@dataclass(eq=False, repr=False)
class AdditiveRegressor(RegressorMixin, GeneralizedAdditiveModel):
    r"""Generalised additive model (GAM) of a number.

    :math:`g(E[y]) = b + \sum_j f_j(x_j) + \sum_{jk} f_{jk}(x_j, x_k)`: a smooth curve for each
    column of numbers, a value for each level of a category, and surfaces for pairs of columns. The
    smoothness of every function is estimated by restricted maximum likelihood (REML), with a prior
    that matters if rows are few.

    Parameters
    ----------
    loss : str or object of :mod:`kernelmaps.losses`, default="squared_error"
        "squared_error"; "absolute_error" (rounded off near zero); "poisson" (counts) and "gamma"
        (positive numbers), which predict exp(f), as do "negative_binomial" (counts that vary more)
        and "tweedie" (amounts with zeros), whose parameters are estimated; "binomial" (successes,
        with trials as `exposure`) and "beta" (shares in (0, 1)) with a logit link. "poisson" is
        quasi-Poisson: its dispersion is estimated, and y may be any numbers >= 0, such as rates or
        amounts. "location_scale" fits the mean and the log standard deviation. Objects have
        parameters: ``km.losses.Poisson(dispersion=1)``, ``km.losses.Quantile(0.9)``,
        ``km.losses.LocationScale(scale_terms=["x"])``.
    terms : list or dict, optional
        A list of all terms (columns, pairs of columns, :class:`Term`), or a mapping from columns to
        kinds ("spline", "linear", "parametric", "category", "periodic"), a :class:`Term`, or
        None to leave a column out. By default each column has the term that suits it. A date has a
        trend, which goes on with its slope, and parts that repeat: "day (month)", "day (weekday)"
        and "day (hour)". ``{"day": "linear"}`` makes the trend a straight line,
        ``{"day (month)": None}`` leaves a part out, and ``{"day": "trend"}`` all that are not
        named, too. ``{("east", "north"): "surface"}`` is one smooth function of two columns on one
        scale in the place of their curves.
    interactions : "auto", int or list of pairs, optional
        Pairs of columns that get a term of their own; ``("site", Term("x", "linear"))`` has a slope
        of x for each site. "auto" looks for at most 40, a number for at most as many. A pair is
        added if a score test accepts it at a level of 1 % for all pairs of columns together.
    constraints : dict, optional
        "increasing", "decreasing", "convex" or "concave" (or a tuple of these) by column. Of pairs,
        ``{("age", "power"): "increasing in age"}``: together with the columns' own functions.
    smoothing : "auto", float or dict, default="auto"
        Smoothing parameters: estimated by REML; a number for all terms, in pseudo-observations
        (rows of weight 1 without an effect); or numbers by column.
    categorical_features : sequence of int, str or bool, optional
        Columns of numbers that are categories. Text, and the categories of a frame, are categories
        anyway.
    weights : {"relative", "frequency", "precision"}, default="relative"
        What `sample_weight` means. "relative": scaled so that the weights sum to the effective
        number of rows, (Σw)²/Σw² (Kish); equal weights of any size change nothing. "frequency": a
        weight counts as so many repeated rows. "precision": inverse variances, up to a factor; each
        row counts once, and the dispersion is that of rows of weight 1.
    max_iter : int, default=200
        Newton steps, at most.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    intercept_ : float
        b.
    loss_ : object of :mod:`kernelmaps.losses`
        The loss, with the parameter that was estimated (`theta`, `power`, `precision`).
    term_names_ : list of str
        Names of the terms, in the order of `eval_terms`.
    shape_functions_ : list of ShapeFunction
        The functions of single columns on a grid, with standard errors.
    pair_functions_ : list of PairFunction
        The functions of pairs as heat maps.
    feature_importances_ : ndarray
        Standard deviations of the functions of single columns over the training rows.
    edf_, dispersion_ : ndarray of shape (1,)
        Effective degrees of freedom of the model, and the dispersion φ.
    deviance_, null_deviance_ : float
        Deviance of the training rows, of the model and of the best constant.
    deviance_explained_ : float
        Share of the deviance of the training rows that the model explains, R² for squared error.
    covariance_ : ndarray of shape (n_coefficients, n_coefficients)
        Posterior covariance of the coefficients of the functions of `model_matrix`.
    log_likelihood_, aic_ : float
        Log-likelihood of the training rows, and −2 times that plus twice the degrees of freedom
        (and one for a scale).
    reml_ : float
        REML score: −log of the restricted likelihood.
    predictor_ : AdditivePredictor
        The fitted terms.
    n_iter_ : int
        Newton steps.

    See Also
    --------
    AdditiveClassifier : The same for classes.
    AdditiveSVR : A linear machine with a fixed C on an additive map, also for sparse rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import kernelmaps as km
    >>> rng = np.random.default_rng(0)
    >>> flats = pd.DataFrame({"area": rng.gamma(6, 12, 500)})
    >>> flats["district"] = rng.choice(["north", "harbour"], 500)
    >>> rent = 80 * np.sqrt(flats["area"]) + 150 * (flats["district"] == "harbour")
    >>> model = km.AdditiveRegressor().fit(flats, rent)
    >>> model.term_names_
    ['area', 'district']
    >>> bool(model.score(flats, rent) > 0.99)
    True
    """

    loss: Any = "squared_error"

    _of_labels = False
    _residual_quantiles = np.zeros(0)  # of losses that have a distribution

    @property
    def intercept_(self) -> float:
        """b."""
        return float(self.predictor_.intercept[0])

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, exposure: Any = None,
        offset: Any = None,
    ) -> AdditiveRegressor:  # fmt: skip
        """Fit the model.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features), path, chunks or Dask frame
            Columns of numbers (NaN where a value is missing), text, categories, dates. Files
            (CSV, Parquet), chunks, Dask frames and whatever else `kernelmaps.data.open_source`
            opens are read block by block.
        y : array-like of shape (n_samples,), str or None
            Numbers, also in text such as "$ 1,200"; for files with names the column that holds
            them, None if the chunks carry them. Rows without a target in a file, a series, chunks
            or a Dask frame are left out with a warning; NaN in an array in memory is refused.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weights of the rows, which are relative (see `weights`); rows of weight 0 do not take
            part.
        exposure : array-like of shape (n_samples,) or str, optional
            For losses with a logarithmic link: what each row was exposed to (time, insured years,
            area). The model is then of y per unit: log E[y] = log exposure + f(x). For "binomial":
            the number of trials, of which y are successes. For files and Dask frames the name of a
            column.
        offset : array-like of shape (n_samples,), optional
            A known part of the score of each row, for any loss: g(E[y]) = offset + f(x). For rows
            in memory.

        Returns
        -------
        self : AdditiveRegressor
            The fitted model.
        """
        if exposure is not None:
            check_exposure_has_use(self._loss)
        self._fit(X, y, sample_weight, exposure, offset)
        self._exposed = exposure is not None or offset is not None
        return self

    def _targets(
        self, y: np.ndarray, weight: np.ndarray, exposure: Any = None
    ) -> tuple[list[np.ndarray], list[Loss], np.ndarray]:
        y, weight, _ = self._with_exposure(self._numbers(y), weight, exposure)
        if np.abs(y).max(initial=0.0) > _LARGEST_TARGET:
            raise ValueError(
                f"AdditiveRegressor: y reaches {np.abs(y).max():g}, whose powers overflow: scale y."
            )
        loss = self._loss.marginal_loss.adapt_to_targets(y, weight)
        problem = loss.target_error(y[weight > 0])
        if problem:
            raise ValueError(f"AdditiveRegressor: {problem}; found {y.min():g} … {y.max():g}.")
        return [y], [loss], weight

    def _deviance_of_rows(
        self, y: Any, weight: np.ndarray, exposure: Any
    ) -> Callable[[np.ndarray], float]:
        if len(self.predictor_.intercept) > 1:
            return super()._deviance_of_rows(y, weight, exposure)
        y = self._numbers(targets_of(self, y, len(weight)))
        y, weight, _ = self._with_exposure(y, weight, exposure)
        loss = self.loss_.adapt_to_targets(y, weight)
        saturated = float(weight @ loss.saturated_value(y))
        return lambda scores: 2 * (float(weight @ loss.value(y, scores[:, 0])) - saturated)

    def _targets_of_source(
        self, source: Source, sample: Sample
    ) -> tuple[RowChecks, list[Loss], list[float]]:
        checks = RowChecks(type(self).__name__)
        y, weight = (
            np.concatenate([*map(read, sample.chunks)]) for read in (checks.targets, checks.weights)
        )
        loss = self._loss.marginal_loss.adapt_to_targets(y, weight)
        location = loss.location(y, weight, np.zeros(len(y)))
        return replace(checks, loss=loss, location=location), [loss], []

    def _numbers(self, y: Any) -> np.ndarray:
        refuse_masked(self, "y", y)
        y = column_or_1d(numbers_in_text(self, y), warn=True)
        if y.dtype.kind not in "fiub":
            raise ValueError(f"AdditiveRegressor: y must be numbers, got {y.dtype}.")
        return real_targets(y, "AdditiveRegressor")

    def _with_exposure(
        self, y: np.ndarray, weight: np.ndarray, exposure: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Targets and weights of rows by unit of exposure, and their offsets."""
        return self._loss.with_exposure(y, weight, self._exposures(exposure, len(y)))

    def _log_exposure(self, exposure: Any, n: int) -> np.ndarray:
        return self._with_exposure(np.zeros(n), np.zeros(n), exposure)[2]

    def _exposures(self, exposure: Any, n: int) -> np.ndarray:
        if exposure is None:
            return np.ones(n)
        check_exposure_has_use(self._loss)
        if isinstance(exposure, str):
            raise ValueError(
                f"AdditiveRegressor: exposure={exposure!r} names a column, which is for files. "
                "Pass the values."
            )
        refuse_masked(self, "exposure", exposure)
        return check_exposures(column_or_1d(exposure), n)

    def predict(
        self, X: Any, return_std: bool = False, *, exposure: Any = None, offset: Any = None
    ) -> Any:
        """Predict the mean: the inverse of the link of f(x), times the exposure.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        return_std : bool, default=False
            Whether the standard errors of the predictions are returned, too: of the mean (or
            quantile), not of a new observation, which `predict_interval` is for. Beyond the
            training rows they grow with the distance.
        exposure : array-like of shape (n_samples,), optional
            What each row was exposed to; 1 by default.
        offset : array-like of shape (n_samples,), optional
            Known parts of the scores, as in `fit`; 0 by default.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            Predictions.
        std : ndarray of shape (n_samples,)
            Their standard errors, if asked for.
        """
        scores = self._scores(X, offset)
        units = self._exposures(exposure, len(scores))
        predictions = units * self.predictor_.predictions(scores)
        if not return_std:
            return predictions
        errors = self._score_errors(X)[:, 0]
        slope = LINKS[self._link].slope(self.loss_.mean(scores[:, 0]))
        return predictions, units * slope * errors

    def predict_scale(self, X: Any, return_std: bool = False) -> Any:
        """Predict the standard deviation of observations, of ``loss="location_scale"``.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        return_std : bool, default=False
            Whether the standard errors of the standard deviations are returned, too.

        Returns
        -------
        scale : ndarray of shape (n_samples,)
            Standard deviations around the means that `predict` gives.
        std : ndarray of shape (n_samples,)
            Their standard errors, if asked for.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            raise ValueError(
                f"AdditiveRegressor.predict_scale: loss={self.loss!r} has no scale of each row. "
                "Fit the model with loss='location_scale'."
            )
        scale = np.exp(scores[:, 1])
        return (scale, scale * self._score_errors(X)[:, 1]) if return_std else scale

    def posterior_draws(
        self, X: Any, n_draws: int = 100, *, exposure: Any = None, offset: Any = None,
        random_state: Any = None,
    ) -> np.ndarray:  # fmt: skip
        """Draw predictions from the posterior of the model.

        Each draw is a function that the data allow: its values for all rows belong together, so
        that quantiles of any function of predictions (a total, a difference, a maximum) over the
        draws are an interval for it. They are draws of the mean, not of new observations.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        n_draws : int, default=100
            Number of draws.
        exposure : array-like of shape (n_samples,), optional
            What each row was exposed to; 1 by default.
        offset : array-like of shape (n_samples,), optional
            Known parts of the scores, as in `fit`; 0 by default.
        random_state : int, RandomState, Generator or None
            Seed of the draws; None draws other numbers each time.

        Returns
        -------
        ndarray of shape (n_draws, n_samples)
            One row for each draw, shaped as `predict`.
        """
        draws = self._score_draws(X, n_draws, random_state)
        draws += self._offsets(draws.shape[1], offset)[:, None]
        scores = draws.reshape(-1, draws.shape[2])
        means = self.predictor_.predictions(scores).reshape(draws.shape[:2])
        return self._exposures(exposure, draws.shape[1]) * means

    def predict_interval(
        self, X: Any, level: float = 0.95, *, exposure: Any = None, offset: Any = None,
        calibration: tuple[Any, Any] | dict[str, Any] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Predict intervals that a new observation lies in.

        They hold the spread of the observations around their mean, by the distribution of the loss
        (normal, gamma, Poisson or, where the dispersion is above 1, negative binomial, …), and the
        uncertainty of the mean. Those of counts cover at least `level`, since counts are whole.
        Quantile losses know no distribution: their intervals are the prediction and quantiles of
        the residuals, each of a model without its row (the jackknife), the same for all rows.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        level : float, default=0.95
            Probability that a new observation lies in its interval.
        exposure : array-like of shape (n_samples,), optional
            What each row was exposed to; 1 by default.
        offset : array-like of shape (n_samples,), optional
            Known parts of the scores, as in `fit`; 0 by default.
        calibration : tuple (X, y) or dict, optional
            Rows that the model was not fitted on: ``(X, y)``, or a dict of ``X``, ``y`` and, where
            there are any, ``exposure`` and ``offset``. Intervals are corrected so that they cover
            new rows of the same kind with the stated probability, whatever the distribution
            (conformal prediction).

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends.
        """
        check_number(self, "level", level, "between 0 and 1", lambda p: 0 < p < 1)
        intervals, owner = self._intervals(X, level, exposure, offset), "AdditiveRegressor"
        if calibration is not None:
            rows = _calibration_rows(calibration)
            units = rows.get("exposure"), rows.get("offset")
            warn_without_exposure(self, f"{owner}: rows of calibration", *units)
            reference = self._intervals(rows["X"], level, *units)
            y = self._numbers(targets_of(self, rows["y"], len(reference)))
            return conformal_interval(intervals, reference, y, level, owner)
        if self.loss_.has_distribution:
            return intervals
        residuals, zeros = self._residual_quantiles, np.zeros((len(self._residual_quantiles), 2))
        intervals = conformal_interval(intervals, zeros, residuals, level, owner, "rows of the fit")
        # Residuals hold what the fit does not know of its rows, not of new levels and values.
        columns = self._columns(X, warns=False)
        fit_errors = self.predictor_.score_errors(columns, as_fitted=True)[:, 0]
        errors = np.maximum(self.predictor_.score_errors(columns)[:, 0], fit_errors)
        widening = ndtri(0.5 + level / 2) * np.sqrt((errors - fit_errors) * (errors + fit_errors))
        return intervals + np.outer(widening, [-1.0, 1.0])

    def _intervals(self, X: Any, level: float, exposure: Any, offset: Any) -> np.ndarray:
        """Intervals by the distribution of the loss; twice the prediction where it has none."""
        scores, errors = self._scores(X), self._score_errors(X)
        scores[:, 0] += self._offsets(len(scores), offset, exposure)
        if scores.shape[1] == 1:
            scores, errors = scores[:, 0], errors[:, 0]
        loss = self.loss_
        if not loss.has_distribution:
            return np.column_stack([scores, scores])
        if loss.counts_trials:
            loss = BinomialCounts(self._exposures(exposure, len(scores)))
        variation = self.dispersion_[0], self._residual_df[0]
        small, shift = errors, np.zeros(len(errors))
        if loss.link == "log":
            small = np.minimum(errors, MAX_LOG_ERROR)
            shift = ndtri(0.5 + level / 2) * np.sqrt((errors - small) * (errors + small))
        ends = [
            distribution_interval(loss.observation_distribution(eta, small, *variation), level)
            for eta in ((scores - shift, scores + shift) if shift.any() else (scores,))
        ]
        return np.column_stack([ends[0][:, 0], ends[-1][:, 1]])

    def _finish_fit(
        self, columns: Sequence[Column], y: np.ndarray, weight: np.ndarray, offset: np.ndarray
    ) -> None:
        """Quantiles of the leave-one-out residuals of a quantile loss, for intervals."""
        self._residual_quantiles = np.zeros(0)
        if self.loss_.has_distribution:
            return
        weight = self._scaled_weights(weight)
        loss = self.loss_.adapt_to_targets(y, weight)
        positive = np.flatnonzero(weight)
        rows = positive[evenly_spaced(len(positive), MAX_RESIDUAL_ROWS)]
        columns, y, weight = [column.take(rows) for column in columns], y[rows], weight[rows]
        scores = self.predictor_.scores(columns)[:, 0] + offset[rows]
        errors = self.predictor_.score_errors(columns, as_fitted=True)[:, 0]
        dispersion = float(self.dispersion_[0])
        residuals = leave_one_out_residuals(loss, y, scores, errors, weight, dispersion)
        self._residual_quantiles = residual_quantiles(residuals, weight)

    def check(
        self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None,
        offset: Any = None, random_state: Any = 0,
    ) -> GamCheck:  # fmt: skip
        """Check the model on rows: residuals, basis dimensions, concurvity, influential rows.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Rows, best those that the model was fitted on.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, as in `fit`.
        exposure : array-like of shape (n_samples,), optional
            What each row was exposed to, as in `fit`; 1 by default.
        offset : array-like of shape (n_samples,), optional
            Known parts of the scores, as in `fit`; 0 by default.
        random_state : int, RandomState, Generator or None
            Seed of the permutations, and of the quantile residuals of counts.

        Returns
        -------
        GamCheck
            Prints as text; :class:`kernelmaps.inspection.CheckDisplay` draws it.
        """
        warn_without_exposure(self, "AdditiveRegressor.check", exposure, offset)
        columns = self._columns(X)
        y = self._numbers(targets_of(self, y, len(columns[0])))
        offsets = self._offsets(len(y), offset, exposure)
        trials = self._exposures(exposure, len(y)) if self.loss_.counts_trials else None
        return self._check_rows(columns, y, sample_weight, offsets, 0, random_state, trials)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None,
        offset: Any = None,
    ) -> float:  # fmt: skip
        """Return R², or the share of the deviance that is explained (D²).

        D² is for losses with a link, such as ``"poisson"``: one minus the deviance of the
        predictions over that of the best constant rate, as in scikit-learn's `d2_tweedie_score`.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        y : array-like of shape (n_samples,) or str
            True values; of a file or a frame, the name of the column.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weights of the rows.
        exposure : array-like of shape (n_samples,) or str, optional
            What each row was exposed to, as for `fit`; 1 by default.
        offset : array-like of shape (n_samples,), optional
            Known parts of the scores, as in `fit`; 0 by default.

        Returns
        -------
        float
            At most 1; 0 for a model that always predicts the mean.
        """
        X, y, sample_weight, exposure = self._rows_to_score(X, y, sample_weight, exposure)
        warn_without_exposure(self, "AdditiveRegressor.score", exposure, offset)
        y = self._numbers(y)
        weight = weights_of(self, sample_weight, len(y))
        if self._link == "identity":
            predictions = self.predict(X, exposure=exposure, offset=offset)
            return float(r2_score(y, predictions, sample_weight=weight))
        y, weight, offsets = self._with_exposure(y, weight, exposure)
        offsets = offsets + self._offsets(len(y), offset)
        eta = self._scores(X)[:, 0] + offsets
        return self.loss_.deviance_explained(y, eta, weight, offsets)


def _calibration_rows(calibration: Any) -> dict[str, Any]:
    """Rows of calibration by what they are: X, y and, where there are any, exposure and offset."""
    if isinstance(calibration, tuple) and len(calibration) == 2:
        calibration = {"X": calibration[0], "y": calibration[1]}
    keys = set(calibration) if isinstance(calibration, Mapping) else set()
    if {"X", "y"} <= keys <= {"X", "y", "exposure", "offset"}:
        return dict(calibration)
    raise ValueError(
        "AdditiveRegressor: calibration must be a tuple (X, y) of further rows, or a dict of X, y "
        "and, where there are any, exposure and offset."
    )


# -- intervals ------------------------------------------------------------------------------------

MAX_QUANTILES = 999  # of residuals that a model has: levels up to 0.998
_MAX_LEVERAGE = 0.99  # of a row that is left out: with 1, the others say nothing about it


def distribution_interval(distribution: Any, level: float) -> np.ndarray:
    """Intervals (n_samples, 2) of observations of a distribution, with equal tails.

    The ends of counts have probabilities. The end that is less probable is left out, if what
    remains has the level: the excess over the level is then at most its probability.
    """
    tail = (1 - level) / 2
    low, high = distribution.ppf(tail), distribution.ppf(1 - tail)
    if hasattr(distribution, "zeros"):  # where they reach the lower tail, there is none
        high = np.where(low > 0, high, distribution.ppf(level))
    if hasattr(distribution, "pmf"):
        low_mass, high_mass = distribution.pmf(low), distribution.pmf(high)
        covered = distribution.cdf(high) - distribution.cdf(low) + low_mass
        spare = (covered - np.minimum(low_mass, high_mass) >= level) & (high > low)
        low, high = low + (spare & (low_mass <= high_mass)), high - (spare & (low_mass > high_mass))
    return np.column_stack([low, high])


def conformal_interval(
    interval: np.ndarray, calibration: np.ndarray, y: np.ndarray, level: float, owner: str,
    row_kind: str = "rows of calibration",
) -> np.ndarray:  # fmt: skip
    r"""Correct intervals (n_samples, 2) by those of other rows and their targets.

    With ends :math:`l(x), u(x)` of an interval, a scale w(x) and n further rows, the corrected
    interval is

    .. math:: [\, l - w\,Q((l_i - y_i)/w_i),\; u + w\,Q((y_i - u_i)/w_i) \,],

    Q the k-th smallest of the numbers of these rows, :math:`k = ⌈(n + 1)(1 - α/2)⌉`. If new rows
    are drawn as these were, it covers a new observation with a probability of at least 1 − α,
    whatever the model (Romano, Patterson and Candès 2019, theorem 2). It corrects intervals that
    are too wide, too. w is the width of an interval, so that rows of a large mean or exposure are
    corrected by more; one where it is zero: for a quantile loss, whose interval is a prediction
    twice.
    """
    n, tail = len(y), (1 - level) / 2
    rank = int(np.ceil((n + 1) * (1 - tail) - 1e-9))
    if rank > n:
        raise ValueError(
            f"{owner}: {n} {row_kind} are too few for a level of {level:g}: pass "
            f"{int(np.ceil(1 / tail - 1e-9)) - 1} or more."
        )
    scale, unit = _scale(interval), _scale(calibration)
    below, above = (calibration[:, 0] - y) / unit, (y - calibration[:, 1]) / unit
    lower = interval[:, 0] - scale * np.partition(below, rank - 1)[rank - 1]
    upper = interval[:, 1] + scale * np.partition(above, rank - 1)[rank - 1]
    return np.column_stack([np.minimum(lower, upper), np.maximum(lower, upper)])


def _scale(interval: np.ndarray) -> np.ndarray:
    """Widths of intervals; one where they are zero."""
    width = interval[:, 1] - interval[:, 0]
    return np.where(width > 0, width, 1.0)


def leave_one_out_residuals(
    loss: Loss, y: np.ndarray, eta: np.ndarray, errors: np.ndarray, weight: np.ndarray,
    dispersion: float,
) -> np.ndarray:  # fmt: skip
    r"""Residuals of the training rows, each of a model without its row, to first order.

    Of a quantile loss, whose intervals they give (the jackknife). Without row i, a Newton step from
    the fit moves its prediction by

    .. math:: c_iℓ'_i \, v_i / (1 - c_i b_i v_i), \qquad v_i = z_i^\top H^{-1} z_i,

    with its weight c, the mean curvature b of the losses and the Hessian H of the penalised ones.
    `errors` are the standard errors of the scores `eta`, `weight` is in units of the fit.
    """
    variance = errors**2 / dispersion
    gradient, _ = loss.derivatives(y, eta)
    leverage = weight * loss.expected_curvature(y, eta, dispersion) * variance
    moved = weight * gradient * variance / (1 - np.minimum(leverage, _MAX_LEVERAGE))
    return y - (eta + moved)


def residual_quantiles(residuals: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Quantiles k/(m + 1) of residuals, k = 1 … m, for the effective number m of rows (Kish).

    Of rows of equal weights, up to `MAX_QUANTILES` of them, these are all residuals, sorted.
    """
    order = np.argsort(residuals, kind="stable")
    reached = np.cumsum(weight[order])
    n_effective = int(reached[-1] ** 2 / np.sum(weight**2) + 1e-9)
    m = min(n_effective, MAX_QUANTILES)
    place = np.searchsorted(reached, reached[-1] * np.arange(1, m + 1) / (m + 1))
    return residuals[order[np.minimum(place, len(order) - 1)]]
