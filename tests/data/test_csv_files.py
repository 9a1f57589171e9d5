"""CSV files as tables of strings: what the text says, and errors that name the line."""

import bz2
import csv
import gzip
import io
import lzma

import numpy as np
import pytest

from kernelmaps.data import files
from kernelmaps.data.files import CsvFile


def written(path, text, encoding="utf-8"):
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


@pytest.fixture
def read(tmp_path):
    def table(text, name="mine.csv", encoding="utf-8"):
        return CsvFile(written(tmp_path / name, text), encoding).table().to_pydict()

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
    ("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
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
    match = rf"mine.csv is not UTF-8 text: line {line} has the byte 0x.*such as 'latin-1'"
    with pytest.raises(ValueError, match=match):
        read(text.encode("latin-1"))


def test_utf16_is_named_as_such_and_unknown_encodings_are_refused(read):
    with pytest.raises(ValueError, match=r"not UTF-8 text.*such as 'utf-16'"):
        read("a,b\n1,2\n".encode("utf-16"))
    with pytest.raises(ValueError, match="there is no encoding 'klingon'"):
        read("a,b\n1,2\n", encoding="klingon")


# ---- damaged text -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "mine.csv is empty"),
        ("\n\n", "mine.csv is empty"),
        ("a,a\n1,2\n", r"has the columns \['a'\] more than once"),
        ("a,b\n1,2\n3\n", "line 3: 1 cells where the header has 2 columns"),
        ("\na,b\n\n1,2\n\n3,4,5\n", "line 6: 3 cells where the header has 2 columns"),
        ('a,b\n"1\n1",2\n3\n', "line 4: 1 cells"),
        ('a,b\n1,2\n"3,4\n5,6\n', "line 3: 1 cells .* Is a quotation mark missing?"),
    ],
)
def test_damaged_text_is_refused_with_its_line(read, text, match):
    with pytest.raises(ValueError, match=match):
        read(text)


def test_a_row_that_is_longer_than_a_block_is_refused(read, monkeypatch):
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1000)
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
