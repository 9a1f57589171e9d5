"""kernelmaps demo: one comparison of the maps on the bundled digits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .._util.storage import write_json
from ..data import load
from ..evaluation.comparison import compare
from . import application as cli

_LOADING = """import numpy as np

digits = km.datasets.load("digits")
X = np.concatenate([digits.X_train, digits.X_test])
y = np.concatenate([digits.y_train, digits.y_test])"""


def demonstrate(budget: float | None = None) -> Any:
    """Compare maps of an additive, an exponentiated and a stationary kernel on 1797 digits."""
    digits = load("digits")
    return compare(
        np.concatenate([digits.X_train, digits.X_test]),
        np.concatenate([digits.y_train, digits.y_test]),
        task="classification",
        kernels=["chi2", "exp_chi2", "gaussian"],
        sizes=(3,),
        joint_sizes=(256,),
        budget=budget,
        name="digits",
        loading_code=_LOADING,
    )


@cli.command
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the report, the picture and the figures (JSON).")
    ] = Path("demo_out"),
    budget: Annotated[
        float, typer.Option(help="Seconds for the measurements; fewer methods finish. 0: no limit.")
    ] = 0.0,
    json: cli.AsJson = False,
) -> None:
    """Compare every map on the bundled digits, together with linear and exact kernel machines.

    Takes about half a minute on a free processor. Prints a table; writes a report, a picture and
    the figures.

    Example: `kernelmaps demo --out demo`
    """
    result = demonstrate(budget if budget != 0 else None)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "demo.json", result.to_dict())
    written = [f"report: {result.report(out / 'demo.html')}"]
    try:
        result.plot(out / "demo.png")
        written.append(f"picture: {out / 'demo.png'}")
    except ImportError:
        written.append("no picture: it needs matplotlib (pip install 'kernelmaps[plot]')")
    cli.show(result, json, "\n".join(written))
