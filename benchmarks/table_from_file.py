"""Fit a table of ten million rows from a Parquet file, in a process of its own.

``python -m benchmarks.table_from_file [--rows N] [--columns D] [--type float32]`` writes the file,
fits it, and prints as JSON: seconds of the fit, of reading the file alone and of adding up codes
alone (processor and wall), and the peak memory of the process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from .memory import peak_bytes

COLUMNS = 20
_GROUP = 1 << 18


def write(path: Path, rows: int, columns: int = COLUMNS, dtype: str = "float64") -> None:
    """Columns of numbers, of which three have a smooth effect."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for at in range(0, rows, _GROUP):
        rng = np.random.default_rng(at)
        n = min(_GROUP, rows - at)
        X = rng.gamma(3.0, 1.0, (columns, n))
        y = np.sin(X[0]) + np.log1p(X[1]) + 0.1 * X[2] ** 2 + rng.normal(size=n)
        values = [*X, y]
        names = [*(f"x{j}" for j in range(columns)), "y"]
        table = pa.table([column.astype(dtype) for column in values], names)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="none")
        writer.write_table(table, row_group_size=n)
    if writer is not None:
        writer.close()


def timed(call: Any) -> dict[str, float]:
    wall, processor = perf_counter(), process_time()
    call()
    return {"seconds": perf_counter() - wall, "processor_seconds": process_time() - processor}


def read_only(path: Path, columns: int = COLUMNS) -> None:
    """Read all columns as numbers."""
    from kernelmaps.data.tables import open_source

    for chunk in open_source(path, frames=True).blocks(_GROUP):
        for j in range(columns):
            chunk.X.column(j).to_numpy()


def add_only(rows: int, columns: int = COLUMNS) -> None:
    """Add up codes that are in memory already, of columns and of all their pairs."""
    from kernelmaps.stats import CodeSums

    rng = np.random.default_rng(0)
    codes = [rng.integers(1, 256, _GROUP).astype(np.uint8) for _ in range(columns)]
    y, sums = rng.normal(size=_GROUP), CodeSums([256] * columns)
    for at in range(0, rows, _GROUP):
        n = min(_GROUP, rows - at)
        sums.update([own[:n] for own in codes], y[:n])


def fit(path: Path, columns: int, dtype: str) -> dict[str, Any]:
    """Fit a small file and then this one; only the last counts."""
    import kernelmaps as km

    small = path.with_name("small.parquet")
    write(small, 30_000, columns, dtype)
    km.AdditiveRegressor().fit(small)  # compiles
    model = km.AdditiveRegressor()
    found: dict[str, Any] = timed(lambda: model.fit(path))
    found["peak_mib"] = peak_bytes() / 2**20
    rng = np.random.default_rng(1)
    X = rng.gamma(3.0, 1.0, (2000, columns))
    truth = np.sin(X[:, 0]) + np.log1p(X[:, 1]) + 0.1 * X[:, 2] ** 2
    found["rms_error"] = float(np.std(model.predict(X) - truth))
    return found


def measure(rows: int, columns: int = COLUMNS, dtype: str = "float64") -> dict[str, Any]:
    """All figures, the fit's from a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, rows, columns, dtype)
        command = [sys.executable, "-m", "benchmarks.table_from_file", str(path), "--fit"]
        options = ["--columns", str(columns), "--type", dtype]
        out = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
        add_only(_GROUP, columns)
        return {
            "rows": rows,
            "columns": columns,
            "file_mib": path.stat().st_size / (1 << 20),
            "fit": json.loads(out.stdout),
            "read": timed(lambda: read_only(path, columns)),
            "add": timed(lambda: add_only(rows, columns)),
        }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table_from_file")
    parser.add_argument("path", nargs="?", help="with --fit: the file")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=COLUMNS)
    parser.add_argument("--type", default="float64", choices=["float64", "float32"])
    given = parser.parse_args()
    table = given.columns, given.type
    figures = fit(Path(given.path), *table) if given.fit else measure(given.rows, *table)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
