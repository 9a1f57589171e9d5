"""The race on a GPU: ``python -m benchmarks.device [maps] [prediction] [streaming] [--quick]``.

Needs a CUDA GPU and torch with Triton (``pip install 'kernelmaps[gpu]'``). Every figure is checked
against the processor before it is timed, the results are written to benchmarks/results/device.json,
and the performance page is rendered anew.

A time is that of the GPU: twenty calls are recorded and played back, so that it does not wait for
the processor, which needs about 0.1 ms to launch one; notes say what a call takes that is launched
anew. The limit of a map is the time to read the rows and to write the result at the speed of a copy
on the same GPU; of a joint map, its matrix product alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np

import kernelmaps as km
from kernelmaps._util.devices import multiply, precision
from kernelmaps.engine import apply, evaluate, gpu, record_paths
from kernelmaps.engine.apply import stage_columns, sums_array_api
from kernelmaps.engine.gpu import dispatch
from kernelmaps.engine.projections import n_outputs

from . import render
from .harness import RESULTS, Row, line

ROWS, FEATURES, CALLS = 20_000, 784, 20
SINGLE = ("float32",)
PRECISIONS = (*SINGLE, "tf32")
TOLERANCE = {"float32": 2e-5, "float64": 1e-10}
"""Largest error relative to the largest feature; large angles lose the digits before the point."""

ADDITIVE = {
    "HomogeneousMap χ², 5 columns": km.HomogeneousMap("chi2", 5),
    "DesignedMap χ², 5 columns": km.DesignedMap("chi2", 5),
    "AnchorMap 40, two neighbours, rank 5": km.AnchorMap(
        "chi2", 40, anchors="uniform", n_neighbors=2, rank=5
    ),
    "AnchorMap 40, k-means, rank 5": km.AnchorMap(
        "chi2", 40, anchors="kmeans", n_neighbors=2, rank=5
    ),
    "ChebyshevMap, 10 columns": km.ChebyshevMap(10),
    "SeriesMap, 10 columns": km.SeriesMap(10),
    "SplineMap, 10 columns": km.SplineMap(),
}


class Race:
    """Rows of the record, and the clock of the GPU."""

    def __init__(self, quick: bool) -> None:
        import torch
        import triton

        self.torch, self.quick, self.rows = torch, quick, list[Row]()
        source = torch.empty(2**28, dtype=torch.float32, device="cuda")
        target = torch.empty_like(source)
        # Launched: copies in a graph are left to the copy engine, which is slower.
        self.copy = 2 * source.nbytes / self.launching(lambda: target.copy_(source))
        self.gpu = {
            "gpu": torch.cuda.get_device_name(),
            "copy": self.copy,
            "torch": torch.__version__,
            "triton": triton.__version__,
        }

    def seconds(self, call: Callable[[], Any]) -> float:
        """Time of a call on the GPU: the best of five turns."""
        play = self._recorded(call)
        return min(self._turn(play, CALLS) for _ in range(2 if self.quick else 5))

    def beside(self, *calls: Callable[[], Any]) -> list[float]:
        """The same of calls that take turns: medians, since short ones differ."""
        plays = [self._recorded(call) for call in calls]
        times = [[self._turn(play, CALLS) for play in plays] for _ in range(15)]
        return [float(t) for t in np.median(times, axis=0)]

    def launching(self, call: Callable[[], Any], calls: int = CALLS) -> float:
        """Time of a call among several that are launched one after the other."""
        call()

        def several() -> None:
            for _ in range(calls):
                call()

        return min(self._turn(several, calls) for _ in range(2 if self.quick else 5))

    def _recorded(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """Several calls as one graph; what a first call compiles and copies is not in it."""
        torch, graph = self.torch, self.torch.cuda.CUDAGraph()
        with torch.cuda.stream(torch.cuda.Stream()):
            call()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            for _ in range(CALLS):
                call()
        graph.replay()
        return graph.replay

    def _turn(self, work: Callable[[], Any], calls: int) -> float:
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch.cuda.synchronize()
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / calls

    def waiting(self, call: Callable[[], Any]) -> float:
        """Time of a single call, from the empty queue to the end of its work."""
        torch, times = self.torch, []
        for _ in range(10):
            torch.cuda.synchronize()
            start = perf_counter()
            call()
            torch.cuda.synchronize()
            times.append(perf_counter() - start)
        return min(times)

    def add(self, row: Row) -> None:
        if row.limit:
            row.of_limit = row.ours / row.limit
        row.ratio = row.theirs / row.ours if row.theirs else None
        self.rows.append(row)
        print(line(row), row.note, flush=True)

    def time(
        self, what: str, call: Callable[[], Any], limit: float, limit_of: str, **words: Any
    ) -> Row:
        """Time a call in milliseconds beside its limit in seconds."""
        return self.compare(what, self.seconds(call), limit, limit_of, **words)

    def compare(self, what: str, ours: float, limit: float, limit_of: str, **words: Any) -> Row:
        """A row of a time and its limit, both in seconds."""
        share = words.pop("share", None)
        row = Row(what, unit="ms", ours=1e3 * ours, limit=1e3 * limit, **words)
        row.limit_of = limit_of
        if share is not None:
            row.target, row.reached = f"≥ {share:.0%} of the limit", row.limit >= share * row.ours
        self.add(row)
        return row


def histograms(rows: int) -> np.ndarray:
    """Rows of a Dirichlet distribution: many small values and some large ones."""
    X = np.random.default_rng(0).gamma(0.5, size=(rows, FEATURES))
    return X / X.sum(axis=1, keepdims=True)


def checked(race: Race, fitted: Any, X: np.ndarray) -> str:
    """Errors beside the processor in both precisions, in words."""
    errors = []
    for dtype in TOLERANCE:
        rows = race.torch.asarray(X, dtype=getattr(race.torch, dtype), device="cuda")
        with record_paths() as paths:
            Z = fitted.transform(rows)
        assert paths == [f"gpu:{fitted.spec_.family}"], paths
        assert Z.is_cuda
        wanted = apply(fitted.spec_, rows.double().cpu().numpy())
        error = np.abs(Z.double().cpu().numpy() - wanted).max() / np.abs(wanted).max()
        assert error < TOLERANCE[dtype], (type(fitted).__name__, dtype, error)
        errors.append(f"{error:.1g} in {dtype}")
    return f"error {', '.join(errors)}"


def maps(race: Race) -> None:
    """Every kind of map."""
    few = histograms(50)
    X = race.torch.asarray(np.tile(few, (ROWS // 50, 1)).astype(np.float32), device="cuda")
    for name, feature_map in ADDITIVE.items():
        fitted = feature_map.fit(few)
        error, spec = checked(race, fitted, few), fitted.spec_
        formula = race.launching(partial(evaluate, spec, X), 3)
        size = X.nbytes + apply(spec, X).nbytes
        alone = race.waiting(partial(fitted.transform, X))
        note = f"{error}; transform and its checks, waited for: {1e3 * alone:.2f} ms"
        words = {"peer": "array-API formula", "theirs": 1e3 * formula, "note": note}
        call = partial(apply, spec, X)
        race.time(name, call, size / race.copy, "copy", share=0.5, **words)
    raw = (255 * X / X.max()).to(race.torch.uint8)
    spec = km.HomogeneousMap("chi2", 5).fit(raw[:50].cpu().numpy()).spec_
    size = raw.nbytes + apply(spec, raw).nbytes
    call = partial(apply, spec, raw)
    race.time("HomogeneousMap χ², 5 columns, bytes", call, size / race.copy, "copy", share=0.5)
    for kind in ("uniform", "kmeans"):
        encode_rows(race, kind, few, X)
    joint(race, few, X)


def encode_rows(race: Race, kind: str, few: np.ndarray, X: Any) -> None:
    """Codes of two bytes."""
    anchors = km.AnchorMap("chi2", 40, anchors=kind, n_neighbors=2).fit(few)
    with patch.object(dispatch, "launch_encode", wraps=dispatch.launch_encode) as launch:
        codes = anchors.encode(X).values
    assert np.array_equal(codes[:50].cpu(), anchors.encode(few.astype(np.float32)).values)
    call = partial(dispatch.launch_encode, *launch.call_args.args)
    alone = race.waiting(partial(anchors.encode, X))
    note = f"equal to the processor's; encode and its checks, waited for: {1e3 * alone:.2f} ms"
    size = X.nbytes + codes.nbytes
    name = f"AnchorMap.encode, two bytes, {kind}"
    race.time(name, call, size / race.copy, "copy", note=note)


def joint(race: Race, few: np.ndarray, X: Any) -> None:
    """Joint maps, beside their matrix products; structured ones beside dense products."""
    for name, feature_map, arithmetics, share in (
        ("RandomFourierMap, 1000 columns", km.RandomFourierMap(n_components=1000), PRECISIONS, 0.7),
        ("RandomFourierMap, 4000 columns", km.RandomFourierMap(n_components=4000), PRECISIONS, 0.7),
        ("CompressiveFourierMap, 100 → 2000", km.CompressiveFourierMap(100, 2000), PRECISIONS, 0.7),
        ("ExponentialMap, 300 columns", km.ExponentialMap(km.ChebyshevMap(10), 300), SINGLE, 1.0),
        ("ExponentialMap, 1000 columns", km.ExponentialMap(km.ChebyshevMap(10), 1000), SINGLE, 1.0),
    ):
        fitted = feature_map.set_params(random_state=0).fit(few)
        error, shapes = checked(race, fitted, few), list(products(fitted.spec_, FEATURES))
        for arithmetic in arithmetics:
            with precision(arithmetic):
                alone = [product(race, *shape) for shape in shapes]
                call = partial(apply, fitted.spec_, X)
                ours, *theirs = race.beside(call, *alone)
                what = "product " + " and ".join(f"{a} × {b}" for a, b in shapes)
                note = f"{error}; launched anew: {1e3 * race.launching(call):.2f} ms"
                words = {"share": share, "note": note}
                race.compare(f"{name}, {arithmetic}", ours, sum(theirs), what, **words)


def products(spec: Any, width: int) -> Iterator[tuple[int, int]]:
    """Shapes (inner, outer) of the dense products that a joint map stands for."""
    if spec.family == "chain":
        for part in spec.parts:
            yield from products(part, width)
            width = stage_columns(part, width)
    elif spec.family in ("fourier", "projection"):
        yield width, n_outputs(spec)


def product(race: Race, inner: int, outer: int) -> Callable[[], Any]:
    """A dense product of the precision that is chosen."""
    A, B = (race.torch.rand(*s, device="cuda") for s in ((ROWS, inner), (inner, outer)))
    return lambda: multiply(A, B)


def prediction(race: Race) -> None:
    """Ten classes, 784 features."""
    X = histograms(2000)
    y = np.argsort(np.argsort(X[:, 0] + X[:, 1])) // 200
    model = km.AdditiveSVC(km.SplineMap(), C=10.0, tol=0.1, max_iter=3).fit(X, y)
    rows = race.torch.asarray(np.tile(X, (ROWS // 2000, 1)).astype(np.float32), device="cuda")
    wanted = model.decision_function(X.astype(np.float32))
    with record_paths() as paths:
        model.decision_function(rows[:2000])
    assert paths == ["gpu:sums"], paths
    table, longer = model.predictor_.score_table, rows.repeat(10, 1)
    for what, many, arithmetic in (
        ("scores of 10 classes", rows, "float32"),
        ("scores of 10 classes, 200,000 rows", longer, "float32"),
        ("scores of 10 classes, tf32", rows, "tf32"),
        ("scores of 10 classes, 200,000 rows, tf32", longer, "tf32"),
    ):
        with precision(arithmetic):
            found = model.decision_function(rows[:2000]).cpu().numpy()
            error = np.abs(found - wanted).max() / np.abs(wanted).max()
            assert error < (TOLERANCE["float32"] if arithmetic == "float32" else 5e-4), error
            alone = race.waiting(partial(model.decision_function, many))
            call = partial(sums_array_api, table, many, gpu.ANY)
            note = f"error {error:.1g}; launched anew: {1e3 * race.launching(call):.2f} ms; "
            note += f"decision_function, waited for: {1e3 * alone:.2f} ms"
            race.time(what, call, many.nbytes / race.copy, "copy", share=0.3, note=note)


def streaming(race: Race) -> None:
    """Kernel ridge regression on ten million rows from host memory."""
    rows = 1_000_000 if race.quick else 10_000_000
    rng = np.random.default_rng(0)
    X = rng.random((rows, 28), dtype=np.float32)
    y = (np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * X[:, 3]).astype(np.float32)
    beside_the_processor(race, X[:20_000], y[:20_000])
    for size, arithmetic, most in ((10_000, "tf32", 20.0), (4_000, "float64", 12.0)):
        _ridge(size, arithmetic).fit(X[:50_000], y[:50_000])  # compiles the kernels
        times = []
        for n in (rows // 10, rows // 2, rows):
            start = perf_counter()
            model = _ridge(size, arithmetic).fit(X[:n], y[:n])
            times.append(perf_counter() - start)
            if arithmetic == "tf32" and n == rows // 10:
                beside_float64(race, model, X[:n], y[:n])
        score = model.score(X[:20_000], y[:20_000])
        # Of the time that grows: the solve and the start do not.
        linear = (times[2] - times[0]) / (times[1] - times[0]) / (0.9 / 0.4)
        note = f"R² {score:.5f}; {times[0]:.1f}, {times[1]:.1f} s for a tenth and a half of the "
        note += f"rows: growth {linear:.2f} of a linear one"
        what = f"StreamingRidge, {rows:,} × 28, D = {size:,}, {arithmetic}, solve included"
        target = f"≤ {most:g} s"
        race.add(Row(what, ours=times[2], target=target, reached=times[2] <= most, note=note))


def beside_the_processor(race: Race, X: np.ndarray, y: np.ndarray) -> None:
    """Coefficients in float64 on both; rows too, lest the matrix of the map be a float32 one."""
    X, size = X.astype(np.float64), 1000 if race.quick else 4000
    there = _ridge(size, "float64").fit(X, y)
    here = _ridge(size, None, device=None).fit(X, y)
    gap = float(np.abs(there.coef_ - here.coef_).max() / np.abs(here.coef_).max())
    what = (
        f"StreamingRidge, {len(X):,} rows, D = {size:,}, float64: coefficients beside the processor"
    )
    race.add(Row(what, unit="(relative)", ours=gap, target="≤ 1e-8", reached=gap <= 1e-8))


def beside_float64(race: Race, model: km.StreamingRidge, X: np.ndarray, y: np.ndarray) -> None:
    """R² of a fit in TF32 beside one in float64."""
    wide = _ridge(model.feature_map.n_components, "float64").fit(X, y)
    scores = [float(m.score(X[:20_000], y[:20_000])) for m in (model, wide)]
    gap, note = abs(scores[0] - scores[1]), f"R² {scores[0]:.5f} and {scores[1]:.5f}"
    what = f"StreamingRidge, {len(X):,} rows, D = {model.feature_map.n_components:,}: "
    what += "R² with TF32 beside float64"
    target = "≤ 1e-3"
    race.add(
        Row(what, unit="(difference)", ours=gap, target=target, reached=gap <= 1e-3, note=note)
    )


def _ridge(size: int, arithmetic: str | None, device: str | None = "cuda") -> km.StreamingRidge:
    features = km.RandomFourierMap("gaussian", n_components=size, random_state=0)
    return km.StreamingRidge(1e-3, feature_map=features, device=device, precision=arithmetic)


PARTS = {"maps": maps, "prediction": prediction, "streaming": streaming}


def save(race: Race, path: Path = RESULTS / "device.json") -> Path:
    """Write the rows, in their old order; those of parts that were not run this time stay."""
    kept = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else []
    rows = {row["what"]: row for row in [*kept, *(asdict(row) for row in race.rows)]}
    record = {
        "name": "device",
        "date": datetime.now(UTC).date().isoformat(),
        **race.gpu,
        "rows": list(rows.values()),
    }
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--quick", action="store_true", help="smaller, and results are not kept")
    arguments = parser.parse_args()
    race = Race(arguments.quick)
    print(f"{race.gpu['gpu']}: copies at {race.copy / 1e12:.2f} TB/s", flush=True)
    for name in arguments.parts or PARTS:
        PARTS[name](race)
    if not arguments.quick:
        print(save(race), *render.write_all(), sep="\n")


if __name__ == "__main__":
    main()
