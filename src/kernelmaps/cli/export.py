"""kernelmaps export: a map, a model or a design in the format that the suffix names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from .._util import storage
from .._util.arguments import check_choice
from .._util.storage import AnyPath
from ..engine import Spec
from ..export.files import load_with_metadata, save
from ..models.gam.functions import exposure_note, input_names
from . import application as cli
from .saved_model import SavedModel
from .settings import numbers_by_name

MODEL_SUFFIXES = (".kmap", ".onnx", ".h")
FORMATS = {
    "kmap": ".kmap", "onnx": ".onnx", "c": ".h", "sql": ".sql", "csv": ".csv", "xlsx": ".xlsx"
}  # fmt: skip

FileFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        help=f"{', '.join(FORMATS)}; by default the suffix says it. Without a file to write, "
        "one next to MODEL.",
    ),
]
Dialect = Annotated[str, typer.Option(help="Of SQL: ansi, sqlite, duckdb or postgres.")]
Table = Annotated[
    str,
    typer.Option(help="Of SQL: the table with the rows, such as policies or sales.policies."),
]
SqlColumns = Annotated[
    str | None,
    typer.Option(
        help="Of SQL: columns that come before the prediction, separated by commas; by default "
        "those that the model reads."
    ),
]
Terms = Annotated[bool, typer.Option("--terms", help="Of SQL: a column for each term, too.")]
Rows = Annotated[
    str | None,
    typer.Option(help="Of tables: a CSV or Parquet file; exposures are summed over its rows."),
]
Step = Annotated[
    str | None,
    typer.Option(help="Of tables: widths of the bands of numbers: age=5,power=20, or one for all."),
]


@cli.command
def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A .kmap file: map or model.")],
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="TARGET",
            help="File to write: .onnx (ONNX), .h (C), .sql, .csv, .xlsx (tables) or .kmap.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The same, as an option.")] = None,
    file_format: FileFormat = None,
    dialect: Dialect = "ansi",
    table: Table = "data",
    columns: SqlColumns = None,
    terms: Terms = False,
    step: Step = None,
    data: Rows = None,
    exposure: cli.Exposure = None,
    json: cli.AsJson = False,
) -> None:
    """Write a saved map or model in another format; names and the order of classes go with it.

    A GAM as .sql is a SELECT with its predictions, for a database; as .csv or .xlsx it is tables of
    effects for people.

    Examples:

    `kernelmaps export model.kmap model.onnx`

    `kernelmaps export model.kmap model.h`

    `kernelmaps export claims.kmap --format sql --dialect duckdb --table policies`

    `kernelmaps export claims.kmap tables.csv --step 0.5`
    """
    suffixes: Sequence[str] = tuple(FORMATS.values())
    if file_format is not None:
        check_choice("export", "file_format", file_format, tuple(FORMATS))
        suffixes = [FORMATS[file_format]]
        target = target if target or out else model.with_suffix(*suffixes)
    if (target is None) == (out is None):
        raise ValueError("name one file to write, as TARGET or with --out.")
    path = out or target
    assert path is not None
    suffix = cli.check_out(path, "a map or a model" if len(suffixes) > 1 else "that", suffixes)
    content, metadata = load_with_metadata(model)
    note = ""
    if suffix == ".sql":
        from ..export.sql import to_sql

        parts = table.split(".")
        text = to_sql(content, parts, dialect, columns=cli.names(columns), terms=terms)
        storage.write_file(path, f"{text};\n".encode())
    elif suffix in (".csv", ".xlsx"):
        from ..export.tables import write_tables

        saved = SavedModel(model, content, metadata)
        widths = None if step is None else numbers_by_name(step, "step")
        rows = {} if data is None else saved.all_rows(data, exposure=exposure)
        write_tables(content, path, step=widths, X=rows.get("X"), exposure=rows.get("exposure"))
    else:
        note = write_model(content, path, metadata)
    title = content.family if isinstance(content, Spec) else type(content).__name__
    size = path.stat().st_size
    if json:
        written = {"source": str(model), "path": str(path), "title": title, "bytes": size}
        cli.show_json(written | {"note": note})
        return
    cli.say(f"{title}: {path} ({size:,} bytes)")
    if note:
        cli.say(note)


def write_model(model: Any, path: AnyPath, metadata: Mapping[str, Any] | None = None) -> str:
    """Write a map, a model or a spec as the suffix says: ``.kmap``, ``.onnx`` or ``.h``.

    Names of features and the order of classes go into the file.
    Returns what a user has to know about it, or nothing.
    """
    metadata = dict(metadata or {})
    suffix = cli.check_out(path, "a map or a model", MODEL_SUFFIXES)
    write = {".onnx": _write_onnx, ".h": _write_header}.get(suffix)
    if write is None:
        save(model, path, metadata=metadata)
        return ""
    return " ".join(filter(None, [write(model, path, metadata), exposure_note(model)]))


def _write_onnx(model: Any, path: AnyPath, metadata: dict[str, Any]) -> str:
    if isinstance(model, Spec) or hasattr(model, "make_spec"):
        raise ValueError(
            "a design is a map of one feature, which ONNX has no use for: write it as .h or "
            ".kmap, or fit a DesignedMap and export that."
        )
    from ..export.onnx import to_onnx

    norm = metadata.get("normalize", "none")
    pipeline = model if norm == "none" else Pipeline([("rows", Normalizer(norm)), ("model", model)])
    row = np.ones((1, model.n_features_in_), dtype=np.float32)
    graph = to_onnx(pipeline, row, feature_names=feature_names(model, metadata))
    for key in ("task", "target"):
        if metadata.get(key):
            entry = graph.metadata_props.add()
            entry.key, entry.value = key, str(metadata[key])
    storage.write_file(path, graph.SerializeToString())
    return _describe_dates(model)


def _write_header(model: Any, path: AnyPath, metadata: dict[str, Any]) -> str:
    from ..export.c import to_c

    norm = metadata.get("normalize", "none")
    note = "" if norm == "none" else f"Rows must be scaled to {norm} norm 1 before the call."
    note = note or _describe_dates(model)
    name = re.sub(r"\W", "_", Path(path).stem)
    name = name if re.match(r"[A-Za-z_]", name) else f"map_{name}"
    text = to_c(model, name=name, feature_names=feature_names(model, metadata), note=note)
    storage.write_file(path, text.encode())
    return note


def feature_names(model: Any, metadata: dict[str, Any]) -> Sequence[str] | None:
    """Names of the features that a model adds up, where it or its file knows them."""
    return input_names(model) if hasattr(model, "reader_") else metadata.get("columns")


def _describe_dates(model: Any) -> str:
    """What the caller of an exported model has to do with dates."""
    columns = getattr(getattr(model, "reader_", None), "columns", [])
    dates = [column.name for column in columns if column.kind == "date"]
    if not dates:
        return ""
    return (
        f"Dates ({', '.join(dates)}) must be given as numbers: years with a fraction and, where "
        "the model has them, month (16 July is 7 + 15/31), weekday (Mon to Sun) and hour (0 to 24)."
    )
