"""Successive halving: many methods on few rows, the best of them on all, within a budget.

Scores can only be compared on the same rows and folds. So a budget first shortens the list of
methods, and shrinks the rows only where even the two best would not finish: every round measures
the methods that are left on three times as many rows, and at most half of them go on. Those that
reach the last round are *finished*; all others are shown with what they had when they were stopped.
Up to four times the rows of a first round, a sample costs almost as much as it saves: there is one
round on all rows, in the order of the list, of the methods that fit into the time.

A trial on few rows comes first and predicts the time of each method, so that nothing is started
that cannot finish; what does not fit is listed with the time that it needs. Before a method is
measured for the first time, its penalty C is chosen from a few values, for all in the same way.

Two thirds of the budget belong to maps and the plain linear model, one quarter to what they are
compared with (exact kernel machines, scikit-learn's maps, boosting), which are measured on few rows
first and on those of the last round only if that fits; the rest to the errors of the maps. The time
of compiling belongs to none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from ..progress import track
from ..threads import interruptible
from .measuring import Problem, measure, measure_error, warm_up
from .methods import Method
from .results import Row
from .trials import Trial, fixed_part, grown, run_trial, tune

_FIRST_ROWS = 500
_WORTH = 4  # times the first rows, up to which all methods run on all rows at once
_FACTOR = 3  # rows of a round, over those of the one before
_NEARLY = 1.5  # times the rows of a round are all rows: it takes them all, and is the last
_MAPS, _PEERS = 0.65, 0.25  # of the budget, for maps and for what they are compared with
_AGAIN = 0.05  # of the budget, for the recommended method on the rows of exact machines
_TRIALS = 1 / 3  # of the time of each sort of work, for predicting times
_SAFETY = 0.8  # of the time left that a round is planned for: predictions are rough


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


def _rivals(methods: Iterable[Method]) -> int:
    return sum(method.kind != "linear" for method in methods)


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
        # Seconds that each sort of work may still take.
        shares = {"maps": _MAPS, "peers": _PEERS, "errors": 1 - _MAPS - _PEERS}
        self.left = {sort: share * total for sort, share in shares.items()}
        self.total, self.start, self.compiling = total, perf_counter(), 0.0
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
        maps = [method for method in methods if not method.is_peer]
        peers = [method for method in methods if method.is_peer]
        try:
            self._all_rounds(maps)
            self._run_peers(peers)
            self._measure_errors(methods)
        except KeyboardInterrupt:
            self.interrupted = True
            self.rows = self._most_common_rows()
        for method in methods:
            self._set_status(method)
        return self

    def first_rows(self) -> int:
        """Rows of the first round: enough for some of every class in every fold."""
        if not self.limited:
            return self.n
        n_classes = 1 if self.problem.task != "classification" else len(np.unique(self.problem.y))
        first = max(_FIRST_ROWS, 2 * self.problem.cv * n_classes)
        return self.n if self.n <= _WORTH * first else first

    # ---- rounds ---------------------------------------------------------------------------------

    def _run_trials(self, methods: Sequence[Method], sort: str) -> None:
        """Predict the times of methods, as far as a share of the time allows."""
        if not self.limited:
            return
        keep = (1 - _TRIALS) * self.left[sort]
        for method in track(methods, f"{len(methods)} methods on few rows", enabled=self.progress):
            if self.left[sort] <= keep and len(self.trials) > 1:
                break
            try:
                warming = self._warm_up(method, self.problem)
                start = perf_counter()
                trial = interruptible(run_trial, method, self.problem, len(self.penalties))
            except (ValueError, TypeError, MemoryError) as error:
                self.failures[method.label] = str(error).splitlines()[0]
                continue
            self.trials[method.label] = trial
            spent = perf_counter() - start
            # A warm-up maps as many rows as a trial; what it takes beyond that is compiling.
            mapping = min(warming, spent)
            self.compiling -= mapping
            self.left[sort] -= spent + mapping

    def _warm_up(self, method: Method, problem: Problem) -> float:
        """Compile the loops of a method, once; the seconds, which no sort of work is charged."""
        if method.label in self.warm:
            return 0.0
        start = perf_counter()
        interruptible(warm_up, method, problem)
        self.warm.add(method.label)
        seconds = perf_counter() - start
        self.compiling += seconds
        return seconds

    @property
    def remaining(self) -> float:
        """Seconds of the budget that are left, all that was done so far counted but compiling."""
        return self.total - (perf_counter() - self.start - self.compiling)

    def _all_rounds(self, methods: list[Method]) -> None:
        self._run_trials(methods, "maps")
        going, rows = methods, self.first_rows()
        share = 1.0 if rows == self.n else 0.5
        while going:
            # What the first round cannot measure in its share of the time is not run at all.
            self._round(going, rows, "maps", keep=(1 - share) * self.left["maps"])
            share = 1.0
            self.rows = rows
            if rows == self.n:
                break
            plan = self._next(self._ranked(going))
            if plan is None:
                break
            going, rows = plan
        # What time is left goes to the next best that were stopped, and to those not started.
        if self.limited:
            later = [method for method in methods if method.label not in self.results]
            for method in [*self._ranked(methods), *later]:
                if self.predicted(method, self.rows) <= _SAFETY * self.left["maps"]:
                    self._round([method], self.rows, "maps")

    def _next(self, ranked: list[Method]) -> tuple[list[Method], int] | None:
        """Methods and rows of the next round, best first; None if no further one is worth it."""
        left = _SAFETY * self.left["maps"]
        if sum(self.predicted(method, self.n) for method in ranked) <= left:
            return ranked, self.n
        rows = _FACTOR * self.rows
        if _NEARLY * rows >= self.n:
            rows = self.n
        rounds = max(1, int(np.ceil(np.log(self.n / (_NEARLY * self.rows)) / np.log(_FACTOR))))
        most = len(ranked) if rows == self.n else max(3, -(-len(ranked) // 2))
        while rows >= 1.5 * self.rows:
            going = self._fitting(ranked, rows, left / rounds)[:most]
            if _rivals(going) >= min(2, _rivals(ranked)):
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

    def _run_peers(self, peers: list[Method]) -> None:
        """Measure what maps are compared with: `RBF_MACHINE` first, then the other exact machines.

        Their time is what maps have left, less that for errors.
        """
        if not peers or not self.rows:
            return
        if not self.limited:
            self._round(peers, self.rows, "peers")
            return
        self.left["peers"] = self.remaining - self.left["errors"]
        kinds = ("exact", "sklearn", "boosting")
        peers = sorted(peers, key=lambda method: kinds.index(method.kind))
        self._run_group([method for method in peers if method.label == RBF_MACHINE])
        self._run_group([method for method in peers if method.label != RBF_MACHINE])

    def _run_group(self, peers: list[Method]) -> None:
        """The rows of the last round, cheapest first; few rows before, unless all of them fit."""
        self._run_trials(peers, "peers")
        few = min(self.rows, self.first_rows())
        costs = [self.predicted(method, self.rows) for method in peers]
        if few < self.rows and sum(costs) > _SAFETY * self.left["peers"]:
            self._round(peers, few, "peers", keep=0.5 * self.left["peers"])
        peers = sorted(peers, key=lambda method: self.predicted(method, self.rows))
        self._round(
            self._fitting(peers, self.rows, _SAFETY * self.left["peers"]), self.rows, "peers"
        )
        self._round(peers, self.rows, "peers")  # those for which there is time left

    def _round(self, methods: Sequence[Method], rows: int, sort: str, keep: float = 0.0) -> None:
        """Measure methods on some rows, until no more than `keep` is left for their sort."""
        words = f"{len(methods)} methods on {rows} rows"
        enabled = self.progress if len(methods) > 1 else False
        for method in track(methods, words, enabled=enabled):
            n_rows = min(rows, method.max_rows or rows)
            done = self.costs.get(method.label, [(0, 0.0)])[-1][0]
            if done >= n_rows or method.label in self.failures:
                continue
            # However small the budget, there are two results to compare.
            free = not self.limited or len(self.results) < 2
            seconds = np.inf if free else self.left[sort] - keep
            if not free and self.predicted(method, rows) > seconds:
                continue
            problem = self.problem.of_rows(n_rows)
            try:
                self._warm_up(method, problem)
                self._tune(method, sort)
                start = perf_counter()
                row, losses = interruptible(measure, self.tuned[method.label], problem, seconds)
                if self.problem.task == "none":
                    row = replace(row, error=interruptible(measure_error, method, problem))
            except (ValueError, TypeError, MemoryError) as error:
                self.failures[method.label] = str(error).splitlines()[0]
                self.results.pop(method.label, None)
                continue
            spent = perf_counter() - start
            self.left[sort] -= spent
            self.results[method.label] = row
            if losses is not None:
                self.losses[method.label] = losses
            share = len(row.fold_scores) / problem.cv or 1.0  # of the folds that were done
            self.costs.setdefault(method.label, []).append((n_rows, spent / share))

    def _tune(self, method: Method, sort: str) -> None:
        """Choose the penalty of a method before it is measured for the first time."""
        if method.label in self.tuned:
            return
        start = perf_counter()
        if len(self.penalties) > 1:
            method = interruptible(tune, method, self.problem, self.penalties)
        self.tuned[method.label] = method
        self.left[sort] -= perf_counter() - start

    def again_on(self, label: str, rows: int) -> tuple[Row, np.ndarray]:
        """A finished method on fewer rows, and its losses: beside machines that saw no more."""
        return interruptible(measure, self.tuned[label], self.problem.of_rows(rows), np.inf)

    def _measure_errors(self, methods: Sequence[Method]) -> None:
        """Errors of the maps, those that finished first; they do not depend on the folds."""
        if self.limited:
            self.left["errors"] = self.remaining - _AGAIN * self.total
        missing = [m for m in self._ranked(methods) if self.results[m.label].error is None]
        for method in track(missing, "errors of the maps", enabled=self.progress):
            # To measure an error, a map is fitted and applied to about as many rows as in a fold.
            if self.left["errors"] <= self.results[method.label].map_seconds:
                continue
            start = perf_counter()
            error = interruptible(measure_error, method, self.problem)
            self.results[method.label] = replace(self.results[method.label], error=error)
            self.left["errors"] -= perf_counter() - start

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
            return np.inf if trial is None else trial.predicted(n_rows) + trial.tuning_seconds
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
        unknown = "no time for a trial" if self.limited else ""
        rounded = float(f"{seconds:.2g}")
        needs = f"needs about {rounded:g} s" if np.isfinite(seconds) else unknown
        names = method.label, method.kind, method.kernel
        return Row(*names, 0, status="not started", code=method.code(), note=needs)
