"""Sources of rows: arrays, .npy files and streams of chunks, read block by block.

`open_source` turns an array, a file or a stream into a `Source`, whose `blocks` are the only thing
that the fold sees.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import tee
from typing import Any

import numpy as np

from .._util.arguments import refuse_masked
from .._util.lazy import pa, scipy
from .._util.sparse import check_sparse, dense, is_sparse, naming_text
from .._util.threads import mixed_bits
from .columns import check_order, is_frame, names_of, without_named

_ROLES = ("targets", "weights", "exposures")


@dataclass(frozen=True)
class Block:
    """Some consecutive rows.

    Attributes
    ----------
    X : ndarray or CSR array of shape (B, d)
        The rows; of tables also a frame.
    y, w, exposure : ndarray or None
        Targets, weights and exposures of these rows.
    chunk, row : int
        The chunk as the user counts it, and the place of the first row within it.
    start : int
        Number of the first row in the whole.
    positions : ndarray of int or None
        Which rows of a larger block these are, where some are left out.
    """

    X: Any
    y: Any = None
    w: Any = None
    chunk: int = 0
    row: int = 0
    start: int = 0
    exposure: Any = None
    positions: np.ndarray | None = None

    def __len__(self) -> int:
        return self.X.shape[0]

    def take(self, rows: slice | np.ndarray) -> Block:
        """Return some of the rows.

        Parameters
        ----------
        rows : slice or ndarray of int
            Which ones; a slice with a start and without a step.

        Returns
        -------
        Block
            They, with their targets, weights and exposures.
        """
        y, w, exposure = (values_at(item, rows) for item in (self.y, self.w, self.exposure))
        block = replace(self, X=take_rows(self.X, rows), y=y, w=w, exposure=exposure)
        if isinstance(rows, slice):
            return replace(block, row=self.row + rows.start, start=self.start + rows.start)
        return replace(block, positions=rows if self.positions is None else self.positions[rows])

    def place(self, k: int) -> str:
        """Say where a row is, for messages.

        Parameters
        ----------
        k : int
            Its position in this block.

        Returns
        -------
        str
            Its chunk, and its number there and in the whole.
        """
        k = k if self.positions is None else int(self.positions[k])
        return f"chunk {self.chunk}, row {self.row + k} (row {self.start + k} of the data)"


def join_blocks(blocks: list[Block]) -> Block:
    """Blocks one below the other, which have no places any more."""
    y, w, exposure = (
        None if values[0] is None else np.concatenate(values)
        for values in zip(*((block.y, block.w, block.exposure) for block in blocks))
    )
    return Block(stack_rows([block.X for block in blocks]), y, w, exposure=exposure)


def take_rows(X: Any, rows: Any) -> Any:
    """Some rows of an array, sparse matrix, frame, series or pyarrow table; by number, a copy."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    by_number = not isinstance(rows, slice) and hasattr(X, "combine_chunks")  # pyarrow
    return X.take(rows) if by_number else X[rows]


def stack_rows(parts: list[Any]) -> Any:
    """Arrays, sparse matrices, frames or pyarrow tables one below the other."""
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts)
    if is_sparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    return pa.concat_tables(parts) if hasattr(parts[0], "combine_chunks") else np.vstack(parts)


class Source:
    """Rows that can be read block by block.

    Attributes
    ----------
    n_rows, n_features : int or None
        Where known beforehand.
    once : bool
        Whether it can be read only once (a generator).
    parts : list or None
        Of Dask: delayed (X, y, weights, exposure) of each partition, which are folded where they
        are, not here, and the number of its first row.
    names : list of str or None
        Names of the columns, where there are any; of a stream, once its first chunk was read.
    """

    n_rows: int | None = None
    n_features: int | None = None
    once = False
    parts: list[tuple[Any, ...]] | None = None
    names: list[str] | None = None

    def blocks(self, block_rows: int) -> Iterator[Block]:
        """Read the rows block by block.

        Parameters
        ----------
        block_rows : int
            Rows of a block, at most.

        Yields
        ------
        Block
            Consecutive rows.
        """
        raise NotImplementedError

    def head(self, rows: int) -> Block | None:
        """Return some of the first rows, to look at; a stream still gives them afterwards.

        Parameters
        ----------
        rows : int
            How many, at most.

        Returns
        -------
        Block or None
            The rows; None if there are none.
        """
        return next((block for block in self.blocks(rows) if len(block)), None)

    def sample(self, rows: int) -> Block | None:
        """Return rows to fit a map on: all, or a random sample with the ends of all columns.

        Of what can be read only once, these are the first rows.

        Parameters
        ----------
        rows : int
            How many; those with the least or the largest value of a column come on top.

        Returns
        -------
        Block or None
            The rows; None if there are none.
        """
        return self.head(rows) if self.once else RowSample.draw(self, rows).block()

    def column(self, position: int) -> Iterator[Block]:
        """Read one column of all rows, in blocks.

        Parameters
        ----------
        position : int
            Position of the column.

        Yields
        ------
        Block
            Consecutive rows of this column alone.
        """
        for block in self.blocks(1 << 18):
            X = block.X.iloc if hasattr(block.X, "iloc") else block.X
            is_arrow = hasattr(X, "combine_chunks")
            yield replace(block, X=X.select([position]) if is_arrow else X[:, [position]])

    def labels(self) -> Iterator[Block]:
        """Read all rows, with as few columns as can be: targets and weights are what is wanted.

        Yields
        ------
        Block
            Consecutive rows.
        """
        return self.blocks(1 << 20)

    def keep_chunks(self) -> None:
        """Keep what can be read only once in a temporary file, so that it can be read again."""

    def describe(self) -> str:
        """Describe the source in words, for messages.

        Returns
        -------
        str
            The words.
        """
        return f"{type(self).__name__}({self.n_rows} rows, {self.n_features} features)"


class RowFilter(Source):
    """Some rows of a source; they are numbered anew, and messages name their places in the source.

    Parameters
    ----------
    source : Source
    keep : callable
        Number of a first row and how many → which of these rows are kept.
    what : str
        Which they are, in words.
    n_rows : int, optional
        How many are kept, where known.
    """

    def __init__(
        self, source: Source, keep: Callable[[int, int], np.ndarray], what: str = "some rows",
        n_rows: int | None = None,
    ) -> None:  # fmt: skip
        self.source, self.keep, self.what, self.n_rows = source, keep, what, n_rows
        self.n_features, self.names = source.n_features, source.names

    def describe(self) -> str:
        return f"{self.what} of {self.source.describe()}"

    def blocks(self, block_rows: int) -> Iterator[Block]:
        return self._filter(self.source.blocks(block_rows))

    def labels(self) -> Iterator[Block]:
        return self._filter(self.source.labels())

    def column(self, position: int) -> Iterator[Block]:
        return self._filter(self.source.column(position))

    def _filter(self, blocks: Iterable[Block]) -> Iterator[Block]:
        n_kept = 0
        for block in blocks:
            rows = np.flatnonzero(self.keep(block.start, len(block)))
            if len(rows):
                part, before = block.take(rows), block.start - n_kept
                part = replace(part, start=n_kept, row=block.row - before)
                yield replace(part, positions=np.add(part.positions, before))
            n_kept += len(rows)


# ---- things with rows that can be sliced --------------------------------------------------------


@dataclass(frozen=True)
class StoredRows:
    """Rows of a .npy file, which is mapped while some are copied: no mapped pages are left."""

    path: str
    shape: tuple[int, ...]

    def __getitem__(self, rows: Any) -> np.ndarray:
        return np.array(np.load(self.path, mmap_mode="r")[rows])


@dataclass(frozen=True)
class SlicedSource(Source):
    """Anything with a shape that can be sliced by rows, with targets and weights beside it."""

    X: Any
    y: Any = None
    w: Any = None
    first: int = 0  # number, in a larger whole, of row 0 of X
    chunk: int | None = None  # number of X, where all of it is one chunk
    exposure: Any = None
    frames: bool = False  # whether columns keep their kinds

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return self.X.shape[0]

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return self.X.shape[1]

    def describe(self) -> str:
        where = getattr(self.X, "path", None)
        kind = f"the file {str(where)!r}" if where else f"the {type(self.X).__name__} in memory"
        return f"{kind} of {self.n_rows} rows and {self.n_features} features"

    def rows_at(self, rows: slice) -> Any:
        """Some rows, as the fold takes them."""
        return to_rows(take_rows(self.X, rows), self.frames)

    def blocks(self, block_rows: int) -> Iterator[Block]:
        for a in range(0, self.n_rows, block_rows):
            rows = slice(a, min(a + block_rows, self.n_rows))
            y, w, exposure = (values_at(values, rows) for values in (self.y, self.w, self.exposure))
            chunk, row = (a // block_rows, 0) if self.chunk is None else (self.chunk, a)
            yield Block(self.rows_at(rows), y, w, chunk, row, self.first + a, exposure)


# ---- streams of chunks --------------------------------------------------------------------------


@dataclass
class IterableSource(Source):
    """Chunks X, (X, y) or (X, y, weights) from an iterable, or from a callable that makes one.

    Targets and weights (`y`, `w`) are those of all rows, or names of columns of the chunks. With
    `frames`, columns keep their kinds; without, chunks that are frames must have the `columns`, by
    default those of the first one, in the same order.
    """

    chunks: Any
    y: Any = None
    w: Any = None
    exposure: Any = None
    frames: bool = False
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        self.names = None if self.columns is None else list(self.columns)
        self.once = hasattr(self.chunks, "__next__")
        self.kind = type(self.chunks).__name__

    def describe(self) -> str:
        return f"the stream {self.kind}"

    def head(self, rows: int) -> Block | None:
        if not self.once:
            return super().head(rows)
        self.chunks, all_chunks = tee(self.chunks)
        block = super().head(rows)
        self.chunks = all_chunks
        return block

    def keep_chunks(self) -> None:
        if not self.once:
            return
        # The file has no name, and is gone with the source.
        stream = tempfile.TemporaryFile()  # noqa: SIM115 (it is read as long as the source is)
        weakref.finalize(self, stream.close)
        for item in self.chunks:
            pickle.dump(item, stream, pickle.HIGHEST_PROTOCOL)
        self.chunks, self.once = partial(_unpickle, stream, stream.tell()), False

    def blocks(self, block_rows: int) -> Iterator[Block]:
        start, width = 0, None
        for index, item in enumerate(self.chunks() if callable(self.chunks) else self.chunks):
            block = self._chunk(item, index, start)
            n, columns = block.X.shape
            width = columns if width is None else width
            if columns != width:
                raise ValueError(
                    f"chunk {index} has {columns} columns, the chunks before it had {width}"
                )
            for a in range(0, n, block_rows):
                yield block.take(slice(a, a + block_rows))
            start += n
        check_lengths(start, y=self.y, sample_weight=self.w, exposure=self.exposure)

    def _chunk(self, item: Any, index: int, start: int) -> Block:
        """One item of the stream."""
        parts = tuple(item) if isinstance(item, tuple) or is_group(item) else (item,)
        if not 1 <= len(parts) <= 3:
            raise ValueError(
                f"chunk {index} is a tuple of {len(parts)}; chunks are X, (X, y) or (X, y, weights)"
            )
        X, *of_item = (*parts, None, None)[:3]
        roles = self.y, self.w, self.exposure
        X, *of_stream = without_named(f"chunk {index}", X, *roles)
        names = None if self.frames else names_of(X)
        if names is not None:
            self.names = names if self.names is None else self.names
            check_order(names, self.names, f"chunk {index}")
        X = to_rows(X, self.frames)
        if len(X.shape) != 2:
            raise ValueError(f"chunk {index} must have two dimensions, found shape {X.shape}")
        rows, of_rows = slice(start, start + X.shape[0]), []
        for what, of_chunk, role, values in zip(_ROLES, (*of_item, None), roles, of_stream):
            if of_chunk is None:
                of_chunk = values if isinstance(role, str) else values_at(role, rows)
            if isinstance(of_chunk, str):
                raise ValueError(f"chunk {index} has no names of columns, such as {role!r}")
            values = None if of_chunk is None else np.asarray(of_chunk)
            if values is not None and len(values) != X.shape[0]:
                raise ValueError(f"chunk {index} has {X.shape[0]} rows but {len(values)} {what}")
            of_rows.append(values)
        y, w, exposure = of_rows
        return Block(X, y, w, index, 0, start, exposure)


def _unpickle(stream: Any, end: int) -> Iterator[Any]:
    """Objects of a file that this process has written; several iterators may read it."""
    position = 0
    while position < end:
        stream.seek(position)
        item = pickle.load(stream)
        position = stream.tell()
        yield item


@dataclass
class RowSample:
    """A random sample of the rows of blocks: those whose numbers have the smallest hashes.

    It is the same however the rows are cut into blocks, and samples of parts merge.

    Attributes
    ----------
    size : int
        The most rows of the sample; all rows are taken if they are fewer.
    with_ends : bool
        Whether the rows with the least and the largest value of each column are kept, too, unless
        they would be more than the sample.
    parts : list of (Block, ndarray)
        Rows and their hashes, in their order; at most twice as many as the sample has.
    ends : Block or None
        Rows with the least and the largest values.
    n_seen : int
        Rows that were added.
    """

    size: int
    with_ends: bool = False
    parts: list[tuple[Block, np.ndarray]] = field(default_factory=list)
    ends: Block | None = None
    n_seen: int = 0

    @classmethod
    def draw(cls, source: Source, size: int) -> RowSample:
        """Sample all rows of a source, with the ends of its columns."""
        sample = cls(size, with_ends=True)
        for block in source.blocks(size):
            sample.update(block)
        return sample

    @property
    def n_rows(self) -> int:
        """Rows that are kept."""
        return sum(map(len, (hashes for _, hashes in self.parts)))

    def zero(self) -> RowSample:
        """An empty sample."""
        return RowSample(self.size, self.with_ends)

    def update(self, block: Block) -> None:
        """Add the rows of a block."""
        if self.with_ends:
            self._add_ends(block)
        self.n_seen += len(block)
        self._add([(block, mixed_bits(np.arange(block.start, block.start + len(block))))])

    def merge(self, other: RowSample) -> RowSample:
        """Add another sample."""
        self.n_seen += other.n_seen
        self._add(other.parts)
        if other.ends is not None:
            self._add_ends(other.ends)
        return self

    def block(self) -> Block | None:
        """The sample as one block, the ends of the columns below it; None if it has no rows."""
        blocks = self.shrink()
        if self.ends is not None and self.n_seen > self.n_rows:
            blocks.append(self.ends)
        return join_blocks(blocks) if blocks else None

    def _add_ends(self, block: Block) -> None:
        if 2 * block.X.shape[1] <= self.size:
            block = _end_rows(block)
            self.ends = block if self.ends is None else _end_rows(join_blocks([self.ends, block]))

    def _add(self, parts: list[tuple[Block, np.ndarray]]) -> None:
        self.parts += [part for part in parts if len(part[0])]
        if self.n_rows > 2 * self.size:
            self.shrink()

    def shrink(self) -> list[Block]:
        """The sample, with no more rows than it may have."""
        if self.n_rows > self.size:
            hashes = np.concatenate([hashes for _, hashes in self.parts])
            highest = np.partition(hashes, self.size - 1)[self.size - 1]
            sampled = [(*part, np.flatnonzero(part[1] <= highest)) for part in self.parts]
            self.parts = [(b.take(rows), hashes[rows]) for b, hashes, rows in sampled if len(rows)]
        return [block for block, _ in self.parts]


def _end_rows(block: Block) -> Block:
    """The rows of a block that have the least or the largest value of a column.

    Rows with values that are not finite are left out: the fold refuses them, and knows their place.
    """
    finite = np.isfinite(np.ravel(block.X.sum(axis=1, dtype=np.float64)))
    if not finite.all():
        block = block.take(np.flatnonzero(finite))
    if not len(block):
        return block
    ends = [np.ravel(find(axis=0)) for find in (block.X.argmin, block.X.argmax)]
    return block.take(np.unique(np.concatenate(ends)))


def sampled_rows(n_rows: int, size: int) -> np.ndarray:
    """The rows of a `RowSample` of n rows, in order."""
    if n_rows <= size:
        return np.arange(n_rows)
    hashes = mixed_bits(np.arange(n_rows))
    return np.flatnonzero(hashes <= np.partition(hashes, size - 1)[size - 1])


# ---- arrays and .npy files ----------------------------------------------------------------------


def sliced_source(X: Any, y: Any, w: Any) -> SlicedSource:
    """Arrays, or .npy files of them by their paths."""
    X, y, w = (_sliceable(values) for values in (X, y, w))
    check_sparse(X, "the data")
    if is_sparse(X):
        X = X.tocsr()
    if len(X.shape) != 2:
        raise ValueError(
            f"X must have two dimensions (rows and columns), found shape {tuple(X.shape)}. "
            "Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row"
        )
    check_lengths(X.shape[0], y=y, sample_weight=w)
    return SlicedSource(X, y, w)


def check_lengths(n_rows: int, **roles: Any) -> None:
    """Refuse targets or weights of more or fewer rows than there are; names of columns pass."""
    for name, values in roles.items():
        if values is None or isinstance(values, str):
            continue
        n = values.shape[0] if hasattr(values, "shape") else len(values)
        if n != n_rows:
            raise ValueError(f"X and {name} have inconsistent numbers of rows: {n_rows} and {n}")


def to_rows(X: Any, frames: bool = False) -> Any:
    """One block as an ndarray or a CSR array of numbers; with `frames`, columns as they are."""
    check_sparse(X, "the data")
    if frames:
        return X if is_frame(X) else dense(X)
    if is_sparse(X):
        return X.tocsr()
    original, X = X, np.asarray(X)
    if X.dtype.kind in "OSU":
        with naming_text("the data", original):
            X = X.astype(np.float64)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"Complex data not supported: X has dtype {X.dtype}")
    return X


def _sliceable(X: Any) -> Any:
    """Rows that can be sliced; those of a .npy file by its path."""
    if isinstance(X, str | os.PathLike):
        try:
            return StoredRows(os.fspath(X), np.load(X, mmap_mode="r", allow_pickle=False).shape)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{os.fspath(X)!r} is not a readable .npy file: {error}") from error
    # Some sparse formats cannot be sliced until they are CSR.
    ready = X is None or is_sparse(X) or (hasattr(X, "shape") and hasattr(X, "__getitem__"))
    return X if ready else np.asarray(X)


def values_at(values: Any, rows: slice | np.ndarray) -> Any:
    """Targets or weights of some rows, where there are any."""
    refuse_masked("the data", "targets or weights", values)
    return None if values is None else np.asarray(take_rows(values, rows))


def is_table(X: Any) -> bool:
    return is_sparse(X) or len(getattr(X, "shape", ())) == 2


def is_group(item: Any) -> bool:
    """Whether an item is (X, y) or the like; loaders of other libraries give lists, too."""
    return isinstance(item, list | tuple) and len(item) > 0 and is_table(item[0])


def is_chunks(X: Any) -> bool:
    """Whether X is a stream of blocks of rows rather than one table."""
    if hasattr(X, "shape") or hasattr(X, "__array__"):
        return False
    if isinstance(X, list | tuple):
        item = X[0] if X else None
        return is_table(item) or is_group(item)
    return isinstance(X, Iterable) and not isinstance(X, Mapping | Set)


def default_target(names: Container[str], y: Any) -> Any:
    """Targets as given, or the column (or array) "y" where there is one.

    Weights have no such default: a column "sample_weight" of a table is a feature, as in a frame.
    """
    return "y" if y is None and "y" in names else y
