"""Options of the command `fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelOut = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", help="The model to write: .kmap, .onnx, or .h for C; without it none is."
    ),
]
ModelKind = Annotated[
    str,
    typer.Option(
        help="additive: a sum of functions of one column each; table: the same with "
        "smoothness chosen for each column; ridge: linear on any map."
    ),
]
Map = Annotated[
    str | None,
    typer.Option(
        "--map",
        help="Map and settings, e.g. HomogeneousMap(kernel=chi2,n_components=5). "
        "Default: SplineMap (additive), none (table, ridge).",
    ),
]
Penalty = Annotated[
    float, typer.Option("--C", help="Inverse strength of the regularisation, on a map.")
]
Interactions = Annotated[
    str | None,
    typer.Option(
        help="Table: pairs of columns, as auto, a number, or hour:load,age:income.",
    ),
]
Terms = Annotated[
    str | None,
    typer.Option(
        help="Table: terms of single columns, e.g. hour=periodic:24,load=linear,zip=category; "
        "none leaves a column out."
    ),
]
Constraints = Annotated[
    str | None,
    typer.Option(help="Table: shapes, e.g. area=increasing+concave,age=convex."),
]
Smoothing = Annotated[
    str | None,
    typer.Option(help="Table: auto, a number (worth as many rows), or area=100,age=10."),
]
Loss = Annotated[
    str | None,
    typer.Option(help="Loss of an additive model: log_loss, poisson, absolute_error, …"),
]
MaxIter = Annotated[int | None, typer.Option(help="Most steps of an additive model's solver.")]
Tol = Annotated[
    float | None, typer.Option(help="Relative distance to the minimum at which it stops.")
]
Holdout = Annotated[
    bool,
    typer.Option(
        "--holdout/--no-holdout",
        help="Score on one in five rows that a first fit has not seen; the saved model is "
        "fitted on all rows.",
    ),
]
Stream = Annotated[
    bool | None,
    typer.Option(
        "--stream/--in-memory",
        help="Table: read the file block by block, so that it may be larger than memory. Default: "
        "from 256 MiB on.",
        show_default=False,
    ),
]
