"""Result of a comparison: its rows, ties, recommendation, table, plot and report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from .._util.display import Tabled, number, numbers_table
from ..inspection.kernel_error import KernelError
from ..inspection.panels import write_figure
from .candidates import expression, import_lines
from .methods import select_columns
from .reports import comparison_report

FINISHED = "finished"
# Of accuracy, or R²: on few rows two standard errors are several points, and a method that loses
# these is not as good as the best one, though the rows do not prove it.
_LARGEST_TIE = 0.01
_STYLES = {"linear": "dim", "exact": "bold", "sklearn": "cyan", "boosting": "dim"}
_COLORS = {
    "map": "#c8553d",
    "exact": "#1b4965",
    "linear": "#8a94a1",
    "gam": "#d9a441",
    "sklearn": "#2a9d8f",
    "boosting": "#8f6bb3",
}
_PEERS = {
    "linear": "A plain linear model",
    "gam": "A generalised additive model",
    "boosting": "Gradient boosting",
    "sklearn": "The best of scikit-learn's maps",
    "exact": "The best exact kernel machine",
}


@dataclass(frozen=True)
class Row:
    """One line of a comparison: what was run, how well it does, what it costs.

    Attributes
    ----------
    label, kind, kernel : str
        `kind` is "map", "exact", "linear", "gam", "sklearn" or "boosting".
    rows : int
        Rows of the data that it saw (all folds together).
    status : str
        "finished": on the same rows and folds as all other finished ones, so that their scores can
        be compared. "limited": on the most rows that an exact kernel machine is given.
        "unfinished": the time was over before all folds were done. "not started": there was no
        time for it.
    columns : int or None
        Output columns of the map.
    score, score_std : float or None
        Mean accuracy (or R²) over the folds, and its standard error.
    fold_scores : tuple of float
        The score of each fold.
    map_seconds : float
        Fitting the map and mapping the training rows, mean over the folds.
    fit_seconds : float
        Fitting the model on the features.
    predict_seconds : float
        Mapping and predicting the held-out rows.
    bytes : int
        Features (or Gram matrix) of the training rows.
    error : KernelError or None
        Distance from the exact kernel on a sample of rows.
    code : str
        Python that makes the model; of an exact machine, its kernel.
    note : str
        What a reader should know: a solver that did not converge, say.
    C : float or None
        Penalty of the linear model or kernel machine.
    """

    label: str
    kind: str
    kernel: str
    rows: int
    columns: int | None = None
    score: float | None = None
    score_std: float | None = None
    map_seconds: float = 0.0
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    bytes: int = 0
    error: KernelError | None = None
    code: str = ""
    note: str = ""
    status: str = FINISHED
    fold_scores: tuple[float, ...] = ()
    C: float | None = None

    @property
    def seconds(self) -> float:
        """Training: mapping and fitting."""
        return self.map_seconds + self.fit_seconds

    @property
    def finished(self) -> bool:
        """Whether its score may be compared with those of others."""
        return self.status == FINISHED


def tied(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the losses of two methods on the same rows differ by no more than their noise.

    A tie is a mean difference of at most two standard errors, √(Var(aᵢ − bᵢ) / n), over all
    held-out rows: the paired z-test, which is McNemar's for right and wrong classes.
    """
    difference = np.subtract(a, b, dtype=np.float64)
    noise = 2 * difference.std() / np.sqrt(len(difference))
    return bool(abs(difference.mean()) <= noise + 1e-12)


@dataclass(frozen=True, repr=False)
class Comparison(Tabled):
    """Result of :func:`compare`: a table, a recommendation, a plot and a report.

    `print` shows the table, a notebook shows it as HTML.

    Attributes
    ----------
    rows : list of Row
    task : str
        "classification", "regression" or "none".
    data : dict
        Name, rows, columns, names of the features (`selected`: those of a frame that are used, if
        some are left out), folds, and the code that loads the data.
    notes : list of str
        What was concluded, subsampled, left out, or interrupted, and why.
    seconds : float
        Wall-clock time of the whole comparison.
    interrupted : bool
        Whether it was stopped from the keyboard: the rows are what was finished by then.
    sample : tuple
        Rows and targets that were compared, for pictures.
    estimators : dict of str to estimator
        The unfitted models of the rows, by label: scikit-learn pipelines.
    losses : dict of str to ndarray
        Of finished rows, the loss of every held-out row: 1 for a wrong class, or the squared error.
    on_exact_rows : (Row, Row, ndarray) or None
        The best exact kernel machine, if it was given fewer rows than maps, and the recommended
        method on the same rows with its losses.
    """

    rows: list[Row]
    task: str
    data: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    sample: tuple[Any, Any] = (None, None)
    estimators: dict[str, Any] = field(default_factory=dict)
    losses: dict[str, np.ndarray] = field(default_factory=dict)
    on_exact_rows: tuple[Row, Row, np.ndarray] | None = None

    @property
    def score_name(self) -> str:
        return "R²" if self.task == "regression" else "accuracy"

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, label: str) -> Row:
        for row in self.rows:
            if row.label == label:
                return row
        raise KeyError(f"{label!r} did not take part; there are {[r.label for r in self.rows]}")

    def __repr__(self) -> str:
        use = self.recommended()
        advice = "nothing finished" if use is None else f"recommended: {use.label!r}"
        return (
            f"<Comparison of {len(self.rows)} methods on {self.data['name']!r}, {advice}; "
            "print it for the table>"
        )

    # ---- ranks ----------------------------------------------------------------------------------

    def finished(self, kind: str | None = None) -> list[Row]:
        """Rows that may be compared (of one kind), best first."""
        rows = [r for r in self.rows if r.finished and (kind is None or r.kind == kind)]
        if self.task == "none":
            ranked = [(row.error.relative, row) for row in rows if row.error is not None]
        else:
            ranked = [(-row.score, row) for row in rows if row.score is not None]
        return [row for _, row in sorted(ranked, key=lambda pair: pair[0])]

    def best(self, kind: str | None = None) -> Row | None:
        """The finished row of highest score (of one kind); without targets, of least error."""
        return next(iter(self.finished(kind)), None)

    def within_noise(self, a: Row, b: Row) -> bool:
        """Whether two finished rows differ by no more than the noise (see :func:`tied`)."""
        return tied(self.losses[a.label], self.losses[b.label])

    def tied(self, a: Row, b: Row) -> bool:
        """Whether two finished rows differ by no more than the noise, and by a point at most."""
        small = abs((a.score or 0.0) - (b.score or 0.0)) <= _LARGEST_TIE
        return small and self.within_noise(a, b)

    def ties(self, exact: bool = True) -> list[Row]:
        """The best finished row, and those that are tied with it; `exact` machines among them."""
        rows = [row for row in self.finished() if exact or row.kind != "exact"]
        if self.task == "none":
            return rows[:1]
        return [row for row in rows if row is rows[0] or self.tied(rows[0], row)]

    def recommended(self) -> Row | None:
        """Of all that are tied with the best, the one that trains and predicts fastest.

        If the comparison took a part of the rows only, it is the best one: more rows tell tied
        methods apart, and most often for those of the higher score. Exact kernel machines are not
        recommended: their cost grows with the square of the rows.
        """
        good = self.ties(exact=False)
        if good and good[0].rows < self.data["rows"]:
            return good[0]
        return min(good, key=lambda row: row.seconds + row.predict_seconds, default=None)

    def pareto(self, cost: str = "seconds", gain: str = "score") -> list[Row]:
        """Finished rows that no other row beats in both cost and gain, cheapest first.

        Parameters
        ----------
        cost : {"seconds", "columns", "bytes", "predict_seconds"}
        gain : {"score", "error"}
            "error" counts only rows with a map: the largest error relative to the size of the
            kernel, smaller being better.
        """
        points = []
        for row in self.rows:
            error = None if row.error is None else row.error.max_relative
            loss = error if gain == "error" else None if row.score is None else -row.score
            usable = row.finished or gain == "error"  # an error does not depend on the folds
            if usable and loss is not None and getattr(row, cost) is not None:
                points.append((getattr(row, cost), loss, row))
        front, best = [], np.inf
        for _, loss, row in sorted(points, key=lambda point: point[:2]):
            if loss < best:
                front.append(row)
                best = loss
        return front

    # ---- models ---------------------------------------------------------------------------------

    def estimator(self, label: str | None = None) -> Any:
        """The unfitted model of a row, a scikit-learn pipeline; by default the recommended one.

        Parameters
        ----------
        label : str, optional
            Of one of the rows.
        """
        if label is None:
            row = self.recommended()
            if row is None:
                raise ValueError("nothing was finished, so that there is no model to recommend.")
            label = row.label
        if label not in self.estimators:
            raise KeyError(f"{label!r} has no estimator; there are {list(self.estimators)}")
        return select_columns(clone(self.estimators[label]), self.data.get("selected"))

    def code(self, label: str | None = None) -> str:
        """A program that loads the data, fits and scores the recommended model (or another)."""
        row = self.recommended() if label is None else self[label]
        if row is None or row.label not in self.estimators:
            return "# nothing was finished that could be recommended"
        model, data = self.estimator(row.label), self.data
        loading = data.get("loading_code") or "# X, y: the rows and targets that were compared"
        if self.task == "none":
            made = expression(model)
            return f"import kernelmaps as km\n\n{loading}\n\nfeature_map = {made}.fit(X)"
        kind = "StratifiedKFold" if self.task == "classification" else "KFold"
        scoring = f"from sklearn.model_selection import {kind}, cross_val_score"
        imports = sorted([*import_lines(model), scoring], key=lambda line: line.split()[1])
        steps = "".join(f"    {expression(step)},\n" for _, step in model.steps)
        folds = f"{kind}({data['folds']}, shuffle=True, random_state={data['random_state']})"
        share = "all" if row.rows == data["rows"] else f"{row.rows:,} of the"
        comment = f"{row.score:.3f} on {share} rows in the comparison"
        lines = [
            "import kernelmaps as km",
            *imports,
            f"\n{loading}\n",
            f"model = make_pipeline(\n{steps})",
            f"scores = cross_val_score(model, X, y, cv={folds})",
            f'print(f"{self.score_name}: {{scores.mean():.3f}}")  # {comment}',
            "model.fit(X, y)",
        ]
        return "\n".join(lines)

    # ---- words ----------------------------------------------------------------------------------

    def use_this(self) -> list[str]:
        """The recommendation in sentences: what to use, because of what, and what others have."""
        use = self.recommended()
        if use is None:
            return ["No method finished, so none can be recommended."]
        if self.task == "none":
            assert use.error is not None
            return [
                f"Use {_name(use)}, because it is nearest to its kernel{self._field()}: the error "
                f"is at most {use.error.max_relative:.2%} of the kernel's size on "
                f"{use.error.n_pairs:,} pairs, with {use.columns:,} columns."
            ]
        score = f"{self.score_name} {use.score:.3f} ± {use.score_std:.3f}"
        first = f"Use {_name(use)}: {score}, because {self._reason(use)}."
        others = [(words, self.best(kind)) for kind, words in _PEERS.items() if kind != use.kind]
        return [
            first,
            *(f"{words}{self._score_of(other, use)}" for words, other in others if other),
            *self._on_exact_rows(),
        ]

    def _reason(self, use: Row) -> str:
        best, *slower = self.ties(exact=False)
        if use is not best:
            seconds = [row.seconds + row.predict_seconds for row in (best, use)]
            return (
                f"it is statistically tied with the best{self._field()} ({best.label}, "
                f"{best.score:.3f}) and {seconds[0] / max(seconds[1], 1e-9):.1f} times as fast"
            )
        reason = f"it has the best score{self._field()}"
        if use.rows < self.data["rows"]:
            return f"{reason} on {use.rows:,} of {self.data['rows']:,} rows"
        return f"{reason}, and the {len(slower)} tied with it are slower" if slower else reason

    def _field(self) -> str:
        """Of which methods a row is the best, where some did not finish; exact ones aside."""
        rivals = [row for row in self.rows if row.kind != "exact"]
        n_finished = sum(row.finished for row in rivals)
        some = f" of the {n_finished} methods that finished" if n_finished < len(rivals) else ""
        exact = self.best("exact")
        if exact is not None and (some or exact is self.best()):
            return f"{some}, exact kernel machines aside"
        return some

    def _score_of(self, other: Row, use: Row) -> str:
        """The end of a sentence on another method."""
        which = f" ({other.label})" if other.kind in ("exact", "sklearn") else ""
        gap = _gap(use, other, self.within_noise(use, other))
        return f"{which} has {other.score:.3f}, {gap}."

    def _on_exact_rows(self) -> list[str]:
        """The recommended method against the best exact machine, on the rows of that one."""
        if self.on_exact_rows is None:
            return []
        exact, use, losses = self.on_exact_rows
        return [
            f"On {exact.rows:,} rows, where {use.label} has {use.score:.3f}, the best exact kernel "
            f"machine ({exact.label}) has {exact.score:.3f}, "
            f"{_gap(use, exact, tied(losses, self.losses[exact.label]))}."
        ]

    # ---- tables and pictures --------------------------------------------------------------------

    def table(self) -> Any:
        """A rich table, narrow enough for 100 characters: best first, then the unfinished."""
        from rich.text import Text

        use, ties, exact = self.recommended(), [r.label for r in self.ties()], self.best("exact")
        marks = dict.fromkeys(ties if len(ties) > 1 else [], "=")
        marks |= {use.label: "*"} if use is not None else {}
        caption = [self.use_this()[0], *self._on_exact_rows()]
        if use is not None and exact is not None and (exact.score or 0.0) > (use.score or 0.0):
            caption.append(f"{_PEERS['exact']}{self._score_of(exact, use)}")
        if len(ties) > 1:
            caption.append("= statistically tied with the best; * the recommended one.")
        shape = f"{self.data['rows']:,} × {self.data['columns']:,}"
        heads = ("cols", "max rel.\nerror", self.score_name, "map\nms", "fit\nms", "test\nms")
        sentences = [*caption, *self.notes]
        table = numbers_table(f"{self.data['name']} ({shape})", sentences, "method", heads)
        finished = self.finished()
        for row in finished:
            table.add_row(*_cells(row, marks.get(row.label, " ")), style=_STYLES.get(row.kind, ""))
        others = [row for row in self.rows if row not in finished and row.rows]
        if others:
            table.add_section()
            table.add_row(Text("not compared: on other rows, or not finished", style="italic"))
            for row in sorted(others, key=lambda row: -row.rows):
                table.add_row(*_cells(row, " "), style="dim")
        return table

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw error against columns and score against time (needs matplotlib)."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 4.6), layout="constrained", dpi=130)
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2)
        errors = [row for row in self.rows if row.error is not None and row.error.max > 0]
        front = self.pareto("columns", "error")
        _draw_panel(left, errors, front, lambda row: (row.columns, row.error.max_relative))
        label = "largest error / size of the kernel"
        left.set(xscale="log", yscale="log", xlabel="columns", ylabel=label)
        scored = [row for row in self.finished() if row.score is not None]
        _draw_panel(right, scored, self.pareto(), lambda row: (max(row.seconds, 1e-4), row.score))
        right.set(xscale="log", xlabel="seconds to train", ylabel=self.score_name)
        kinds = dict.fromkeys(row.kind for row in self.rows)
        handles = [right.plot([], [], "o", color=_COLORS[kind], label=kind)[0] for kind in kinds]
        figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False)
        figure.suptitle(f"{self.data['name']}: {self.data['rows']} rows", fontweight="bold")
        if path is not None:
            write_figure(figure, path)
        return figure

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML file: recommendation, code, plots, sortable table."""
        return comparison_report(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        use = self.recommended()
        return {
            "task": self.task,
            "data": self.data,
            "recommended": None if use is None else use.label,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "notes": self.notes,
            "rows": [asdict(row) for row in self.rows],
        }

    def to_pandas(self) -> Any:
        """A data frame with one line per row; the parts of the error are columns."""
        import pandas as pd

        lines = []
        for row in self.rows:
            line = asdict(row)
            error = line.pop("error") or {}
            line |= {f"error_{key}": value for key, value in error.items() if key != "n_pairs"}
            lines.append(line)
        return pd.DataFrame(lines)


def _name(row: Row) -> str:
    if row.kind in ("linear", "gam"):
        return _PEERS[row.kind].replace("A ", "a ")
    words = row.label.replace(",", "").split()
    return row.label if row.kernel in (*words, "basis", "–") else f"{row.label} ({row.kernel})"


def _gap(use: Row, other: Row, within_noise: bool) -> str:
    gap = (use.score or 0.0) - (other.score or 0.0)
    if within_noise and abs(gap) <= _LARGEST_TIE:
        return "which is a statistical tie"
    noise = ", within two standard errors" if within_noise else ""
    return f"which is {abs(gap):.3f} {'lower' if gap > 0 else 'higher'}{noise}"


def _cells(row: Row, mark: str) -> list[str]:
    score = number(row.score, ".3f")
    if row.score_std is not None:
        score += f" ±{row.score_std:.3f}".replace("±0.", "±.")
    label = row.label.replace("sklearn ", "sk. ").replace("AdditiveChi2Sampler", "AdditiveChi2")
    if not row.finished:
        label += f" ({row.rows:,} rows)" if row.status == "limited" else f" ({row.status})"
    seconds = (row.map_seconds, row.fit_seconds, row.predict_seconds)
    return [
        f"{mark} {label.replace(' orthogonal', '')}",
        number(row.columns, "d"),
        number(row.error.max_relative if row.error else None),
        score,
        *(number(1e3 * value, ".0f") for value in seconds),
    ]


def _draw_panel(axes: Any, rows: list[Row], front: list[Row], point: Callable[[Any], Any]) -> None:
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
