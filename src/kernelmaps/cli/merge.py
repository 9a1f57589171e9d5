"""kernelmaps merge: the model of all rows from models of parts of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..export.files import load_with_metadata, save
from ..models.merging import merge as merge_models
from . import application as cli


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
