"""kernelmaps edit: a copy of a saved GAM with another effect of a term."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..export.files import save
from . import application as cli
from .saved_model import SavedModel
from .settings import numbers_by_name


@cli.command
def edit(
    model: cli.Model,
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="The .kmap file to write.")],
    term: Annotated[str, typer.Option(help="A column, or the name of a pair: 'age × power'.")],
    effect: Annotated[
        str,
        typer.Option(help="A number, or LEVEL=NUMBER with commas between: city=0.1,hills=0."),
    ],
    between: Annotated[
        str | None,
        typer.Option(help="LOW,HIGH: change the effect of a number there alone; 60, has no end."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="CSV or Parquet file: compare the deviance on its rows.")
    ] = None,
    y: Annotated[
        str | None, typer.Option("--target", "-t", help="Its target; default: as in fit.")
    ] = None,
    exposure: cli.Exposure = None,
    refit_intercept: Annotated[
        bool, typer.Option("--refit-intercept", help="Estimate the intercept anew on these rows.")
    ] = False,
    json: cli.AsJson = False,
) -> None:
    """Set the effect of a term of a saved GAM, everywhere or between two values.

    Examples:

    `kernelmaps edit claims.kmap edited.kmap --term age --effect 0 --between 18,25`

    `kernelmaps edit claims.kmap edited.kmap --term region --effect city=0.1,hills=0.1`
    """
    cli.check_out(target, "a model", (".kmap",))
    if refit_intercept and data is None:
        raise ValueError("--refit-intercept estimates from rows: name a file with --data.")
    saved = SavedModel.load(model)
    if not hasattr(saved.model, "edit"):
        raise TypeError(f"{type(saved.model).__name__} has no effects to edit: only GAMs have.")
    rows: dict[str, Any] = {"refit_intercept": refit_intercept}
    if data is not None:
        rows |= saved.all_rows(data, target=y, with_target=True, exposure=exposure)
    ends = None if between is None else _numbers(between)
    edited = saved.model.edit(term, numbers_by_name(effect, "effect"), between=ends, **rows)
    save(edited, target, metadata=saved.metadata)
    if json:
        cli.show_json({"path": str(target), "edits": edited.edits_})
        return
    cli.say(f"{edited.edits_[-1]}: {target}")


def _numbers(text: str) -> list[float | None]:
    """Numbers between commas; None where there is none."""
    try:
        return [float(part) if part.strip() else None for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--between must be LOW,HIGH, got {text!r}.") from None
