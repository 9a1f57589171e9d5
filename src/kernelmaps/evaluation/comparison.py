"""``compare``: maps, kernels and sizes on the user's data, together with baselines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing, check_consistent_length

import kernelmaps

from .._util.arguments import (
    argument,
    argument_error,
    check_positive,
    generator,
    parameter,
    refuse_masked,
    seed_of,
)
from .._util.display import track
from .._util.threads import interruptible, pools
from ..data.columns import names_of, without_named
from ..exceptions import KernelScaleWarning, OutOfDomainWarning
from ..kernels import Kernel, get
from ..maps.base import PLUGINS
from .candidates import candidates, get_sort, kernel_label
from .checks import check_targets, decide_task, read_rows_of_numbers
from .kernel_error import KernelError, kernel_error
from .methods import (
    Method,
    TableEncoder,
    baselines,
    get_penalty,
    linear_model,
    map_method,
    penalty_name,
    put_behind,
    scale_rows,
)
from .results import LARGEST_TIE, Comparison, make_frame, splitter_of

PENALTIES = (1.0, 10.0, 100.0)
"""Values of C that `compare` chooses from. Features have a mean squared norm of 1."""
ROWS_PER_SECOND = 250
"""Rows that take part for each second of a budget, so that most methods finish."""
_FEWEST_ROWS = 500  # that take part, and rows on which C is chosen
_OF_NUMBERS = ("gaussian", "laplacian")  # kernels of columns that are no histograms
# Cheap methods first, and exact machines, which show what kernels are worth on few rows; of tables
# with text, dates or gaps those that are made for them.
_ORDER = ("linear", "exact", "map", "gam", "boosting", "sklearn")
_ORDER_OF_TABLES = ("linear", "gam", "boosting", "exact", "map", "sklearn")
_FEWEST_RESULTS = 2  # however small the budget, there is something to compare
_ERROR_FIT_ROWS = 2000  # rows that a map is fitted to before its error is measured
_ONE_THREAD_CELLS = 1_000_000  # up to which another library's threads cost more than they bring
# Warnings that a reader of the table should know of.
_NOTED_WARNINGS = {
    ConvergenceWarning: "the linear solver stopped before it converged",
    KernelScaleWarning: "the kernel is constant or diagonal on these rows",
}


def compare(
    X: Any,
    y: Any,
    *,
    groups: Any = None,
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
    """Compare GAMs, kernels, maps and sizes on your data, together with the usual baselines.

    Every method is a pipeline, scored on the same rows and folds. For stationary kernels and linear
    models columns are standardised; for the same meaning of `C` features have a mean k(x, x) of 1.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n, d)
        A frame may hold text, dates and gaps: GAMs, one with pairs, take it as it is, others behind
        a :class:`TableEncoder`. IDs and columns of one value are left out, with a note.
    y : array-like of shape (n,), or str
        Classes or real targets; a string names a column of the frame.
    groups : array-like of shape (n,), or str, optional
        Subjects, say, of which there are several rows each: all rows of one are in the same fold.
    task : {"auto", "classification", "regression"}
    maps : sequence of str, map or (label, map), optional
        Names stand for all sizes and kernels of that class; by default all maps of the kernels.
    kernels : sequence of str or Kernel, optional
        By default χ², intersection, exp-χ² and the Gaussian; with negative values, text, dates or
        gaps the Gaussian and the Laplacian. Names take widths from the data, objects have theirs.
    sizes, joint_sizes : sequence of int
        Columns per feature of additive maps, columns of joint ones. Splines have ten or more. Of a
        kernel whose exact machine leads, maps with two and four times as many columns are measured.
    with_baselines : bool
        Whether to add a plain linear model, a GAM, exact kernels, scikit-learn's maps, boosting.
    cv, exact_rows : int
        Folds, and the largest number of rows for exact kernel machines.
    C : float or sequence of float
        Penalty of linear models and kernel machines (1/C for ridge regression). Of several values,
        a cross-validation on at most 500 rows chooses one for each method.
    budget : float, optional
        Seconds. A method begins if as much time is left as the longest of its class took (of a new
        one: the shortest; of a new kind: the mean). Notes name others. 250 rows a second are used.
    name, feature_names, loading_code : str, sequence of str, str
        Names of the data and of its columns, and Python that makes X and y, for the report.
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
    >>> result = km.compare(X, y, maps=["HomogeneousMap"], kernels=["chi2"], sizes=[3, 7], C=10)
    >>> model = result.estimator().fit(X, y)
    """
    start, random_state = perf_counter(), seed_of(random_state)
    problem, facts, notes = _read_problem(X, y, groups, task, cv, random_state, feature_names)
    penalties = _check_arguments(problem, C, budget)
    X, task, is_mixed = problem.X, problem.task, problem.is_mixed
    pairs = _fit_kernels(kernels or (_OF_NUMBERS if is_mixed else None), X, random_state, notes)
    middle = sorted(penalties)[len(penalties) // 2]
    make_maps = partial(_map_methods, maps, linear_model(task, middle), random_state)
    methods = make_maps([*pairs, (None, None)], sizes, joint_sizes, with_objects=True)
    if with_baselines:
        limits = {"size": max(joint_sizes), "exact_rows": exact_rows, "sparse": sparse.issparse(X)}
        methods += baselines(pairs, task, middle, with_pairs=is_mixed, **limits)
    methods = _order_methods(methods, _ORDER_OF_TABLES if is_mixed else _ORDER, maps, kernels)
    larger_maps = partial(_larger_maps, make_maps, pairs, (sizes, joint_sizes))
    data = {"name": name, "C": penalties, "loading_code": loading_code, **facts}
    max_rows = None if budget is None else max(_FEWEST_ROWS, int(ROWS_PER_SECOND * budget))
    work = methods, larger_maps, problem.sample(max_rows), penalties, start + (budget or np.inf)
    result = _measure_all(*work, progress, Comparison(task, data, notes=notes))
    return replace(result, seconds=perf_counter() - start)


def _larger_maps(
    make_maps: Callable[..., list[Method]], pairs: list[tuple[Kernel, Any]],
    sizes: tuple[Sequence[int], ...], rows: list[dict[str, Any]],
) -> list[Method]:  # fmt: skip
    """Maps with more columns of the kernel whose exact machine is ahead of all maps."""
    exact, kernel = _best_of_kind("exact", rows) or (0.0, "")
    mapped, _ = _best_of_kind("map", rows) or (np.inf, "")
    pairs = [pair for pair in pairs if kernel_label(pair[0]) == kernel]
    pairs = pairs if exact > mapped + LARGEST_TIE else []
    return make_maps(pairs, *([2 * max(columns), 4 * max(columns)] for columns in sizes))


def _best_of_kind(kind: str, rows: list[dict[str, Any]]) -> tuple[float, str] | None:
    """The best score of a kind of method, and its kernel."""
    measured = [row for row in rows if row["kind"] == kind and "score" in row]
    return max(((row["score"], row["kernel"]) for row in measured), default=None)


# ---- measuring ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Rows and targets that are compared, and their folds.

    Rows of a table with an `encoder` are there in both forms: as numbers, `X`, and as they are.
    """

    X: Any
    y: np.ndarray
    task: str
    cv: int
    random_state: int
    encoder: TableEncoder | None = None
    table: Any = None
    groups: Any = None

    def folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Pairs of training and test rows, the same for every method."""
        cv, groups = self.cv, self.groups
        if groups is not None:
            cv = min(cv, len(np.unique(groups)))
            cv, groups = (self.cv, None) if cv < 2 else (cv, groups)  # all rows of one subject
        splitter = splitter_of(self.task, groups is not None)
        with warnings.catch_warnings(action="ignore"):  # rare classes in a small sample
            folds = splitter(cv, shuffle=True, random_state=self.random_state)
            return list(folds.split(self.X, self.y, groups))

    @property
    def is_mixed(self) -> bool:
        """Whether it is a table with more than numbers: categories, dates or gaps."""
        encoder = self.encoder
        return encoder is not None and encoder.n_outputs_ > len(encoder.columns_used)

    def rows(self, method: Method, rows: np.ndarray) -> Any:
        """Some rows as a method takes them: floats for scikit-learn's maps, dense for boosting."""
        if method.takes_tables and self.encoder is not None:
            return _safe_indexing(self.table, rows)
        X = self.X[rows]
        if method.kind == "boosting" and sparse.issparse(X):
            return X.toarray()
        if method.kind == "map" or X.dtype in (np.float32, np.float64):
            return X
        return X.astype(np.float64)

    def pipeline(self, method: Method) -> Any:
        """The unfitted pipeline of a method, for rows as the user has them."""
        return put_behind(None if method.takes_tables else self.encoder, method.pipeline)

    def sample(self, n_rows: int | None) -> Problem:
        """A random sample with at least `cv` rows of each class (or all); None: all rows."""
        n = self.X.shape[0]
        if n_rows is None or n_rows >= n:
            return self
        order = generator(self.random_state).permutation(n)
        if self.task == "classification":
            place = np.empty(n, dtype=int)  # of a row among those of its class
            for label in np.unique(self.y):
                members = order[self.y[order] == label]
                place[members] = np.arange(len(members))
            order = order[np.argsort(place[order] >= self.cv, kind="stable")]
        rows = np.sort(order[:n_rows])
        return self.take(rows)

    def take(self, rows: np.ndarray) -> Problem:
        """The problem of some rows."""
        table = None if self.encoder is None else _safe_indexing(self.table, rows)
        groups = None if self.groups is None else np.asarray(self.groups)[rows]
        return replace(self, X=self.X[rows], y=self.y[rows], table=table, groups=groups)


def _describe(method: Method) -> dict[str, Any]:
    names = {"label": method.label, "kind": method.kind, "kernel": method.kernel}
    return names | {"code": method.code()}


def _measure_all(
    methods: Sequence[Method], more: Callable[[list[dict[str, Any]]], list[Method]],
    problem: Problem, penalties: Sequence[float], deadline: float, progress: bool | None,
    result: Comparison,
) -> Comparison:  # fmt: skip
    """Measure methods as long as there is time, and what `more` adds in the end.

    Of each kind, the first method of every class comes before others of the same one.
    """
    rows, longest, interrupted = list[dict[str, Any]](), dict[tuple[str, str], float](), False
    models, losses, notes = result.models, result.losses, result.notes

    def queue() -> Iterator[Method]:
        waiting, kinds = list(methods), list(dict.fromkeys(method.kind for method in methods))
        while waiting:
            yield waiting.pop(0)
            _, kernel = _best_of_kind("exact", rows) or (0.0, "")  # whose maps are the next ones
            waiting.sort(
                key=lambda method: (
                    kinds.index(method.kind), method.family in longest, method.kernel != kernel
                )
            )  # fmt: skip
        yield from more(rows)

    try:
        for method in track(queue(), lambda method: method.label, len(methods), progress):
            begin = perf_counter()
            expected = _expect_seconds(method.family, longest)
            if begin + expected > deadline and len(rows) >= _FEWEST_RESULTS:
                rows.append(_describe(method) | {"status": "not started", "rows": 0})
                continue
            try:
                row, losses[method.label], model = interruptible(_run, method, problem, penalties)
            except (ValueError, TypeError, MemoryError) as error:
                notes.append(f"{method.label} was left out: {str(error).splitlines()[0]}")
                continue
            if method.kind != "exact":  # which do not scale to many rows
                models[method.label] = problem.pipeline(model)
                row["code"] = replace(model, pipeline=models[method.label]).code()
            rows.append(row)
            seconds = perf_counter() - begin
            longest[method.family] = max(seconds, longest.get(method.family, 0.0))
    except KeyboardInterrupt:
        interrupted = True
        notes.append(f"Interrupted: {len(rows)} of {len(methods)} methods were measured.")
    if problem.X.shape[0] < result.data["rows"]:
        notes.append(
            f"Subsampled: {problem.X.shape[0]} of {result.data['rows']} rows, {ROWS_PER_SECOND} "
            "for each second of the budget."
        )
    for status, words in (
        ("limited", "Exact kernel machines saw fewer rows"),
        ("not started", "Not started, for want of time"),
    ):
        labels = [row["label"] for row in rows if row["status"] == status]
        notes += [f"{words}: {'; '.join(labels)}."] if labels else []
    return replace(result, frame=make_frame(rows), interrupted=interrupted)


def _expect_seconds(family: tuple[str, str], longest: dict[tuple[str, str], float]) -> float:
    """The longest time of the family; of a new one the shortest of all; of a new kind the mean."""
    if family in longest or not longest:
        return longest.get(family, 0.0)
    times = list(longest.values())
    return min(times) if any(kind == family[0] for kind, _ in longest) else float(np.mean(times))


def _run(
    method: Method, problem: Problem, penalties: Sequence[float]
) -> tuple[dict[str, Any], Any, Method]:
    """The row of a method in the table, the losses of its rows, and the method with its penalty."""
    part = problem.sample(method.max_rows)
    # The first call also compiles what the method runs, which no measurement should have.
    method = choose_penalty(method, part, penalties)
    row, losses = measure(method, part)
    row["status"] = "limited" if row["rows"] < problem.X.shape[0] else "finished"
    error = measure_error(method, problem)
    if error is not None:
        figures = ("max", "rms", "relative", "bias", "size", "max_relative")
        row |= {f"error_{figure}": getattr(error, figure) for figure in figures}
    return row, losses, method


def choose_penalty(method: Method, problem: Problem, penalties: Sequence[float]) -> Method:
    """Choose the penalty of a method by a cross-validation on few rows.

    These are training rows of the first fold. The features are computed once for all penalties. Of
    equal losses, the smallest penalty is chosen.
    """
    problem = problem.sample(_FEWEST_ROWS)
    train = problem.folds()[0][0]
    with _quiet(method, problem):
        if method.kind == "gam":  # has no penalty, and is compiled
            X = problem.rows(method, np.arange(len(problem.y)))
            clone(method.model).fit(X, problem.y).predict(X)
        name = penalty_name(method.model)
        if name is None:
            return method
        Z = method.make_features().fit_transform(problem.rows(method, train))
        inner = replace(problem.take(train), X=Z)
        values = sorted(penalties) if name.endswith("C") else [1 / C for C in sorted(penalties)]
        models = [clone(method.model).set_params(**{name: value}) for value in values]
        losses = np.zeros(len(models))
        for train, test in inner.folds():
            columns = train if method.kind == "exact" else slice(None)
            Z_train, Z_test = Z[train][:, columns], Z[test][:, columns]
            for k, model in enumerate(models):
                predicted = clone(model).fit(Z_train, inner.y[train]).predict(Z_test)
                losses[k] += _score(problem.task, inner.y[test], predicted)[1].sum()
    steps = [step for _, step in method.pipeline.steps[:-1]]
    return replace(method, pipeline=make_pipeline(*steps, models[int(np.argmin(losses))]))


def measure(method: Method, problem: Problem) -> tuple[dict[str, Any], np.ndarray]:
    """Cross-validate a method.

    Returns the row of the table, without the error of the map, and the loss of each row when it was
    held out.
    """
    times, scores = list[np.ndarray](), list[float]()
    losses = np.full(problem.X.shape[0], np.nan)
    with _quiet(method, problem, record=True) as caught:
        for train, test in problem.folds():
            features, model = method.make_features(), clone(method.model)
            X_train, X_test = (problem.rows(method, rows) for rows in (train, test))
            ticks = [perf_counter()]
            Z = features.fit_transform(X_train)
            ticks.append(perf_counter())
            model.fit(Z, problem.y[train])
            ticks.append(perf_counter())
            predicted = model.predict(features.transform(X_test))
            ticks.append(perf_counter())
            score, losses[test] = _score(problem.task, problem.y[test], predicted)
            times.append(np.diff(ticks))
            scores.append(score)
    kinds = {item.category for item in caught}
    Z = problem.X[train] if method.takes_tables else Z
    parts = (Z.data, Z.indices, Z.indptr) if sparse.issparse(Z) else (Z,)
    seconds = ("map_seconds", "fit_seconds", "predict_seconds")
    row = _describe(method) | dict(zip(seconds, np.mean(times, axis=0).tolist(), strict=True)) | {
        "rows": problem.X.shape[0],
        "columns": None if method.kind == "exact" else Z.shape[1],
        "score": float(np.mean(scores)),
        "score_std": float(np.std(scores) / np.sqrt(len(scores))),
        "fold_scores": tuple(scores),
        "C": get_penalty(method.model),
        "bytes": sum(part.nbytes for part in parts),
        "note": "; ".join(words for kind, words in _NOTED_WARNINGS.items() if kind in kinds),
    }  # fmt: skip
    return row, losses


@contextmanager
def _quiet(method: Method, problem: Problem, record: bool = False) -> Iterator[list[Any]]:
    """Without warnings, or with a record of them, and one thread for little data.

    Threads of other libraries would wait for one another.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always" if record else "ignore")
        warnings.simplefilter("ignore", OutOfDomainWarning)  # part of the error and of the score
        is_small = problem.X.shape[0] * problem.X.shape[1] <= _ONE_THREAD_CELLS
        with pools().limit(limits=1) if is_small else nullcontext():
            yield caught


def _score(task: str, truth: np.ndarray, predicted: np.ndarray) -> tuple[float, np.ndarray]:
    """Accuracy and wrong rows, or R² and squared errors."""
    if task == "classification":
        losses = (predicted != truth).astype(np.float64)
        return float(1 - losses.mean()), losses
    losses = np.square(predicted - truth)
    spread = float(np.square(truth - truth.mean()).sum())
    return float(1 - losses.sum() / spread) if spread else float(losses.sum() == 0), losses


def measure_error(method: Method, problem: Problem) -> KernelError | None:
    """Error of the method's map behind the steps before it, on rows that it was not fitted to."""
    if method.feature_map is None:
        return None
    n, n_columns = problem.X.shape
    n_train = max(1, min(_ERROR_FIT_ROWS, n // 2))
    # Pairs are many: a few hundred rows make a good estimate of the error.
    n_rows = int(np.clip(np.sqrt(5e7 / max(1, n_columns)), 40, 400))
    order = generator(problem.random_state).permutation(n)
    train, rows = (
        problem.rows(method, np.sort(part)) for part in (order[:n_train], order[-n_rows:])
    )
    with _quiet(method, problem):
        steps = [step for _, step in method.pipeline.steps]
        before = method.make_features()[: 1 + steps.index(method.feature_map)].fit(train)
        fitted = clone(method.feature_map).fit(before.transform(train))
        truth = method.truth or getattr(fitted, "kernel_", None)
        return None if truth is None else kernel_error(fitted, before.transform(rows), kernel=truth)


# ---- what is compared ---------------------------------------------------------------------------


def _read_problem(
    X: Any, y: Any, groups: Any, task: str, cv: int, random_state: int, names: Any
) -> tuple[Problem, dict[str, Any], list[str]]:
    """All rows that may be compared, facts about them, and notes."""
    table, y, groups = without_named("compare", X, y, groups)
    X, encoder, notes = read_rows_of_numbers(table, "compare", select=names is None)
    names = names or (names_of(table) if encoder is None else encoder.columns_used)
    y, task, task_notes = _read_targets(X, y, task)
    facts = {
        "names": names, "rows": X.shape[0], "columns": len(names) if names else X.shape[1],
        "sparse": sparse.issparse(X), "grouped": groups is not None, "folds": cv,
        "random_state": random_state,
    }  # fmt: skip
    problem = Problem(X, y, task, cv, random_state, encoder, table, groups)
    return problem, facts, [*notes, *task_notes]


def _read_targets(X: Any, y: Any, task: str) -> tuple[np.ndarray, str, list[str]]:
    """Targets and task, with the reason for it."""
    if y is None:
        raise ValueError(
            "compare: there are no targets. Pass y to compare scores; `choose` finds the smallest "
            "map for a given error without targets."
        )
    refuse_masked("compare", "y", y)
    y = np.asarray(y)
    if y.ndim != 1 or len(y) != X.shape[0]:
        raise ValueError(
            f"compare: y must have one value per row, got shape {y.shape} for {X.shape[0]} rows."
        )
    decided = decide_task(y, task)
    check_targets(y, decided.name, "compare")
    y = y.astype(np.float64) if decided.name == "regression" else y
    notes = [f"The task is {decided}; {argument('task')} changes it."] if decided.reason else []
    return y, decided.name, notes


def _check_arguments(problem: Problem, C: Any, budget: float | None) -> list[float]:
    """The penalties; wrong arguments are refused."""
    penalties: list[float] = np.atleast_1d(np.asarray(C)).tolist()
    if not penalties:
        raise ValueError(f"compare: {parameter('C')} must have at least one value, got none.")
    for penalty in penalties:
        check_positive("compare", "C", penalty)
    X, cv, groups = problem.X, problem.cv, problem.groups
    if not isinstance(cv, int) or cv < 2 or cv > X.shape[0]:
        raise argument_error("compare", "cv", cv, f"between 2 and the {X.shape[0]} rows")
    if groups is not None:
        check_consistent_length(X, groups)
        if len(np.unique(np.asarray(groups))) < cv:
            raise argument_error("compare", "groups", groups, f"at least cv={cv} different values")
    if budget is not None:
        check_positive("compare", "budget", budget, "a positive number of seconds")
    return penalties


def _order_methods(
    methods: list[Method], kinds: Sequence[str], maps: Any, kernels: Any
) -> list[Method]:
    """Methods by their kinds; refuses none at all, and labels that occur twice."""
    if not methods:
        raise ValueError(
            f"compare: nothing to compare for {argument('maps', maps)}, "
            f"{argument('kernels', kernels)}."
        )
    labels = [method.label for method in methods]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ValueError(f"compare: these labels occur twice: {twice}. Give (label, map) pairs.")
    return sorted(methods, key=lambda method: kinds.index(method.kind))


def _fit_kernels(
    kernels: Sequence[Any] | None, X: Any, random_state: int, notes: list[str]
) -> list[tuple[Kernel, Any]]:
    """Kernels with their widths, each with the scaler of columns that it needs, or None."""
    lowest, pairs = float(np.min(X.data if sparse.issparse(X) else X, initial=0.0)), []
    histogram_kernels = ("chi2", "intersection", "exp_chi2", "gaussian")
    for item in kernels or (_OF_NUMBERS if lowest < 0 else histogram_kernels):
        kernel = get(item)
        base = getattr(kernel, "base", kernel)
        if lowest < 0 and getattr(base, "signed", True) is False:
            notes.append(
                f"{kernel.name} was left out: X goes down to {lowest:g}, and the kernel is "
                "defined for values from 0 on."
            )
        else:
            pairs.append(scale_rows(item, X, random_state)[1:])
    return pairs


def _map_methods(
    maps: Sequence[Any] | None,
    model: Any,
    random_state: int,
    pairs: Sequence[tuple[Kernel | None, Any]],
    *sizes: Sequence[int],
    with_objects: bool = False,
) -> list[Method]:
    """Maps of all kernels and sizes (of additive and of joint ones), small ones first.

    The maps that the user gave as objects come last.
    """
    names = None if maps is None else [item for item in maps if isinstance(item, str)]
    for unknown in [n for n in names or [] if n not in PLUGINS and not hasattr(kernelmaps, n)]:
        raise ValueError(
            f"compare: there is no map {unknown!r} in kernelmaps. Pass a map that you wrote as an "
            "object, or register it (kernelmaps.maps.register)."
        )
    methods: list[Any] = []
    for kernel, scaler in pairs:
        joint = kernel is not None and get_sort(kernel) != "additive"
        name = kernel_label(kernel)
        for candidate in candidates(
            kernel, tuple(sizes[joint]), random_state, all_variants=bool(names)
        ):
            if names is None or candidate.name in names:
                plain = name in ("basis", "chi2")
                label = candidate.label if plain else f"{candidate.label}, {name}"
                made = map_method(label, candidate.make(), name, model, scaler)
                methods.append((candidate.size, made))
    methods = [made for _, made in sorted(methods, key=itemgetter(0))]
    objects = [item for item in maps or [] if with_objects and not isinstance(item, str)]
    return methods + [_wrap_map(item, model) for item in objects]


def _wrap_map(item: Any, model: Any) -> Method:
    """The method of a map that the user passed, by itself or with a label."""
    label, feature_map = item if isinstance(item, tuple) else (repr(item), item)
    if not hasattr(feature_map, "transform"):
        raise TypeError(f"compare: {feature_map!r} is neither the name of a map nor a transformer.")
    kernel = getattr(feature_map, "kernel", None)
    name = kernel if isinstance(kernel, str) else getattr(kernel, "name", "basis")
    return map_method(label, feature_map, name, model)
