"""A comparison in sentences, as a program, as a table and as a plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..inspection.panels import write_figure
from .candidates import expression, import_lines
from .methods import selecting
from .results import NO_TRIAL, Results, Row, is_tie, tied

_BEST_EXACT = "The best exact kernel machine"
_STYLES = {"linear": "dim", "exact": "bold", "sklearn": "cyan", "boosting": "dim"}
_COLORS = {
    "map": "#c8553d",
    "exact": "#1b4965",
    "linear": "#8a94a1",
    "gam": "#d9a441",
    "sklearn": "#2a9d8f",
    "boosting": "#8f6bb3",
}


def use_this(result: Results) -> list[str]:
    """The recommendation, its reasons, and what the others reached; the first sentence says all."""
    use = result.recommended()
    if use is None:
        return ["No method finished, so none can be recommended."]
    if result.task == "none":
        return _without_targets(result, use)
    score = f"{result.score_name} {use.score:.3f} ± {use.score_std:.3f}"
    best, *slower = result.ties(exact=False)
    which = _of_finished(result)
    if use is best:
        reason = f"it has the best score{which}"
        if use.rows < result.data["rows"]:
            reason += f" on {use.rows:,} of {result.data['rows']:,} rows"
        elif slower:
            reason += f", and {_slower(len(slower))}"
    else:
        pace = (best.seconds + best.predict_seconds) / max(use.seconds + use.predict_seconds, 1e-9)
        reason = (
            f"it is statistically tied with the best{which} ({best.label}, {best.score:.3f}) and "
            f"{pace:.1f} times as fast"
        )
    first = f"Use {_named(use)}: {score}, because {reason}."
    return [first, *_against(result, use), *_closest(result)]


def _of_finished(result: Results) -> str:
    """Of which methods a row is the best, where some did not finish; exact ones do not count."""
    rivals = [row for row in result.rows if row.kind != "exact"]
    done = [row for row in rivals if row.finished]
    exact = result.best("exact")
    if len(done) < len(rivals):
        aside = ", exact kernel machines aside" if exact is not None else ""
        return f" of the {len(done)} methods that finished{aside}"
    return ", exact kernel machines aside" if exact is result.best() is not None else ""


def _slower(count: int) -> str:
    if count == 1:
        return "the other one that is statistically tied with it is slower"
    return f"the {count} others that are statistically tied with it are slower"


def _without_targets(result: Results, use: Row) -> list[str]:
    assert use.error is not None
    return [
        f"Use {_named(use)}, because it is nearest to its kernel{_of_finished(result)}: the error "
        "is at "
        f"most {use.error.max_relative:.2%} of the kernel's size on {use.error.n_pairs:,} pairs, "
        f"with {use.columns:,} columns."
    ]


def _against(result: Results, use: Row) -> list[str]:
    words = {
        "linear": "A plain linear model",
        "gam": "A generalised additive model",
        "boosting": "Gradient boosting",
        "sklearn": "The best of scikit-learn's maps",
        "exact": _BEST_EXACT,
    }
    lines = []
    for kind, name in words.items():
        if kind == "exact" and result.on_exact_rows is not None:
            lines.append(_beside_exact(result))
            continue
        other = result.best(kind)
        rows = [row for row in result.rows if row.kind == kind and row.score is not None]
        if kind == use.kind:
            continue
        if other is not None:
            lines.append(f"{name}{_score_beside(result, use, other)}")
        elif rows:  # it took part, and has no score to compare
            most = max(rows, key=lambda row: (row.rows, row.score))
            score_on_few = f"{most.score:.3f} on {most.rows:,} rows"
            lines.append(f"{name} did not finish: {score_on_few}, which cannot be compared.")
    return lines


def _score_beside(result: Results, use: Row, other: Row) -> str:
    """The end of a sentence on another method."""
    which = f" ({other.label})" if other.kind in ("exact", "sklearn") else ""
    return f"{which} has {other.score:.3f}, {_gap(use, other, result.within_noise(use, other))}."


def _gap(use: Row, other: Row, within_noise: bool) -> str:
    gap = (use.score or 0.0) - (other.score or 0.0)
    if is_tie(gap, within_noise):
        return "which is a statistical tie"
    noise = ", within two standard errors" if within_noise else ""
    return f"which is {abs(gap):.3f} {'lower' if gap > 0 else 'higher'}{noise}"


def _beside_exact(result: Results) -> str:
    """The recommended method against the best exact machine, on the rows of that one."""
    assert result.on_exact_rows is not None
    exact, use, losses = result.on_exact_rows
    gap = _gap(use, exact, tied(losses, result.losses[exact.label]))
    return (
        f"On {exact.rows:,} rows, where {use.label} has {use.score:.3f}, the best exact kernel "
        f"machine ({exact.label}) has {exact.score:.3f}, {gap}."
    )


def _higher_exact(result: Results, use: Row) -> list[str]:
    """What the best exact machine has on fewer rows, or on the same ones if that is more."""
    if result.on_exact_rows is not None:
        return [_beside_exact(result)]
    exact = result.best("exact")
    if exact is None or (exact.score or 0.0) <= (use.score or 0.0):
        return []
    return [f"{_BEST_EXACT}{_score_beside(result, use, exact)}"]


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
    if row.kind in ("linear", "gam"):
        return "a plain linear model" if row.kind == "linear" else "a generalised additive model"
    words = row.label.replace(",", "").split()
    return row.label if row.kernel in (*words, "basis", "–") else f"{row.label} ({row.kernel})"


def program(result: Results, row: Row | None) -> str:
    """A program that loads the data, makes the model of a row, scores and fits it."""
    if row is None or row.label not in result.estimators:
        return "# nothing was finished that could be recommended"
    data = result.data
    model = selecting(result.estimators[row.label], data.get("selected"))
    loading = data.get("loading_code") or "# X, y: the rows and targets that were compared"
    if result.task == "none":
        made = expression(model)
        return f"import kernelmaps as km\n\n{loading}\n\nfeature_map = {made}.fit(X)"
    kind = "StratifiedKFold" if result.task == "classification" else "KFold"
    imports = [*import_lines(model), f"from sklearn.model_selection import {kind}, cross_val_score"]
    steps = "".join(f"    {expression(step)},\n" for _, step in model.steps)
    folds = f"{kind}({data['folds']}, shuffle=True, random_state={data['random_state']})"
    share = "all" if row.rows == data["rows"] else f"{row.rows:,} of the"
    comment = f"{row.score:.3f} on {share} rows in the comparison"
    lines = [
        "import kernelmaps as km",
        *sorted(imports, key=lambda line: line.split()[1]),
        f"\n{loading}\n",
        f"model = make_pipeline(\n{steps})",
        f"scores = cross_val_score(model, X, y, cv={folds})",
        f'print(f"{result.score_name}: {{scores.mean():.3f}}")  # {comment}',
        "model.fit(X, y)",
    ]
    return "\n".join(lines)


def number(value: float | None, form: str = ".1e") -> str:
    """A cell, with a dash for what does not exist."""
    return "–" if value is None else format(value, form)


def numbers_table(
    title: str, caption: Sequence[str], first: str, numbers: Sequence[str], **style: Any
) -> Any:
    """A table with a column of names and columns of numbers, and sentences below."""
    from rich import box
    from rich.table import Table

    style |= {"caption_justify": "left", "box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0)}
    table = Table(title=title, caption="\n".join(caption), **style)
    table.add_column(first, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def comparison_table(result: Results) -> Any:
    """One line per method, best first, then those that cannot be compared."""
    from rich.text import Text

    use, ties = result.recommended(), [row.label for row in result.ties()]
    marks = dict.fromkeys(ties if len(ties) > 1 else [], "=")
    marks |= {use.label: "*"} if use is not None else {}
    caption = [use_this(result)[0]]
    if use is not None and result.task != "none":
        caption += _higher_exact(result, use)
    if len(ties) > 1:
        caption.append("= statistically tied with the best; * the recommended one.")
    shape = f"{result.data['rows']:,} × {result.data['columns']:,}"
    title, caption = f"{result.data['name']} ({shape})", [*caption, *result.notes]
    numbers = ("cols", "max rel.\nerror", result.score_name, "map\nms", "fit\nms", "test\nms")
    table = numbers_table(title, caption, "method", numbers)
    finished = result.finished()
    for row in finished:
        table.add_row(*_cells(row, marks.get(row.label, " ")), style=_STYLES.get(row.kind, ""))
    unfinished = sorted((r for r in result.rows if r not in finished), key=lambda r: -r.rows)
    if unfinished:
        table.add_section()
        table.add_row(Text("not compared: on other rows, or not finished", style="italic"))
    # A method that was not started has a line if the time that it needs is known.
    hidden = [row for row in unfinished if row.note == NO_TRIAL]
    for row in unfinished:
        if row not in hidden:
            table.add_row(*_cells(row, " ", with_status=True), style="dim")
    if hidden:
        table.add_row(Text(f"  {len(hidden)} not started", style="dim"))
    return table


def _cells(row: Row, mark: str, with_status: bool = False) -> list[str]:
    score = (
        "–" if row.score is None else f"{row.score:.3f} ±{row.score_std:.3f}".replace("±0.", "±.")
    )
    label = row.label.replace("sklearn ", "sk. ").replace("AdditiveChi2Sampler", "AdditiveChi2")
    if with_status:
        on_fewer = row.status in ("stopped", "limited")
        needs = f": {row.note}" if row.note and row.status == "not started" else ""
        label += f" ({row.rows:,} rows)" if on_fewer else f" ({row.status}{needs})"
    return [
        f"{mark} {label.replace(' orthogonal', '')}",
        number(row.columns, "d"),
        number(row.error.max_relative if row.error else None),
        score,
        *(
            number(1e3 * seconds if row.rows else None, ".0f")
            for seconds in (row.map_seconds, row.fit_seconds, row.predict_seconds)
        ),
    ]


def draw(result: Results, path: str | Path | None) -> Any:
    """Two panels with their Pareto fronts; the figure is returned, and saved if there is a path."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained", dpi=130)
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    errors = [row for row in result.rows if row.error is not None and row.error.max > 0]
    front = result.pareto("columns", "error")
    _panel(left, errors, front, lambda row: (row.columns, row.error.max_relative))
    left.set(
        xscale="log", yscale="log", xlabel="columns", ylabel="largest error / size of the kernel"
    )
    scored = [row for row in result.finished() if row.score is not None]
    _panel(right, scored, result.pareto(), lambda row: (max(row.seconds, 1e-4), row.score))
    right.set(xscale="log", xlabel="seconds to train", ylabel=result.score_name)
    kinds = dict.fromkeys(row.kind for row in result.rows)
    handles = [right.plot([], [], "o", color=_COLORS[kind], label=kind)[0] for kind in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False)
    figure.suptitle(f"{result.data['name']}: {result.data['rows']} rows", fontweight="bold")
    if path is not None:
        write_figure(figure, path)
    return figure


def _panel(axes: Any, rows: list[Row], front: list[Row], point: Callable[[Any], Any]) -> None:
    """Points of rows, joined and named where they are on the front."""
    if rows:
        axes.scatter(*zip(*map(point, rows)), c=[_COLORS[row.kind] for row in rows])
    if front:
        axes.plot(*zip(*map(point, front)), color="0.7", dashes=(4, 3), zorder=0)
    style: dict[str, Any] = {"textcoords": "offset points", "size": 7, "parse_math": False}
    for row in front:
        axes.annotate(row.label, point(row), (6, 3), **style)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.93")
    axes.set_axisbelow(True)
