"""The command that recomputes tables and figures of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ._app import app
from ._shared import AsJson, command, say, show, write_text


@app.command()
@command
def reproduce(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="What to recompute; none: list them.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the datasets; default: KERNELMAPS_DATA.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows, for a first look.")] = False,
    stored: Annotated[
        bool, typer.Option("--stored", help="Show the last result; compute nothing.")
    ] = False,
    page: Annotated[
        Path | None, typer.Option(help="Write all stored results as a page (Markdown).")
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(help="With --page: where new results were computed; default: here."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the result as JSON, too.")] = None,
    json: AsJson = False,
) -> None:
    """Recompute a table of the papers: paper value, our value, difference.

    Without TABLE: what there is, and when it was last computed.

    Examples:

    `kernelmaps reproduce`

    `kernelmaps reproduce low-dim-maps-table-1 --data ~/data`
    """
    from kernelmaps.evaluation import reproduce as room

    if page is not None:
        say(f"page: {room.write_page(page, machine=machine)}")
        return
    if table is None:
        show(room.catalogue(), json)
        return
    if stored:
        result = room.stored(table)
    else:
        result = room.reproduce(table, folder=data, quick=quick)
    if out is not None:
        write_text(out, result.to_json())
    show(result, json)
