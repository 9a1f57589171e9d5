"""The display computes once and draws later."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.inspection import KernelErrorDisplay


def test_arrays_are_the_kernel_and_the_map():
    fitted = km.HomogeneousMap("chi2", 5).fit(np.ones((1, 3)))
    display = KernelErrorDisplay.from_estimator(fitted, domain=(0, 255), feature=1, n_points=256)
    np.testing.assert_allclose(display.exact[3, 5], 2 * 15 / 8)
    actual = km.kernel_error(km.HomogeneousMap("chi2", 5), np.arange(256.0)[:, None])
    np.testing.assert_allclose(np.abs(display.error).max(), actual.max, rtol=1e-9)


def test_drawing_gives_four_panels():
    plt = pytest.importorskip("matplotlib.pyplot")
    fitted = km.HomogeneousMap("chi2", 3).fit(np.ones((1, 1)))
    display = KernelErrorDisplay.from_estimator(fitted, n_points=16).plot()
    titles = [ax.get_title() for ax in display.axes_]
    assert titles == ["exact kernel", "map", "map − kernel", "error against the ratio"]
    assert "largest error" in display.figure_.get_suptitle()
    plt.close(display.figure_)


def test_frames_and_other_features_do_not_disturb():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": [0.1, 1.0], "b": [9.0, 10.0]})
    plain = KernelErrorDisplay.from_estimator(km.AnchorMap().fit(X.to_numpy()), n_points=8)
    named = km.AnchorMap().set_output(transform="pandas").fit(X)
    # Warnings are errors here: neither names nor the range of "b" may be missed.
    actual = KernelErrorDisplay.from_estimator(named, n_points=8)
    np.testing.assert_array_equal(actual.approximate, plain.approximate)
    assert list(named.transform(X).index) == [0, 1]


def test_what_cannot_be_drawn_is_refused():
    X = np.ones((3, 2))
    with pytest.raises(TypeError, match="SplineMap has no kernel"):
        KernelErrorDisplay.from_estimator(km.SplineMap(domain=(0, 1)).fit(X))
    with pytest.raises(TypeError, match="acts on whole rows"):
        KernelErrorDisplay.from_estimator(km.RandomFourierMap(n_components=2).fit(X))
    fitted = km.HomogeneousMap().fit(X)
    with pytest.raises(ValueError, match="feature must be one of the 2"):
        KernelErrorDisplay.from_estimator(fitted, feature=2)
    with pytest.raises(ValueError, match="4 panels; got 2 axes"):
        KernelErrorDisplay.from_estimator(fitted).plot(axes=[None, None])
