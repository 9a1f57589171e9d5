"""Additive SVMs of ordinary tables: processor times beside linear machines, over losses and C.

Eight tables: two of noise with three effects, one of 0/1 columns and three classes (as those of DNA
sequences), spambase, adult one-hot (a9a), magic, and two with one-hot columns beside numeric ones:
simulated, and adult. A peer is LIBLINEAR: LinearSVC, for the log loss LogisticRegression, each with
the same C and the largest tolerance of a short list at which its relative gap, certified as ours
is, is at most 1e-3. (For the hinge loss LIBLINEAR has no dual variables to show: there its
objective is within 1e-3 of that with the smallest tolerance, or its 1000 epochs are used up.) It
gets

* the columns of the table themselves, standardised: a smaller problem than ours (limit: 4 times
  its time), and
* ψ(X), computed and stored, for the hinge losses where it has at most two million values: the same
  problem (limit: its time; no smaller tolerance is tried once it has taken ten times as long as
  ours).

A row of the record has the worst ratio over C = 1e-3, 0.1, 1, 10, 1000; the ratio, times and solver
for each C are in its details. One thread everywhere.

LIBLINEAR's own solver of the squared hinge loss is a Newton method with conjugate gradients, too.
On the raw columns of 2000 × 50 values it takes 4 to 6 ms for every C. Of ours, a pass
over the same rows reads four numbers a value instead of one (splines; eight for trigonometric
functions), and ten times as many weights take more steps and products where C is large: 3 steps
and 10 products for C = 1, 8 and 32 for C = 1000. From one step to the next, only rows whose
curvature has changed are added to what preconditions the steps. The least that a fit takes, with
one step of one product (log loss, C = 0.001), is 7 to 8 ms: 3 ms for checks of X and y, a sample
that gives κ, a thread and tables, 1 ms for bands, 1 ms for the blocks of
the preconditioner, the remainder for seven passes of 0.2 ms. Four times 4 ms leaves 8 ms for
further steps, of 3 to 4 ms each: splines reach the limit there for C ≤ 10. For C = 1000, the 32
products of 8 steps alone take 13 ms of the 24 that are allowed. Of trigonometric functions, eight
numbers a value that do not fit the second-level cache, the 28 products for C = 10 take 13 of 22 ms,
and the 30 for C = 1000, in double precision, 22 of 24 ms. The problem is harder than that of the
raw columns: on stored ψ(X), LIBLINEAR takes more than ten times as long as ours for C = 1000.

For the hinge loss and a small C, coordinate descent updates each dual variable six times at least:
one pass for norms, two or three epochs, two certificates. Columns of zeros and ones are not at the
limit for C = 0.1: a column's weight is that of a column of length 2.5 (splines) or 4.4
(trigonometric functions), as if C were 6 or 19 times as large.

What was tried and brought nothing: products with the Hessian in single precision beside gradients
in double precision (no convergence for a large C), bands stored in single precision (passes wait
for arithmetic, not for memory), preconditioners from a sample of rows (functions of few rows are
missing in it), last steps solved for exactly, with dual variables from the step (one step less, as
many products more), larger factors from one cost to the next on the way to C = 1000 (20 to 1000: as
many steps in the mean). What brought too little for its code: conditional gradient steps for the
hinge loss and a small C (10 ms of 20), starts in single precision, a model of both solvers' costs.

Besides, the part "default" compares the accuracy of the default AdditiveSVC on tables of 0/1
columns with that of the best of some values of C and maps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import kernelmaps as km

from .datasets import load
from .harness import Bench

CS = (1e-3, 0.1, 1.0, 10.0, 1e3)
LOSSES = ("squared_hinge", "hinge", "log_loss")
MAPS = {
    "SplineMap()": km.SplineMap(),
    "SplineMap(order=0)": km.SplineMap(order=0),
    "TrigonometricMap()": km.TrigonometricMap(),
}
GAP = 1e-3  # relative
TOLERANCES = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)
_HINGE_TOLERANCES = 4  # of the list: LIBLINEAR's epochs are used up with smaller ones
STORED_VALUES = 2_000_000  # of ψ(X) up to which the second peer takes part

Data = tuple[np.ndarray, np.ndarray]


def noisy(n: int, d: int) -> Data:
    """Labels from three of d columns, with noise of more variance than their effects."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    score = np.sin(2 * X[:, 0]) + X[:, 1] - 0.5 * X[:, 2] ** 2 + 0.5
    return X, (score + 1.5 * rng.normal(size=n) > 0).astype(int)


def dna_like(n: int = 2000, length: int = 60, seed: int = 0) -> Data:
    """Sequences of four letters, three bits each; two classes have motifs around the middle."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.24, 0.24, 0.52])
    shares = np.full((3, length, 4), 0.25)
    for place in range(length // 2 - 8, length // 2 + 8):
        sharp = abs(place - length // 2) < 3
        shares[:2, place] = rng.dirichlet(np.full(4, 0.6 if sharp else 3.0), 2)
    letters = (rng.random((n, length, 1)) > np.cumsum(shares[y], axis=2)).sum(axis=2)
    return (letters[:, :, None] == np.arange(3)).reshape(n, 3 * length).astype(float), y


def stored_table(name: str) -> Callable[[Bench], Data]:
    """A table of the folder of data, each column in units of its standard deviation."""

    def of(bench: Bench) -> Data:
        table = load(name, folder=bench.data)
        X = table.X_train.astype(float)
        if name != "a9a":  # 0/1
            X = (X - X.mean(axis=0)) / X.std(axis=0)
        return X, table.y_train

    return of


def one_hot(codes: np.ndarray) -> np.ndarray:
    """A column for each code that there is."""
    return (codes[:, None] == np.unique(codes)).astype(float)


def beside_numbers(n: int = 8000) -> Data:
    """Four columns of categories, one-hot, and four of numbers; one effect and two."""
    rng = np.random.default_rng(0)
    levels = [rng.integers(0, k, n) for k in (20, 30, 8, 40)]
    numbers = rng.normal(size=(n, 4))
    score = np.sin(2 * numbers[:, 0]) + numbers[:, 1] + rng.normal(size=20)[levels[0]]
    X = np.hstack([*map(one_hot, levels), numbers])
    return X, (score + 1.5 * rng.normal(size=n) > 0).astype(int)


def adult_beside_numbers(bench: Bench) -> Data:
    """Adult: its categories one-hot (missing is one), its numbers as they are, standardised."""
    table = load("adult_raw", folder=bench.data)
    X, is_category = table.X_train, table.extra["categorical"]
    numbers = X[:, ~is_category].astype(float)
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    return np.hstack([*map(one_hot, X[:, is_category].T), numbers]), table.y_train


TABLES: dict[str, Callable[[Bench], Data]] = {
    "2000 × 50, noisy": lambda bench: noisy(2000, 50),
    "10,000 × 20, noisy": lambda bench: noisy(10_000, 20),
    "dna-like, 2000 × 180, 3 classes": lambda bench: dna_like(),
    "spambase, 3065 × 57": stored_table("spambase"),
    "adult one-hot, 32,561 × 123": stored_table("a9a"),
    "magic, 14,265 × 10": stored_table("magic04"),
    "one-hot beside numeric, 8000 × 102": lambda bench: beside_numbers(),
    "adult, one-hot beside numeric, 32,561 × 108": adult_beside_numbers,
}


def seconds(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least processor time of some calls, fewer if one takes long; the last result."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < 2.0:
        start = process_time()
        result = call()
        times.append(process_time() - start)
    return min(times), result


def linear(loss: str, C: float, tol: float) -> Any:
    """LIBLINEAR's machine of a loss."""
    if loss == "log_loss":
        return LogisticRegression(solver="liblinear", C=C, tol=tol, random_state=0)
    return LinearSVC(C=C, loss=loss, tol=tol, random_state=0)


def values(model: Any, X: np.ndarray, y: np.ndarray, loss: str) -> tuple[np.ndarray, np.ndarray]:
    """LIBLINEAR's objective P of each output, and its relative gap (none for the hinge loss).

    The intercept is a weight of a column of ones. At dual variables α that are −C times the
    derivatives of the losses, P − D is ½‖∇P‖²: the certificate of our Newton's method.
    """
    machines = getattr(model, "estimators_", [model])
    weights = np.concatenate([machine.coef_ for machine in machines])
    intercepts = np.concatenate([np.ravel(machine.intercept_) for machine in machines])
    C = machines[0].C
    classes = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    sign = np.where(y[:, None] == classes, 1.0, -1.0)
    margin = sign * (X @ weights.T + intercepts)
    unmet = np.maximum(1 - margin, 0)
    if loss == "log_loss":
        losses, slope = np.logaddexp(0, -margin), expit(-margin)
    elif loss == "squared_hinge":
        losses, slope = unmet**2, 2 * unmet
    else:
        losses, slope = unmet, np.full_like(unmet, np.nan)
    value = 0.5 * ((weights**2).sum(axis=1) + intercepts**2) + C * losses.sum(axis=0)
    alpha = C * sign * slope
    gradient = np.column_stack([weights - alpha.T @ X, intercepts - alpha.sum(axis=0)])
    return value, 0.5 * (gradient**2).sum(axis=1) / value


def peer_seconds(
    X: np.ndarray, y: np.ndarray, loss: str, C: float, repeats: int, longest: float = np.inf
) -> tuple[float, float]:
    """Time with the largest tolerance that is enough, and that tolerance.

    Once a larger one takes longer than `longest`, its time is returned: a lower bound.
    """

    def fitted(tol: float) -> tuple[float, Any]:
        model = linear(loss, C, tol)
        if loss == "log_loss" and len(np.unique(y)) > 2:  # LIBLINEAR has one against the rest
            model = OneVsRestClassifier(model)
        return seconds(lambda: model.fit(X, y), repeats)

    tolerances, least = TOLERANCES, np.inf
    if loss == "hinge":  # no dual variables: within 1e-3 of the value at the smallest tolerance
        tolerances = TOLERANCES[:_HINGE_TOLERANCES]
        time, model = fitted(tolerances[-1])
        if model.n_iter_ >= model.max_iter:  # not there yet: a lower bound of its time
            return time, tolerances[-1]
        least = values(model, X, y, loss)[0]
    for tol in tolerances:
        time, model = fitted(tol)
        value, gap = values(model, X, y, loss)
        if (value <= least * (1 + GAP) if loss == "hinge" else gap <= GAP).all():
            break
        if time > longest:
            break
    return time, tol


def race_table(bench: Bench, name: str) -> None:
    """All maps and losses on one table."""
    X, y = TABLES[name](bench)
    repeats = 1 if bench.quick else 2
    maps = {key: clone(m).fit(X) for key, m in list(MAPS.items())[: 1 if bench.quick else None]}
    for loss in LOSSES:
        raw = {C: peer_seconds(X, y, loss, C, repeats) for C in CS}
        for key, feature_map in maps.items():
            n_stored = len(X) * len(feature_map.get_feature_names_out())
            store = n_stored <= STORED_VALUES and loss != "log_loss"
            race(bench, f"{name}: {key}, {loss}", feature_map, (X, y), loss, raw, store)


def race(
    bench: Bench, what: str, feature_map: Any, data: Data, loss: str,
    raw: dict[float, tuple[float, float]], store: bool,
) -> None:  # fmt: skip
    """One map and loss, for all C: beside the raw columns, and (`store`) stored features."""
    (X, y), repeats = data, 1 if bench.quick else 2
    details: dict[str, Any] = {}
    beside_raw, beside_stored = [], []
    km.AdditiveSVC(feature_map, loss=loss, n_jobs=1).fit(X[::50], y[::50])  # compiles
    stored_map = feature_map
    if getattr(feature_map, "order", None) == 0:  # four of ten values are not zero
        stored_map = clone(feature_map).set_params(sparse_output=True).fit(X)
    for C in CS:
        model = km.AdditiveSVC(feature_map, C, loss=loss, random_state=0, n_jobs=1)
        ours, _ = seconds(lambda model=model: model.fit(X, y), repeats)
        beside_raw.append(ours / raw[C][0])
        details[f"C={C:g}"] = {"ours": ours, "raw": raw[C][0], "solver": model.solver_}
        if store:
            mapped, Z = seconds(lambda: stored_map.transform(X).astype(np.float64), 1)
            theirs = mapped + peer_seconds(Z, y, loss, C, 1, longest=10 * ours)[0]
            beside_stored.append(ours / theirs)
            details[f"C={C:g}"]["stored"] = theirs
    peers = {"LIBLINEAR, raw": (beside_raw, 4), "LIBLINEAR, ψ(X)": (beside_stored, 1)}
    for peer, (ratios, limit) in peers.items():
        if ratios:
            reached = sum(ratio <= limit for ratio in ratios)
            note = f"median {np.median(ratios):.2g}; within the limit for {reached} of {len(CS)} C"
            words: dict[str, Any] = {"peer": peer, "note": note, "details": details}
            bench.measure(what, max(ratios), "× its time", at_most=limit, **words)


def default_accuracy(bench: Bench, n_train: int = 2000) -> None:
    """Accuracy of the default beside the best C and map, the best for the mean of all seeds."""
    scores: dict[tuple[Any, ...], list[float]] = {}
    for seed in range(2 if bench.quick else 6):
        X, y = dna_like(3 * n_train, seed=seed)
        models = {("default",): km.AdditiveSVC(n_jobs=1)} | {
            (key, C): km.AdditiveSVC(feature_map, C, n_jobs=1)
            for key, feature_map in MAPS.items()
            for C in (1e-3, 0.01, 0.1, 1.0)
        }
        for setting, model in models.items():
            model.fit(X[:n_train], y[:n_train])
            scores.setdefault(setting, []).append(100 * model.score(X[n_train:], y[n_train:]))
    means = {setting: float(np.mean(values)) for setting, values in scores.items()}
    best = max((setting for setting in means if len(setting) > 1), key=means.__getitem__)
    note = (
        f"default {means['default',]:.2f} %, best {means[best]:.2f} % ({best[0]}, C = {best[1]:g})"
    )
    what = "dna-like, 2000 × 180, 3 classes: accuracy of the default below the best C and map"
    bench.measure(what, means[best] - means["default",], "points", at_most=0.5, note=note)


PARTS: dict[str, Callable[[Bench], None]] = {
    part: lambda bench, name=name: race_table(bench, name)
    for part, name in zip(
        ("noisy-wide", "noisy-long", "dna", "spambase", "adult", "magic", "mixed", "adult-mixed"),
        TABLES,
        strict=True,
    )
} | {"default": default_accuracy}


def run(bench: Bench, parts: Sequence[str] = tuple(PARTS)) -> None:
    """All tables; without the folder of data, those that are simulated."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", FutureWarning)
    with threadpool_limits(1):
        for part in parts:
            if bench.data is None and part in ("spambase", "adult", "magic", "adult-mixed"):
                print(f"{part} needs --data or KERNELMAPS_DATA: left out")
                continue
            PARTS[part](bench)
