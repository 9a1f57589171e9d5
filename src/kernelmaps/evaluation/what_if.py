"""The form of a model's HTML report: the tables that its script computes predictions from.

The script (``what_if.js``) finds the codes of a value and their shares (the two nodes of a number
that it lies between, the level of a category, up to four cells of a pair). Their product with the
values of a term at its codes is the contribution of the term, and that with the functions of the
posterior is a row of the design, whose product with the Cholesky factor of the covariance has the
standard error of the score as its length: the interval is that of `predict(return_std=True)`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..data.columns import Column
from ..data.dates import WEEKDAYS
from ..models.gam.codebooks import OTHER
from ..models.gam.functions import STRAIGHT, is_interpolated, last_code, linear_mean
from ..models.gam.predictor import AdditivePredictor, FittedTerm

# Bytes of a report beside its drawings. An interval of more is left out: its numbers are multiplied
# for each prediction (2 MiB: 10 ms). A form of more is left out.
MAX_POSTERIOR, MAX_TABLES = 2 << 20, 12 << 20
LINKS = ("identity", "log", "logit", "softmax", "cumulative logit")  # that the script has


def form_data(model: AdditivePredictor, rows: Mapping[str, Sequence[Column]]) -> dict[str, Any]:
    """What the form of a report needs, or a sentence that says why there is none.

    It begins with the values that most training rows have, or with one of some `rows`.
    """
    surfaces = [term.name for term in model.terms if term.kind == "surface"]
    if surfaces:
        return {"sentence": f"{surfaces[0]} is a surface, which has no table: there is no form."}
    if model.fitted_loss.link not in LINKS:
        return {"sentence": f"Predictions with the link {model.fitted_loss.link!r} have no form."}
    if sum(term.values.nbytes for term in model.terms) > MAX_TABLES:
        return {"sentence": "The tables of this model are too large for a form."}
    starts = {"typical values": _typical_row(model)}
    for name, columns in rows.items():
        cells = zip(model.books, columns, strict=True)
        starts[name] = [float(book.numbers(column, "")[0]) for book, column in cells]
    return _pack({
        "link": model.fitted_loss.link,
        "hazard": model.estimator == "AdditiveSurvival",
        "thresholds": getattr(model.fitted_loss, "thresholds", None),
        "outputs": model.output_names,
        "classes": [] if model.classes is None else [str(label) for label in model.classes],
        "intercept": model.intercept.tolist(),
        "books": [
            {"category": book.kind == "category", "levels": book.levels, "nodes": book.nodes}
            for book in model.books
        ],
        "inputs": _inputs(model),
        "terms": [_term(model, term) for term in model.terms],
        "moved": [[moved.pair, moved.single, moved.term.values] for moved in model.moved_parts],
        "starts": [
            [name, [None if np.isnan(x) else x for x in values]] for name, values in starts.items()
        ],
        **_posterior(model),
    })  # fmt: skip


def _pack(item: Any) -> Any:
    """The same with arrays as the text of their bytes, of the width that they have."""
    if isinstance(item, dict):
        return {key: _pack(value) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return [_pack(value) for value in item]
    if not isinstance(item, np.ndarray):
        return item
    little_endian = item.astype(item.dtype.newbyteorder("<"))
    return f"f{item.dtype.itemsize}" + b64encode(little_endian.tobytes()).decode()


def _inputs(model: AdditivePredictor) -> list[dict[str, Any]]:
    """Columns of the table that matter, the most important first.

    Each has the positions of the columns of the model that it is read as.
    """
    position = {book.name: j for j, book in enumerate(model.books)}
    importance = dict.fromkeys(position.values(), -1.0)  # of columns without a term
    for term in model.terms:
        for j in term.columns:
            importance[j] = max(importance[j], term.importance)
    inputs = []
    for column in model.reader.columns:
        books = [position[name] for name in column.features]
        largest = max((importance[j] for j in books), default=-1.0)
        if largest < 0:
            continue
        book = model.books[books[0]]
        item: dict[str, Any] = {"name": column.name, "unit": column.unit, "kind": column.kind}
        item["books"] = books
        if column.kind == "date":
            item |= {"parts": column.parts, "weekdays": WEEKDAYS}
        elif len(book.nodes):
            is_integer = book.exact and not (book.nodes % 1).any()
            item |= {"low": book.nodes[0], "high": book.nodes[-1], "whole": is_integer}
        inputs.append((-largest, item))
    return [item for _, item in sorted(inputs, key=lambda pair: pair[0])]


def _typical_row(model: AdditivePredictor) -> list[float]:
    """Medians of numbers and the most frequent levels, as numbers of the engine."""
    row = []
    for book, weight in zip(model.books, model.column_counts, strict=True):
        if book.kind == "category":
            row.append(float(np.argmax(weight[OTHER + 1 :])) if book.levels else -1.0)
        elif len(book.nodes):
            median = float(book.quantiles(weight, 0.5))
            spread = float(np.ptp(book.nodes)) or abs(median) or 1.0
            row.append(round(median, 3 - int(np.floor(np.log10(spread)))))
        else:
            row.append(np.nan)
    return row


def _term(model: AdditivePredictor, term: FittedTerm) -> dict[str, Any]:
    """A term as the script takes it."""
    goes_on = term.extrapolation == "linear"
    plain = {
        "name": term.name, "columns": term.columns, "values": term.values,
        "straight": term.kind in STRAIGHT, "period": term.period,
        # Whether it goes on beyond the training rows, and whether its standard errors do.
        "open": [goes_on, goes_on or term.kind in ("spline", "pair")],
    }  # fmt: skip
    if not term.coarse:
        return plain
    sides = []
    for axis, j in enumerate(term.columns):
        nodes = term.positions[axis] if is_interpolated(term, axis) else np.zeros(0)
        last = last_code(term, axis)
        sides.append({
            "nodes": nodes, "coarse": term.coarse[axis].tolist(), "last": last,
            "mean": linear_mean(term, axis) if last else 0.0,
            "edges": model.books[j].edges,
        })  # fmt: skip
    return plain | {"sides": sides, "across": term.values.shape[1]}


def _posterior(model: AdditivePredictor) -> dict[str, Any]:
    """Functions and Cholesky factors, if they are not too large for a report."""
    posterior, levels = model.posterior, model.posterior.levels
    below = np.tri(posterior.n_coefficients, dtype=bool)
    factors = [factor[below].astype(np.float32) for factor in posterior.cholesky_factors()]
    arrays = [*posterior.bases, *factors]
    if levels is not None:
        arrays += [*levels.loadings, *levels.directions, levels.variances]
    size = sum(array.nbytes for array in arrays)
    if size > MAX_POSTERIOR:
        return {
            "sentence": f"No interval: its covariances take {size / 2**20:.0f} MiB, and a report "
            f"at most {MAX_POSTERIOR >> 20}. predict(X, return_std=True) has the standard error."
        }
    plain: dict[str, Any] = {
        "bases": posterior.bases,
        "widths": [basis.shape[1] for basis in posterior.bases],
        "factors": factors,
    }
    if levels is not None:
        plain["levels"] = {
            "term": levels.term, "loadings": levels.loadings, "directions": levels.directions,
            "variances": [*levels.variances],
        }  # fmt: skip
    return plain
