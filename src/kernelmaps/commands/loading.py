"""The Python that reads a file as a command does, for the programs that commands print."""

from __future__ import annotations

from collections.abc import Sequence


def loading_code(
    data: str,
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    normalize: str = "none",
) -> str:
    """Two lines of Python that make X and y from a file, or from a dataset by name."""
    options = [repr(data)]
    options += [f"target={target!r}"] if target is not None else []
    options += [f"columns={list(columns)!r}"] if columns else []
    options += [f"drop={list(drop)!r}"] if drop else []
    scaled = "" if normalize == "none" else f".normalized({normalize!r})"
    return f"rows = km.datasets.read_rows({', '.join(options)}){scaled}\nX, y = rows.X, rows.y"
