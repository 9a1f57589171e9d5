"""A bar never changes what is iterated, and stays silent where nobody watches."""

import io
import sys

import pytest

from kernelmaps._util.display import track


@pytest.mark.parametrize("enabled", [None, False])
def test_silent_when_not_a_terminal(enabled, capsys):
    list(track([1, 2], "counting", enabled=enabled))
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_forced_bar_goes_to_standard_error(monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert list(track(iter("ab"), "counting", total=2)) == ["a", "b"]
    assert "counting" in terminal.getvalue()
    assert capsys.readouterr().out == ""
