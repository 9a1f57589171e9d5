"""From a file of rows to a saved model, to predictions and explanations: what the commands call."""

from __future__ import annotations

import ast
import csv
import io
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import kernelmaps

from ..datasets import Rows, read_rows
from ..maps.base import AdditiveMap, FeatureMap
from ..model_files import FileInfo, load, open_info, save
from .comparison import _checked as checked_targets
from .shapes import Shape, shapes_of

__all__ = [
    "Explanation",
    "FileDescription",
    "FittedModel",
    "Predictions",
    "describe_file",
    "explain_model",
    "fit_rows",
    "parse_map",
    "predict_rows",
]

MODELS = ("additive", "ridge")


@dataclass(frozen=True)
class FittedModel:
    """A fitted model with what is needed to use it on other files.

    Attributes
    ----------
    model : estimator
    metadata : dict
        Names of columns and target, normalisation, task, rows.
    score : float
        Accuracy or R² on the training rows.
    """

    model: Any
    metadata: dict[str, Any]
    score: float

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file."""
        save(self.model, path, metadata=self.metadata)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        known = {key: value for key, value in self.metadata.items() if key != "range"}
        return {"model": repr(self.model), "training_score": self.score, **known}

    def table(self) -> Any:
        """What was fitted, as a rich table."""
        return _two_columns(self.to_dict(), f"{type(self.model).__name__}")


@dataclass(frozen=True)
class Predictions:
    """Predictions with the names of their columns."""

    columns: list[str]
    values: list[list[Any]]

    def __len__(self) -> int:
        return len(self.values)

    def to_csv(self) -> str:
        """Text with one line per row."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.values)
        return stream.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"columns": self.columns, "values": self.values}


@dataclass(frozen=True)
class Explanation:
    """Shape functions of a model, most important first."""

    title: str
    shapes: list[Shape]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"model": self.title, "features": [shape.to_dict() for shape in self.shapes]}

    def table(self) -> Any:
        """Features and how much each moves the score."""
        from rich import box
        from rich.table import Table

        table = Table(title=self.title, box=box.SIMPLE_HEAD)
        for heading in ("feature", "moves the score by", "from", "to"):
            table.add_column(heading, justify="left" if heading == "feature" else "right")
        for shape in self.shapes:
            ends = (f"{shape.grid[0]:.3g}", f"{shape.grid[-1]:.3g}")
            table.add_row(shape.name, f"{shape.importance:.3g}", *ends)
        return table

    def plot(self, path: str | Path) -> Path:
        """Draw one panel per feature (needs matplotlib)."""
        from ._shapes_picture import draw

        return draw(self, Path(path))


@dataclass(frozen=True)
class FileDescription:
    """What `kernelmaps info` says."""

    path: str
    info: FileInfo

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"path": self.path, **asdict(self.info)}

    def table(self) -> Any:
        """As a rich table."""
        shown = self.to_dict() | {"arrays": f"{len(self.info.arrays)} arrays"}
        return _two_columns(shown, self.path)


def fit_rows(
    rows: Rows,
    *,
    model: str = "additive",
    feature_map: str | FeatureMap | None = None,
    task: str = "auto",
    C: float = 1.0,
    normalize: str = "none",
) -> FittedModel:
    """Fit an additive or a ridge model on rows with a target.

    Parameters
    ----------
    rows : Rows
    model : {"additive", "ridge"}
    feature_map : str, map or None
        See :func:`parse_map`; None takes the model's own default.
    task : {"auto", "classification", "regression"}
        "auto" looks at the target: classes if it has few values or strings.
    C : float
        Inverse strength of the regularisation.
    normalize : str
        How the rows were scaled, to be repeated when predicting.
    """
    if model not in MODELS:
        raise ValueError(f"the model must be one of {', '.join(MODELS)}, got {model!r}.")
    chosen = parse_map(feature_map) if isinstance(feature_map, str) else feature_map
    X, y, found = checked_targets(rows.X, rows.y)
    task = found if task == "auto" else task
    if task not in ("classification", "regression"):
        raise ValueError(f"the task must be classification, regression or auto, got {task!r}.")
    if model == "additive":
        kind = "AdditiveClassifier" if task == "classification" else "AdditiveRegressor"
        if chosen is not None and not isinstance(chosen, AdditiveMap):
            raise ValueError(
                f"an additive model needs an additive map, and {type(chosen).__name__} is a joint "
                "one: use --model ridge, or a map such as SplineMap or HomogeneousMap."
            )
        settings: dict[str, Any] = {"C": C}
    else:
        kind = "StreamingRidgeClassifier" if task == "classification" else "StreamingRidge"
        settings = {"alpha": 1 / C}
    target = rows.y if task == "classification" else np.asarray(y, dtype=np.float64)
    fitted = getattr(kernelmaps, kind)(feature_map=chosen, **settings).fit(X, target)
    metadata = {
        "task": task,
        "target": rows.target,
        "columns": rows.columns,
        "normalize": normalize,
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "range": _range(X),
    }
    return FittedModel(fitted, metadata, float(fitted.score(X, target)))


def _range(X: Any) -> list[list[float]] | None:
    """Smallest and largest value of each column, for drawing; not for very wide data."""
    if X.shape[1] > 10_000:
        return None
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(low):
        low, high = low.toarray(), high.toarray()
    return [np.ravel(end).astype(float).tolist() for end in (low, high)]


def predict_rows(
    model: str | os.PathLike[str], data: str | os.PathLike[str], *, proba: bool = False
) -> Predictions:
    """Predict the rows of a file with a saved model, finding its columns by name."""
    metadata, fitted = open_info(model).metadata, load(model)
    if not hasattr(fitted, "predict"):
        raise ValueError(
            f"{os.fspath(model)!r} holds a {type(fitted).__name__}, which does not predict: make "
            "a model with `kernelmaps fit`."
        )
    rows = _rows_for(data, metadata)
    if rows.X.shape[1] != fitted.n_features_in_:
        raise ValueError(
            f"{rows.name} has {rows.X.shape[1]} features, the model was fitted on "
            f"{fitted.n_features_in_}."
        )
    if not proba:
        name = metadata.get("target") or "prediction"
        return Predictions(
            [name], [[value] for value in np.asarray(fitted.predict(rows.X)).tolist()]
        )
    if not hasattr(fitted, "predict_proba"):
        raise ValueError(f"a {type(fitted).__name__} has no probabilities; leave out --proba.")
    classes = [str(item) for item in fitted.classes_]
    return Predictions(classes, np.asarray(fitted.predict_proba(rows.X)).tolist())


def _rows_for(data: Any, metadata: dict[str, Any]) -> Rows:
    """The rows of new data with the columns that a model knows; the target may be absent."""
    columns, target = metadata.get("columns"), metadata.get("target")
    try:
        rows = read_rows(data, target=target)
    except ValueError as error:
        if target is None or ("target" not in str(error) and repr(target) not in str(error)):
            raise
        rows = read_rows(data)  # new data need not have the target
    if columns is not None and rows.columns is not None:
        rows = rows.of_columns(columns)
    return rows.normalized(metadata.get("normalize", "none"))


def explain_model(model: str | os.PathLike[str], *, n_features: int = 12) -> Explanation:
    """Shape functions of a saved additive model (or of a ridge model on an additive map)."""
    metadata, fitted = open_info(model).metadata, load(model)
    shapes = shapes_of(fitted, names=metadata.get("columns"), domain=metadata.get("range"))
    shapes.sort(key=lambda shape: -shape.importance)
    return Explanation(f"{type(fitted).__name__}: {os.fspath(model)}", shapes[:n_features])


def describe_file(path: str | os.PathLike[str]) -> FileDescription:
    """What a file holds."""
    return FileDescription(os.fspath(path), open_info(path))


def parse_map(text: str) -> FeatureMap:
    """A map from text such as ``HomogeneousMap(kernel=chi2, n_components=5)``.

    Only names of maps, names of kernels and literal values are understood; nothing is executed.
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(f"{text!r} is not a map: write Name or Name(setting=value, …).") from None
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    if not isinstance(call.func, ast.Name) or call.args:
        raise ValueError(f"{text!r} is not a map: write Name or Name(setting=value, …).")
    settings = {}
    for item in call.keywords:
        settings[item.arg] = _literal(item.value, text)
    return _map_class(call.func.id)(**_known(call.func.id, settings))


def _literal(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Name):  # kernel=chi2
        return node.id
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id.endswith("Map"):
            return parse_map(ast.unparse(node))
        return _kernel_call(node)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ValueError(f"{ast.unparse(node)!r} in {text!r} is not a plain value.") from None


def _kernel_call(node: ast.Call) -> Any:
    """A kernel with its width: ``Gaussian(sigma=2)``."""
    name = node.func.id  # type: ignore[attr-defined]
    cls = getattr(kernelmaps.kernels, name, None)
    if not isinstance(cls, type) or name not in ("Gaussian", "Laplacian", "Cauchy", "Matern"):
        raise ValueError(f"{name!r} is neither a map nor a kernel with a width.")
    arguments = [ast.literal_eval(item) for item in node.args]
    return cls(*arguments, **{item.arg: ast.literal_eval(item.value) for item in node.keywords})


def _map_class(name: str) -> Any:
    known = [
        n for n, module in kernelmaps._MODULE_OF.items() if module.startswith("kernelmaps.maps.")
    ]
    if name not in known or not hasattr(kernelmaps, name):
        here = ", ".join(n for n in known if hasattr(kernelmaps, n))
        raise ValueError(f"there is no map {name!r}; there are {here}.")
    return getattr(kernelmaps, name)


def _known(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    names: Sequence[str] = _map_class(name)._get_param_names()
    unknown = sorted(set(settings) - set(names))
    if unknown:
        raise ValueError(f"{name} has no setting {', '.join(unknown)}; it has {', '.join(names)}.")
    return settings


def _two_columns(values: dict[str, Any], title: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in values.items():
        if isinstance(value, list) and len(value) > 20:
            value = f"{', '.join(map(str, value[:20]))}, … ({len(value)} in all)"
        if value not in (None, {}, ""):
            table.add_row(key.replace("_", " "), str(value))
    return table
