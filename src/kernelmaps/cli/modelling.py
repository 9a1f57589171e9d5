"""Commands on models (fit, predict, evaluate, export, explain, info), and warmup."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from .._util.arguments import install_hint
from .._util.display import printable
from . import _shared as shared

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A .kmap file made by fit.")]

# ---- fit ----------------------------------------------------------------------------------------

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
        help="Map and settings, e.g. HomogeneousMap(kernel=chi2,n_components=5). "
        "Default: SplineMap (svm), none (ridge).",
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
    typer.Option(help="Loss: log_loss, poisson, absolute_error, …; of an SVM hinge, …"),
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
Exposure = Annotated[
    str | None,
    typer.Option(help="Column of exposures, for --loss poisson and gamma; later: that of fit."),
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


@shared.command
def fit(
    data: shared.Data,
    out: ModelOut = None,
    target: shared.Target = None,
    model: ModelKind = None,
    map: Map = None,
    task: shared.TaskOption = "auto",
    C: Penalty = None,
    interactions: Interactions = None,
    terms: Terms = None,
    constraints: Constraints = None,
    smoothing: Smoothing = None,
    loss: Loss = None,
    max_iter: MaxIter = None,
    tol: Tol = None,
    exposure: Exposure = None,
    sample_weight: SampleWeight = None,
    holdout: Holdout = "auto",
    stream: Stream = None,
    columns: shared.Columns = None,
    drop: shared.Drop = None,
    normalize: shared.Normalize = "none",
    encoding: shared.Encoding = "utf-8",
    json: shared.AsJson = False,
) -> None:
    """Fit a model, score it on held-out rows, and save it with `--out`.

    A CSV or Parquet file is fitted as a table, by a GAM: the model is that of
    `AdditiveRegressor().fit(file, target)` or `AdditiveClassifier` in Python. Text becomes
    categories, a date a trend and its month, weekday and hour, a missing value a level of its own.
    Columns that name the rows are left out. With `--map` or `--C` the file must hold numbers, such
    as histograms, and an additive SVM is fitted.

    CSV and Parquet files of more than 256 MiB are read block by block, and a ridge model reads
    Parquet, HDF5, Zarr, npy and LIBSVM so: they may be larger than memory.

    Examples:

    `kernelmaps fit mine.csv --target label --drop id --out model.kmap`

    `kernelmaps fit flats.csv -t rent --interactions auto --constraints area=increasing
    -o model.kmap`

    `kernelmaps fit claims.csv -t claims --loss poisson --exposure years -o model.kmap`

    `kernelmaps fit mine.parquet -t price --model ridge --map "RandomFourierMap(n_components=500)"
    -o model.kmap`
    """
    from kernelmaps.commands.exporting import MODEL_SUFFIXES
    from kernelmaps.commands.fitting import FitSettings, fit_file
    from kernelmaps.commands.parsing import TableOptions

    shared.check_norm(normalize)
    shared.check_out(out, "a model", MODEL_SUFFIXES)
    options = TableOptions(terms, interactions, constraints, smoothing)
    settings = FitSettings(
        model, map, task, C, normalize, holdout, shared.note, loss, max_iter, tol, options, stream,
        exposure, sample_weight, encoding,
    )  # fmt: skip
    result = fit_file(
        data, settings, target=target, columns=shared.names(columns), drop=shared.names(drop) or ()
    )
    if out is not None:
        result.save(out)
    saved = "not saved: name a file, --out model.kmap" if out is None else f"saved: {out}"
    shared.show(result, json, saved)


@partial(shared.command, fits=False)
def predict(
    model: Model,
    data: shared.Data,
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
            help="Columns to carry along, separated by commas; default: IDs that were excluded "
            "with --drop in fit."
        ),
    ] = None,
    exposure: Exposure = None,
    encoding: shared.Encoding = "utf-8",
    json: shared.AsJson = False,
) -> None:
    """Predict with a saved model; columns are found by their names.

    Examples:

    `kernelmaps predict model.kmap new.csv`

    `kernelmaps predict model.kmap new.csv.gz --proba --keep id --out predictions.csv`
    """
    from kernelmaps.commands.predicting import check_table_suffix, predict_rows

    shared.check_out(out)
    if out is not None:
        check_table_suffix(out)
    result = predict_rows(
        model, data, proba=proba, keep=shared.names(keep), exposure=exposure, encoding=encoding
    )
    if out is not None:
        result.save(out)
        if not json:
            shared.say(f"{len(result)} predictions: {out}")
    if json:
        shared.show(result, True)
    elif out is None:
        for text in result.lines():
            # A file or a pipe gets the labels as they are, a terminal none that it would obey.
            typer.echo(printable(text) if sys.stdout.isatty() else text, nl=False)


@shared.command
def evaluate(
    model: Model,
    data: shared.Data,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column with the true values; default: as in fit."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write the scores to: .json.")
    ] = None,
    exposure: Exposure = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Also check a GAM: residuals, basis dimensions, concurvity, influential rows.",
        ),
    ] = False,
    encoding: shared.Encoding = "utf-8",
    json: shared.AsJson = False,
) -> None:
    """Score a saved model on rows with known targets.

    Example: `kernelmaps evaluate model.kmap test.csv`
    """
    from kernelmaps._util.storage import write_json
    from kernelmaps.commands.predicting import evaluate_file

    shared.check_out(out, "an evaluation", (".json",))
    result = evaluate_file(
        model, data, target=target, exposure=exposure, encoding=encoding, check=check
    )
    if out is not None:
        write_json(out, result.to_dict())
    last = [str(result.check)] if check else []
    shared.show(result, json, "\n".join([*last, *([] if out is None else [f"scores: {out}"])]))


@shared.command
def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A .kmap file: map or model.")],
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="TARGET",
            help="File to write: .onnx (ONNX), .h (C), .json (the numbers of a map) or .kmap.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The same, as an option.")] = None,
    json: shared.AsJson = False,
) -> None:
    """Write a saved map or model in another format; names and the order of classes go with it.

    Examples:

    `kernelmaps export model.kmap model.onnx`

    `kernelmaps export model.kmap model.h`
    """
    from kernelmaps.commands.exporting import export_file

    if (target is None) == (out is None):
        raise ValueError("name one file to write, as TARGET or with --out.")
    shared.check_out(out or target)
    result = export_file(model, str(out or target))
    if json:
        shared.show(result, True)
        return
    shared.say(f"{result.title}: {result.path} ({result.bytes:,} bytes)")
    if result.note:
        shared.say(result.note)


@shared.command
def explain(
    model: Model,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Picture to write (.png, .svg, .pdf).")
    ] = Path("shapes.png"),
    features: Annotated[int, typer.Option(help="How many features to show and to draw.")] = 12,
    data: Annotated[
        str | None,
        typer.Option(help="Rows for --row and --report: a file with the columns of the model."),
    ] = None,
    row: Annotated[
        int | None,
        typer.Option(help="Instead: what each term adds to one row of --data, counted from 0."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--class", help="Class whose effects (or score) to show, of more than two."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Instead: write an HTML page, which opens offline; with --data it explains rows "
            "and, if they have the target, scores them."
        ),
    ] = None,
    encoding: shared.Encoding = "utf-8",
    json: shared.AsJson = False,
) -> None:
    """Show what an additive model does with each feature, most important first, or with one row.

    Pairs are drawn in a second picture, beside the first.

    Examples:

    `kernelmaps explain model.kmap --out shapes.png`

    `kernelmaps explain model.kmap --data new.csv --row 0`

    `kernelmaps explain model.kmap --report page.html --data test.csv`
    """
    from kernelmaps.commands.describing import explain_model, explain_row, write_model_report

    shared.check_out(out, "a picture", (".png", ".svg", ".pdf"))
    shared.check_out(report, "a report", (".html", ".htm"))
    if data is None and row is not None:
        raise ValueError("--row is a row of --data: name the file, too.")
    if data is not None and row is None and report is None:
        raise ValueError("--data is for --row and --report: name one of them, too.")
    if label is not None and report is not None:
        raise ValueError("--class does not change a --report: leave out one of them.")
    if report is not None:
        written = write_model_report(model, report, data, row, encoding)
        shared.show(written, True) if json else shared.say(f"report: {report}")
        return
    if data is not None and row is not None:
        shared.show(explain_row(model, data, row, label, encoding), json)
        return
    result = explain_model(model, n_features=features, label=label)
    shared.show(result, json)
    if not json:
        try:
            shared.say("\n".join(f"picture: {path}" for path in result.plot(out)))
        except ModuleNotFoundError:
            shared.say(f"no picture: {install_hint('matplotlib')}")


@shared.command
def info(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .kmap file.")],
    json: shared.AsJson = False,
) -> None:
    """Show what a file contains, and verify its checksum.

    Example: `kernelmaps info model.kmap --json`
    """
    from kernelmaps.commands.describing import describe_file

    shared.show(describe_file(file), json)


@shared.command
def warmup(json: shared.AsJson = False) -> None:
    """Compile the loops of everyday use now, so that the first request does not wait.

    For images and servers: compiled loops are kept beside the package, or in the folder that the
    environment variable NUMBA_CACHE_DIR names.

    Example: `kernelmaps warmup`
    """
    import warnings

    from kernelmaps.commands.warming import warm_up

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows that nobody will see
        done = warm_up()
    shared.show(done, True) if json else shared.say(str(done))
