"""What takes part in a comparison, and how it is measured: maps, exact kernels, yardsticks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from ..exceptions import OutOfDomainWarning
from ..kernels import Kernel
from ..kernels.exponential import Exponential
from ..kernels.stationary import Gaussian
from .candidates import kernel_code, kernel_label
from .errors import KernelError, kernel_error

__all__ = ["Contender", "Problem", "Row", "linear_model", "map_contender", "measure", "yardsticks"]

_SMALL = 1_000_000  # cells, up to which another's threads cost more than they bring


@dataclass(frozen=True)
class Row:
    """One line of a comparison: what was run, how well it does, what it costs.

    Attributes
    ----------
    label, kind, kernel : str
        `kind` is "map", "exact", "linear", "sklearn" or "boosting".
    rows : int
        Rows of the data that it saw (all folds together).
    columns : int or None
        Output columns of the map.
    score, score_std : float or None
        Mean accuracy (or R²) over the folds, and its standard error.
    map_seconds : float
        Fitting the map and mapping the training rows, mean over the folds.
    fit_seconds : float
        Fitting the model on the features.
    predict_seconds : float
        Mapping and predicting the held-out rows.
    bytes : int
        Features (or Gram matrix) of the training rows.
    error : KernelError or None
        Distance from the exact kernel on a sample of rows.
    code : str
        Python that makes it.
    note : str
        What a reader should know: a solver that did not converge, say.
    """

    label: str
    kind: str
    kernel: str
    rows: int
    columns: int | None = None
    score: float | None = None
    score_std: float | None = None
    map_seconds: float = 0.0
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    bytes: int = 0
    error: KernelError | None = None
    code: str = ""
    note: str = ""

    @property
    def seconds(self) -> float:
        """Training: mapping and fitting."""
        return self.map_seconds + self.fit_seconds


@dataclass(frozen=True)
class Problem:
    """Rows, targets, and the way to judge predictions.

    Attributes
    ----------
    task : str
        "classification", "regression" or "none" (no targets).
    """

    X: Any
    y: np.ndarray | None
    task: str
    cv: int
    C: float
    error_rows: Any
    random_state: int

    def folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        options = {"n_splits": self.cv, "shuffle": True, "random_state": self.random_state}
        if self.task != "classification":
            return list(KFold(**options).split(self.X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rare classes in a small sample
            return list(StratifiedKFold(**options).split(self.X, self.y))

    def of_rows(self, chosen: np.ndarray) -> Problem:
        return replace(self, X=self.X[chosen], y=None if self.y is None else self.y[chosen])


@dataclass(frozen=True)
class Contender:
    """Something to compare.

    Attributes
    ----------
    make_map : callable or None
        Makes an unfitted transformer; None for the values themselves.
    exact : Kernel or None
        A kernel machine on exact Gram matrices instead of a linear model.
    truth : Kernel or None
        What the map approximates; None asks the map.
    growth : float
        Exponent of the cost in the number of rows, to predict it.
    max_rows : int or None
        More rows are never used: the cost grows too fast.
    late : int
        What is large comes after what is small, lest a budget end with one family measured.
    """

    label: str
    kind: str
    kernel: str = "–"
    make_map: Callable[[], Any] | None = None
    make_model: Callable[[str], Any] | None = None
    exact: Kernel | None = None
    truth: Kernel | None = None
    growth: float = 1.2
    max_rows: int | None = None
    code: str = ""
    late: int = 0


def map_contender(label: str, feature_map: Any, kernel: str, code: str, late: int = 0) -> Contender:
    """A map under a linear model."""
    return Contender(
        label, "map", kernel, make_map=lambda: clone(feature_map), code=code, late=late
    )


def yardsticks(kernels: list[Kernel], *, size: int, exact_rows: int) -> list[Contender]:
    """Plain linear, boosting, exact kernel machines and scikit-learn's maps for these kernels."""
    found = [Contender("plain linear", "linear", code="LinearSVC()")]
    for kernel in kernels:
        found.append(
            Contender(
                f"exact {kernel_label(kernel)}",
                "exact",
                kernel_label(kernel),
                exact=kernel,
                growth=2.3,
                max_rows=exact_rows,
                code=f"SVC(kernel={kernel_code(kernel)})",
            )
        )
        found += _sklearn_maps(kernel, size)
    found.append(
        Contender(
            "gradient boosting",
            "boosting",
            make_model=_boosting,
            code="HistGradientBoosting…()",
            late=1,
        )
    )
    return found


def _sklearn_maps(kernel: Kernel, size: int) -> list[Contender]:
    from sklearn import kernel_approximation as ka

    makers: list[Any] = []
    if kernel.name == "chi2":
        makers = [
            ka.AdditiveChi2Sampler(sample_steps=2),
            ka.AdditiveChi2Sampler(sample_steps=3),
        ]
    elif isinstance(kernel, Gaussian):
        gamma = 0.5 / kernel.sigma**2
        makers = [
            ka.RBFSampler(gamma=gamma, n_components=size, random_state=0),
            ka.Nystroem(kernel="rbf", gamma=gamma, n_components=size, random_state=0),
        ]
    elif isinstance(kernel, Exponential) and kernel.base.name == "chi2":
        makers = [ka.Nystroem(kernel="chi2", gamma=kernel.gamma, n_components=size, random_state=0)]
    return [
        Contender(
            f"sklearn {type(transformer).__name__} {_size_of(transformer)}, {kernel_label(kernel)}",
            "sklearn",
            kernel_label(kernel),
            make_map=partial(clone, transformer),
            truth=kernel,
            code=repr(transformer),
        )
        for transformer in makers
    ]


def _size_of(transformer: Any) -> int:
    params = transformer.get_params()
    return params.get("n_components") or 2 * params["sample_steps"] - 1


def _boosting(task: str) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    return kind(random_state=0)


# ---- measuring ----------------------------------------------------------------------------------


@dataclass
class _Times:
    map: float = 0.0
    fit: float = 0.0
    predict: float = 0.0
    columns: int | None = None
    bytes: int = 0
    score: float | None = None


def measure(contender: Contender, problem: Problem, seconds: float = np.inf) -> Row:
    """Cross-validate one contender, and hold its map against the exact kernel.

    After `seconds` no further fold is begun.
    """
    notes: list[str] = []
    deadline = perf_counter() + seconds
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", OutOfDomainWarning)
        _warm_up(contender, problem)
        runs: list[Any] = []
        for train, test in problem.folds():
            if runs and perf_counter() > deadline:
                notes.append(f"{len(runs)} of {problem.cv} folds: the time was over")
                break
            with _calm(contender, train.size * problem.X.shape[1]):
                runs.append(_one_fold(contender, problem, train, test))
        error = _error(contender, problem)
    if any(issubclass(item.category, ConvergenceWarning) for item in caught):
        notes.append("the linear solver stopped before it converged")
    scores = [run.score for run in runs if run.score is not None]
    return Row(
        label=contender.label,
        kind=contender.kind,
        kernel=contender.kernel,
        rows=problem.X.shape[0],
        columns=runs[0].columns,
        score=float(np.mean(scores)) if scores else None,
        score_std=float(np.std(scores) / np.sqrt(len(scores))) if scores else None,
        map_seconds=float(np.mean([run.map for run in runs])),
        fit_seconds=float(np.mean([run.fit for run in runs])),
        predict_seconds=float(np.mean([run.predict for run in runs])),
        bytes=runs[0].bytes,
        error=error,
        code=contender.code,
        note="; ".join(notes),
    )


def _calm(contender: Contender, n_cells: int) -> Any:
    """One thread for others' models of little data: their threads would wait for one another."""
    if contender.make_model is None or n_cells > _SMALL:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, "openmp")


def _warm_up(contender: Contender, problem: Problem) -> None:
    """Compile or load the loops outside the timing."""
    few = problem.X[: min(64, problem.X.shape[0])]
    if contender.kind == "map" and contender.make_map is not None:
        contender.make_map().fit(few).transform(few)
    elif contender.exact is not None:
        contender.exact(few)


def _one_fold(
    contender: Contender, problem: Problem, train: np.ndarray, test: np.ndarray
) -> _Times:
    y_train, y_test = (None if problem.y is None else problem.y[i] for i in (train, test))
    X_train, X_test = problem.X[train], problem.X[test]
    times, watch = _Times(), _Watch()
    features = _features(contender, X_train)
    Z_train = features(X_train)
    times.map = watch.lap()
    times.bytes = _nbytes(Z_train)
    times.columns = None if contender.exact is not None else Z_train.shape[1]
    if problem.y is None:
        features(X_test)
        times.predict = watch.lap()
        return times
    model = _model(contender, problem).fit(Z_train, y_train)
    times.fit = watch.lap()
    times.score = float(model.score(features(X_test), y_test))
    times.predict = watch.lap()
    return times


def _features(contender: Contender, X_train: Any) -> Callable[[Any], Any]:
    """From rows to what the model sees, all scaled to a mean k(x, x) of 1 on training rows."""
    if contender.exact is not None:
        kernel = contender.exact
        scale = float(np.mean(kernel.diag(X_train))) or 1.0
        return lambda X: kernel(X, X_train) / scale
    if contender.make_model is not None:
        return lambda X: X.toarray() if sparse.issparse(X) else X
    if contender.make_map is None:
        return _scaled(_as_float, _as_float(X_train))
    foreign = contender.kind == "sklearn"
    rows = _as_float if foreign else (lambda X: X)
    feature_map = contender.make_map().fit(rows(X_train))
    small = feature_map.transform(rows(X_train[:200]))
    return _scaled(lambda X: feature_map.transform(rows(X)), small)


def _scaled(transform: Callable[[Any], Any], Z: Any) -> Callable[[Any], Any]:
    mean = float(Z.multiply(Z).sum() if sparse.issparse(Z) else np.square(Z).sum()) / Z.shape[0]
    factor = 1 / np.sqrt(mean) if mean > 0 else 1.0

    def scaled(X: Any) -> Any:
        Z = transform(X)
        return Z * Z.dtype.type(factor)

    return scaled


def _model(contender: Contender, problem: Problem) -> Any:
    if contender.make_model is not None:
        return contender.make_model(problem.task)
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import SVC

    if contender.exact is None:
        return linear_model(problem.task, problem.C)
    if problem.task == "regression":
        return KernelRidge(alpha=1 / problem.C, kernel="precomputed")
    # One against the rest, as LinearSVC does.
    return OneVsRestClassifier(SVC(kernel="precomputed", C=problem.C))


def linear_model(task: str, C: float) -> Any:
    """The linear model that all features are judged by."""
    from sklearn.linear_model import Ridge
    from sklearn.svm import LinearSVC

    return Ridge(alpha=1 / C) if task == "regression" else LinearSVC(C=C, random_state=0)


def _error(contender: Contender, problem: Problem) -> KernelError | None:
    if contender.make_map is None:
        return None
    train = problem.X[: max(1, problem.X.shape[0] // 2)]
    rows = _as_float if contender.kind == "sklearn" else (lambda X: X)
    feature_map = contender.make_map().fit(rows(train))
    truth = contender.truth or getattr(feature_map, "kernel_", None)
    if truth is None:
        return None
    return kernel_error(feature_map, rows(problem.error_rows), kernel=truth)


def _as_float(X: Any) -> Any:
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _nbytes(Z: Any) -> int:
    if sparse.issparse(Z):
        return int(Z.data.nbytes + Z.indices.nbytes + Z.indptr.nbytes)
    return int(Z.nbytes)


class _Watch:
    def __init__(self) -> None:
        self.last = perf_counter()

    def lap(self) -> float:
        now = perf_counter()
        self.last, elapsed = now, now - self.last
        return elapsed
