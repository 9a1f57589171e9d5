"""Files read block by block: the columns that are asked for, checked cell by cell, and
the rows that are held out to score a model: one in five, chosen by the row's number alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..extras import needed
from ..hashing import mixed_bits
from ..sparse_rows import first_bad
from .columns import Wanted, hold_text
from .opening import open_source
from .sources import Block, Source, values_at
from .suffixes import is_parquet, parquet_dataset


def open_rows(
    path: Path, wanted: Wanted, *, with_target: bool = True, normalize: str = "none"
) -> PreparedSource:
    """Open a file of any format but CSV to be read block by block, as :func:`read_rows` would."""
    target = wanted.target
    try:
        if is_parquet(path):
            source, target = _parquet(path, wanted, with_target)
        else:
            source = open_source(path, target if with_target else None)
    except KeyError as error:
        raise ValueError(str(error.args[0])) from error
    found = getattr(source, "features", None)
    if found is not None and len(found) != source.n_features:
        found = None  # a column of lists stands for many
    if found is None and (wanted.columns is not None or wanted.drop):
        raise ValueError(f"{path} has no names of columns, so that none can be chosen.")
    return PreparedSource(source, found, target, normalize)


def _parquet(path: Path, wanted: Wanted, with_target: bool) -> tuple[Source, str | None]:
    """Only the columns that are asked for, so that others may hold anything."""
    pa = needed("pyarrow")
    data = parquet_dataset(path)
    choice = wanted.found_in(list(data.schema.names), str(path), with_target=with_target)
    kinds = {column: data.schema.field(column).type for column in choice.features}
    texts = [c for c, k in kinds.items() if pa.types.is_string(k) or pa.types.is_large_string(k)]
    if texts:
        raise ValueError(f"{path}: {hold_text(texts)}")
    taken = [*choice.features, *([choice.target] if choice.target else [])]
    data = data.replace_schema(pa.schema([data.schema.field(column) for column in taken]))
    return open_source(data, choice.target), choice.target


class PreparedSource(Source):
    """A source whose cells are finite, whose labels have no gaps, and whose rows may be scaled.

    Attributes
    ----------
    columns : list of str or None
    target : str or None
    """

    def __init__(
        self, source: Source, columns: list[str] | None, target: str | None, normalize: str
    ) -> None:
        self.source, self.columns, self.target = source, columns, target
        self.normalize = normalize
        self.n_rows, self.n_features = source.n_rows, source.n_features

    def files(self) -> list[Path] | None:
        return self.source.files()

    def describe(self) -> str:
        return self.source.describe()

    def blocks(self, block_rows: int, skip: int = 0) -> Iterator[Block]:
        return map(self._prepared, self.source.blocks(block_rows, skip))

    def sample(self, rows: int) -> Block | None:
        block = self.source.sample(rows)
        return None if block is None else self._prepared(block)

    def _prepared(self, block: Block) -> Block:
        X, y = block.X, block.y
        check_cells(X, block.start, self.columns, self.describe())
        if y is not None:
            y = _clean_labels(y, block.start, self.target, self.describe())
        if self.normalize != "none":
            from sklearn.preprocessing import normalize

            X = normalize(X.astype(np.float64), norm=self.normalize)
        return replace(block, X=X, y=y)


def check_cells(X: Any, start: int, columns: list[str] | None, name: str) -> None:
    """Refuse missing and infinite cells by their place."""
    place = first_bad(X)
    if place is None:
        return
    row, column = place
    shown = repr(columns[column]) if columns is not None else str(column)
    raise ValueError(
        f"{name}: row {start + row} (counted from 0), column {shown}: the cell is empty or "
        "infinite. Fill it, or leave the column out with drop=."
    )


def _clean_labels(y: Any, start: int, target: str | None, name: str) -> np.ndarray:
    """Labels as numbers or text; a gap is refused by its place."""
    y = np.asarray(y)
    if y.dtype.kind == "O":  # text of HDF5 comes as bytes
        y = np.array([cell.decode() if isinstance(cell, bytes) else cell for cell in y.tolist()])
    if y.dtype.kind == "S":
        y = np.char.decode(y)
    gaps = {"f": np.isnan, "O": lambda cells: np.equal(cells, None)}.get(y.dtype.kind)
    if gaps is not None and gaps(y).any():
        row = start + int(np.argmax(gaps(y)))
        raise ValueError(
            f"{name}: row {row} (counted from 0): the target {target or 'y'!r} is missing."
        )
    return y


ONE_IN = 5


def held_out(start: int, n: int) -> np.ndarray:
    """Whether rows `start` to `start + n` are held out.

    The choice depends on the row's number alone: the same for a table in memory and for a file read
    in blocks, and unrelated to the order of the rows. The upper bits are taken because the lower
    ones choose the folds of a cross-validation.
    """
    bits = mixed_bits(np.arange(start, start + n)) >> np.uint64(32)
    return bits % np.uint64(ONE_IN) == 0


class PartOfSource(Source):
    """The rows of a source that are held out, or those that are not."""

    def __init__(self, source: Source, *, held: bool) -> None:
        self.source, self.held = source, held
        self.n_features = source.n_features

    def describe(self) -> str:
        part = "one in five rows" if self.held else "four in five rows"
        return f"{part} of {self.source.describe()}"

    def blocks(self, block_rows: int, skip: int = 0) -> Iterator[Block]:
        start = 0
        for number, block in enumerate(self.source.blocks(block_rows)):
            taken = np.flatnonzero(held_out(block.start, len(block)) == self.held)
            if number >= skip and len(taken):
                y, w = (values_at(values, taken) for values in (block.y, block.w))
                yield replace(block, X=block.X[taken], y=y, w=w, start=start)
            start += len(taken)

    def sample(self, rows: int) -> Block | None:
        """Rows of the whole: a map that is fitted on them learns ranges, and no targets."""
        return self.source.sample(rows)
