"""Recommendations from a comparison, in sentences and as a program."""

from __future__ import annotations

from .code import expression, import_lines
from .results import Results, Row


def use_this(result: Results) -> list[str]:
    """The recommendation, its reasons, and what the others reached; the first sentence says all."""
    use = result.recommended()
    if use is None:
        return ["No method finished, so none can be recommended."]
    if result.task == "none":
        return _without_targets(result, use)
    score = f"{result.score_name} {use.score:.3f} ± {use.score_std:.3f}"
    rows = [row for row in result.finished() if row.kind != "exact"]
    best, others = rows[0], sum(result.tied(rows[0], row) for row in rows) - 1
    among = _among(result)
    if use is best:
        reason = f"it has the best score{among}"
        reason += f", and {_slower(others)}" if others else ""
    else:
        pace = (best.seconds + best.predict_seconds) / max(use.seconds + use.predict_seconds, 1e-9)
        reason = (
            f"it is statistically tied with the best{among} ({best.label}, {best.score:.3f}) and "
            f"{pace:.1f} times as fast"
        )
    lines = [f"Use {_named(use)}: {score}, because {reason}."]
    lines += _against(result, use)
    lines += _closest(result)
    return lines


def _among(result: Results) -> str:
    """Of which methods a row is the best, where some did not finish; exact ones do not count."""
    rivals = [row for row in result.rows if row.kind != "exact"]
    done = [row for row in rivals if row.finished]
    if len(done) == len(rivals):
        return ""
    aside = ", exact kernel machines aside" if result.finished("exact") else ""
    return f" of the {len(done)} methods that finished{aside}"


def _slower(others: int) -> str:
    if others == 1:
        return "the other one that is statistically tied with it is slower"
    return f"the {others} others that are statistically tied with it are slower"


def _without_targets(result: Results, use: Row) -> list[str]:
    assert use.error is not None
    return [
        f"Use {_named(use)}, because it is nearest to its kernel{_among(result)}: the error is at "
        f"most {use.error.max_relative:.2%} of the kernel's size on {use.error.n_pairs:,} pairs, "
        f"with {use.columns:,} columns."
    ]


def _against(result: Results, use: Row) -> list[str]:
    words = {
        "linear": "A plain linear model",
        "boosting": "Gradient boosting",
        "sklearn": "The best of scikit-learn's maps",
        "exact": "The best exact kernel machine",
    }
    lines = []
    for kind, name in words.items():
        other = result.best(kind)
        if kind == use.kind:
            continue
        if other is not None:
            which = f" ({other.label})" if kind in ("exact", "sklearn") else ""
            lines.append(f"{name}{which} has {other.score:.3f}, {_difference(result, use, other)}.")
        else:
            lines += _not_compared(result, kind, name)
    return lines


def _not_compared(result: Results, kind: str, name: str) -> list[str]:
    """Why a baseline that took part has no score to compare."""
    rows = [row for row in result.rows if row.kind == kind and row.score is not None]
    if not rows:
        return []
    fewer = max(rows, key=lambda row: (row.rows, row.score))
    return [
        f"{name} did not finish: {fewer.score:.3f} on {fewer.rows:,} rows, which cannot be "
        "compared."
    ]


def _difference(result: Results, use: Row, other: Row) -> str:
    if result.tied(use, other):
        return "which is a statistical tie"
    gap = (use.score or 0.0) - (other.score or 0.0)
    return f"which is {abs(gap):.3f} {'lower' if gap > 0 else 'higher'}"


def _closest(result: Results) -> list[str]:
    maps = [
        (row.error.max_relative, row)
        for row in result.rows
        if row.error is not None and row.error.max > 1e-12
    ]
    if not maps:
        return []
    error, close = min(maps, key=lambda pair: pair[0])
    return [
        f"Nearest to its kernel is {_named(close)}: the error is at most {error:.2g} of the "
        "kernel's size."
    ]


def _named(row: Row) -> str:
    if row.kind == "linear":
        return "a plain linear model"
    words = row.label.replace(",", "").split()
    return row.label if row.kernel in (*words, "basis", "–") else f"{row.label} ({row.kernel})"


def program(result: Results, row: Row | None) -> str:
    """A program that loads the data, makes the model of a row, scores and fits it."""
    if row is None or row.label not in result.estimators:
        return "# nothing was finished that could be recommended"
    data, model = result.data, result.estimators[row.label]
    loading = data.get("loading_code") or "# X, y: the rows and targets that were compared"
    if result.task == "none":
        made = expression(model)
        return f"import kernelmaps as km\n\n{loading}\n\nfeature_map = {made}.fit(X)"
    kind = "StratifiedKFold" if result.task == "classification" else "KFold"
    imports = {
        *import_lines(model),
        f"from sklearn.model_selection import {kind}, cross_val_score",
    }
    steps = "".join(f"    {expression(step)},\n" for _, step in model.steps)
    folds = f"{kind}({data['folds']}, shuffle=True, random_state={data['random_state']})"
    whole = row.rows == data["rows"]
    found = (
        f"{row.score:.3f} on {'all' if whole else f'{row.rows:,} of the'} rows in the comparison"
    )
    return "\n".join(
        [
            "import kernelmaps as km",
            *sorted(imports, key=lambda line: line.split()[1]),
            "",
            loading,
            "",
            f"model = make_pipeline(\n{steps})",
            f"scores = cross_val_score(model, X, y, cv={folds})",
            f'print(f"{result.score_name}: {{scores.mean():.3f}}")  # {found}',
            "model.fit(X, y)",
        ]
    )
