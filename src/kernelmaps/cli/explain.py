"""kernelmaps explain: what a model does with each feature and with one row; what a file holds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .._util.arguments import install_hint
from .._util.display import table_of, two_columns
from .._util.storage import AnyPath
from ..data.reading import column_names
from ..evaluation.model_report import ReportRows, take, write_report
from ..inspection import PairFunctionDisplay, ShapeFunctionDisplay, importance
from ..inspection.shapes import output_names
from ..model_files import FileInfo, load_with_metadata, open_info
from ..models.shapes import PairFunction, ShapeFunction
from . import application as cli
from .effects import describe_effect, describe_effects
from .export import feature_names
from .saved_model import SavedModel

_SHOWN = ("term", "importance", "p")  # of a summary; `summary` in JSON has all of it
_RIGHT = ("importance", "p")  # columns of numbers
_CLASSES = 6  # whose effects fit beside each other


@cli.command
def explain(
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
        typer.Option("--class", help="Class whose effects (or score) to show, of more than two."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Instead: write an HTML page, which opens offline; with --data it explains rows "
            "and, if they have the target, scores them."
        ),
    ] = None,
    encoding: cli.Encoding = "utf-8",
    json: cli.AsJson = False,
) -> None:
    """Show what an additive model does with each feature, most important first, or with one row.

    Pairs are drawn in a second picture, next to the first. Of other files, a map's say, it shows
    what they hold; `--json` has that of all files. The checksum is verified.

    Examples:

    `kernelmaps explain model.kmap --out shapes.png`

    `kernelmaps explain model.kmap --data new.csv --row 0`

    `kernelmaps explain model.kmap --report page.html --data test.csv`
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
        written = write_model_report(model, report, data, row, encoding)
        cli.show_json(written) if json else cli.say(f"report: {report}")
        return
    if data is not None and row is not None:
        explained = explain_row(model, data, row, label, encoding)
        cli.show_json(explained) if json else cli.show_table(_tabulate_row(explained))
        return
    info = open_info(model)
    result = explain_model(model, info, n_features=features, label=label)
    if result is None:
        plain = {"path": str(model), **asdict(info)}
        cli.show_json(plain) if json else cli.show_table(_tabulate_file(model, info))
        return
    facts = f"{info.size:,} bytes, kernelmaps {info.version}, SHA-256 {info.digest[:12]}"
    cli.show(result, json, f"file: {facts}")
    if not json:
        try:
            cli.say("\n".join(f"picture: {path}" for path in result.plot(out)))
        except ModuleNotFoundError:
            cli.say(f"no picture: {install_hint('matplotlib')}")


@dataclass(frozen=True)
class ModelExplanation:
    """Shape functions of a model, most important first, and its pairs.

    Attributes
    ----------
    title : str
    display : ShapeFunctionDisplay
    info : FileInfo
    pairs : PairFunctionDisplay or None
        Heat maps of pairs, where the model has some.
    summary : Summary or None
        Degrees of freedom and significance of the terms, for models of tables.
    n_terms : int
        Terms that are listed.
    output : int or None
        Class whose effects are listed; None: all, or the last where there are too many.
    """

    title: str
    display: ShapeFunctionDisplay
    info: FileInfo
    pairs: PairFunctionDisplay | None = None
    summary: Any = None
    n_terms: int = 12
    output: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        outputs = self.display.classes or ["score"]
        shapes = self.display.shapes
        plain: dict[str, Any] = {"model": self.title}
        plain["features"] = [_plain_shape(shape) | {"outputs": outputs} for shape in shapes]
        if self.pairs is not None:
            plain["pairs"] = [_plain_pair(pair) for pair in self.pairs.pairs]
        if self.summary is not None:
            terms = [dict(zip(self.summary.columns, row)) for row in self.summary.rows]
            plain["summary"] = {**self.summary.facts, "terms": terms}
        return plain | {"file": asdict(self.info)}

    def table(self) -> Any:
        """The most important terms, with what they add to the score."""
        heads, rows = self._lines()
        table = table_of(heads, rows[: self.n_terms], self.title, _RIGHT)
        caption, classes, shown = [], self.display.classes, self._shown_class
        if classes is not None and shown is not None:
            named = f"{classes[shown]!r}, one of {len(classes)} classes"
            caption.append(f"Effects on {named}; --class NAME shows those on another.")
        if len(rows) > self.n_terms:
            caption.append(f"and {len(rows) - self.n_terms} more: --features {len(rows)}")
        table.caption = "\n".join(caption) or None
        return table

    @property
    def _shown_class(self) -> int | None:
        """Index of the only class whose effects are listed, if it is only one."""
        classes = self.display.classes
        if self.output is not None or classes is None:
            return self.output
        return len(classes) - 1 if len(classes) > _CLASSES else None

    def _lines(self) -> tuple[list[str], list[list[str]]]:
        """Heads and cells of the table: one line for each term."""
        pairs = [] if self.pairs is None else self.pairs.pairs
        functions: list[ShapeFunction | PairFunction] = [*self.display.shapes, *pairs]
        classes, shown = self.display.classes, self._shown_class
        if classes is None or shown is not None:
            one = -1 if shown is None else shown
            last = ["effect" if classes is None else f"effect on {classes[one]}"]
            effects = {f.name: [describe_effect(f, one)] for f in functions}
        else:
            last, effects = list(classes), {f.name: describe_effects(f) for f in functions}
        if self.summary is None:
            return ["feature", "importance", *last], [
                [f.name, f"{importance(f):.3g}", *effects[f.name]] for f in self.display.shapes
            ]
        heads = [name for name in _SHOWN if classes is None or name != "p"]  # p is of one class
        columns = [self.summary.columns.index(name) for name in heads]
        lines = {row[0]: [row[k] for k in columns] for row in self.summary.rows}
        return [*heads, *last], [
            [*line, *effects.get(name, [""] * len(last))] for name, line in lines.items()
        ]

    def plot(self, path: str | Path) -> list[Path]:
        """Draw one panel per feature, and the pairs in a file beside it (needs matplotlib)."""
        written = [self.display.save(path)]
        if self.pairs is not None:
            path = Path(path)
            written.append(self.pairs.save(path.with_name(f"{path.stem}-pairs{path.suffix}")))
        return written


def _tabulate_row(row: dict[str, Any]) -> Any:
    """Terms, the largest contribution first."""
    lines = [["intercept", "", f"{row['intercept']:+.4g}"]]
    for term in row["terms"]:
        band = "" if term["error"] is None else f" ± {2 * term['error']:.2g}"
        lines.append([term["term"], term["value"], f"{term['adds']:+.4g}{band}"])
    title = f"{row['row']}: {row['output']} {row['score']:.4g}"
    return table_of(["term", "value", "adds"], lines, title, ["adds"])


def _tabulate_file(path: Path, info: FileInfo) -> Any:
    """What a file says about itself."""
    hidden = ("range", "held_out", "unused")
    metadata = {k: v for k, v in info.metadata.items() if k not in hidden}
    numbers = {"arrays": len(info.arrays), "size": f"{info.size:,} bytes", "metadata": metadata}
    return two_columns({"path": str(path), **asdict(info), **numbers}, str(path))


def explain_model(
    model: AnyPath, info: FileInfo, *, n_features: int = 12, label: str | None = None
) -> ModelExplanation | None:
    """Shape functions of a saved additive model (or of a ridge model on an additive map).

    `label` is the class whose effects are listed, of more than two. None of a map or a spec.
    """
    fitted, metadata = load_with_metadata(model)
    if not hasattr(fitted, "predict"):
        return None
    title = f"{type(fitted).__name__}: {os.fspath(model)}"
    display = ShapeFunctionDisplay.of_model(
        fitted,
        n_features=n_features,
        names=_names_beside(fitted, metadata),
        domain=metadata.get("range"),
    )
    display.title = title
    pairs = getattr(fitted, "pair_functions_", [])
    heat_maps = PairFunctionDisplay(pairs, title) if pairs else None
    summary = fitted.summary() if hasattr(fitted, "predictor_") else None
    output = _output(display.classes, label)
    return ModelExplanation(title, display, info, heat_maps, summary, n_features, output)


def _output(classes: Sequence[Any] | None, label: str | None) -> int | None:
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


def _names_beside(model: Any, metadata: dict[str, Any]) -> Sequence[str] | None:
    """Names of the features of a model that does not know them itself."""
    return None if hasattr(model, "reader_") else feature_names(model, metadata)


def explain_row(
    model: AnyPath, data: AnyPath, row: int, label: str | None = None, encoding: str = "utf-8"
) -> dict[str, Any]:
    """What each term of a saved model adds to the score of a row, counted from 0.

    `label` is the class whose score is explained, of more than two; by default the predicted one.
    """
    saved = SavedModel.load(model)
    if not hasattr(saved.model, "explain"):
        raise ValueError(
            f"{type(saved.model).__name__} does not explain single rows: fit an additive model."
        )
    output = _output(output_names(saved.model), label)
    before, name = 0, os.fspath(data)
    for rows in saved.blocks(data, exposure="none", encoding=encoding):
        n = rows.X.shape[0]
        if 0 <= row - before < n:
            one = take(rows.X, [row - before])
            return _plain_row(f"row {row} of {name}", saved.model.explain(one, output))
        before += n
    raise ValueError(f"--row {row} is not in {name}, whose rows are 0 to {before - 1}.")


def _plain_row(title: str, row: Any) -> dict[str, Any]:
    errors = [None] * len(row.names) if row.errors is None else row.errors.tolist()
    terms = [
        {"term": name, "value": shown, "adds": float(value), "error": error}
        for name, shown, value, error in zip(row.names, row.shown, row.values, errors)
    ]
    return {
        "row": title,
        "output": row.output,
        "score": float(row.score),
        "intercept": row.intercept,
        "terms": sorted(terms, key=lambda term: -abs(term["adds"])),
    }


def write_model_report(
    model: AnyPath, path: AnyPath, data: AnyPath | None = None, row: int | None = None,
    encoding: str = "utf-8",
) -> dict[str, Any]:  # fmt: skip
    """Write the page of a saved model, with rows of a file explained and scored."""
    saved = SavedModel.load(model)
    fitted, metadata = saved.model, saved.metadata
    blocks = None
    if data is not None:
        names = column_names(data, encoding)
        scored = names is None or metadata.get("target") in names

        def blocks() -> Iterator[tuple[Any, Any, Any]]:
            exposure = None if scored else "none"  # which scores alone depend on
            for rows in saved.blocks(
                data, with_target=scored, exposure=exposure, encoding=encoding
            ):
                yield rows.X, rows.y, rows.exposure

    report_rows = ReportRows(fitted, blocks)
    write_report(
        report_rows,
        Path(path),
        rows=None if row is None else [row],
        target=metadata.get("target") or "the target",
        feature_names=_names_beside(fitted, metadata),
        domain=metadata.get("range"),
        held_out=metadata.get("held_out"),
    )
    scored = report_rows.judged is not None
    return {"path": os.fspath(path), "rows": report_rows.n, "scored": scored}


def _plain_shape(shape: Any) -> dict[str, Any]:
    plain = {
        "name": shape.name,
        "importance": importance(shape),
        "grid": shape.grid.tolist(),
        "values": shape.values.reshape(len(shape.grid), -1).tolist(),
    }
    if shape.errors is not None:
        plain["errors"] = shape.errors.reshape(len(shape.grid), -1).tolist()
    if shape.levels is not None:
        plain["levels"] = list(shape.levels)
    if shape.ticks is not None:
        plain["ticks"] = {name: value for value, name in shape.ticks}
    if shape.missing is not None:
        plain["missing"] = np.ravel(shape.missing[0]).tolist()
    return plain


def _plain_pair(pair: Any) -> dict[str, Any]:
    return {
        "name": pair.name,
        "importance": importance(pair),
        "first": list(pair.first),
        "second": list(pair.second),
        "values": pair.values.tolist(),
        "density": pair.density.tolist(),
    }
