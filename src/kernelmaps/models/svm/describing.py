"""Shape functions of a fitted machine, and the sample of rows that describes it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..shapes import ShapeFunction
from .model import AdditiveMachine
from .training_summary import SHARED, density_edges

_GRID = 101  # points of a shape function
_FEWEST = 256  # rows that a model is described by, where there are as many


def describe(
    machine: AdditiveMachine, rows: Any, weight: np.ndarray, before: AdditiveMachine | None = None
) -> None:
    """Describe a machine by a sample of rows.

    Parameters
    ----------
    machine : AdditiveMachine
        Its means of terms are set.
    rows : array or CSR
        Of the training, or of one chunk.
    weight : ndarray
        Sample weights.
    before : AdditiveMachine, optional
        The machine before this chunk. Its rows complete a short chunk. Where it was saved, so that
        its rows are gone, and the chunk has one or two rows, its description stays: that of the
        chunk would be all about these.
    """
    sample = sample_rows(rows, weight)
    if before is not None:
        sample = _with_rows_before(sample, np.count_nonzero(weight > 0), before.sample)
    if sample is None:
        machine.describe_like(before)  # type: ignore[arg-type]
    else:
        machine.describe(sample)


def _with_rows_before(rows: Any, counted: int, before: Any) -> Any:
    """A sample of a chunk after rows of the chunks before; None where those alone count."""
    if before is None:
        return rows if counted >= SHARED else None
    alike = before.dtype == rows.dtype and sparse.issparse(before) == sparse.issparse(rows)
    missing = _FEWEST - counted
    if missing <= 0 or not alike:
        return rows
    if counted == 0:
        return before
    stacked = sparse.vstack if sparse.issparse(rows) else np.concatenate
    return stacked([before[-missing:], rows])


def sample_rows(X: Any, weight: np.ndarray) -> Any:
    """One of every few rows of positive weight; where all weights are 0, of all rows."""
    size = np.count_nonzero(weight > 0)
    take_all = size in (0, len(weight))
    size = len(weight) if take_all else size
    step = max(1, -(-size // max(_FEWEST, min(2000, size // 32))))
    # One of each `step` rows, at random: every step-th may be of one kind.
    taken = np.arange(0, size, step)
    taken += np.random.default_rng(0).integers(np.minimum(step, size - taken))
    return X[taken if take_all else np.flatnonzero(weight > 0)[taken]]


def shape_functions(machine: AdditiveMachine, names: list[str]) -> list[ShapeFunction]:
    """The g_j on a grid, with the density of the data below them: one for each feature."""
    key = ("shapes", *names)
    if key not in machine._cache:
        machine._cache[key] = _shape_functions(machine, names)
    return machine._cache[key]


def _shape_functions(machine: AdditiveMachine, names: list[str]) -> list[ShapeFunction]:
    summary = machine.summary
    low, high, dtype = summary.low, summary.high, np.dtype(summary.dtype)
    grid = low + np.linspace(0, 1, _GRID)[:, None] * (high - low)
    grid = np.round(grid) if machine.on_codes or dtype.kind == "u" else grid
    terms = machine.terms(grid.astype(dtype)) - machine.term_means
    shapes = []
    for j, name in enumerate(names):
        points = np.unique(grid[:, j], return_index=True)[1]
        values = terms[:, j, 0] if terms.shape[2] == 1 else terms[:, j]
        shape = ShapeFunction(
            name,
            grid[points, j],
            values[points],
            density_edges(float(low[j]), float(high[j])),
            summary.density[j],
            importance=float(summary.importances[j]),
        )
        shapes.append(shape)
    return shapes
