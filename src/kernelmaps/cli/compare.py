"""kernelmaps compare, choose and demo: which kernel, map and size to use, and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .._util.arguments import check_choice
from ..data.datasets import load
from ..data.reading import read_rows
from ..data.table_reader import uninformative_columns
from ..evaluation.choice import choose as choose_map
from ..evaluation.comparison import compare as compare_methods
from ..kernels import get
from . import application as cli
from .export import MODEL_SUFFIXES, write_model
from .settings import numbers_between_commas


@cli.command
@cli.take_settings(cli.FileOptions)
def compare(
    reading: cli.FileOptions,
    data: cli.Data,
    target: cli.Target = None,
    columns: cli.Columns = None,
    drop: cli.Drop = None,
    groups: Annotated[
        str | None,
        typer.Option(help="Column of subjects, say: all rows of one are in the same fold."),
    ] = None,
    task: cli.TaskOption = "auto",
    maps: Annotated[
        str | None, typer.Option(help="Names of maps, separated by commas; default: all.")
    ] = None,
    kernels: Annotated[
        str | None,
        typer.Option(help="Kernels, separated by commas, e.g. chi2,gaussian,gaussian:0.5."),
    ] = None,
    budget: Annotated[
        float,
        typer.Option(help="Seconds; fewer methods finish to keep it. 0: no limit."),
    ] = 120.0,
    cv: Annotated[int, typer.Option("--cv", "--folds", help="Folds of the cross-validation.")] = 3,
    C: Annotated[
        str,
        typer.Option("--C", help="Penalty of linear models and kernel machines, or several."),
    ] = "1,10,100",
    normalize: cli.Normalize = "none",
    report: Annotated[
        Path | None, typer.Option(help="Write an HTML report, which opens offline.")
    ] = None,
    json: cli.AsJson = False,
) -> None:
    """Compare GAMs, maps, kernels and sizes on your data, and say which to use and why.

    A file may hold text, dates and gaps: GAMs take them as they are, and other methods as numbers
    (indicators of categories, and medians for gaps). Small maps come first, as long as there is
    time. Columns are standardised for kernels such as the Gaussian; a width after the name
    (gaussian:0.5) is taken on the rows as they are. Ctrl-C ends early and shows what was finished.

    Examples:

    `kernelmaps compare digits --report out.html`

    `kernelmaps compare mine.csv --target label --kernels chi2,intersection --budget 60`
    """
    cli.check_out(report, "a report", (".html", ".htm"))
    keep, numeric = [groups] if groups else [], normalize != "none"
    rows, loading_code = _read(data, target, columns, drop, normalize, reading, keep, numeric)
    kernel_names = cli.names(kernels)
    result = compare_methods(
        rows.X,
        rows.y,
        groups=rows.extra_columns.get(groups) if groups else None,
        maps=cli.names(maps),
        task=task,
        kernels=kernel_names and [_parse_kernel(name) for name in kernel_names],
        cv=cv,
        C=numbers_between_commas(C, "C"),
        budget=budget if budget != 0 else None,
        name=Path(rows.name).name,
        feature_names=rows.columns if columns is not None or not hasattr(rows.X, "iloc") else None,
        loading_code=loading_code,
    )
    cli.show(result, json)
    if report is not None:
        result.report(report)
        if not json:
            cli.say(f"report: {report}")
    if result.interrupted:
        raise typer.Exit(cli.INTERRUPTED)


@cli.command
@cli.take_settings(cli.FileOptions)
def choose(
    reading: cli.FileOptions,
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
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Save the chosen map: .kmap, .onnx, .h."),
    ] = None,
    json: cli.AsJson = False,
) -> None:
    """Find the smallest map whose error stays below a tolerance on rows that it has not seen.

    Examples:

    `kernelmaps choose digits --kernel chi2 --max-error 0.01`

    `kernelmaps choose mine.csv --target label -k gaussian --max-error 0.1 --out map.kmap`
    """
    cli.check_out(out, "a map", MODEL_SUFFIXES)
    named_kernel, error = _parse_kernel(kernel), "relative" if relative else "absolute"
    rows, _ = _read(data, target, columns, drop, normalize, reading)
    result = choose_map(rows.X, named_kernel, max_error=max_error, budget=budget, error=error)
    cli.show(result, json)
    if out is not None:
        write_model(result.map, out, {"columns": rows.columns, "normalize": normalize})
        if not json:
            cli.say(f"saved: {out}")


_LOADING = """import numpy as np

digits = km.datasets.load("digits")
X = np.concatenate([digits.X_train, digits.X_test])
y = np.concatenate([digits.y_train, digits.y_test])"""


@cli.command
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo_out"),
    json: cli.AsJson = False,
) -> None:
    """Compare every map on the bundled digits, together with linear and exact kernel machines.

    Takes about half a minute on a free processor. Prints a table, and writes a report.

    Example: `kernelmaps demo --out demo`
    """
    digits = load("digits")
    X = np.concatenate([digits.X_train, digits.X_test])
    y = np.concatenate([digits.y_train, digits.y_test])
    options: dict[str, Any] = {"sizes": [3], "joint_sizes": [256], "name": "digits"}
    kernels = ["chi2", "exp_chi2", "gaussian"]
    result = compare_methods(X, y, kernels=kernels, loading_code=_LOADING, **options)
    out.mkdir(parents=True, exist_ok=True)
    cli.show(result, json, f"report: {result.report(out / 'demo.html')}")


def _read(
    data: str, target: str | None, columns: str | None, drop: str | None, normalize: str,
    reading: cli.FileOptions, keep: Sequence[str] = (), numeric: bool = True,
) -> tuple[Any, str]:  # fmt: skip
    """Rows of a file, as the options ask for them, and two lines of Python that read them.

    Columns that `fit` leaves out (IDs, one value) are left out, with a note, unless `columns`
    names the columns.
    """
    check_choice("the rows", "normalize", normalize, cli.NORMS)
    options: dict[str, Any] = {"target": target, "columns": cli.names(columns), "keep": keep}
    drops = [*(cli.names(drop) or []), *(keep if columns is None else [])]
    options |= {"drop": drops} | reading.arguments()
    rows = read_rows(data, **options, numeric=numeric)
    if columns is None and rows.columns and isinstance(rows.X, np.ndarray):
        reasons = uninformative_columns(rows.columns, rows.X)
        used = [name for name in rows.columns if name not in reasons]
        if used and reasons:
            rows = rows.select_columns(used)
            options["drop"] += reasons
            for name, reason in reasons.items():
                cli.note(f"{name} is left out: {reason}. --columns names the columns to use.")
    stated = {key: value for key, value in options.items() if value}
    stated |= {"numeric": False} if hasattr(rows.X, "iloc") else {}
    arguments = ", ".join([repr(data), *(f"{key}={value!r}" for key, value in stated.items())])
    scaled = "" if normalize == "none" else f".normalized({normalize!r})"
    code = f"rows = km.datasets.read_rows({arguments}){scaled}\nX, y = rows.X, rows.y"
    code += f"\ngroups = rows.extra_columns[{keep[0]!r}]" if keep else ""
    return rows.normalized(normalize), code


def _parse_kernel(text: str) -> Any:
    """A kernel's name, whose width follows the data, or the kernel of a width: ``gaussian:2.5``."""
    name, _, width = text.partition(":")
    kernel = get(name)
    if not width:
        return name
    try:
        value = float(width)
    except ValueError:
        raise ValueError(f"the width {width!r} of the kernel {name!r} is not a number.") from None
    return kernel.with_parameter(value)
