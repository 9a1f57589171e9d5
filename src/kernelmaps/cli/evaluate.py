"""kernelmaps evaluate: scores of a saved model on rows with known targets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .._util.display import two_columns
from .._util.storage import write_json
from ..evaluation.scores import METRICS, PredictionScores
from . import application as cli
from .saved_model import SavedModel


@cli.command
@cli.take_settings(cli.FileOptions)
def evaluate(
    reading: cli.FileOptions,
    model: cli.Model,
    data: cli.Data,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="Column with the true values; default: as in fit.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write the scores to: .json.")
    ] = None,
    exposure: cli.Exposure = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Also check a GAM: residuals, basis dimensions, concurvity, influential rows.",
        ),
    ] = False,
    json: cli.AsJson = False,
) -> None:
    """Score a saved model on rows with known targets.

    Example: `kernelmaps evaluate model.kmap test.csv`
    """
    cli.check_out(out, "an evaluation", (".json",))
    saved = SavedModel.load(model)
    scores = PredictionScores(saved.model, data)
    options: dict[str, Any] = {"target": target, "exposure": exposure}
    file = reading.open(data)
    for rows in saved.blocks(file, with_target=True, **options):
        scores.add(rows.X, rows.y, rows.exposure)
    labels, checks = scores.classes is not None, None
    result: dict[str, Any] = {
        "data": data,
        "task": saved.metadata.get("task") or ("classification" if labels else "regression"),
        "rows": scores.rows,
        "scores": scores.scores(),
        "classes": scores.class_scores() if labels else {},
    }
    if check:
        checks = scores.check(rows.X for rows in saved.blocks(file, with_target=True, **options))
        if checks is None:
            raise ValueError(
                "the checks are of generalised additive models of a number or of two classes."
            )
        result["check"] = {
            "rows": len(checks.fitted),
            "findings": checks.findings,
            "basis": checks.basis,
            "concurvity": checks.concurvity,
            "influential_rows": checks.influential().tolist(),
        }
    if out is not None:
        write_json(out, result)
    if json:
        cli.show_json(result)
        return
    shown: dict[str, Any] = {"rows": f"{scores.rows:,}"}
    shown |= {METRICS[name]: value for name, value in result["scores"].items()}
    for name, values in list(result["classes"].items())[:20]:
        numbers = f"recall {values['recall']:.4g}, precision {values['precision']:.4g}"
        shown[f"class {name}"] = f"{numbers} ({int(values['rows'])} rows)"
    cli.say(two_columns(shown, f"{result['task']} on {data}"))
    if checks is not None:
        cli.say(str(checks))
    if out is not None:
        cli.say(f"scores: {out}")
