"""File suffixes that data are read from, and text files that may be compressed."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import re
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from .._util.arguments import needed
from .._util.threads import cached_property
from .arrow import arrow_csv, pa, pc
from .columns import advice_on_text, default_name
from .targets import finite_numbers
from .text_cells import Text

CSV = (".csv", ".tsv")


_OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": lambda path: pa.input_stream(path, compression="zstd"),
}
# A file may consist of several compressed parts, one after another.
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


def data_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix that tells the format, in small letters: ``.csv`` of ``a.csv.gz``."""
    path = Path(path)
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in _OPENERS else suffix


def is_csv(path: str | os.PathLike[str]) -> bool:
    """Whether a file is read as CSV or TSV, compressed or not."""
    return data_suffix(path) in CSV


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Whether a file, or a folder of files, is read as Parquet."""
    suffix, path = data_suffix(path), Path(path)
    if suffix in (".parquet", ".pq"):
        return True
    return path.is_dir() and any(path.rglob("*.p*q*"))


def parquet_dataset(path: str | os.PathLike[str]) -> Any:
    """A Parquet file, or a folder of them, as a pyarrow dataset (which imports pandas)."""
    refuse_pipe(path)
    return needed("pyarrow.dataset").dataset(path, format="parquet")


@contextmanager
def _damage_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """ValueError that names a compressed file which is damaged."""
    try:
        yield
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if getattr(error, "errno", None) is not None:  # of the disk, not of the content
            raise
        raise ValueError(
            f"{os.fspath(path)!r} is damaged, incomplete or no {Path(path).suffix} file: {error}. "
            "Copy or compress it again."
        ) from error


def refuse_pipe(path: str | os.PathLike[str]) -> None:
    """Refuse a named pipe."""
    if stat.S_ISFIFO(os.stat(path).st_mode):
        raise ValueError(
            f"{os.fspath(path)!r} is a pipe, and files are read more than once: write what comes "
            "through it to a file first."
        )


def open_bytes(path: str | os.PathLike[str]) -> Any:
    """Open a file, which its suffix may say to be compressed, for its bytes; not a pipe."""
    refuse_pipe(path)
    return _OPENERS.get(Path(path).suffix.lower(), partial(open, mode="rb"))(os.fspath(path))


def uncompressed_bytes(path: str | os.PathLike[str], limit: int) -> int:
    """Bytes of a file, of a compressed one its content; counted until they exceed a limit."""
    if Path(path).suffix.lower() not in _OPENERS:
        return Path(path).stat().st_size
    total = 0
    with _damage_named(path), open_bytes(path) as stream:
        while total <= limit and (data := stream.read(1 << 20)):
            total += len(data)
    return total


def compressed(path: str | os.PathLike[str], parts: Iterable[bytes]) -> Iterable[bytes]:
    """The bytes of a file, compressed as its suffix says, some at a time; nothing is written."""
    compress = _COMPRESS.get(Path(path).suffix.lower())
    return parts if compress is None else map(compress, parts)


def open_text(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> io.TextIOBase:
    """Open a text file, which its suffix may say to be compressed, with line ends as they are."""
    if encoding == "utf-8":
        encoding = "utf-8-sig"  # spreadsheets write a byte-order mark
    file = open_bytes(path)
    try:
        return io.TextIOWrapper(file, encoding=encoding, newline="")
    except LookupError:  # no such encoding
        file.close()
        raise


def known_suffixes() -> str:
    """What files can be read, for messages."""
    return (
        f"Files with the suffixes {', '.join(CSV)} (also compressed: {', '.join(_OPENERS)}), "
        ".parquet, .pq and .npy are read. Others: read them with their own library, and pass "
        "arrays, chunks or a Dask array in Python."
    )


_BLOCK_BYTES = 1 << 24  # of text that is parsed at a time; no row may be longer
_LONGEST = 1 << 17  # bytes of a cell: longer ones are rows that a quotation mark has swallowed
_LEARNED_ROWS = 1 << 14  # which say whether a column holds numbers
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_UTF8 = "utf-8"


@dataclass(frozen=True)
class CsvFile:
    """A CSV or TSV file, which may be compressed.

    The delimiter is the most frequent of comma, semicolon and tab in the first line, and a tab in
    ``.tsv``. A first line of numbers alone is a row; columns are then x0, x1, …

    Parameters
    ----------
    path : Path
    encoding : str
    """

    path: Path
    encoding: str = _UTF8

    @cached_property
    def _first(self) -> tuple[str, list[str]]:
        """The delimiter, and the cells of the first row."""
        with self._errors_with_lines(), open_text(self.path, encoding=self.encoding) as stream:
            line = next((line for line in stream if line.strip()), None)
            if line is None:
                raise ValueError(f"{self.path} is empty.")
            tabs = data_suffix(self.path) == ".tsv"
            unquoted = re.sub(r'(^|[,;\t])"[^"]*("|$)', r"\1", line)
            delimiter = "\t" if tabs else max(",;\t", key=unquoted.count)
            try:
                cells = next(csv.reader(chain([line], stream), delimiter=delimiter))
            except csv.Error:  # a cell of very many characters
                cells = None
            if cells is None or ("\n" in cells[-1] and not next(stream, "")):
                raise ValueError(
                    f"{self.path}: the header has a quotation mark that is not closed. Close or "
                    "remove it."
                )
            return delimiter, cells

    @cached_property
    def _has_header(self) -> bool:
        return not all(map(_is_number, self._first[1]))

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns; a file that has one twice is refused."""
        cells = self._first[1]
        if not self._has_header:
            return [f"x{j}" for j in range(len(cells))]
        names = [cell.strip() or default_name(j) for j, cell in enumerate(cells)]
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if twice:
            raise ValueError(f"{self.path} has the columns {twice} more than once.")
        return names

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows of some columns, or of all, as strings; empty lines are no rows."""
        with self._errors_with_lines(), open_bytes(self.path) as stream:
            table = _refuse_long_cells(arrow_csv.read_csv(stream, *self._options(columns)))
        return table.slice(int(self._has_header))

    def blocks(self, columns: Sequence[str] | None = None, rows: int = 1 << 16) -> Iterator[Any]:
        """The same, at most so many rows at a time; at least one table, which may be empty."""
        skip, some = int(self._has_header), False
        with (
            self._errors_with_lines(),
            open_bytes(self.path) as stream,
            arrow_csv.open_csv(stream, *self._options(columns)) as reader,
        ):
            for batch in reader:
                table = _refuse_long_cells(pa.table(batch.slice(skip)))
                skip = max(skip - batch.num_rows, 0)
                for start in range(0, table.num_rows, rows):
                    yield table.slice(start, rows)
                    some = True
            if not some:
                yield reader.schema.empty_table()

    # In the place of a fragment of a dataset, whose columns are numbers or labels.

    @cached_property
    def physical_schema(self) -> Any:
        """Columns whose first cells are numbers must hold numbers; others are text."""
        head = next(self.blocks(rows=_LEARNED_ROWS))
        numbers = [Text(column.combine_chunks()).plain is not None for column in head.columns]
        kinds = [pa.float64() if number else pa.string() for number in numbers]
        return pa.schema(list(zip(head.column_names, kinds, strict=True)))

    def to_batches(self, columns: list[str], batch_size: int, **_: Any) -> Iterator[Any]:
        """Blocks of typed columns."""
        start = 0
        for table in self.blocks(columns, batch_size):
            arrays = {name: table.column(name).combine_chunks() for name in columns}
            for name, array in arrays.items():
                if pa.types.is_floating(self.physical_schema.field(name).type):
                    locate_row = partial(self.locate_row, start=start)
                    numbers = finite_numbers(Text(array), name, locate_row, advice_on_text())
                    arrays[name] = pa.array(numbers)
            yield pa.record_batch(arrays)
            start += table.num_rows

    def locate_row(self, row: int | None, start: int = 0) -> str:
        """The file, and the line that a row begins on, as an editor counts them."""
        if row is None:
            return str(self.path)
        place = start + row + int(self._has_header)
        line = next(number for k, (number, _) in enumerate(self._lines()) if k == place)
        return f"{self.path}, line {line}"

    def _options(self, columns: Sequence[str] | None) -> tuple[Any, Any, Any]:
        read = arrow_csv.ReadOptions(
            column_names=self.names, block_size=_BLOCK_BYTES, encoding=self.encoding
        )
        parse = arrow_csv.ParseOptions(delimiter=self._first[0], newlines_in_values=True)
        convert = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(self.names, pa.string()),
            strings_can_be_null=False,
            include_columns=self.names if columns is None else list(columns),
        )
        return read, parse, convert

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Numbers of the lines that rows begin on, and their cells, by Python's csv module."""
        with open_text(self.path, encoding=self.encoding) as stream:
            reader, number = csv.reader(stream, delimiter=self._first[0]), 1
            for cells in reader:
                if cells:
                    yield number, cells
                number = reader.line_num + 1

    @contextmanager
    def _errors_with_lines(self) -> Iterator[None]:
        """What is wrong with the text, and in which line."""
        try:
            with _damage_named(self.path):
                yield
        except LookupError:
            raise ValueError(f"there is no encoding {self.encoding!r}.") from None
        except (UnicodeError, csv.Error, pa.ArrowInvalid) as error:
            self._check_encoding()
            raise self._cell_count_error(error) from error

    def _check_encoding(self) -> None:
        with open_bytes(self.path) as stream:
            for number, line in enumerate(stream, 1):
                try:
                    line.decode(self.encoding)
                except UnicodeDecodeError as error:
                    if self.encoding == "utf-16":  # whose characters lines may cut
                        return
                    mark = _MARKS.get(line[:2]) if number == 1 else None
                    raise ValueError(
                        f"{self.path} is not {self.encoding.upper()} text: line {number} has the "
                        f"byte 0x{line[error.start]:02X}. Save it as UTF-8, or name its encoding, "
                        f"such as {mark or 'latin-1'!r}: --encoding of the command line, or "
                        "pandas.read_csv(path, encoding=...) and the frame instead of the path."
                    ) from None

    def _cell_count_error(self, error: Exception) -> ValueError:
        """The first row that has another number of cells than the header, or the parser's words."""
        width, end = len(self.names), 1
        try:
            for end, cells in self._lines():
                if len(cells) != width:
                    quote = " Is a quotation mark missing?" if "\n" in "".join(cells) else ""
                    return ValueError(
                        f"{self.path}, line {end}: {len(cells)} cells where the header has {width} "
                        f"columns.{quote}"
                    )
        except csv.Error:  # of the same cell
            pass
        return ValueError(
            f"{self.path} cannot be split into cells: {error}. Is a quotation mark missing, in or "
            f"after line {end}?"
        )


def _refuse_long_cells(table: Any) -> Any:
    """A table, none of whose cells is very long."""
    for name, column in zip(table.column_names, table.columns):
        if (pc.max(pc.binary_length(column)).as_py() or 0) > _LONGEST:
            raise pa.ArrowInvalid(f"a cell of column {name!r} has more than {_LONGEST:,} bytes")
    return table


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file, or a folder of them, read as a :class:`CsvFile` is.

    A single file is read without pyarrow's module of datasets, which imports pandas.
    """

    path: Path

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns."""
        if self.path.is_file():
            return list(needed("pyarrow.parquet").read_schema(self.path).names)
        return list(self.dataset().schema.names)

    def locate_row(self, row: int | None) -> str:
        """The file, and a row of it."""
        return f"{self.path}" if row is None else f"{self.path}, row {row} (counted from 0)"

    def dataset(self, columns: Sequence[str] | None = None) -> Any:
        """A dataset of pyarrow, with some columns or all."""
        data = parquet_dataset(self.path)
        if columns is None:
            return data
        return data.replace_schema(pa.schema([data.schema.field(name) for name in columns]))

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows of some columns, or of all."""
        return self.dataset().to_table(columns=None if columns is None else list(columns))

    def blocks(self, columns: Sequence[str], rows: int = 1 << 16) -> Iterator[Any]:
        """The same, at most so many rows at a time."""
        names = list(columns)
        if self.path.is_dir():
            for batch in scan_batches(row_groups(self.dataset()), names, rows):
                yield pa.table(batch)
            return
        with needed("pyarrow.parquet").ParquetFile(self.path) as file:
            for batch in file.iter_batches(rows, columns=names):
                yield pa.table(batch.select(names))


def open_table(
    path: str | os.PathLike[str], encoding: str = "utf-8"
) -> CsvFile | ParquetFile | None:
    """A file that has names of columns; None if there is no such file."""
    path = Path(path)
    if is_csv(path) and path.exists() and not path.is_dir():
        return CsvFile(path, encoding)
    return ParquetFile(path) if is_parquet(path) else None


def row_groups(dataset: Any) -> list[Any]:
    """Row groups of all files of a dataset; a fragment that has none as it is."""
    groups: list[Any] = []
    for fragment in dataset.get_fragments():
        split = getattr(fragment, "split_by_row_group", None)
        groups += split() if split else [fragment]
    return groups


def scan_batches(fragments: list[Any], columns: list[str], rows: int) -> Iterator[Any]:
    """Record batches, fragment by fragment: a scan of a whole dataset reads far ahead."""
    for fragment in fragments:
        # Little read-ahead: the default of 16 batches is hundreds of megabytes.
        yield from fragment.to_batches(columns=columns, batch_size=rows, batch_readahead=1)


def _is_number(cell: str) -> bool:
    try:
        return "_" not in cell and float(cell) is not None  # Python reads 1_2 as 12
    except ValueError:
        return False
