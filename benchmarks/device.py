"""Maps on a GPU, through the array API: the same formulas, another library, the data's own device.

Two steps, so that the machine with the GPU needs no more than NumPy, SciPy and torch::

    python -m benchmarks.device prepare FOLDER   # fit maps here, store specs, rows and results
    python -m benchmarks.device run FOLDER       # there: equality, then speed beside the CPU
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from kernelmaps.engine import Spec, apply, record_paths

ROWS, FEATURES = 20_000, 784
# Cosines of large angles lose the digits that the angle has before the point.
TOLERANCE = {"float32": 2e-5, "float64": 1e-10}


def prepare(folder: Path) -> None:
    """Fit one map of each kind to histograms; store what the other machine needs."""
    import kernelmaps as km

    folder.mkdir(parents=True, exist_ok=True)
    X = np.random.default_rng(0).gamma(0.5, size=(50, FEATURES))
    X /= X.sum(axis=1, keepdims=True)
    maps = {
        "homogeneous": km.HomogeneousMap("chi2", 5),
        "designed": km.DesignedMap("chi2", 5),
        "anchor": km.AnchorMap("chi2", 40, n_neighbors=2, rank=5),
        "chebyshev": km.ChebyshevMap(10),
        "series": km.SeriesMap(10),
        "spline": km.SplineMap(),
        "fourier": km.RandomFourierMap("gaussian", 1000, random_state=0),
        "exponential": km.ExponentialMap(n_components=300, random_state=0),
    }
    np.save(folder / "rows.npy", X)
    for name, feature_map in maps.items():
        fitted = feature_map.fit(X)
        fitted.spec_.save(folder / f"{name}.kmap")
        np.save(folder / f"{name}.npy", np.asarray(fitted.transform(X)))
        print(name, fitted.spec_)


def run(folder: Path) -> list[dict[str, Any]]:
    """Compare with the stored results on the GPU, then time both devices on larger data."""
    import torch

    rows = np.load(folder / "rows.npy")
    large = np.tile(rows, (ROWS // len(rows), 1)).astype(np.float32)
    records = []
    for path in sorted(folder.glob("*.kmap")):
        spec, wanted = Spec.load(path), np.load(path.with_suffix(".npy"))
        record: dict[str, Any] = {"map": path.stem, "device": torch.cuda.get_device_name()}
        for dtype in ("float32", "float64"):
            X = torch.asarray(rows, dtype=getattr(torch, dtype), device="cuda")
            with record_paths() as paths:
                Z = apply(spec, X)
            assert paths == [f"gpu:{spec.family}"], paths
            assert Z.is_cuda
            error = float(np.abs(Z.cpu().numpy() - wanted).max() / np.abs(wanted).max())
            assert error < TOLERANCE[dtype], (path.stem, dtype, error)
            record[f"error_{dtype}"] = error
        on_gpu = torch.asarray(large, device="cuda")
        record["gpu_ms"] = 1e3 * _best(partial(apply, spec, on_gpu), torch.cuda.synchronize)
        on_cpu = torch.asarray(large[: ROWS // 10])
        record["cpu_formula_ms"] = 1e4 * _best(partial(apply, spec, on_cpu), lambda: None, 3)
        written = 4 * ROWS * wanted.shape[1]
        record["gpu_output_GB_per_s"] = written / record["gpu_ms"] / 1e6
        records.append(record)
        print(json.dumps(record), flush=True)
    return records


def _best(call: Any, wait: Any, repeats: int = 10) -> float:
    call()
    wait()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        call()
        wait()
        times.append(perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    {"prepare": prepare, "run": run}[sys.argv[1]](Path(sys.argv[2]))
