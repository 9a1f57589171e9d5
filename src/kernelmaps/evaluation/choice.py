r"""``choose``: the smallest map whose error stays below a tolerance, with the evidence.

Two random parts of the rows are held out in turns: maps are fitted on all other rows, and errors
are measured on the pairs of the part that they have not seen. What is asked of a map is that its
error on *fresh* pairs stays within the tolerance, so that the largest error seen is not enough: as
many fresh pairs exceed it with probability one half. :func:`upper_bound` gives the confidence bound
that is used instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from .._util.arguments import (
    argument,
    argument_error,
    check_choice,
    check_number,
    check_positive,
    generator,
    parameter,
    seed_of,
)
from .._util.display import Tabled, number, table_of, track
from .._util.sparse import dense
from .._util.threads import check_stop, interruptible
from ..certificate import Certificate
from ..data.columns import names_of
from ..exceptions import (
    DesignError,
    OutOfDomainWarning,
    SuspectColumnWarning,
    ToleranceError,
)
from ..kernels import Kernel
from . import candidates as maps
from .checks import read_rows_of_numbers
from .methods import TableEncoder, put_behind, scale_rows

ADDITIVE_SIZES = (1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 15, 19, 25, 33, 49, 65, 97)
JOINT_SIZES = tuple(2**power for power in range(6, 15))
_MAX_DESIGN = 33  # columns; designs of more take minutes
_MARGIN = 1.1  # over the largest error seen: the chosen one is the luckiest of many candidates
_LARGEST_RATIO = 1e6  # of a bound to the largest error seen: few errors among roundings, no tail
_HELD_OUT_ROWS = 1000  # in each of the two parts, at most half of all, whose pairs are measured
_PATIENCE = 20.0  # seconds for one candidate, after which no other one of its family is tried
# Families in the order of their cost: series are formulas, anchors need eigenvectors for each
# feature, designs a linear program where there is no ready one, and landmarks a decomposition.
_ORDER = ("HomogeneousMap", "ChebyshevMap", "SeriesMap", "AnchorMap", "DesignedMap")


@dataclass(frozen=True)
class Evidence:
    """What was measured of one candidate.

    Attributes
    ----------
    candidate : Candidate
    columns : int
        Output columns in all.
    max, rms, bias : float
        Error on the held-out pairs.
    bound : float
        Upper confidence bound on the largest error of as many fresh pairs.
    confidence : float
    n_pairs : int
    seconds : float
        Predicted time to map all rows, from the time that the held-out rows took.
    certificate : Certificate or None
        What the map's own theory says; of the chosen map alone, since some take long to compute.
    """

    candidate: maps.Candidate
    columns: int
    max: float
    rms: float
    bias: float
    bound: float
    confidence: float
    n_pairs: int
    seconds: float
    certificate: Certificate | None = None

    @property
    def label(self) -> str:
        return self.candidate.label


@dataclass(frozen=True)
class Choice(Tabled):
    """Result of :func:`choose`.

    Attributes
    ----------
    map : FeatureMap or Pipeline
        The chosen map, fitted on all rows; behind the encoder of a table and the scaler where
        there are any, so that it takes rows like those of X. Its evidence is of two maps of its
        settings, each measured on rows that it was not fitted on.
    evidence : Evidence
        Of the chosen map.
    rejected : list of Evidence
        What else was measured: bounds over the tolerance, or more columns, or larger bounds.
    kernel : Kernel
        Of the rows as they reach the map.
    requirements : dict
        The tolerance, the kind of error and the confidence.
    notes : list of str
        Candidates that could not be measured, and why.
    columns : list of str or None
        Columns of a table that the map uses, where it encodes them; None: all of a matrix.
    """

    map: Any
    evidence: Evidence
    rejected: list[Evidence]
    kernel: Kernel
    requirements: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    columns: list[str] | None = None

    def code(self) -> str:
        """Python that makes the chosen map."""
        return maps.expression(self.map)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "kernel": maps.kernel_code(self.kernel).removeprefix("km.kernels."),
            "requirements": self.requirements,
            "columns": self.columns,
            "chosen": _to_dict(self.evidence),
            "code": self.code(),
            "rejected": [_to_dict(item) for item in self.rejected],
            "notes": self.notes,
        }

    def table(self) -> Any:
        """A rich table: the chosen map and, of each other family, the last size looked at."""
        last: dict[tuple[str, str], Evidence] = {}
        for item in sorted(self.rejected, key=lambda item: item.candidate.size):
            last[item.candidate.name, item.candidate.variant] = item
        relative = self.requirements["error"] == "relative"
        right = ("columns", "max rel.\nerror" if relative else "max\nerror", "bound", "ms")
        table = table_of(["map", *right], [], self.summary(), right, title_justify="left")
        table.caption = "\n".join(
            [f"{1 + len(self.rejected)} candidates were measured.", *self.notes]
        )
        shown = sorted(last.values(), key=lambda item: (item.columns, item.bound))
        for item in (self.evidence, *shown):
            cells = number(item.max), number(item.bound), number(1e3 * item.seconds, ".1f")
            style = "bold" if item is self.evidence else ""
            table.add_row(item.label, str(item.columns), *cells, style=style)
        return table

    def __repr__(self) -> str:
        return f"<Choice of {self.code()}; print it for the evidence>"

    def summary(self) -> str:
        """The chosen map and its evidence, in a sentence."""
        best = self.evidence
        sure = f"certificate: {best.certificate}" if best.certificate else "no certificate"
        relative = "relative " if self.requirements["error"] == "relative" else ""
        return (
            f"{self.code()}: {best.columns} columns; {relative}error on "
            f"{best.n_pairs} held-out pairs at most {best.max:.3g}, on fresh ones at most "
            f"{best.bound:.3g} ({best.confidence:.0%} confidence); {sure}"
        )


def choose(
    X: Any,
    kernel: Any = "chi2",
    *,
    max_error: float,
    error: str = "absolute",
    confidence: float = 0.95,
    families: Sequence[str] | None = None,
    random_state: Any = 0,
    budget: float | None = None,
    progress: bool | None = None,
) -> Choice:
    """Find the smallest map of a kernel whose error on new pairs stays below a tolerance.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n, d)
        Rows like those that the map is for. Tables are encoded by a :class:`TableEncoder`.
    kernel : str, Kernel or list of these
        Additive, stationary or exponentiated. Of a stationary or exponentiated kernel given by name
        the width follows the data, and columns are standardised in front of a stationary one; a
        kernel object is used unchanged. A list has a kernel for each column.
    max_error : float
        Tolerance: of all maps whose bound is at most this, the one with the fewest columns is
        chosen, and of several such maps the one with the smallest bound.
    error : {"absolute", "relative"}
        Difference of kernel values, or that over √(k(x, x) k(y, y)), which does not depend on the
        scale of the data.
    confidence : float
        Confidence of the bound on the largest error of new pairs.
    families : sequence of str, optional
        Names of the maps to consider; by default all that exist for the kernel.
    random_state : int, RandomState, Generator or None
    budget : float, optional
        Seconds after which no further map is measured; the notes of the result name them.
    progress : bool, optional
        Whether to show a bar; None shows it on a terminal.

    Returns
    -------
    Choice
        The map, fitted on all rows; its evidence; and that of the others.

    Raises
    ------
    ToleranceError
        If no candidate meets the tolerance; its `best` is the evidence of the nearest one.

    Notes
    -----
    Families come in the order of their cost. Errors are taken to fall with the size, which is
    bisected. Of a later family, the size of the smallest map so far is measured first, and smaller
    ones if that is accurate enough.

    Examples
    --------
    >>> import kernelmaps as km
    >>> X, _ = km.datasets.make_histograms(400, 16, random_state=0)
    >>> choice = km.choose(X, "chi2", max_error=0.01, families=["HomogeneousMap"])
    >>> choice.evidence.bound <= 0.01
    True
    """
    check_positive("choose", "max_error", max_error)
    check_choice("choose", "error", error, ("absolute", "relative"))
    check_number("choose", "confidence", confidence, "in [0.5, 1)", lambda c: 0.5 <= c < 1)
    if budget is not None:
        check_positive("choose", "budget", budget, "a positive number of seconds")
    if isinstance(families, str):
        raise argument_error("choose", "families", families, "a list of names")
    requirements = {"max_error": max_error, "error": error, "confidence": confidence}
    random_state = seed_of(random_state)
    rows, encoder = _read_rows(X, kernel)
    rows, kernel, scaler = scale_rows(kernel, rows, random_state)
    groups = _list_families(kernel, families, random_state)
    columns = None if encoder is None else encoder.columns_used
    names = names_of(X) if columns is None else columns
    search = interruptible(_Search, rows, kernel, requirements, random_state, budget, names)
    for family in track(groups, lambda group: group[0].family, enabled=progress):
        interruptible(search.bisect, family)
    best, rejected = search.rank()
    # Fitted to a frame, the map checks the names of the columns of later ones.
    made = best.candidate.make()
    scaled = made if scaler is None else make_pipeline(clone(scaler), made)
    chosen_map = put_behind(encoder, scaled).fit(X)
    best = replace(best, certificate=getattr(made, "certificate_", None))
    return Choice(chosen_map, best, rejected, kernel, requirements, search.notes, columns)


def _read_rows(X: Any, kernel: Any) -> tuple[Any, TableEncoder | None]:
    """Checked rows, and the encoder of a frame that needs one."""
    select = not isinstance(kernel, list | tuple)  # which has a kernel for each column
    options: dict[str, Any] = {"select": select, "ensure_min_samples": 8}
    rows, encoder, remarks = read_rows_of_numbers(X, "choose", **options)
    if remarks:
        warnings.warn(f"choose: {' '.join(remarks)}", SuspectColumnWarning, stacklevel=3)
    return rows, encoder


def upper_bound(largest: np.ndarray, confidence: float, n_fresh: int | None = None) -> float:
    r"""Bound on the largest error of `n_fresh` fresh rows, from the largest error of each row seen.

    What is asked for is a level that all n fresh draws stay below with probability c: its tail
    probability p satisfies :math:`e^{-np} = c`. It lies beyond the N rows seen, so that the tail
    has to be continued: with the k largest row errors :math:`r_1 ≥ … ≥ r_k` and Hill's estimate ξ
    of their decay, the level is :math:`r_k (k n / (N · {-\log c}))^{ξ}`.

    Never less than 1.1 times the largest error that was seen: the map that is chosen is the one
    that got away with the fewest columns, and fresh rows may leave the range that it was fitted on.
    A level of a million times that error says nothing, and is infinite.
    """
    share = 1.0 if n_fresh is None else n_fresh / len(largest)
    k = min(len(largest) - 1, max(4, round(np.sqrt(len(largest)))))
    top = np.sort(largest)[-k - 1 :]
    pareto = 0.0
    if top[0] > 0:
        decay = float(np.mean(np.log(top[1:] / top[0])))
        pareto = top[0] * (k * share / -np.log(confidence)) ** decay
        pareto = pareto if pareto < _LARGEST_RATIO * top[-1] else np.inf
    return float(max(pareto, _MARGIN * top[-1]))


class _Search:
    """Measures candidates on held-out rows, and stores the evidence.

    Two parts of the rows are held out in turns, each from a map that was fitted on all others:
    twice as many rows to see outliers in, and two chances to see what happens to rows that leave
    the range of those that a map was fitted on.
    """

    def __init__(
        self,
        X: Any,
        kernel: Kernel,
        requirements: dict[str, Any],
        random_state: int,
        budget: float | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        order = generator(random_state).permutation(X.shape[0])
        self.n_held = int(min(_HELD_OUT_ROWS, X.shape[0] // 2))
        self.X, self.kernel, self.requirements = X, kernel, requirements
        self.names = names if names and len(names) == X.shape[1] else range(X.shape[1])
        self.splits = [self._split(order, start) for start in (0, self.n_held)]
        self.end = np.inf if budget is None else perf_counter() + budget
        self.measured: list[Evidence] = []
        self.notes: list[str] = []

    def _split(self, order: np.ndarray, start: int) -> tuple[Any, Any, np.ndarray, np.ndarray]:
        """Rows held out, the other rows, kernel values, and what their errors are divided by."""
        inside = np.zeros(len(order), dtype=bool)
        inside[order[start : start + self.n_held]] = True
        held, train = self.X[np.flatnonzero(inside)], self.X[np.flatnonzero(~inside)]
        exact = np.asarray(self.kernel(held), dtype=np.float64)
        root = np.ones(len(exact))
        if self.requirements["error"] == "relative":
            root = np.sqrt(np.maximum(np.diag(exact), np.finfo(float).tiny))
        return held, train, exact, root[:, None] * root

    def bisect(self, family: list[maps.Candidate]) -> None:
        """Find the smallest size whose error is within the tolerance, if it may win.

        Sizes below `low` are too small, that at `high` is large enough, or larger than the smallest
        good map so far. Its size is measured first.
        """
        smallest = min((item.candidate.size for item in self._good), default=np.inf)
        low, high = 0, sum(candidate.size <= smallest for candidate in family)
        place = high // 2 if smallest == np.inf else high - 1
        while low < high:
            evidence = self._measure(family[place])
            if evidence is None:
                return
            if evidence.bound <= self.requirements["max_error"]:
                high = place
            else:
                low = place + 1
            place = (low + high) // 2

    @property
    def _good(self) -> list[Evidence]:
        return [e for e in self.measured if e.bound <= self.requirements["max_error"]]

    def _measure(self, candidate: maps.Candidate) -> Evidence | None:
        """Measure a candidate, and store its evidence; None: no other one of its family."""
        check_stop()
        if self.measured and perf_counter() > self.end:  # one is measured in any case
            self.notes.append(f"{candidate.label}: not measured, the budget was spent")
            return None
        start = process_time()  # what it costs, whatever else the machine does
        evidence = self._evaluate(candidate)
        if evidence is not None:
            self.measured.append(evidence)
        if process_time() - start > _PATIENCE:
            self.notes.append(f"{candidate.label}: no more of them, they take too long to make")
            return None
        return evidence

    def _evaluate(self, candidate: maps.Candidate) -> Evidence | None:
        errors, seconds, columns = [], [], 0
        try:
            # Values outside the domain are part of the error.
            with warnings.catch_warnings(action="ignore", category=OutOfDomainWarning):
                warnings.filterwarnings("ignore", "NystroemMap: n_components")  # all rows at most
                for held, train, exact, scale in self.splits:
                    feature_map = candidate.make().fit(train)
                    if getattr(feature_map, "kernel_", None) != self.kernel:  # but one of its own
                        raise ValueError(f"it approximates {feature_map.kernel_!r}")
                    feature_map.transform(held[:8])  # compiled outside the timing
                    start = perf_counter()
                    Z = feature_map.transform(held)
                    seconds.append(perf_counter() - start)
                    errors.append((dense(Z @ Z.T).astype(np.float64) - exact) / scale)
                    columns = max(columns, int(Z.shape[1]))
        except (ValueError, TypeError, DesignError, MemoryError) as problem:
            self.notes.append(f"{candidate.label}: {str(problem).splitlines()[0]}")
            return None
        together = np.concatenate(errors)
        largest = np.abs(together).max(axis=1)
        return Evidence(
            candidate=candidate,
            columns=columns,
            max=float(largest.max()),
            rms=float(np.sqrt(np.mean(together**2))),
            bias=float(together.mean()),
            bound=upper_bound(largest, self.requirements["confidence"], self.n_held),
            confidence=self.requirements["confidence"],
            n_pairs=together.size,
            seconds=min(seconds) * self.X.shape[0] / self.n_held,
        )

    def rank(self) -> tuple[Evidence, list[Evidence]]:
        """The evidence of the chosen map, and that of the others."""
        if not self.measured:
            reasons = "; ".join(self.notes) or "there is no map for it in this version"
            raise ValueError(f"choose: no map of {self.kernel!r} could be measured: {reasons}")
        if not self._good:
            raise self._failure()
        # Of as many columns, the safer one: times of milliseconds would decide by chance.
        best = min(self._good, key=lambda item: (item.columns, item.bound))
        rejected = [item for item in self.measured if item is not best]
        return best, sorted(rejected, key=lambda item: (item.columns, item.bound))

    def _failure(self) -> ToleranceError:
        nearest = min(self.measured, key=lambda item: item.bound)
        stated, relative = argument("max_error", self.requirements["max_error"]), ""
        if self.requirements["error"] == "absolute":
            option = parameter("relative")  # of the command; in Python, it is a value of `error`
            option = option if option.startswith("--") else argument("error", "relative")
            relative = f", or pass {option} for an error relative to √(k(x, x) k(y, y))"
        sentences = [
            f"choose: no map of {maps.kernel_label(self.kernel)} meets {stated}. The most accurate "
            f"of {len(self.measured)} is {nearest.label} with {nearest.columns} columns: "
            f"{self.requirements['error']} error on fresh pairs at most {nearest.bound:.3g} "
            f"({nearest.confidence:.0%} confidence).",
            *(f"{note.rstrip('.')}." for note in self.notes),
            *self._describe_unseen(),
            f"Allow a larger error{relative}.",
        ]
        return ToleranceError(" ".join(sentences), best=nearest)

    def _describe_unseen(self) -> Iterator[str]:
        """A sentence on columns of one value in the rows fitted to, and of others held out."""
        unseen = np.zeros(self.X.shape[1], dtype=bool)
        for held, train, *_ in self.splits:
            ends = (end for part in (train, held) for end in (part.min(axis=0), part.max(axis=0)))
            low, high, smallest, largest = (dense(end).ravel() for end in ends)
            unseen |= (low == high) & ((smallest < low) | (largest > high))
        names = [str(self.names[d]) for d in np.flatnonzero(unseen)]
        if names and maps.get_sort(self.kernel) == "additive":
            shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
            yield (
                f"Columns with one value in the rows that maps were fitted to and others in those "
                f"held out: {len(names)} ({shown}). Pass more rows, or leave these columns out."
            )


def _list_families(
    kernel: Kernel, names: Sequence[str] | None, random_state: int
) -> list[list[maps.Candidate]]:
    """Candidates by family and variant, sizes growing."""
    sizes = ADDITIVE_SIZES if maps.get_sort(kernel) == "additive" else JOINT_SIZES
    groups: dict[str, list[maps.Candidate]] = {}
    for candidate in maps.candidates(kernel, sizes, random_state):
        is_slow = candidate.name == "DesignedMap" and candidate.size > _MAX_DESIGN
        if (names is None or candidate.name in names) and not is_slow:
            groups.setdefault(candidate.family, []).append(candidate)
    if not groups:
        raise ValueError(f"choose: there is no map for {kernel!r} among {names or 'those here'}.")
    places = {name: place for place, name in enumerate(_ORDER)}
    return sorted(groups.values(), key=lambda group: places.get(group[0].name, len(places)))


def _to_dict(item: Evidence) -> dict[str, Any]:
    plain = {"map": item.label, **asdict(item)}
    plain["certificate"] = str(item.certificate) if item.certificate else None
    plain["bound"] = item.bound if np.isfinite(item.bound) else None
    del plain["candidate"]
    return plain
