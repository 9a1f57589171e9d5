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
from .._util.schema import State, names, number, size
from .._util.sparse import check_sparse
from ..kernels import Exponential, Gaussian, Kernel, Polynomial
from ..maps.base import JointMap
from .candidates import expression, fit_kernel, kernel_code, kernel_label, needs_scaler


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


class ColumnSelector(TransformerMixin, BaseEstimator):
    """Select columns of a data frame by their names, whatever else it holds.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns, in the order in which they are wanted.

    Attributes
    ----------
    n_features_in_ : int
        Columns of the frame seen in `fit`.

    Examples
    --------
    >>> import pandas as pd, kernelmaps as km
    >>> frame = pd.DataFrame({"id": [7, 8], "width": [0.5, 1.5]})
    >>> list(km.ColumnSelector(["width"]).fit_transform(frame))
    ['width']
    """

    _state = State({"n_features_in_": size("features")})

    def __init__(self, columns: Sequence[str] = ()) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> ColumnSelector:
        """Check that the frame has the columns.

        Parameters
        ----------
        X : data frame of shape (n_samples, n_features)
            Rows.
        y : ignored

        Returns
        -------
        self : ColumnSelector
            The fitted selector.
        """
        self.transform(X)
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """The columns of a frame.

        Parameters
        ----------
        X : data frame of shape (n_samples, n_features)
            Rows; further columns, and another order of columns, change nothing.

        Returns
        -------
        data frame of shape (n_samples, n_columns)
            The selected columns.
        """
        if not hasattr(X, "columns"):
            raise TypeError(
                "ColumnSelector selects columns by name, and X has no names: pass a data frame."
            )
        missing = [name for name in self.columns if name not in X.columns]
        if missing:
            raise ValueError(f"ColumnSelector: X has no columns {missing}.")
        return X[list(self.columns)]

    def _check_state(self) -> None:
        if not isinstance(self.columns, list) or not all(isinstance(n, str) for n in self.columns):
            raise TypeError("columns must be a list of names")

    @property
    def _n_features_out(self) -> int:
        return len(self.columns)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.no_validation = True  # names are all that it looks at
        return tags


def select_columns(model: Any, columns: Sequence[str] | None) -> Any:
    """An unfitted model or map of these columns of a frame; None: of all."""
    if columns is None:
        return model
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    return make_pipeline(ColumnSelector(list(columns)), *steps)


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


def _penalty_name(model: Any) -> str | None:
    """The parameter of a model that is C, or 1/C (named alpha); None if it has neither."""
    names = (name for name in model.get_params() if name.split("__")[-1] in ("C", "alpha"))
    return next(names, None)


def get_penalty(model: Any) -> float | None:
    """The penalty C of a linear model or kernel machine; None for models without one."""
    name = _penalty_name(model)
    if name is None:
        return None
    value = float(model.get_params()[name])
    return value if name.endswith("C") else 1 / value


def set_penalty(model: Any, C: float) -> Any:
    """The unfitted model with a penalty C."""
    name = _penalty_name(model) or "C"
    return clone(model).set_params(**{name: C if name.endswith("C") else 1 / C})


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
) -> list[Method]:
    """Plain linear, a GAM, boosting, exact kernel machines and scikit-learn's maps.

    `kernels` are pairs of a kernel and the scaler of its columns (or None). A GAM takes dense rows.
    """
    from ..models.gam.classifier import AdditiveClassifier
    from ..models.gam.regressor import AdditiveRegressor

    model = linear_model(task, C)
    linear = make_pipeline(make_column_scaler(sparse), MeanNormScaler(), model)
    methods = [Method("plain linear", "linear", linear)]
    if not sparse:
        gam = AdditiveRegressor() if task == "regression" else AdditiveClassifier()
        methods.append(Method("GAM", "gam", make_pipeline(gam)))
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
