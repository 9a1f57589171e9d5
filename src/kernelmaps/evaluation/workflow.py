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

from ..data import Block, Rows, read_rows
from ..data.columns import no_target
from ..data.prepared import PreparedSource, open_rows
from ..data.reading import CSV
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
    "fit_file",
    "fit_rows",
    "fit_source",
    "parse_map",
    "predict_rows",
]

MODELS = ("additive", "ridge")
_LOOK = 16384  # rows that are looked at together


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
    streamed : bool
        Whether the rows were read block by block, never all at once.
    """

    model: Any
    metadata: dict[str, Any]
    score: float
    streamed: bool = False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file."""
        save(self.model, path, metadata=self.metadata)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        known = {key: value for key, value in self.metadata.items() if key != "range"}
        return {
            "model": repr(self.model),
            "training_score": self.score,
            "streamed": self.streamed,
            **known,
        }

    def table(self) -> Any:
        """What was fitted, as a rich table."""
        shown = self.to_dict()
        name = "R²" if self.metadata["task"] == "regression" else "accuracy"
        shown[f"{name} on the training rows"] = shown.pop("training_score")
        shown["read"] = "block by block" if shown.pop("streamed") else "into memory"
        return _two_columns(shown, f"{type(self.model).__name__}")


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
        shown = self.to_dict() | {
            "arrays": len(self.info.arrays),
            "size": f"{self.info.size:,} bytes",
        }
        shown["metadata"] = {k: v for k, v in self.info.metadata.items() if k != "range"}
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
    chosen = _checked_wishes(model, feature_map, task)
    X, y, found = checked_targets(rows.X, rows.y)
    task = found if task == "auto" else task
    target = rows.y if task == "classification" else np.asarray(y, dtype=np.float64)
    fitted = _estimator(model, task, chosen, C).fit(X, target)
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


def fit_file(
    data: str | os.PathLike[str],
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    normalize: str = "none",
    model: str = "additive",
    **options: Any,
) -> FittedModel:
    """Fit a model on a file: a ridge model block by block, so that memory does not limit it.

    CSV, npz, and the data of additive models, whose solver goes over the rows many times, are read
    into memory. `options` are those of :func:`fit_rows`.
    """
    path = Path(data)
    if model == "ridge" and path.exists() and path.suffix.lower() not in (*CSV, ".npz"):
        source = open_rows(path, target=target, columns=columns, drop=drop, normalize=normalize)
        return fit_source(source, normalize=normalize, **options)
    rows = read_rows(data, target=target, columns=columns, drop=drop, need_target=True)
    return fit_rows(rows.normalized(normalize), model=model, normalize=normalize, **options)


def fit_source(
    source: PreparedSource,
    *,
    feature_map: str | FeatureMap | None = None,
    task: str = "auto",
    C: float = 1.0,
    normalize: str = "none",
) -> FittedModel:
    """Fit a ridge model in one pass over blocks of rows; a second one takes its score.

    What the target is ("auto") is told from a sample of the rows.
    """
    chosen = _checked_wishes("ridge", feature_map, task)
    look = source.sample(_LOOK)
    if look is None:
        raise ValueError(f"{source.describe()} has no rows.")
    if look.y is None:
        raise no_target(source.describe(), source.columns)
    task = checked_targets(look.X, look.y)[2] if task == "auto" else task
    fitted = _estimator("ridge", task, chosen, C).fit(source)
    seen = _Seen()
    for block in source.blocks(_LOOK):
        seen.add(block, fitted.predict(block.X))
    metadata = {
        "task": task,
        "target": source.target,
        "columns": source.columns,
        "normalize": normalize,
        "rows": seen.rows,
        "features": int(look.X.shape[1]),
        "range": seen.range(),
    }
    return FittedModel(fitted, metadata, seen.score(task), streamed=True)


class _Seen:
    """What a pass over the rows gathers: how many, their range, targets and predictions."""

    def __init__(self) -> None:
        self.rows = 0
        self.low: Any = None  # least and largest value of each column, from the first block on
        self.high: Any = None
        self.targets: list[np.ndarray] = []
        self.predictions: list[np.ndarray] = []

    def add(self, block: Block, predictions: np.ndarray) -> None:
        self.rows += block.X.shape[0]
        self.targets.append(block.y)
        self.predictions.append(predictions)
        ends = _range(block.X)
        if ends is not None:
            self.low = ends[0] if self.low is None else np.minimum(self.low, ends[0])
            self.high = ends[1] if self.high is None else np.maximum(self.high, ends[1])

    def range(self) -> list[list[float]] | None:
        if self.low is None:
            return None
        return [np.asarray(end, dtype=float).tolist() for end in (self.low, self.high)]

    def score(self, task: str) -> float:
        from sklearn.metrics import accuracy_score, r2_score

        truth, found = np.concatenate(self.targets), np.concatenate(self.predictions)
        measure = accuracy_score if task == "classification" else r2_score
        return float(measure(truth, found))


def _checked_wishes(model: str, feature_map: Any, task: str) -> FeatureMap | None:
    """The map, after what was asked for has been looked at."""
    if model not in MODELS:
        raise ValueError(f"the model must be one of {', '.join(MODELS)}, got {model!r}.")
    if task not in ("auto", "classification", "regression"):
        raise ValueError(f"the task must be classification, regression or auto, got {task!r}.")
    chosen = parse_map(feature_map) if isinstance(feature_map, str) else feature_map
    if model == "additive" and chosen is not None and not isinstance(chosen, AdditiveMap):
        raise ValueError(
            f"an additive model needs an additive map, and {type(chosen).__name__} is a joint "
            "one: use --model ridge, or a map such as SplineMap or HomogeneousMap."
        )
    return chosen


def _estimator(model: str, task: str, feature_map: FeatureMap | None, C: float) -> Any:
    """The same file gives the same model: whatever is drawn at random is drawn from seed 0."""
    if feature_map is not None and feature_map.get_params().get("random_state", 0) is None:
        feature_map.set_params(random_state=0)
    if model == "additive":
        kind = "AdditiveClassifier" if task == "classification" else "AdditiveRegressor"
        settings: dict[str, Any] = {"C": C, "random_state": 0}
    else:
        kind = "StreamingRidgeClassifier" if task == "classification" else "StreamingRidge"
        settings = {"alpha": 1 / C}
    return getattr(kernelmaps, kind)(feature_map=feature_map, **settings)


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
    named = columns is not None and Path(data).suffix.lower() in (*CSV, ".parquet", ".pq")
    rows = read_rows(data, target=target, columns=columns if named else None, with_target=False)
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
        if value not in (None, {}, ""):
            table.add_row(key.replace("_", " "), _shown(value))
    return table


def _shown(value: Any) -> str:
    """A value as a person reads it: four digits, no brackets, no more than twenty items."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "\n".join(f"{key} = {_shown(item)}" for key, item in value.items())
    if isinstance(value, list):
        more = f", … ({len(value)} in all)" if len(value) > 20 else ""
        return ", ".join(map(_shown, value[:20])) + more
    return str(value)
