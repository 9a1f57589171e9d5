"""A fitted model of a file, and the rows of new files as it takes them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._util.storage import AnyPath
from ..data import table_files, tables
from ..data.columns import column_positions, no_target
from ..data.reading import read_rows
from ..data.text_cells import quote_cells
from ..exceptions import SuspectColumnWarning
from ..export.files import load_with_metadata
from ..models.shapes import predictor_of

# Entries of the metadata that name columns which are no features.
_ROLES = "target", "event", "exposure", "sample_weight"


@dataclass(frozen=True)
class NewRows:
    """Some rows of a file as a model takes them.

    Attributes
    ----------
    X : array or pyarrow table
    y, exposure : ndarray or None
    extra_columns : dict of str to list
        Cells of the columns that are carried along.
    """

    X: Any
    y: Any = None
    exposure: Any = None
    extra_columns: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class SavedModel:
    """A fitted model of a file, with the names that it was saved with.

    Attributes
    ----------
    path : path
        Where it is saved.
    model : estimator
    metadata : dict
    """

    path: AnyPath
    model: Any
    metadata: dict[str, Any]

    @classmethod
    def load(cls, path: AnyPath, *, to_predict: bool = False) -> SavedModel:
        """Load a model, `to_predict` without its estimator if it can do so; a map is refused."""
        model, metadata = load_with_metadata(path, to_predict=to_predict)
        if not hasattr(model, "predict"):
            raise ValueError(
                f"{os.fspath(path)!r} holds {add_article(type(model).__name__)}, which does not "
                "predict: make a model with `kernelmaps fit`."
            )
        saved = cls(path, model, metadata)
        if not hasattr(model, "reader_") and saved.columns is not None:
            _set_map_names(model, saved.columns)
        return saved

    @property
    def columns(self) -> Sequence[str] | None:
        """Names of the features, of a model that was fitted on a file or a frame with names."""
        columns = self.metadata.get("columns")
        return getattr(self.model, "feature_names_in_", None) if columns is None else columns

    def blocks(
        self, data: AnyPath, *, keep: Sequence[str] = (), target: str | None = None,
        with_target: bool = False, exposure: str | None = None,
    ) -> Iterator[NewRows]:  # fmt: skip
        """The rows of new data with the columns that the model knows; tables block by block."""
        target = target or self.metadata.get("target")
        named = table_files.has_column_names(data)
        if hasattr(self.model, "reader_") and (named or self.model.reader_.named):
            if not named:
                raise ValueError(
                    f"{os.fspath(data)!r} has no names of columns, which a model of a table finds "
                    "its columns by: use CSV or Parquet."
                )
            yield from self._table_blocks(data, keep, target, with_target, exposure)
            return
        if exposure not in (None, "none"):
            raise ValueError("--exposure is for models of tables that were fitted with it.")
        rows = read_rows(
            data, target=target, columns=self.columns if named else None, keep=keep,
            need_target=with_target, with_target=with_target,
        )  # fmt: skip
        if rows.X.shape[1] != self.model.n_features_in_:
            raise ValueError(
                f"{rows.name} has {rows.X.shape[1]} features, the model was fitted on "
                f"{self.model.n_features_in_}."
            )
        rows = rows.normalized(self.metadata.get("normalize", "none"))
        yield NewRows(
            self._with_names(rows.X) if named else rows.X, rows.y, None, rows.extra_columns
        )

    def all_rows(self, data: AnyPath, **options: Any) -> dict[str, Any]:
        """X, y and exposure of all rows of new data; see `blocks` for the options."""
        blocks = list(self.blocks(data, **options))
        columns = {name: [getattr(rows, name) for rows in blocks] for name in ("y", "exposure")}
        rows = {name: None if v[0] is None else np.concatenate(v) for name, v in columns.items()}
        if len(blocks) == 1:
            return {"X": blocks[0].X, **rows}
        import pyarrow

        return {"X": pyarrow.concat_tables(block.X for block in blocks), **rows}

    def _with_names(self, X: Any) -> Any:
        """Rows whose columns were found by name, as a frame if the estimator was fitted on one."""
        names = getattr(self.model, "feature_names_in_", None)
        if names is None or hasattr(self.model, "estimator"):  # which takes arrays
            return X
        import pandas

        return pandas.DataFrame(X, columns=names)

    def _table_blocks(
        self, data: AnyPath, keep: Sequence[str], target: str | None, with_target: bool,
        exposure: str | None,
    ) -> Iterator[NewRows]:  # fmt: skip
        """Blocks of a file for a GAM, whose columns are found by name."""
        path = Path(data)
        if not path.exists():
            raise FileNotFoundError(f"there is no file {str(path)!r}.")
        file = table_files.open_table(data)
        if file is not None and self.metadata.get("na_values"):
            file = replace(file, na_values=(*file.na_values, *self.metadata["na_values"]))
        name, header, metadata = str(path), [] if file is None else file.names, self.metadata
        target = target or ("y" if "y" in header else None) if with_target else None
        if with_target and target is None:
            raise no_target(name, header)
        column_positions(header, [target] if target else [], name, what="target")
        column_positions(header, keep, name)
        exposure = exposure or metadata.get("exposure")
        exposure = None if exposure == "none" else exposure
        if exposure is not None and exposure not in header:
            raise ValueError(
                f"{path} has no column {exposure!r} with the exposures that the model was fitted "
                "with. Name another one with --exposure, or use --exposure none for exposures of 1."
            )
        roles = {target, exposure, *map(metadata.get, _ROLES)}
        features = self._find_features(header, roles, name)
        columns = list(dict.fromkeys([*features, *keep]))
        table = tables.TableSource(file, columns, target, None, exposure, frames=True)
        if target and (event := metadata.get("event")):  # which the weights hold the place of
            table.w = tables.read_complete_column(file.table([event]), event, file.locate_row)
        block = None
        for block in table.with_roles().blocks(table_files.BLOCK_ROWS):
            y = block.y if block.w is None else np.column_stack([block.y, block.w])
            cells = _cells(block.X.select(list(keep)))
            yield NewRows(block.X.select(features), y, block.exposure, cells)
        if block is None:
            raise ValueError(f"{path} has no rows.")

    def _find_features(self, header: list[str], roles: set[Any], name: str) -> list[str]:
        """Columns that the model reads, in its order; others are ignored, new ones with a word."""
        reader, unused = self.model.reader_, self.metadata.get("unused")
        if not reader.named:
            return [column for column in header if column not in roles]
        features = [column.name for column in reader.columns if column.features]
        column_positions(header, features, name)
        expected = {*reader.names, *(unused or []), *roles}
        new = [column for column in header if column not in expected]
        if new and unused is not None:
            warnings.warn(
                f"{name} has columns that were not there in fit, which are ignored: "
                f"{quote_cells(new, 5)}.",
                SuspectColumnWarning,
                stacklevel=2,
            )
        return features


def _set_map_names(fitted: Any, columns: Sequence[str]) -> None:
    """Let the additive maps of a model, fitted on an array, name columns in messages."""
    parts = getattr(getattr(fitted, "_fitted_maps", None), "parts", [])
    maps = [part.map for part in parts if part.columns is None]
    steps = [step for made in maps for _, step in getattr(made, "steps", [("map", made)])]
    for feature_map in [getattr(predictor_of(fitted), "feature_map", None), *steps]:
        if hasattr(feature_map, "_known_names") and feature_map.n_features_in_ == len(columns):
            vars(feature_map)["_known_names"] = columns


def _cells(table: Any) -> dict[str, list[Any]]:
    """The cells of a pyarrow table; nanoseconds, which Python's times do not have, as text."""
    try:
        return table.to_pydict()
    except ValueError:
        import pyarrow

        names = table.column_names
        return {name: table[name].cast(pyarrow.string()).to_pylist() for name in names}


def add_article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"
