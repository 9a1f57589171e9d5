"""Export of the effects of a GAM as tables that people read: CSV and Excel files."""

from __future__ import annotations

import re
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from .._util.arguments import import_optional
from .._util.display import printable
from .._util.storage import AnyPath, write_file
from .sql import fitted_predictor

__all__ = ["write_tables"]


def write_tables(
    model: Any, path: AnyPath, *, step: Any = None, X: Any = None, exposure: Any = None
) -> None:
    """Write the intercept and the effects of all terms to a file.

    Parameters
    ----------
    model : fitted AdditiveRegressor or AdditiveClassifier
        The model, whose `to_tables` says what the columns are.
    path : str or Path
        A ``.csv`` file has all terms one below the other, an ``.xlsx`` file a sheet for each.
    step : float or dict, optional
        Width of the bands of numbers, or widths by column, as in `to_tables`.
    X, exposure : optional
        Rows that exposures are summed over, as in `to_tables`.
    """
    import pandas as pd

    tables = _all_tables(model, step, X, exposure)
    content = BytesIO()
    if Path(path).suffix.lower() == ".csv":
        _join_tables(tables).to_csv(content, index=False)
    else:
        import_optional("openpyxl")
        with pd.ExcelWriter(content, engine="openpyxl") as writer:
            for k, (name, frame) in enumerate(tables.items()):
                title = re.sub(r"[\[\]:*?/\\]", "_", printable(f"{k} {name}"))[:31].rstrip("'")
                frame.to_excel(writer, sheet_name=title, index=False)
            for cell in chain.from_iterable(chain(*writer.book.worksheets)):
                if cell.data_type == "f":  # text is never a formula
                    cell.data_type = "s"
    write_file(path, content.getvalue())


def _all_tables(model: Any, step: Any, X: Any, exposure: Any) -> dict[str, Any]:
    """Tables of the intercept, of the terms, with bands and levels as text, and of edits."""
    import pandas as pd

    predictor = fitted_predictor(model, "write_tables")
    tables = model.to_tables(step, X, exposure=exposure)
    table = next(iter(tables.values()))
    data: dict[str, Any] = {"effect": predictor.intercept}
    if len(predictor.intercept) > 1:
        data = {predictor.output_head: predictor.output_names} | data
    if predictor.fitted_loss.has_ratios:
        data["relativity"] = np.exp(predictor.intercept)
    data["standard_error"] = predictor.posterior.intercept_errors
    data["exposure"] = table["exposure"].sum() / len(predictor.intercept)
    for frame in tables.values():
        for name in frame.select_dtypes(exclude="number"):
            frame[name] = [printable(str(label)) for label in frame[name]]
    tables = {"(intercept)": pd.DataFrame(data), **tables}
    if predictor.edits:
        tables["(edits)"] = pd.DataFrame({"level": [*map(printable, predictor.edits)]})
    return tables


def _join_tables(tables: dict[str, Any]) -> Any:
    """All tables in one: bands and levels are in the same column, those of second columns next."""
    import pandas as pd

    frames = []
    for name, frame in tables.items():
        names: dict[str, str] = {}
        for starts, shown in ((("band", "level"), "band or level"), ("value", "value")):
            heads = [head for head in frame.columns if head.startswith(starts)]
            names |= dict(zip(heads, (shown, f"second {shown}")))
        frames.append(frame.rename(columns=names).assign(term=name))
    joined = pd.concat(frames)
    keys = [name for name in ("term", "band or level", "second band or level") if name in joined]
    return joined[[*keys, *joined.columns.difference(keys, sort=False)]]
