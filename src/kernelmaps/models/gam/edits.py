"""Edits of a fitted GAM: effects that a person sets in the place of those that were estimated.

The effect of a number is a straight line between the nodes of its column. An edit of an interval
gives the column nodes at its ends and right beside them, so that the effect changes there and
nowhere else. What the columns and the pairs of a model show is what is edited: the part of a pair
that is shown with a column stays as it is, and the term of the column makes up for it.

Standard errors stay those of the fit: a decision has none of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..._util.arguments import is_number, parameter
from ..._util.display import shorten
from .codebooks import CODING, MISSING, Codebook
from .functions import STRAIGHT, curve_of
from .predictor import AdditivePredictor

_LONGEST_LIST = 200  # characters of the levels in the description of an edit
# Even points that an effect given as a function is evaluated at, beside the column's nodes, with
# straight lines between: a jump is as wide as a 256th of the interval.
_FUNCTION_POINTS = 257


def edit_term(
    model: AdditivePredictor, term: Any, effect: Any, between: Any, owner: str
) -> tuple[AdditivePredictor, str]:
    """A model with another effect of a term, and the edit in words; see `edit` of estimators."""
    t = _find_term(model, term, owner)
    name, columns = model.terms[t].name, model.terms[t].columns
    if len(columns) > 1:
        if not is_number(effect) or not np.isfinite(effect) or between is not None:
            raise ValueError(
                f"{owner}: {name!r} is a term of two columns, which can be set to one number "
                "alone: 0 leaves it out."
            )
        return _set_pair(model, t, float(effect)), f"{name} = {effect:g}"
    book, inside = model.books[columns[0]], None
    if book.kind == "number":
        points = np.zeros(0)
        if (end := book.nodes[:1].sum() + model.terms[t].period) > book.nodes[-1:].sum():
            # The line from the last node of a circle to the first one, which the edit may cut.
            model = add_nodes(model, columns[0], np.nextafter([end], -np.inf))
            book = model.books[columns[0]]
        ends, interval = _nodes_of_edit(book, between, owner)
        if callable(effect) and len(book.nodes):
            low, high = np.clip(interval, book.nodes[0], book.nodes[-1])
            points = np.linspace(low, high, _FUNCTION_POINTS)
        model = add_nodes(model, columns[0], np.append(points, ends))
        inside = None if between is None else interval
    elif between is not None:
        raise ValueError(
            f"{owner}: {parameter('between')} is for numbers, and {book.name!r} is a category: "
            "pass a dict of levels and effects."
        )
    old = model.pure_terms[t].values
    new, words = _new_values(model.books[columns[0]], old, effect, inside, owner)
    if not np.isfinite(new).all():
        raise ValueError(f"{owner}: the new effect of {name!r} must be finite.")
    fitted, terms = model.terms[t], list(model.terms)
    terms[t] = replace(
        fitted, values=fitted.values + (new - old), increment_errors=None,
        kind="spline" if fitted.kind in STRAIGHT else fitted.kind,
    )  # fmt: skip
    where = "" if inside is None else " in [{:g}, {:g}]".format(*inside)
    return replace(model, terms=tuple(terms)), f"{name}{where}{words}"


def _find_term(model: AdditivePredictor, term: Any, owner: str) -> int:
    """Position of a term, by its name or by its columns."""
    names = [fitted.name for fitted in model.terms]
    if isinstance(term, str) and term in names:
        return names.index(term)
    keys = term if isinstance(term, tuple | list) else (term,)
    columns = sorted(model.reader.position(key, owner, "term") for key in keys)
    for t, fitted in enumerate(model.terms):
        if sorted(fitted.columns) == columns:
            return t
    shown = " × ".join(model.books[j].name for j in columns)
    raise ValueError(f"{owner}: the model has no term of {shown!r}.")


def _set_pair(model: AdditivePredictor, t: int, effect: float) -> AdditivePredictor:
    """A pair or a surface that is constant; what was shown with single columns stays with them."""
    terms = list(model.terms)
    for moved in model.moved_parts:
        if moved.pair == t:
            single = terms[moved.single]
            terms[moved.single] = replace(single, values=single.values + moved.term.values)
    terms[t] = replace(terms[t], values=np.full_like(terms[t].values, effect), main_parts=())
    return replace(model, terms=tuple(terms))


# -- columns of numbers ---------------------------------------------------------------------------


def _nodes_of_edit(book: Codebook, between: Any, owner: str) -> tuple[np.ndarray, np.ndarray]:
    """Nodes that an edit needs, and the ends of its interval: infinite if it holds beyond, too."""
    try:
        low, high = (None, None) if between is None else between
        ends = -np.inf if low is None else float(low), np.inf if high is None else float(high)
    except (TypeError, ValueError):
        ends = np.inf, -np.inf
    if not ends[0] <= ends[1]:
        raise ValueError(
            f"{owner}: {parameter('between')} must hold two numbers in order (or None for an open "
            f"end), got {between!r}."
        )
    low, high = book.nodes[[0, -1]] if len(book.nodes) else (np.inf, -np.inf)
    if between is not None and (ends[1] < low or ends[0] > high):
        raise ValueError(
            f"{owner}: [{ends[0]:g}, {ends[1]:g}] holds no value of column {book.name!r} "
            f"in fit: {low:g} … {high:g}."
        )
    # An end at or beyond those of the training rows: the effect goes on as it is there.
    interval = np.where([ends[0] <= low, ends[1] >= high], [-np.inf, np.inf], ends)
    finite = interval[np.isfinite(interval)]
    below = np.minimum(np.nextafter(finite, -np.inf), finite - CODING.min_end_width)
    above = np.maximum(np.nextafter(finite, np.inf), finite + CODING.min_end_width)
    return np.concatenate([below, finite, above]), interval


def add_nodes(model: AdditivePredictor, j: int, points: np.ndarray) -> AdditivePredictor:
    """The same model with more nodes of a column of numbers: all functions stay as they are."""
    book = model.books[j]
    nodes = np.union1d(book.nodes, points)
    bins = np.searchsorted(book.edges, nodes, "right")
    middle = np.maximum(0.5 * nodes[:-1] + 0.5 * nodes[1:], np.nextafter(nodes[:-1], np.inf))
    edges = np.sort(np.append(book.edges, middle[np.diff(bins) == 0]))
    old_code = np.append(MISSING, bins + 1)
    curve = next((term for term in model.terms if term.columns == (j,)), None)

    def refine(values: np.ndarray) -> np.ndarray:
        """A function of the column, given at the codes before."""
        if curve is None:
            return values[old_code]
        node_values = curve_of(book, curve, values.astype(np.float64)).values_at(nodes)
        return np.concatenate([values[:1], node_values]).astype(values.dtype)

    terms, bases, books = list(model.terms), list(model.posterior.bases), list(model.books)
    for t, term in enumerate(model.terms):
        if term.columns == (j,):
            is_old = np.append(True, np.isin(nodes, book.nodes))
            terms[t] = replace(
                term, values=refine(term.values), errors=refine(term.errors),
                counts=np.where(is_old, term.counts[old_code], 0.0), increment_errors=None,
            )  # fmt: skip
            bases[t] = refine(bases[t])
        elif term.coarse and j in term.columns:
            axis = term.columns.index(j)
            coarse, parts = list(term.coarse), list(term.main_parts)
            coarse[axis] = coarse[axis][old_code]
            if parts:
                parts[axis] = refine(parts[axis])
            terms[t] = replace(term, coarse=tuple(coarse), main_parts=tuple(parts))
    books[j] = replace(book, nodes=nodes, edges=edges, exact=False)
    posterior = replace(model.posterior, bases=tuple(bases))
    return replace(model, books=tuple(books), terms=tuple(terms), posterior=posterior)


# -- new values at codes --------------------------------------------------------------------------


def _new_values(
    book: Codebook, old: np.ndarray, effect: Any, inside: np.ndarray | None, owner: str
) -> tuple[np.ndarray, str]:
    """The effect at the codes of a column, and what it was set to in words."""
    new = old.copy()
    if isinstance(effect, Mapping):
        return _set_levels(book, new, effect, owner)
    if is_number(effect) and inside is None:
        return np.full_like(old, effect), f" = {effect:g}"
    low, high = (-np.inf, np.inf) if inside is None else inside
    places: Any = book.numbers_of_codes
    codes = np.flatnonzero((places >= low) & (places <= high))
    places = places[codes]
    if book.kind == "category":  # "other" is no level
        places, codes = np.array(book.levels, dtype=object), codes[1:]
    if is_number(effect):
        new[codes] = effect
        return new, f" = {effect:g}"
    if not callable(effect):
        raise ValueError(
            f"{owner}: {parameter('effect')} must be a number, a function of x and the old effect, "
            f"or a dict by level, got {effect!r}."
        )
    old_values = old[codes, 0] if old.shape[1] == 1 else old[codes]
    try:
        returned = np.asarray(effect(places, old_values), dtype=np.float64)
        new[codes] = np.broadcast_to(returned.T, old_values.T.shape).T.reshape(len(codes), -1)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{owner}: the function must take two arrays, the values of the column and the old "
            f"effect, and return numbers of the shape {old_values.shape}: {error}."
        ) from None
    return new, " = a function of the old effect"


def _set_levels(
    book: Codebook, new: np.ndarray, effect: Mapping[Any, Any], owner: str
) -> tuple[np.ndarray, str]:
    """The effect with that of some levels replaced; "missing" and "other" are codes, too."""
    names = ["missing"] if book.kind == "number" else ["missing", "other", *book.levels]
    codes = {name: code for code, name in enumerate(names)}
    if not effect:
        raise ValueError(f"{owner}: {parameter('effect')} names no level.")
    shown: list[str] = []
    for key, value in effect.items():
        if str(key) not in codes:
            levels = shorten(", ".join(map(repr, reversed(codes))), _LONGEST_LIST)
            raise ValueError(
                f"{owner}: column {book.name!r} has no level {key!r}; it has {levels}."
            )
        if np.asarray(value).dtype.kind not in "fiu" or np.size(value) not in (1, new.shape[1]):
            raise ValueError(f"{owner}: the effect of {key!r} must be a number, got {value!r}.")
        new[codes[str(key)]] = value
        shown.append(f"{key} = {', '.join(f'{number:g}' for number in np.ravel(value))}")
    return new, f": {shorten(', '.join(shown), _LONGEST_LIST)}"
