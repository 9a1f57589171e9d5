"""kernelmaps evaluate: scores of a saved model on rows with known targets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from .._util.display import two_columns
from .._util.storage import AnyPath, write_json
from ..evaluation.scores import PredictionScores
from . import application as cli
from .saved_model import NewRows, SavedModel


@cli.command
def evaluate(
    model: cli.Model,
    data: cli.Data,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column with the true values; default: as in fit."),
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
    encoding: cli.Encoding = "utf-8",
    json: cli.AsJson = False,
) -> None:
    """Score a saved model on rows with known targets.

    Example: `kernelmaps evaluate model.kmap test.csv`
    """
    cli.check_out(out, "an evaluation", (".json",))
    result = evaluate_file(
        model, data, target=target, exposure=exposure, encoding=encoding, check=check
    )
    if out is not None:
        write_json(out, result.to_dict())
    last = [str(result.check)] if check else []
    cli.show(result, json, "\n".join([*last, *([] if out is None else [f"scores: {out}"])]))


@dataclass(frozen=True)
class Evaluation:
    """Scores of a model on rows with known targets.

    Attributes
    ----------
    name : str
        The data.
    task : str
    rows : int
    scores : dict of str to float
    classes : dict
        Rows, recall and precision of each class.
    check : GamCheck or None
        Checks of a generalised additive model on the first rows, if asked for.
    """

    data: str
    task: str
    rows: int
    scores: dict[str, float]
    classes: dict[str, dict[str, float]]
    check: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        check = plain.pop("check")
        if check is None:
            return plain
        names = ("rows", "findings", "basis", "concurvity", "influential_rows")
        influential = check.influential().tolist()
        values = len(check.fitted), check.findings, check.basis, check.concurvity, influential
        return {**plain, "check": dict(zip(names, values, strict=True))}

    def table(self) -> Any:
        """As a rich table."""
        shown: dict[str, Any] = {"rows": f"{self.rows:,}", **self.scores}
        for name, values in list(self.classes.items())[:20]:
            numbers = f"recall {values['recall']:.4g}, precision {values['precision']:.4g}"
            shown[f"class {name}"] = f"{numbers} ({int(values['rows'])} rows)"
        return two_columns(shown, f"{self.task} on {self.data}")


def evaluate_file(
    model: AnyPath, data: AnyPath, *, target: str | None = None, exposure: str | None = None,
    encoding: str = "utf-8", check: bool = False,
) -> Evaluation:  # fmt: skip
    """Score a saved model on the rows of a file with a target, and check it if asked for."""
    saved = SavedModel.load(model)
    labels = hasattr(saved.model, "classes_")
    judged = PredictionScores(saved.model, os.fspath(data))

    def blocks() -> Iterator[NewRows]:
        return saved.blocks(
            data, target=target, with_target=True, exposure=exposure, encoding=encoding
        )

    for rows in blocks():
        judged.add(rows.X, rows.y, rows.exposure)
    classes = judged.class_scores() if labels else {}
    task = "classification" if labels else "regression"
    checks = None
    if check:
        checks = judged.check(rows.X for rows in blocks())
        if checks is None:
            raise ValueError(
                "the checks are of generalised additive models of a number or of two classes."
            )
    return Evaluation(judged.name, task, judged.rows, judged.scores(), classes, checks)
