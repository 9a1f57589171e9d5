"""Tables that are larger than memory: cells in a file that does not outlive the fit."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernelmaps.data import table_files, tables
from kernelmaps.data.tables import open_large_table
from kernelmaps.models.gam import training_rows


def write(path, header, rows):
    path.write_text("\n".join([header, *rows]))
    return path


@pytest.fixture(autouse=True)
def blocks_of_ten(monkeypatch, tmp_path):
    monkeypatch.setattr(table_files, "BLOCK_ROWS", 10)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()


def test_columns_are_typed_by_what_all_blocks_hold(tmp_path):
    """The second block decides that the day comes first, the third that a column holds words."""
    days = ["3/4/2025"] * 10 + ["25/4/2025"] * 10 + ["1/2/2025"] * 10
    mixed = [str(k % 5) for k in range(20)] + ["many", "few"] * 5
    price = [f"{k}.5" for k in range(20)] + [f"1,00{k}.5" for k in range(10)]
    rows = [f'{d},{m},"{p}",{k % 2}' for k, (d, m, p) in enumerate(zip(days, mixed, price))]
    with open_large_table(write(tmp_path / "t.csv", "day,mixed,price,y", rows)) as source:
        sample = training_rows.take_sample(source, "Model")
        y = np.concatenate([block.y for block in source.blocks(7)])
    kinds = {column.name: (column.kind, column.form) for column in sample.reader.columns}
    assert kinds["day"] == ("date", "%d/%m/%Y")
    assert kinds["mixed"] == ("category", "mixed")
    assert kinds["price"] == ("number", "1,234.5")
    assert sample.columns[-1].values[-1] == 1009.5
    assert y.dtype == np.int64


def test_labels_are_of_one_kind(tmp_path):
    """They are decided on from all rows; a cell that is no number is named by its own line."""
    rows = [f"{k % 3},{'ab'[k % 2]}" for k in range(10)] + [f"{k % 3},{k % 2}" for k in range(10)]
    with open_large_table(write(tmp_path / "t.csv", "a,y", rows)) as source:
        labels = np.concatenate([block.y for block in source.blocks(100)])
    assert sorted(set(labels.tolist())) == ["0", "1", "a", "b"]
    rows = [f"{k},{k}" for k in range(30)]
    path = write(tmp_path / "t.csv", "a,y", [*rows, "1,word", *rows])
    with pytest.raises(ValueError, match="line 32: the target 'y' holds numbers, and 'word'"):
        open_large_table(path).__enter__()


@pytest.mark.skipif(os.name != "posix", reason="open files have names elsewhere")
def test_the_cells_are_in_a_file_without_a_name(tmp_path):
    """However the process ends, nothing is left."""
    path = write(tmp_path / "t.csv", "a,y", [f"{k}.5,{k}" for k in range(50)])
    with open_large_table(path) as source:
        assert not list(Path(tempfile.gettempdir()).iterdir())
        rows = [cell.as_py() for block in source.blocks(20) for cell in block.X["a"]]
    assert rows == [f"{k}.5" for k in range(50)]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_the_limit_of_memory_counts_what_files_hold(suffix, tmp_path, monkeypatch):
    """A thousand equal rows of 80 bytes are stored in a few hundred; so are words."""
    path = tmp_path / f"t{suffix}"
    frame = pd.DataFrame({f"column{j}": [1234567.0] * 1000 for j in range(4)})
    frame["words"] = "thirty-six characters of a long text"
    frame.to_parquet(path) if suffix == ".parquet" else frame.to_csv(path, index=False)
    monkeypatch.setattr(tables, "IN_MEMORY_BYTES", 63_000)
    assert not tables.fits_in_memory(path)
    if suffix != ".csv":
        assert path.stat().st_size < 20_000
    monkeypatch.setattr(tables, "IN_MEMORY_BYTES", 90_000)
    assert tables.fits_in_memory(path)


def test_groups_of_a_parquet_file_that_were_read_leave_memory(tmp_path):
    rows, groups = 1 << 16, 24
    path = tmp_path / "rows.parquet"
    table = pa.table({"x": np.random.default_rng(0).random(rows * groups)})
    pq.write_table(table, path, row_group_size=rows, compression="none", use_dictionary=False)
    del table
    before, most = pa.total_allocated_bytes(), 0
    for block in table_files.ParquetFile(path).blocks(rows=rows):
        assert len(block) <= rows
        most = max(most, pa.total_allocated_bytes() - before)
    # One group as it lies in the file, one as an array, and what the reader has ready.
    assert 8 * rows <= most <= 6 * 8 * rows < path.stat().st_size / 3
