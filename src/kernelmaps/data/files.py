"""Files that hold a table: text (also compressed), Parquet, and sheets of Excel."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import re
import stat
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from .._util.arguments import argument, argument_error, check_choice, needed
from .._util.threads import cached_property
from ..exceptions import SkippedLinesWarning, SuspectColumnWarning
from .arrow import arrow_csv, pa, pc
from .columns import advice_on_text, default_name, raw_column, to_text
from .targets import finite_numbers
from .text_cells import Text, is_plain_number, quoted

CSV = (".csv", ".tsv")
EXCEL = (".xlsx", ".xlsm")


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


def has_column_names(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one of text, Parquet or Excel, whose columns have names."""
    return is_csv(path) or is_parquet(path) or data_suffix(path) in EXCEL


@contextmanager
def _damage_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """ValueError that names a compressed file which is damaged."""
    try:
        yield
    except (EOFError, OSError, zlib.error, lzma.LZMAError, BadZipFile) as error:
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
        f"{', '.join(EXCEL)}, .parquet, .pq and .npy are read. Others: read them with their own "
        "library, and pass arrays, chunks or a Dask array in Python."
    )


_BLOCK_BYTES = 1 << 24  # of text that is parsed at a time; no row may be longer
_LONGEST = 1 << 17  # bytes of a cell: longer ones are rows that a quotation mark has swallowed
_LEARNED_ROWS = 1 << 14  # which say whether a column holds numbers
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_UTF8 = "utf-8"
_NOT_IN_CP1252 = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])


def advice_to_read(option: str, value: str) -> str:
    """An option of a file to try, in words for the command line or for Python."""
    option = argument(option, value)
    call = "" if option.startswith("-") else "pass kernelmaps.datasets.open_table(path, {}) as X"
    return f"{call.format(option) or option}."


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read; see :func:`open_table`."""

    encoding: str = _UTF8
    bad_lines: str = "error"
    na_values: Sequence[str] = ()
    sheet: str | None = None

    def __post_init__(self) -> None:
        check_choice("the file", "bad_lines", self.bad_lines, ("error", "skip"))
        tokens = self.na_values
        tokens = [tokens] if isinstance(tokens, str | float | int) else tokens
        object.__setattr__(self, "na_values", tuple(str(token).strip() for token in tokens))


@dataclass(frozen=True)
class TableFile(os.PathLike[str]):
    """A file with names of columns; estimators take it in the place of its path."""

    path: Path
    options: ReadOptions = ReadOptions()

    def __fspath__(self) -> str:
        return str(self.path)

    __str__ = __fspath__

    def mark_missing(self, table: pa.Table) -> pa.Table:
        """A table, whose cells are empty where they are one of `na_values`."""
        tokens = self.options.na_values
        if not tokens:
            return table
        numbers = pa.array([float(token) for token in tokens if is_plain_number(token)], "f8")
        for j, (field, column) in enumerate(zip(table.schema, table.columns)):
            if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
                are_tokens = pc.is_in(pc.utf8_trim_whitespace(column), pa.array(tokens, field.type))
                column = pc.if_else(are_tokens, pa.scalar("", field.type), column)
            elif pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
                are_tokens = pc.is_in(column.cast("f8", safe=False), numbers)
                column = pc.if_else(are_tokens, pa.scalar(None, field.type), column)
            table = table.set_column(j, field, column)
        return table


def unique_names(names: Sequence[str], path: Path) -> list[str]:
    """Names of columns, each once: a repeated one is numbered as pandas does, with a warning."""
    unique, header = dict[str, None](), set(names)
    for name in names:
        number, new = 0, name
        while new in unique or (number and new in header):
            number, new = number + 1, f"{name}.{number + 1}"
        unique[new] = None
    numbered = [name for name in unique if name not in header]
    if numbered:
        warnings.warn(
            f"{path} has columns of the same name, which are numbered: {quoted(numbered)}.",
            SuspectColumnWarning,
            stacklevel=2,
        )
    return list(unique)


@dataclass(frozen=True)
class CsvFile(TableFile):
    """A CSV or TSV file, which may be compressed.

    The delimiter is the most frequent of comma, semicolon and tab in the first line, and a tab in
    ``.tsv``. A first line of numbers alone is a row; columns are then x0, x1, …
    """

    @cached_property
    def encoding(self) -> str:
        """The encoding: that of the options, or UTF-16 if a byte-order mark says so."""
        if self.options.encoding != _UTF8:
            return self.options.encoding
        with open_bytes(self.path) as stream:
            return _MARKS.get(stream.read(2), _UTF8)

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
        return not all(map(is_plain_number, self._first[1]))

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns."""
        cells = self._first[1]
        if not self._has_header:
            return [f"x{j}" for j in range(len(cells))]
        names = [cell.strip() or default_name(j) for j, cell in enumerate(cells)]
        return unique_names(names, self.path)

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows of some columns, or of all, as strings; empty lines are no rows."""
        skipped = list[str]()
        with self._errors_with_lines(), open_bytes(self.path) as stream:
            table = arrow_csv.read_csv(stream, *self._parser_options(columns, skipped))
            table = self.mark_missing(_refuse_long_cells(table.slice(int(self._has_header))))
        self._warn_of_skipped(skipped)
        return table

    def blocks(self, columns: Sequence[str] | None = None, rows: int = 1 << 16) -> Iterator[Any]:
        """The same, at most so many rows at a time; at least one table, which may be empty."""
        skip, some, skipped = int(self._has_header), False, list[str]()
        with (
            self._errors_with_lines(),
            open_bytes(self.path) as stream,
            arrow_csv.open_csv(stream, *self._parser_options(columns, skipped)) as reader,
        ):
            for batch in reader:
                table = self.mark_missing(_refuse_long_cells(pa.table(batch.slice(skip))))
                skip = max(skip - batch.num_rows, 0)
                for start in range(0, table.num_rows, rows):
                    yield table.slice(start, rows)
                    some = True
            if not some:
                yield reader.schema.empty_table()
        self._warn_of_skipped(skipped)

    # In the place of a fragment of a dataset, whose columns are numbers or labels.

    @cached_property
    def physical_schema(self) -> Any:
        """Columns whose first cells are numbers must hold numbers; others are text."""
        head = next(self.blocks(rows=_LEARNED_ROWS))
        numbers = [Text(column.combine_chunks()).plain is not None for column in head.columns]
        kinds = [pa.float64() if number else pa.string() for number in numbers]
        return pa.schema(list(zip(head.column_names, kinds, strict=True)))

    def to_batches(self, _: Any, columns: list[str], batch_size: int, **__: Any) -> Iterator[Any]:
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
        skips, width = self.options.bad_lines == "skip", len(self.names)
        rows = (number for number, cells in self._lines() if not skips or len(cells) == width)
        return f"{self.path}, line {next(islice(rows, place, None))}"

    def _parser_options(
        self, columns: Sequence[str] | None, skipped: list[str]
    ) -> tuple[Any, Any, Any]:
        """Options of pyarrow; lines that are skipped for their number of cells are collected."""

        def skip(line: Any) -> str:
            skipped.append(line.text)
            return "skip"

        read = arrow_csv.ReadOptions(
            column_names=self.names, block_size=_BLOCK_BYTES, encoding=self.encoding
        )
        parse = arrow_csv.ParseOptions(
            delimiter=self._first[0],
            newlines_in_values=True,
            invalid_row_handler=skip if self.options.bad_lines == "skip" else None,
        )
        convert = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(self.names, pa.string()),
            strings_can_be_null=False,
            include_columns=self.names if columns is None else list(columns),
        )
        return read, parse, convert

    def _warn_of_skipped(self, lines: list[str]) -> None:
        if lines:
            warnings.warn(
                f"{self.path}: {len(lines):,} {'line' if len(lines) == 1 else 'lines'} skipped, "
                f"not of {len(self.names)} cells as the header; the first is {lines[0][:50]!r}.",
                SkippedLinesWarning,
                stacklevel=3,
            )

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
                    raise ValueError(
                        f"{self.path} is not {self.encoding.upper()} text: line {number} has the "
                        f"byte 0x{line[error.start]:02X}. Save it as UTF-8, or name its encoding: "
                        + advice_to_read("encoding", self._guess_encoding())
                    ) from None

    def _guess_encoding(self) -> str:
        """That of Windows for Western languages, unless a byte has no meaning there."""
        with open_bytes(self.path) as stream:
            unused = any(line.translate(None, _NOT_IN_CP1252) != line for line in stream)
        return "latin-1" if unused else "cp1252"

    def _cell_count_error(self, error: Exception) -> ValueError:
        """The first row that has another number of cells than the header, or the parser's words."""
        width, end = len(self.names), 1
        try:
            for end, cells in self._lines():
                if len(cells) != width:
                    quote = " Is a quotation mark missing?" if "\n" in "".join(cells) else ""
                    return ValueError(
                        f"{self.path}, line {end}: {len(cells)} cells where the header has {width} "
                        f"columns.{quote} Correct it, or leave such lines out: "
                        + advice_to_read("bad_lines", "skip")
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
class ExcelFile(TableFile):
    """A sheet of an Excel workbook, the first one by default; its first row has the names.

    Rows without any cell are no rows.
    """

    @cached_property
    def _rows(self) -> list[tuple[int, tuple[Any, ...]]]:
        """Numbers of rows, and their cells."""
        refuse_pipe(self.path)
        with _damage_named(self.path):
            book = needed("openpyxl").load_workbook(self.path, read_only=True, data_only=True)
        sheet = self.options.sheet or book.sheetnames[0]
        if sheet not in book.sheetnames:
            choices = f"one of {', '.join(map(repr, book.sheetnames))}"
            raise argument_error(str(self.path), "sheet", sheet, choices)
        rows = enumerate(book[sheet].iter_rows(values_only=True), start=1)
        found = [row for row in rows if any(cell is not None for cell in row[1])]
        book.close()
        if not found:
            raise ValueError(f"{self.path}: the sheet {sheet!r} is empty.")
        return found

    @cached_property
    def _table(self) -> pa.Table:
        (_, header), *rows = self._rows
        columns = list(zip_longest(header, *(cells for _, cells in rows)))
        columns = [cells for cells in columns if any(cell is not None for cell in cells)]
        names = [
            default_name(j) if cells[0] is None else str(cells[0]).strip()
            for j, cells in enumerate(columns)
        ]
        names = unique_names(names, self.path)
        arrays = []
        for name, (_, *cells) in zip(names, columns):
            raw = raw_column(np.array(cells, dtype=object), name, str(self.path))
            is_typed = isinstance(raw, np.ndarray)
            arrays.append(pa.array(raw, from_pandas=True) if is_typed else to_text(raw).array)
        return self.mark_missing(pa.table(arrays, names))

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return self._table.column_names

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows of some columns, or of all."""
        return self._table if columns is None else self._table.select(list(columns))

    def blocks(self, columns: Sequence[str], rows: int = 1 << 16) -> Iterator[Any]:
        """The same, at most so many rows at a time."""
        for start in range(0, self._table.num_rows, rows):
            yield self.table(columns).slice(start, rows)

    def locate_row(self, row: int | None) -> str:
        """The file, and the number of a row in its sheet."""
        return str(self.path) if row is None else f"{self.path}, row {self._rows[row + 1][0]}"


@dataclass(frozen=True)
class ParquetFile(TableFile):
    """A Parquet file, or a folder of them, read as a :class:`CsvFile` is.

    A single file is read without pyarrow's module of datasets, which imports pandas.
    """

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
        """A dataset of pyarrow (which imports pandas), with some columns or all.

        Folders such as ``year=2024`` are values of a column, and a column is of the type that holds
        the values of all files.
        """
        refuse_pipe(self.path)
        where: dict[str, Any] = {"source": str(self.path)}
        if self.path.is_dir():  # of which other files may be logs
            parts = sorted(map(str, self.path.rglob("*.p*q*")))
            where = {"source": parts, "partition_base_dir": str(self.path)}
        where |= {"format": "parquet", "partitioning": "hive"}
        data = needed("pyarrow.dataset").dataset(**where)
        schemas = [data.schema, *(part.physical_schema for part in data.get_fragments())]
        schema = pa.unify_schemas(schemas, promote_options="permissive")
        names = schema.names if columns is None else columns
        schema = pa.schema(map(schema.field, names), schema.metadata)
        return needed("pyarrow.dataset").dataset(**where, schema=schema)

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows of some columns, or of all."""
        selected = None if columns is None else list(columns)
        return self.mark_missing(self.dataset().to_table(columns=selected))

    def blocks(self, columns: Sequence[str], rows: int = 1 << 16) -> Iterator[Any]:
        """The same, at most so many rows at a time."""
        names = list(columns)
        if self.path.is_dir():
            data = self.dataset()
            for batch in scan_batches(row_groups(data), names, rows, data.schema):
                yield self.mark_missing(pa.table(batch))
            return
        with needed("pyarrow.parquet").ParquetFile(self.path) as file:
            for batch in file.iter_batches(rows, columns=names):
                yield self.mark_missing(pa.table(batch.select(names)))


def open_table(
    path: str | os.PathLike[str], encoding: str = _UTF8, *, bad_lines: str = "error",
    na_values: Sequence[str] = (), sheet: str | None = None,
) -> Any:  # fmt: skip
    """Say how a file is read; estimators take the result in the place of its path.

    Parameters
    ----------
    path : str or path
        A CSV, TSV, Excel or Parquet file, or a folder of Parquet files.
    encoding : str
        Of CSV text; UTF-16 is known by its byte-order mark.
    bad_lines : {"error", "skip"}
        What to do with lines of CSV text that have more or fewer cells than the header: refuse the
        file, or leave them out, with a warning that counts them.
    na_values : str or sequence of str
        Cells that stand for a missing value, beside the usual ones (empty, NA, null, …).
    sheet : str, optional
        Name of a sheet of an Excel file; by default the first one.

    Returns
    -------
    TableFile or None
        The file, which is read when it is used; None if its columns have no names.
    """
    options = ReadOptions(encoding, bad_lines, na_values, sheet)
    if isinstance(path, TableFile):
        return path
    path = Path(path)
    if is_csv(path) and path.exists() and not path.is_dir():
        return CsvFile(path, options)
    if data_suffix(path) in EXCEL:
        return ExcelFile(path, options)
    return ParquetFile(path, options) if is_parquet(path) else None


def row_groups(dataset: Any) -> list[Any]:
    """Row groups of all files of a dataset; a fragment that has none as it is."""
    groups: list[Any] = []
    for fragment in dataset.get_fragments():
        split = getattr(fragment, "split_by_row_group", None)
        groups += split() if split else [fragment]
    return groups


def scan_batches(
    fragments: list[Any], columns: list[str], rows: int, schema: Any = None
) -> Iterator[Any]:
    """Record batches, fragment by fragment: a scan of a whole dataset reads far ahead."""
    for fragment in fragments:
        # Little read-ahead: the default of 16 batches is hundreds of megabytes.
        yield from fragment.to_batches(schema, columns=columns, batch_size=rows, batch_readahead=1)
