"""The demonstration is one comparison that every public map takes part in."""

import subprocess
import types

import pytest
import typer

import kernelmaps
from kernelmaps.cli import judging
from kernelmaps.commands import demonstrating
from kernelmaps.evaluation import demo
from kernelmaps.evaluation.candidates import candidates

pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.fixture(scope="module")
def asked():
    """What the demonstration asks for, without running it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "compare", lambda X, y, **options: (X, y, options))
        return demo.run_demo(progress=False)


def test_every_public_map_takes_part(asked):
    public = {n for n, m in kernelmaps._MODULE_OF.items() if m.startswith("kernelmaps.maps.")}
    maps = {n for n in public if hasattr(getattr(kernelmaps, n), "transform")}
    names = {item if isinstance(item, str) else type(item[1]).__name__ for item in asked[2]["maps"]}
    assert names == maps - set(demo.NOT_COMPARED)


def test_it_finishes_all_methods_and_is_on_all_digits(asked):
    X, y, options = asked
    assert options["budget"] is None  # a limit leaves rows of dashes on a slow machine
    assert X.shape == (1797, 64)
    assert len(y) == 1797
    scope = {"km": kernelmaps}
    exec(options["loading_code"], scope)
    assert (scope["X"] == X).all()


def test_it_runs():
    result = demo.run_demo(budget=0.5, progress=False)
    assert result.finished()
    assert result.task == "classification"
    assert len({row.label for row in result.rows}) > 20


# ---- compiling in two processes ------------------------------------------------------------------


def test_two_halves_compile_every_map_once(monkeypatch):
    made = []

    def recorded(kernel, sizes, **options):
        return [
            types.SimpleNamespace(
                make=lambda label=c.label: types.SimpleNamespace(
                    fit_transform=lambda X: made.append((label, X.shape))
                )
            )
            for c in candidates(kernel, sizes, **options)
        ]

    monkeypatch.setattr(demo, "candidates", recorded)
    halves = []
    for joint in (False, True):
        made.clear()
        demo.compile_maps(joint=joint)
        assert {shape for _, shape in made} == {(500, 64)}
        halves.append([label for label, _ in made])
    wanted = kernelmaps._MODULE_OF
    names = {n for n in wanted if n.endswith("Map") and wanted[n].startswith("kernelmaps.maps.")}
    names -= {*demo.OBJECTS, *demo.NOT_COMPARED}
    assert {label.split()[0] for half in halves for label in half} == names
    assert not set(halves[0]) & set(halves[1])


class Process:
    """A second process that notes what is done with it."""

    def __init__(self, log):
        self.log = log

    def wait(self):
        self.log.append("wait")

    def kill(self):
        self.log.append("kill")


@pytest.fixture
def log(monkeypatch):
    """What the command does, in order."""
    log = []

    def started(command, **streams):
        log.append(command[1:])
        assert set(streams.values()) == {subprocess.DEVNULL}
        return Process(log)

    monkeypatch.setattr(demonstrating.subprocess, "Popen", started)
    monkeypatch.setattr(demonstrating, "available_threads", lambda: 2)
    monkeypatch.setattr(demo, "compile_maps", lambda *, joint: log.append(f"joint={joint}"))
    monkeypatch.setattr(demo, "run_demo", lambda *, budget: log.append(budget))
    return log


def test_a_second_process_has_compiled_one_half_before_anything_is_measured(log):
    demonstrating.demonstrate(3.0)
    (flag, program), *rest = log
    assert flag == "-c"
    assert rest == ["joint=False", "wait", "kill", 3.0]
    log.clear()
    exec(program, {})
    assert log == ["joint=True"]


def test_the_second_process_does_not_outlive_an_interrupt(log, monkeypatch):
    def interrupted(*, joint):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "compile_maps", interrupted)
    with pytest.raises(KeyboardInterrupt):
        demonstrating.demonstrate(3.0)
    assert log[1:] == ["kill"]


def test_one_processor_compiles_as_it_goes(log, monkeypatch):
    monkeypatch.setattr(demonstrating, "available_threads", lambda: 1)
    demonstrating.demonstrate(3.0)
    assert log == [3.0]


def test_a_second_process_is_not_needed(log, monkeypatch):
    def refused(*arguments, **streams):
        raise OSError("no processes here")

    monkeypatch.setattr(demonstrating.subprocess, "Popen", refused)
    demonstrating.demonstrate(3.0)
    assert log == [3.0]


@pytest.mark.parametrize(("options", "budget"), [({}, None), ({"budget": 3.0}, 3.0)])
def test_the_command_has_no_limit_unless_one_is_given(options, budget, monkeypatch, tmp_path):
    given = []

    def stopped(budget):
        given.append(budget)
        raise KeyboardInterrupt

    monkeypatch.setattr(demonstrating, "demonstrate", stopped)
    with pytest.raises(typer.Exit):
        judging.demo(out=tmp_path, **options)
    assert given == [budget]
