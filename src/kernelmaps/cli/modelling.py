"""Commands that make and use models: fit, predict, explain, info."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..printing import printable
from ._app import app
from ._shared import (
    AsJson,
    Columns,
    Data,
    Drop,
    Normalize,
    Target,
    check_folder,
    check_norm,
    command,
    names,
    say,
    show,
    write_text,
)

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A .kmap file made by fit.")]


@app.command()
@command
def fit(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model file to write.")],
    target: Target = None,
    model: Annotated[str, typer.Option(help="additive or ridge.")] = "additive",
    map: Annotated[
        str | None,
        typer.Option(
            "--map",
            help="Map and settings, e.g. HomogeneousMap(kernel=chi2,n_components=5). "
            "Default: SplineMap (additive), none (ridge).",
        ),
    ] = None,
    task: Annotated[str, typer.Option(help="classification, regression or auto.")] = "auto",
    penalty: Annotated[
        float, typer.Option("--C", help="Inverse strength of the regularisation.")
    ] = 1.0,
    columns: Columns = None,
    drop: Drop = None,
    normalize: Normalize = "none",
    json: AsJson = False,
) -> None:
    """Fit a model on a map and save it.

    A ridge model reads Parquet, HDF5, Zarr, npy and LIBSVM block by block: they may be larger than
    memory.

    Examples:

    `kernelmaps fit mine.csv --target label --drop id --out model.kmap`

    `kernelmaps fit mine.parquet -t price --model ridge --map "RandomFourierMap(n_components=500)"
    -o model.kmap`
    """
    from kernelmaps.commands.fitting import fit_file

    check_norm(normalize)
    check_folder(out)
    result = fit_file(
        data,
        target=target,
        columns=names(columns),
        drop=names(drop) or (),
        normalize=normalize,
        model=model,
        feature_map=map,
        task=task,
        C=penalty,
    )
    result.save(out)
    show(result, json)
    if not json:
        say(f"saved: {out}")


@app.command()
@command
def predict(
    model: Model,
    data: Data,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV to write; default: print it.")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities of the classes.")] = False,
    json: AsJson = False,
) -> None:
    """Predict with a saved model; columns are found by their names.

    Examples:

    `kernelmaps predict model.kmap new.csv`

    `kernelmaps predict model.kmap new.csv --proba --out predictions.csv`
    """
    from kernelmaps.commands.predicting import predict_rows

    check_folder(out)
    result = predict_rows(model, data, proba=proba)
    if out is not None:
        write_text(out, result.to_csv())
        if not json:
            say(f"{len(result)} predictions: {out}")
    if json:
        show(result, True)
    elif out is None:
        text = result.to_csv()
        # A file or a pipe gets the labels as they are, a terminal none that it would obey.
        typer.echo(printable(text) if sys.stdout.isatty() else text, nl=False)


@app.command()
@command
def explain(
    model: Model,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Picture to write (png, svg, pdf).")
    ] = Path("shapes.png"),
    features: Annotated[int, typer.Option(help="How many features to draw.")] = 12,
    json: AsJson = False,
) -> None:
    """Draw what an additive model does with each feature, most important first.

    Example: `kernelmaps explain model.kmap --out shapes.png`
    """
    from kernelmaps.commands.describing import explain_model

    check_folder(out)
    result = explain_model(model, n_features=features)
    if json:
        show(result, True)
        return
    show(result, False)
    say(f"picture: {result.plot(out)}")


@app.command()
@command
def info(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .kmap file.")],
    json: AsJson = False,
) -> None:
    """Tell what a file holds; its checksum is verified.

    Example: `kernelmaps info model.kmap --json`
    """
    from kernelmaps.commands.describing import describe_file

    show(describe_file(file), json)
