"""Compressed text that is damaged is refused by name, in the library and on the command line."""

import gzip
import io

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from kernelmaps.cli import load_commands
from kernelmaps.data import table_files
from kernelmaps.data.table_files import CsvFile, uncompressed_bytes

TEXT = "a,b,y\n" + "\n".join(f"{i % 7},{i % 5},{i % 2}" for i in range(3000))
COMPRESSED = {
    ".gz": gzip.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}
DAMAGES = {
    "cut": lambda data: data[: len(data) // 2],
    "foreign": lambda data: b"this was never compressed\n" * 9,
    "changed": lambda data: data[:60] + bytes(20) + data[80:],
}


def damaged(folder, suffix, damage):
    data = COMPRESSED[suffix](TEXT.encode())
    path = folder / f"rows.csv{suffix}"
    path.write_bytes(DAMAGES[damage](data))
    return path


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [*((".gz", damage) for damage in DAMAGES), (".zst", "cut"), (".zst", "foreign")],
)
def test_damaged_files_are_named(tmp_path, suffix, damage):
    path = damaged(tmp_path, suffix, damage)
    for read in (CsvFile(path).table, lambda: uncompressed_bytes(path, 1 << 20)):
        with pytest.raises(ValueError, match=rf"rows.csv{suffix}' is damaged"):
            read()


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_bad_lines_of_compressed_files_are_named(tmp_path, suffix):
    path = tmp_path / f"rows.csv{suffix}"
    path.write_bytes(COMPRESSED[suffix](b"a,b\n1,2\n1,2,3\n"))
    with pytest.raises(ValueError, match=rf"rows.csv{suffix}, line 3: 3 cells where the header"):
        CsvFile(path).table()


def test_failures_of_the_disk_are_not_taken_for_damage(tmp_path, monkeypatch):
    class BrokenDisk(io.BytesIO):
        def read(self, size=-1):
            raise OSError(5, "Input/output error")

    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    monkeypatch.setattr(table_files, "open_bytes", lambda path: BrokenDisk())
    with pytest.raises(OSError, match="Input/output error"):
        CsvFile(path).table()


@pytest.mark.parametrize(
    ("error", "code"),
    [(EOFError("short"), 2), (OSError("a page is damaged"), 2), (OSError(28, "No space left"), 1)],
)
def test_errors_of_content_and_of_the_system_have_their_codes(tmp_path, monkeypatch, error, code):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("kernelmaps.cli.fit.fit_file", fail)
    (tmp_path / "rows.csv").write_text(TEXT)
    result = CliRunner().invoke(load_commands(), ["fit", str(tmp_path / "rows.csv"), "-t", "y"])
    assert result.exit_code == code
