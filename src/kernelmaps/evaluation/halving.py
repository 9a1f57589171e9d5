"""Many methods within a budget: the most different ones first, then more of what does well.

Scores can only be compared on the same rows and folds. So one method of each sort comes first: the
plain linear model, the kernel machine that most people would train, one map for each kernel, a GAM
and boosting. A trial on few rows predicts their times, which say how many rows the first round
takes: all of them, if there is time for it. The time that is left goes to the other methods, those
of the kernel with the best score first. Each has its trial, so that nothing is started that cannot
finish; what does not fit is listed with the time that it needs. Before a method is measured for the
first time, its penalty C is chosen from a few values, for all in the same way.

If the first round had fewer rows, successive halving follows: every round measures the best methods
on three times as many rows, and at most half of them go on. The best method so far always does,
or else there is no further round. Those that reach the last round are *finished*; all others are
shown with what they had when they were stopped. A part of the budget is for the errors of the maps.
The time of compiling does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from .._util.display import track
from .._util.threads import interruptible
from .measuring import Problem, measure, measure_error, warm_up
from .methods import Method
from .results import NO_TRIAL, Row
from .trials import Trial, fixed_part, grown, run_trial, tune

_FIRST_ROWS = 500
_SAMPLE_PAYS_FROM = 4  # times the first rows: up to that a sample costs almost what it saves
_ROUND_FACTOR = 3  # rows of a round, over those of the one before
# Times the rows of a round are all rows, or more: it takes them all, and is the last.
_LAST_ROUND_FACTOR = 1.5
_MAP_ERRORS_SHARE = 0.1  # of the budget, for errors of maps
_REPEAT_SHARE = 0.05  # of the budget, for the recommended method on the rows of exact machines
_LONG_TRIAL_SHARE = 0.02  # of the budget, the most that a trial on more than a few rows may take
_TRIALS_SHARE = 0.3  # of the budget, after which no further method of the first round has a trial
_PLANNED_SHARE = 0.8  # of the time left that a round is planned for: predictions are rough
# Of the time: up to which the first methods run on all rows at once; else what they take on fewer
# rows, and what is kept for rounds on more. With a quarter for the first round, boosting stopped
# after 500 rows of spambase and 1328 of magic, although it is the best method on all rows.
_ALL_ROWS_SHARE, _FIRST_SHARE, _LATER_SHARE = 0.9, 0.4, 0.4
# A slow method is no part of the first round if there are so many times more rows without: boosting
# with 26 classes takes 8 s on 500 rows.
_ROWS_GAINED = 4
_ONE_METHOD_SHARE = 0.4  # of the budget, the most that one method may take


RBF_MACHINE = "exact gaussian"
"""Label of the kernel machine that most people would train instead of a map."""


def row_order(
    n: int, y: np.ndarray | None, task: str, cv: int, rng: np.random.Generator
) -> np.ndarray:
    """Rows in random order, in which every beginning has all classes, as far as they go.

    The first rows hold `cv` of each class (or all of it), so that no round misses a rare one.
    """
    order = rng.permutation(n)
    if y is None or task != "classification":
        return order
    _, codes = np.unique(y[order], return_inverse=True)
    by_class = np.argsort(codes, kind="stable")
    starts = np.r_[0, np.flatnonzero(np.diff(codes[by_class])) + 1]
    within = np.arange(n) - np.repeat(starts, np.diff(np.r_[starts, n]))
    first = np.zeros(n, dtype=bool)
    first[by_class[within < cv]] = True
    return np.concatenate([order[first], order[~first]])


def _rivals(methods: Iterable[Method]) -> list[Method]:
    """Methods that can be recommended instead of the plain linear model."""
    return [method for method in methods if method.kind not in ("linear", "exact")]


def representatives(methods: Sequence[Method]) -> list[Method]:
    """One method of each sort: linear, an exact machine, a map for each kernel, a GAM, boosting.

    Of exact machines it is `RBF_MACHINE`, if there is one; of others, the first in the list.
    """
    exact = [method for method in methods if method.kind == "exact"]
    machine = next((method for method in exact if method.label == RBF_MACHINE), (*exact, None)[0])
    maps: dict[str, Method] = {}
    for method in methods:
        if method.kind == "map":
            maps.setdefault(method.kernel, method)
    first, *others = maps.values() or (None,)
    linear, gam, boosting = (
        next((method for method in methods if method.kind == kind), None)
        for kind in ("linear", "gam", "boosting")
    )
    ordered = (linear, first, machine, *others, gam, boosting)
    return [method for method in ordered if method is not None]


class Rounds:
    """Runs methods in rounds, and keeps the last row of each.

    Parameters
    ----------
    problem : Problem
        All rows, and the order in which they are taken.
    budget : float or None
        Seconds of measuring; None measures everything on all rows.
    progress : bool or None
        Whether to show a bar.
    penalties : sequence of float
        Values of C, of which one is chosen for each method on few rows.
    """

    def __init__(
        self,
        problem: Problem,
        budget: float | None,
        progress: bool | None,
        penalties: Sequence[float],
    ) -> None:
        self.problem, self.progress, self.penalties = problem, progress, penalties
        self.n = problem.X.shape[0]
        self.limited = budget is not None
        total = np.inf if budget is None else budget
        self.total, self.start, self.compiling = total, perf_counter(), 0.0
        self.longest_trial = 0.0  # seconds
        self.ratios: list[float] = []  # of times that were measured to those that were predicted
        self.trials: dict[str, Trial] = {}
        self.tuned: dict[str, Method] = {}  # with the penalty that was chosen
        self.results: dict[str, Row] = {}
        self.losses: dict[str, np.ndarray] = {}
        self.costs: dict[str, list[tuple[int, float]]] = {}  # (rows, seconds) of each round
        self.failures: dict[str, str] = {}  # label: why it could not run
        self.warm: set[str] = set()  # labels of methods whose loops are compiled
        self.rows = 0  # of the last round
        self.interrupted = False

    def run(self, methods: Sequence[Method]) -> Rounds:
        """Measure; Ctrl-C ends it with what is finished by then."""
        try:
            if self.limited:
                self._within_budget(methods)
            else:
                self.rows = self.n
                self._round(methods, self.n)
            self._measure_errors(methods)
        except KeyboardInterrupt:
            self.interrupted = True
            self.rows = self._most_common_rows()
        for method in methods:
            self._set_status(method)
        return self

    @property
    def remaining(self) -> float:
        """Seconds of the budget that are left, all that was done so far counted but compiling."""
        return self.total - (perf_counter() - self.start - self.compiling)

    @property
    def correction(self) -> float:
        """Times of measurements over those that trials predicted: the median, and at most 1."""
        return min(1.0, float(np.median(self.ratios))) if self.ratios else 1.0

    @property
    def available(self) -> float:
        """Seconds that are left for measuring scores."""
        return self.remaining - _MAP_ERRORS_SHARE * self.total if self.limited else np.inf

    def first_rows(self) -> int:
        """The fewest rows of a round: enough for some of every class in every fold."""
        if not self.limited:
            return self.n
        n_classes = 1 if self.problem.task != "classification" else len(np.unique(self.problem.y))
        return min(self.n, max(_FIRST_ROWS, 2 * self.problem.cv * n_classes))

    # ---- rounds ---------------------------------------------------------------------------------

    def _within_budget(self, methods: Sequence[Method]) -> None:
        first = representatives(methods)
        for method in track(first, f"{len(first)} methods on few rows", enabled=self.progress):
            if self.total - self.remaining <= _TRIALS_SHARE * self.total:
                self._run_trial(method)
        tried = [method for method in first if np.isfinite(self.predicted(method, self.n))]
        first = self._without_costly(tried) if len(tried) > 1 else first[:2]
        self.rows = self._rows_for(first)
        self._round(first, self.rows)
        share = 0.0 if self.rows == self.n else _LATER_SHARE
        self._more(methods, keep=share * self.total)
        while self.rows < self.n and (plan := self._next(self._ranked(methods))) is not None:
            going, self.rows = plan
            self._round(going, self.rows)
        self._more(methods)

    def _rows_for(self, methods: Sequence[Method]) -> int:
        """Rows of the first round: all, if the methods fit; else so many that more can follow."""
        fewest, for_all_rows = self.first_rows(), self._seconds_for(methods, self.n)
        if self.n <= _SAMPLE_PAYS_FROM * fewest or for_all_rows <= _ALL_ROWS_SHARE * self.available:
            return self.n
        rows = self.n // _ROUND_FACTOR
        while rows > fewest and self._seconds_for(methods, rows) > _FIRST_SHARE * self.available:
            rows = max(fewest, int(rows / 1.25))
        return rows

    def _without_costly(self, methods: list[Method]) -> list[Method]:
        """Methods of the first round but those that cost it too many rows."""
        rows = self._rows_for(methods)
        by_cost = sorted(methods, key=lambda method: self.predicted(method, rows))
        for count in range(1, len(methods) - 1):
            costly = by_cost[-count:]
            others = [method for method in methods if method not in costly]
            if self._rows_for(others) >= _ROWS_GAINED**count * rows:
                return others
        return methods

    def _seconds_for(self, methods: Iterable[Method], rows: int) -> float:
        return sum(self.predicted(method, rows) for method in methods)

    def _more(self, methods: Sequence[Method], keep: float = 0.0) -> None:
        """Measure further methods on the rows of this round, the most promising first.

        It ends where no more than `keep` would be left after the longest trial. Larger maps of a
        family follow smaller ones: if one does not fit, they have no trial.
        """
        waiting = [m for m in methods if self.predicted(m, self.rows) > 0]
        too_slow: set[tuple[type, str]] = set()
        first = representatives(methods)
        while waiting and self.available - keep > self.longest_trial:
            method = max(waiting, key=lambda m: (m in first, *self._promise(m)))
            waiting.remove(method)
            family = type(method.feature_map or method.model), method.kernel
            if family in too_slow:
                continue
            self._run_trial(method)
            if self.predicted(method, self.rows) <= _PLANNED_SHARE * (self.available - keep):
                self._round([method], self.rows)
            else:
                too_slow.add(family)

    def _promise(self, method: Method) -> tuple[float, bool]:
        """The best score of its kernel's maps; of one kernel, scikit-learn's maps come last."""
        scores = [
            row.score or 0.0
            for row in self.results.values()
            if row.kernel == method.kernel and row.kind != "exact"
        ]
        return max(scores, default=-np.inf), method.kind != "sklearn"

    def _run_trial(self, method: Method) -> None:
        """Predict the time of a method, once."""
        if method.label in self.trials or method.label in self.failures:
            return
        try:
            warming = self._warm_up(method, self.problem)
            start = perf_counter()
            arguments = len(self.penalties), _LONG_TRIAL_SHARE * self.total
            trial = interruptible(run_trial, method, self.problem, *arguments)
        except (ValueError, TypeError, MemoryError) as error:
            self.failures[method.label] = str(error).splitlines()[0]
            return
        self.trials[method.label] = trial
        spent = perf_counter() - start
        # A warm-up maps as many rows as a trial; what it takes beyond that is compiling.
        mapping = min(warming, spent)
        self.compiling -= mapping
        self.longest_trial = max(self.longest_trial, spent + mapping)

    def _warm_up(self, method: Method, problem: Problem) -> float:
        """Compile the loops of a method, once; the seconds, which are not part of the budget."""
        if method.label in self.warm:
            return 0.0
        start = perf_counter()
        interruptible(warm_up, method, problem)
        self.warm.add(method.label)
        seconds = perf_counter() - start
        self.compiling += seconds
        return seconds

    def _next(self, ranked: list[Method]) -> tuple[list[Method], int] | None:
        """Methods and rows of the next round, best first; None if no further one is worth it."""
        left = _PLANNED_SHARE * self.available
        if self._seconds_for(ranked, self.n) <= left:
            return ranked, self.n
        rows = _ROUND_FACTOR * self.rows
        if _LAST_ROUND_FACTOR * rows >= self.n:
            rows = self.n
        rounds = max(
            1,
            int(np.ceil(np.log(self.n / (_LAST_ROUND_FACTOR * self.rows)) / np.log(_ROUND_FACTOR))),
        )
        most = len(ranked) if rows == self.n else max(3, -(-len(ranked) // 2))
        rivals = _rivals(ranked)
        while rivals and rows >= 1.5 * self.rows:
            going = self._fitting(ranked, rows, left / rounds)[:most]
            fitting = _rivals(going)
            # What is best so far must not drop out because it is slow.
            if rivals[:1] == fitting[:1] and len(fitting) >= min(2, len(rivals)):
                return going, rows
            rounds, rows = 1, int(rows / 1.25)
        return None

    def _fitting(self, ranked: Iterable[Method], rows: int, seconds: float) -> list[Method]:
        """The best methods that together fit into the time; what does not fit is passed over.

        The plain linear model comes first: everything is held against it, and it is quick.
        """
        planned: list[Method] = []
        for method in sorted(ranked, key=lambda method: method.kind != "linear"):
            cost = self.predicted(method, rows)
            if cost <= seconds:
                planned.append(method)
                seconds -= cost
        return planned

    def _round(self, methods: Sequence[Method], rows: int) -> None:
        """Measure methods on some rows, as long as there is time for them."""
        words = f"{len(methods)} methods on {rows} rows"
        enabled = self.progress if len(methods) > 1 else False
        for method in track(methods, words, enabled=enabled):
            n_rows = min(rows, method.max_rows or rows)
            done = self.costs.get(method.label, [(0, 0.0)])[-1][0]
            if done >= n_rows or method.label in self.failures:
                continue
            # However small the budget, there are two results to compare.
            free = not self.limited or len(self.results) < 2
            most = min(self.available, _ONE_METHOD_SHARE * self.total)
            if not free and self.predicted(method, rows) > most:
                continue
            problem = self.problem.of_rows(n_rows)
            try:
                self._warm_up(method, problem)
                self._tune(method)
                start = perf_counter()
                seconds = np.inf if free else self.available
                row, losses = interruptible(measure, self.tuned[method.label], problem, seconds)
                if self.problem.task == "none":
                    row = replace(row, error=interruptible(measure_error, method, problem))
            except (ValueError, TypeError, MemoryError) as error:
                self.failures[method.label] = str(error).splitlines()[0]
                self.results.pop(method.label, None)
                continue
            spent = perf_counter() - start
            self.results[method.label] = row
            if losses is not None:
                self.losses[method.label] = losses
            share = len(row.fold_scores) / problem.cv or 1.0  # of the folds that were done
            if method.label in self.trials and method.label not in self.costs:
                predicted = self.trials[method.label].predicted(n_rows)
                self.ratios.append(spent / share / max(predicted, 1e-9))
            self.costs.setdefault(method.label, []).append((n_rows, spent / share))

    def _tune(self, method: Method) -> None:
        """Choose the penalty of a method before it is measured for the first time."""
        if method.label in self.tuned:
            return
        if len(self.penalties) > 1:
            method = interruptible(tune, method, self.problem, self.penalties)
        self.tuned[method.label] = method

    def again_on(self, label: str, rows: int) -> tuple[Row, np.ndarray]:
        """A finished method on fewer rows, and its losses: beside machines that saw no more."""
        return interruptible(measure, self.tuned[label], self.problem.of_rows(rows), np.inf)

    def _measure_errors(self, methods: Sequence[Method]) -> None:
        """Errors of the maps, those that finished first; they do not depend on the folds."""
        keep = _REPEAT_SHARE * self.total if self.limited else 0.0
        missing = [m for m in self._ranked(methods) if self.results[m.label].error is None]
        for method in track(missing, "errors of the maps", enabled=self.progress):
            # To measure an error, a map is fitted and applied to about as many rows as in a fold.
            if self.remaining - keep <= self.results[method.label].map_seconds:
                continue
            error = interruptible(measure_error, method, self.problem)
            self.results[method.label] = replace(self.results[method.label], error=error)

    def _most_common_rows(self) -> int:
        """Rows that most methods were measured on when the round was interrupted."""
        counts = Counter(row.rows for row in self.results.values())
        return max(counts, key=lambda rows: (counts[rows], rows), default=0)

    def sample(self) -> tuple[Any, Any]:
        """Rows and targets of the last round."""
        problem = self.problem.of_rows(self.rows or self.first_rows())
        return problem.X, problem.y

    # ---- ranks and costs ------------------------------------------------------------------------

    def _ranked(self, methods: Iterable[Method]) -> list[Method]:
        """Methods that have a result: those on most rows first, of these the best first."""
        measured = [m for m in methods if m.label in self.results]

        def rank(method: Method) -> tuple[float, float]:
            row = self.results[method.label]
            if self.problem.task == "none":
                return -row.rows, np.inf if row.error is None else row.error.relative
            return -row.rows, -np.inf if row.score is None else -row.score

        return sorted(measured, key=rank)

    def predicted(self, method: Method, rows: int) -> float:
        """Seconds for more rows: by the trial, and later by the times of two rounds."""
        n_rows = min(rows, method.max_rows or rows)
        history = self.costs.get(method.label)
        if method.label in self.failures:
            return 0.0
        if not history:
            trial = self.trials.get(method.label)
            if trial is None:
                return np.inf
            return self.correction * trial.predicted(n_rows) + trial.tuning_seconds
        done, seconds = history[-1]
        if n_rows <= done:
            return 0.0
        fixed, trial = 0.0, self.trials.get(method.label)
        if len(history) > 1:
            fixed = fixed_part(history[-2], history[-1], method.growth)
        elif trial is not None:
            fixed = trial.fixed_at(done)
        return seconds * grown(n_rows / done, method.growth, fixed)

    def _set_status(self, method: Method) -> None:
        """State whether a method may be compared with the others, and if not, why."""
        row = self.results.get(method.label)
        if row is None:
            if method.label not in self.failures:
                self.results[method.label] = self._not_started(method)
        elif row.status == "finished" and row.rows != self.rows:
            limited = method.max_rows is not None and row.rows == method.max_rows
            self.results[method.label] = replace(row, status="limited" if limited else "stopped")

    def _not_started(self, method: Method) -> Row:
        seconds = self.predicted(method, self.rows or self.n)
        unknown = NO_TRIAL if self.limited else ""
        rounded = float(f"{seconds:.2g}")
        needs = f"needs about {rounded:g} s" if np.isfinite(seconds) else unknown
        names = method.label, method.kind, method.kernel
        return Row(*names, 0, status="not started", code=method.code(), note=needs)
