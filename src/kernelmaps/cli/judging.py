"""Commands that evaluate maps: demo, compare, choose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _shared as shared


@shared.command
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the report, the picture and the figures (JSON).")
    ] = Path("demo_out"),
    budget: Annotated[
        float, typer.Option(help="Seconds for the measurements; fewer methods finish. 0: no limit.")
    ] = 0.0,
    json: shared.AsJson = False,
) -> None:
    """Compare every map on the bundled digits, together with linear and exact kernel machines.

    Takes about half a minute on a free processor. Prints a table; writes a report, a picture and
    the figures.

    Example: `kernelmaps demo --out demo`
    """
    from kernelmaps._util.storage import write_json
    from kernelmaps.commands.demonstrating import demonstrate

    result = demonstrate(budget if budget != 0 else None)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "demo.json", result.to_dict())
    written = [f"report: {result.report(out / 'demo.html')}"]
    try:
        result.plot(out / "demo.png")
        written.append(f"picture: {out / 'demo.png'}")
    except ImportError:
        written.append("no picture: it needs matplotlib (pip install 'kernelmaps[plot]')")
    shared.show(result, json, "\n".join(written))


@shared.command
def compare(
    data: shared.Data,
    target: shared.Target = None,
    columns: shared.Columns = None,
    drop: shared.Drop = None,
    task: shared.TaskOption = "auto",
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
    normalize: shared.Normalize = "none",
    encoding: shared.Encoding = "utf-8",
    report: Annotated[
        Path | None, typer.Option(help="Write an HTML report, which opens offline.")
    ] = None,
    json: shared.AsJson = False,
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
    from kernelmaps.evaluation.comparison import compare as run

    shared.check_out(report, "a report", (".html", ".htm"))
    per_feature = _numbers(sizes, "--sizes", int)
    in_all = _numbers(joint_sizes, "--joint-sizes", int)
    rows, left_out = shared.read(data, target, columns, drop, normalize, encoding)
    dropped = [*(shared.names(drop) or []), *left_out]
    kernel_names = shared.names(kernels)
    result = run(
        rows.X,
        rows.y,
        maps=shared.names(maps),
        task=task,
        kernels=kernel_names and [shared.kernel_or_name(name) for name in kernel_names],
        sizes=per_feature,
        joint_sizes=in_all,
        cv=cv,
        C=_numbers(C, "--C"),
        budget=budget if budget != 0 else None,
        name=Path(rows.name).name,
        feature_names=rows.columns,
        loading_code=shared.reading_code(data, target, columns, dropped, normalize, encoding),
    )
    shared.show(result, json)
    if report is not None:
        result.report(report)
        if not json:
            shared.say(f"report: {report}")
    if result.interrupted:
        raise typer.Exit(shared.INTERRUPTED)


@shared.command
def choose(
    data: shared.Data,
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
    columns: shared.Columns = None,
    drop: shared.Drop = None,
    normalize: shared.Normalize = "none",
    encoding: shared.Encoding = "utf-8",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Save the chosen map: .kmap, .onnx, .h, .json."),
    ] = None,
    json: shared.AsJson = False,
) -> None:
    """Find the smallest map whose error stays below a tolerance on rows that it has not seen.

    Examples:

    `kernelmaps choose digits --kernel chi2 --max-error 0.01`

    `kernelmaps choose mine.csv --target label -k gaussian --max-error 0.1 --out map.kmap`
    """
    from kernelmaps.commands.exporting import check_map_suffix, write_model
    from kernelmaps.evaluation.choice import choose as run

    shared.check_out(out)
    named_kernel = shared.kernel_or_name(kernel)
    if out is not None:
        check_map_suffix(out, named_kernel)
    rows, _ = shared.read(data, target, columns, drop, normalize, encoding)
    result = run(
        rows.X,
        named_kernel,
        max_error=max_error,
        budget=budget,
        error="relative" if relative else "absolute",
    )
    if out is not None:
        write_model(result.map, out, {"columns": rows.columns, "normalize": normalize})
    shared.show(result, json, "" if out is None else f"saved: {out}", source="--json")


def _numbers(text: str, option: str, kind: type = float) -> list[Any]:
    """Numbers between commas."""
    try:
        return [kind(item) for item in text.split(",")]
    except ValueError:
        words = "whole numbers" if kind is int else "numbers"
        raise ValueError(f"{option} must be {words} with commas, got {text!r}.") from None
