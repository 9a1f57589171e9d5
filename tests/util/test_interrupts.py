"""Ctrl-C ends long work within a second, and the estimator is what it was before."""

import json
import sys
import threading

import fresh_process
import numpy as np
import pytest

import kernelmaps as km
from kernelmaps._util.storage import all_or_nothing
from kernelmaps._util.threads import (
    Stopped,
    check_stop,
    interruptible,
    run_in_threads,
    run_interruptibly,
)

HEAD = """
import hashlib, os, signal, sys, threading, time
import numpy as np
import kernelmaps as km
from kernelmaps.models.svm import training

# Tests that run in the background of a shell are started with the signal switched off.
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
X = rng.random((30000, 20))
y = rng.integers(0, 4, len(X))
training.SMALL = 0  # few rows, too, are trained on in groups of classes

begun = threading.Event()

def said(training):
    "The same, which says that it has begun."
    def work(*arguments):
        begun.set()
        return training(*arguments)
    return work

for owner, name in ((training, "solve_group"), (training, "train_on_blocks")):
    setattr(owner, name, said(getattr(owner, name)))

def in_c(*_):
    "Long compiled work that knows nothing of signals."
    begun.set()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000_000)

def interrupted(work):
    sent, ended = [], threading.Event()
    def send():
        assert begun.wait(60)
        time.sleep(0.15)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
        # An exception in a callback of a weak reference is ignored: a user would try again.
        while not ended.wait(2):
            os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()
    try:
        result = work()
    except KeyboardInterrupt:
        result = None
    finally:
        ended.set()
    assert sent, "it had ended before"
    return time.monotonic() - sent[0], result
"""

FIT = """
quick, endless = dict(C=1.0, tol=1e-2), dict(C=1e3, tol=1e-15)  # which takes minutes
model = km.AdditiveSVC(solver="dual", max_iter=10**6, n_jobs={n_jobs}, random_state=0)
y = y % {n_classes}
few, own = np.r_[0:200], y[:200]  # enough for the loops of the long fit
model.set_params(**quick).fit(X[few], own)
before, known = model.predict(X[:500]), sorted(vars(model))
model.set_params(**endless)
begun.clear()
late, _ = interrupted(lambda: model.fit({rows}, y))
assert sorted(vars(model)) == known
np.testing.assert_array_equal(model.predict(X[:500]), before)
model.set_params(**quick).fit(X[few], own)
np.testing.assert_array_equal(model.predict(X[:500]), before)
"""

CASES = {
    "fit of several classes": FIT.format(n_jobs=2, n_classes=4, rows="X"),
    "fit in one thread": FIT.format(n_jobs=1, n_classes=2, rows="X"),
    "fit block by block": FIT.format(n_jobs=2, n_classes=2, rows="[X[:15000], X[15000:]]"),
    "fold": """
from kernelmaps.stats import Moments, fold, open_source
late, _ = interrupted(lambda: fold(open_source(X), Moments(), in_c, block_rows=1000, n_jobs=2))
""",
    "streaming fit": """
class Slow(km.SplineMap):
    def transform(self, X):
        in_c()
        return super().transform(X)

model = km.StreamingRidge(feature_map=km.SplineMap(n_jobs=1)).fit(X[:300], y[:300])
before = model.predict(X)
model.feature_map = Slow()
late, _ = interrupted(lambda: model.fit(X, y))
np.testing.assert_array_equal(model.predict(X), before)
""",
    "choose": """
def component(x, y):
    in_c()
    return np.minimum(x, y)

kernel = km.kernels.Additive(component)
late, _ = interrupted(lambda: km.choose(X[:200], kernel, max_error=1e-3))
""",
    "compare": """
class Slow(km.SplineMap):
    def fit(self, X, y=None):
        in_c()
        return super().fit(X, y)

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)

maps = [("quick", km.HomogeneousMap()), ("slow", Slow())]
late, found = interrupted(
    lambda: km.compare(X[:90], y[:90], maps=maps, kernels=["chi2"], C=1, with_baselines=False)
)
assert found.interrupted
assert list(found.finished.index) == ["quick"]
""",
}


FORKED = """
import json

# Imported and compiled once, before the processes part.
km.AdditiveSVC(n_jobs=1).fit(X[:50], y[:50] % 3).predict(X[:50])
km.StreamingRidge(feature_map=km.SplineMap(n_jobs=1)).fit(X[:50], y[:50])
km.choose, km.compare
begun.clear()

def one(case):
    "Seconds that a case takes to end, in a process of its own, or what goes wrong there."
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            exec(case, globals())
            said = {"late": late}
        except BaseException as error:
            import traceback
            said = {"wrong": traceback.format_exc()}
        os.write(write, json.dumps(said).encode())
        os._exit(0)  # threads may still be at work in C
    os.close(write)
    with os.fdopen(read) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return json.loads(said)

found = {}
for name, case in CASES.items():
    attempts = [one(case)]
    while len(attempts) < 3 and attempts[-1].get("late", 0) >= 1:  # a busy machine gets three
        attempts.append(one(case))
    found[name] = attempts[-1]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def interrupted():
    """Seconds of each case, or what went wrong, from one process that imports and then forks."""
    done = fresh_process.run(f"CASES = {CASES!r}\n{HEAD}{FORKED}")
    assert done.status == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as POSIX has them")
@pytest.mark.parametrize("name", CASES)
def test_ctrl_c_ends_it_within_a_second(name, interrupted):
    assert "wrong" not in interrupted[name], interrupted[name]["wrong"]
    assert interrupted[name]["late"] < 1


# ---- the parts ----------------------------------------------------------------------------------


def test_together_is_in_order_and_passes_errors_on():
    assert run_interruptibly(lambda item: item * item, range(5), 2) == [0, 1, 4, 9, 16]

    def wrong(item):
        raise ArithmeticError(str(item))

    with pytest.raises(ArithmeticError, match="7"):
        run_interruptibly(wrong, [7], 1)


def test_the_others_stop_when_one_fails():
    begun, ended = threading.Event(), threading.Event()

    def work(item):
        if item == 0:
            assert begun.wait(10)
            raise ArithmeticError
        begun.set()
        try:
            while True:
                check_stop()
        except Stopped:
            ended.set()
            raise

    with pytest.raises(ArithmeticError):
        run_interruptibly(work, [0, 1], 2)
    assert ended.wait(10)
    check_stop()  # not a thread of theirs


def test_interruptible_keeps_the_settings_of_the_caller():
    import joblib
    import sklearn

    def settings(x):
        n_jobs = joblib.parallel.get_active_backend()[1]
        return x, sklearn.get_config()["assume_finite"], n_jobs, np.geterr()["divide"]

    with (
        sklearn.config_context(assume_finite=True),
        joblib.parallel_config(n_jobs=3),
        np.errstate(divide="raise"),
    ):
        assert interruptible(settings, 5) == (5, True, 3, "raise")
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 / 0)


def test_one_thread_divides_long_work():
    """Signals are handled between two calls."""
    parts = run_in_threads(lambda begin, end: (begin, end), 100_000, 1)
    assert len(parts) == 32
    assert [begin for begin, _ in parts[1:]] == [end for _, end in parts[:-1]]
    assert (parts[0][0], parts[-1][1]) == (0, 100_000)


def test_all_or_nothing():
    class Thing:
        @all_or_nothing
        def change(self, error):
            "What it does."
            self.a, self.b = 2, 3
            if error is not None:
                raise error
            return self

    thing = Thing()
    thing.a = 1
    for error in (ValueError(), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            thing.change(error)
        assert vars(thing) == {"a": 1}
    assert vars(thing.change(None)) == {"a": 2, "b": 3}
    assert Thing.change.__doc__ == "What it does."


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = km.datasets.make_histograms(60, 4, 2, random_state=0)
    model = km.AdditiveSVC().fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((60, 3), np.nan), y)
    np.testing.assert_array_equal(model.decision_function(X), before)
