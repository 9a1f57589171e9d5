"""The display computes once and draws later."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.inspection import KernelErrorDisplay


def test_arrays_are_the_kernel_and_the_map():
    fitted = km.HomogeneousMap("chi2", 5).fit(np.ones((1, 3)))
    display = KernelErrorDisplay.from_estimator(fitted, domain=(0, 255), feature=1, n_points=256)
    np.testing.assert_allclose(display.exact[3, 5], 2 * 15 / 8)
    found = km.kernel_error(km.HomogeneousMap("chi2", 5), np.arange(256.0)[:, None])
    np.testing.assert_allclose(np.abs(display.error).max(), found.max, rtol=1e-9)


def test_drawing_gives_four_panels():
    plt = pytest.importorskip("matplotlib.pyplot")
    fitted = km.HomogeneousMap("chi2", 3).fit(np.ones((1, 1)))
    display = KernelErrorDisplay.from_estimator(fitted, n_points=16).plot()
    titles = [ax.get_title() for ax in display.axes_]
    assert titles == ["exact kernel", "map", "map − kernel", "error against the ratio"]
    assert "largest error" in display.figure_.get_suptitle()
    plt.close(display.figure_)
