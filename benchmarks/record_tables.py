"""Tables of the pages of records: kept as CSV files, which the documentation folds out."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

__all__ = ["keep_table", "markdown_table"]


def keep_table(
    page: Path, name: str, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> list[str]:
    """Write a table to ``records/NAME.csv`` beside the page; the page's lines that show it."""
    file = Path("records") / f"{name}.csv"
    path = page.parent / file
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, lineterminator="\n").writerows([header, *rows])
    return [
        f"<details><summary>All {len(rows)} rows</summary>",
        "",
        f"[As a file]({file.as_posix()})",
        "",
        "```{csv-table}",
        f":file: {file.as_posix()}",
        ":header-rows: 1",
        "```",
        "",
        "</details>",
    ]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table that stands in the page itself."""
    body = ["| " + " | ".join(row) + " |" for row in [header, *rows]]
    return [body[0], "|" + "---|" * len(header), *body[1:]]
