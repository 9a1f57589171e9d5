"""Results of a comparison: its rows, ties and recommendation."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..inspection.kernel_error import KernelError

FINISHED = "finished"
NO_TRIAL = "no time for a trial"
"""Note of a method that was not started, and whose time is not known."""
# Of accuracy, or R²: on few rows two standard errors are several points, and a method that loses
# these is not as good as the best one, though the rows do not prove it.
_MOST_LOST = 0.01


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
        be compared. "stopped": on fewer rows, after which others were better. "limited": on the
        most rows that an exact kernel machine is given. "unfinished": the time was over before all
        folds were done. "not started": there was no time for it; `note` says how much it needs.
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
        Python that makes the model.
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


def is_tie(gap: float, within_noise: bool) -> bool:
    """Whether scores differ by no more than the noise, and by a point at most."""
    return within_noise and abs(gap) <= _MOST_LOST


@dataclass(frozen=True)
class Results:
    """The data of a comparison.

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
        Rows and targets of the last round, for pictures.
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
    sample: tuple[Any, Any] = field(default=(None, None), repr=False)
    estimators: dict[str, Any] = field(default_factory=dict, repr=False)
    losses: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    on_exact_rows: tuple[Row, Row, np.ndarray] | None = field(default=None, repr=False)

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
        return is_tie((a.score or 0.0) - (b.score or 0.0), self.within_noise(a, b))

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
            value = row.score if gain == "score" else error
            usable = row.finished or gain == "error"  # an error does not depend on the folds
            if usable and value is not None and getattr(row, cost) is not None:
                points.append((getattr(row, cost), value if gain == "error" else -value, row))
        points.sort(key=lambda point: point[:2])
        front, best = [], np.inf
        for _, loss, row in points:
            if loss < best:
                front.append(row)
                best = loss
        return front

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
        """One line per row; the parts of the error become columns."""
        import pandas as pd

        lines = []
        for row in self.rows:
            line = asdict(row)
            error = line.pop("error") or {}
            line |= {f"error_{key}": value for key, value in error.items() if key != "n_pairs"}
            lines.append(line)
        return pd.DataFrame(lines)
