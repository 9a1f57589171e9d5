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
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import kernelmaps as km
from kernelmaps.design.certify import largest_error
from kernelmaps.engine import evaluate

RECORD = Path(__file__).parent / "results" / "reproductions" / "attacks.json"
KERNELS = ("chi2", "jensen_shannon", "intersection", "hellinger")
SIZES = (1e-4, 1.0, 1.0, 1.0, 255.0, 1e6)
ROWS_PROBABILITY = 0.95
"""Of statements about rows: 2000 of them tell 0.05 from 0.06."""


class Attack(NamedTuple):
    """The largest error found (or share of failures), what was promised, and of which map."""

    found: float
    bound: float
    map: str

    @property
    def broken(self) -> bool:
        return not self.found <= self.bound


def values(rng: np.random.Generator) -> np.ndarray:
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


def homogeneous(rng: np.random.Generator) -> tuple[Any, float]:
    fitted = km.HomogeneousMap(
        rng.choice(KERNELS),
        int(rng.integers(1, 25)),
        period=rng.choice(["auto", "5", "12", "30"]),
        gamma=float(rng.choice([0.25, 0.5, 1.0, 1.0, 1.0, 2.0])),
        window=rng.choice(["rectangular", "uniform"]),
    )
    if fitted.period != "auto":
        fitted.set_params(period=float(fitted.period))
    return fitted.fit(values(rng)), 1.0


def designed(rng: np.random.Generator) -> tuple[Any, float]:
    """Few designs, which take long to find, on many sizes of values."""
    how = {"out_of_domain": rng.choice(["auto", "clip"])}
    if rng.random() < 0.3:
        return _designed(rng.choice(KERNELS), int(rng.integers(1, 8)), 1.0, "universal"), 1.0
    high = float(rng.choice(SIZES))
    x = high * np.array([[1 / float(rng.choice([30, 255, 4000]))], [1.0]])
    name, columns = rng.choice(KERNELS[:3]), int(rng.integers(2, 7))
    return km.DesignedMap(name, columns, **how).fit(x), high


@cache
def _designed(kernel: str, columns: int, high: float, domain: Any, method: str = "refined") -> Any:
    fitted = km.DesignedMap(kernel, columns, domain=domain, method=method)
    return fitted.fit(np.array([[high]]))


def table(rng: np.random.Generator) -> tuple[Any, float]:
    method, high = rng.choice(["minimax", "eigen", "sine"]), float(rng.choice([1.0, 255.0]))
    name = "intersection" if method == "sine" else rng.choice(KERNELS[:3])
    low = high / float(rng.choice([30.0, 255.0]))
    columns = int(rng.integers(2, 5)) if method == "minimax" else int(rng.integers(2, 9))
    if method == "minimax":
        low = high / 255  # others take minutes each
    return _designed(name, columns, high, (low, high), method), high


def anchors(rng: np.random.Generator) -> tuple[Any, float]:
    x = values(rng)
    k = int(rng.integers(1, 4))
    fitted = km.AnchorMap(
        rng.choice(KERNELS),
        int(rng.integers(k + 1, 60)),
        anchors=rng.choice(["uniform", "sqrt", "kmeans", "quantile"]),
        n_neighbors=k,
        energy=float(rng.choice([0.9, 0.99, 1.0])),
        anchor_zero=bool(rng.random() < 0.3),
    )
    return fitted.fit(x), float(x.max())


def series(rng: np.random.Generator) -> tuple[Any, float]:
    x = values(rng)
    make = rng.choice([km.ChebyshevMap, km.SeriesMap])
    scale = rng.choice(["auto", "minimax", "1", "30"])
    scale = scale if scale in ("auto", "minimax") else float(scale) / float(x.max())
    return make(int(rng.integers(1, 30)), scale=scale).fit(x), float(x.max())


def search(fitted: Any, high: float, rng: np.random.Generator) -> Attack:
    """All pairs of values from 0 to `high`."""

    def error(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        found, place = np.unique(np.r_[x, y], return_inverse=True)
        mapped = np.asarray(evaluate(fitted.spec_, found[:, None]))
        product = np.einsum("ij,ij->i", mapped[place[: x.size]], mapped[place[x.size :]])
        return product - fitted.kernel_.component(x, y)

    at = np.concatenate(getattr(fitted, "anchors_", [np.zeros(0)]))
    at = np.r_[at, (at[1:] + at[:-1]) / 2] if at.size else at
    seed = int(rng.integers(2**31))
    found, x, y = largest_error(error, 0.0, high, at=at, random_state=seed, symmetric=True)
    return Attack(found, fitted.certificate_.bound, f"{fitted!r} at ({x:.6g}, {y:.6g})")


@cache
def _plane(columns: int, length: float, form: str) -> Any:
    X = np.array([[0.0, 0.0], [length, length]])
    ends = [(0, length), (0, length)]
    return km.JointDesignedMap(km.kernels.Gaussian(1.0), columns, domain=ends, form=form).fit(X)


def joint(rng: np.random.Generator) -> Attack:
    """1000 points of the square, and their neighbours."""
    length = float(rng.choice([1.0, 2.0]))
    fitted = _plane(int(rng.choice([5, 9, 15])), length, rng.choice(["modulation", "projection"]))
    points = length * rng.beta(*rng.choice([[1, 1], [0.3, 0.3]]), size=(500, 2))
    points = np.concatenate([points, points + rng.normal(0, 1e-2, points.shape)]).clip(0, length)
    Z = np.asarray(evaluate(fitted.spec_, points))
    found = np.max(np.abs(Z @ Z.T - fitted.kernel_(points)))
    return Attack(float(found), fitted.certificate_.bound, repr(fitted))


def signs(rng: np.random.Generator) -> Attack:
    """Share of 20 maps of one pair of rows whose error exceeds Hoeffding's bound."""
    X = rng.dirichlet(np.full(20, rng.choice([0.2, 1.0])), 2)
    fitted = [km.SignCauchyMap(64, random_state=int(rng.integers(2**31))) for _ in range(20)]
    exact, failures = fitted[0].fit(X).kernel_(X)[0, 1], 0
    for one in fitted:
        Z = one.fit_transform(X)
        failures += abs(Z[0] @ Z[1] - exact) > one.certificate_.bound
    return Attack(failures / len(fitted), 1 - fitted[0].certificate_.probability, "SignCauchyMap")


def rows(rng: np.random.Generator) -> Attack:
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


MAPS: dict[str, Callable[[np.random.Generator], tuple[Any, float]]] = {
    "homogeneous": homogeneous,
    "designed": designed,
    "table": table,
    "anchors": anchors,
    "series": series,
}
OTHERS: dict[str, Callable[[np.random.Generator], Attack]] = {"joint": joint}
LIKELY: dict[str, Callable[[np.random.Generator], Attack]] = {"signs": signs, "rows": rows}
KINDS = (*MAPS, *OTHERS, *LIKELY)


def attacks(kind: str, count: int, seed: int) -> Iterator[Attack]:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    for _ in range(count):
        yield search(*MAPS[kind](rng), rng) if kind in MAPS else (OTHERS | LIKELY)[kind](rng)


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
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
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
