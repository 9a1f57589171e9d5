"""kernelmaps fit: a model of a file, its score on held-out rows, and its file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..data.columns import ColumnSelection
from . import application as cli
from .export import MODEL_SUFFIXES, write_model
from .fitting import fit_file
from .settings import FitSettings

ModelOut = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", help="The model to write: .kmap, .onnx, or .h for C; without it none is."
    ),
]
ModelKind = Annotated[
    str | None,
    typer.Option(
        help="gam: a sum of functions of single columns and pairs, whose smoothness is estimated; "
        "svm: such a sum on a map, with a fixed C; ridge: linear on any map. Default: gam; with "
        "--map or --C, and for sparse rows: svm.",
        show_default=False,
    ),
]
Map = Annotated[
    str | None,
    typer.Option(
        "--map",
        help="Map and settings, e.g. HomogeneousMap(kernel=chi2,n_components=5), or a map's .kmap "
        "file. Default: SplineMap (svm), none (ridge).",
    ),
]
Penalty = Annotated[
    float | None,
    typer.Option(
        "--C", help="Inverse strength of the regularisation, on a map; 1.", show_default=False
    ),
]
Interactions = Annotated[
    str | None,
    typer.Option(help="GAM: pairs of columns, as auto, a number, or hour:load,age:income."),
]
Terms = Annotated[
    str | None,
    typer.Option(
        help="GAM: terms of single columns, e.g. hour=periodic:24,load=linear,zip=category; "
        "none leaves a column out."
    ),
]
Constraints = Annotated[
    str | None,
    typer.Option(help="GAM: shapes, e.g. area=increasing+concave,age=convex."),
]
Smoothing = Annotated[
    str | None,
    typer.Option(help="GAM: auto, a number (worth as many rows), or area=100,age=10."),
]
Loss = Annotated[
    str | None,
    typer.Option(help="Loss: log_loss, poisson, quantile:0.9, …; of an SVM hinge, …"),
]
MaxIter = Annotated[int | None, typer.Option(help="Most steps of the solver.")]
Tol = Annotated[
    float | None, typer.Option(help="SVM: relative distance to the minimum at which it stops.")
]
Holdout = Annotated[
    str,
    typer.Option(
        help="Rows that are scored, one in five, by a model that has not seen them: the last ones, "
        "random ones, or none (then the training rows are scored). auto: last, where a date orders "
        "the rows, else random. The saved model is fitted on all rows.",
    ),
]
SampleWeight = Annotated[str | None, typer.Option(help="GAM: column of weights of the rows.")]
Stream = Annotated[
    bool | None,
    typer.Option(
        "--stream/--in-memory",
        help="GAM: read the file block by block, so that it may be larger than memory. Default: "
        "from 256 MiB on.",
        show_default=False,
    ),
]


@cli.command
def fit(
    data: cli.Data,
    out: ModelOut = None,
    target: cli.Target = None,
    model: ModelKind = None,
    map: Map = None,
    task: cli.TaskOption = "auto",
    C: Penalty = None,
    interactions: Interactions = None,
    terms: Terms = None,
    constraints: Constraints = None,
    smoothing: Smoothing = None,
    loss: Loss = None,
    max_iter: MaxIter = None,
    tol: Tol = None,
    exposure: cli.Exposure = None,
    sample_weight: SampleWeight = None,
    holdout: Holdout = "auto",
    stream: Stream = None,
    columns: cli.Columns = None,
    drop: cli.Drop = None,
    normalize: cli.Normalize = "none",
    encoding: cli.Encoding = "utf-8",
    json: cli.AsJson = False,
) -> None:
    """Fit a model, score it on held-out rows, and save it with `--out`.

    A CSV or Parquet file is fitted as a table, by a GAM: the model is that of
    `AdditiveRegressor().fit(file, target)` or `AdditiveClassifier` in Python. Text becomes
    categories, a date a trend and its cycles (year, week, day), a missing value a level of its own.
    Columns that name the rows are left out. With `--map` or `--C` the file must hold numbers, such
    as histograms, and an additive SVM is fitted.

    CSV and Parquet files of more than 256 MiB are read block by block, and a ridge model reads
    Parquet and npy so: they may be larger than memory.

    Examples:

    `kernelmaps fit mine.csv --target label --drop id --out model.kmap`

    `kernelmaps fit flats.csv -t rent --interactions auto --constraints area=increasing
    -o model.kmap`

    `kernelmaps fit claims.csv -t claims --loss poisson --exposure years -o model.kmap`

    `kernelmaps fit mine.parquet -t price --model ridge --map "RandomFourierMap(n_components=500)"
    -o model.kmap`
    """
    cli.check_norm(normalize)
    cli.check_out(out, "a model", MODEL_SUFFIXES)
    settings = FitSettings(
        model, map, task, C, interactions, terms, constraints, smoothing, loss, max_iter, tol,
        exposure, sample_weight, holdout, stream, normalize, encoding,
    )  # fmt: skip
    selection = ColumnSelection(target, cli.names(columns), cli.names(drop) or [])
    result = fit_file(data, settings, selection)
    if out is not None:
        write_model(result.model, out, result.metadata)
    saved = "not saved: name a file, --out model.kmap" if out is None else f"saved: {out}"
    cli.show(result, json, saved)
