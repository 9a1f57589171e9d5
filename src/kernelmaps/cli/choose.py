"""kernelmaps choose: the smallest map whose error stays below a tolerance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..evaluation.choice import choose as choose_map
from . import application as cli
from .export import check_map_suffix, write_model


@cli.command
def choose(
    data: cli.Data,
    max_error: Annotated[
        float, typer.Option(help="Largest error allowed on new pairs of rows.", show_default=False)
    ],
    kernel: Annotated[
        str, typer.Option("--kernel", "-k", help="chi2, intersection, gaussian:WIDTH, exp_chi2, …")
    ] = "chi2",
    budget: Annotated[
        float | None, typer.Option(help="Seconds after which no further map is measured.")
    ] = None,
    relative: Annotated[
        bool, typer.Option("--relative", help="Errors over √(k(x,x) k(y,y)), not absolute ones.")
    ] = False,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column to exclude: it is the target.")
    ] = None,
    columns: cli.Columns = None,
    drop: cli.Drop = None,
    normalize: cli.Normalize = "none",
    encoding: cli.Encoding = "utf-8",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Save the chosen map: .kmap, .onnx, .h, .json."),
    ] = None,
    json: cli.AsJson = False,
) -> None:
    """Find the smallest map whose error stays below a tolerance on rows that it has not seen.

    Examples:

    `kernelmaps choose digits --kernel chi2 --max-error 0.01`

    `kernelmaps choose mine.csv --target label -k gaussian --max-error 0.1 --out map.kmap`
    """
    cli.check_out(out)
    named_kernel = cli.parse_kernel_or_name(kernel)
    if out is not None:
        check_map_suffix(out, named_kernel)
    rows, _ = cli.read(data, target, columns, drop, normalize, encoding)
    result = choose_map(
        rows.X,
        named_kernel,
        max_error=max_error,
        budget=budget,
        error="relative" if relative else "absolute",
    )
    if out is not None:
        write_model(result.map, out, {"columns": rows.columns, "normalize": normalize})
    cli.show(result, json, "" if out is None else f"saved: {out}")
