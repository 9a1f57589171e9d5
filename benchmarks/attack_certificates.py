"""Attack every kind of certificate: does a search find a pair whose error exceeds its bound?

One attack draws a map (kernel, size, settings), values to fit it to and a seed, and searches all
pairs of values for the largest error. Statements with a probability are attacked by counting how
often fresh pairs contradict them. Broken bounds are printed, and the exit status is 1. Each kind
is written into the record as soon as it is done.

    python -m benchmarks.attack_certificates [--kinds ...] [--attacks 2000] [--seed 0]
        [--record FILE]
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import kernelmaps as km
from kernelmaps.engine import evaluate

from .error_search import largest_error

RECORD = Path(__file__).parent / "results" / "reproductions" / "attacks.json"
KERNELS = ("chi2", "jensen_shannon", "intersection", "hellinger")
SIZES = (1e-4, 1.0, 1.0, 1.0, 255.0, 1e6)
ROWS_PROBABILITY = 0.95
"""Of statements about rows: 2000 of them tell 0.05 from 0.06."""
NYSTROEM_ROUNDING = 1e-8
"""Of the largest k(x, x): rounding errors of kernel values are enlarged by small eigenvalues, of
which none below 1e-12 of the largest takes part."""


Rng = np.random.Generator


class Attack(NamedTuple):
    """The largest error found (or share of failures), what was promised, and of which map."""

    found: float
    bound: float
    map: str

    @property
    def broken(self) -> bool:
        return not self.found <= self.bound


class Case(NamedTuple):
    """A fitted map, the certificate to attack, and where it holds."""

    map: Any
    certificate: Any
    low: float
    high: float
    feature: int = 0
    shift: float = 0.0  # added to both ends: the search is one of values from zero


def values(rng: Rng) -> np.ndarray:
    """One feature: some distribution, some size."""
    n = int(rng.integers(2, 200))
    draws: list[Callable[[], np.ndarray]] = [
        lambda: rng.random(n),
        lambda: rng.lognormal(sigma=rng.uniform(0.2, 3), size=n),
        lambda: rng.beta(0.3, 3, n),
        lambda: np.round(rng.random(n), 1) + 0.1,
        lambda: rng.random(n) * (rng.random(n) < 0.3) + 1e-3,
    ]
    x = draws[rng.integers(len(draws))]()
    return (x / x.max() * rng.choice(SIZES))[:, None]


def homogeneous(rng: Rng) -> Case:
    fitted = km.HomogeneousMap(
        rng.choice(KERNELS),
        int(rng.integers(1, 25)),
        period=rng.choice(["auto", "5", "12", "30"]),
        gamma=float(rng.choice([0.25, 0.5, 1.0, 1.0, 1.0, 2.0])),
    )
    if fitted.period != "auto":
        fitted.set_params(period=float(fitted.period))
    return _from_zero(fitted.fit(values(rng)), 1.0)


def _from_zero(fitted: Any, high: float) -> Case:
    return Case(fitted, fitted.certificate_, 0.0, high)


def designed(rng: Rng) -> Case:
    """Few designs, which take long to find, on many sizes of values."""
    how = {"out_of_domain": rng.choice(["auto", "clip"])}
    if rng.random() < 0.3:
        fitted = _designed(rng.choice(KERNELS), int(rng.integers(1, 8)), 1.0, "universal")
        return _from_zero(fitted, 1.0)
    high = float(rng.choice(SIZES))
    x = high * np.array([[1 / float(rng.choice([30, 255, 4000]))], [1.0]])
    name, columns = rng.choice(KERNELS[:3]), int(rng.integers(2, 7))
    return _from_zero(km.DesignedMap(name, columns, **how).fit(x), high)


@cache
def _designed(
    kernel: str,
    columns: int,
    high: float,
    domain: Any,
    method: str = "refined",
    error: str = "absolute",
    out_of_domain: str = "auto",
) -> Any:
    fitted = km.DesignedMap(
        kernel, columns, domain=domain, method=method, error=error, out_of_domain=out_of_domain
    )
    return fitted.fit(np.array([[high]]))


def table(rng: Rng) -> Case:
    high, columns = float(rng.choice([1.0, 255.0])), int(rng.integers(2, 5))
    name, low = rng.choice(KERNELS[:3]), high / 255  # other ranges take minutes each
    return _from_zero(_designed(name, columns, high, (low, high), "minimax"), high)


def anchors(rng: Rng) -> Case:
    x = values(rng)
    return _from_zero(_anchor_map(rng, rng.choice(KERNELS)).fit(x), float(x.max()))


def _anchor_map(rng: Rng, kernel: Any) -> Any:
    k = int(rng.integers(1, 4))
    return km.AnchorMap(
        kernel,
        int(rng.integers(k + 1, 60)),
        anchors=rng.choice(["uniform", "sqrt", "kmeans"]),
        n_neighbors=k,
        energy=float(rng.choice([0.9, 0.99, 1.0])),
        feature_range=(0, None) if rng.random() < 0.3 else None,
    )


def series(rng: Rng) -> Case:
    x = values(rng)
    make = rng.choice([km.ChebyshevMap, km.SeriesMap])
    scale = rng.choice(["auto", "minimax", "1", "30"])
    scale = scale if scale in ("auto", "minimax") else float(scale) / float(x.max())
    return _from_zero(make(int(rng.integers(1, 30)), scale=scale).fit(x), float(x.max()))


def relative(rng: Rng) -> Case:
    """Errors relative to the kernel, or of the signature, where they are defined."""
    error, high = rng.choice(["relative", "signature"]), float(rng.choice([1.0, 255.0]))
    name, columns = rng.choice(KERNELS[:3]), int(rng.integers(2, 7))
    low = high / float(rng.choice([30.0, 255.0]))
    policy = rng.choice(["auto", "clip"])
    fitted = _designed(name, columns, high, (low, high), "refined", error, policy)
    # Cosines have this error for all pairs of no larger ratio; a table ends with its range.
    sizes = [1e-6, 0.1, 1.0] if "up to" in fitted.certificate_.domain else [1e-6, 0.1, 1.0, 50.0]
    size = float(rng.choice(sizes))
    return Case(fitted, fitted.certificate_, size * low, size * high)


def stationary(rng: Rng) -> Case:
    """Ranges that are learnt, of several features at several places."""
    method = rng.choice(["refined", "refined", "minimax"])
    is_table = method == "minimax"
    name = rng.choice(["gaussian", "cauchy", "matern"] + ["laplacian"] * (not is_table))
    kernel: Any = km.kernels.Matern(2.5) if name == "matern" else str(name)
    columns = int(rng.integers(2, 8 if name != "laplacian" else 5))
    count, places = int(rng.integers(1, 4)), [0.0, 100.0, -3.0]
    if is_table:  # a design for each place
        count, columns = 1, int(rng.integers(2, 5))
    else:
        places.append(float(np.round(rng.normal(0, 1e3))))
    length = float(rng.choice([0.25, 1.0, 2.0]))
    lower = rng.choice(places, count)
    upper = lower + length * np.r_[1.0, rng.random(count - 1)]
    is_given = rng.random() < 0.3
    if is_given:  # the same range for all features
        lower, upper = np.full(count, lower[0]), np.full(count, upper[0])
    fitted = km.DesignedMap(
        kernel,
        columns,
        domain=(float(lower[0]), float(upper[0])) if is_given else "data",
        method=method,
        error=rng.choice(["absolute", "absolute", "relative"]),
        out_of_domain=rng.choice(["auto", "raise"] if is_table else ["auto", "extrapolate"]),
    ).fit(np.stack([lower, upper]))
    feature, ends = int(rng.integers(count)), np.stack([lower, upper], axis=1)
    low, high = ends[feature]
    stated = re.search(r"\[(.+), (.+)\]", fitted.certificate_.domain)
    if stated is not None:
        low, high = map(float, stated.groups())
    return Case(fitted, fitted.certificate_, 0.0, high - low, feature, low)


def inner(rng: Rng) -> Case:
    """The smaller bound, of values in the fitted range."""
    while True:
        case = designed(rng) if rng.random() < 0.5 else anchors(rng)
        if case.certificate.inner is not None:
            fitted = case.map
            low, high = fitted.range_ if hasattr(fitted, "range_") else fitted.domain_
            return Case(fitted, case.certificate.inner, float(np.min(low)), float(np.max(high)))


def kernel_lists(rng: Rng) -> Case:
    """A kernel for each feature: one certificate for all of them."""
    d = int(rng.integers(2, 5))
    X = np.hstack([rng.choice(values(rng), 50) for _ in range(d)])
    fitted = _anchor_map(rng, list(rng.choice(KERNELS, d))).fit(X)
    feature = int(rng.integers(d))
    return Case(fitted, fitted.certificate_, 0.0, float(X[:, feature].max()), feature)


def signed(rng: Rng) -> Case:
    """The odd extension to negative values."""
    if rng.random() < 0.5:
        name, columns = rng.choice(KERNELS), int(rng.integers(1, 12))
        fitted = km.HomogeneousMap(name, columns, signed=True).fit(values(rng) - 1e-3)
        return Case(fitted, fitted.certificate_, -1.0, 1.0)
    high = float(rng.choice(SIZES))
    x = high * np.array([[1 / float(rng.choice([30, 255]))], [-1.0]])
    name, columns = rng.choice(KERNELS[:3]), int(rng.integers(2, 7))
    out_of_domain = rng.choice(["auto", "clip"])
    fitted = km.DesignedMap(name, columns, signed=True, out_of_domain=out_of_domain).fit(x)
    return Case(fitted, fitted.certificate_, -high, high)


def search(case: Case, rng: Rng) -> Attack:
    """All pairs of values in the domain of the certificate."""
    fitted, kernel = case.map, case.map.kernel_
    is_stationary = isinstance(kernel, km.kernels.StationaryKernel)
    kernel = kernel if is_stationary else kernel.feature(case.feature)
    ends = np.concatenate([[0], np.cumsum(fitted._columns_per_feature())])
    columns = slice(*ends[case.feature : case.feature + 2])

    def error(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x, y = x + case.shift, y + case.shift
        found, place = np.unique(np.r_[x, y], return_inverse=True)
        rows = np.repeat(found[:, None], fitted.n_features_in_, axis=1)
        mapped = np.asarray(evaluate(fitted.spec_, rows))[:, columns]
        product = np.einsum("ij,ij->i", mapped[place[: x.size]], mapped[place[x.size :]])
        exact = kernel.signature(x - y) if is_stationary else kernel.component(x, y)
        if case.certificate.error == "relative":
            return (product - exact) / exact
        if case.certificate.error == "signature":
            return (product - exact) / np.sqrt(x * y) ** kernel.gamma
        return product - exact

    at = np.zeros(0)
    if hasattr(fitted, "anchors_"):
        at = np.asarray(fitted.anchors_[case.feature])
        at = np.r_[at, (at[1:] + at[:-1]) / 2]
    seed = int(rng.integers(2**31))
    ends = case.low, case.high
    found, x, y = largest_error(error, *ends, at=at, random_state=seed, symmetric=True)
    return Attack(found, case.certificate.bound, f"{fitted!r} at ({x:.6g}, {y:.6g})")


@cache
def _plane(columns: int, length: float) -> Any:
    X = np.array([[0.0, 0.0], [length, length]])
    ends = [(0, length), (0, length)]
    return km.JointDesignedMap(km.kernels.Gaussian(1.0), columns, domain=ends).fit(X)


def joint(rng: Rng) -> Attack:
    """1000 points of the square, and their neighbours."""
    length = float(rng.choice([1.0, 2.0]))
    fitted = _plane(int(rng.choice([5, 9, 15])), length)
    points = length * rng.beta(*rng.choice([[1, 1], [0.3, 0.3]]), size=(500, 2))
    points = np.concatenate([points, points + rng.normal(0, 1e-2, points.shape)]).clip(0, length)
    Z = np.asarray(evaluate(fitted.spec_, points))
    found = np.max(np.abs(Z @ Z.T - fitted.kernel_(points)))
    return Attack(float(found), fitted.certificate_.bound, repr(fitted))


def rows(rng: Rng) -> Attack:
    """Share of 100 fresh pairs of rows beyond `row_certificate`: independent features."""
    d, n = int(rng.integers(1, 40)), int(rng.integers(4, 2000))
    size = float(rng.choice([0.3, 1.0, 3.0]))
    draws: list[Callable[[int], np.ndarray]] = [
        lambda n: rng.random((n, d)),
        lambda n: rng.lognormal(sigma=1.5, size=(n, d)),
        lambda n: rng.exponential(size=(n, d)) * (rng.random((n, d)) < 0.2),
        lambda n: np.abs(rng.standard_t(2, size=(n, d))),
    ]
    draw = draws[rng.integers(len(draws))]
    make = [
        lambda: km.HomogeneousMap(rng.choice(KERNELS), 5, gamma=float(rng.choice([0.5, 1.0]))),
        lambda: km.AnchorMap(rng.choice(KERNELS), 20, n_neighbors=int(rng.integers(1, 3))),
        lambda: km.ChebyshevMap(5),
        lambda: km.SeriesMap(5),
        lambda: km.DesignedMap("chi2", 3, domain="universal"),
        lambda: km.DesignedMap("chi2", 3, method="minimax", domain=(1 / 255, 1.0)),
    ]
    fitted = make[rng.integers(len(make))]().fit(draw(60))
    sure = fitted.row_certificate(size * draw(n), probability=ROWS_PROBABILITY)
    X = size * draw(200)
    Z = fitted.transform(X)
    exact = np.sum(fitted.kernel_.component(X[:100], X[100:]), axis=1)
    errors = np.abs(np.sum(Z[:100] * Z[100:], axis=1) - exact)
    return Attack(float(np.mean(errors > sure.bound)), 1 - ROWS_PROBABILITY, repr(fitted))


def residuals(rng: Rng) -> Attack:
    """Errors of all pairs of rows of a Nyström map, in units of what their residuals allow."""
    X = rng.dirichlet(np.full(int(rng.integers(2, 8)), rng.choice([0.3, 1.0])), 60)
    X = X.astype(rng.choice([np.float32, np.float64]))
    fitted = km.NystroemMap(
        rng.choice(["gaussian", "laplacian", "exp_chi2", *KERNELS]),
        int(rng.integers(1, 20)),
        landmarks=rng.choice(["uniform", "kmeans", "rpcholesky"]),
        random_state=int(rng.integers(2**31)),
    ).fit(X[:40])
    Z, delta = fitted.transform(X), np.sqrt(fitted.residuals(X))
    size, X, Z = float(np.finfo(Z.dtype).eps), X.astype(float), Z.astype(float)
    # Each column of φ is rounded, by half of the precision of its rows.
    rounding = (NYSTROEM_ROUNDING + size) * fitted.kernel_.diag(X).max()
    bound = np.outer(delta, delta)
    error = np.abs(Z @ Z.T - fitted.kernel_(X))
    return Attack(float(np.max(error / (bound + rounding))), 1.0, repr(fitted))


def searched(make: Callable[[Rng], Case]) -> Callable[[Rng], Attack]:
    """Draw a map, and search all pairs of values."""
    return lambda rng: search(make(rng), rng)


# Their order is part of the seed.
KINDS: dict[str, Callable[[Rng], Attack]] = {
    "homogeneous": searched(homogeneous),
    "designed": searched(designed),
    "table": searched(table),
    "anchors": searched(anchors),
    "series": searched(series),
    "joint": joint,
    "rows": rows,
    "relative": searched(relative),
    "inner": searched(inner),
    "kernel lists": searched(kernel_lists),
    "signed": searched(signed),
    "residuals": residuals,
    "stationary": searched(stationary),
}
LIKELY = ("rows",)
"""Statements with a probability."""


def attacks(kind: str, count: int, seed: int) -> Iterator[Attack]:
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    for _ in range(count):
        yield KINDS[kind](rng)


def summary(kind: str, every: Sequence[Attack]) -> tuple[dict[str, Any], list[Attack]]:
    """The figures of one kind for the record, and the attacks that broke a bound."""
    if kind in LIKELY:  # one statement about all of them
        share = float(np.mean([attack.found for attack in every]))
        allowed = every[0].bound
        failed = [Attack(share, allowed, kind)] if share > allowed else []
        figures = {"share of pairs beyond the bound": share, "allowed": allowed}
    else:
        failed = [attack for attack in every if attack.broken]
        largest = max(attack.found / attack.bound for attack in every)
        figures = {"largest error / bound": largest, "allowed": 1.0}
    return {"attacks": len(every), "broken": len(failed), **figures}, failed


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--attacks", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args(given)
    warnings.simplefilter("ignore", km.exceptions.OutOfDomainWarning)
    path, broken = options.record, 0
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for kind in options.kinds:
        figures, failed = summary(kind, list(attacks(kind, options.attacks, options.seed)))
        broken += len(failed)
        words = ", ".join(f"{name} {value:.6g}" for name, value in figures.items())
        print(f"{kind:12s} {words}", flush=True)
        for attack in failed[:10]:
            print(f"    {attack.found:.6g} > {attack.bound:.6g}: {attack.map}")
        record[kind] = {**figures, "seed": options.seed, "date": date.today().isoformat()}
        record = {name: record[name] for name in KINDS if name in record}
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if broken:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
