"""The demonstration: one comparison of every map on the bundled digits."""

from __future__ import annotations

import numpy as np

import kernelmaps

from ..data import load
from ..kernels import get
from .candidates import candidates, fitted_to_data, sort_of
from .comparison import Comparison, compare
from .measuring import WARM_ROWS

# One kernel of each sort (additive, exponentiated, stationary). All 27 methods take 34 seconds of
# one processor (measured), of which gradient boosting takes 13.
KERNELS = ["chi2", "exp_chi2", "gaussian"]
SIZES, JOINT_SIZES = (3,), (256,)
# Maps that are no candidates by themselves: their settings depend on the 64 pixels.
OBJECTS = {
    "CompressiveFourierMap": {"n_measurements": 32, "n_components": 256, "random_state": 0},
}
# An orthoprojector keeps distances, not a kernel's values; joint designs are of two or three
# coordinates.
NOT_COMPARED = ("RandomOrthoprojector", "JointDesignedMap")


def run_demo(*, budget: float | None = None, progress: bool | None = None) -> Comparison:
    """Compare every map on the 1797 bundled digits, histograms of 64 pixels.

    Parameters
    ----------
    budget : float, optional
        Seconds of measuring; by default all methods finish.
    progress : bool, optional
        Whether a bar is shown; None shows it on a terminal.
    """
    digits = load("digits")
    public = [n for n, m in kernelmaps._MODULE_OF.items() if m.startswith("kernelmaps.maps.")]
    names = [name for name in public if name.endswith("Map") and name not in NOT_COMPARED]
    return compare(
        np.concatenate([digits.X_train, digits.X_test]),
        np.concatenate([digits.y_train, digits.y_test]),
        maps=[
            *(name for name in names if name not in OBJECTS),
            *((f"{n} 256", getattr(kernelmaps, n)(**given)) for n, given in OBJECTS.items()),
        ],
        task="classification",
        kernels=KERNELS,
        sizes=SIZES,
        joint_sizes=JOINT_SIZES,
        budget=budget,
        name="digits",
        loading_code=(
            "import numpy as np\n\n"
            'digits = km.datasets.load("digits")\n'
            "X = np.concatenate([digits.X_train, digits.X_test])\n"
            "y = np.concatenate([digits.y_train, digits.y_test])"
        ),
        progress=progress,
    )


def compile_maps(*, joint: bool) -> None:
    """Compile the loops of the joint maps, or of the others: what another process finds on disk.

    Each half takes about as long.
    """
    X = load("digits").X_train[:WARM_ROWS]
    names: list[str | None] = [n for n in KERNELS if (sort_of(get(n)) != "additive") == joint]
    for name in names if joint else [*names, None]:
        kernel = None if name is None else fitted_to_data(name, X)
        for candidate in candidates(kernel, JOINT_SIZES if joint else SIZES):
            candidate.make().fit_transform(X)
