"""What a term adds to the score, in a line of text: a curve of blocks, levels, or cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.display import shortened
from ..models.shapes import PairFunction

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH, _SHORT = 16, 10  # blocks of a curve, and of one of several
_LEVELS = 6  # of a category that are named


def describe_effect(function: Any, output: int = -1) -> str:
    """A shape function or a pair in one line; of several outputs, that of one."""
    if isinstance(function, PairFunction):
        return _cells(function, output)
    values = function.values.reshape(len(function.grid), -1)[:, output]
    text = _curve(function, values) if function.levels is None else _levels(function, values)
    if function.missing is not None:
        text += f"; missing {np.ravel(function.missing[0])[output]:+.3g}"
    return text


def describe_effects(function: Any) -> list[str]:
    """A shape function or a pair in a few characters for each of several outputs."""
    n = function.values.shape[-1]
    if isinstance(function, PairFunction):
        spans = np.ptp(function.values.reshape(-1, n), axis=0)
        return [f"± {span / 2:.2g}" for span in spans]
    if function.levels is None:
        return [_blocks(function.grid, function.values[:, k], _SHORT) for k in range(n)]
    best = enumerate(function.values.argmax(axis=0))
    return [f"{shortened(function.levels[i], 14)} {function.values[i, k]:+.2g}" for k, i in best]


def _curve(function: Any, values: np.ndarray) -> str:
    """``18 ▁▂▄▆█ 90``: the function from the least to the largest value of the feature."""
    grid, names = function.grid, dict(function.ticks or ())
    if len(grid) < 2:
        return f"{grid[0]:.4g}"
    low, high = float(grid[0]), float(grid[-1])
    size = max(abs(low), abs(high), 1e-300)
    # Enough digits to tell the ends from each other, and none in scientific notation up to 10¹⁰.
    digits = 3 + int(np.ceil(np.log10(size / max(high - low, 1e-300))))
    digits = min(15, max(4, digits, int(np.log10(size)) + 1 if 1 <= size < 1e10 else 0))
    ends = f"{values.min():+.3g} to {values.max():+.3g}"
    first, last = (names.get(end, f"{end:.{digits}g}") for end in (low, high))
    return f"{first} {_blocks(grid, values, _WIDTH)} {last}, {ends}"


def _blocks(grid: np.ndarray, values: np.ndarray, width: int) -> str:
    """A curve as blocks of eight heights."""
    at = np.interp(np.linspace(grid[0], grid[-1], width), grid, values)
    low, high = float(at.min()), float(at.max())
    steps = (at - low) / (high - low or 1.0) * (len(_BLOCKS) - 1)
    return "".join(_BLOCKS[round(step)] for step in steps)


def _levels(function: Any, values: np.ndarray) -> str:
    """Levels with the largest effects, from the highest to the lowest."""
    largest = np.argsort(-np.abs(values), kind="stable")[:_LEVELS]
    order = sorted(largest.tolist(), key=lambda k: -values[k])
    text = ", ".join(f"{shortened(function.levels[k])} {values[k]:+.3g}" for k in order)
    more = len(values) - len(order)
    return f"{text}, … ({more} more)" if more > 0 else text


def _cells(pair: PairFunction, output: int) -> str:
    """The highest and the lowest cell that training rows were in."""
    values = pair.values if pair.values.ndim == 2 else pair.values[..., output]
    values = np.where(pair.density > 0, values, np.nan)
    extremes = []
    for place in (np.nanargmax(values), np.nanargmin(values)):
        i, j = (int(k) for k in np.unravel_index(place, values.shape))
        cell = f"{shortened(pair.first[i])} × {shortened(pair.second[j])}"
        extremes.append(f"{cell} {values[i, j]:+.3g}")
    return ", ".join(extremes)
