"""The demonstration shows what it claims: maps near their kernels, kernels above linear."""

import math

import numpy as np
import pytest

import kernelmaps
from kernelmaps.evaluation import demo


@pytest.fixture(scope="module")
def result():
    chosen = [c for c in demo.CANDIDATES if c.name == "HomogeneousMap" and c.kernel == "χ²"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "CANDIDATES", chosen)
        return demo.run_demo(progress=False)


def test_rows_are_linear_then_exact_then_maps(result):
    assert [row.kind for row in result.rows] == ["linear", "exact", "map", "map"]
    assert result.missing == []


def test_more_columns_come_nearer_to_the_kernel(result):
    five, seven = (row for row in result.rows if row.kind == "map")
    assert (five.columns, seven.columns) == (5 * 64, 7 * 64)
    assert seven.error_max < five.error_max
    assert all(row.error_rms <= row.error_max for row in (five, seven))


def test_a_good_map_classifies_like_its_kernel_and_better_than_linear(result):
    """Within two standard errors of a difference of accuracies on 897 test rows."""
    linear, exact, five, _ = result.rows
    noise = 2 * math.sqrt(2 * exact.accuracy * (1 - exact.accuracy) / 897)
    assert abs(five.accuracy - exact.accuracy) < noise
    assert five.accuracy > linear.accuracy


def test_bytes_are_those_of_the_features(result):
    five = result.rows[2]
    assert five.features_bytes == 1797 * 320 * 8


def test_every_public_map_is_in_the_list():
    maps = {n for n, m in kernelmaps._MODULE_OF.items() if m.startswith("kernelmaps.maps.")}
    # An orthoprojector keeps distances, not a kernel's values; its composed map is listed. Joint
    # designs are of two or three coordinates, not of 64 pixels.
    elsewhere = {"RandomOrthoprojector", "JointDesignedMap"}
    assert maps - {candidate.name for candidate in demo.CANDIDATES} == elsewhere


def test_every_map_that_exists_is_run(monkeypatch):
    here, missing = demo.available()
    assert {c.name for c in here} | set(missing) == {c.name for c in demo.CANDIDATES}
    assert all(hasattr(kernelmaps, c.name) for c in here)


def test_table_has_a_line_per_row(result):
    assert result.table().row_count == len(result.rows)


def test_picture_is_drawn_without_a_window(result, tmp_path):
    from matplotlib import image

    path = result.plot(tmp_path / "demo.png")
    pixels = image.imread(path)
    assert pixels.shape[1] > 1000
    assert np.unique(pixels[..., 0]).size > 50
