r"""Monotone and convex terms.

A term's function is linear between the bins of its column, so that its increments from bin to bin
(and their slopes' increments) decide its shape: :math:`Cβ ≥ 0`. The step of a penalised
least-squares problem with minimum :math:`\hat β` and inverse :math:`V = LL^\top` becomes

.. math:: \min_β ½ (β - \hat β)^\top V^{-1} (β - \hat β), \quad Cβ ≥ 0
          \quad ⇔ \quad \min_{μ ≥ 0} ½ \|(CL)^\top μ + L^{-1} \hat β\|^2,
          \quad β = L\,\big((CL)^\top μ + L^{-1} \hat β\big),

a non-negative least-squares problem, whose solution is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from ...data.frames import column_position
from .codebooks import Codebook

SHAPES = ("increasing", "decreasing", "convex", "concave")
_SIGNS = {1: "increasing", -1: "decreasing"}


def resolve_constraints(given: Any, names: list[str], owner: str) -> dict[int, tuple[str, ...]]:
    """Shapes that are asked for, by column."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError(
            f"{owner}: constraints must be a mapping from columns to {', '.join(SHAPES)}, got "
            f"{given!r}."
        )
    found = {}
    for key, value in given.items():
        j = column_position(key, names, owner, "constraints")
        items: Any = value if isinstance(value, tuple | list) else (value,)
        shapes = tuple(_SIGNS.get(item, item) for item in items)
        if not set(shapes) <= set(SHAPES):
            raise ValueError(
                f"{owner}: the constraint of column {names[j]!r} must be one of "
                f"{', '.join(SHAPES)}, or a tuple of these, got {value!r}."
            )
        for pair in (("increasing", "decreasing"), ("convex", "concave")):
            if set(pair) <= set(shapes):
                raise ValueError(
                    f"{owner}: column {names[j]!r} cannot be both {pair[0]} and {pair[1]}."
                )
        found[j] = shapes
    return found


def cone_of(shapes: tuple[str, ...], book: Codebook, values: np.ndarray) -> np.ndarray:
    """Rows that must be ≥ 0, for a basis with these values at the codes of a column."""
    own, rows = values[1:], []
    steps = np.diff(own, axis=0)
    slopes = steps / np.diff(book.nodes)[:, None]
    for shape in shapes:
        sign = 1.0 if shape in ("increasing", "convex") else -1.0
        rows.append(sign * (steps if shape.endswith("creasing") else np.diff(slopes, axis=0)))
    cone = np.concatenate(rows) if rows else np.zeros((0, values.shape[1]))
    length = np.linalg.norm(cone, axis=1, keepdims=True)
    return cone / np.where(length > 0, length, 1.0)


def nearest(weights: np.ndarray, inverse: np.ndarray, cone: np.ndarray) -> np.ndarray:
    """The minimum of the quadratic problem under Cβ ≥ 0; see the module's docstring."""
    if not (cone @ weights < 0).any():
        return weights
    factor = cholesky(inverse, lower=True)
    start = solve_triangular(factor, weights, lower=True)
    turned = (cone @ factor).T
    multipliers, _ = nnls(turned, -start, maxiter=50 * len(cone))
    return factor @ (turned @ multipliers + start)


def polished(values: np.ndarray, shapes: tuple[str, ...]) -> np.ndarray:
    """Values at codes without the last rounding errors against a direction."""
    own = values[1:]
    if "increasing" in shapes:
        own = np.maximum.accumulate(own, axis=0)
    elif "decreasing" in shapes:
        own = np.minimum.accumulate(own, axis=0)
    return np.concatenate([values[:1], own])
