"""Does `km.choose` hold its promise? Chosen on some rows, checked on pairs of others.

For each dataset, kernel and seed: some rows are given to `choose` with a tolerance, and the chosen
map's largest error over all pairs of as many fresh rows is compared with that tolerance. The
promise is that it stays within it in 95 % of the cases.

    python -m benchmarks.choose_promise --data FOLDER --seeds 2
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

import kernelmaps as km
from kernelmaps.evaluation.candidates import fitted_to_data
from kernelmaps.exceptions import ToleranceError

DATASETS = ("spambase", "pendigits", "letter", "cifar10_hist", "usps")
# Relative errors, |difference| / √(k(x, x) k(y, y)): these do not depend on the data's scale.
TOLERANCES = {"chi2": 0.02, "intersection": 0.05, "gaussian": 0.15}
ROWS = 300  # held out by choose, and as many fresh ones


def rows_of(name: str, folder: str | None) -> Any:
    data = km.datasets.load(name, folder=folder)
    X = data.X_train[:, data.columns["hog"]] if "hog" in data.columns else data.X_train
    return X if sparse.issparse(X) else np.asarray(X)


def one_case(X: Any, kernel: str, seed: int) -> dict[str, Any]:
    order = np.random.default_rng(seed).permutation(X.shape[0])
    given, fresh = order[: 2 * ROWS], order[2 * ROWS : 3 * ROWS]
    X = normalize(X[np.sort(order[: 3 * ROWS])].astype(np.float64), norm="l1")
    inverse = np.argsort(np.argsort(order[: 3 * ROWS]))
    given, fresh = X[inverse[: 2 * ROWS]], X[inverse[2 * ROWS :]]
    truth = fitted_to_data(kernel, given)
    start = time.perf_counter()
    try:
        choice = km.choose(
            given, truth, max_error=TOLERANCES[kernel], error="relative", random_state=seed
        )
    except ToleranceError as error:
        return {"held": None, "words": str(error)}
    seconds = time.perf_counter() - start
    Z, exact = choice.map.transform(fresh), truth(fresh)
    product = Z @ Z.T
    product = product.toarray() if sparse.issparse(product) else product
    root = np.sqrt(np.diag(exact))
    worst = float(np.max(np.abs(product - exact) / (root[:, None] * root)))
    return {
        "chosen": choice.evidence.label,
        "columns": choice.evidence.columns,
        "bound": choice.evidence.bound,
        "fresh_max": worst,
        "held": bool(worst <= TOLERANCES[kernel]),
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", default="benchmarks/results/choose_promise.json")
    options = parser.parse_args()
    cases = []
    for name in DATASETS:
        X = rows_of(name, options.data)
        for kernel in TOLERANCES:
            for seed in range(options.seeds):
                case = {"data": name, "kernel": kernel, "seed": seed, **one_case(X, kernel, seed)}
                cases.append(case)
                print(json.dumps(case), flush=True)
    held = [case["held"] for case in cases if case["held"] is not None]
    print(f"held in {sum(held)} of {len(held)} cases ({100 * np.mean(held):.1f} %)")
    summary = {"tolerances": TOLERANCES, "held": sum(held), "of": len(held), "cases": cases}
    os.makedirs(os.path.dirname(options.out) or ".", exist_ok=True)
    with open(options.out, "w", encoding="utf-8") as stream:
        json.dump(summary, stream, indent=1)


if __name__ == "__main__":
    main()
