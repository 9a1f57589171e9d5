"""Generalised additive models: fitting and what a fitted model says, for numbers and classes.

An estimator turns X into columns, y into targets and a loss for each output, builds a design, fits
its outputs (with interactions, after a search for pairs), and keeps the one fitted object, an
:class:`.predictor.AdditivePredictor`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import optimize, sparse, special
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array, check_is_fitted

from ..._util.arguments import (
    argument,
    check_choice,
    check_count,
    check_flag,
    generator,
    refuse_masked,
)
from ..._util.devices import is_foreign
from ..._util.display import plain_number
from ..._util.schema import SchemaError, State, array, boolean, instance, integer, number
from ..._util.sparse import check_sparse
from ..._util.threads import limit_blas
from ...data.columns import Column, is_frame, is_series, without_named
from ...data.sources import Source
from ...data.table_files import open_table
from ...data.table_reader import ReadingNotes, TableReader, numbers_rows
from ...data.tables import (
    fits_in_memory,
    is_in_memory,
    load_table,
    open_large_table,
    warn_of_gaps,
)
from ..inputs import (
    missing_targets,
    numbers_in_text,
    refuse_training_on_gpu,
    targets_of,
    weights_of,
)
from ..losses import GAM, BinomialCounts, JointLoss, LogLoss, Loss, find_loss
from ..rows.basis import count_levels as count_basis_levels
from ..shapes import Explanation, PairFunction, ShapeFunction, score_name
from .anova import fit_statistics
from .design import (
    MAX_EXACT_ROWS,
    AdditiveDesign,
    build_design,
    describe_merged_levels,
    encode_rows,
)
from .edits import edit_term
from .effect_tables import effect_tables
from .fitting import fit_outputs
from .inference import build_predictor
from .interactions import search_pairs
from .model_check import FitToCheck, GamCheck
from .predictor import (
    AdditivePredictor,
    check_exposure_has_use,
    warn_beyond,
    warn_without_exposure,
)
from .summary import GamSummary, pair_functions, shape_functions, summarise
from .terms import GamSettings, resolve_settings
from .training_rows import (
    ChunkEncoder,
    RowChecks,
    RowsFromStream,
    Sample,
    TrainingRows,
    count_levels,
    fit_scale,
    one_against_rest,
    take_sample,
)

_STATISTICS = "deviance_", "null_deviance_", "log_likelihood_", "aic_", "reml_", "corrected_edf"
NO_EFFECT = 0.05  # p-value above which a number of the rows is an ID
MAX_EDF_SHARE = 0.8  # of the rows' weight: with more effective degrees of freedom, a fit warns


@dataclass(eq=False, repr=False)
class GeneralizedAdditiveModel(BaseEstimator):
    """Parameters, fitting and description of `AdditiveRegressor` and `AdditiveClassifier`."""

    loss: Any = ""
    _: KW_ONLY
    terms: Any = None
    interactions: Any = None
    constraints: Any = None
    smoothing: Any = "auto"
    categorical_features: Any = None
    weights: str = "relative"
    max_iter: int = 200
    n_jobs: int | None = None

    _of_labels: ClassVar[bool]  # whether targets are labels or numbers
    _is_survival: ClassVar[bool] = False  # whether they are times, which may end with an event
    _state: ClassVar[State] = State(
        required={
            "predictor_": instance((AdditivePredictor,)),
            "edf_": array("f8", "outputs"),
            "dispersion_": array("f8", "outputs"),
            "n_rows": integer(1),
            **dict.fromkeys(_STATISTICS, number(finite=False)),
        },
        allowed={
            "objective_": array("f8", "outputs", finite=False),
            "n_iter_": integer(),
            "exposed": boolean,
            "residual_quantiles": array("f8", "_", least=0),
        },
        private=True,
    )

    # -- what a subclass does in its own way ------------------------------------------------------

    def _targets(
        self, y: np.ndarray, weight: np.ndarray, exposure: Any = None
    ) -> tuple[Sequence[np.ndarray], list[Loss], np.ndarray]:
        """Targets and losses of all outputs, and the weights of the rows."""
        raise NotImplementedError

    def _targets_of_source(
        self, source: Source, sample: Sample
    ) -> tuple[RowChecks, list[Loss], list[float]]:
        """Checks of the chunks' targets, losses, and the code that each output calls +1."""
        raise NotImplementedError

    def _deviance_of_rows(
        self, y: Any, weight: np.ndarray, exposure: Any
    ) -> Callable[[np.ndarray], float]:
        """The deviance of rows, a function of their scores (n_samples, n_outputs)."""
        raise ValueError(
            f"{type(self).__name__}: only models of one number and of classes are compared with "
            "rows: leave out X and y."
        )

    def _joint_loss(self, design: AdditiveDesign) -> JointLoss | None:
        """The loss of all outputs together; None if each is fitted by itself."""
        sizes = [basis.n_functions for basis in design.bases]
        # The levels of a large factor are eliminated from the equations of one output at a time.
        n_functions = np.inf if count_basis_levels(design.bases) else 1 + sum(sizes)
        n_classes = len(self.classes_) if self._of_labels else 0
        loss = self._loss.joint_loss(n_classes, n_functions, design.totals[0])
        if loss is None or not self.constraints:
            return loss
        if self._loss == LogLoss():  # each class against the others
            return None
        raise ValueError(
            f"{type(self).__name__}: loss={self.loss!r} fits several functions of a column, and "
            "constraints= do not say which. Leave them out, or use another loss."
        )

    def _log_exposure(self, exposure: Any, n: int) -> np.ndarray:
        return np.zeros(n)

    def _finish_fit(
        self, columns: Sequence[Column], y: np.ndarray, weight: np.ndarray, offset: np.ndarray
    ) -> None:
        """Learn what is left to learn from rows of the fit: all of them, or a sample."""

    # -- fitting ----------------------------------------------------------------------------------

    @property
    def _loss(self) -> Loss:
        """The loss that was asked for, by its name or as an object."""
        return find_loss(type(self).__name__, self.loss, self._of_labels, GAM, self._is_survival)

    @property
    def _model(self) -> AdditivePredictor:
        """The fitted object; NotFittedError without one."""
        check_is_fitted(self)
        return self.predictor_

    @property
    def loss_(self) -> Loss:
        """The loss as an object, with the parameter that was estimated."""
        return self._model.fitted_loss

    @property
    def _link(self) -> str:
        """A name in `LINKS`; of classes "logit", or "softmax" of scores of all of them."""
        return (self.loss_ if hasattr(self, "predictor_") else self._loss).link

    def _check_parameters(self) -> None:
        _ = self._loss  # an unknown name is refused
        check_count(self, "max_iter", self.max_iter)
        check_choice(self, "weights", self.weights, ("relative", "frequency", "precision"))
        if self.weights == "precision" and not self._loss.has_variance:
            raise ValueError(
                f"{type(self).__name__}: weights='precision' are inverse variances, which "
                f"loss={self.loss!r} does not know. Use 'relative' or 'frequency'."
            )

    def _offsets(self, n: int, offset: Any, exposure: Any = None) -> np.ndarray:
        """What is added to the scores of n rows: offsets, and logarithms of exposures."""
        total = self._log_exposure(exposure, n)
        if offset is None:
            return total
        return total + self._row_values(offset, n, "offset")

    def _row_values(self, values: Any, n: int, name: str) -> np.ndarray:
        """Finite numbers, one for each of n rows: offsets, say."""
        refuse_masked(self, name, values)
        problem = f"{type(self).__name__}: {name} must hold {n} finite numbers, one for each row"
        try:
            numbers = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{problem}: {error}.") from None
        if numbers.shape not in ((n,), (n, 1)):
            raise ValueError(f"{problem}; its shape is {numbers.shape}.")
        if not (finite := np.isfinite(numbers.ravel())).all():
            row = int(np.argmin(finite))
            raise ValueError(f"{problem}; row {row} has {numbers.flat[row]}.")
        return numbers.ravel()

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, exposure: Any = None, offset: Any = None
    ) -> Self:
        """Fit to rows in memory, or to rows that are read block by block."""
        self._remember_columns(y, sample_weight, exposure)
        X, y, sample_weight, exposure, offset = without_named(
            type(self).__name__, X, y, sample_weight, exposure, offset
        )
        refuse_training_on_gpu(self, "fit", X, y, sample_weight)
        self._check_parameters()
        if fits_in_memory(X):
            X, y, sample_weight, exposure = load_table(X, y, sample_weight, exposure)
        if is_frame(X) or is_in_memory(X):
            X, y, sample_weight, exposure, offset = self._with_targets(
                X, y, sample_weight, exposure, offset
            )
            columns = self._learn_columns(X)
            y = targets_of(self, y, len(columns[0]))
            weight = weights_of(self, sample_weight, len(y))
            targets, losses, weight = self._targets(y, weight, exposure)
            offsets = self._offsets(len(y), offset, exposure)
            location = losses[0].location(targets[0], weight, offsets)
            if location:
                targets = [values - location for values in targets]
            while True:
                settings = self._settings()
                rows = encode_rows(columns, targets, weight, offsets, settings)
                self._fit_rows(rows, losses, settings, int(np.count_nonzero(weight)), location)
                useful = self._without_row_numbers(columns)
                if len(useful) == len(columns):
                    break
                columns = useful
            self._finish_fit(columns, targets[0] + location, weight, offsets)
        else:
            owner = type(self).__name__
            if offset is not None:
                raise ValueError(
                    f"{owner}: offset= is for rows in memory, and X is read block by block. Load "
                    "it as a frame."
                )
            with open_large_table(X, y, sample_weight, exposure) as source:
                self._fit_source(source)
        return self

    def _remember_columns(self, *row_data: Any) -> None:
        """Remember columns that hold targets or weights: rows to predict may have them, too."""
        self._columns_of_row_data = [item for item in row_data if isinstance(item, str)]

    def _rows_to_score(
        self, X: Any, y: Any, sample_weight: Any, exposure: Any = None
    ) -> tuple[Any, Any, Any, Any]:
        """Rows, targets, weights and exposures of a file or frame whose columns are named."""
        X, y, sample_weight, exposure = without_named(
            type(self).__name__, X, y, sample_weight, exposure
        )
        refuse_masked(self, "y", y)
        refuse_masked(self, "sample_weight", sample_weight)
        if not isinstance(y, str):
            return X, y, sample_weight, exposure
        if not fits_in_memory(X):
            raise ValueError(
                f"{type(self).__name__}.score: y={y!r} names a column of a CSV or Parquet file "
                "that fits into memory. Pass such a file as X, or the targets as an array."
            )
        return load_table(X, y, sample_weight, exposure)

    def _with_targets(self, X: Any, y: Any, *row_data: Any) -> tuple[Any, ...]:
        """The rows that have a target; those without one in a series are left out, as of a file."""
        if y is None or isinstance(y, str):
            return X, y, *row_data
        from_table, name = is_series(y), str(getattr(y, "name", None) or "y")
        y = y if self._of_labels else numbers_in_text(self, y)
        missing = missing_targets(y) if from_table else np.zeros(0, bool)
        if not missing.any() or missing.all() or len(missing) != len(X):
            return X, y, *row_data
        warn_of_gaps(type(self).__name__, name, int(missing.sum()))
        rows = np.flatnonzero(~missing)
        row_data = tuple(item if item is None else np.asarray(item)[rows] for item in row_data)
        return _safe_indexing(X, rows), np.asarray(y)[rows], *row_data

    def _fit_source(self, source: Source) -> None:
        """Fit to rows that are read anew for each pass."""
        owner = type(self).__name__
        sample = take_sample(source, owner, self.categorical_features, self.terms)
        self._set_reader(sample.reader)
        sample.reader.warn(owner, stacklevel=5)
        checks, losses, outputs = self._targets_of_source(source, sample)
        settings = self._settings()
        checked = zip(*(checks(chunk) for chunk in sample.chunks), strict=True)
        y, weight, offset = (np.concatenate(values) for values in checked)
        of_sample = sample.columns, one_against_rest(y, outputs), weight, offset, settings
        rows = encode_rows(*of_sample)
        categories = [j for j, book in enumerate(rows.books) if book.kind == "category"]
        if categories and not sample.complete:
            frequency = settings.weights == "frequency"
            levels = count_levels(source, self.reader_, checks, categories, frequency)
            rows = encode_rows(*of_sample, levels)
        n_jobs = self.n_jobs if source.parts is None else 1  # Dask runs its tasks in threads
        encoder = ChunkEncoder(self.reader_, rows.books, checks, tuple(outputs), n_jobs)
        start = rows  # whose intercepts a fit begins with
        # One row of each class, with the weight of all.
        if checks.total_weight is not None and not self._loss.parameter:
            classes = np.arange(len(checks.total_weight), dtype=float)
            start = replace(
                rows, targets=one_against_rest(classes, outputs), weight=checks.total_weight,
                offset=np.zeros(len(classes)),
            )  # fmt: skip
        streamed = RowsFromStream.read(source, encoder, losses, start)
        sums = streamed.first_pass
        if not sums.weight > 0:
            raise ValueError(f"{owner}: all sample weights are zero.")
        warn_of_gaps(owner, "y", sums.n_without_target)
        n_rows = sums.by_output[0].count
        # A sample that has all rows: few are fitted as they would be in memory, at their values.
        few = len(rows.weight) <= MAX_EXACT_ROWS and n_rows == np.count_nonzero(rows.weight)
        training = replace(rows, books=streamed.books) if few else streamed
        self._fit_rows(training, losses, settings, n_rows, checks.location)
        self._finish_fit(sample.columns, y + checks.location, weight, offset)

    def _fit_rows(
        self, rows: TrainingRows, losses: Sequence[Loss], settings: GamSettings, n_rows: int,
        location: float,
    ) -> None:  # fmt: skip
        """Fit all outputs, whose targets are less a location, and keep the fitted model."""
        sums, rows = rows.weight_sums, rows.scale_weights(settings.weights)
        unit, log_densities = 1.0, 0.0
        if settings.weights == "precision":  # φ is for rows of weight 1; densities have a factor √w
            unit = float(sums[0] / rows.total_weight)
            log_densities = 0.5 * float(sums[2] - sums[3] * np.log(unit))
        losses = [loss.with_weights_over(unit) for loss in losses]
        # Matrices of single terms are small: threads of BLAS would cost more than they bring.
        with limit_blas(1):
            design = build_design(rows, losses, settings)
            design = replace(design, joint_loss=self._joint_loss(design))
        if settings.max_pairs:
            model = search_pairs(design, losses, settings)
        else:
            model = fit_outputs(design, losses, settings)
        with limit_blas(1):
            fitted_loss: str | Loss = self.loss
            if self._loss.parameter:
                losses = [fit.loss.with_dispersion(fit.dispersion) for fit in model.fits]
                if not self._loss.null_has_parameter:
                    totals = tuple(rows.loss_totals(losses))
                    model = replace(model, design=replace(model.design, totals=totals))
                fitted_loss = self._loss.adopt_parameter(losses[0])
            if model.joint is not None:
                fitted_loss = model.joint.loss.fitted
            self.predictor_ = build_predictor(
                model, losses, settings.pairs, location, self.reader_, fitted_loss,
                getattr(self, "classes_", None),
            )  # fmt: skip
            statistics = fit_statistics(model, losses, self._loss.n_free, unit, log_densities)
            self.__dict__.update(statistics)
        fits = model.fits
        self.n_iter_ = max(fit.n_iter for fit in fits)
        self.objective_ = np.array([fit.objective for fit in fits])
        self.dispersion_ = np.array([unit * fit.dispersion for fit in fits])
        self.edf_ = np.array([fit.edf.sum() for fit in fits])
        self._n_rows = n_rows
        if not all(fit.converged for fit in fits):
            self._warn_of_fit(
                f" stopped after {argument('max_iter', self.max_iter)} steps: raise "
                f"{argument('max_iter')}.",
                ConvergenceWarning,
            )
        if not all(fit.smoothing_converged for fit in fits):
            self._warn_of_fit(
                ": the search for smoothing parameters stopped far from a minimum of the REML "
                f"criterion. Leave out columns that repeat others ({argument('terms')}), or give "
                f"some of the parameters ({argument('smoothing')}).",
                ConvergenceWarning,
            )
        for problem in describe_merged_levels(design, settings):
            self._warn_of_fit(f": {problem}")
        if self.edf_.max() > MAX_EDF_SHARE * rows.total_weight:
            self._warn_of_fit(
                f" used {self.edf_.max():.1f} effective degrees of freedom for "
                f"{rows.total_weight:g} rows, and follows the noise. Name fewer columns in "
                f"{argument('terms')}, raise {argument('smoothing')}, or fit more rows."
            )

    def _warn_of_fit(self, problem: str, category: type[Warning] = UserWarning) -> None:
        warnings.warn(type(self).__name__ + problem, category, stacklevel=6)

    def _settings(self) -> GamSettings:
        settings, loss = resolve_settings(self, self.reader_), self._loss
        if loss.counts_trials:
            settings = replace(settings, weights="frequency")
        return replace(settings, estimates_parameter=loss.is_free)

    # -- rows -------------------------------------------------------------------------------------

    def _learn_columns(self, X: Any) -> list[Column]:
        """Learn how the columns of X are read, and read them."""
        owner = type(self).__name__
        reader, columns = TableReader.learn_and_read(
            [self._check_input(X)], owner, self.categorical_features, self.terms
        )
        self._set_reader(reader)
        reader.warn(owner, stacklevel=5)
        return columns

    def _without_row_numbers(self, columns: list[Column]) -> list[Column]:
        """The columns less those that number the rows and have no effect, which are IDs.

        A consecutive number with an effect may be a time. Columns that parameters name stay.
        """
        terms = self.predictor_.terms if self.reader_.named else []
        arguments = str([self.terms, self.interactions, self.constraints, self.smoothing])
        in_pairs = {j for term in terms if len(term.columns) > 1 for j in term.columns}
        p_values = {j: float(t.p_value.min()) for t in terms for j in {*t.columns} - in_pairs}
        reasons = {
            columns[j].name: f"its values number the rows, without an effect (p = {p:.2g})"
            for j, p in p_values.items()
            if p > NO_EFFECT and repr(columns[j].name) not in arguments and numbers_rows(columns[j])
        }
        if not 0 < len(reasons) < len(columns):
            return columns
        self._set_reader(self.reader_.leave_out(reasons, type(self).__name__, stacklevel=6))
        return [column for column in columns if column.name not in reasons]

    def _set_reader(self, reader: TableReader) -> None:
        """Keep how columns are read, their number and, where the table has them, their names."""
        self.reader_, self.n_features_in_ = reader, len(reader.columns)
        if reader.named:
            self.feature_names_in_ = np.array(reader.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _columns(self, X: Any, warns: bool = True) -> list[Column]:
        """The columns of later rows, read as those of fit were, and found by name.

        Values beyond the training rows are warned of, unless another part of the call does it.
        """
        model, owner, notes = self._model, type(self).__name__, ReadingNotes()
        if isinstance(X, str | os.PathLike):
            columns = model.reader.read(open_table(X).table(), owner, notes=notes)
            notes.unexpected.clear()  # a file may hold the target, too
        else:
            columns = model.reader.read(self._check_input(X), owner, notes=notes)
            row_data = getattr(self, "_columns_of_row_data", ())
            notes.unexpected = [name for name in notes.unexpected if name not in row_data]
        notes.warn(owner, stacklevel=4)
        if warns:
            warn_beyond(owner, model.count_beyond(columns), stacklevel=4)
        return columns

    def _check_input(self, X: Any) -> Any:
        """A frame as it is; an array of numbers, with NaN where they are missing, or of objects."""
        owner = type(self).__name__
        (X,) = without_named(owner, X)
        if is_foreign(X):
            raise TypeError(
                f"{owner} takes rows in ordinary memory, not an array of {type(X).__module__}. "
                "Pass a frame, or X.cpu().numpy() of a torch tensor."
            )
        if is_frame(X):
            if X.shape[0] == 0 or X.shape[1] == 0:
                raise ValueError(f"{owner}: X has {X.shape[0]} rows and {X.shape[1]} columns.")
            return X
        if sparse.issparse(X):
            other = "AdditiveSVC" if self._of_labels else "AdditiveSVR"
            raise TypeError(
                f"{owner}: X is sparse, and a GAM codes every cell. Pass X.toarray(), or use "
                f"{other}, which takes sparse rows."
            )
        check_sparse(X, owner)
        raw = X if hasattr(X, "dtype") else np.asarray(X, dtype=object)
        kind, words = getattr(raw.dtype, "kind", "f"), False
        if kind in "OUS":
            cells = np.asarray(raw).ravel().tolist()
            words = any(cell is None or isinstance(cell, str) for cell in cells)
        return check_array(
            X, estimator=self, input_name="X", dtype=object if words else "numeric",
            ensure_all_finite=False if words else "allow-nan",
        )  # fmt: skip

    def _scores(self, X: Any, offset: Any = None) -> np.ndarray:
        """Scores of rows, one column per output, with offsets if there are any."""
        scores = self._model.scores(self._columns(X))
        return scores if offset is None else scores + self._offsets(len(scores), offset)[:, None]

    def _score_errors(self, X: Any) -> np.ndarray:
        """Standard errors of the scores of rows, one column per output."""
        # Their scores have been computed before.
        return self._model.score_errors(self._columns(X, warns=False))

    def _score_draws(self, X: Any, n_draws: int, random_state: Any) -> np.ndarray:
        """Scores of rows for coefficients from the posterior: (n_draws, n_samples, n_outputs)."""
        check_count(self, "n_draws", n_draws)
        rng = generator(random_state)
        return self._model.score_draws(self._columns(X), int(n_draws), rng)

    def _check_rows(
        self, columns: list[Column], y: np.ndarray, sample_weight: Any, offset: np.ndarray,
        output: int = 0, random_state: Any = 0, trials: np.ndarray | None = None,
    ) -> GamCheck:  # fmt: skip
        """Check one output on rows; `y` are its targets, or successes in trials."""
        weight = weights_of(self, sample_weight, len(y))
        weight = self._scaled_weights(weight)
        loss, dispersion = self.loss_.adapt_to_targets(y, weight), self.dispersion_[output]
        if self.weights == "precision":
            weight, dispersion = np.ones(len(y)), dispersion / np.maximum(weight, 1e-300)
        if trials is not None:
            loss = BinomialCounts(trials=trials)
        loss, dispersion = loss.loss_of_rows(self.predictor_.scores(columns), dispersion)
        return FitToCheck(
            self.predictor_, output, loss, dispersion, float(self._residual_df[output]),
            float(self.edf_[output]), columns, y, weight, offset,
        ).check(generator(random_state))  # fmt: skip

    def _scaled_weights(self, weight: np.ndarray) -> np.ndarray:
        """Weights of rows in units of the fit; those of trials count repeated rows."""
        if self.weights != "relative" or self._loss.counts_trials:
            return weight
        return weight * fit_scale("relative", weight.sum(), weight @ weight)

    @property
    def _effective_rows(self) -> float:
        """Weight of all rows."""
        return float(self.predictor_.terms[0].counts.sum())

    @property
    def _residual_df(self) -> np.ndarray:
        """Effective number of rows less the degrees of freedom, of each output; ∞ if φ is known."""
        if not self.loss_.estimates_dispersion:
            return np.full(len(self.edf_), np.inf)
        return np.maximum(self._effective_rows - self.edf_, 1.0)

    # -- what a fitted model says -----------------------------------------------------------------

    @property
    def deviance_explained_(self) -> float:
        """Share of the deviance of the training rows that the model explains, R² for squares."""
        check_is_fitted(self)
        if not self.null_deviance_ > 0:
            return float(self.deviance_ <= 0)
        return 1 - self.deviance_ / self.null_deviance_

    def eval_terms(self, X: Any) -> np.ndarray:
        """Compute the contribution of each term to the score.

        The score (the prediction, or its logarithm for "poisson" and "gamma"; the log-odds of a
        classifier) equals ``eval_terms(X).sum(axis=1) + intercept_``. Each term has mean zero over
        the training rows.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_terms) or (n_samples, n_terms, n_classes)
            One column for each term of ``term_names_``, pairs included.
        """
        values = self._model.contributions(self._columns(X))
        return values[:, :, 0] if values.shape[2] == 1 else values

    @property
    def term_names_(self) -> list[str]:
        """Names of the terms, in the order of `eval_terms`."""
        return self._model.term_names_

    @property
    def covariance_(self) -> np.ndarray:
        """Posterior covariance of the coefficients, the intercept first; see `model_matrix`.

        Levels of a large factor (more than 254 of them) are left out.
        """
        factors = self._model.posterior.cholesky_factors()
        covariance = np.stack([factor @ factor.T for factor in factors])
        return covariance[0] if len(covariance) == 1 else covariance

    def model_matrix(self, X: Any) -> np.ndarray:
        """Compute the basis functions that `covariance_` is of, for rows.

        With Z for this matrix, ``Z @ covariance_ @ Z.T`` is the covariance of the scores of the
        rows (of the predictions, their logarithms or log-odds), for standard errors of sums and
        differences of predictions. The roughest functions of a term, whose coefficients have 1 % of
        its variance, are left out, and so is the largest factor if it has more than 254 levels:
        ``predict(X, return_std=True)`` has its part of the standard errors. Beyond the training
        rows functions are those of the predictions, and the errors of ``return_std`` are larger.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_coefficients)
            One column for each coefficient, the intercept first.
        """
        return self._model.model_matrix(self._columns(X))

    @property
    def shape_functions_(self) -> list[ShapeFunction]:
        """The functions of single columns on a grid, with standard errors."""
        return shape_functions(self._model)

    @property
    def pair_functions_(self) -> list[PairFunction]:
        """What pairs of columns add beyond the functions of the columns, one heat map each.

        Their means are zero for each value of either column, but for what chance explains. Surfaces
        are here, too, on a grid: cells far from all rows have no density.
        """
        return pair_functions(self._model)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Standard deviations of the functions of single columns over the training rows."""
        single = [term for term in self._model.pure_terms if len(term.columns) == 1]
        return np.array([term.importance for term in single])

    def summary(self) -> GamSummary:
        """Summarise the terms: degrees of freedom, range of effect, approximate significance.

        Returns
        -------
        GamSummary
            Prints as text; notebooks show it as HTML; `to_frame` has the numbers.
        """
        model, loss = self._model, self.loss_
        names, errors = model.output_names, model.posterior.intercept_errors
        intercepts = [
            f"{plain_number(value, 4)} (se {plain_number(error, 2)})"
            for value, error in zip(model.intercept, errors, strict=True)
        ]
        if len(names) > 1:
            intercepts = [f"{name} {text}" for name, text in zip(names, intercepts, strict=True)]
        elif (mean := model.mean_of(model.intercept)) is not None:
            what = "probability" if self._of_labels else "mean"
            intercepts.append(f"{what} {plain_number(mean, 4)}")
        facts = {
            "loss": f"{self.loss} ({loss.family} family, link: {loss.link})",
            "rows": self._n_rows,
            "score": score_name(self, "the mean"),
            "intercept": ", ".join(intercepts),
            "degrees of freedom": ", ".join(f"{value:.1f}" for value in self.edf_),
            "dispersion": ", ".join({plain_number(phi, 4): 0 for phi in self.dispersion_}),
        }
        if loss.parameter:
            values = np.ravel(getattr(loss, loss.parameter))
            facts[loss.parameter] = ", ".join(f"{value:.4g}" for value in values)
        if units := [f"{c.name} in {c.unit}" for c in self.reader_.columns if c.unit]:
            facts["units"] = ", ".join(units)
        facts |= {
            "deviance explained": f"{100 * self.deviance_explained_:.1f} %",
            "log-likelihood": f"{self.log_likelihood_:.6g}",
            "AIC": f"{self.aic_:.6g}",
            "REML score": f"{self.reml_:.6g}",
        }
        if model.edits:
            facts["edited since"] = "; ".join(model.edits)
        statistic = "F" if loss.estimates_dispersion else "chi²"
        noise = None
        if loss.estimates_dispersion:
            df = self._residual_df
            factors = [np.ones(len(df)), *(df / special.chdtri(df, q) for q in (0.025, 0.975))]
            noise = np.sqrt(self.dispersion_ * np.stack(factors))
        return summarise(type(self).__name__, model, facts, names, statistic, noise)

    def to_tables(self, step: Any = None, X: Any = None, *, exposure: Any = None) -> dict[str, Any]:
        """Return the terms as tables of effects: a row for each band of numbers, or each level.

        With these tables and a pencil, or in a spreadsheet, the score of a row is the sum of
        ``intercept_`` and of the effect that each term has for it; with a log link the prediction
        is exp(intercept) times the relativities. It is the prediction of the model for the row
        whose numbers are replaced by the column "value" of their bands. A pair is a grid of the
        bands or levels of its columns, and adds to these.

        Parameters
        ----------
        step : float or dict, optional
            Width of the bands of all columns of numbers; or, by column, a width or a list of
            numbers where bands begin. The first and the last band are open. By default about 20
            bands of a round width between the first and the last percentile of the training rows.
        X : frame, array-like of shape (n_samples, n_features), or path of a CSV or Parquet file
            Rows to sum the exposure over. By default it is the weight of the training rows, which
            the model keeps by bins: close to that of bands that divide them, and of cells of pairs.
        exposure : array-like of shape (n_samples,), optional
            What each row of `X` was exposed to; 1 by default.

        Returns
        -------
        dict of str to pandas.DataFrame
            By name of term, with the columns ``band`` (intervals that begin with their left end)
            or ``level``, ``effect`` (as in `eval_terms`), with a log or logit link ``relativity``
            (its exponential), ``standard_error`` and ``exposure``; of numbers also ``value``, the
            mean of the training rows in the band, where the effect and its error are taken. Rows
            "missing" and "other" (levels that training rows did not show) stand last. Of pairs
            there is ``band of age`` and so on; for more than two classes there is ``class``.
        """
        owner = f"{type(self).__name__}.to_tables"
        if X is None and exposure is not None:
            raise ValueError(f"{owner}: exposure= is that of rows: pass them as X=.")
        rows = None if X is None else self._columns(X)
        if rows is not None:
            n = len(rows[0])
            exposure = np.ones(n) if exposure is None else self._row_values(exposure, n, "exposure")
        return effect_tables(self._model, step, rows, exposure)

    @property
    def edits_(self) -> list[str]:
        """What `edit` has changed since the fit, in words."""
        return list(self._model.edits)

    def edit(
        self, term: Any, effect: Any, *, between: Any = None, X: Any = None, y: Any = None,
        sample_weight: Any = None, exposure: Any = None, offset: Any = None,
        refit_intercept: bool = False,
    ) -> Self:  # fmt: skip
        """Return a copy with another effect of a term, in the place of the one of the fit.

        The effect is that of `eval_terms`, plots and tables: on the scale of the score, with a
        mean of zero over the training rows. Predictions, intervals, files and exports of the copy
        follow it. Standard errors within the training rows, `deviance_` and other statistics stay
        those of the fit.

        Parameters
        ----------
        term : str, int or pair of these
            A column or two, or the name of a term (``"age × power"``).
        effect : number, callable or dict
            A number, for all values (missing ones and other levels, too). A function of the values
            (those of the column's nodes and 257 even ones, with straight lines between; or names
            of levels) and of their old effects, which returns new ones:
            ``lambda x, old: numpy.maximum.accumulate(old)``. A dict from levels (or "missing",
            "other") to numbers. For more than two classes, values may have a column for each. A
            term of two columns is set to a number.
        between : (low, high), optional
            Where the effect of a number is changed, both ends included; None for an open end. An
            end at or beyond the training rows is open, too.
        X, y, sample_weight, exposure, offset : optional
            Rows, as in `score`: the deviance before and after on them is part of `edits_`.
        refit_intercept : bool, default=False
            Whether the intercept is estimated anew on these rows.

        Returns
        -------
        AdditiveRegressor or AdditiveClassifier
            The changed copy; the model stays as it was. `edits_` and `summary` say what was
            changed.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> import kernelmaps as km
        >>> flats = pd.DataFrame({"area": np.linspace(20, 90, 50)})
        >>> model = km.AdditiveRegressor().fit(flats, 80 * np.sqrt(flats["area"]))
        >>> capped = model.edit("area", lambda x, old: np.minimum(old, 100), between=(60, None))
        >>> capped.edits_
        ['area in [60, inf] = a function of the old effect']
        """
        owner, edited = f"{type(self).__name__}.edit", copy(self)
        check_flag(owner, "refit_intercept", refit_intercept)
        if X is None and (refit_intercept or y is not None):
            raise ValueError(f"{owner}: {argument('X')} and y are needed to compare with rows.")
        model, words = edit_term(self._model, term, effect, between, owner)
        if X is not None:
            model, comparison = self._compare_edit(
                model, X, y, sample_weight, exposure, offset, refit_intercept
            )
            words += comparison
        edited.predictor_ = replace(model, edits=(*model.edits, words))
        return edited

    def _compare_edit(
        self, model: AdditivePredictor, X: Any, y: Any, sample_weight: Any, exposure: Any,
        offset: Any, refit_intercept: bool,
    ) -> tuple[AdditivePredictor, str]:  # fmt: skip
        """An edited model, with another intercept if asked for, and its deviance in words."""
        if exposure is not None:
            check_exposure_has_use(self._loss)
        X, y, sample_weight, exposure = self._rows_to_score(X, y, sample_weight, exposure)
        warn_without_exposure(self, f"{type(self).__name__}.edit", exposure, offset)
        columns = self._columns(X)
        n = len(columns[0])
        offsets, weight = self._offsets(n, offset, exposure), weights_of(self, sample_weight, n)
        deviance = self._deviance_of_rows(y, weight, exposure)
        before, after = (
            item.scores(columns) + offsets[:, None] for item in (self.predictor_, model)
        )
        shift = np.zeros(before.shape[1])
        if refit_intercept:
            options = {"xtol": 1e-9, "ftol": 1e-14}
            shift = optimize.minimize(
                lambda trial: deviance(after + trial), shift, method="Powell", options=options
            ).x
        words = f"; deviance of {n:,} rows {deviance(before):.8g} → {deviance(after + shift):.8g}"
        if refit_intercept:
            words += f", intercept shifted by {', '.join(f'{value:.4g}' for value in shift)}"
        return replace(model, intercept=model.intercept + shift), words

    def explain(self, x: Any, output: int | None = None) -> Explanation:
        """Explain one row: what each term adds to its score.

        Parameters
        ----------
        x : one row
            A frame or array of one row.
        output : int, optional
            For more than two classes: which one's score, by default that of the predicted class.

        Returns
        -------
        Explanation
            Prints as text; `plot` draws it as bars.
        """
        columns = self._columns(x)  # which says first if the model is not fitted
        return self.predictor_.explain_columns(columns, output)

    def _check_state(self) -> None:
        """Take what was loaded from the fitted object; SchemaError if it is of another model."""
        self._check_parameters()
        if not hasattr(self, "predictor_"):
            return
        model = self.predictor_
        same_loss = self._loss.adopt_parameter(model.fitted_loss) == model.fitted_loss
        if model.estimator != type(self).__name__ or not same_loss:
            raise SchemaError(f"the fitted object is that of {model.estimator}, {model.loss!r}")
        if len(self.edf_) != len(model.intercept):
            raise SchemaError("the model has another number of outputs")
        self._set_reader(model.reader)
        if model.classes is not None:
            self.classes_ = model.classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
