"""Attack files that are read block by block: is the model the one of the same file in memory?

One attack draws a table of cells as people write them. Most columns have a surprise in their last
rows: leading zeros, unreadable cells, new levels, another style of numbers or dates, missing
values, extremes, decimals among whole numbers. A GAM is fitted to the file at once, and again with
no memory for it and blocks of a few rows. Kinds of columns, predictions, warnings and errors must
be the same. Half of the attacks also compute the codes from a sample of the rows. One in four
predicts labels.

    python -m benchmarks.attack_streams [--attacks 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import kernelmaps as km
from kernelmaps.data import table_files, tables
from kernelmaps.models.gam import base, codebooks, design, training_rows
from kernelmaps.models.rows import term_rows

Rng = np.random.Generator
DATE_STYLES = ("%d/%m/%Y", "%Y-%m-%d", "%d %b %Y")
TOLERANCE = 1e-6
"""Of predictions, relative to their range: both fits stop at the same tolerance."""


def _dates(rng: Rng, n: int, style: str) -> list[str]:
    days = np.datetime64("2021-01-01") + rng.integers(0, 900, n)
    return [pd.Timestamp(day).strftime(style) for day in days]


def _days_below_13(rng: Rng, n: int) -> list[str]:
    """Dates that do not say which number is the month."""
    return [
        f"{rng.integers(1, 13)}/{rng.integers(1, 13)}/{rng.integers(2019, 2025)}" for _ in range(n)
    ]


COLUMNS: dict[str, Callable[[Rng, int], list[str]]] = {
    "whole": lambda rng, n: [str(v) for v in rng.integers(0, 40, n)],
    "many whole": lambda rng, n: [str(v) for v in rng.integers(1000, 99999, n)],
    "decimal": lambda rng, n: [f"{v:.3f}" for v in rng.normal(0, 5, n)],
    "comma": lambda rng, n: [f"{v:.2f}".replace(".", ",") for v in rng.normal(0, 5, n)],
    "thousands": lambda rng, n: [f"{v:,.2f}" for v in rng.gamma(2, 900, n)],
    "dollars": lambda rng, n: [f"$ {v:,.2f}" for v in rng.gamma(2, 900, n)],
    "unit": lambda rng, n: [f"{v:.1f} kg" for v in rng.gamma(2, 9, n)],
    "percent": lambda rng, n: [f"{v:.1f}%" for v in rng.uniform(0, 100, n)],
    "clock": lambda rng, n: [f"{h:02}:{m:02}" for h, m in rng.integers(0, (24, 60), (n, 2))],
    "iso": lambda rng, n: _dates(rng, n, "%Y-%m-%d"),
    "german": lambda rng, n: _dates(rng, n, "%d.%m.%Y"),
    "slashes": _days_below_13,
    "words": lambda rng, n: rng.choice(["north", "south", "east", "west"], n).tolist(),
    "numbered": lambda rng, n: [f"shop {v}" for v in rng.integers(0, 9, n)],
    "truth": lambda rng, n: rng.choice(["true", "false"], n).tolist(),
    "postcode": lambda rng, n: [str(v) for v in rng.integers(10000, 10030, n)],
    "one value": lambda rng, n: ["7"] * n,
    "id": lambda rng, n: [str(v) for v in range(n)],
    "code": lambda rng, n: [f"r{v}" for v in range(n)],
}
SURPRISES: dict[str, Callable[[Rng, str], str]] = {
    "leading zeros": lambda rng, cell: f"0{rng.integers(1000, 9999)}",
    "unreadable": lambda rng, cell: str(rng.choice(["unknown", "see note", "***", "12 or 13"])),
    "new level": lambda rng, cell: str(rng.choice(["Oslo", "Rome"])),
    "decimal comma": lambda rng, cell: f"{rng.integers(0, 99)},{rng.integers(10, 99)}",
    "thousands": lambda rng, cell: f"{rng.integers(1, 99)},{rng.integers(100, 999)}.5",
    "unit": lambda rng, cell: f"{rng.integers(1, 99)} lb",
    "date": lambda rng, cell: _dates(rng, 1, str(rng.choice(DATE_STYLES)))[0],
    "missing": lambda rng, cell: str(rng.choice(["", "NA", "n/a", "-", "none"])),
    "extreme": lambda rng, cell: str(rng.choice(["1e6", "-99999", "1234567"])),
    "decimals": lambda rng, cell: f"{rng.integers(0, 40)}.{rng.integers(1, 9)}",
    "infinite": lambda rng, cell: str(rng.choice(["inf", "-inf"])),
    "another": lambda rng, cell: f"{cell} ",
}  # fmt: skip


@dataclass(frozen=True)
class Fit:
    """What a fit came to: its columns and predictions, or its error; and its warnings."""

    kinds: list[Any]
    predictions: np.ndarray
    said: list[str]
    error: str

    def differs_from(self, other: Fit) -> str:
        """What is not the same; empty if nothing is."""
        if self.error != other.error:
            return "error"
        if self.kinds != other.kinds:
            return "kinds"
        if self.said != other.said:
            return "warnings"
        if self.predictions.shape != other.predictions.shape:
            return "predictions"
        scale = max(float(np.ptp(self.predictions)), 1.0) if len(self.predictions) else 1.0
        same = np.allclose(self.predictions, other.predictions, rtol=0, atol=TOLERANCE * scale)
        return "" if same else "predictions"


def draw_table(rng: Rng) -> tuple[pd.DataFrame, str]:
    """Cells of a table with surprises in its last rows, and a description."""
    n, words, cells = int(rng.integers(60, 400)), [], {}
    for j in range(int(rng.integers(1, 5))):
        kind = str(rng.choice(list(COLUMNS)))
        column = COLUMNS[kind](rng, n)
        surprise = "nothing" if rng.random() < 0.2 else str(rng.choice(list(SURPRISES)))
        if surprise != "nothing":
            first = int(n * rng.uniform(0.6, 0.98))
            count = int(rng.integers(1, 1 + max(1, int((n - first) * rng.random() ** 2))))
            for row in rng.choice(np.arange(first, n), count, replace=False).tolist():
                column[row] = SURPRISES[surprise](rng, column[row])
        name = kind if kind == "id" and kind not in cells else f"{kind} {j}"
        cells[name] = column
        words.append(f"{kind}: {surprise}")
    effect = np.unique(next(iter(cells.values())), return_inverse=True)[1] % 5
    y = [f"{v:.4f}" for v in 0.5 * effect + rng.normal(size=n)]
    trouble = str(rng.choice([*["none"] * 6, "gaps", "gaps", "words", "infinite", "whole"]))
    late = rng.choice(np.arange(int(0.7 * n), n), 2, replace=False).tolist()
    y = [str(round(float(cell))) for cell in y] if trouble == "whole" else y
    for row in late if trouble in ("gaps", "words", "infinite") else []:
        y[row] = {"gaps": "", "words": "high", "infinite": "inf"}[trouble]
    return pd.DataFrame(cells | {"y": y}), f"{n} rows, {', '.join(words)}; targets: {trouble}"


def label_targets(y: pd.Series) -> pd.Series:
    """Labels in the place of numbers; other cells stay."""
    numbers = pd.to_numeric(y, errors="coerce")
    labels = np.select([numbers < 0, numbers < 1], ["low", "middle"], "high")
    return y.where(~np.isfinite(numbers), labels)


def fit_file(path: Path, X: pd.DataFrame, classify: bool) -> Fit:
    """Fit a GAM to a file; predict its rows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = (km.AdditiveClassifier if classify else km.AdditiveRegressor)().fit(path, "y")
        except ValueError as error:
            return Fit([], np.zeros(0), [], str(error))
    said = sorted(f"{item.category.__name__}: {item.message}" for item in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            predictions = model.predict_proba(X) if classify else model.predict(X)
        except ValueError:  # infinite cells among rows that have no target
            predictions = np.zeros(0)
    return Fit(list(model.reader_.columns), predictions, said, "")


def attack(seed: int, folder: Path) -> tuple[str, str]:
    """What differs between a file in memory and the same file in blocks; and the table."""
    rng = np.random.default_rng([seed, 47])
    frame, words = draw_table(rng)
    if classify := seed % 4 == 3:
        frame["y"] = label_targets(frame["y"])
    suffix = str(rng.choice([".csv", ".csv", ".csv.gz", ".parquet"]))
    path = folder / f"table{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path, row_group_size=int(rng.integers(20, 500)))
    else:
        frame.to_csv(path, index=False)
    rows, chunk = (int(size) for size in rng.integers(7, 120, 2))
    sampled = bool(rng.random() < 0.5)
    settings = [(table_files, "BLOCK_ROWS", rows), (term_rows, "CHUNK_ROWS", chunk)]
    if sampled:
        size = len(frame) // 2
        settings += [(codebooks, "SAMPLE_ROWS", size), (training_rows, "SAMPLE_ROWS", size)]
        settings += [(module, "MAX_EXACT_ROWS", 0) for module in (design, base)]
    with ExitStack() as stack:
        for module, name, value in settings:
            stack.enter_context(patch.object(module, name, value))
        X = frame.drop(columns="y")
        in_memory = fit_file(path, X, classify)
        with patch.object(tables, "IN_MEMORY_BYTES", 0):
            in_blocks = fit_file(path, X, classify)
    what = in_memory.differs_from(in_blocks)
    settings_in_words = ", sampled" * sampled + ", labels" * classify
    how = f"seed {seed}, {suffix}, blocks of {rows}{settings_in_words}: {words}"
    if what in ("error", "warnings", "kinds"):
        field = {"error": "error", "warnings": "said", "kinds": "kinds"}[what]
        how += f"\n  memory: {getattr(in_memory, field)}\n  blocks: {getattr(in_blocks, field)}"
    return what or ("refused alike" if in_memory.error else "same"), how


def attack_all(attacks: int, seed: int) -> Counter[str]:
    """Count what the attacks came to; those that succeed are printed."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(seed, seed + attacks):
            what, how = attack(number, Path(folder))
            counts[what] += 1
            if what not in ("same", "refused alike"):
                print(f"{what}: {how}", flush=True)
    return counts


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--attacks", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts = attack_all(options.attacks, options.seed)
    print(", ".join(f"{what}: {count}" for what, count in counts.most_common()))
    raise SystemExit(set(counts) > {"same", "refused alike"})


if __name__ == "__main__":
    main()
