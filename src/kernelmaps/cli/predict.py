"""kernelmaps predict: predictions of a saved model for the rows of a file.

What is imported here is loaded with every call: neither scikit-learn nor pandas is.
"""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .._util import storage
from .._util.display import printable
from .._util.storage import AnyPath, write_json
from ..data.reading import column_names
from ..data.table_files import compress_parts, data_suffix, has_column_names
from ..models.gam.predictor import warn_beyond
from ..models.shapes import predictor_of
from . import application as cli
from .saved_model import SavedModel, add_article

TABLE_SUFFIXES = (".csv", ".tsv", ".json")


@partial(cli.command, fits=False)
@cli.take_settings(cli.FileOptions)
def predict(
    reading: cli.FileOptions,
    model: cli.Model,
    data: cli.Data,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write: .csv (also .csv.gz, …), .tsv or .json; default: print CSV.",
        ),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities of the classes.")] = False,
    keep: Annotated[
        str | None,
        typer.Option(
            help="Columns to carry along, separated by commas; default: IDs that the model "
            "leaves out."
        ),
    ] = None,
    exposure: cli.Exposure = None,
    json: cli.AsJson = False,
) -> None:
    """Predict with a saved model; columns are found by their names.

    A model of the loss location_scale has a second column, the standard deviation.

    Examples:

    `kernelmaps predict model.kmap new.csv`

    `kernelmaps predict model.kmap new.csv.gz --proba --keep id --out predictions.csv`
    """
    cli.check_out(out)
    suffix = "" if out is None else data_suffix(out)
    if out is not None and suffix not in TABLE_SUFFIXES:
        raise ValueError(
            f"cannot write {os.fspath(out)!r}: predictions are written as "
            f"{', '.join(TABLE_SUFFIXES)}, or compressed as .csv.gz, .csv.zst."
        )
    columns, blocks = predict_rows(model, reading.open(data), proba, cli.names(keep), exposure)
    n_rows = 0

    def count_rows() -> Iterator[list[list[Any]]]:
        nonlocal n_rows
        for block in blocks:
            n_rows += len(block)
            yield block

    if json or suffix == ".json":
        plain = {"columns": columns, "values": [row for block in count_rows() for row in block]}
        if out is not None:
            write_json(out, plain)
        if json:
            cli.show_json(plain)
            return
    elif out is not None:
        lines = format_lines(columns, count_rows(), "\t" if suffix == ".tsv" else ",")
        storage.write_file(out, compress_parts(out, (text.encode() for text in lines)))
    else:
        for text in format_lines(columns, blocks):
            # A file or a pipe gets the labels as they are, a terminal none that it would obey.
            typer.echo(printable(text) if sys.stdout.isatty() else text, nl=False)
    if out is not None:
        cli.say(f"{n_rows} predictions: {out}")


def format_lines(
    columns: list[str], blocks: Iterable[list[list[Any]]], delimiter: str = ","
) -> Iterator[str]:
    """Text with one line per row, some rows at a time, below the names of the columns.

    These come with the first rows: where no row can be predicted, nothing is written.
    """
    blocks = iter(blocks)
    for block in chain([[columns, *next(blocks, [])]], blocks):
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n", delimiter=delimiter).writerows(block)
        yield stream.getvalue()


def predict_rows(
    model: AnyPath, data: AnyPath, proba: bool = False, keep: Sequence[str] | None = None,
    exposure: str | None = None,
) -> tuple[list[str], Iterator[list[list[Any]]]]:  # fmt: skip
    """Names of the columns, IDs or those of `keep` first, and predictions some rows at a time."""
    # Rows of other files are arrays, which an estimator checks.
    saved = SavedModel.load(model, to_predict=has_column_names(data))
    fitted, metadata = saved.model, saved.metadata
    if proba and not hasattr(fitted, "predict_proba"):
        name = getattr(fitted, "estimator", type(fitted).__name__)
        raise ValueError(f"{add_article(name)} has no probabilities; leave out --proba.")
    if keep is None:  # the IDs that the data have
        header = column_names(data) if metadata.get("ids") and Path(data).exists() else ()
        keep = [name for name in metadata.get("ids") or [] if name in (header or ())]
    columns = [metadata.get("target") or "prediction"]
    if metadata.get("event"):
        columns = ["log_hazard"]
    predict_with_scale = getattr(predictor_of(fitted), "predict_with_scale", None)
    if predict_with_scale is not None:
        columns.append("standard_deviation")
    names = [str(item) for item in fitted.classes_] if proba else columns
    predict = fitted.predict_proba if proba else predict_with_scale or fitted.predict

    def blocks() -> Iterator[list[list[Any]]]:
        for rows in saved.blocks(data, keep=keep, exposure=exposure):
            options = {} if rows.exposure is None else {"exposure": rows.exposure}
            values = np.asarray(predict(rows.X, **options))
            columns = [
                *rows.extra_columns.values(),
                *(values.T.tolist() if len(names) > 1 else [values.ravel().tolist()]),
            ]
            yield [list(cells) for cells in zip(*columns)]
        warn_beyond("predict", getattr(saved.model, "rows_beyond", {}), stacklevel=2)

    return [*keep, *names], blocks()
