"""Compare maps, kernels and sizes on the user's own data, beside the usual yardsticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

import kernelmaps

from ..kernels import Kernel
from ..progress import track
from ..sparse_rows import check_sparse
from .candidates import Candidate, candidates, fitted_to_data, kernel_label, sort_of
from .contenders import Contender, Problem, Row, map_contender, measure, yardsticks
from .task import decide_task

__all__ = ["Comparison", "compare"]

_PILOT_ROWS = 300
_DEAR = 0.05  # of the budget that one method may take and still be measured on more rows
_SHARE = 0.7  # of the time left that a round is planned for: predictions are rough


@dataclass(frozen=True)
class Comparison:
    """Result of :func:`compare`.

    Attributes
    ----------
    rows : list of Row
    task : str
        "classification", "regression" or "none".
    data : dict
        Name, rows, columns, sparsity of the data.
    notes : list of str
        What was subsampled, left out, or interrupted, and why.
    seconds : float
        Wall-clock time of the whole comparison.
    interrupted : bool
        Whether it was stopped from the keyboard: the rows are what was finished by then.
    sample : tuple
        Rows and targets of the last round, for pictures.
    maps : dict of str to map
        The maps of the rows, unfitted, by label.
    """

    rows: list[Row]
    task: str
    data: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    sample: tuple[Any, Any] = field(default=(None, None), repr=False)
    maps: dict[str, Any] = field(default_factory=dict, repr=False)

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

    def best(self, kind: str | None = None) -> Row | None:
        """The row of highest score (of one kind), or of least error where there are no targets."""
        rows = [row for row in self.rows if kind is None or row.kind == kind]
        if self.task == "none":
            rows = [row for row in rows if row.error is not None]
            return min(rows, key=lambda row: row.error.rms, default=None)
        return max((r for r in rows if r.score is not None), key=lambda r: r.score, default=None)

    def pareto(self, cost: str = "seconds", gain: str = "score") -> list[Row]:
        """Rows that no other row beats in both cost and gain, cheapest first.

        Parameters
        ----------
        cost : {"seconds", "columns", "bytes", "predict_seconds"}
        gain : {"score", "error"}
            "error" counts only rows with a map, the largest error, smaller being better.
        """
        points = []
        for row in self.rows:
            value = row.score if gain == "score" else (None if row.error is None else row.error.max)
            if value is not None and getattr(row, cost) is not None:
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
        return {
            "task": self.task,
            "data": self.data,
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

    def table(self) -> Any:
        """A rich table, narrow enough for 100 characters."""
        from ._tables import comparison_table

        return comparison_table(self)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw error against columns and score against time (needs matplotlib)."""
        from ._comparison_picture import draw

        return draw(self, path)

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML file: summary, plots, sortable table, code."""
        from .report import write_report

        return write_report(self, path)


def compare(
    X: Any,
    y: Any = None,
    *,
    maps: Sequence[Any] | None = None,
    kernels: Sequence[Any] | None = None,
    sizes: Sequence[int] = (3, 5),
    joint_sizes: Sequence[int] = (256, 1024),
    with_yardsticks: bool = True,
    cv: int = 3,
    C: float = 10.0,
    budget: float | None = None,
    exact_rows: int = 2000,
    name: str = "data",
    random_state: int = 0,
    progress: bool | None = None,
) -> Comparison:
    """Compare maps × kernels × sizes on data of your own.

    Each map is judged by its distance from the exact kernel, by the cross-validated accuracy (or
    R²) of a linear model on it, and by what it costs; beside it run a plain linear model, exact
    kernel machines, scikit-learn's maps and gradient boosting. All features are scaled to a mean
    k(x, x) of 1, so that one penalty `C` means the same to all.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,), optional
        Classes or real targets; without them only errors and times are measured.
    maps : sequence of str, Candidate, map or (label, map), optional
        What to compare; names stand for all sizes and kernels of that class. By default every map
        that exists for the kernels.
    kernels : sequence of str or Kernel, optional
        By default χ², intersection, exp-χ² and the Gaussian for data without negative values, else
        the Gaussian and the Laplacian. Widths of kernels given by name are taken from the data:
        median distance, or 1 / mean squared distance for the exponential ones.
    sizes, joint_sizes : sequence of int
        Columns per feature of additive maps, columns of joint ones.
    with_yardsticks : bool
        Whether to run what the maps are to be compared with.
    cv : int
        Folds of the cross-validation.
    C : float
        Penalty of the linear and kernel machines (1/C for ridge regression).
    budget : float, optional
        Seconds. A first round on few rows measures what everything costs; further rounds use as
        many rows, the same for all, as the remaining time allows.
    exact_rows : int
        Most rows that an exact kernel machine is given.
    name : str
        Name of the data in tables.
    random_state : int
    progress : bool, optional
        Whether to show a bar; None shows it on a terminal.

    Returns
    -------
    Comparison
        After Ctrl-C, with what was finished by then.

    Examples
    --------
    >>> import kernelmaps as km
    >>> X, y = km.datasets.make_histograms(120, 8, random_state=0)
    >>> result = km.compare(X, y, maps=["HomogeneousMap"], kernels=["chi2"], sizes=[3, 7])
    >>> a, b = (result[f"HomogeneousMap {size}"] for size in (3, 7))
    >>> b.error.max < a.error.max
    True
    """
    start = perf_counter()
    X, y, task = _checked(X, y)
    _check_arguments(X, cv, C, budget)
    notes: list[str] = []
    truths = [fitted_to_data(k, X, random_state) for k in kernels or _default_kernels(X)]
    truths = _without_inapplicable(truths, X, notes)
    contenders = _map_contenders(maps, truths, tuple(sizes), tuple(joint_sizes), random_state)
    if with_yardsticks and task != "none":
        contenders = [
            *yardsticks(truths, size=max(joint_sizes), exact_rows=exact_rows),
            *contenders,
        ]
    if not contenders:
        raise ValueError(f"compare: nothing to compare for maps={maps!r}, kernels={kernels!r}.")
    run = _Run(X, y, task, cv, C, random_state, notes, start, budget, progress)
    run.all(sorted(_unique(contenders), key=lambda c: c.late))
    return run.result(contenders, name)


class _Run:
    """Rounds of measurements, each on more rows than the last, until rows or time are used up."""

    def __init__(
        self,
        X: Any,
        y: Any,
        task: str,
        cv: int,
        C: float,
        random_state: int,
        notes: list[str],
        start: float,
        budget: float | None,
        progress: bool | None,
    ) -> None:
        rng = np.random.default_rng(random_state)
        self.order = rng.permutation(X.shape[0])
        # Pairs are many: a few hundred rows make a good estimate of the error.
        n_error = int(np.clip(np.sqrt(5e7 / max(1, X.shape[1])), 40, 400))
        error_rows = X[np.sort(self.order[-min(n_error, X.shape[0]) :])]
        self.problem = Problem(X, y, task, cv, C, error_rows, random_state)
        self.notes, self.start, self.budget, self.progress = notes, start, budget, progress
        self.results: dict[str, Row] = {}
        self.cost: dict[str, tuple[int, float]] = {}
        self.growth: dict[str, float] = {}
        self.interrupted = False
        self.rows = 0
        self.sample: tuple[Any, Any] = (None, None)

    @property
    def left(self) -> float:
        return np.inf if self.budget is None else self.budget - (perf_counter() - self.start)

    def all(self, contenders: list[Contender]) -> None:
        n = self.problem.X.shape[0]
        try:
            rows = n if self.budget is None else min(n, max(_PILOT_ROWS, 10 * self.problem.cv))
            while rows > self.rows:
                self._round(contenders, rows)
                self.rows = rows
                rows = self._next_rows(contenders, n)
        except KeyboardInterrupt:
            self.interrupted = True

    def _round(self, contenders: list[Contender], rows: int) -> None:
        words = f"{len(contenders)} methods on {rows} rows"
        chosen = np.sort(self.order[:rows])
        whole = self.problem if rows == len(self.order) else self.problem.of_rows(chosen)
        self.sample = (whole.X, whole.y)
        for contender in track(contenders, words, enabled=self.progress):
            own = min(rows, contender.max_rows or rows)
            before = self.cost.get(contender.label)
            if before is not None and (
                before[0] >= own
                or self._dear(contender)
                or self._predicted(contender, own) > self.left
            ):
                continue
            if before is None and self._typical() > self.left:
                continue
            begin = perf_counter()
            problem = whole if own == rows else self.problem.of_rows(np.sort(self.order[:own]))
            try:
                self.results[contender.label] = measure(contender, problem, self.left)
            except (ValueError, MemoryError) as error:
                self._leave_out(contender, error)
            self._remember(contender, own, perf_counter() - begin)

    def _dear(self, contender: Contender) -> bool:
        """Whether it took so much of the budget that more rows for all others are worth more."""
        if self.budget is None or contender.label not in self.cost:
            return False
        usual = float(np.median([cost for _, cost in self.cost.values()]))
        return self.cost[contender.label][1] > max(_DEAR * self.budget, 3 * usual)

    def _typical(self) -> float:
        """What a method that was not measured yet may take: as long as most others did."""
        return float(np.quantile([cost for _, cost in self.cost.values()] or [0.0], 0.8))

    def _remember(self, contender: Contender, rows: int, seconds: float) -> None:
        before, earlier = self.cost.get(contender.label, (rows, seconds))
        if rows > before and earlier > 0:
            seen = np.log(seconds / earlier) / np.log(rows / before)
            # Few rows are mostly overhead, so that what was seen is less than what will come.
            self.growth[contender.label] = float(np.clip(1.2 * seen, 0.8, contender.growth))
        self.cost[contender.label] = (rows, seconds)

    def _leave_out(self, contender: Contender, error: Exception) -> None:
        words = f"{contender.label} was left out: {str(error).splitlines()[0]}"
        if words not in self.notes:
            self.notes.append(words)

    def _predicted(self, contender: Contender, rows: int) -> float:
        """Seconds for more rows, from what fewer took; what was dear is not measured again.

        A first round is mostly overhead, so that half the exponent is a fair guess; afterwards the
        exponent is the one that was seen, with something on top.
        """
        before, seconds = self.cost.get(contender.label, (rows, 0.0))
        own = min(rows, contender.max_rows or rows)
        if own <= before or self._dear(contender):
            return 0.0
        growth = self.growth.get(contender.label, 0.5 * contender.growth)
        return seconds * (own / before) ** growth

    def _next_rows(self, contenders: list[Contender], n: int) -> int:
        """The most rows, up to five times as many, whose round fits; 0 if it is not worth one."""
        if self.budget is None or self.rows >= n:
            return 0
        rows = min(n, 5 * self.rows)
        while sum(self._predicted(c, rows) for c in contenders) > _SHARE * self.left:
            rows = int(rows / 1.25)
            if rows < 1.5 * self.rows:
                return 0
        return rows

    def result(self, contenders: list[Contender], name: str) -> Comparison:
        """Everything that was measured, in the order of the contenders."""
        X = self.problem.X
        return Comparison(
            rows=[self.results[c.label] for c in contenders if c.label in self.results],
            task=self.problem.task,
            data={
                "name": name,
                "rows": X.shape[0],
                "columns": X.shape[1],
                "sparse": bool(sparse.issparse(X)),
                "dtype": str(X.dtype),
                "folds": self.problem.cv,
                "C": self.problem.C,
            },
            notes=self.final_notes(contenders),
            seconds=perf_counter() - self.start,
            interrupted=self.interrupted,
            sample=self.sample,
            maps={c.label: c.make_map() for c in contenders if c.kind == "map" and c.make_map},
        )

    def final_notes(self, contenders: list[Contender]) -> list[str]:
        n = self.problem.X.shape[0]
        notes = list(self.notes)
        seen = max((row.rows for row in self.results.values()), default=0)
        if 0 < seen < n and self.budget is not None:
            why = "" if self.interrupted else f", as many as {self.budget:g} seconds allow"
            notes.append(f"Subsampled: {seen} of {n} rows{why}.")
        fewer = {r.label: r.rows for r in self.results.values() if r.rows < seen}
        exact = [label for label in fewer if self.results[label].kind == "exact"]
        if exact:
            notes.append(f"Exact kernel machines saw {fewer[exact[0]]} rows: {', '.join(exact)}.")
        slow = [f"{label} ({rows})" for label, rows in fewer.items() if label not in exact]
        if slow:
            more = f" and {len(slow) - 5} more; 'rows' says how many" if len(slow) > 5 else ""
            notes.append(f"Slow ones saw fewer rows: {', '.join(slow[:5])}{more}.")
        if self.interrupted:
            done = len(self.results)
            notes.append(f"Interrupted: {done} of {len(contenders)} methods were measured.")
        elif len(self.results) < len(contenders):
            late = [c.label for c in contenders if c.label not in self.cost]
            if late:
                notes.append(f"No time was left for: {', '.join(late)}.")
        return notes


def _checked(X: Any, y: Any) -> tuple[Any, np.ndarray | None, str]:
    check_sparse(X, "compare")
    X = check_array(X, accept_sparse="csr", dtype="numeric", input_name="X", estimator="compare")
    if y is None:
        return X, None, "none"
    y = np.asarray(y)
    if y.ndim != 1 or len(y) != X.shape[0]:
        raise ValueError(
            f"compare: y must have one value per row, got shape {y.shape} for {X.shape[0]} rows."
        )
    task = decide_task(y).name
    return X, y.astype(np.float64) if task == "regression" else y, task


def _check_arguments(X: Any, cv: int, C: float, budget: float | None) -> None:
    if not 0 < C < np.inf:
        raise ValueError(f"compare: C must be a positive number, got {C!r}.")
    if not isinstance(cv, int) or cv < 2 or cv > X.shape[0]:
        raise ValueError(f"compare: cv must be between 2 and the {X.shape[0]} rows, got {cv!r}.")
    if budget is not None and not budget > 0:
        raise ValueError(f"compare: budget must be a positive number of seconds, got {budget!r}.")


def _minimum(X: Any) -> float:
    values = X.data if sparse.issparse(X) else X
    return float(values.min()) if values.size else 0.0


def _default_kernels(X: Any) -> list[str]:
    if _minimum(X) < 0:
        return ["gaussian", "laplacian"]
    return ["chi2", "intersection", "exp_chi2", "gaussian"]


def _without_inapplicable(truths: list[Kernel], X: Any, notes: list[str]) -> list[Kernel]:
    """Kernels of histograms have no value for negative entries."""
    lowest, kept = _minimum(X), []
    for kernel in truths:
        base = getattr(kernel, "base", kernel)
        if lowest < 0 and hasattr(base, "signed") and not base.signed:
            notes.append(
                f"{kernel.name} was left out: X goes down to {lowest:g}, and the kernel is "
                "defined for values from 0 on."
            )
        else:
            kept.append(kernel)
    return kept


def _map_contenders(
    maps: Sequence[Any] | None,
    truths: list[Kernel],
    sizes: tuple[int, ...],
    joint_sizes: tuple[int, ...],
    random_state: int,
) -> list[Contender]:
    wanted = None if maps is None else [item for item in maps if isinstance(item, str)]
    for unknown in [n for n in wanted or [] if not hasattr(kernelmaps, n)]:
        raise ValueError(f"compare: there is no map {unknown!r} in kernelmaps.")
    found = []
    for kernel in [*truths, None]:
        joint = kernel is not None and sort_of(kernel) != "additive"
        own_sizes = joint_sizes if joint else sizes
        for candidate in candidates(kernel, own_sizes, random_state, all_variants=bool(wanted)):
            if wanted is None or candidate.name in wanted:
                # Anchors are searched for, which takes its time: quicker maps go first.
                late = own_sizes.index(candidate.size) + 2 * (candidate.name == "AnchorMap")
                found.append(_from_candidate(candidate, kernel, late))
    for item in [item for item in maps or [] if not isinstance(item, str)]:
        found.append(_from_object(item))
    return found


def _from_candidate(candidate: Candidate, kernel: Kernel | None, late: int = 0) -> Contender:
    name = kernel_label(kernel)
    label = candidate.label if name in ("own", "chi2") else f"{candidate.label}, {name}"
    return map_contender(label, candidate.make(), name, candidate.code(), late=late)


def _from_object(item: Any) -> Contender:
    if isinstance(item, Candidate):
        return _from_candidate(item, None)
    label, feature_map = item if isinstance(item, tuple) else (repr(item), item)
    if not hasattr(feature_map, "transform"):
        raise TypeError(f"compare: {feature_map!r} is neither the name of a map nor a transformer.")
    kernel = getattr(feature_map, "kernel", None)
    name = kernel if isinstance(kernel, str) else getattr(kernel, "name", "own")
    return map_contender(label, feature_map, name, f"km.{feature_map!r}")


def _unique(contenders: list[Contender]) -> list[Contender]:
    labels = [contender.label for contender in contenders]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ValueError(f"compare: these labels occur twice: {twice}. Give (label, map) pairs.")
    return contenders
