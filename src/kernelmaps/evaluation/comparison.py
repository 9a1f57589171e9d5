"""``compare``: maps, kernels and sizes on the user's data, together with baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import kernelmaps

from .._util.arguments import argument, check_positive, generator, parameter, refuse_masked, seed_of
from .._util.display import Tabled
from ..kernels import Kernel, get
from ..maps.registry import PLUGINS
from .candidates import Candidate, candidates, expression, kernel_label, sort_of
from .checks import (
    check_targets,
    checked_rows,
    decide_task,
    feature_names_of,
    informative_columns,
    suspect_columns,
)
from .halving import Rounds, row_order
from .measuring import Problem
from .methods import (
    Method,
    baselines,
    linear_model,
    map_method,
    scaled_kernel,
    selecting,
)
from .page import write_page
from .presentation import comparison_table, draw, program, use_this
from .report import report_data
from .results import Results, Row

PENALTIES = (1.0, 10.0, 100.0)
"""Values of C that `compare` chooses from. Features have a mean squared norm of 1."""


class Comparison(Tabled, Results):
    """Result of :func:`compare`: a table, a recommendation, a plot and a report.

    `print` shows the table, a notebook shows it as HTML. See :class:`Results` for its data.
    """

    def use_this(self) -> list[str]:
        """The recommendation in sentences: what to use, and because of what."""
        return use_this(self)

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
        return selecting(clone(self.estimators[label]), self.data["selected"])

    def code(self, label: str | None = None) -> str:
        """A program that loads the data, fits and scores the recommended model (or another)."""
        row = self.recommended() if label is None else self[label]
        return program(self, row)

    def table(self) -> Any:
        """A rich table, narrow enough for 100 characters."""
        return comparison_table(self)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw error against columns and score against time (needs matplotlib)."""
        return draw(self, path)

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML file: recommendation, code, plots, sortable table."""
        return write_page("report.html", report_data(self), path)

    def __repr__(self) -> str:
        use = self.recommended()
        advice = "nothing finished" if use is None else f"recommended: {use.label!r}"
        return (
            f"<Comparison of {len(self.rows)} methods on {self.data['name']!r}, {advice}; "
            "print it for the table>"
        )


def compare(
    X: Any,
    y: Any = None,
    *,
    task: str = "auto",
    maps: Sequence[Any] | None = None,
    kernels: Sequence[Any] | None = None,
    sizes: Sequence[int] = (3, 5),
    joint_sizes: Sequence[int] = (256, 1024),
    with_baselines: bool = True,
    cv: int = 3,
    C: float | Sequence[float] = PENALTIES,
    budget: float | None = None,
    exact_rows: int = 2000,
    name: str = "data",
    feature_names: Sequence[str] | None = None,
    loading_code: str | None = None,
    random_state: Any = 0,
    progress: bool | None = None,
) -> Comparison:
    """Compare maps, kernels and sizes on your data, together with the usual baselines.

    Every method is a scikit-learn pipeline, scored by cross-validation on the same rows and folds.
    Columns are standardised in front of stationary kernels and of the plain linear model; features
    are scaled to a mean k(x, x) of 1, so that a penalty `C` means the same to all.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n, d)
        IDs and columns of one value of a frame are left out, with a note.
    y : array-like of shape (n,), optional
        Classes or real targets; without them only errors and times are measured.
    task : {"auto", "classification", "regression"}
        What `y` is; "auto" decides by its values, see :mod:`kernelmaps.evaluation.checks`.
    maps : sequence of str, Candidate, map or (label, map), optional
        Names stand for all sizes and kernels of that class, objects are used unchanged. By
        default every map that exists for the kernels.
    kernels : sequence of str or Kernel, optional
        By default χ², intersection, exp-χ² and the Gaussian for data without negative values, else
        the Gaussian and the Laplacian. Kernels given by name take their widths from the data, and
        stationary ones act on standardised columns; a kernel object is used unchanged.
    sizes, joint_sizes : sequence of int
        Columns per feature of additive maps, columns of joint ones. Splines have their
        default settings, unless a size is at least their default of ten.
    with_baselines : bool
        Whether to add a plain linear model, a GAM, exact kernels, scikit-learn's maps, boosting.
    cv : int
        Folds of the cross-validation.
    C : float or sequence of float
        Penalty of linear models and kernel machines (1/C for ridge regression). Of several values,
        a cross-validation on at most 500 rows chooses one for each method.
    budget : float, optional
        Seconds of measuring, without compilation: one method of each sort first, then more of what
        does well. What does not fit is listed with the time that it needs, or the rows that it saw.
    exact_rows : int
        Largest number of rows for exact kernel machines.
    name, feature_names : str, sequence of str
        Names of the data and of its columns for tables; by default those of a data frame.
    loading_code : str, optional
        Python that makes X and y, for the program in the report.
    random_state : int, RandomState, Generator or None
    progress : bool, optional
        Whether to show a bar; None shows it on a terminal.

    Returns
    -------
    Comparison
        After Ctrl-C, it contains what was finished by then.

    Examples
    --------
    >>> import kernelmaps as km
    >>> X, y = km.datasets.make_histograms(120, 8, random_state=0)
    >>> result = km.compare(X, y, maps=["HomogeneousMap"], kernels=["chi2"], sizes=[3, 7])
    >>> model = result.estimator().fit(X, y)
    """
    start, (X, columns, remarks) = perf_counter(), _rows_of(X, feature_names)
    y, decided, notes = _prepared(X, y, task, columns["names"], remarks)
    penalties = _checked_arguments(X, cv, C, budget)
    random_state, middle = seed_of(random_state), sorted(penalties)[len(penalties) // 2]
    pairs = _scaled_kernels(kernels or _default_kernels(X), X, random_state, notes)
    methods = _map_methods(maps, pairs, (sizes, joint_sizes), random_state, decided, middle)
    if with_baselines and decided != "none":
        limits = {"size": max(joint_sizes), "exact_rows": exact_rows, "sparse": sparse.issparse(X)}
        methods = [*baselines(pairs, decided, middle, **limits), *methods]
    _check_methods(methods, maps, kernels)
    problem = _problem(X, y, decided, cv, random_state)
    rounds = Rounds(problem, _time_left(budget, start), progress, penalties).run(methods)
    given = {"name": name, "C": penalties, "loading_code": loading_code} | columns
    return _result(rounds, methods, notes + _notes_of(rounds, methods, budget), given, start)


def _on_exact_rows(result: Comparison, rounds: Rounds) -> tuple[Row, Row, np.ndarray] | None:
    """Measure the recommended method on the rows of the best exact machine, if these are fewer."""
    use = result.recommended()
    exact = [row for row in result.rows if row.kind == "exact" and row.score is not None]
    if use is None or not exact or rounds.interrupted:
        return None
    best = max(exact, key=lambda row: (row.rows, row.score or 0.0))
    seconds = rounds.problem.cv * (use.seconds + use.predict_seconds) * best.rows / use.rows
    if best.finished or best.label not in result.losses or seconds > rounds.remaining:
        return None
    return best, *rounds.again_on(use.label, best.rows)


def _result(
    rounds: Rounds, methods: list[Method], notes: list[str], given: dict[str, Any], start: float
) -> Comparison:
    problem = rounds.problem
    X = problem.X
    methods = [rounds.tuned.get(method.label, method) for method in methods]
    pipelines = {m.label: made for m in methods if (made := m.estimator()) is not None}
    rows = [rounds.results[m.label] for m in methods if m.label in rounds.results]
    if (selected := given["selected"]) is not None:
        codes = {label: expression(selecting(made, selected)) for label, made in pipelines.items()}
        rows = [replace(row, code=codes.get(row.label, row.code)) for row in rows]
    result = Comparison(
        rows=rows,
        task=problem.task,
        data=given
        | {
            "rows": X.shape[0],
            "columns": X.shape[1],
            "sparse": bool(sparse.issparse(X)),
            "dtype": str(X.dtype),
            "folds": problem.cv,
            "compared_rows": rounds.rows,
            "random_state": problem.random_state,
        },
        notes=notes,
        interrupted=rounds.interrupted,
        sample=rounds.sample(),
        estimators=pipelines or {m.label: m.feature_map for m in methods},
        losses=rounds.losses,
    )
    on_exact_rows = _on_exact_rows(result, rounds)
    return replace(result, on_exact_rows=on_exact_rows, seconds=perf_counter() - start)


def _notes_of(rounds: Rounds, methods: list[Method], budget: float | None) -> list[str]:
    notes = [f"{label} was left out: {why}" for label, why in rounds.failures.items()]
    if rounds.interrupted:
        done = sum(row.rows > 0 for row in rounds.results.values())
        notes.append(f"Interrupted: {done} of {len(methods)} methods were measured.")
    if 0 < rounds.rows < rounds.n:
        why = "" if rounds.interrupted else f", as many as {budget:g} seconds allow"
        notes.append(f"Subsampled: {rounds.rows} of {rounds.n} rows{why}.")
    sorts = {
        "limited": "Exact kernel machines saw fewer rows",
        "stopped": "Stopped on fewer rows, to keep the budget",
        "unfinished": "The time was over before all folds were done",
        "not started": "Not started",
    }
    for status, words in sorts.items():
        labels = [row.label for row in rounds.results.values() if row.status == status]
        if labels:
            more = f" and {len(labels) - 5} more" if len(labels) > 5 else ""
            notes.append(f"{words}: {', '.join(labels[:5])}{more}.")
    return notes


# ---- what is compared ---------------------------------------------------------------------------


def _rows_of(X: Any, names: Sequence[str] | None) -> tuple[Any, dict[str, Any], list[str]]:
    """Checked rows, the names of their columns and those selected of a frame, and remarks."""
    all_names, rows = feature_names_of(X, names), checked_rows(X, "compare")
    if names is not None or not all_names:
        return rows, {"names": all_names, "selected": None}, []
    rows, selected, remarks = informative_columns(rows, all_names)
    return rows, {"names": selected or all_names, "selected": selected}, remarks


def _prepared(
    X: Any, y: Any, task: str, names: list[str] | None, remarks: list[str]
) -> tuple[np.ndarray | None, str, list[str]]:
    """Targets, task, and what should be known of the rows, `remarks` first."""
    if y is not None:
        refuse_masked("compare", "y", y)
        y = np.asarray(y)
        if y.ndim != 1 or len(y) != X.shape[0]:
            raise ValueError(
                f"compare: y must have one value per row, got shape {y.shape} for {X.shape[0]} "
                "rows."
            )
    decided = decide_task(y, task)
    check_targets(y, decided.name, "compare")
    y = y.astype(np.float64) if decided.name == "regression" else y
    suspects = suspect_columns(X, y, names, "compare")
    notes = [f"The task is {decided}; {argument('task')} changes it."] if decided.reason else []
    return y, decided.name, [*remarks, *notes, *suspects]


def _time_left(budget: float | None, start: float) -> float | None:
    """The budget less the seconds since the start: scikit-learn is imported, rows are looked at."""
    return None if budget is None else max(budget - (perf_counter() - start), np.finfo(float).tiny)


def _problem(X: Any, y: Any, task: str, cv: int, random_state: int) -> Problem:
    order = row_order(X.shape[0], y, task, cv, generator(random_state))
    # Pairs are many: a few hundred rows make a good estimate of the error.
    count = int(np.clip(np.sqrt(5e7 / max(1, X.shape[1])), 40, 400))
    error_rows = X[np.sort(order[-min(count, X.shape[0]) :])]
    return Problem(X, y, task, cv, error_rows, random_state, order)


def _checked_arguments(X: Any, cv: int, C: Any, budget: float | None) -> list[float]:
    """The penalties; wrong arguments are refused."""
    penalties: list[float] = np.atleast_1d(np.asarray(C)).tolist()
    if not penalties:
        raise ValueError(f"compare: {parameter('C')} must have at least one value, got none.")
    for penalty in penalties:
        check_positive("compare", "C", penalty)
    if not isinstance(cv, int) or cv < 2 or cv > X.shape[0]:
        raise ValueError(
            f"compare: {parameter('cv')} must be between 2 and the {X.shape[0]} rows, got {cv!r}."
        )
    if budget is not None and not budget > 0:
        raise ValueError(
            f"compare: {parameter('budget')} must be a positive number of seconds, got {budget!r}."
        )
    return penalties


def _check_methods(methods: list[Method], maps: Any, kernels: Any) -> None:
    if not methods:
        raise ValueError(
            f"compare: nothing to compare for {argument('maps', maps)}, "
            f"{argument('kernels', kernels)}."
        )
    labels = [method.label for method in methods]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ValueError(f"compare: these labels occur twice: {twice}. Give (label, map) pairs.")


def _minimum(X: Any) -> float:
    values = X.data if sparse.issparse(X) else X
    return float(values.min()) if values.size else 0.0


def _default_kernels(X: Any) -> list[str]:
    if _minimum(X) < 0:
        return ["gaussian", "laplacian"]
    return ["chi2", "intersection", "exp_chi2", "gaussian"]


def _scaled_kernels(
    kernels: Sequence[Any], X: Any, random_state: int, notes: list[str]
) -> list[tuple[Kernel, Any]]:
    """Kernels with their widths, each with the scaler of columns that it needs, or None."""
    lowest, pairs = _minimum(X), []
    for item in kernels:
        kernel = get(item)
        base = getattr(kernel, "base", kernel)
        if lowest < 0 and getattr(base, "signed", True) is False:
            notes.append(
                f"{kernel.name} was left out: X goes down to {lowest:g}, and the kernel is "
                "defined for values from 0 on."
            )
        else:
            pairs.append(scaled_kernel(item, X, random_state)[1:])
    return pairs


def _map_methods(
    maps: Sequence[Any] | None,
    pairs: list[tuple[Kernel, Any]],
    sizes: tuple[Sequence[int], Sequence[int]],
    random_state: int,
    task: str,
    C: float,
) -> list[Method]:
    """Maps of all kernels and sizes, small ones first, and then the user's own."""
    model = linear_model(task, C)
    names = None if maps is None else [item for item in maps if isinstance(item, str)]
    for unknown in [n for n in names or [] if n not in PLUGINS and not hasattr(kernelmaps, n)]:
        raise ValueError(
            f"compare: there is no map {unknown!r} in kernelmaps. Pass a map that you wrote as an "
            "object, or register it (kernelmaps.maps.register)."
        )
    ranked: list[tuple[int, Method]] = []
    for kernel, scaler in [*pairs, (None, None)]:
        joint = kernel is not None and sort_of(kernel) != "additive"
        kernel_sizes = tuple(sizes[joint])
        for candidate in candidates(kernel, kernel_sizes, random_state, all_variants=bool(names)):
            if names is None or candidate.name in names:
                # Anchors are searched for, which takes its time: quicker maps go first. A basis of
                # its default size, which is none of the list, is one of the first.
                place = kernel_sizes.index(candidate.size) if candidate.size in kernel_sizes else 0
                late = place + 2 * (candidate.name == "AnchorMap")
                ranked.append((late, _of_candidate(candidate, kernel, model, scaler)))
    # Kernels take turns, so that a small budget has looked at each of them.
    turn = {
        id(m): sum(k.kernel == m.kernel for _, k in ranked[:i]) for i, (_, m) in enumerate(ranked)
    }
    methods = [m for _, m in sorted(ranked, key=lambda pair: (pair[0], turn[id(pair[1])]))]
    objects = [item for item in maps or [] if not isinstance(item, str)]
    return [*methods, *(_of_object(item, model) for item in objects)]


def _of_candidate(candidate: Candidate, kernel: Kernel | None, model: Any, scaler: Any) -> Method:
    name = kernel_label(kernel)
    label = candidate.label if name in ("basis", "chi2") else f"{candidate.label}, {name}"
    return map_method(label, candidate.make(), name, model, scaler)


def _of_object(item: Any, model: Any) -> Method:
    if isinstance(item, Candidate):
        return _of_candidate(item, None, model, None)
    label, feature_map = item if isinstance(item, tuple) else (repr(item), item)
    if not hasattr(feature_map, "transform"):
        raise TypeError(f"compare: {feature_map!r} is neither the name of a map nor a transformer.")
    kernel = getattr(feature_map, "kernel", None)
    name = kernel if isinstance(kernel, str) else getattr(kernel, "name", "basis")
    return map_method(label, feature_map, name, model)
