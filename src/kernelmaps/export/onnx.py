"""Export to ONNX: converters for every map and for the additive and ridge models.

Importing this module registers them with skl2onnx; models, and pipelines that contain them, are
then converted as usual:

>>> import kernelmaps.export.onnx  # doctest: +SKIP
>>> from skl2onnx import to_onnx  # doctest: +SKIP
>>> onnx_model = to_onnx(model, X[:1].astype("float32"))  # doctest: +SKIP

:func:`to_onnx` of this module does both. The graphs compute in the type of their input; float32
results agree with ours to about 1e-6.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

try:
    from skl2onnx import to_onnx as _to_onnx
    from skl2onnx import update_registered_converter
    from skl2onnx.common.data_types import (
        DoubleTensorType,
        FloatTensorType,
        Int64TensorType,
        StringTensorType,
    )
except ImportError as error:  # pragma: no cover - depends on the environment
    raise ImportError(
        "kernelmaps.export.onnx needs skl2onnx and onnx: pip install 'kernelmaps[onnx]'"
    ) from error

import kernelmaps

from ..data.text_cells import GAPS
from ..engine.reference import evaluate, evaluate_table
from ..maps.base import PLUGINS
from ..models.gam.functions import exposure_note, input_names, term_values
from ..models.gam.predictor import AdditivePredictor
from ..models.shapes import predictor_of
from ..models.streaming.predictor import LinearPredictor
from ..models.svm.fitted import AdditiveMachine
from .onnx_tracer import BATCH, Trace, Traced, onnx_type

__all__ = ["register", "to_onnx"]

ESTIMATOR_PACKAGES = ("kernelmaps.maps.", "kernelmaps.models.")  # whose estimators have a converter


def to_onnx(
    model: Any, X: Any, *, feature_names: Sequence[str] | None = None, **options: Any
) -> Any:
    """Convert a fitted map, model or pipeline to an ONNX model.

    Parameters
    ----------
    model : fitted estimator, or the predictor of an additive model
    X : array-like
        A row or more, for the number of features and the type (float32 or float64); not looked at
        for models of frames.
    feature_names : sequence of str, optional
        Names of the columns, kept as JSON in the metadata under ``feature_names``; by default those
        that the model was fitted with. The order of classes is kept under ``classes``, what was
        edited after the fit under ``edits``, and that a model with an exposure predicts for one
        unit of it under ``note``.
    **options : dict
        Passed to ``skl2onnx.to_onnx``.

    Returns
    -------
    onnx.ModelProto
        Classifiers have the outputs ``label`` and ``scores`` (the values of `decision_function`,
        with one column for two classes), those with `predict_proba` also ``probabilities``; all
        others have ``variable``. A model of a frame has an input for each column, of shape
        (rows, 1) and of the column's name: float64 for numbers, NaN where missing, and strings for
        categories, ``""`` (or "NA" and such words, as in `predict`) where missing. Spaces around
        these are ignored; tabs and other blanks are not. A column that is named as an output has
        another name, with a warning.
    """
    predictor = predictor_of(model)
    columns = _table_inputs(predictor) if isinstance(predictor, AdditivePredictor) else None
    if columns is None:
        graph = _to_onnx(model, np.asarray(X[:1]), **options)
    else:
        graph = _to_onnx(model, initial_types=columns, **options)
        _name_inputs(graph.graph, [name for name, _ in columns])
    if feature_names is None:
        feature_names = input_names(model)
    labels = {"feature_names": feature_names, "classes": getattr(model, "classes_", None)}
    labels["edits"] = getattr(predictor, "edits", ()) or None
    labels["note"] = exposure_note(model) or None
    for key, values in labels.items():
        if values is not None:
            entry = graph.metadata_props.add()
            entry.key, entry.value = key, json.dumps(np.asarray(values).tolist())
    return graph


def _name_inputs(graph: Any, names: Sequence[str]) -> None:
    """Give inputs the names of their columns, of which skl2onnx keeps letters and digits alone."""
    places = {item.name: name for item, name in zip(graph.input, names, strict=True)}
    made = {name for node in graph.node for name in node.output}
    made |= {item.name for item in (*graph.output, *graph.initializer)}
    clashes = {old: name for old, name in places.items() if old != name and name in made}
    for old in clashes:
        del places[old]
    for item in graph.input:
        item.name = places.get(item.name, item.name)
    for node in graph.node:
        node.input[:] = [places.get(name, name) for name in node.input]
    if clashes:
        words = ", ".join(f"{name!r} is the input {old!r}" for old, name in clashes.items())
        warnings.warn(
            f"to_onnx: the graph has other results of the same name as columns: column {words}.",
            stacklevel=3,
        )


def register(*more: type) -> list[str]:
    """Register a converter for every map and model of this version.

    Parameters
    ----------
    *more : classes
        Maps that you wrote and have not registered (`kernelmaps.maps.register`). Their graph is
        made from their spec.

    Returns
    -------
    list of str
        Names of the registered classes.
    """
    public = [
        name
        for name, module in kernelmaps._MODULE_OF.items()
        if module.startswith(ESTIMATOR_PACKAGES)
    ]
    listed = [*(getattr(kernelmaps, name) for name in public), *PLUGINS.values(), *more]
    classes = [cls for cls in listed if isinstance(cls, type) and issubclass(cls, BaseEstimator)]
    for cls in (*classes, AdditivePredictor, AdditiveMachine, LinearPredictor):
        update_registered_converter(
            cls, f"Kernelmaps{cls.__name__}", _shapes, _convert, parser=_parse, overwrite=True
        )
    return [cls.__name__ for cls in classes]


# ---- what skl2onnx asks for ---------------------------------------------------------------------


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    alias = f"Kernelmaps{type(model).__name__}"
    operator = scope.declare_local_operator(alias, model)
    operator.inputs = inputs
    kind = _real_type(inputs)
    outputs = {"variable": kind}
    if hasattr(model, "classes_"):
        strings = model.classes_.dtype.kind in "UO"
        outputs = {"label": StringTensorType if strings else Int64TensorType, "scores": kind}
        outputs |= {"probabilities": kind} if hasattr(model, "predict_proba") else {}
    for name, tensor_type in outputs.items():
        operator.outputs.append(scope.declare_local_variable(name, tensor_type()))
    return operator.outputs


def _real_type(inputs: Any) -> type:
    """Type of the results: float32 where that is what all numbers of the input are."""
    kinds = [type(item.type) for item in inputs if not isinstance(item.type, StringTensorType)]
    if kinds and all(issubclass(kind, FloatTensorType) for kind in kinds):
        return FloatTensorType
    return kinds[0] if len(inputs) == 1 and kinds else DoubleTensorType


def _shapes(operator: Any) -> None:
    source = operator.inputs[0].type
    model = predictor_of(operator.raw_operator)
    columns = isinstance(model, AdditivePredictor) and len(operator.inputs) == len(model.books)
    if not (columns or isinstance(source, FloatTensorType | DoubleTensorType)):
        raise TypeError(
            f"{type(operator.raw_operator).__name__}: ONNX input must be float32 or float64, got "
            f"{source}. Pass X[:1].astype('float32') to to_onnx."
        )
    rows = source.shape[0] if source.shape else None
    for output in operator.outputs:
        flat = isinstance(output.type, StringTensorType | Int64TensorType)
        output.type.shape = [rows] if flat else [rows, None]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    model = predictor_of(operator.raw_operator)
    dtype = np.float64 if _real_type(operator.inputs) is DoubleTensorType else np.float32

    def emit(op: str, inputs: list[str], **attributes: Any) -> str:
        output = scope.get_unique_variable_name(op.lower())
        name = scope.get_unique_operator_name(op)
        version = min(container.target_opset, _VERSIONS.get(op, 13))
        attributes = {"op_version": version, **attributes}
        outputs = [output, *([f"{output}_counts"] if op == "StringSplit" else [])]
        container.add_node(op, inputs, outputs, name=name, **attributes)
        return output

    def constant(values: np.ndarray) -> str:
        name, kind = scope.get_unique_variable_name("constant"), onnx_type(values.dtype)
        container.add_initializer(name, kind, list(values.shape), values.ravel().tolist())
        return name

    trace = Trace(emit, constant)
    X: Any = trace.input(operator.inputs[0].full_name, int(model.n_features_in_), dtype)
    if len(operator.inputs) > 1 or isinstance(operator.inputs[0].type, StringTensorType):
        X = [_column(trace, item, dtype) for item in operator.inputs]
    results = _formula(trace, model, X)
    for result, output in zip(results, operator.outputs, strict=True):
        identity = scope.get_unique_operator_name("Identity")
        container.add_node("Identity", [result.name], output.full_name, name=identity)


def _column(xp: Trace, item: Any, dtype: Any) -> Traced:
    """The input of one column; whole numbers and others become floats."""
    if isinstance(item.type, StringTensorType):
        return Traced(xp, item.full_name, (BATCH, 1), object)
    kinds = {DoubleTensorType: np.float64, FloatTensorType: np.float32}
    column = Traced(xp, item.full_name, (BATCH, 1), kinds.get(type(item.type), np.int64))
    return column if column.dtype == dtype else xp.astype(column, dtype)


_VERSIONS = {"Shape": 15, "Reshape": 14, "StringSplit": 20, "RegexFullMatch": 20}


# ---- formulas -----------------------------------------------------------------------------------


def _formula(xp: Trace, model: Any, X: Any) -> list[Traced]:
    """Results of a model; X is a matrix, or the list of its columns."""
    name = type(model).__name__
    if getattr(model, "_pairwise", False):
        raise ValueError(
            f"{name}: multi_class='ovo' has no form in ONNX. Train it with multi_class='ovr'."
        )
    if hasattr(model, "spec_"):
        return [evaluate(model.spec_, X, xp=xp)]
    if name == "StreamingPCA":
        Z = _map_rows(xp, model, X)
        return [(Z - model.mean_.astype(X.dtype)) @ model.components_.T]
    linear = isinstance(model, LinearPredictor)
    if linear:
        coef, intercept = model.weights
        scores = _map_rows(xp, model, X) @ coef.T + intercept.astype(X.dtype)
    else:
        scores = _additive_scores(xp, model, X)
    if hasattr(model, "classes_"):
        outputs = [_labels(xp, model, scores), scores]
        has_probabilities = hasattr(model, "predict_proba")
        return [*outputs, _probabilities(xp, model, scores)] if has_probabilities else outputs
    link = getattr(model, "_link", "identity")
    if link == "identity":
        if scores.shape[1] == 1 or linear:
            return [scores]
        log_scale = scores[:, 1][:, None]
        scale = xp.node("Exp", [log_scale], log_scale.shape, scores.dtype)
        return [xp.concat([scores[:, 0][:, None], scale], axis=1)]
    operator = {"log": "Exp", "logit": "Sigmoid"}[link]
    return [xp.node(operator, [scores], scores.shape, scores.dtype)]


def _additive_scores(xp: Trace, model: Any, X: Any) -> Traced:
    if isinstance(model, AdditivePredictor):
        columns = X
        if not isinstance(X, list):  # one matrix, with the columns that fit left out
            formats = enumerate(model.reader_.columns)
            columns = [X[:, j][:, None] for j, column in formats if column.features]
        return _table_scores(xp, model, columns)
    curve_terms = model.curve_terms()
    if curve_terms is not None:
        spec, weights, offset = curve_terms
        return evaluate(spec, X, xp=xp) @ weights.reshape(-1, len(offset)) + offset.astype(X.dtype)
    table, offset = model.terms_table()
    terms = evaluate_table(table, X, xp)
    feature_terms = xp.reshape(terms, (X.shape[0], table.n_features, len(offset)))
    return xp.sum(feature_terms, axis=1) + offset.astype(X.dtype)


def _map_rows(xp: Trace, model: Any, X: Traced) -> Traced:
    """φ(X) of a streaming model: none, one map, or several side by side."""
    blocks = []
    for group in model._fitted_maps.parts:
        Z = X
        if group.columns is not None:
            columns = np.arange(model.n_features_in_)[group.columns]
            Z = xp.take(X, columns, axis=1)
        steps = [group.map] if group.map is not None else []
        if isinstance(group.map, Pipeline):
            steps = [step for _, step in group.map.steps]
        for step in steps:
            Z = _step(xp, step, Z, type(model).__name__)
        blocks.append(Z)
    return blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=1)


def _step(xp: Trace, step: Any, X: Traced, owner: str) -> Traced:
    """A map of ours, or the scaler of columns in front of one."""
    if hasattr(step, "spec_"):
        return evaluate(step.spec_, X, xp=xp)
    if not isinstance(step, StandardScaler):
        raise TypeError(
            f"{type(step).__name__} inside {owner} is not a map of kernelmaps: put it before the "
            "model in a pipeline to export both."
        )
    X = X if step.mean_ is None or not step.with_mean else X - step.mean_.astype(X.dtype)
    return X if step.scale_ is None else X / step.scale_.astype(X.dtype)


def _labels(xp: Trace, model: Any, scores: Traced) -> Traced:
    """The class of the highest score; for two classes, the sign of the only one."""
    if scores.shape[1] == 1:
        best = xp.astype(xp.reshape(scores > 0, (-1,)), np.int64)
    else:
        best = xp.node("ArgMax", [scores], scores.shape[:1], np.int64, axis=1, keepdims=0)
    if getattr(model, "_link", "") == "cumulative logit":
        p = _probabilities(xp, model, scores)
        best = xp.node("ArgMax", [p], p.shape[:1], np.int64, axis=1, keepdims=0)
    classes = np.asarray(model.classes_)
    if classes.dtype.kind in "UO":
        classes = classes.astype(object)
        return xp.node("Gather", [_strings(xp, classes), best], best.shape, object, axis=0)
    return xp.take(classes.astype(np.int64), best, axis=0)


def _probabilities(xp: Trace, model: Any, scores: Traced) -> Traced:
    """Sigmoids of the scores, scaled to sum to one; equal where all of them are zero.

    Of a softmax link, that of the scores.
    """
    if getattr(model, "_link", "") == "softmax" and scores.shape[1] > 1:
        return xp.node("Softmax", [scores], scores.shape, scores.dtype, axis=1)
    if getattr(model, "_link", "") == "cumulative logit":
        below = np.array(model.fitted_loss.thresholds, scores.dtype) - scores
        reached = xp.node("Sigmoid", [below], below.shape, below.dtype)
        ends = [scores * 0, reached, scores * 0 + scores.dtype.type(1)]
        reached = xp.concat(ends, axis=1)
        return reached[:, 1:] - reached[:, :-1]
    p = xp.node("Sigmoid", [scores], scores.shape, scores.dtype)
    if scores.shape[1] == 1:
        other = xp.node("Sigmoid", [-scores], scores.shape, scores.dtype)
        return xp.concat([other, p], axis=1)
    p = p + scores.dtype.type(1e-30)
    return p / xp.reshape(xp.sum(p, axis=1), (-1, 1))


def _strings(xp: Trace, values: np.ndarray) -> Traced:
    from onnx import TensorProto, helper

    encoded = [str(item).encode() for item in values]
    tensor = helper.make_tensor("classes", TensorProto.STRING, [len(encoded)], encoded)
    return xp.node("Constant", [], values.shape, object, value=tensor)


# ---- tables -------------------------------------------------------------------------------------

# One input for each column, or one matrix of numbers. A category is a column of strings where
# columns have inputs of their own, and a number in a matrix. NaN is a missing number.
_LABELS = {"op_domain": "ai.onnx.ml", "op_version": 2}
_MISSING = rf"(?i)\s*(?:{'|'.join(map(re.escape, GAPS))})\s*"


def _table_inputs(model: AdditivePredictor) -> list[tuple[str, Any]] | None:
    """Names and types of a column's inputs; None where one matrix of numbers serves."""
    books = model.books
    words = any(book.kind == "category" and not _are_numbers(book.levels) for book in books)
    if not (model.reader.named or words):
        return None
    kinds = {"category": StringTensorType, "number": DoubleTensorType}
    return [(book.name, kinds[book.kind]([None, 1])) for book in books]


def _are_numbers(levels: Sequence[str]) -> bool:
    try:
        return all(np.isfinite(float(level)) for level in levels)
    except ValueError:
        return False


def _table_scores(xp: Trace, table: AdditivePredictor, columns: Sequence[Traced]) -> Traced:
    """Scores of rows: shape (rows, outputs). `columns` have the shape (rows, 1) each."""
    functions = table.functions
    dtype = next((x.dtype for x in columns if x.dtype.kind == "f"), np.dtype(np.float64))
    pairs = zip(table.books, columns, strict=True)
    rows = xp.concat([_numbers(xp, book, column, dtype) for book, column in pairs], axis=1)
    function_values = evaluate_table(
        functions.table, xp.take(rows, functions.columns, axis=1), xp, functions.missing
    )
    scores = xp.zeros((BATCH, len(table.intercept)), dtype=dtype) + table.intercept
    for values in term_values(table.terms, function_values, xp):
        scores = scores + values
    return scores


def _numbers(xp: Trace, book: Any, x: Traced, dtype: Any) -> Traced:
    """A column as numbers: levels by their position, −1 for others; NaN if missing."""
    if book.kind == "number":
        return x
    if x.dtype.kind == "O":
        # No split: one part without the spaces around it, and none where all rows are empty.
        text = xp.node("StringSplit", [x], (*x.shape, 1), object, maxsplit=0)
        numbers = xp.node(
            "LabelEncoder", [text], text.shape, np.float32, keys_strings=["", *book.levels],
            values_floats=np.arange(-1.0, len(book.levels)).tolist(), default_float=-1.0, **_LABELS,
        )  # fmt: skip
        missing = xp.node("RegexFullMatch", [x], x.shape, bool, pattern=_MISSING)
        return xp.where(missing, np.nan, xp.astype(xp.sum(numbers, axis=2), dtype))
    levels = np.array([[float(level) for level in book.levels]], dtype)
    same = xp.astype(x == levels, dtype)
    place = xp.sum(same * np.arange(1.0, levels.size + 1), axis=1)[:, None] - 1.0
    return xp.where(x != x, x, place)


register()
