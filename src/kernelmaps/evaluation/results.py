"""Result of a comparison: its frame, ties, recommendation, program, table and report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import model_selection
from sklearn.base import clone

from .._util.display import Tabled, number, table_of
from .candidates import expression, import_lines
from .reports import comparison_report

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Of accuracy, or R²: on few rows two standard errors are several points, and a method that loses
# these is not as good as the best one, though the rows do not prove it.
LARGEST_TIE = 0.01
_STYLES = {"linear": "dim", "exact": "bold", "sklearn": "cyan", "boosting": "dim"}
_PEERS = {
    "linear": "A plain linear model",
    "gam": "A generalised additive model",
    "boosting": "Gradient boosting",
    "sklearn": "The best of scikit-learn's maps",
    "exact": "The best exact kernel machine",
}
_FOREIGN = ("boosting", "sklearn")
_READABLE = ("linear", "gam")  # kinds of models that people read, the simplest first
_AS_FAST = 1.1  # ratio of times that another run may turn round
_COLUMNS = (
    "kind", "kernel", "status", "rows", "columns", "score", "score_std", "C", "seconds",
    "map_seconds", "fit_seconds", "predict_seconds", "bytes", "error_max", "error_rms",
    "error_relative", "error_bias", "error_size", "error_max_relative", "fold_scores", "note",
    "code",
)  # fmt: skip


def splitter_of(task: str, grouped: bool) -> type:
    """The class that splits rows into folds."""
    kind = ("Stratified" if task == "classification" else "") + ("Group" if grouped else "")
    return getattr(model_selection, f"{kind}KFold")


def make_frame(rows: Sequence[dict[str, Any]]) -> DataFrame:
    """The rows of a comparison as a frame: finished ones first, of the highest score."""
    import pandas as pd

    frame = pd.DataFrame(rows, columns=["label", *_COLUMNS]).set_index("label")
    frame = frame.assign(seconds=frame["map_seconds"] + frame["fit_seconds"])
    frame = frame.astype({"columns": "Int64", "score": float, "error_max_relative": float})
    rank = {"finished": 0, "limited": 1, "not started": 2}
    order = np.lexsort((-frame["score"], frame["status"].map(rank)))
    return frame.iloc[order]


def is_tie(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the losses of two methods on the same rows differ by no more than their noise.

    A tie is a mean difference of at most two standard errors, √(Var(aᵢ − bᵢ) / n), over all
    held-out rows: the paired z-test, which is McNemar's for right and wrong classes.
    """
    difference = np.subtract(a, b, dtype=np.float64)
    noise = 2 * difference.std() / np.sqrt(len(difference))
    return bool(abs(difference.mean()) <= noise + 1e-12)


@dataclass(frozen=True, repr=False)
class Comparison(Tabled):
    """Result of :func:`compare`: a frame, a recommendation and a report.

    `print` shows it as a table, a notebook as HTML; ``result["label"]`` is a row of the frame.

    Attributes
    ----------
    task : str
        "classification" or "regression".
    data : dict
        Name, rows, columns, names of the columns that are used, folds, and the code that loads the
        data.
    frame : DataFrame
        One line for each method by its label, the best first. `kind` is "map", "exact", "linear",
        "gam", "sklearn" or "boosting". `status` is "finished": on the same rows and folds as all
        other finished ones, so that their scores can be compared; "limited": on the most rows that
        an exact kernel machine is given; "not started": there was no time for it. `rows` are those
        it saw, all folds together; `columns` are those of the map. `score` is the mean accuracy (or
        R²) over the folds, of `fold_scores`, and `score_std` its standard error; `C` the penalty.
        `map_seconds` and `fit_seconds` are the times of mapping and fitting the training rows of a
        fold, together `seconds`; `predict_seconds` that of mapping and predicting the others;
        `bytes` the size of the features (or the Gram matrix). `error_max` and further parts of a
        `KernelError` are of the map. `code` is the Python that makes the model (or an exact
        machine's kernel), `note` what a reader should know: a solver that did not converge, say.
    notes : list of str
        What was concluded, subsampled, left out, or interrupted, and why.
    seconds : float
        Wall-clock time of the whole comparison.
    interrupted : bool
        Whether it was stopped from the keyboard: the frame has what was finished by then.
    models : dict of str to Pipeline
        The unfitted models of the selected columns by label; of exact kernel machines none, as they
        do not scale to many rows.
    losses : dict of str to ndarray
        Of finished methods, the loss of every held-out row: 1 for a wrong class, or the squared
        error.
    """

    task: str
    data: dict[str, Any]
    frame: DataFrame = None
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    models: dict[str, Any] = field(default_factory=dict)
    losses: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def score_name(self) -> str:
        return "R²" if self.task == "regression" else "accuracy"

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, label: str) -> Series:
        if label not in self.frame.index:
            raise KeyError(f"{label!r} did not take part; there are {list(self.frame.index)}")
        return self.frame.loc[label]

    def __repr__(self) -> str:
        use = self.recommended()
        advice = "nothing finished" if use is None else f"recommended: {use!r}"
        return (
            f"<Comparison of {len(self)} methods on {self.data['name']!r}, {advice}; "
            "print it for the table>"
        )

    # ---- ranks ----------------------------------------------------------------------------------

    @property
    def finished(self) -> DataFrame:
        """Lines whose scores may be compared, best first."""
        return self.frame[self.frame["status"] == "finished"]

    def tied(self, a: str, b: str) -> bool:
        """Whether two finished methods differ by a point at most, and by no more than the noise."""
        small = abs(self[a].score - self[b].score) <= LARGEST_TIE
        return bool(small and is_tie(self.losses[a], self.losses[b]))

    def ties(self, *, exact: bool = True) -> list[str]:
        """The best finished method, and those that are tied with it; `exact` ones among them."""
        rows = self.finished
        labels = list(rows.index if exact else rows.index[rows["kind"] != "exact"])
        return labels[:1] + [label for label in labels[1:] if self.tied(labels[0], label)]

    def recommended(self) -> str | None:
        """The label of the fastest method, in training and predicting, of those tied with the best.

        Of methods that are as fast, it is one of this library or the linear model, and of several
        the one with the highest score. Exact kernel machines are not recommended: their cost grows
        with the square of the rows.
        """
        good = self.finished.loc[self.ties(exact=False)]
        seconds = good["seconds"] + good["predict_seconds"]
        as_fast = good[seconds <= _AS_FAST * seconds.min()]
        as_fast = as_fast.sort_values("kind", key=lambda kind: kind.isin(_FOREIGN), kind="stable")
        return next(iter(as_fast.index), None)

    def pareto(self, cost: str = "seconds", gain: str = "score") -> DataFrame:
        """Finished lines that no other one beats in both cost and gain, cheapest first.

        Parameters
        ----------
        cost : {"seconds", "columns", "bytes", "predict_seconds"}
        gain : {"score", "error"}
            "error" counts only methods with a map: the largest error relative to the size of the
            kernel, smaller being better, which does not depend on the folds.
        """
        rows = self.frame if gain == "error" else self.finished
        loss = rows["error_max_relative"] if gain == "error" else -rows["score"]
        rows = rows.assign(loss=loss).dropna(subset=[cost, "loss"]).sort_values([cost, "loss"])
        before = rows["loss"].cummin().shift(fill_value=np.inf)
        return rows[rows["loss"] < before].drop(columns="loss")

    # ---- models ---------------------------------------------------------------------------------

    def estimator(self, label: str | None = None) -> Any:
        """The unfitted model of a method, a scikit-learn pipeline; by default the recommended one.

        Parameters
        ----------
        label : str, optional
            Of one of the methods.
        """
        label = self.recommended() if label is None else label
        if label is None:
            raise ValueError("nothing was finished, so that there is no model to recommend.")
        if label not in self.models:
            raise KeyError(f"{label!r} has no estimator; there are {list(self.models)}")
        return clone(self.models[label])

    def code(self, label: str | None = None) -> str:
        """A program that loads the data, fits and scores the recommended model (or another)."""
        label = self.recommended() if label is None else label
        if label not in self.models:
            return "# nothing was finished that could be recommended"
        model, data, row = self.estimator(label), self.data, self[label]
        loading = data.get("loading_code") or "# X, y: the rows and targets that were compared"
        kind, grouped = splitter_of(self.task, data["grouped"]).__name__, data["grouped"]
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
            f"scores = cross_val_score(model, X, y, {'groups=groups, ' * grouped}cv={folds})",
            f'print(f"{self.score_name}: {{scores.mean():.3f}}")  # {comment}',
            "model.fit(X, y)",
        ]
        return "\n".join(lines)

    # ---- words ----------------------------------------------------------------------------------

    def use_this(self) -> list[str]:
        """The recommendation in sentences: what to use, because of what, and what others have."""
        label = self.recommended()
        if label is None:
            return ["No method finished, so none can be recommended."]
        use = self[label]
        score = f"{self.score_name} {use.score:.3f} ± {use.score_std:.3f}"
        sentences = [f"Use {label}: {score}, because {self._reason(label)}.", *self._tie_words()]
        for kind, words in _PEERS.items():
            rivals = self.finished[self.finished["kind"] == kind]
            if kind != use.kind and len(rivals):
                sentences.append(f"{words} {self._compare_scores(rivals.index[0], label)}")
        return sentences

    def _reason(self, label: str) -> str:
        (best, *slower), use = self.ties(exact=False), self[label]
        rivals = self.frame[self.frame["kind"] != "exact"]
        n_finished = int((rivals["status"] == "finished").sum())
        scope = "" if n_finished == len(rivals) else f" of the {n_finished} methods that finished"
        scope += ", exact kernel machines aside" if self.finished["kind"].iloc[0] == "exact" else ""
        if label != best:
            seconds = [row.seconds + row.predict_seconds for row in (self[best], use)]
            ratio = seconds[0] / max(seconds[1], 1e-9)
            faster = f"{ratio:.1f} times as fast" if ratio >= _AS_FAST else "as fast"
            return (
                f"it is statistically tied with the best{scope} ({best}, {self[best].score:.3f}) "
                f"and {faster}"
            )
        reason = f"it has the best score{scope}"
        if use.rows < self.data["rows"]:
            return f"{reason} on {use.rows:,} of {self.data['rows']:,} rows"
        return f"{reason}, and none of those tied with it is faster" if slower else reason

    def _tie_words(self) -> list[str]:
        """The fastest and the most readable of those tied with the best, in a sentence."""
        tied = self.finished.loc[self.ties()]
        if len(tied) < 2:
            return []
        fastest = (tied["seconds"] + tied["predict_seconds"]).idxmin()
        readable = [label for kind in _READABLE for label in tied.index[tied["kind"] == kind]][:1]
        words = f" and {readable[0]} the most readable" if readable else ""
        words = " and the most readable" if readable == [fastest] else words
        return [f"Of the {len(tied)} tied methods, {fastest} is the fastest{words}."]

    def _compare_scores(self, other: str, use: str) -> str:
        """The end of a sentence on another method."""
        name = f"({other}) " if self[other].kind in ("exact", "sklearn") else ""
        gap = self[use].score - self[other].score
        words = f"{abs(gap):.3f} {'lower' if gap > 0 else 'higher'}"
        ties = self.tied(use, other)
        better = self[other].kind == "exact" and gap < 0 and not ties
        advice = "; for as many rows as it was fitted to, use it" if better else ""
        words = "a statistical tie" if ties else words
        return f"{name}has {self[other].score:.3f}, which is {words}{advice}."

    # ---- tables and files -----------------------------------------------------------------------

    def table(self) -> Any:
        """A rich table, narrow enough for 100 characters: best first, then those on fewer rows."""
        from rich.text import Text

        use, ties, best = self.recommended(), self.ties(), next(iter(self.finished.index), "")
        marks = dict.fromkeys(ties if len(ties) > 1 else [], "=") | {use: "*"}
        caption = [self.use_this()[0], *self._tie_words()]
        if use is not None and self[best].kind == "exact":
            caption.append(f"{_PEERS['exact']} {self._compare_scores(best, use)}")
        if len(ties) > 1:
            caption.append("= statistically tied with the best; * the recommended one.")
        title = f"{self.data['name']} ({self.data['rows']:,} × {self.data['columns']:,})"
        right = ("cols", "max rel.\nerror", self.score_name, "map\nms", "fit\nms", "test\nms")
        table = table_of(["method", *right], [], title, right, padding=(0, 1, 0, 0))
        table.caption = "\n".join([*caption, *self.notes])
        for label, row in self.finished.iterrows():
            cells = _cells(str(label), row, marks.get(label, " "))
            table.add_row(*cells, style=_STYLES.get(row.kind, ""))
        limited = self.frame[self.frame["status"] == "limited"]
        if len(limited):
            table.add_section()
            table.add_row(Text("not compared: on fewer rows", style="italic"))
        for label, row in limited.iterrows():
            table.add_row(*_cells(str(label), row, " "), style="dim")
        return table

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML file: recommendation, code, plots, sortable table."""
        return comparison_report(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        names = ("task", "data", "seconds", "interrupted", "notes")
        rows = self.frame.reset_index().astype(object)
        return {
            "recommended": self.recommended(),
            **{name: getattr(self, name) for name in names},
            "rows": rows.where(rows.notna(), None).to_dict("records"),
        }


def _cells(label: str, row: Series, mark: str) -> list[str]:
    import pandas as pd

    score = f"{row.score:.3f} ±{row.score_std:.3f}".replace("±0.", "±.")
    short = label.replace("sklearn ", "sk. ").replace("AdditiveChi2Sampler", "AdditiveChi2")
    short += f" ({row.rows:,} rows)" if row.status == "limited" else ""
    columns, error = (None if pd.isna(v) else v for v in (row["columns"], row.error_max_relative))
    seconds = (row.map_seconds, row.fit_seconds, row.predict_seconds)
    return [
        f"{mark} {short.replace(' orthogonal', '')}",
        number(columns, "d"),
        number(error),
        score,
        *(number(1e3 * value, ".0f") for value in seconds),
    ]
