"""Files that hold a table: text (also compressed), Parquet, and sheets of Excel."""

from __future__ import annotations

import csv
import io
import os
import re
import stat
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from .._util.arguments import argument, check_choice, import_optional
from .._util.lazy import arrow_csv, pa, pc
from .._util.threads import cached_property
from ..exceptions import SkippedLinesWarning, SuspectColumnWarning
from .columns import default_name, raw_column, to_text
from .text_cells import is_plain_number, quote_cells

CSV = (".csv", ".tsv")
EXCEL = (".xlsx", ".xlsm")
_CODECS = {".gz": "gzip", ".zst": "zstd"}  # of compressed text, by suffix


def data_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix that tells the format, in small letters: ``.csv`` of ``a.csv.gz``."""
    path = Path(path)
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in _CODECS else suffix


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
    except (EOFError, OSError, zlib.error, BadZipFile) as error:
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
            f"{os.fspath(path)!r} is a pipe, which can be read once: write it to a file first."
        )


def open_bytes(path: str | os.PathLike[str]) -> Any:
    """Open a file, which its suffix may say to be compressed, for its bytes; not a pipe."""
    refuse_pipe(path)
    codec = _CODECS.get(Path(path).suffix.lower())
    return io.BufferedReader(pa.input_stream(os.fspath(path), compression=codec))


def uncompressed_bytes(path: str | os.PathLike[str], limit: int) -> int:
    """Bytes of a file, of a compressed one its content; counted until they exceed a limit."""
    if Path(path).suffix.lower() not in _CODECS:
        return Path(path).stat().st_size
    total = 0
    with _damage_named(path), open_bytes(path) as stream:
        while total <= limit and (data := stream.read(1 << 20)):
            total += len(data)
    return total


def compress_parts(path: str | os.PathLike[str], parts: Iterable[bytes]) -> Iterable[bytes]:
    """The bytes of a file, compressed as its suffix says, some at a time; nothing is written."""
    # A file may consist of several compressed parts, one after another.
    codec = _CODECS.get(Path(path).suffix.lower())
    return (pa.compress(part, codec, asbytes=True) for part in parts) if codec else parts


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
        f"Files with the suffixes {', '.join(CSV)} (also compressed: {', '.join(_CODECS)}), "
        f"{', '.join(EXCEL)}, .parquet, .pq and .npy are read. Others: read them with their own "
        "library, and pass arrays, chunks or a Dask array in Python."
    )


BLOCK_ROWS = 1 << 16  # rows of a table that are read at a time
_BLOCK_BYTES = 1 << 24  # of text that is parsed at a time; no row may be longer
_LONGEST = 1 << 17  # bytes of a cell: longer ones are rows that a quotation mark has swallowed
_HEAD_ROWS = 20  # rows that show where the header is
# How files begin: text in other encodings than UTF-8, and files of other kinds.
_MARKS = {b"\xff\xfe\0\0": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_OTHER_FILES = {b"PK\3\4": ".xlsx", b"\x1f\x8b": ".gz", b"PAR1": ".parquet"}
_UTF8 = "utf-8"
_NOT_IN_CP1252 = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])


def advice_to_read(option: str, value: str) -> str:
    """An option of a file to try, in words for the command line or for Python."""
    option = argument(option, value)
    call = "" if option.startswith("-") else "pass kernelmaps.datasets.open_table(path, {}) as X"
    return f"{call.format(option) or option}."


class RowTable:
    """Rows with names of columns: a file, or what pyarrow holds or reads.

    Attributes
    ----------
    names : list of str
    n_rows : int or None
        None where only reading all rows would tell.
    """

    names: list[str]
    n_rows: int | None = None

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows of some columns, or of all."""
        return pa.concat_tables(self.blocks(columns, 1 << 62))

    def blocks(self, columns: Sequence[str] | None = None, rows: int = BLOCK_ROWS) -> Iterator[Any]:
        """The same, at most so many rows at a time; at least one table, which may be empty."""
        table = self.table(columns)
        for start in range(0, max(table.num_rows, 1), rows):
            yield table.slice(start, rows)

    def locate_row(self, row: int | None) -> str:
        """The table, and a row of it, in words."""
        return str(self) if row is None else f"{self}, row {row} (counted from 0)"


@dataclass(frozen=True)
class TableFile(RowTable, os.PathLike[str]):
    """A file with names of columns; estimators take it in the place of its path.

    How it is read is said by the options of :func:`open_table`.
    """

    path: Path
    encoding: str = _UTF8
    bad_lines: str = "error"
    na_values: Sequence[str] = ()
    sheet: str | None = None

    def __post_init__(self) -> None:
        check_choice("the file", "bad_lines", self.bad_lines, ("error", "skip"))
        tokens = self.na_values
        tokens = [tokens] if isinstance(tokens, str | float | int) else tokens
        object.__setattr__(self, "na_values", tuple(str(token).strip() for token in tokens))

    def __fspath__(self) -> str:
        return str(self.path)

    __str__ = __fspath__

    def mark_missing(self, table: pa.Table) -> pa.Table:
        """A table, whose cells are empty where they are one of `na_values`."""
        tokens = self.na_values
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

    def unique_names(self, cells: Sequence[Any]) -> list[str]:
        """Names of columns, each once: a repeated one is numbered as pandas does, with a warning.

        Numbers among them that do not count the columns are warned of: of a row, not a header.
        """
        cells = ["" if cell is None else str(cell).strip() for cell in cells]
        names = [cell or default_name(j) for j, cell in enumerate(cells)]
        unique, header = dict[str, None](), set(names)
        for name in names:
            number, new = 0, name
            while new in unique or (number and new in header):
                number, new = number + 1, f"{name}.{number + 1}"
            unique[new] = None
        numbered = [name for name in unique if name not in header]
        if numbered:
            self.warn(f"columns of the same name are numbered: {quote_cells(numbered)}")
        numbers = [name for name in names if is_plain_number(name)]
        if (np.diff(sorted(map(float, numbers))) != 1).any():
            self.warn(
                f"names of columns are numbers: {quote_cells(numbers)}. If the first line is a "
                "row, put a line with names above it"
            )
        return list(unique)

    def warn(self, sentence: str, category: type[Warning] = SuspectColumnWarning) -> None:
        """Warn of something in the file."""
        warnings.warn(f"{self.path}: {sentence}.", category, stacklevel=3)

    def find_header(self, rows: Sequence[Sequence[Any]]) -> int:
        """Which of the first rows has the names: the first one that is no title of one cell."""
        texts = [["" if cell is None else str(cell).strip() for cell in row] for row in rows]
        filled = [list(filter(None, row)) for row in texts]
        place = next((k for k, cells in enumerate(filled) if len(cells) > 1), 0)
        is_header = place and place + 1 < len(rows) and len(filled[place + 1]) > 1
        if not is_header or any(map(is_plain_number, filled[place])):
            return 0
        titles = quote_cells(cell for cells in filled[:place] for cell in cells)
        self.warn(f"lines above the header are skipped: {titles}", SkippedLinesWarning)
        return place


@dataclass(frozen=True)
class CsvFile(TableFile):
    """A CSV or TSV file, which may be compressed.

    The delimiter is the most frequent of comma, semicolon, tab and bar in the header, or stated by
    a line such as ``sep=;`` above it, and a tab in ``.tsv``. A first line of numbers alone is a
    row; columns are then x0, x1, …
    """

    @cached_property
    def _encoding(self) -> str:
        """The encoding: that of the options, or UTF-16 or UTF-32 if the first bytes say so."""
        if self.encoding != _UTF8:
            return self.encoding
        with open_bytes(self.path) as stream:
            head = stream.read(4)
        for mark, suffix in _OTHER_FILES.items():
            if head.startswith(mark):
                raise ValueError(f"{self.path} is no text, but a {suffix} file: rename it.")
        encodings = (encoding for mark, encoding in _MARKS.items() if head.startswith(mark))
        return next(encodings, "utf-16-le" if head[1::2] == b"\0\0" else _UTF8)

    @cached_property
    def _head(self) -> tuple[str, list[str], int]:
        """The delimiter, the names of the columns, and the number of lines above the rows."""
        with self._errors_with_lines(), open_text(self.path, encoding=self._encoding) as stream:
            lines, places = list[str](), list[int]()
            for line in stream:
                lines.append(line)
                places += [len(lines) - 1] if line.strip() else []
                if len(places) == _HEAD_ROWS:
                    break
            stated = re.match(r'"?sep=(.)"?\s*$', lines[places[0]]) if places else None
            places = places[1:] if stated else places
            if not places:
                raise ValueError(f"{self.path} is empty.")
            tabs = data_suffix(self.path) == ".tsv"

            def delimiter_of(line: str) -> str:
                unquoted = re.sub(r'(^|[,;\t|])"[^"]*("|$)', r"\1", line)
                return "\t" if tabs else stated[1] if stated else max(",;\t|", key=unquoted.count)

            texts = [lines[place] for place in places]
            above = places[self.find_header([text.split(delimiter_of(text)) for text in texts])]
            delimiter = delimiter_of(lines[above])
            reader = csv.reader(chain(lines[above:], stream), delimiter=delimiter)
            try:
                cells = next(reader)
            except csv.Error:  # a cell of very many characters
                cells = None
            at_end = above + reader.line_num >= len(lines)
            if cells is None or ("\n" in cells[-1] and at_end and not next(stream, "")):
                raise ValueError(
                    f"{self.path}: the header has a quotation mark that is not closed."
                )
            if all(map(is_plain_number, cells)):
                return delimiter, [f"x{j}" for j in range(len(cells))], above
            above += reader.line_num
            with suppress(csv.Error):
                below = list(islice(filter(None, reader), _HEAD_ROWS))
                if below and all(len(row) == len(cells) + 1 > 2 for row in below):
                    is_empty = not any(row[-1].strip() for row in below)
                    cells = [*cells, ""] if is_empty else ["", *cells]
                    place = "the last one is empty" if is_empty else "the first one names the row"
                    self.warn(f"rows have one cell more than the header: {place}")
            return delimiter, self.unique_names(cells), above

    @property
    def names(self) -> list[str]:  # type: ignore[override]
        """Names of the columns."""
        return self._head[1]

    def blocks(self, columns: Sequence[str] | None = None, rows: int = BLOCK_ROWS) -> Iterator[Any]:
        """Rows of some columns, or of all, as strings; empty lines are no rows."""
        (delimiter, names, above), skipped = self._head, list[str]()
        columns = names if columns is None else list(columns)
        empty = pa.schema([(name, pa.string()) for name in columns]).empty_table()

        def skip(line: Any) -> str:
            skipped.append(line.text)
            return "skip"

        options = (
            arrow_csv.ReadOptions(
                column_names=names, skip_rows=above, block_size=_BLOCK_BYTES,
                encoding=self._encoding,
            ),
            arrow_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True,
                invalid_row_handler=skip if self.bad_lines == "skip" else None,
            ),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False,
                include_columns=columns,
            ),
        )  # fmt: skip
        with self._errors_with_lines(), open_bytes(self.path) as stream:
            if next(self._lines(), None) is not None:  # pyarrow needs a line below the header
                with arrow_csv.open_csv(stream, *options) as reader:
                    for batch in reader:
                        table = self.mark_missing(_refuse_long_cells(pa.table(batch)))
                        for start in range(0, table.num_rows, rows):
                            yield table.slice(start, rows)
                            empty = None
            if empty is not None:
                yield empty
        if skipped:
            n = f"{len(skipped):,} {'line' if len(skipped) == 1 else 'lines'}"
            self.warn(
                f"{n} skipped, not of {len(self.names)} cells as the header; the first is "
                f"{skipped[0][:50]!r}", SkippedLinesWarning,
            )  # fmt: skip

    def locate_row(self, row: int | None) -> str:
        """The file, and the line that a row begins on, as an editor counts them."""
        if row is None:
            return str(self)
        skips, width = self.bad_lines == "skip", len(self.names)
        rows = (number for number, cells in self._lines() if not skips or len(cells) == width)
        return f"{self}, line {next(islice(rows, row, None))}"

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Numbers of the lines that rows begin on, and their cells, by Python's csv module."""
        delimiter, _, above = self._head
        with open_text(self.path, encoding=self._encoding) as stream:
            reader, number = csv.reader(islice(stream, above, None), delimiter=delimiter), above + 1
            for cells in reader:
                if cells:
                    yield number, cells
                number = above + reader.line_num + 1

    @contextmanager
    def _errors_with_lines(self) -> Iterator[None]:
        """What is wrong with the text, and in which line."""
        try:
            with _damage_named(self.path):
                yield
        except LookupError:
            raise ValueError(f"there is no encoding {self._encoding!r}.") from None
        except (UnicodeError, csv.Error, pa.ArrowInvalid) as error:
            self._check_encoding()
            raise self._cell_count_error(error) from error

    def _check_encoding(self) -> None:
        with open_bytes(self.path) as stream:
            for number, line in enumerate(stream, 1):
                try:
                    line.decode(self._encoding)
                except UnicodeDecodeError as error:
                    if self._encoding.startswith("utf-16"):  # whose characters lines may cut
                        return
                    raise ValueError(
                        f"{self.path} is not {self._encoding.upper()} text: line {number} has the "
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
        width, end = len(self.names), self._head[2]
        try:
            for end, cells in self._lines():
                if len(cells) != width:
                    quote = " Is a quotation mark missing?" if "\n" in "".join(cells) else ""
                    return ValueError(
                        f"{self.path}, line {end}: {len(cells)} "
                        f"{'cell' if len(cells) == 1 else 'cells'} where the header has {width} "
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
        """Numbers of rows, and their cells; the header first."""
        refuse_pipe(self.path)
        with _damage_named(self.path):
            book = import_optional("openpyxl").load_workbook(
                self.path, read_only=True, data_only=True
            )
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        if self.sheet is not None:
            check_choice(self.path.name, "sheet", self.sheet, list(sheets))

        def read(sheet: str, max_rows: int | None = None) -> list[tuple[int, tuple[Any, ...]]]:
            rows = enumerate(sheets[sheet].iter_rows(max_row=max_rows, values_only=True), start=1)
            return [row for row in rows if any(cell is not None for cell in row[1])]

        filled = (
            [self.sheet] if self.sheet else [sheet for sheet in sheets if read(sheet, _HEAD_ROWS)]
        )
        sheet, *more_sheets = filled or sheets
        rows = read(sheet)
        book.close()
        if not rows:
            raise ValueError(f"{self.path}: the sheet {sheet!r} is empty.")
        if more_sheets:
            other = advice_to_read("sheet", more_sheets[0]).removesuffix(".")
            self.warn(f"of several sheets {sheet!r} is read; for another one: {other}")
        return rows[self.find_header([cells for _, cells in rows[:_HEAD_ROWS]]) :]

    @cached_property
    def _table(self) -> pa.Table:
        (_, header), *rows = self._rows
        columns = list(zip_longest(header, *(cells for _, cells in rows)))
        columns = [cells for cells in columns if any(cell is not None for cell in cells)]
        names, arrays = self.unique_names([cells[0] for cells in columns]), []
        for name, (_, *cells) in zip(names, columns):
            raw = raw_column(np.array(cells, dtype=object), name, str(self.path))
            is_typed = isinstance(raw, np.ndarray)
            arrays.append(pa.array(raw, from_pandas=True) if is_typed else to_text(raw).array)
        return self.mark_missing(pa.table(arrays, names))

    @property
    def names(self) -> list[str]:  # type: ignore[override]
        """Names of the columns."""
        return self._table.column_names

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return self._table.num_rows

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows of some columns, or of all."""
        return self._table if columns is None else self._table.select(list(columns))

    def locate_row(self, row: int | None) -> str:
        """The file, and the number of a row in its sheet."""
        return str(self) if row is None else f"{self}, row {self._rows[row + 1][0]}"


@dataclass(frozen=True)
class Fragments(RowTable):
    """Parts of a dataset of pyarrow.

    Attributes
    ----------
    parts : list
        Row groups of Parquet files, or other fragments.
    schema : pyarrow.Schema
    name : str
        For messages.
    """

    parts: list[Any]
    schema: Any
    name: str = "the Parquet dataset"

    @classmethod
    def from_data(cls, data: Any) -> Fragments:
        """From a dataset or a table of pyarrow."""
        if isinstance(data, pa.Table):
            data = import_optional("pyarrow.dataset").dataset(data)
        parts = list[Any]()
        for part in data.get_fragments():
            split = getattr(part, "split_by_row_group", None)
            parts += split() if split else [part]
        return cls(parts, data.schema)

    def __str__(self) -> str:
        return self.name

    @property
    def names(self) -> list[str]:  # type: ignore[override]
        """Names of the columns."""
        return list(self.schema.names)

    @cached_property
    def n_rows(self) -> int:
        """Rows of all parts; pyarrow's `count_rows` of a row group answers for its whole file."""
        groups = [(part, getattr(part, "row_groups", None)) for part in self.parts]
        return sum(
            part.count_rows() if of_part is None else sum(group.num_rows for group in of_part)
            for part, of_part in groups
        )

    def blocks(self, columns: Sequence[str] | None = None, rows: int = BLOCK_ROWS) -> Iterator[Any]:
        """Rows of some columns, or of all, part by part: a scan of all parts reads far ahead."""
        names, group = self.names if columns is None else list(columns), list[Any]()
        schema = pa.schema([self.schema.field(name) for name in names], self.schema.metadata)
        for part in self.parts:
            # Little read-ahead: the default of 16 batches is hundreds of megabytes.
            options = {"batch_size": min(rows, 1 << 20), "batch_readahead": 1}
            for batch in part.to_batches(self.schema, columns=names, **options):
                if group and sum(map(len, group)) + len(batch) > rows:
                    yield pa.Table.from_batches(group, schema)
                    group = []
                group += [batch] if len(batch) else []
        yield pa.Table.from_batches(group, schema)


@dataclass(frozen=True)
class ParquetFile(TableFile):
    """A Parquet file, or a folder of them.

    Folders such as ``year=2024`` are values of a column, and a column is of the type that holds the
    values of all files. A single file is read without pyarrow's module of datasets, which imports
    pandas.
    """

    @cached_property
    def _folder(self) -> Fragments | None:
        refuse_pipe(self.path)
        if self.path.is_file():
            return None
        # Other files of a folder may be logs.
        where: dict[str, Any] = {
            "source": sorted(map(str, self.path.rglob("*.p*q*"))), "format": "parquet",
            "partitioning": "hive", "partition_base_dir": str(self.path),
        }  # fmt: skip
        data = import_optional("pyarrow.dataset").dataset(**where)
        schemas = [data.schema, *(part.physical_schema for part in data.get_fragments())]
        schema = pa.unify_schemas(schemas, promote_options="permissive")
        return Fragments.from_data(
            import_optional("pyarrow.dataset").dataset(**where, schema=schema)
        )

    @cached_property
    def schema(self) -> Any:
        """Names and types of the columns."""
        if self._folder is not None:
            return self._folder.schema
        return import_optional("pyarrow.parquet").read_schema(self.path)

    @property
    def names(self) -> list[str]:  # type: ignore[override]
        """Names of the columns."""
        return list(self.schema.names)

    @cached_property
    def n_rows(self) -> int:
        if self._folder is not None:
            return self._folder.n_rows
        return import_optional("pyarrow.parquet").read_metadata(self.path).num_rows

    def blocks(self, columns: Sequence[str] | None = None, rows: int = BLOCK_ROWS) -> Iterator[Any]:
        """Rows of some columns, or of all, at most so many at a time."""
        names = self.names if columns is None else list(columns)
        if self._folder is not None:
            yield from map(self.mark_missing, self._folder.blocks(names, rows))
            return
        # With pyarrow's own default, the groups that were read stay in memory until the end.
        with import_optional("pyarrow.parquet").ParquetFile(self.path, pre_buffer=False) as file:
            if not file.metadata.num_rows:
                yield file.read(names)
            for batch in file.iter_batches(min(rows, 1 << 20), columns=names):
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
    if isinstance(path, TableFile):
        return path
    path, options = Path(path), (encoding, bad_lines, na_values, sheet)
    if is_csv(path) and path.exists() and not path.is_dir():
        return CsvFile(path, *options)
    if data_suffix(path) in EXCEL:
        return ExcelFile(path, *options)
    return ParquetFile(path, *options) if is_parquet(path) else None
