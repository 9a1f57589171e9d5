"""Figures are written whole or not at all, in the format that the suffix names."""

import os
import stat

import pytest
from matplotlib.figure import Figure

from kernelmaps.plots.panels import write_figure

SIGNATURES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture
def figure():
    drawn = Figure(figsize=(1, 1), dpi=20)
    drawn.subplots()
    return drawn


@pytest.mark.parametrize("suffix", SIGNATURES)
def test_the_suffix_is_the_format(figure, tmp_path, suffix):
    path = write_figure(figure, tmp_path / f"shapes.{suffix}")
    assert path == tmp_path / f"shapes.{suffix}"
    assert path.read_bytes().startswith(SIGNATURES[suffix])


def test_a_name_without_a_suffix_gets_one(figure, tmp_path):
    (tmp_path / "shapes").mkdir()
    path = write_figure(figure, str(tmp_path / "shapes"))
    assert path == tmp_path / "shapes.png"
    assert path.read_bytes().startswith(SIGNATURES["png"])


@pytest.mark.parametrize(("name", "kind"), [("pipe", "png"), ("pipe.svg", "svg")])
def test_a_pipe_is_written_to(figure, tmp_path, name, kind):
    path = tmp_path / name
    os.mkfifo(path)
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert write_figure(figure, path) == path
        assert os.read(end, 8).startswith(SIGNATURES[kind])
    finally:
        os.close(end)
    assert os.listdir(tmp_path) == [name]
    assert stat.S_ISFIFO(path.stat().st_mode)
