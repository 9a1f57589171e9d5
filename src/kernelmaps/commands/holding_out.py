"""Which rows of a file are held out to score a model, and the two parts of the rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ..data import Source
from ..data.reading import Holdout, PartOfSource, rows_where
from ..data.sources import SlicedSource, values_at

BLOCK_ROWS = 16384  # rows that are read at a time
FEWEST_ROWS = 20  # training rows below which none are held out


def choose_holdout(option: str, model: Any, source: Source, n_rows: int) -> tuple[Holdout, str]:
    """The rows that are held out, and in words which ones.

    `option` is "auto", "last" or "random". Rows that a column of dates orders are held out from the
    end where the latest are; `model` is a fitted GAM, which says what columns are dates, or None.
    """
    if option != "random" and model is not None:
        blocks = (block.X for block in source.blocks(BLOCK_ROWS))
        ordered = ordering_date(model.reader_, blocks)
        if ordered is not None:
            name, end = ordered
            return Holdout(end, n_rows), f"the latest rows by {name!r}"
    if option == "last":
        return Holdout("last", n_rows), "the last rows"
    return Holdout("random", n_rows), "rows all over the file"


def ordering_date(reader: Any, tables: Iterable[Any]) -> tuple[str, str] | None:
    """The column of dates that rows are sorted by, and where the latest are: "last" or "first"."""
    names = [column.name for column in reader.columns if column.kind == "date"]
    possible_ends = {name: {"last", "first"} for name in names}
    previous: dict[str, np.ndarray] = {}
    for table in tables if names else ():
        for name, dates in reader.dates(table, "fit").items():
            present = dates[~np.isnat(dates)]
            if not len(present):
                continue
            steps = np.diff(np.concatenate([previous.get(name, present[:1]), present]))
            steps = steps.astype(np.int64)
            possible_ends[name] -= {"last"} if (steps < 0).any() else set()
            possible_ends[name] -= {"first"} if (steps > 0).any() else set()
            previous[name] = present[-1:]
    return next(((name, max(ends)) for name, ends in possible_ends.items() if ends), None)


def part_of_rows(source: Source, holdout: Holdout, *, held: bool) -> Source:
    """The rows that are held out, or those that are not."""
    if not isinstance(source, SlicedSource):
        return PartOfSource(source, holdout, held=held)
    mask = holdout.held(0, source.n_rows) == held
    y, w, exposure = (values_at(v, mask) for v in (source.y, source.w, source.exposure))
    return replace(source, X=rows_where(source.X, mask), y=y, w=w, exposure=exposure)


def can_hold_out(source: Source, holdout: Holdout, sample_y: np.ndarray | None, task: str) -> bool:
    """Whether enough is left to fit on: some rows, and two classes.

    `sample_y` are targets of some rows, where not all are in memory.
    """
    if sample_y is None and isinstance(source, SlicedSource):
        sample_y = source.y[~holdout.held(0, source.n_rows)]
    y = np.asarray(sample_y)
    return len(y) >= FEWEST_ROWS and (task == "regression" or len(np.unique(y)) > 1)
