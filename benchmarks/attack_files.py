"""Attack model files: structural mutations with right checksums, in child processes.

Every mutant is loaded and, if that succeeds, used. Allowed is one of two ends: it is refused with
`FileFormatError`, or it works. The driver warms up (imports, compiled loops), then forks workers
with a limit of memory; a worker that ends is replaced, and the mutant that ended it is named.

    PYTHONPATH=tests/support python -m benchmarks.attack_files --count 20000 --seed 1

prints how many mutants ended in which way, and exits with 1 if one ended badly. The originals are
the examples of the tests.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import json
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from fitted_examples import (
    MAPS,
    MODELS,
    fitted_map,
    fitted_map_of_the_plane,
    fitted_model,
    labels,
    rows,
    structured_projection,
)
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import LinearSVC

import kernelmaps as km
from kernelmaps._util import storage
from kernelmaps.engine.table import CODE
from kernelmaps.exceptions import FileFormatError

BATCH = 250  # mutants of one worker
MEMORY = 2**31  # bytes that a worker may take beyond what it begins with
SECONDS = 60  # that one mutant may take

# ---- what is mutated ----------------------------------------------------------------------------


def originals() -> dict[str, object]:
    """Fitted examples of all families and models, single-threaded."""
    X, more = rows(), {}
    for name in MAPS:
        more[name] = fitted_map(name).set_params(n_jobs=1)
    for name in MODELS:
        more[name] = fitted_model(name)
    more |= {
        "band of a spline": km.SplineMap(order=0, n_jobs=1).fit(X),
        "spline of CSR": km.SplineMap(n_jobs=1).fit(sparse.csr_matrix(X)),
        "anchors, linear": km.AnchorMap(n_anchors=6, n_neighbors=2, n_jobs=1).fit(X),
        "anchors, kmeans": km.AnchorMap(n_anchors=6, anchors="kmeans", n_jobs=1).fit(X),
        "octaves": km.DesignedMap(n_components=2, method="minimax", n_jobs=1).fit(X),
        "clipped": km.DesignedMap(n_components=3, n_jobs=1).fit(X),
        "hadamard": structured_projection(6, 4),
        "dct": km.RandomOrthoprojector(4, method="dct", n_jobs=1).fit(X),
        "paired": km.RandomFourierMap(n_components=8, form="paired", n_jobs=1).fit(X),
        "joint": fitted_map_of_the_plane().set_params(n_jobs=1),
        "spec": km.SplineMap().fit(X).spec_,
        "chain": km.ExponentialMap(n_components=8).fit(X).spec_,
    }
    anchors = more["AnchorMap"]
    more |= {
        "codes": km.AdditiveSVR(anchors, n_jobs=1).fit(anchors.encode(X), X[:, 0]),
        "table": km.AdditiveClassifier(interactions=1, n_jobs=1).fit(X, labels() == "first"),
        "several kernels": km.StreamingRidge(
            alpha=[0.1, 1.0],
            feature_map=[(slice(0, 3), km.ChebyshevMap(3)), ([3, 4, 5], StandardScaler())],
            n_components=2,
        ).fit(X, X[:, 0]),
        "scaled": make_pipeline(
            StandardScaler(), MinMaxScaler(), MaxAbsScaler(), Normalizer(), LinearSVC()
        ).fit(X, labels()),
        "pipeline": make_pipeline(Normalizer("l1"), km.HomogeneousMap(), LinearSVC()).fit(
            X, labels()
        ),
    }
    frame = mixed_frame()
    more |= {
        "frame": km.AdditiveRegressor(interactions=1, n_jobs=1).fit(frame, X[:, 0]),
        "frame, classes": km.AdditiveClassifier(interactions=1, n_jobs=1).fit(
            frame, labels() == "first"
        ),
        "frame, levels": km.AdditiveRegressor(n_jobs=1).fit(many_levels(), rows(780)[:, 2]),
    }
    for model in more.values():
        _one_thread(model)
    return more


def mixed_frame(n: int = 40) -> object:
    """Numbers, words and gaps, as in a table."""
    import pandas as pd

    numbers = np.where(np.arange(n) % 7 == 3, np.nan, rows(n)[:, 0])
    return pd.DataFrame({"size": numbers, "colour": labels(n), "share": rows(n)[:, 1]})


def many_levels() -> object:
    """The same columns, with 260 levels of three rows each."""
    return mixed_frame(780).assign(colour=[f"colour {k // 3}" for k in range(780)])


def _one_thread(model: object) -> None:
    for name in getattr(model, "get_params", dict)():
        if name.split("__")[-1] == "n_jobs":
            model.set_params(**{name: 1})


# ---- how ----------------------------------------------------------------------------------------

WILD = [0, 1, -1, 2, 7, 255, 10**6, 10**9, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63, -(2**63),
        10**30, 0.5, -0.5, 1e-320, 1e308, -1e308, float("nan"), float("inf"), True, False, None,
        "", "x", "matrix", "chain", "piecewise", [], {}, [1, 2], {"$": "array", "name": "x"},
        {"$": "tuple", "items": []}, {"$": "object", "class": "Spec", "state": {}}]  # fmt: skip
DTYPES = ["<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "|u1", "<u2", "<u8", "|b1"]


class Mutator:
    """Draws mutants of a container (kind, header, arrays)."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def pick(self, values):
        return values[int(self.rng.integers(len(values)))]

    def mutant(self, kind: str, header: dict, arrays: dict) -> bytes:
        """The bytes of a changed file, with its checksum."""
        header, arrays = copy.deepcopy(header), dict(arrays)
        for _ in range(self.pick([1, 1, 1, 2, 3])):
            if arrays and self.rng.random() < 0.55:
                self.change_array(arrays)
            else:
                self.change_tree(header)
        try:
            data = storage.to_bytes(kind, header, arrays)
        except (TypeError, ValueError, RecursionError):
            return storage.to_bytes(kind, {}, arrays)
        return self.change_container(data) if self.rng.random() < 0.05 else data

    def change_array(self, arrays: dict) -> None:
        name = self.pick(sorted(arrays))
        ways = [self.poke, self.poke, self.poke, self.cut, self.reshape, self.retype, self.shift]
        way = self.pick([*ways, self.swap, self.drop])
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            way(arrays, name)

    def poke(self, arrays, name):
        array = np.array(arrays[name])
        if not array.size:
            return
        flat, place = array.reshape(-1), self.pick([0, -1, int(self.rng.integers(array.size))])
        value = self.pick([v for v in WILD if isinstance(v, int | float)])
        if array.dtype.kind in "iu":
            ends = np.iinfo(array.dtype)
            value = 0 if value != value else min(max(value, ends.min), ends.max)
            value = self.pick([value, int(flat[place]) + self.pick([-1, 1, 5])])
            value = min(max(int(value), ends.min), ends.max)
        elif abs(value) > 1e308:
            value = 1e308
        flat[place] = value
        arrays[name] = array

    def cut(self, arrays, name):
        array = arrays[name]
        if array.ndim:
            arrays[name] = self.pick(
                [array[:-1], array[:0], array[:1], np.concatenate([array] * 2)]
            )

    def reshape(self, arrays, name):
        array = arrays[name]
        arrays[name] = self.pick([array.ravel(), array[None], array[..., None], array.T.copy()])

    def retype(self, arrays, name):
        arrays[name] = arrays[name].astype(self.pick(DTYPES))

    def shift(self, arrays, name):
        factor = self.pick([-1, 0, 2, 1e-300, 1e300, 1.5])
        array = arrays[name]
        if array.dtype.kind in "iu":
            ends = np.iinfo(array.dtype)
            other = np.clip(array.astype(np.float64) + self.pick([-1, 1, 100]), ends.min, ends.max)
        else:
            other = array * factor
        arrays[name] = self.pick([other.astype(array.dtype), np.flip(array).copy()])

    def swap(self, arrays, name):
        other = self.pick(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]

    def drop(self, arrays, name):
        found = arrays.pop(name)
        if self.rng.random() < 0.3:
            arrays[f"{name}x"] = found

    def change_tree(self, header: dict) -> None:
        places = list(_places(header))
        parent, key = self.pick(places)
        way = self.rng.random()
        if way < 0.45:
            parent[key] = copy.deepcopy(self.pick(WILD))
        elif way < 0.6:
            number = isinstance(parent[key], int | float) and not isinstance(parent[key], bool)
            parent[key] = parent[key] + self.pick([-1, 1, 0.5, 100]) if number else "?"
        elif way < 0.75:
            del parent[key]
        elif way < 0.9:
            other, place = self.pick(places)
            parent[key] = copy.deepcopy(other[place])
        elif isinstance(parent, dict):
            parent[self.pick(["x", "_fast", "spec_", "$", "transform", "params"])] = parent[key]
        else:
            deep = parent[key]
            for _ in range(self.pick([3, 70])):
                deep = [deep]
            parent[key] = deep

    def change_container(self, data: bytes) -> bytes:
        """Declared types, shapes and places of the arrays."""
        body = data[storage._PREFIX.size :]
        length = storage._PREFIX.unpack_from(data)[2]
        head = json.loads(body[:length])
        if head["arrays"]:
            item = self.pick(head["arrays"])
            key = self.pick(["dtype", "shape", "offset", "name"])
            item[key] = self.pick([*WILD, [10**12], [2**40, 2**40], [-1], "<f16", "|O"])
        text = json.dumps(head).encode()
        rest = body[storage._align(length) :]
        whole = text + b" " * (storage._align(len(text)) - len(text)) + rest
        digest = storage.hashlib.sha256(whole).digest()
        return storage._PREFIX.pack(storage.MAGIC, storage.VERSION, len(text), digest) + whole


def _places(node):
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(value, dict | list):
            yield from _places(value)


# ---- what is done with a mutant -----------------------------------------------------------------


LEARNING = ("partial_fit", "refit", "merge")
"""Methods that go on learning. They check the parameters, which anyone may set after loading."""
UNKNOWN = ("needs a proved absolute bound", "is code, and so not part of the model file")
"""What `row_certificate` says of a map whose file does not have what it needs."""
NOT_FINITE = ("Input contains NaN", "Input contains infinity", "the sums are not those of any rows")
"""What is said where weights or sums are so large that scores or equations overflow."""
SKIPPED = ("fit", "fit_transform", "fit_predict", "load", "from_bytes")
"""Methods that begin anew: nothing of the file but its parameters has a part in them."""


def uses(model: object, *, csr: bool = True, framed: bool = False):
    """All that a user does with a model, as (name, call): public attributes and methods.

    Its original takes CSR rows, or does not; or a frame.
    """
    if isinstance(model, km.engine.Spec):
        yield from _uses_of_spec(model)
        return
    if not hasattr(model, "n_features_in_") or model.n_features_in_ > 10**4:
        return
    X = rows(5, max(2, model.n_features_in_))[:, : model.n_features_in_]
    if framed:
        X = mixed_frame(5)
        X.columns = getattr(model, "feature_names_in_", X.columns)  # of any names
    yield "repr", lambda: repr(model)
    for name in sorted(name for name in dir(model) if not name.startswith("_")):
        # Methods of some losses raise AttributeError where they are looked up.
        if not callable(getattr(type(model), name, None)):
            yield name, lambda name=name: repr(getattr(model, name))
        elif not name.startswith("set_") and name not in (*SKIPPED, *LEARNING):
            yield name, lambda name=name: _call(model, name, X)
    if csr and not framed:
        call = "predict" if hasattr(model, "predict") else "transform"
        yield f"{call} of CSR", lambda: getattr(model, call)(sparse.csr_matrix(X))
    yield "_repr_html_", lambda: getattr(model, "_repr_html_", str)()
    yield "save", lambda: km.save(model, os.devnull)
    for name in LEARNING:
        if hasattr(type(model), name):
            yield name, lambda name=name: _call(_of_few_steps(model), name, X)


def _of_few_steps(model):
    """A copy that learns in few steps: the sums of a mutant may be badly conditioned."""
    model = copy.deepcopy(model)
    if isinstance(getattr(model, "max_iter", None), int):
        model.max_iter = min(model.max_iter, 50)
    return model


def _uses_of_spec(spec):
    yield "to_bytes", spec.to_bytes
    yield "hash", lambda: (spec.hash, spec.nbytes, repr(spec))
    if spec.family == "piecewise" and spec.numbers["binning"] == CODE:
        return  # it takes codes, which its map has checked
    width = next((d for d in (6, 2, 1) if _takes(spec, d)), None)
    if width is not None:
        yield "apply", lambda: km.engine.apply(spec, rows(5, max(width, 2))[:, :width])


def _call(model, name, X):
    """Call a method with what its parameters stand for."""
    method = getattr(model, name)
    classes = getattr(model, "classes_", None)
    y = np.zeros(5) if classes is None else np.resize(classes, 5)
    given = {"X": X, "x": X[:1], "y": y, "other": model, "alphas": [1.0],
             "times": [1.0]}  # fmt: skip
    if name in ("decode", "check_codes"):
        given["codes"] = model.encode(X)
    if name == "edit":
        given = {"term": 0, "effect": 0.0}
    if name == "chi2_similarity":
        given["Z"] = model.transform(X)
    known = inspect.signature(method).parameters
    result = method(**{key: value for key, value in given.items() if key in known})
    # What is shown of a result is computed when it is.
    return repr(result), getattr(result, "_repr_html_", str)()


def failures(model: object, **how) -> dict[str, str]:
    """Uses of a model that raise, by name."""
    found = {}
    for name, call in uses(model, **how):
        try:
            call()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


# Examples that take no sparse rows.
DENSE = (
    "several kernels", "scaled", "table", "AdditiveClassifier", "AdditiveRegressor",
    "AdditiveSurvival",
)  # fmt: skip


def judged(name: str, model: object, allowed: dict[str, str]) -> str:
    """Whether a model works as its original did, some of whose uses raise, too."""
    csr = name not in DENSE
    for use, what in failures(model, csr=csr, framed=name.startswith("frame")).items():
        in_words = use in LEARNING and what.startswith(("ValueError", "TypeError"))
        in_words |= use == "row_certificate" and any(words in what for words in UNKNOWN)
        in_words |= any(words in what for words in NOT_FINITE)
        if use not in allowed and not in_words:
            return f"use: {use}: {what}"[:300]
    return "works"


def _takes(spec, width):
    from kernelmaps.engine.apply import stage_columns

    try:
        return stage_columns(spec, width) < 10**6
    except ValueError:
        return False


def outcome(name: str, data: bytes, path: Path, allowed: dict[str, str]) -> str:
    """How a mutant ends: "refused", "works", or what went wrong."""
    path.write_bytes(data)
    try:
        model = km.load(path)
    except FileFormatError:
        return "refused"
    except BaseException as error:
        return f"load: {type(error).__name__}: {error}"[:200]
    try:
        return judged(name, model, allowed)
    except BaseException as error:
        if any(words in str(error) for words in NOT_FINITE):  # by an attribute that dir looks at
            return "works"
        return f"use: {type(error).__name__}: {error}"[:200]


# ---- workers ------------------------------------------------------------------------------------


def draw(files: dict[str, bytes], index: int, seed: int) -> tuple[str, bytes]:
    """Mutant number `index`: always the same for a seed."""
    rng = np.random.default_rng([seed, index])
    name = sorted(files)[index % len(files)]
    header, arrays = storage.from_bytes(files[name])
    kind = header.pop("kind")
    return name, Mutator(rng).mutant(kind, header, arrays)


def work(files: dict, span: range, seed: int, pipe: int, folder: Path, allowed: dict) -> None:
    """Judge some mutants in this process, and tell the driver about each."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(pipe, "wb", buffering=0) as stream:
        for index in span:
            signal.alarm(SECONDS)  # its default action ends the process
            name, data = draw(files, index, seed)
            path = folder / f"{os.getpid()}.kmap"
            found = outcome(name, data, path, allowed.get(name, {}))
            stream.write(f"{json.dumps([index, name, found])}\n".encode())


def run(count: int, seed: int, jobs: int = 1) -> list[tuple[int, str, str]]:
    """Judge `count` mutants in forked workers; (number, original, outcome) of each."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files, allowed = {}, {}
        for key, model in originals().items():
            km.save(model, folder / "original.kmap")
            files[key] = (folder / "original.kmap").read_bytes()
            allowed[key] = _raised_by_original(key, folder / "original.kmap")  # warms up, too
        done: list[tuple[int, str, str]] = []
        for start in range(0, count, BATCH):
            span = range(start, min(start + BATCH, count))
            while len(span):
                told, status = _in_child(files, span, seed, folder, allowed)
                done += told
                span = range(span.start + len(told), span.stop)
                if len(span) and status != 0:
                    name, _ = draw(files, span.start, seed)
                    done.append((span.start, name, f"ended the process: status {status}"))
                    span = span[1:]
    return done


def _raised_by_original(name: str, path: Path) -> dict[str, str]:
    """Uses that raise by design: they need another loss, or a bound that is not proved."""
    csr = name not in DENSE
    found = failures(km.load(path), csr=csr, framed=name.startswith("frame"))
    by_design = {use for use, what in found.items() if what.startswith("ValueError") or use in what}
    assert by_design == set(found), f"{name} itself: {found}"
    assert not {"predict", "transform", "apply", "save", "repr"} & set(found), f"{name}: {found}"
    return found


def _in_child(files, span, seed, folder, allowed):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        status = 1
        try:
            work(files, span, seed, write, folder, allowed)
            status = 0
        finally:
            os._exit(status)  # what comes after is the parent's
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        told = [tuple(json.loads(line)) for line in stream if line.endswith(b"\n")]
    return told, os.waitpid(child, 0)[1]


def summary(found: list[tuple[int, str, str]]) -> Counter:
    """Numbers of mutants by outcome."""
    return Counter(outcome.split(":")[0] for _, _, outcome in found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begun = time.time()
    found = run(options.count, options.seed)
    bad = [item for item in found if item[2] not in ("refused", "works")]
    for index, name, what in bad[:200]:
        print(f"{index:6d} {name}: {what}")
    print(f"{len(found)} mutants, {dict(summary(found))}, {time.time() - begun:.0f} s")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
