"""Results as tables of two columns: what, and its value."""

from __future__ import annotations

from typing import Any

__all__ = ["two_columns"]


def two_columns(values: dict[str, Any], title: str) -> Any:
    """A rich table of names and values; empty values are left out."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in values.items():
        if value not in (None, {}, ""):
            table.add_row(key.replace("_", " "), _shown(value))
    return table


def _shown(value: Any) -> str:
    """A value as a person reads it: four digits, no brackets, no more than twenty items."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "\n".join(f"{key} = {_shown(item)}" for key, item in value.items())
    if isinstance(value, list):
        more = f", … ({len(value)} in all)" if len(value) > 20 else ""
        return ", ".join(map(_shown, value[:20])) + more
    return str(value)
