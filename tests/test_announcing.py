"""Long compilation is announced, short compilation and that of others is not."""

import logging
from types import SimpleNamespace

import pytest

from kernelmaps import announcing


@pytest.mark.parametrize(("patience", "said"), [(0.02, 1), (600.0, 0)])
def test_said_once_and_only_after_a_while(patience, said, monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="kernelmaps")
    monkeypatch.setattr(announcing, "_PATIENCE", patience)
    announcer = announcing._Announcer()
    for _ in range(3):  # functions that are compiled for one another
        announcer.begin()
    clock = announcer._timer
    clock.join(60 if said else 0)  # it has spoken, however busy the machine is
    assert clock.is_alive() is not bool(said)
    for _ in range(3):
        announcer.end()
    clock.join(60)
    assert not clock.is_alive()  # nothing is said later
    assert sum("compiling, once" in record.message for record in caplog.records) == said


def test_a_person_at_a_terminal_reads_it(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    announcing.say()
    assert "compiling, once" in capsys.readouterr().err


def test_only_functions_of_this_library_count():
    def event(module):
        function = SimpleNamespace(__module__=module)
        return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})

    assert announcing._is_ours(event("kernelmaps.engine.table.emit"))
    assert not announcing._is_ours(event("somebody.else"))
    assert not announcing._is_ours(SimpleNamespace(data={}))


def test_the_listener_is_registered_with_the_first_loop():
    from numba.core import event

    import kernelmaps.engine.simd  # noqa: F401

    assert announcing._known[0] in event._registered["numba:compile"]
