"""kernelmaps compare and demo: which kernel and which map to use, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..data import load
from ..evaluation.comparison import compare as compare_methods
from . import application as cli


@cli.command
def compare(
    data: cli.Data,
    target: cli.Target = None,
    columns: cli.Columns = None,
    drop: cli.Drop = None,
    task: cli.TaskOption = "auto",
    maps: Annotated[
        str | None, typer.Option(help="Names of maps, separated by commas; default: all.")
    ] = None,
    kernels: Annotated[
        str | None,
        typer.Option(help="Kernels, separated by commas, e.g. chi2,gaussian,gaussian:0.5."),
    ] = None,
    sizes: Annotated[str, typer.Option(help="Columns per feature of additive maps.")] = "3,5",
    joint_sizes: Annotated[str, typer.Option(help="Columns of joint maps.")] = "256,1024",
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
    encoding: cli.Encoding = "utf-8",
    report: Annotated[
        Path | None, typer.Option(help="Write an HTML report, which opens offline.")
    ] = None,
    json: cli.AsJson = False,
) -> None:
    """Compare maps, kernels and sizes on your data, and say which to use and why.

    Methods that usually cost little come first, as long as there is time. Columns are standardised
    for kernels such as the Gaussian; a width after the name (gaussian:0.5) is taken on the rows as
    they are.
    Ctrl-C ends early and shows what was finished.

    Examples:

    `kernelmaps compare digits --report out.html`

    `kernelmaps compare mine.csv --target label --kernels chi2,intersection --budget 60`
    """
    cli.check_out(report, "a report", (".html", ".htm"))
    per_feature = _numbers(sizes, "--sizes", int)
    in_all = _numbers(joint_sizes, "--joint-sizes", int)
    rows, left_out = cli.read(data, target, columns, drop, normalize, encoding)
    dropped = [*(cli.names(drop) or []), *left_out]
    kernel_names = cli.names(kernels)
    result = compare_methods(
        rows.X,
        rows.y,
        maps=cli.names(maps),
        task=task,
        kernels=kernel_names and [cli.parse_kernel_or_name(name) for name in kernel_names],
        sizes=per_feature,
        joint_sizes=in_all,
        cv=cv,
        C=_numbers(C, "--C"),
        budget=budget if budget != 0 else None,
        name=Path(rows.name).name,
        feature_names=rows.columns,
        loading_code=cli.reading_code(data, target, columns, dropped, normalize, encoding),
    )
    cli.show(result, json)
    if report is not None:
        result.report(report)
        if not json:
            cli.say(f"report: {report}")
    if result.interrupted:
        raise typer.Exit(cli.INTERRUPTED)


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


def _numbers(text: str, option: str, kind: type = float) -> list[Any]:
    """Numbers between commas."""
    try:
        return [kind(item) for item in text.split(",")]
    except ValueError:
        words = "whole numbers" if kind is int else "numbers"
        raise ValueError(f"{option} must be {words} with commas, got {text!r}.") from None
