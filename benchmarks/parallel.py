"""Independent jobs of a reproduction: run some at a time, each leaves a JSON file.

A script of this kind has ``jobs()``, a list of plain dicts, and ``run(job, folder)``, which
computes one with the datasets of a folder and returns plain values. A job whose file is there is
not run again, so that any number of processes and machines can share the work, and files of several
machines are put together by copying them into one folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from kernelmaps._util import storage

from . import machine

__all__ = ["compute", "finished"]

_SINGLE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def compute(
    module: str, jobs: Iterable[dict[str, Any]], folder: str | None, results: Path, workers: int
) -> None:
    """Run those jobs of a script that have no file yet, in the order given.

    Parameters
    ----------
    module : str
        Name of the script, ``benchmarks.…``.
    jobs : iterable of dict
        Long ones first, so that no worker is left with one at the end.
    folder : str or None
        Of the datasets.
    results : Path
        Folder of the files.
    workers : int
        Processes, one thread each; 0 runs nothing.
    """
    if workers == 0:
        return
    results.mkdir(parents=True, exist_ok=True)
    left = [job for job in jobs if not _file(results, job).exists()]
    if workers == 1:
        for job in left:
            _tell(_one(module, job, folder, results))
        return
    os.environ.update(dict.fromkeys(_SINGLE, "1"))  # of the workers that are started now
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(_one, module, job, folder, results) for job in left]
        for future in as_completed(waiting):
            _tell(future.result())


def finished(results: Path) -> list[dict[str, Any]]:
    """All jobs of a folder, with what they found: "job", "found", "seconds"."""
    files = sorted(results.glob("*.json")) if results.exists() else []
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def _one(module: str, job: dict[str, Any], folder: str | None, results: Path) -> dict[str, Any]:
    """Run one job; a failure is told, and leaves no file."""
    start, used = perf_counter(), process_time()
    try:
        found = import_module(module).run(job, folder)
    except Exception as error:
        return {"job": job, "error": repr(error)}
    here = machine.description()
    record = {
        "job": job,
        "found": found,
        "seconds": perf_counter() - start,
        "processor": process_time() - used,
        "machine": {name: here[name] for name in ("processor", "threads", "kernelmaps")},
    }
    storage.write_file(_file(results, job), json.dumps(record).encode())
    return record


def _tell(record: dict[str, Any]) -> None:
    words = " ".join(str(value) for value in record["job"].values())
    if "error" in record:
        print(f"{words}: failed, {record['error']}", flush=True)
    else:
        print(f"{words}: {str(record['found'])[:100]} ({record['seconds']:.0f} s)", flush=True)


def _file(results: Path, job: dict[str, Any]) -> Path:
    text = json.dumps(job, sort_keys=True)
    return results / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"
