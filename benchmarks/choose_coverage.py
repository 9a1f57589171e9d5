"""Coverage of the bound of `km.choose`: chosen on some rows, checked on pairs of others.

For each dataset, kernel and seed: some rows are given to `choose` with a tolerance, and the chosen
map's largest error over all pairs of as many fresh rows is compared with that tolerance. The
bound is to hold in 95 % of the cases.

    python -m benchmarks.choose_coverage --data FOLDER                  # everything, one process
    python -m benchmarks.choose_coverage --data FOLDER --dataset usps --kernel chi2 --seeds 10
    python -m benchmarks.choose_coverage --merge                        # count what is there

Each dataset and kernel has a file of its own, written after every seed: the second line can run
many times at once, and a run that was ended goes on where it stopped (cases of another version of
`choose` are computed anew). ``--list`` prints all pairs:

    python -m benchmarks.choose_coverage --list | xargs -P 16 -L 1 \\
        python -m benchmarks.choose_coverage --data FOLDER --seeds 10
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

import kernelmaps as km
from kernelmaps.evaluation import choice as chooser
from kernelmaps.evaluation.candidates import fit_kernel
from kernelmaps.exceptions import ToleranceError

from . import machine
from .datasets import load as load_dataset
from .harness import RESULTS

DATASETS = ("spambase", "pendigits", "letter", "cifar10_hist", "usps")
# Two additive kernels, a stationary and an exponentiated one, with relative errors,
# |difference| / √(k(x, x) k(y, y)): these do not depend on the data's scale.
TOLERANCES = {"chi2": 0.02, "intersection": 0.05, "gaussian": 0.15, "exp_chi2": 0.15}
ROWS = 300  # held out by choose, and as many fresh ones
SUMMARY = RESULTS / "choose_coverage.json"
CODE = hashlib.sha256(Path(chooser.__file__).read_bytes()).hexdigest()[:12]


def rows_of(name: str, folder: str | None) -> Any:
    """Training rows of a dataset (one descriptor of those with two)."""
    data = load_dataset(name, folder=folder)
    X = data.X_train[:, data.columns["hog"]] if "hog" in data.columns else data.X_train
    return X if sparse.issparse(X) else np.asarray(X)


def one_case(X: Any, kernel: str, seed: int, rows: int = ROWS) -> dict[str, Any]:
    """Choose on 2 × `rows` rows, the halves held out in turns, and look at `rows` fresh ones."""
    order = np.random.default_rng(seed).permutation(X.shape[0])[: 3 * rows]
    X = normalize(X[order].astype(np.float64), norm="l1")
    given, fresh = X[: 2 * rows], X[2 * rows :]
    truth = fit_kernel(kernel, given)
    start = time.perf_counter()
    try:
        choice = km.choose(
            given, truth, max_error=TOLERANCES[kernel], error="relative", random_state=seed
        )
    except ToleranceError as error:
        return {"held": None, "words": str(error), "seconds": time.perf_counter() - start}
    seconds = time.perf_counter() - start
    Z, exact = choice.map.transform(fresh), truth(fresh)
    inner = Z @ Z.T
    inner = inner.toarray() if sparse.issparse(inner) else inner
    root = np.sqrt(np.diag(exact))
    worst = float(np.max(np.abs(inner - exact) / (root[:, None] * root)))
    return {
        "chosen": choice.evidence.label,
        "columns": choice.evidence.columns,
        "held_out_max": choice.evidence.max,
        "bound": choice.evidence.bound,
        "fresh_max": worst,
        "held": bool(worst <= TOLERANCES[kernel]),
        "seconds": round(seconds, 2),
    }


def run_part(name: str, kernel: str, options: argparse.Namespace) -> None:
    """All seeds of one dataset and kernel that are not there yet, written one by one."""
    path = options.parts / f"{name}-{kernel}.json"
    cases = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    cases = [case for case in cases if case.get("code") == CODE]
    missing = sorted(set(range(options.seeds)) - {case["seed"] for case in cases})
    X = rows_of(name, options.data) if missing else None
    for seed in missing:
        found = one_case(X, kernel, seed, options.rows)
        where = {"data": name, "kernel": kernel, "seed": seed, "rows": options.rows, "code": CODE}
        cases.append({**where, **found})
        print(json.dumps(cases[-1]), flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")
        draft.replace(path)


def merge(parts: Path, out: Path) -> dict[str, Any]:
    """Count all parts; a case in which nothing was chosen has no bound and is counted apart."""
    cases = [
        case
        for path in sorted(parts.glob("*.json"))
        for case in json.loads(path.read_text(encoding="utf-8"))
    ]
    held = [case["held"] for case in cases if case["held"] is not None]
    summary = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine.description(),
        "tolerances": TOLERANCES,
        "held": sum(held),
        "of": len(held),
        "nothing_chosen": len(cases) - len(held),
        "cases": cases,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    for kernel in TOLERANCES:
        of_kernel = [case["held"] for case in cases if case["kernel"] == kernel]
        print(f"{kernel}: held {of_kernel.count(True)}, not {of_kernel.count(False)}")
    share = f" ({100 * np.mean(held):.1f} %)" if held else ""
    print(f"held in {sum(held)} of {len(held)} cases{share}, {out}")
    return summary


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--dataset", choices=DATASETS, action="append")
    parser.add_argument("--kernel", choices=list(TOLERANCES), action="append")
    parser.add_argument("--seeds", type=int, default=10, help="how many: 0, 1, …")
    parser.add_argument("--rows", type=int, default=ROWS, help="held out, and fresh ones")
    parser.add_argument("--parts", type=Path, default=RESULTS / "choose_coverage")
    parser.add_argument("--out", type=Path, default=SUMMARY)
    parser.add_argument("--list", action="store_true", help="print one line per part")
    parser.add_argument("--merge", action="store_true", help="only count the parts there are")
    options = parser.parse_args(arguments)
    chosen = list(product(options.dataset or DATASETS, options.kernel or TOLERANCES))
    if options.list:
        print("\n".join(f"--dataset {name} --kernel {kernel}" for name, kernel in chosen))
        return
    if not options.merge:
        for name, kernel in chosen:
            run_part(name, kernel, options)
    if options.merge or len(chosen) > 1:
        merge(options.parts, options.out)


if __name__ == "__main__":
    main()
