"""kernelmaps explain: what a model does with each feature and with one row; what a file holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .._util.arguments import install_hint
from .._util.display import plain_number, shorten, signed_number, table_of, two_columns
from .._util.storage import AnyPath
from ..data.reading import column_names
from ..data.sources import take_rows
from ..data.table_files import has_column_names
from ..evaluation.model_report import model_report
from ..export.files import load_with_metadata, open_info
from ..models.shapes import PairFunction, estimator_name, score_name
from ..plots.panels import PairFunctionDisplay, ShapeFunctionDisplay
from ..plots.shapes import importance, output_names, pair_functions, sort_by_importance
from . import application as cli
from .saved_model import SavedModel

_effect = partial(signed_number, digits=3)
_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 16  # blocks of a curve
_LEVELS = 7  # of a category that are named: the days of a week


@cli.command
@cli.take_settings(cli.FileOptions)
def explain(
    reading: cli.FileOptions,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A .kmap file: model or map.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Picture to write (.png, .svg, .pdf).")
    ] = Path("shapes.png"),
    features: Annotated[int, typer.Option(help="How many features to show and to draw.")] = 12,
    data: Annotated[
        str | None,
        typer.Option(help="Rows for --row and --report: a file with the columns of the model."),
    ] = None,
    row: Annotated[
        int | None,
        typer.Option(help="Instead: what each term adds to one row of --data, counted from 0."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--class", help="Of several classes, the one to show; default: the first."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Instead: write an HTML report, which opens offline; with --data it explains rows "
            "and, if they have the target, scores them."
        ),
    ] = None,
    json: cli.AsJson = False,
) -> None:
    """Show what an additive model does with each feature, most important first, or with one row.

    Pairs are drawn in a second picture, next to the first. Of other files, a map's say, it shows
    what they hold; `--json` has that of all files. The checksum is verified.

    Examples:

    `kernelmaps explain model.kmap --out shapes.png`

    `kernelmaps explain model.kmap --data new.csv --row 0`

    `kernelmaps explain model.kmap --report report.html --data test.csv`
    """
    cli.check_out(out, "a picture", (".png", ".svg", ".pdf"))
    cli.check_out(report, "a report", (".html", ".htm"))
    if data is None and row is not None:
        raise ValueError("--row is a row of --data: name the file, too.")
    if data is not None and row is None and report is None:
        raise ValueError("--data is for --row and --report: name one of them, too.")
    if label is not None and report is not None:
        raise ValueError("--class does not change a --report: leave out one of them.")
    if report is not None:
        _write_report(model, report, data and reading.open(data), row)
        cli.show_json({"path": str(report)}) if json else cli.say(f"report: {report}")
    elif data is not None and row is not None:
        _explain_row(model, reading.open(data), row, label, json)
    else:
        _explain_model(model, out, features, label, json)


def _explain_model(
    path: Path, out: Path, n_features: int, label: str | None, as_json: bool
) -> None:
    """Shape functions of a saved additive model (or of a ridge model on an additive map).

    Of other files, what they hold.
    """
    info, (model, metadata) = open_info(path), load_with_metadata(path)
    if not hasattr(model, "predict"):
        plain = {"path": str(path), **asdict(info)}
        hidden = ("range", "held_out", "unused")
        facts = {k: v for k, v in info.metadata.items() if k not in hidden}
        shown = {"arrays": len(info.arrays), "size": f"{info.size:,} bytes", "metadata": facts}
        cli.show_json(plain) if as_json else cli.say(two_columns(plain | shown, str(path)))
        return
    names = None if hasattr(model, "reader_") else metadata.get("columns")
    domain = metadata.get("range")
    display = ShapeFunctionDisplay.from_model(
        model, n_features=n_features, names=names, domain=domain
    )
    display.title = title = f"{estimator_name(model)}: {path}"
    pairs = pair_functions(model)
    summary = model.summary() if hasattr(model, "edf_") else None
    output = _find_output(display.classes, label) or 0
    if as_json:
        outputs = {"outputs": display.classes or ["score"]}
        plain = {"model": title, "features": [_plain(f) | outputs for f in display.shapes]}
        plain |= {"pairs": [_plain(pair) for pair in pairs]} if pairs else {}
        if summary is not None:
            terms = [dict(zip(summary.columns, row)) for row in summary.rows]
            plain["summary"] = {**summary.facts, "terms": terms}
        cli.show_json(plain | {"file": asdict(info)})
        return
    n_terms = int(model.n_features_in_)
    if summary is not None:
        n_terms = len({row[0] for row in summary.rows})
    functions = sort_by_importance([*display.shapes, *pairs])[:n_features]
    scale = score_name(model, metadata.get("target") or "prediction", output)
    cli.say(_tabulate_terms(title, functions, display.classes, summary, output, n_terms, scale))
    cli.say(f"file: {info.size:,} bytes, kernelmaps {info.version}, SHA-256 {info.digest[:12]}")
    try:
        cli.say(f"picture: {display.save(out)}")
        if pairs:
            pairs_path = out.with_name(f"{out.stem}-pairs{out.suffix}")
            picture = replace(PairFunctionDisplay.from_estimator(model), title=title)
            cli.say(f"picture: {picture.save(pairs_path)}")
    except ModuleNotFoundError:
        cli.say(f"no picture: {install_hint('matplotlib')}")


def _tabulate_terms(
    title: str, functions: Sequence[Any], classes: Any, summary: Any, output: int, n: int,
    scale: str,
) -> Any:  # fmt: skip
    """The most important of `n` terms, with what they add to the score, which is a `scale`."""
    heads = ["feature" if summary is None else "term", "importance"]
    columns = [[f.name for f in functions], [plain_number(importance(f), 3) for f in functions]]
    if summary is not None and summary.columns[-1] == "p":  # of all classes together
        p = {row[0]: row[list(summary.columns).index("p")] for row in summary.rows}
        heads.append("p")
        columns.append([p.get(f.name, "") for f in functions])
    heads.append(f"effect on {scale}" if classes is None else f"effect on {classes[output]}")
    columns.append([describe_effect(f, output) for f in functions])
    table = table_of(heads, zip(*columns, strict=True), title, ("importance", "p"))
    caption = [] if classes is None else [f"Effects are on the {scale}."]
    if summary is not None:
        shown = ("intercept", "edited since")
        caption += [f"{fact}: {summary.facts[fact]}" for fact in shown if fact in summary.facts]
    if classes is not None:
        named = f"{classes[output]!r}, one of {len(classes)} classes"
        caption.append(f"Effects on {named}; --class NAME shows those on another.")
    if n > len(functions):
        caption.append(f"and {n - len(functions)} more: --features {n}")
    table.caption = "\n".join(caption) or None
    return table


def _plain(function: Any) -> dict[str, Any]:
    """A shape function or a pair as plain values."""
    plain = {"name": function.name, "importance": importance(function)}
    if isinstance(function, PairFunction):
        arrays = {name: getattr(function, name).tolist() for name in ("values", "density")}
        return {**plain, "first": list(function.first), "second": list(function.second), **arrays}
    plain["grid"] = function.grid.tolist()
    for name in ("values", "errors"):
        values = getattr(function, name)
        if values is not None:
            plain[name] = values.reshape(len(function.grid), -1).tolist()
    if function.levels is not None:
        plain["levels"] = list(function.levels)
    if function.ticks is not None:
        plain["ticks"] = {name: value for value, name in function.ticks}
    if function.missing is not None:
        plain["missing"] = np.ravel(function.missing[0]).tolist()
    return plain


def _find_output(classes: Sequence[Any] | None, label: str | None) -> int | None:
    """Index of a class by its name; None without a name."""
    if label is None:
        return None
    if classes is None:
        raise ValueError(f"--class {label!r} is for models of more than two classes: leave it out.")
    names = [str(name) for name in classes]
    if label not in names:
        few = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        raise ValueError(f"--class {label!r} is not one of the {len(names)} classes: {few}.")
    return names.index(label)


# ---- rows ---------------------------------------------------------------------------------------


def _explain_row(model: AnyPath, data: AnyPath, row: int, label: str | None, as_json: bool) -> None:
    """What each term of a saved model adds to the score of a row, counted from 0."""
    saved = SavedModel.load(model, to_predict=has_column_names(data))
    if not hasattr(saved.model, "explain"):
        raise ValueError(
            f"{estimator_name(saved.model)} does not explain single rows: fit an additive model."
        )
    output, before = _find_output(output_names(saved.model), label), 0
    for rows in saved.blocks(data, exposure="none"):
        if 0 <= row - before < rows.X.shape[0]:
            explained = saved.model.explain(take_rows(rows.X, [row - before]), output)
            break
        before += rows.X.shape[0]
    else:
        raise ValueError(f"--row {row} is not in {data}, whose rows are 0 to {before - 1}.")
    title = f"row {row} of {data}"
    if not as_json:
        cli.say(f"{title}\n{explained}")
        return
    n = len(explained.names)
    errors = [None] * n if explained.errors is None else explained.errors.tolist()
    columns = (explained.names, explained.shown, explained.values.tolist(), errors)
    names = ("term", "value", "adds", "error")
    terms = [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]
    of_score = "output", "scale", "score", "mean", "intercept"
    facts = {name: getattr(explained, name) for name in of_score}
    terms.sort(key=lambda term: -abs(term["adds"]))
    cli.show_json({"row": title, **facts, "terms": terms})


def _write_report(model: AnyPath, path: Path, data: AnyPath | None, row: int | None) -> None:
    """Write the HTML report of a saved model, with rows of a file explained and scored."""
    saved = SavedModel.load(model)
    metadata, blocks = saved.metadata, None
    if data is not None:
        names = column_names(data)
        scored = names is None or metadata.get("target") in names
        exposure = None if scored else "none"  # which scores alone depend on

        def blocks() -> Iterator[tuple[Any, Any, Any]]:
            for rows in saved.blocks(data, with_target=scored, exposure=exposure):
                yield rows.X, rows.y, rows.exposure

    model_report(
        saved.model,
        path,
        X=blocks,
        rows=None if row is None else [row],
        target=metadata.get("target") or "the target",
        feature_names=None if hasattr(saved.model, "reader_") else metadata.get("columns"),
        domain=metadata.get("range"),
        held_out=metadata.get("held_out"),
    )


# ---- effects in words ---------------------------------------------------------------------------


def describe_effect(function: Any, output: int = 0) -> str:
    """A shape function or a pair in one line; of several outputs, that of one."""
    if isinstance(function, PairFunction):
        return _cells(function, output)
    function = function.two_values_as_levels()
    values = function.values.reshape(len(function.grid), -1)[:, output]
    text = _curve(function, values) if function.levels is None else _levels(function, values)
    if function.missing is not None:
        text += f"; missing {_effect(np.ravel(function.missing[0])[output])}"
    return text


def _curve(function: Any, values: np.ndarray) -> str:
    """``18 ▁▂▄▆█ 90``: the function from the least to the largest value of the feature."""
    grid, names = function.grid, dict(function.ticks or ())
    if len(grid) < 2:
        return f"{grid[0]:.4g}"
    low, high = float(grid[0]), float(grid[-1])
    size = max(abs(low), abs(high), 1e-300)
    # Enough digits to tell the ends from each other, and none in scientific notation up to 10¹⁰.
    digits = 3 + int(np.ceil(np.log10(size / max(high - low, 1e-300))))
    digits = min(15, max(4, digits, int(np.log10(size)) + 1 if 1 <= size < 1e10 else 0))
    ends = f"{_effect(values.min())} to {_effect(values.max())}"
    left, right = (names.get(end // 1, f"{end:.{digits}g}") for end in (low, high))
    return f"{left} {_blocks(grid, values)} {right}, {ends}"


def _blocks(grid: np.ndarray, values: np.ndarray) -> str:
    """A curve as blocks of eight heights."""
    heights = np.interp(np.linspace(grid[0], grid[-1], _WIDTH), grid, values)
    low, high = float(heights.min()), float(heights.max())
    steps = (heights - low) / (high - low or 1.0) * (len(_BLOCKS) - 1)
    return "".join(_BLOCKS[round(step)] for step in steps)


def _levels(function: Any, values: np.ndarray) -> str:
    """Levels with the largest effects, from the highest to the lowest."""
    largest = np.argsort(-np.abs(values), kind="stable")[:_LEVELS]
    order = sorted(largest.tolist(), key=lambda k: -values[k])
    text = ", ".join(f"{shorten(function.levels[k])} {_effect(values[k])}" for k in order)
    more = len(values) - len(order)
    return f"{text}, … ({more} more)" if more > 0 else text


def _cells(pair: PairFunction, output: int) -> str:
    """The highest and the lowest cell that training rows were in."""
    values = pair.values if pair.values.ndim == 2 else pair.values[..., output]
    values = np.where(pair.density > 0, values, np.nan)
    extremes = []
    for place in (np.nanargmax(values), np.nanargmin(values)):
        i, j = (int(k) for k in np.unravel_index(place, values.shape))
        cell = f"{shorten(pair.first[i])} × {shorten(pair.second[j])}"
        extremes.append(f"{cell} {_effect(values[i, j])}")
    return ", ".join(extremes)
