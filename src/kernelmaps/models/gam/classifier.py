"""Generalised additive models of classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from ..._util.storage import all_or_nothing
from ...data.columns import without_named
from ...data.sources import Source
from .. import inputs
from ..losses import Loss
from .base import GeneralizedAdditiveModel
from .model_check import GamCheck
from .predictor import warn_without_exposure
from .training_rows import RowChecks, Sample, count_labels, one_against_rest


@dataclass(eq=False, repr=False)
class AdditiveClassifier(ClassifierMixin, GeneralizedAdditiveModel):
    r"""Generalised additive model (GAM) of classes: additive logistic regression.

    The log-odds of a class are :math:`b + \sum_j f_j(x_j) + \sum_{jk} f_{jk}(x_j, x_k)`: a smooth
    curve for each column of numbers, a value for each level of a category, and surfaces for pairs
    of columns. The smoothness of every function is estimated by restricted maximum likelihood
    (REML), with a prior that matters if rows are few. More than two classes have a score each;
    scores sum to zero, and the probabilities are their softmax (the multinomial loss).

    Parameters
    ----------
    loss : {"log_loss", "multinomial", "ordinal"} or object, default="log_loss"
        The loss of logistic regression; for more than two classes, "log_loss" is "multinomial", but
        for `constraints`, with which each class is fitted against the others. "ordinal" is for
        ordered classes, whose order is that of a categorical column with one, else that of the
        values: one function for all classes, and thresholds between them that are estimated
        (`loss_.thresholds`). Losses of support vector machines are in :class:`AdditiveSVC`.
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
    class_weight : dict or "balanced", optional
        Weights of the classes' rows, multiplied by `sample_weight`.
    weights : {"relative", "frequency"}, default="relative"
        What `sample_weight` means. "relative": scaled so that the weights sum to the effective
        number of rows, (Σw)²/Σw² (Kish); equal weights of any size change nothing. "frequency": a
        weight counts as so many repeated rows.
    max_iter : int, default=200
        Newton steps, at most.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    classes_ : ndarray
        Labels, sorted.
    intercept_ : ndarray of shape (n_outputs,)
        b of each output: one output for two classes, else one for each class.
    term_names_ : list of str
        Names of the terms, in the order of `eval_terms`.
    shape_functions_ : list of ShapeFunction
        The functions of single columns on a grid, with standard errors.
    pair_functions_ : list of PairFunction
        The functions of pairs as heat maps.
    feature_importances_ : ndarray
        Standard deviations of the functions of single columns over the training rows.
    edf_, dispersion_ : ndarray of shape (n_outputs,)
        Effective degrees of freedom of each output, and the dispersion φ.
    deviance_, null_deviance_ : float
        Deviance of the training rows, of the model and of the best constant.
    deviance_explained_ : float
        Share of the deviance of the training rows that the model explains, R² for squared error.
    covariance_ : ndarray of shape (n_coefficients, n_coefficients)
        or (n_outputs, n_coefficients, n_coefficients)
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
    AdditiveRegressor : The same for numbers.
    AdditiveSVC : A linear machine with a fixed C on an additive map, also for sparse rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import kernelmaps as km
    >>> rng = np.random.default_rng(0)
    >>> mails = pd.DataFrame({"length": rng.gamma(2, 100, 500)})
    >>> mails["from"] = rng.choice(["friend", "shop"], 500)
    >>> spam = (mails["length"] < 120) & (mails["from"] == "shop")
    >>> model = km.AdditiveClassifier().fit(mails, spam)
    >>> model.predict_proba(mails).shape
    (500, 2)
    >>> bool(model.score(mails, spam) > 0.95)
    True
    """

    loss: Any = "log_loss"
    _: KW_ONLY
    class_weight: Any = None

    _of_labels = True

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None
    ) -> AdditiveClassifier:
        """Fit the model.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features), path, chunks or Dask frame
            Columns of numbers (NaN where a value is missing), text, categories, dates. Files
            (CSV, Parquet), chunks, Dask frames and whatever else `kernelmaps.data.open_source`
            opens are read block by block.
        y : array-like of shape (n_samples,), str or None
            Labels of any kind; for files and frames the name of the column, None if the
            chunks carry them. Rows without a label in a file, a series, chunks or a Dask frame
            are left out with a warning; NaN in an array in memory is refused.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weights of the rows, which are multiplied by those of their classes. They are relative
            (see `weights`); rows of weight 0 do not take part.
        offset : array-like of shape (n_samples,), optional
            A known part of the log-odds of each row, for two classes: offset + f(x). For rows in
            memory.

        Returns
        -------
        self : AdditiveClassifier
            The fitted model.
        """
        X, y, sample_weight, offset = without_named(
            "AdditiveClassifier", X, y, sample_weight, offset
        )
        dtype: Any = getattr(y, "dtype", None)  # a categorical one has an order
        self._order = dtype.categories.tolist() if getattr(dtype, "ordered", False) else None
        self._fit(X, y, sample_weight, None, offset)
        self._exposed = offset is not None
        return self

    def _offsets(self, n: int, offset: Any, exposure: Any = None) -> np.ndarray:
        has_classes = offset is not None and hasattr(self, "classes_")
        if has_classes and self._loss.n_outputs(len(self.classes_)) > 1:
            raise ValueError(
                "AdditiveClassifier: offset= is for two classes, of whose log-odds it is a part. "
                "Fit one class against the others."
            )
        return super()._offsets(n, offset, exposure)

    def _targets(
        self, y: np.ndarray, weight: np.ndarray, exposure: Any = None
    ) -> tuple[tuple[np.ndarray, ...], list[Loss], np.ndarray]:
        y = column_or_1d(y, warn=True)
        self.classes_, codes = inputs.coded_labels(y)
        if self._loss.is_ordered and self._order is not None:
            self.classes_, codes = self._ordered_codes(y, self._order)
        else:
            self._warn_of_guessed_order()
        self._check_classes()
        weight = inputs.weigh_classes(self, y, codes, weight)
        targets = one_against_rest(codes, self._positive_codes())
        targets = tuple(values.astype(np.float64) for values in targets)
        return targets, [self._loss.adapt_to_targets(values, weight) for values in targets], weight

    def _codes_of_rows(self, y: Any, n: int) -> np.ndarray:
        """Indices of the classes of rows, which the fit must know."""
        y = inputs.targets_of(self, y, n)
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise ValueError(
                f"AdditiveClassifier: y holds {y[unknown][0]!s}, a class that the model was not "
                "fitted on."
            )
        return np.argmax(y[:, None] == self.classes_, axis=1)

    def _deviance_of_rows(
        self, y: Any, weight: np.ndarray, exposure: Any
    ) -> Callable[[np.ndarray], float]:
        codes = self._codes_of_rows(y, len(weight))
        model, rows = self.predictor_, np.arange(len(codes))

        def deviance(scores: np.ndarray) -> float:
            probability = model.probabilities(scores)[rows, codes]
            return -2 * float(weight @ np.log(np.maximum(probability, 1e-300)))

        return deviance

    def _targets_of_source(
        self, source: Source, sample: Sample
    ) -> tuple[RowChecks, list[Loss], list[float]]:
        checks = RowChecks(type(self).__name__, classes=np.zeros(0))
        self.classes_, counts, weights = count_labels(source, checks)
        check_classification_targets(self.classes_)
        self._warn_of_guessed_order()
        self._check_classes()
        factors = None
        if self.class_weight is not None:
            factors = inputs.weights_by_class(self, self.classes_)
            if isinstance(self.class_weight, str):  # "balanced": by the rows of each class
                factors = counts.sum() / (len(counts) * counts)
            weights = factors * weights
        classes = {"classes": self.classes_, "class_weight": factors, "total_weight": weights}
        checks = replace(checks, **classes)
        outputs = self._positive_codes()
        codes = np.arange(len(self.classes_), dtype=np.float64)
        targets = one_against_rest(codes, outputs)
        return checks, [self._loss.adapt_to_targets(values, weights) for values in targets], outputs

    def _ordered_codes(self, y: np.ndarray, order: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Classes in the order of a categorical column, and the index of each row's class."""
        index = {label: k for k, label in enumerate(order)}
        codes = np.fromiter(map(index.__getitem__, y.tolist()), np.int64, len(y))
        unused = np.flatnonzero(np.bincount(codes, minlength=len(order)) == 0)
        if len(unused):
            raise ValueError(
                f"AdditiveClassifier: no row has the level {order[unused[0]]!r} of y, whose "
                "threshold cannot be estimated: drop it by y.cat.remove_unused_categories()."
            )
        return np.array(order, dtype=y.dtype), codes

    def _warn_of_guessed_order(self) -> None:
        """Words of ordered classes are taken in the order of the alphabet."""
        if self._loss.is_ordered and self.classes_.dtype.kind not in "iufb":
            order = " < ".join(map(str, self.classes_.tolist()))
            warnings.warn(
                f"AdditiveClassifier: the classes are words, taken as {order}. For another order, "
                "pass rows in memory with y = pandas.Categorical(y, categories, ordered=True), or "
                "number the classes.",
                UserWarning,
                stacklevel=5,
            )

    def _check_classes(self) -> None:
        inputs.check_classes(self, self.classes_)
        if not self._loss.n_outputs(len(self.classes_)):
            raise ValueError(
                f"AdditiveClassifier: {self.loss!r} has other thresholds than y has classes, "
                f"{len(self.classes_)}: give one less than classes, or None."
            )

    def _positive_codes(self) -> list[float]:
        """The class (its index) that each output calls +1."""
        return self._loss.positive_codes(len(self.classes_))

    @property
    def intercept_(self) -> np.ndarray:
        """b of each output."""
        return self.predictor_.intercept

    def decision_function(self, X: Any, return_std: bool = False, *, offset: Any = None) -> Any:
        """Compute the log-odds of two classes, or the scores of more, whose softmax they have.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        return_std : bool, default=False
            Whether the standard errors of the log-odds are returned, too.
        offset : array-like of shape (n_samples,), optional
            Known parts of the log-odds, as in `fit`; 0 by default.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            One column for two classes, for the second of them.
        std : ndarray
            Their standard errors, if asked for.
        """
        scores = self._scores(X, offset)
        shape = scores.shape[:1] if scores.shape[1] == 1 else scores.shape
        if not return_std:
            return scores.reshape(shape)
        return scores.reshape(shape), self._score_errors(X).reshape(shape)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        y : array-like of shape (n_samples,) or str
            True labels; of a file or a frame, the name of the column.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weights of the rows.
        offset : array-like of shape (n_samples,), optional
            Known parts of the log-odds, as in `fit`; 0 by default.

        Returns
        -------
        float
            Share of the rows whose label is predicted.
        """
        warn_without_exposure(self, "AdditiveClassifier.score", offset)
        X, y, sample_weight, _ = self._rows_to_score(X, y, sample_weight)
        predicted = self.predict(X, offset=offset)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def predict(self, X: Any, *, offset: Any = None) -> np.ndarray:
        """Predict the most probable class.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        offset : array-like of shape (n_samples,), optional
            Known parts of the log-odds, as in `fit`; 0 by default.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        scores = self._scores(X, offset)  # which says first if the model is not fitted
        return self.predictor_.predictions(scores)

    def predict_proba(self, X: Any, *, offset: Any = None) -> np.ndarray:
        """Predict probabilities of the classes.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        offset : array-like of shape (n_samples,), optional
            Known parts of the log-odds, as in `fit`; 0 by default.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        scores = self._scores(X, offset)
        return self.predictor_.probabilities(scores)

    def posterior_draws(
        self, X: Any, n_draws: int = 100, *, offset: Any = None, random_state: Any = None
    ) -> np.ndarray:
        """Draw probabilities of the classes from the posterior of the model.

        Each draw is a function that the data allow: its values for all rows belong together.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.
        n_draws : int, default=100
            Number of draws.
        offset : array-like of shape (n_samples,), optional
            Known parts of the log-odds, as in `fit`; 0 by default.
        random_state : int, RandomState, Generator or None
            Seed of the draws; None draws other numbers each time.

        Returns
        -------
        ndarray of shape (n_draws, n_samples, n_classes)
            One table for each draw, shaped as `predict_proba`.
        """
        draws = self._score_draws(X, n_draws, random_state)
        draws += self._offsets(draws.shape[1], offset)[:, None]
        tables = self.predictor_.probabilities(draws.reshape(-1, draws.shape[2]))
        return tables.reshape(*draws.shape[:2], -1)

    def check(
        self, X: Any, y: Any, sample_weight: Any = None, *, output: int = 0,
        offset: Any = None, random_state: Any = 0,
    ) -> GamCheck:  # fmt: skip
        """Check the model on rows: residuals, basis dimensions, concurvity, influential rows.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Rows, best those that the model was fitted on.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, as in `fit`.
        output : int, default=0
            For more than two classes: which of them, against all others.
        offset : array-like of shape (n_samples,), optional
            Known parts of the log-odds, as in `fit`; 0 by default.
        random_state : int, RandomState, Generator or None
            Seed of the permutations and of the quantile residuals.

        Returns
        -------
        GamCheck
            Prints as text; :class:`kernelmaps.inspection.CheckDisplay` draws it.
        """
        n_outputs = len(self._model.intercept)
        if not 0 <= output < n_outputs:
            raise ValueError(
                f"AdditiveClassifier.check: output must be 0 … {n_outputs - 1}, got {output!r}."
            )
        warn_without_exposure(self, "AdditiveClassifier.check", offset)
        columns = self._columns(X)
        offsets = self._offsets(len(columns[0]), offset)
        codes = self._codes_of_rows(y, len(columns[0])).astype(np.float64)
        sign = one_against_rest(codes, self._positive_codes())[output]
        return self._check_rows(columns, sign, sample_weight, offsets, output, random_state)
