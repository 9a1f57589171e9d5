"""CSV files as tables of strings: what the text says, and errors that name the line."""

import csv
import gzip
import io
import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from kernelmaps.data import table_files
from kernelmaps.data.table_files import CsvFile, open_table
from kernelmaps.exceptions import SkippedLinesWarning, SuspectColumnWarning


def written(path, text, encoding="utf-8"):
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


@pytest.fixture
def read(tmp_path):
    def table(text, name="mine.csv", **options):
        return open_table(written(tmp_path / name, text), **options).table().to_pydict()

    return table


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a,b\n1,2\n3,4\n", {"a": ["1", "3"], "b": ["2", "4"]}),
        ("a;b\n1,5;x\n", {"a": ["1,5"], "b": ["x"]}),
        ("a\tb\n1\t2", {"a": ["1"], "b": ["2"]}),
        ("1,2\n3,4\n", {"x0": ["1", "3"], "x1": ["2", "4"]}),
        ("a,\n1,2\n", {"a": ["1"], "Unnamed: 1": ["2"]}),
        ("\ufeffa,b\r\n1,2\r\n", {"a": ["1"], "b": ["2"]}),
        ("a,b\r1,2\r3,4\r", {"a": ["1", "3"], "b": ["2", "4"]}),
        ("\n\na,b\n\n1,2\n\n", {"a": ["1"], "b": ["2"]}),
        ('a,b\n"1\n2","say ""x"", y"\n', {"a": ["1\n2"], "b": ['say "x", y']}),
        ("a,b\n,NA\n", {"a": [""], "b": ["NA"]}),
        ("a,b\n", {"a": [], "b": []}),
        ("a,b", {"a": [], "b": []}),
    ],
)
def test_cells_are_those_of_the_text(read, text, columns):
    assert read(text) == columns


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".zst", lambda data: pa.compress(data, codec="zstd", asbytes=True)),
    ],
)
def test_compressed_files(read, suffix, pack):
    assert read(pack(b"a,b\n1,2\n"), f"mine.csv{suffix}") == {"a": ["1"], "b": ["2"]}
    assert read(pack(b"a\tb,c\n1\t2\n"), f"mine.tsv{suffix}") == {"a": ["1"], "b,c": ["2"]}


def test_random_tables_come_back_from_the_writer_of_python(tmp_path, seed):
    """Delimiters, quotes, line ends and blanks within cells, in blocks of any size."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("ab1 ,;\t\"'\n\r.é-"))
    cells = [
        ["".join(rng.choice(letters, rng.integers(1, 8))) for _ in range(3)] for _ in range(90)
    ]
    stream = io.StringIO()
    csv.writer(stream).writerows([["first", "second", "third"], *cells])
    file = CsvFile(written(tmp_path / "mine.csv", stream.getvalue()))
    columns = dict(zip(["first", "second", "third"], map(list, zip(*cells))))
    assert file.table().to_pydict() == columns
    for rows in (1, 7, 90, 1000):
        blocks = list(file.blocks(rows=rows))
        assert [block.num_rows for block in blocks[:-1]] == [rows] * (len(blocks) - 1)
        joined = {name: [x for b in blocks for x in b[name].to_pylist()] for name in columns}
        assert joined == columns
    assert file.table(["third", "first"]).column_names == ["third", "first"]


def test_blocks_of_an_empty_table(tmp_path):
    file = CsvFile(written(tmp_path / "mine.csv", "a,b\n"))
    assert [block.num_rows for block in file.blocks()] == [0]


# ---- encodings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
def test_other_encodings_are_read_where_they_are_named(read, encoding):
    text = "größe,y\n1,é\n".encode(encoding)
    assert read(text, encoding=encoding) == {"größe": ["1"], "y": ["é"]}


@pytest.mark.parametrize("text", ["größe,y\n1,2\n", "a,y\n1,2\n3,é\n"])
def test_text_that_is_not_utf8_is_refused_with_the_line_and_an_encoding(read, text):
    line = 1 + text.split("é")[0].count("\n") if "é" in text else 1
    match = rf"mine.csv is not UTF-8 text: line {line} has the byte 0x.*encoding='cp1252'"
    with pytest.raises(ValueError, match=match):
        read(text.encode("latin-1"))


def test_utf16_is_known_by_its_mark_and_other_encodings_are_guessed(read):
    assert read("a,b\n1,€\n".encode("utf-16")) == {"a": ["1"], "b": ["€"]}
    assert read("a,b\n1,€\n".encode("cp1252"), encoding="cp1252") == {"a": ["1"], "b": ["€"]}
    with pytest.raises(ValueError, match=r"line 2 has the byte 0x81.*encoding='latin-1'"):
        read(b"a,b\n1,\x81\n")  # no letter of Windows
    for encoding in ("utf-32", "utf-16-le"):  # SQL Server writes the latter without a mark
        assert read("a,b\n1,€\n".encode(encoding)) == {"a": ["1"], "b": ["€"]}
    with pytest.raises(ValueError, match=r"is no text, but a \.gz file: rename it"):
        read(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(ValueError, match="there is no encoding 'klingon'"):
        read("a,b\n1,2\n", encoding="klingon")


# ---- other tables than a parser expects ---------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    ["price,price,price", "price,price,price.1", "a,a.1,a,a", "a,a,a.1,a.1", "a.1,a,a", "a,,,b"],
)
def test_repeated_names_are_numbered_as_pandas_does(read, header):
    text = header + "\n" + ",".join(map(str, range(header.count(",") + 1)))
    expected = list(pd.read_csv(io.StringIO(text)).columns)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert list(read(text)) == expected
    assert [item.category for item in warned] == [SuspectColumnWarning] * (",," not in header)


@pytest.mark.parametrize(
    ("text", "columns", "warning"),
    [
        ("sep=;\na;b\n1,5;x\n", {"a": ["1,5"], "b": ["x"]}, None),
        ("a|b\n1,5|x\n", {"a": ["1,5"], "b": ["x"]}, None),
        ("Rents\n\na,b\n1,x\n", {"a": ["1"], "b": ["x"]}, "above the header .* 'Rents'"),
        ("# by R,\n2024,\na,b\n1,x\n", {"a": ["1"], "b": ["x"]}, "'# by R', '2024'"),
        ("a,b\n1,2,x\n", {"Unnamed: 0": ["1"], "a": ["2"], "b": ["x"]}, "first one names the row"),
        ("a,b\n1,x,\n2,y,", {"a": ["1", "2"], "b": ["x", "y"], "Unnamed: 2": ["", ""]}, "is empty"),
        ("1.5,x\n2,y\n", {"1.5": ["2"], "x": ["y"]}, None),  # one number may be a name
        ("1.5,7,x\n2,4,y\n", {"1.5": ["2"], "7": ["4"], "x": ["y"]}, "names of columns are num"),
        ("2019,2020,x\n2,4,y\n", {"2019": ["2"], "2020": ["4"], "x": ["y"]}, None),
        ("x\n1,5\n2,5\n", None, "line 2: 2 cells"),  # a decimal comma, not a title
        ("remark\ngood\nbad, really\n", None, "line 3: 2 cells"),
    ],
)  # fmt: skip
def test_the_header_is_found_as_programs_write_it(read, text, columns, warning):
    """A line of Excel's, titles, names of rows as R writes them, and a delimiter at the end."""
    if columns is None:
        with pytest.raises(ValueError, match=warning):
            read(text)
        return
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert read(text) == columns
    assert len(warned) == (warning is not None)
    if warning:
        assert re.search(warning, str(warned[0].message))


def test_lines_are_counted_below_titles(tmp_path):
    path = written(tmp_path / "mine.csv", "Rents\n\na,b\n1,2\n\n3,4\n5\n")
    with pytest.warns(SkippedLinesWarning), pytest.raises(ValueError, match="line 7: 1 cell "):
        open_table(path).table()
    with pytest.warns(SkippedLinesWarning):
        assert open_table(path).locate_row(1).endswith("line 6")


def test_lines_of_other_lengths_can_be_skipped(tmp_path):
    path = written(tmp_path / "mine.csv", 'a,b\n1,2\n3\n4,5,6\n"7\n",8\n9,0\n')
    with pytest.raises(ValueError, match=r"line 3: 1 cell.*leave such.*bad_lines='skip'"):
        open_table(path).table()
    file = open_table(path, bad_lines="skip")
    with pytest.warns(SkippedLinesWarning, match="2 lines skipped, not of 2 cells.*first is '3'"):
        assert file.table().to_pydict() == {"a": ["1", "7\n", "9"], "b": ["2", "8", "0"]}
    with pytest.warns(SkippedLinesWarning, match="2 lines"):
        assert [block["b"][0].as_py() for block in file.blocks(rows=1)] == ["2", "8", "0"]
    assert file.locate_row(1).endswith("line 5")
    assert file.locate_row(2).endswith("line 7")
    with pytest.raises(ValueError, match="bad_lines must be one of 'error', 'skip'"):
        open_table(path, bad_lines="guess")


def test_cells_can_be_named_as_missing(tmp_path):
    table = {"a": ["1", " k.A. ", "-999"], "b": ["x", "-9", ""]}
    path = written(tmp_path / "mine.csv", "a,b\n" + "\n".join(map(",".join, zip(*table.values()))))
    file = open_table(path, na_values=["k.A.", -999])
    assert file.table().to_pydict() == {"a": ["1", "", ""], "b": table["b"]}
    typed = pa.table({"n": [1.5, -999.0], "k": pa.array([-999, 2]), "t": ["k.A.", "-999.0"]})
    pyarrow.parquet.write_table(typed, tmp_path / "mine.parquet")
    file = open_table(tmp_path / "mine.parquet", na_values=["k.A.", -999])
    expected = {"n": [1.5, None], "k": [None, 2], "t": ["", "-999.0"]}
    assert file.table().to_pydict() == expected
    assert next(file.blocks(["n", "k", "t"])).to_pydict() == expected


def test_sheets_of_excel_are_read_with_their_types(tmp_path):
    path = tmp_path / "mine.xlsx"
    day = pd.Timestamp("2024-01-31 12:30")
    frame = pd.DataFrame({"n": [1, 2.5, None], "d": [day, None, day], "t": ["a", None, "b"]})
    frame["mixed"] = [1, "k.A.", 2.5]
    with pd.ExcelWriter(path) as book:
        frame.to_excel(book, sheet_name="rows", index=False)
        frame.tail(0).to_excel(book, sheet_name="empty", index=False, header=False)
    file = open_table(path, na_values="k.A.")
    expected = {"n": [1.0, 2.5, None], "d": [day, None, day], "t": ["a", None, "b"]}
    assert file.table().to_pydict() == expected | {"mixed": ["1", "", "2.5"]}
    assert file.names == list(frame.columns)
    assert [len(block) for block in file.blocks(["t"], 2)] == [2, 1]
    assert file.locate_row(1).endswith("mine.xlsx, row 3")
    with pd.ExcelWriter(tmp_path / "two.xlsx") as book:
        frame.tail(0).to_excel(book, sheet_name="cover", index=False, header=False)
        frame.to_excel(book, sheet_name="rows", index=False, startrow=3)
        frame.to_excel(book, sheet_name="more", index=False)
        book.sheets["rows"].cell(1, 1, "Rents of 2024")
    two = open_table(tmp_path / "two.xlsx", na_values="k.A.")
    with pytest.warns() as warned:
        assert two.table() == file.table()
    words = [str(item.message) for item in warned]
    assert "'rows' is read; for another one: pass" in words[0]
    assert "sheet='more'" in words[0]
    assert "lines above the header are skipped: 'Rents of 2024'" in words[1]
    assert two.locate_row(1).endswith("two.xlsx, row 6")
    with pytest.raises(ValueError, match="sheet must be one of 'rows', 'empty', got 'x'"):
        open_table(path, sheet="x").table()
    with pytest.raises(ValueError, match="the sheet 'empty' is empty"):
        open_table(path, sheet="empty").table()
    (tmp_path / "other.xlsx").write_text("a,b")
    with pytest.raises(ValueError, match=r"is damaged, incomplete or no .xlsx file"):
        open_table(tmp_path / "other.xlsx").table()


# ---- damaged text -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "mine.csv is empty"),
        ("\n\n", "mine.csv is empty"),
        ("a,b\n1,2\n3\n", "line 3: 1 cell where the header has 2 columns"),
        ("\na,b\n\n1,2\n\n3,4,5\n", "line 6: 3 cells where the header has 2 columns"),
        ('a,b\n"1\n1",2\n3\n', "line 4: 1 cell"),
        ('a,b\n1,2\n"3,4\n5,6\n', "line 3: 1 cell .* Is a quotation mark missing?"),
    ],
)
def test_damaged_text_is_refused_with_its_line(read, text, match):
    with pytest.raises(ValueError, match=match):
        read(text)


def test_a_row_that_is_longer_than_a_block_is_refused(read, monkeypatch):
    monkeypatch.setattr(table_files, "_BLOCK_BYTES", 1000)
    with pytest.raises(ValueError, match=r"cannot be split into cells.*after line 3"):
        read("a,y\n1,x\n2," + "z" * 5000)


def test_a_cell_that_swallows_the_rest_of_the_file_is_refused(read, tmp_path):
    text = 'a,y\n1,x\n2,"' + "3,z\n" * 50_000
    with pytest.raises(ValueError, match=r"'y' has more than 131,072 bytes.*in or after line 2"):
        read(text)
    with pytest.raises(ValueError, match="more than 131,072 bytes"):
        list(CsvFile(tmp_path / "mine.csv").blocks(rows=2))


def test_places_are_counted_as_an_editor_does(tmp_path):
    file = CsvFile(written(tmp_path / "mine.csv", 'a,b\n\n1,2\n\n"3\n",4\n5,6\n'))
    assert [file.locate_row(row).rpartition(" ")[2] for row in range(3)] == ["3", "5", "7"]
