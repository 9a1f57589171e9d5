"""Methods of a comparison: maps with a linear model, and the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._util.devices import refuse_gpu_array
from .._util.schema import State, array, instance, many, names, number, size, text
from .._util.sparse import check_sparse
from ..data.table_reader import TableReader
from ..kernels import Exponential, Gaussian, Kernel, Polynomial
from ..maps.base import JointMap
from .candidates import expression, fit_kernel, kernel_code, kernel_label, needs_scaler

_MOST_LEVELS, _LEAST_COUNT = 50, 5  # levels with an indicator, and rows that have each


class MeanNormScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Multiply all rows by one number, so that their mean squared norm is 1.

    Behind a map φ this makes the mean of k(x, x) ≈ ‖φ(x)‖² equal to 1: a penalty C of a linear
    model then means the same for every kernel and every unit of the data. Zeros stay zeros.

    Attributes
    ----------
    scale_ : float
        The factor.
    n_features_in_ : int
        Columns seen in `fit`.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> Z = km.MeanNormScaler().fit_transform(np.array([[3.0, 4.0], [0.0, 5.0]]))
    >>> float(np.mean(np.sum(Z**2, axis=1)))
    1.0
    """

    _state = State(
        {"scale_": number(above=0), "n_features_in_": size("features")},
        {"feature_names_in_": names},
    )

    def fit(self, X: Any, y: Any = None) -> MeanNormScaler:
        """Learn the factor from the mean squared norm of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored

        Returns
        -------
        self : MeanNormScaler
            The fitted scaler.
        """
        X = self._rows(X, reset=True)
        values = X.data if sparse.issparse(X) else X
        mean = float(np.square(values, dtype=np.float64).sum()) / X.shape[0]
        self.scale_ = float(1 / np.sqrt(mean)) if 0 < mean < np.inf else 1.0
        return self

    def transform(self, X: Any) -> Any:
        """Multiply rows by the factor.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; float32 stays float32, CSR stays CSR.

        Returns
        -------
        ndarray or sparse matrix
            The scaled rows.
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        return X * X.dtype.type(self.scale_)

    def _rows(self, X: Any, *, reset: bool) -> Any:
        name = type(self).__name__
        refuse_gpu_array(X, name, "Pass X.cpu().numpy(), or multiply X by scale_ where it is.")
        check_sparse(X, name)
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32]
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table as numbers, for models that take nothing else.

    Columns are read as the additive models read them: numbers written as text are numbers, dates
    are a trend and its cycles, and IDs and columns of one value are left out. Categories become
    indicators of their levels, and gaps are filled by the median and have an indicator, too.

    Parameters
    ----------
    columns : list of str, optional
        Columns to use, by name, whatever they hold; by default all but those that say nothing.

    Attributes
    ----------
    reader_ : TableReader
        What each column holds, and how it is written.
    medians_ : ndarray of shape (n_features,)
        Of each column of numbers; 0 for categories.
    levels_ : list of list of str
        Levels that have an indicator, by column: the 50 most frequent ones that at least five rows
        have. ``""`` stands for gaps.
    n_features_in_, n_outputs_ : int
        Columns of the table seen in `fit`, and those of the numbers.

    Examples
    --------
    >>> import pandas as pd, kernelmaps as km
    >>> frame = pd.DataFrame({"width": ["0.5 m", None, "1.5 m"] * 5, "kind": list("abb") * 5})
    >>> km.TableEncoder().fit_transform(frame)[:3]
    array([[0.5, 0. , 0. , 1. ],
           [1. , 1. , 1. , 0. ],
           [1.5, 0. , 1. , 0. ]])
    """

    _state = State(
        {
            "reader_": instance((TableReader,)),
            "medians_": array("f8", "features"),
            "levels_": many(many(text())),
            "n_features_in_": size("columns"),
            "n_outputs_": size("outputs"),
        }
    )

    def __init__(self, columns: Sequence[str] | None = None) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn how columns are written, their medians and their frequent levels.

        Parameters
        ----------
        X : frame of shape (n_samples, n_columns)
            Rows.
        y : ignored

        Returns
        -------
        self : TableEncoder
            The fitted encoder.
        """
        name = type(self).__name__
        self.reader_, columns = TableReader.learn_and_read([X], name, terms=self.columns)
        self.n_features_in_ = len(self.reader_.columns)
        self.medians_, self.levels_ = np.zeros(len(columns)), []
        for j, column in enumerate(columns):
            levels = list[str]()
            if column.is_category:
                gaps = column.codes < 0
                counts = np.bincount(column.codes[~gaps])
                order = np.argsort(-counts, kind="stable")[:_MOST_LEVELS]
                levels += [column.levels[k] for k in order if counts[k] >= _LEAST_COUNT]
            else:
                gaps = np.isnan(column.values)
                self.medians_[j] = np.median(column.values[~gaps])
            self.levels_.append(levels + [""] * bool(gaps.any()))
        n_numbers = sum(not column.is_category for column in columns)
        self.n_outputs_ = n_numbers + sum(map(len, self.levels_))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Numbers of the rows.

        Parameters
        ----------
        X : frame of shape (n_samples, n_columns)
            Rows; columns are found by their names.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Numbers, and indicators of levels and gaps.
        """
        check_is_fitted(self)
        parts = []
        columns = self.reader_.read(X, type(self).__name__)
        for column, median, levels in zip(columns, self.medians_, self.levels_, strict=True):
            if column.is_category:
                place = {level: k for k, level in enumerate(levels)}
                codes = np.array([place.get(level, -1) for level in (*column.levels, "")])
                codes = codes[column.codes]  # -1, the last place, is that of gaps
            else:
                codes = np.where(np.isnan(column.values), 0, -1)
                parts.append(np.nan_to_num(column.values, nan=median)[:, None])
            parts.append(codes[:, None] == np.arange(len(levels)))
        return np.hstack(parts).astype(np.float64)

    @property
    def columns_used(self) -> list[str]:
        """Names of the columns of the table that are not left out."""
        return [column.name for column in self.reader_.columns if column.features]

    def _check_state(self) -> None:
        named = self.columns is None or isinstance(self.columns, list)
        if not named or not all(isinstance(name, str) for name in self.columns or ()):
            raise TypeError("columns must be a list of names")

    @property
    def _n_features_out(self) -> int:
        return self.n_outputs_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.no_validation = True  # the reader says what a table may hold
        return tags


def put_behind(encoder: TableEncoder | None, model: Any) -> Any:
    """An unfitted model or map of the rows of a table; without an encoder, the model itself."""
    if encoder is None:
        return model
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    return make_pipeline(clone(encoder), *steps)


class GramMatrix(TransformerMixin, BaseEstimator):
    """Values of a kernel at new rows and the training rows, of which the mean k(x, x) is 1."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def fit(self, X: Any, y: Any = None) -> GramMatrix:
        """Keep the rows."""
        self.X_, self.scale_ = X, float(np.mean(self.kernel.diag(X))) or 1.0
        return self

    def transform(self, X: Any) -> np.ndarray:
        """One column for each training row."""
        return self.kernel(X, None if X is self.X_ else self.X_) / self.scale_


@dataclass(frozen=True)
class Method:
    """Something to compare: an unfitted pipeline.

    Attributes
    ----------
    label : str
    kind : str
        "map", "exact", "linear", "gam", "sklearn" or "boosting".
    pipeline : Pipeline
        It is cloned before it is fitted.
    kernel : str
        Name of the kernel, or "–".
    feature_map : transformer or None
        The step whose error is measured.
    truth : Kernel or None
        What the map approximates; None asks the map.
    max_rows : int or None
        More rows are never used: the cost grows too fast.
    """

    label: str
    kind: str
    pipeline: Pipeline
    kernel: str = "–"
    feature_map: Any = None
    truth: Kernel | None = None
    max_rows: int | None = None

    @property
    def family(self) -> tuple[str, str]:
        """Kind and class of the map: methods that take about as long."""
        return self.kind, type(self.feature_map).__name__

    @property
    def takes_tables(self) -> bool:
        """Whether it takes text, dates and gaps."""
        return self.kind == "gam"

    @property
    def model(self) -> Any:
        """The last step."""
        return self.pipeline[-1]

    def make_features(self) -> Pipeline:
        """The unfitted steps in front of the model."""
        return make_pipeline("passthrough", *map(clone, self.pipeline[:-1]))

    def code(self) -> str:
        """Python that makes it; of an exact machine, its kernel."""
        if self.truth is not None and self.kind == "exact":
            return kernel_code(self.truth)
        return expression(self.pipeline if len(self.pipeline) > 1 else self.model)


def linear_model(task: str, C: float) -> Any:
    """The linear model that all features are judged by."""
    from sklearn.linear_model import Ridge
    from sklearn.svm import LinearSVC

    # The dual solver, which is the default for fewer rows than columns, does not converge in its
    # 1000 passes for C = 100; the primal one does, in a fifth of the time. LIBLINEAR's default
    # tolerance for it is 0.01: digits take a third less time than with scikit-learn's 0.0001, and
    # the accuracies of nine methods differ by 0.3 points at most, in both directions.
    return Ridge(alpha=1 / C) if task == "regression" else LinearSVC(C=C, dual=False, tol=0.01)


def penalty_name(model: Any) -> str | None:
    """The parameter of a model that is C, or 1/C (named alpha); None if it has neither."""
    names = (name for name in model.get_params() if name.split("__")[-1] in ("C", "alpha"))
    return next(names, None)


def get_penalty(model: Any) -> float | None:
    """The penalty C of a linear model or kernel machine; None for models without one."""
    name = penalty_name(model)
    if name is None:
        return None
    value = float(model.get_params()[name])
    return value if name.endswith("C") else 1 / value


def map_method(label: str, feature_map: Any, kernel: str, model: Any, scaler: Any = None) -> Method:
    """A map under a linear model, behind a scaler of the columns where its kernel needs one.

    Joint maps have k(x, x) = 1; the features of all others are brought to that size.
    """
    before = [] if scaler is None else [scaler]
    after = [] if isinstance(feature_map, JointMap) else [MeanNormScaler()]
    pipeline = make_pipeline(*before, feature_map, *after, model)
    return Method(label, "map", pipeline, kernel, feature_map)


def make_column_scaler(sparse: bool) -> StandardScaler:
    """Standardises columns; of sparse data without centring, so that zeros stay zeros."""
    return StandardScaler(with_mean=not sparse)


def scale_rows(kernel: Any, X: Any, random_state: int) -> tuple[Any, Kernel, Any]:
    """Rows as they reach the maps of a kernel, the kernel with its width, and the scaler, or None.

    The scaler of the columns is fitted to X; see `needs_scaler`.
    """
    scaler = make_column_scaler(bool(sparse.issparse(X))) if needs_scaler(kernel) else None
    X = X if scaler is None else scaler.fit_transform(X)
    return X, fit_kernel(kernel, X, random_state), scaler


def add_column_scaler(feature_map: Any, sparse: bool) -> Any:
    """The map, behind a scaler of the columns if its kernel is stationary and its width is open.

    A width that is given, as a number or with a kernel object, is one of the rows as they are.
    """
    parameters = feature_map.get_params(deep=False)
    open_width = isinstance(parameters.get("sigma", "auto"), str)
    if not open_width or not needs_scaler(parameters.get("kernel")):
        return feature_map
    return make_pipeline(make_column_scaler(sparse), feature_map)


def baselines(
    kernels: list[tuple[Kernel, Any]],
    task: str,
    C: float,
    *,
    size: int,
    exact_rows: int,
    sparse: bool,
    with_pairs: bool = False,
) -> list[Method]:
    """Plain linear, GAMs, boosting, exact kernel machines and scikit-learn's maps.

    `kernels` are pairs of a kernel and the scaler of its columns (or None). A GAM takes dense rows;
    there is another one `with_pairs`.
    """
    from ..models.gam.classifier import AdditiveClassifier
    from ..models.gam.regressor import AdditiveRegressor

    model = linear_model(task, C)
    linear = make_pipeline(make_column_scaler(sparse), MeanNormScaler(), model)
    methods = [Method("plain linear", "linear", linear)]
    gam = AdditiveRegressor if task == "regression" else AdditiveClassifier
    for label, pairs in (("GAM", None), ("GAM with pairs", "auto"))[: 1 + with_pairs - sparse]:
        methods.append(Method(label, "gam", make_pipeline(gam(interactions=pairs))))
    methods.append(Method("gradient boosting", "boosting", make_pipeline(_boosting(task))))
    for kernel, scaler in kernels:
        steps = [] if scaler is None else [scaler]
        name = kernel_label(kernel)
        exact = make_pipeline(*steps, GramMatrix(kernel), _kernel_machine(task, C))
        methods.append(
            Method(f"exact {name}", "exact", exact, name, truth=kernel, max_rows=exact_rows)
        )
        for columns, other in _sklearn_maps(kernel, size):
            label = f"sklearn {type(other).__name__} {columns}, {name}"
            pipeline = make_pipeline(*steps, other, MeanNormScaler(), model)
            methods.append(Method(label, "sklearn", pipeline, name, other, truth=kernel))
    return methods


def _kernel_machine(task: str, C: float) -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.preprocessing import KernelCenterer
    from sklearn.svm import SVC

    if task == "regression":
        # KernelRidge has no intercept. Centring the features (through their Gram matrix) and the
        # targets is the same as an intercept that is not penalised, as Ridge has it.
        machine = make_pipeline(KernelCenterer(), KernelRidge(alpha=1 / C, kernel="precomputed"))
        return TransformedTargetRegressor(machine, transformer=StandardScaler(with_std=False))
    return SVC(kernel="precomputed", C=C)


def _boosting(task: str) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    return kind(random_state=0)


def _sklearn_maps(kernel: Kernel, size: int) -> list[tuple[int, Any]]:
    """Columns (per feature of an additive kernel) and the maps of scikit-learn for a kernel."""
    from sklearn import kernel_approximation as ka

    drawn: dict[str, Any] = {"n_components": size, "random_state": 0}
    if kernel.name == "chi2":
        return [(2 * steps - 1, ka.AdditiveChi2Sampler(sample_steps=steps)) for steps in (2, 3)]
    if isinstance(kernel, Gaussian):
        gamma = 0.5 / kernel.sigma**2
        nystroem = ka.Nystroem(kernel="rbf", gamma=gamma, **drawn)
        return [(size, ka.RBFSampler(gamma=gamma, **drawn)), (size, nystroem)]
    if isinstance(kernel, Exponential) and kernel.base.name == "chi2":
        return [(size, ka.Nystroem(kernel="chi2", gamma=kernel.gamma, **drawn))]
    if isinstance(kernel, Polynomial):
        terms = {"degree": kernel.degree, "gamma": kernel.gamma, "coef0": kernel.coef0}
        sketch = ka.PolynomialCountSketch(**terms, **drawn)
        return [(size, sketch), (size, ka.Nystroem(kernel="poly", **terms, **drawn))]
    return []
