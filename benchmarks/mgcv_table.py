"""The same tables fitted by mgcv in R and by kernelmaps: ``python -m benchmarks.mgcv_table``.

It needs R with mgcv, MASS and survival for the recording alone. Tables are written as CSV, both
sides read these, and what they find is compared: effective degrees of freedom, deviance explained,
estimated parameters, predictions, and which terms are significant at 5 %. ``--write`` records it in
``results/mgcv.json`` and writes the table of ``docs/methods/mgcv.md``; names of tables record these
alone, with what is known of the others.

A new table is one line of `TABLES`, and one in ``mgcv.R``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

import kernelmaps as km
from kernelmaps.models.tweedie import TweedieDistribution

from .harness import RESULTS

RESULT = RESULTS / "mgcv.json"
SCRIPT = Path(__file__).with_name("mgcv.R")
PAGE = RESULTS.parent.parent / "docs" / "methods" / "mgcv.md"
BEGIN, END = "<!-- table: made by benchmarks/mgcv_table.py -->", "<!-- end of the table -->"
N_ROWS, CUTS = 1000, np.array([0.0, 1.0, 2.5])


class Table(NamedTuple):
    """A table, the loss that fits it, and how it is read.

    `exposure` names a column, `draw` makes targets from the linear predictor (of simulated tables).
    """

    loss: Any
    exposure: str = ""
    draw: Callable[[np.ndarray, np.random.Generator], np.ndarray] | None = None


def _draw_classes(eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    scores = np.column_stack([np.zeros(len(eta)), 2 * eta - 1, 1 - eta])
    return np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


def _draw_tweedie(eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return TweedieDistribution(np.exp(eta), np.ones(len(eta)), 1.5).rvs(rng)


TABLES = {
    "normal": Table("squared_error", draw=lambda eta, rng: eta + rng.normal(size=len(eta))),
    "poisson": Table("poisson", draw=lambda eta, rng: rng.poisson(np.exp(eta))),
    "gamma": Table("gamma", draw=lambda eta, rng: rng.gamma(2.0, np.exp(eta) / 2)),
    "negative_binomial": Table(
        "negative_binomial",
        draw=lambda eta, rng: rng.negative_binomial(2, 2 / (2 + np.exp(eta))),
    ),
    "tweedie": Table("tweedie", draw=_draw_tweedie),
    "binomial": Table(
        "binomial", "trials", lambda eta, rng: rng.binomial(10, special.expit(eta - 0.5))
    ),
    "beta": Table(
        "beta",
        draw=lambda eta, rng: rng.beta(8 * special.expit(eta - 0.5), 8 * special.expit(0.5 - eta)),
    ),
    "ordinal": Table(
        "ordinal",
        draw=lambda eta, rng: 1 + np.digitize(2 * eta + rng.logistic(size=len(eta)), CUTS),
    ),
    "quine": Table("negative_binomial"),
    "mcycle": Table("squared_error"),
    "pbc_bilirubin": Table("gamma"),
    "insurance": Table("negative_binomial", "Holders"),
    "esoph": Table("binomial", "trials"),
    "housing": Table("ordinal"),
    "multinomial": Table("multinomial", draw=_draw_classes),
    "iris": Table("multinomial"),
    "housing_classes": Table("multinomial"),
    "location_scale": Table(
        "location_scale",
        draw=lambda eta, rng: eta + np.exp(eta / 2 - 1) * rng.normal(size=len(eta)),
    ),
    "mcycle_scale": Table("location_scale"),
    "cox": Table("cox", draw=lambda eta, rng: rng.weibull(1.5, len(eta)) * np.exp(-eta / 1.5)),
    "pbc_survival": Table("cox"),
}


def simulate(name: str, table: Table) -> pd.DataFrame:
    """Three columns, the last without an effect, and targets."""
    rng = np.random.default_rng(sum(map(ord, name)))
    frame = pd.DataFrame(rng.random((N_ROWS, 3)), columns=["x0", "x1", "x2"])
    eta = np.sin(6 * frame["x0"]) + frame["x1"] ** 2
    assert table.draw is not None
    frame["y"] = table.draw(eta.to_numpy(), rng)
    if table.loss == "cox":  # censored at 0.6
        return frame.assign(y=frame["y"].clip(upper=0.6), event=(frame["y"] < 0.6).astype(int))
    return frame.assign(trials=10) if table.exposure else frame


def fit(table: Table, frame: pd.DataFrame) -> dict[str, Any]:
    """What our model finds."""
    targets = ["y", "event"] if table.loss == "cox" else "y"
    columns = frame.drop(columns=["y", "event", table.exposure], errors="ignore")
    has_classes = table.loss in ("ordinal", "multinomial")
    estimators = {
        "ordinal": km.AdditiveClassifier, "multinomial": km.AdditiveClassifier,
        "cox": km.AdditiveSurvival,
    }  # fmt: skip
    model: Any = estimators.get(table.loss, km.AdditiveRegressor)(table.loss)
    options = {"exposure": frame[table.exposure]} if table.exposure else {}
    started = process_time()
    model.fit(columns, frame[targets], **options)
    seconds = process_time() - started
    # mgcv predicts shares of trials.
    if table.loss == "binomial":
        options = {}
    predicted = model.predict_proba(columns) if has_classes else model.predict(columns, **options)
    loss = model.loss_
    parameter = getattr(loss, loss.parameter) if loss.parameter else ()
    if table.loss == "cox":
        predicted = hazard_ratios(predicted)
    summary = model.summary().to_frame()
    if table.loss == "location_scale":
        predicted = np.column_stack([predicted, model.predict_scale(columns)])
        summary.loc[summary["output"] != "mean", "term"] += ".1"
    summary = summary.set_index("term")
    return {
        "edf": float(model.edf_.sum()), "deviance explained": float(model.deviance_explained_),
        "parameter": np.atleast_1d(parameter).tolist(), "seconds": seconds,
        "p": summary["p_value"].to_dict(), "predicted": predicted,
    }  # fmt: skip


def hazard_ratios(log_hazards: np.ndarray) -> np.ndarray:
    """Hazards in units of the geometric mean."""
    return np.exp(log_hazards - log_hazards.mean())


def read_fit(folder: Path, name: str) -> dict[str, Any]:
    """What mgcv found."""
    statistics = pd.read_csv(folder / f"{name}.statistics.csv").groupby("kind")["value"].apply(list)
    found: dict[str, Any] = {
        kind: statistics[kind][0] for kind in ("edf", "deviance explained", "seconds")
    }
    parameter = statistics.get("parameter", [])
    p = {kind[2:]: values[0] for kind, values in statistics.items() if kind[:2] == "p "}
    if TABLES[name].loss == "multinomial":  # one test of all classes: the smallest p of several
        p = {term: min(1.0, 2 * min(p[term], p[f"{term}.1"])) for term in p if f"{term}.1" in p}
    if name in ("ordinal", "housing"):  # the first threshold is −1 there, 0 here
        parameter = [value + 1 for value in parameter]
    predicted = pd.read_csv(folder / f"{name}.predictions.csv").to_numpy()
    if predicted.shape[1] == 1:
        predicted = predicted[:, 0]
    if name in ("cox", "pbc_survival"):
        predicted = hazard_ratios(predicted)
    return found | {"parameter": parameter, "p": p, "predicted": predicted}


def compare(folder: Path, names: list[str]) -> dict[str, Any]:
    """Fit some tables on both sides, and record them with what is known of the others."""
    subprocess.run(["Rscript", SCRIPT, "tables", folder], check=True)
    tables = {name: TABLES[name] for name in names or TABLES}
    for name, table in tables.items():
        if table.draw is not None:
            simulate(name, table).to_csv(folder / f"{name}.csv", index=False)
    subprocess.run(["Rscript", SCRIPT, "fits", folder, *tables], check=True)
    rows = []
    for name, table in tables.items():
        frame = pd.read_csv(folder / f"{name}.csv")
        fit(table, frame)  # compiles
        ours, theirs = fit(table, frame), read_fit(folder, name)
        first, second = ours.pop("predicted"), theirs.pop("predicted")
        difference = float(np.mean(np.abs(first - second)) / np.mean(np.abs(second)))
        rows.append({
            "table": name, "loss": str(table.loss), "rows": len(frame), "difference": difference,
            "ours": ours, "theirs": theirs,
        })  # fmt: skip
    versions = pd.read_csv(folder / "versions.csv").set_index("of")["value"].to_dict()
    if names:
        known = json.loads(RESULT.read_text(encoding="utf-8"))
        of_name = {row["table"]: row for row in [*known["rows"], *rows]}
        rows, times = [of_name[name] for name in TABLES if name in of_name], known["times"]
    else:
        times = measure_times(folder)
    return {"versions": versions | {"kernelmaps": km.__version__}, "rows": rows, "times": times}


def measure_times(folder: Path) -> list[dict[str, Any]]:
    """Seconds of CPU for 100,000 rows of ten columns, here and of ``bam(discrete = TRUE)``."""
    rng, ours = np.random.default_rng(1), {}
    X = pd.DataFrame(rng.random((100_000, 10)), columns=[f"x{j}" for j in range(10)])
    eta = (np.sin(6 * X["x0"]) + X["x1"] ** 2 + 0.5 * np.cos(4 * X["x2"])).to_numpy()
    for name in ("negative_binomial", "tweedie"):
        draw = TABLES[name].draw
        assert draw is not None
        y = np.asarray(draw(eta, rng), dtype=np.float64)
        km.AdditiveRegressor(name).fit(X[:3000], y[:3000])  # compiles
        started = process_time()
        km.AdditiveRegressor(name).fit(X, y)
        ours[name] = process_time() - started
        X.assign(y=y).to_csv(folder / f"long_{name}.csv", index=False)
    subprocess.run(["Rscript", SCRIPT, "times", folder], check=True)
    theirs = pd.read_csv(folder / "times.csv").set_index("table")["seconds"]
    return [
        {"loss": name, "ours": seconds, "theirs": float(theirs[name])}
        for name, seconds in ours.items()
    ]


def format_table(record: dict[str, Any]) -> str:
    """The comparison as a table of a page."""
    lines = [
        "| table | loss | rows | edf | deviance explained | parameter | predictions differ by | "
        "p < 0.05 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in record["rows"]:
        ours, theirs = row["ours"], row["theirs"]
        pairs = zip(ours["parameter"], theirs["parameter"], strict=False)
        parameters = ", ".join(f"{a:.3g} ({b:.3g})" for a, b in pairs)
        agree = sum((p < 0.05) == (theirs["p"][term] < 0.05) for term, p in ours["p"].items())
        lines.append(
            f"| {row['table']} | {row['loss']} | {row['rows']:,} | {ours['edf']:.1f} "
            f"({theirs['edf']:.1f}) | {100 * ours['deviance explained']:.1f} % "
            f"({100 * theirs['deviance explained']:.1f} %) | {parameters} | "
            f"{100 * row['difference']:.2g} % | {agree} of {len(ours['p'])} terms alike |"
        )
    versions = ", ".join(f"{name} {value}" for name, value in record["versions"].items())
    lines += ["", f"Recorded with {versions}; mgcv's figures are in parentheses.", ""]
    lines += [
        "| 100,000 rows, ten columns | kernelmaps | mgcv `bam(discrete = TRUE)` |",
        "|---|---|---|",
    ]
    for row in record["times"]:
        lines.append(f"| {row['loss']} | {row['ours']:.1f} s | {row['theirs']:.1f} s |")
    return "\n".join([*lines, "", "Times are seconds of one processor."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="record it, and write the page's table"
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="record these alone")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        record = compare(Path(folder), arguments.tables)
    text = format_table(record)
    print(text)
    if arguments.write:
        RESULT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        head, _, tail = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        end = tail.partition(END)[2]
        PAGE.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{end}", encoding="utf-8")


if __name__ == "__main__":
    main()
