"""Rows of Dask collections, read partition by partition, and work that is done where they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from .._util.arguments import import_optional
from .columns import check_selection, column_positions, names_of
from .sources import (
    Block,
    RowSample,
    SlicedSource,
    Source,
    check_lengths,
    default_target,
    to_rows,
)

RETRIES = 3  # for errors of a task; a task lost with its worker is rescheduled by Dask itself
FAN_IN = 8  # results that one task merges: a tree of depth 4 merges 4,096 partitions
RESERVED_ROWS = 1 << 40  # for a partition of unknown length, so that row numbers stay distinct


class DaskSource(Source):
    """Partitions of a Dask array or dataframe: delayed X, y, weights, exposure, and first row."""

    parts: list[tuple[Any, ...]]

    def __init__(
        self, X: Any, y: Any = None, w: Any = None, exposure: Any = None, *,
        frames: bool = False, columns: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        # Of a dataframe, the others may be columns, by name.
        if hasattr(X, "columns"):
            if frames:
                y = default_target(X.columns, y)
            named = [name for name in (y, w, exposure) if isinstance(name, str)]
            column_positions(list(X.columns), named, "the Dask dataframe")
            y, w, exposure = (X[v] if isinstance(v, str) else v for v in (y, w, exposure))
            X = X.drop(columns=named)
            if columns is not None:
                check_selection(list(X.columns), columns, "the Dask dataframe")
                X = X[list(columns)]
            self.names = names_of(X)
            rows, width = (float("nan"),) * X.npartitions, len(X.columns)
        else:
            if isinstance(exposure, str):
                raise ValueError(
                    f"exposure={exposure!r} names a column, but X has no names of columns"
                )
            if X.ndim != 2:
                raise ValueError(f"X must have two dimensions, found shape {X.shape}")
            X = X.rechunk({1: -1})
            rows, width = X.chunks[0], X.shape[1]
        roles = {"y": y, "weights": w, "exposure": exposure}
        pieces = [self._align_values(values, what, rows) for what, values in roles.items()]
        lengths_known = not any(map(math.isnan, rows))
        starts = np.cumsum([0, *(rows if lengths_known else [RESERVED_ROWS] * len(rows))])
        self.parts = list(zip(_partitions(X), *pieces, starts.tolist()))
        self.n_rows = int(sum(rows)) if lengths_known else None
        self.n_features, self.frames = width, frames

    @staticmethod
    def _align_values(values: Any, what: str, rows: tuple[Any, ...]) -> list[Any]:
        """Targets or weights, cut where X is cut."""
        if values is None:
            return [None] * len(rows)
        lengths_known = not any(map(math.isnan, rows))
        if hasattr(values, "to_delayed"):
            if lengths_known and hasattr(values, "rechunk") and not np.isnan(values.shape[0]):
                check_lengths(sum(rows), **{what: values})
                values = values.rechunk({0: rows, **dict.fromkeys(range(1, values.ndim), -1)})
            pieces = _partitions(values)
            if len(pieces) != len(rows):
                raise ValueError(
                    f"X has {len(rows)} partitions, {what} has {len(pieces)}: align them first"
                )
            return pieces
        if not lengths_known:
            raise ValueError(
                f"{what} is an array in memory, but the partitions of X have unknown lengths. Pass "
                f"{what} as a Dask collection, or call X.compute_chunk_sizes() first"
            )
        check_lengths(sum(rows), **{what: values})
        return np.split(np.asarray(values), np.cumsum(rows)[:-1])

    def describe(self) -> str:
        return f"the Dask collection of {len(self.parts)} partitions"

    def blocks(self, block_rows: int) -> Iterator[Block]:
        """Partition by partition in this process."""
        for number, part in enumerate(self.parts):
            values = import_optional("dask").compute(*part)
            yield from source_of_partition(values, number, self.frames).blocks(block_rows)

    def head(self, rows: int) -> Block | None:
        """The first rows, which are all that travels."""
        task = import_optional("dask").delayed(_head)
        heads = (_compute(task(part, self.frames, rows)) for part in self.parts)
        return next((block for block in heads if block is not None), None)

    def sample(self, rows: int) -> Block | None:
        """A sample, which is all that travels."""
        return self.merge_parts(_sample, self.frames, rows).block()

    def merge_parts(self, leaf: Callable[..., Any], *arguments: Any) -> Any:
        """``leaf(number, partition, *arguments)`` of all partitions, merged where they are."""
        task, merge = (import_optional("dask").delayed(function) for function in (leaf, _merge))
        nodes = [task(number, part, *arguments) for number, part in enumerate(self.parts)]
        while len(nodes) > 1:
            nodes = [merge(nodes[i : i + FAN_IN]) for i in range(0, len(nodes), FAN_IN)]
        return _compute(nodes[0])


def _compute(task: Any) -> Any:
    """The result of a task, by the current client of Dask, if there is one."""
    return import_optional("dask").compute(task, retries=RETRIES)[0]


def source_of_partition(
    partition: tuple[Any, ...], chunk: int | None = None, frames: bool = False
) -> Source:
    """A partition as a source, where its rows are."""
    X, *roles, start = partition
    y, w, exposure = (None if values is None else np.asarray(values) for values in roles)
    rows = to_rows(X, frames)
    return SlicedSource(rows, y, w, first=start, chunk=chunk, exposure=exposure, frames=frames)


def _partitions(collection: Any) -> list[Any]:
    return list(np.ravel(np.array(collection.to_delayed(), dtype=object)))


def _head(partition: Any, frames: bool, rows: int) -> Block | None:
    return source_of_partition(partition, 0, frames).head(rows)


def _sample(number: int, partition: Any, frames: bool, rows: int) -> RowSample:
    return RowSample.draw(source_of_partition(partition, number, frames), rows)


def _merge(parts: list[Any]) -> Any:
    # Into new sums: Dask may still need its inputs.
    return reduce(lambda total, sums: total.merge(sums), parts, parts[0].zero())
