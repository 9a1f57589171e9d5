"""What all tests share: one seed that can be rotated, and a drawing backend without a screen."""

import gc
import os
import random
import tempfile
from pathlib import Path

import pytest

_TESTS = Path(__file__).parent

# Pictures are drawn in tests, never shown. Subprocesses inherit the choice.
os.environ.setdefault("MPLBACKEND", "Agg")

# Test processes share the cores: a thread that waits must sleep, not spin (measured: 40 % less
# processor time). Read by OpenMP when it is loaded, hence before anything else is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# For the same reason small matrices are factored by one thread: two processes with two BLAS threads
# each, spinning on two cores, were seen to take 50 times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Designs of tests never land in the user's cache.
os.environ.setdefault("KERNELMAPS_CACHE", tempfile.mkdtemp(prefix="kernelmaps-tests-"))

# Chosen once, before worker processes start, so that all of them see the same seed.
_VARIABLE = "KERNELMAPS_TEST_SEED"
if os.environ.get(_VARIABLE, "") == "any":
    os.environ[_VARIABLE] = str(random.SystemRandom().randrange(2**31))
_SEED = int(os.environ.get(_VARIABLE) or 20240229)


# Modules and compiled code are half a million objects that nothing frees: a tenth of the time went
# into looking for garbage among them.
gc.set_threshold(50_000, 20, 20)


# Files that take longest are begun first, the others in any order: two processes then end at about
# the same time. The first two stand for all files that go to the same process with them, see
# `_TOGETHER`. Mutated files find what these have compiled.
_LONGEST = (
    "models/svm/test_prediction.py",
    "common/test_estimators.py",
    "repository/test_docs.py",
    "models/gam/test_estimators.py",
    "cli/test_commands_on_tables.py",
    "evaluation/test_comparison.py",
    "model_files/test_mutated_files.py",
    "models/gam/test_inference.py",
    "model_files/test_model_files.py",
    "models/gam/test_responses.py",
    "models/gam/test_survival.py",
    "cli/test_commands.py",
    "models/gam/test_stream.py",
    "cli/test_predict_imports.py",
)


# Files whose loops have parts in common go to one process: each process compiles the parts anew. So
# do those that read the library's source, which is parsed once.
_READERS = ("architecture", "hygiene")
_TOGETHER = (
    {"tests/models/svm/": "additive"}
    | dict.fromkeys(("tests/common/", "tests/maps/", "tests/engine/"), "maps")
    | dict.fromkeys((f"tests/repository/test_{name}.py" for name in _READERS), "readers")
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return next((own for path, own in _TOGETHER.items() if path in nodeid), None) or (
                super()._split_scope(nodeid)
            )

    return Together(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items):
    places = {name: k for k, name in enumerate(_LONGEST)}
    own = ("/".join(item.path.parts[-3:]) for item in items)
    ranks = [min((places[n] for n in places if p.endswith(n)), default=99) for p in own]
    items[:] = [items[k] for k in sorted(range(len(items)), key=ranks.__getitem__)]


def pytest_collection_finish():
    gc.collect()
    gc.freeze()


def pytest_report_header():
    return f"{_VARIABLE}={_SEED} (a number, or 'any' for a new one)"


@pytest.fixture
def seed() -> int:
    """The seed of this run: a test that uses it must hold for every value of it."""
    return _SEED


def pytest_runtest_setup(item):
    """``random_state=None`` draws from the seed of this run: a failure can be seen again.

    Two draws of one test differ, as they do for users. As a fixture of all tests this took seconds
    in sum.
    """
    from seeded_entropy import entropy_of

    from kernelmaps._util import arguments as seeding

    seeding.fresh_entropy = entropy_of(item.nodeid, _SEED)


@pytest.fixture
def readable(monkeypatch):
    """Maps and codes in their readable form: for tests of what they are, not how they run.

    Sizes and kinds of tables would each be compiled for them. That both forms say the same is the
    business of `engine/`, and of the laws of all maps in `common/`.
    """
    from plain_models import take_readable_forms

    take_readable_forms(monkeypatch)


_READABLE = (
    "benchmarks", "cli", "engine/test_gpu.py", "evaluation", "exports", "maps", "models/gam",
    "models/svm", "plots",
)  # fmt: skip


@pytest.fixture(autouse=True)
def readable_but_for_loops(request):
    """In some folders and files everything but tests that are marked `compiled` is readable."""
    place = request.path.relative_to(_TESTS).as_posix()
    if place.startswith(_READABLE) and "compiled" not in request.keywords:
        request.getfixturevalue("readable")


@pytest.fixture
def drawn_weights(monkeypatch):
    """Additive SVMs get weights at random instead of trained ones, for tests of what follows.

    Every kind of rows and of table would have its own loops of training to compile.
    """
    from plain_models import draw_weights

    monkeypatch.setattr("kernelmaps.models.svm.training.solve_group", draw_weights)


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures stay empty in tests of what is printed beside them."""
    from kernelmaps.plots.panels import PanelDisplay

    monkeypatch.setattr(PanelDisplay, "save", lambda self, path: path.touch())


# Boosting of five trees, and GAMs whose smoothing is given: both took most of the time.
_QUICK = {"boosting": {"max_iter": 5}, "gam": {"smoothing": 1.0}}


@pytest.fixture(scope="module")
def quick_baselines():
    """How good the baselines of a comparison are is not the business of its tests."""
    from kernelmaps.evaluation import comparison

    plain = comparison.baselines

    def quick(*arguments, **options):
        methods = plain(*arguments, **options)
        for method in methods:
            method.pipeline[-1].set_params(**_QUICK.get(method.kind, {}))
        return methods

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "baselines", quick)
        yield


@pytest.fixture
def without_gams(monkeypatch):
    """Of the baselines, GAMs take most of the time."""
    from kernelmaps.evaluation import comparison

    every = comparison.baselines
    monkeypatch.setattr(
        comparison, "baselines", lambda *a, **k: [m for m in every(*a, **k) if m.kind != "gam"]
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A real browser, see `browser_driver`."""
    from browser_driver import start

    driver = start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()
