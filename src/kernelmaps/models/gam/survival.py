"""Generalised additive models of times until an event: Cox's proportional hazards."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..._util.arguments import check_number, generator, refuse_masked
from ..._util.schema import anything, instance, integer
from ..._util.storage import all_or_nothing
from ...data.columns import Column, column_positions, is_frame, without_named
from ...data.table_files import open_table
from ...data.tables import fits_in_memory, is_in_memory, read_complete_column
from ...exceptions import OutOfDomainWarning
from ..inputs import missing_targets, refuse_training_on_gpu, weights_of
from ..losses import CoxPartialLikelihood, CumulativeHazard
from ..risk_sets import RiskSets, SurvivalTimes
from .base import GeneralizedAdditiveModel
from .baseline import BaselineHazard
from .design import encode_rows
from .model_check import FitToCheck, GamCheck
from .summary import GamSummary
from .terms import GamSettings

_FORMS = (
    "a structured array of an event (bool) and a time, as in scikit-survival, two columns, time "
    "and event in this order, or times alone, if all rows have an event"
)


@dataclass(eq=False, repr=False)
class AdditiveSurvival(GeneralizedAdditiveModel):
    r"""Generalised additive model (GAM) of the time until an event, by Cox's partial likelihood.

    The hazard of a row at time t is :math:`λ_0(t) \exp(\sum_j f_j(x_j) + \sum_{jk} f_{jk}(x_j,
    x_k))`: a baseline hazard that is not modelled, times the hazard ratio of a smooth curve for
    each column of numbers, a value for each level of a category, and surfaces for pairs of columns.
    Rows may be censored (their event was not seen until their time), may enter late, and may belong
    to strata with baseline hazards of their own. Ties are handled by Efron's method. The smoothness
    of every function is estimated by restricted maximum likelihood (REML).

    Parameters
    ----------
    loss : {"cox"}, default="cox"
        The partial likelihood.
    terms : list or dict, optional
        A list of all terms (columns, pairs of columns, :class:`Term`), or a mapping from columns to
        kinds ("spline", "linear", "parametric", "category", "periodic"), a :class:`Term`, or
        None to leave a column out, as in :class:`AdditiveRegressor`.
    interactions : "auto", int or list of pairs, optional
        Pairs of columns that get a term of their own, as in :class:`AdditiveRegressor`.
    constraints : dict, optional
        "increasing", "decreasing", "convex" or "concave" (or a tuple of these) by column.
    smoothing : "auto", float or dict, default="auto"
        Smoothing parameters: estimated by REML; a number for all terms, in pseudo-observations
        (rows of weight 1 without an effect); or numbers by column.
    categorical_features : sequence of int, str or bool, optional
        Columns of numbers that are categories. Text, and the categories of a frame, are categories
        anyway.
    weights : {"relative", "frequency"}, default="relative"
        What `sample_weight` means. "relative": scaled so that the weights sum to the effective
        number of rows, (Σw)²/Σw² (Kish); equal weights of any size change nothing. "frequency": a
        weight counts as so many repeated rows, but for ties.
    max_iter : int, default=200
        Newton steps, at most.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    baseline_ : BaselineHazard
        Cumulative baseline hazards, of a row whose prediction is 0; ``baseline_.to_frame()``. They
        hold the times of all events, and so does the model's file.
    n_events_ : int
        Rows with an event.
    concordance_ : float
        Concordance index of the training rows.
    intercept_ : float
        0: the level is that of the baseline hazard.
    term_names_ : list of str
        Names of the terms, in the order of `eval_terms`.
    shape_functions_ : list of ShapeFunction
        The functions of single columns on a grid, with standard errors.
    pair_functions_ : list of PairFunction
        The functions of pairs as heat maps.
    feature_importances_ : ndarray
        Standard deviations of the functions of single columns over the training rows.
    edf_, dispersion_ : ndarray of shape (1,)
        Effective degrees of freedom of the model, and 1.
    deviance_, null_deviance_ : float
        −2 log partial likelihood of the training rows beyond its least value, of the model and of
        the same hazard for all rows.
    covariance_ : ndarray of shape (n_coefficients, n_coefficients)
        Posterior covariance of the coefficients of the functions of `model_matrix`.
    log_likelihood_, aic_ : float
        Log partial likelihood of the training rows, and −2 times that plus twice the degrees of
        freedom.
    reml_ : float
        REML score: −log of the restricted likelihood.
    predictor_ : AdditivePredictor
        The fitted terms.
    n_iter_ : int
        Newton steps.

    See Also
    --------
    AdditiveRegressor : The same for numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import kernelmaps as km
    >>> rng = np.random.default_rng(0)
    >>> machines = pd.DataFrame({"load": rng.random(500)})
    >>> failure = rng.exponential(1 / np.exp(3 * machines["load"]))
    >>> seen = failure < 0.5  # the others still run after half a year
    >>> time = np.minimum(failure, 0.5)
    >>> model = km.AdditiveSurvival().fit(machines, np.column_stack([time, seen]))
    >>> bool(model.concordance_ > 0.65)
    True
    >>> model.predict_survival(machines[:2], [0.1, 0.2]).shape
    (2, 2)
    """

    loss: Any = "cox"

    _of_labels, _is_survival = False, True
    _state = GeneralizedAdditiveModel._state.extended(
        {
            "baseline_": instance((BaselineHazard,)),
            "n_events_": integer(1),
            "concordance_": anything,
        }
    )

    @property
    def intercept_(self) -> float:
        """0."""
        return float(self.predictor_.intercept[0])

    def _settings(self) -> GamSettings:
        return replace(super()._settings(), eliminates_levels=False)  # risk sets couple them

    # -- fitting ----------------------------------------------------------------------------------

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, entry: Any = None,
        strata: Any = None, offset: Any = None,
    ) -> AdditiveSurvival:  # fmt: skip
        """Fit the model.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Columns of numbers (NaN where a value is missing), text, categories, dates. Risk sets
            take all rows at once: they are read into memory.
        y : structured array, array-like of shape (n_samples, 2) or (n_samples,), or two str
            Times and events: a structured array of an event (bool) and a time, as scikit-survival
            has it; or two columns, time and event (1 or True) in this order. Of a file or
            frame the names of these columns.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weights of the rows (see `weights`); rows of weight 0 do not take part.
        entry : array-like of shape (n_samples,) or str, optional
            When rows came under observation (left truncation): at risk in entry < t ≤ time. By
            default all are from the beginning.
        strata : array-like of shape (n_samples,) or str, optional
            Labels of groups with baseline hazards of their own. Functions are those of all groups.
        offset : array-like of shape (n_samples,), optional
            A known part of the log hazard of each row.

        Returns
        -------
        self : AdditiveSurvival
            The fitted model.
        """
        refuse_training_on_gpu(self, "fit", X, y, sample_weight)
        self._check_parameters()
        targets = y if isinstance(y, tuple) else [y]
        self._remember_columns(*targets, sample_weight, entry, strata)
        X, y, sample_weight, entry, strata = self._load(X, y, sample_weight, entry, strata)
        self._fit_loaded_rows(X, y, sample_weight, entry, strata, offset)
        self._exposed = offset is not None
        return self

    def _load(self, X: Any, y: Any, *row_data: Any) -> tuple[Any, ...]:
        """Rows in memory; of a file or a frame, the columns that are named."""
        owner = type(self).__name__
        named = isinstance(y, tuple | list) and [type(item) for item in y] == [str, str]
        X, *values = without_named(owner, X, *(y if named else [y]), *row_data)
        y, row_data = (tuple(values[:2]) if named else values[0]), tuple(values[1 + named :])
        if is_frame(X) or is_in_memory(X):
            return X, y, *row_data
        if isinstance(X, str | os.PathLike) and not os.path.exists(X):
            raise FileNotFoundError(f"{owner}: there is no file {os.fspath(X)!r}.")
        if not fits_in_memory(X):
            raise ValueError(
                f"{owner}: the risk sets of a survival model need all rows in memory. Load them "
                "as a frame or an array."
            )
        if not named:
            raise ValueError(
                f"{owner}: y must name the columns of times and of events of the file, as in "
                f'fit(path, ("time", "event")), got {y!r}.'
            )
        file = open_table(X)
        roles = {item for item in (*y, *row_data) if isinstance(item, str)}
        column_positions(file.names, sorted(roles), str(file.path))
        table = file.table()
        values = [
            read_complete_column(table, item, file.locate_row) if isinstance(item, str) else item
            for item in (*y, *row_data)
        ]
        features = table.select([name for name in file.names if name not in roles])
        return features, tuple(values[:2]), *values[2:]

    def _fit_loaded_rows(
        self, X: Any, y: Any, sample_weight: Any, entry: Any, strata: Any, offset: Any
    ) -> None:
        columns = self._learn_columns(X)
        n = len(columns[0])
        weight = weights_of(self, sample_weight, n)
        offsets = self._offsets(n, offset)
        times, labels = self._times(y, n, entry, strata)
        self.n_events_ = int(np.count_nonzero(times.event[weight > 0]))
        if not self.n_events_:
            raise ValueError(
                f"{type(self).__name__}: no row of positive weight has an event, and the hazard "
                "cannot be estimated. Check which column of y says whether there was one."
            )
        settings = self._settings()
        rows = encode_rows(columns, [times.event], weight, offsets, settings)
        rows = rows.scale_weights(self.weights)
        sets = RiskSets.from_times(times, rows.weight)
        loss = CoxPartialLikelihood(sets)
        self._fit_rows(rows, [loss], settings, int(np.count_nonzero(weight)), 0.0)
        # The intercept is no parameter of a partial likelihood.
        integral = 0.5 * float(np.log(rows.weight @ times.event / (2 * np.pi)))
        parts = {"edf_": 1, "aic_": 2, "_corrected_edf": 1, "reml_": integral}
        for name, share in parts.items():
            setattr(self, name, getattr(self, name) - share)
        posterior = self.predictor_.posterior
        factors = posterior.factors.copy()
        factors[:, 0] = 0.0
        self.predictor_ = replace(
            self.predictor_, intercept=np.zeros(1), posterior=replace(posterior, factors=factors)
        )
        eta = self.predictor_.scores(columns)[:, 0] + offsets
        self.concordance_ = sets.concordance(eta)

        def deviations(rows: np.ndarray) -> np.ndarray:
            return self._deviations([column.take(rows) for column in columns])

        width = posterior.n_coefficients
        self.baseline_ = BaselineHazard.from_fit(sets, eta, labels, deviations, width)

    def _deviations(self, columns: Sequence[Column], as_fitted: bool = True) -> np.ndarray:
        """zᵀL of rows, with LLᵀ the posterior covariance of the coefficients."""
        factors = self.predictor_.posterior.cholesky_factors()
        blocks = self.predictor_.score_deviations(columns, factors, as_fitted)
        return np.concatenate([deviations for _, _, deviations in blocks])

    def _times(
        self, y: Any, n: int, entry: Any = None, strata: Any = None
    ) -> tuple[SurvivalTimes, np.ndarray | None]:
        """Times, events and codes of strata, checked; and the labels of the strata."""
        owner = type(self).__name__
        time, event = (
            self._row_values(values, n, f"the {name} of y")
            for values, name in zip(self._two_columns(y), ("times", "events"), strict=True)
        )
        start = np.full(n, -1.0) if entry is None else self._row_values(entry, n, "entry")
        checks = (
            ((event != 0) & (event != 1), event, "events must be True or False (1 or 0)"),
            (time < 0, time, "times must be >= 0"),
            (start >= time, start, "rows must enter before their time"),
        )
        for is_wrong, values, problem in checks:
            if is_wrong.any():
                row = int(np.argmax(is_wrong))
                raise ValueError(
                    f"{owner}: {problem}, and row {row} has {values[row]:g}: correct such rows or "
                    f"leave them out. y is {_FORMS}."
                )
        if strata is None:
            return SurvivalTimes(time, event, start, np.zeros(n, np.int64)), None
        labels, codes = np.unique(self._strata(strata, n), return_inverse=True)
        return SurvivalTimes(time, event, start, codes.astype(np.int64)), labels

    def _targets_as_columns(self, y: Any) -> np.ndarray:
        """Times and events of rows, as two columns of numbers."""
        times, _ = self._times(y, len(y))
        return np.column_stack([times.time, times.event])

    def _two_columns(self, y: Any) -> tuple[Any, Any]:
        owner = type(self).__name__
        if y is None:
            raise ValueError(
                f"{owner} requires y to be passed, but the target y is None: pass {_FORMS}."
            )
        refuse_masked(self, "y", y)
        if isinstance(y, str) or (isinstance(y, tuple | list) and isinstance((*y, 0)[0], str)):
            raise ValueError(
                f"{owner}: y={y!r} names columns, which is for files and frames. Pass their "
                "values, and X without these columns."
            )
        if isinstance(y, tuple) and len(y) == 2:  # columns of a file
            return y
        names = getattr(getattr(y, "dtype", None), "names", None)
        if names is not None:
            events = [name for name in names if y.dtype[name].kind == "b"]
            if len(names) == 2 and len(events) == 1:
                (time,) = set(names) - set(events)
                return y[time], y[events[0]]
        else:
            values = np.asarray(y)
            if values.ndim == 2 and values.shape[1] == 2:
                return values[:, 0], values[:, 1]
            if values.ndim == 1 and not np.isin(values, [0, 1]).all():
                return values, np.ones(len(values))
        raise ValueError(f"{owner}: y must be {_FORMS}.")

    def _strata(self, strata: Any, n: int) -> np.ndarray:
        """Labels of strata, one for each row."""
        refuse_masked(self, "strata", strata)
        labels = np.asarray(strata)
        if labels.shape not in ((n,), (n, 1)):
            raise ValueError(
                f"{type(self).__name__}: strata must hold {n} labels, one for each row; its shape "
                f"is {labels.shape}."
            )
        labels = labels.ravel()
        if (is_missing := missing_targets(labels)).any():
            row = int(np.argmax(is_missing))
            raise ValueError(
                f"{type(self).__name__}: strata must hold a label for each row, and row {row} has "
                "none. Give such rows a label of their own."
            )
        return labels.astype(str) if labels.dtype.kind == "O" else labels

    # -- predictions ------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, *, offset: Any = None) -> Any:
        """Predict log hazard ratios, relative to the mean log hazard of the training rows.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        return_std : bool, default=False
            Whether standard errors are returned, too. Beyond the training rows they grow with the
            distance.
        offset : array-like of shape (n_samples,), optional
            Known parts of the log hazards, as in `fit`; 0 by default.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            Log hazard ratios: a row with a difference of log 2 has events twice as often.
        std : ndarray of shape (n_samples,)
            Their standard errors, if asked for.
        """
        scores = self._scores(X, offset)[:, 0]
        return (scores, self._score_errors(X)[:, 0]) if return_std else scores

    def predict_survival(
        self, X: Any, times: Any, *, level: float | None = None, strata: Any = None,
        offset: Any = None,
    ) -> Any:  # fmt: skip
        """Predict the probabilities that the event comes after some times.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        times : array-like of shape (n_times,)
            Times. After the last one of the training rows, probabilities stay as they are there.
        level : float, optional
            Probability of pointwise bands, such as 0.95, which are returned, too.
        strata : array-like of shape (n_samples,), optional
            Strata of the rows, of a model with strata.
        offset : array-like of shape (n_samples,), optional
            Known parts of the log hazards, as in `fit`; 0 by default.

        Returns
        -------
        survival : ndarray of shape (n_samples, n_times)
            Probabilities: a row for each row of `X`.
        bands : ndarray of shape (n_samples, n_times, 2)
            Lower and upper ends, if a level was given: they hold the uncertainty of the baseline
            hazard and of the functions, by the delta method for log(−log S).
        """
        hazard = self.predict_cumulative_hazard(X, times, strata=strata, offset=offset)
        survival = np.exp(-hazard)
        if level is None:
            return survival
        check_number(self, "level", level, "between 0 and 1", lambda p: 0 < p < 1)
        columns, times = self._columns(X, warns=False), np.atleast_1d(times)
        deviations, codes = self._deviations(columns, False), self._codes(strata, len(hazard))
        variances = np.empty_like(hazard)
        for code in np.unique(codes):
            rows = codes == code
            variances[rows] = self.baseline_.log_variances(times, code, deviations[rows])
        variances += self.predictor_._missed_by_ends(columns) ** 2
        reach = ndtri(0.5 + level / 2) * np.sqrt(variances)
        with np.errstate(over="ignore", invalid="ignore"):
            ends = [np.exp(-hazard * np.exp(sign * reach)) for sign in (1, -1)]
        return survival, np.stack(ends, axis=-1)

    def predict_cumulative_hazard(
        self, X: Any, times: Any, *, strata: Any = None, offset: Any = None
    ) -> np.ndarray:
        """Predict cumulative hazards up to some times, −log of the probabilities of survival.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        times : array-like of shape (n_times,)
            Times. After the last one of the training rows, hazards stay as they are there.
        strata : array-like of shape (n_samples,), optional
            Strata of the rows, of a model with strata.
        offset : array-like of shape (n_samples,), optional
            Known parts of the log hazards, as in `fit`; 0 by default.

        Returns
        -------
        ndarray of shape (n_samples, n_times)
            A row for each row of `X`.
        """
        eta = self._scores(X, offset)[:, 0]
        times, codes = self._check_prediction_times(times), self._codes(strata, len(eta))
        hazards = np.empty((len(eta), len(times)))
        for code in np.unique(codes):
            hazards[codes == code] = self.baseline_.cumulative(times, code)
        with np.errstate(over="ignore", invalid="ignore"):  # far beyond the training rows
            return np.where(hazards > 0, np.exp(eta)[:, None] * hazards, 0.0)

    def _check_prediction_times(self, times: Any) -> np.ndarray:
        """Times as numbers; later ones than those of the training rows are warned of."""
        owner = type(self).__name__
        times = np.atleast_1d(times)
        if (
            not (times.dtype.kind in "iuf" and times.ndim == 1 and np.isfinite(times).all())
            or (times < 0).any()
        ):
            raise ValueError(f"{owner}: times must be a vector of finite numbers >= 0.")
        last = self.baseline_.last_time
        if (times > last).any():
            warnings.warn(
                f"{owner}: {int((times > last).sum())} times are later than all of the training "
                f"rows ({last:g}): survival stays as it is there.",
                OutOfDomainWarning,
                stacklevel=3,
            )
        return times

    def _codes(self, strata: Any, n: int) -> np.ndarray:
        """Codes of the strata of rows."""
        owner, fitted = type(self).__name__, self.baseline_.strata
        if (strata is None) != (fitted is None):
            condition = "with strata: pass" if strata is None else "without strata: leave out"
            raise ValueError(f"{owner}: the model was fitted {condition} strata=.")
        if fitted is None:
            return np.zeros(n, np.int64)
        labels = self._strata(strata, n)
        labels = labels.astype(fitted.dtype) if fitted.dtype.kind in "UO" else labels
        codes = np.minimum(np.searchsorted(fitted, labels), len(fitted) - 1)
        if (fitted[codes] != labels).any():
            row = int(np.argmax(fitted[codes] != labels))
            raise ValueError(
                f"{owner}: row {row} belongs to the stratum {labels[row]}, which fit has not seen."
            )
        return codes

    def _check_rows(
        self, columns: list[Column], y: np.ndarray, sample_weight: Any, offset: np.ndarray,
        output: int = 0, random_state: Any = 0, trials: np.ndarray | None = None,
        entry: Any = None, strata: Any = None,
    ) -> GamCheck:  # fmt: skip
        n = len(columns[0])
        times, _ = self._times(y, n, entry)
        hazard, codes = np.empty(n), self._codes(strata, n)
        for code in np.unique(codes):
            rows = codes == code
            ends = (self.baseline_.cumulative(t[rows], code) for t in (times.time, times.entry))
            hazard[rows] = np.subtract(*ends)
        weight = self._scaled_weights(weights_of(self, sample_weight, n))
        return FitToCheck(
            self.predictor_, 0, CumulativeHazard(), 1.0, np.inf, float(self.edf_[0]), columns,
            times.event, weight, offset + np.log(np.maximum(hazard, 1e-12)),
        ).check(generator(random_state))  # fmt: skip

    def check(
        self, X: Any, y: Any, sample_weight: Any = None, *, entry: Any = None, strata: Any = None,
        offset: Any = None, random_state: Any = 0,
    ) -> GamCheck:  # fmt: skip
        """Check the model on rows: residuals, basis dimensions, concurvity, influential rows.

        Residuals compare events with the cumulative hazard of each row: those of the deviance are
        signed roots of the martingale residuals' deviance (Therneau, Grambsch and Fleming 1990),
        quantile residuals those of times, at random beyond where they are censored.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Rows, best those that the model was fitted on.
        y : structured array, array-like of shape (n_samples, 2) or (n_samples,)
            Times and events, as in `fit`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        entry : array-like of shape (n_samples,), optional
            When rows came under observation, as in `fit`.
        strata : array-like of shape (n_samples,), optional
            Strata of the rows, of a model with strata.
        offset : array-like of shape (n_samples,), optional
            Known parts of the log hazards, as in `fit`; 0 by default.
        random_state : int, RandomState, Generator or None
            Seed of the permutations, and of the residuals of censored rows.

        Returns
        -------
        GamCheck
            Prints as text; :class:`kernelmaps.inspection.CheckDisplay` draws it.
        """
        columns = self._columns(X)
        offsets = self._offsets(len(columns[0]), offset)
        return self._check_rows(
            columns, y, sample_weight, offsets, 0, random_state, entry=entry, strata=strata
        )

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, entry: Any = None, strata: Any = None,
        offset: Any = None,
    ) -> float:  # fmt: skip
        """Return the concordance index: how often the row with the earlier event has more risk.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        y : structured array, array-like of shape (n_samples, 2) or (n_samples,), or two str
            Times and events, as in `fit`.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weights of the rows.
        entry : array-like of shape (n_samples,) or str, optional
            When rows came under observation, as in `fit`.
        strata : array-like of shape (n_samples,) or str, optional
            Strata; pairs are of rows of the same one.
        offset : array-like of shape (n_samples,), optional
            Known parts of the log hazards, as in `fit`; 0 by default.

        Returns
        -------
        float
            1 for a perfect order, 0.5 for random predictions (Harrell's C).
        """
        X, y, sample_weight, entry, strata = self._load(X, y, sample_weight, entry, strata)
        eta = self._scores(X, offset)[:, 0]
        times, _ = self._times(y, len(eta), entry, strata)
        sets = RiskSets.from_times(times, weights_of(self, sample_weight, len(eta)))
        return sets.concordance(eta)

    # -- what a fitted model says -----------------------------------------------------------------

    def summary(self) -> GamSummary:
        """Summarise the terms: degrees of freedom, range of effect, approximate significance.

        Returns
        -------
        GamSummary
            Prints as text; notebooks show it as HTML; `to_frame` has the numbers.
        """
        summary = super().summary()
        left_out = "intercept", "dispersion", "deviance explained"
        facts = {key: value for key, value in summary.facts.items() if key not in left_out}
        facts["loss"] = "cox (partial likelihood of log hazards, ties by Efron's method)"
        events = {"rows": f"{facts['rows']}, {self.n_events_} of them with an event"}
        concordance = {"concordance index": f"{self.concordance_:.4f}"}
        return replace(summary, facts={**facts, **events, **concordance})
