"""kernelmaps edit and merge: new models from saved ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..export.files import load_with_metadata, save
from ..models.merging import merge as merge_models
from . import application as cli
from .saved_model import SavedModel
from .settings import numbers_between_commas, numbers_by_name


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
    json: cli.AsJson = False,
) -> None:
    """Set the effect of a term of a saved GAM, everywhere or between two values.

    Examples:

    `kernelmaps edit claims.kmap edited.kmap --term age --effect 0 --between 18,25`

    `kernelmaps edit claims.kmap edited.kmap --term region --effect city=0.1,hills=0.1`
    """
    cli.check_out(target, "a model", (".kmap",))
    saved = SavedModel.load(model)
    if not hasattr(saved.model, "edit"):
        raise TypeError(f"{type(saved.model).__name__} has no effects to edit: only GAMs have.")
    ends = between and numbers_between_commas(between, "between", lambda t: float(t) if t else None)
    edited = saved.model.edit(term, numbers_by_name(effect, "effect"), between=ends)
    save(edited, target, metadata=saved.metadata)
    if json:
        cli.show_json({"path": str(target), "edits": edited.edits_})
        return
    cli.say(f"{edited.edits_[-1]}: {target}")


@cli.command
def merge(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODELS", help=".kmap files of ridge models of parts.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The .kmap file to write.")],
) -> None:
    """Merge ridge models that were fitted on parts of the rows, with the same map.

    Example: `kernelmaps merge january.kmap february.kmap --out both.kmap`
    """
    cli.check_out(out, "a model", (".kmap",))
    parts, metadata = zip(*map(load_with_metadata, models), strict=True)
    save(merge_models(parts), out, metadata=metadata[0])
    cli.say(f"{len(parts)} models: {out}")
