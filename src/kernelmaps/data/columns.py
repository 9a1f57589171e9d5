"""Selection of feature and target columns by name, with messages for wrong names."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from .._util.arguments import argument

_INSTEAD = (
    "replace the text by numbers first, or fit a GAM (AdditiveRegressor, AdditiveClassifier), "
    "which takes text as it is."
)


def advice_on_text() -> str:
    """What to do with a column that holds text, not numbers."""
    return (
        f"Name it with {argument('target')} if it is what to predict, leave it out with "
        f"{argument('drop')}, {_INSTEAD}"
    )


@dataclass(frozen=True)
class ColumnSelection:
    """What is asked of the columns of a file; see :func:`read_rows`."""

    target: str | None = None
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()

    def resolve_in(
        self, header: list[str], name: str, *, need_target: bool = False, with_target: bool = True
    ) -> tuple[list[str], Any]:
        """Find the features and the target, None without any, in the header of a table."""
        target, columns = self.target, self.columns
        if target is None and "y" in header:
            target = "y"
        if not with_target and target not in header:
            target = None
        if target is None and need_target:
            raise no_target(name, header)
        if target is not None:
            column_positions(header, [target], name, what="target")
        column_positions(header, self.drop, name)
        if columns is None:
            excluded = {target, *self.drop}
            columns = [column for column in header if column not in excluded]
        column_positions(header, columns, name)
        return list(columns), target if with_target else None


def no_target(name: str, columns: Sequence[str] | None) -> ValueError:
    """The error that says how to name one."""
    hint = f" It has the columns {_some(columns)}." if columns else ""
    return ValueError(
        f"{name} has no target: name the column (or array) to predict with "
        f"{argument('target')}.{hint}"
    )


def column_positions(
    header: Sequence[str], columns: Sequence[str], name: str, what: str = "column"
) -> list[int]:
    """Positions of columns by name; an unknown name is refused, with the nearest existing one."""
    place = {column: j for j, column in enumerate(header)}
    unknown = [column for column in columns if column not in place]
    if unknown:
        suggestion = nearest(unknown[0], header)
        guess = f" Did you mean {suggestion!r}?" if suggestion else ""
        raise ValueError(
            f"{name} has no {what} {', '.join(map(repr, unknown))}; it has {_some(header)}.{guess}"
        )
    return [place[column] for column in columns]


def names_of(frame: Any) -> list[str] | None:
    """Names of the columns of a frame; None if it has none, or other things for names."""
    names = getattr(frame, "column_names", None)  # pyarrow
    names = getattr(frame, "columns", None) if names is None else names
    names = None if names is None or callable(names) else list(names)
    return names if names and all(isinstance(name, str) for name in names) else None


def check_order(names: Sequence[str], expected: Sequence[str], what: str) -> None:
    """Refuse columns of other names, or in another order."""
    names, expected = list(names), list(expected)
    if names == expected:
        return
    if sorted(names) == sorted(expected):
        raise ValueError(f"{what} has its columns in another order; they must be {_some(expected)}")
    column_positions(names, expected, what)
    unknown = [name for name in names if name not in set(expected)]
    raise ValueError(f"{what} has columns that are not expected: {_some(unknown)}; leave them out")


def check_selection(header: Sequence[str], columns: Sequence[str], name: str) -> None:
    """Refuse a table without some of the `columns`; warn once of those that are not among them."""
    column_positions(header, columns, name)
    unused = [column for column in header if column not in set(columns)]
    if unused:
        warnings.warn(
            f"{name} has columns that the model was not fitted on, which are ignored: "
            f"{_some(unused)}",
            UserWarning,
            stacklevel=2,
        )


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The name that was probably meant, capital letters aside."""
    small = {column.lower(): column for column in reversed(names)}  # of equal ones, the first
    matches = get_close_matches(name.lower(), list(small), n=1)
    return small[matches[0]] if matches else None


def text_columns_message(columns: Sequence[str]) -> str:
    """Say which columns hold text, and what to do."""
    if len(columns) == 1:
        return f"column {columns[0]!r} holds text, not numbers. {advice_on_text()}"
    return (
        f"the columns {_some(columns)} hold text, not numbers. If one of them is what to predict, "
        f"name it with {argument('target')}; leave the others out with {argument('drop')}, "
        f"{_INSTEAD}"
    )


def _some(columns: Sequence[str] | None) -> str:
    shown = ", ".join(map(repr, list(columns or [])[:12]))
    return f"{shown}, … ({len(columns)} in all)" if columns and len(columns) > 12 else shown
