"""The demonstration: every map on the bundled digits, beside plain linear and exact kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import kernelmaps

from ..data import Dataset, load
from ..exceptions import OutOfDomainWarning
from ..kernels.base import Kernel
from ..progress import track
from .errors import kernel_error

# One strength of regularisation for all.
PENALTY = 10.0


@dataclass(frozen=True)
class Candidate:
    """A map of the demonstration: its public name, its settings, and the kernel it stands for.

    `few_rows` limits the pairs of rows for kernels that are costly to know exactly; for these no
    exact machine is trained.
    """

    kernel: str
    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    few_rows: int | None = None

    @property
    def label(self) -> str:
        sizes = [str(value) for key, value in self.settings.items() if key.startswith("n_")]
        return " ".join([self.name, *sizes])


CANDIDATES = [
    Candidate("χ²", "HomogeneousMap", {"kernel": "chi2", "n_components": 5}),
    Candidate("χ²", "HomogeneousMap", {"kernel": "chi2", "n_components": 7}),
    Candidate("χ²", "DesignedMap", {"kernel": "chi2", "n_components": 5}),
    Candidate("χ²", "AnchorMap", {"kernel": "chi2", "n_anchors": 40}),
    Candidate("χ²", "ChebyshevMap", {"n_components": 10}),
    Candidate("χ²", "SeriesMap", {"n_components": 10}),
    Candidate("intersection", "HomogeneousMap", {"kernel": "intersection", "n_components": 5}),
    Candidate("intersection", "DesignedMap", {"kernel": "intersection", "n_components": 5}),
    Candidate("intersection", "AnchorMap", {"kernel": "intersection", "n_anchors": 40}),
    Candidate("Jensen-Shannon", "HomogeneousMap", {"kernel": "jensen_shannon", "n_components": 5}),
    Candidate("Hellinger", "HomogeneousMap", {"kernel": "hellinger", "n_components": 1}),
    Candidate(
        "sign Cauchy", "SignCauchyMap", {"n_components": 1000, "random_state": 0}, few_rows=50
    ),
    Candidate("smooth bases", "SplineMap", {"n_bases": 10}),
    Candidate("smooth bases", "TrigonometricMap", {"n_bases": 4}),
    Candidate("smooth bases", "HermiteMap", {"n_bases": 2}),
    Candidate(
        "exp-χ²",
        "ExponentialMap",
        {"n_components": 1000, "gamma": "median", "random_state": 0},
    ),
    Candidate(
        "Gaussian",
        "RandomFourierMap",
        {"n_components": 1000, "sigma": "median", "sampling": "orthogonal", "random_state": 0},
    ),
    Candidate(
        "Gaussian",
        "CompressiveFourierMap",
        {"n_measurements": 32, "n_components": 1000, "sigma": "median", "random_state": 0},
    ),
]


@dataclass(frozen=True)
class DemoRow:
    """One line: what was run, how far it is from its kernel, how well it classifies, the cost."""

    kernel: str
    method: str
    kind: str  # "linear", "exact" or "map"
    columns: int | None
    accuracy: float
    features_seconds: float
    fit_seconds: float
    features_bytes: int
    error_max: float | None = None
    error_rms: float | None = None


@dataclass(frozen=True)
class DemoResult:
    """Rows of the demonstration, and what can be done with them.

    Attributes
    ----------
    dataset : str
    test_rows : int
    rows : list of DemoRow
    missing : list of str
        Maps of the list that this version does not have.
    """

    dataset: str
    test_rows: int
    rows: list[DemoRow]
    missing: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def table(self) -> Any:
        """Return the rows as a rich table, narrow enough for 80 characters."""
        from rich import box
        from rich.table import Table

        table = Table(
            title=f"Linear SVM on explicit maps: {self.dataset}",
            caption="error: largest and rms difference from the exact kernel, k(x, x) = 1\n"
            "map: features (or Gram matrices) of training and test rows",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
        )
        table.add_column("kernel, method")
        headings = (
            "columns",
            "max\nerror",
            "rms\nerror",
            "accuracy\n%",
            "map\nms",
            "fit\nms",
            "MB",
        )
        for heading in headings:
            table.add_column(heading, justify="right")
        for number, row in enumerate(self.rows):
            if number and row.kernel != self.rows[number - 1].kernel:
                table.add_section()
            table.add_row(*_cells(row), style=_STYLES[row.kind])
        return table

    def plot(self, path: Path | str) -> Path:
        """Draw accuracies and errors into a picture file (needs matplotlib)."""
        from ._demo_picture import draw

        return draw(self, Path(path))


_STYLES = {"linear": "dim", "exact": "bold", "map": ""}


def _cells(row: DemoRow) -> list[str]:
    return [
        f"  {row.method}" if row.kind == "map" else row.method,
        "–" if row.columns is None else str(row.columns),
        "–" if row.error_max is None else f"{row.error_max:.1e}",
        "–" if row.error_rms is None else f"{row.error_rms:.1e}",
        f"{100 * row.accuracy:.1f}",
        f"{row.features_seconds * 1e3:.0f}",
        f"{row.fit_seconds * 1e3:.0f}",
        f"{row.features_bytes / 1e6:.1f}",
    ]


def available() -> tuple[list[Candidate], list[str]]:
    """Candidates that this version of the package has, and the names of those it has not."""
    here = [c for c in CANDIDATES if hasattr(kernelmaps, c.name)]
    missing = {c.name for c in CANDIDATES} - {c.name for c in here}
    return here, sorted(missing)


def run_demo(*, progress: bool | None = None) -> DemoResult:
    """Run every map that exists on the bundled digits.

    Parameters
    ----------
    progress : bool, optional
        Whether a bar is shown; None shows it on a terminal.

    Returns
    -------
    DemoResult
    """
    data = load("digits")
    candidates, missing = available()
    rows = [_linear_row(data)]
    kernels_shown: set[str] = set()
    for candidate in track(candidates, "maps on digits", enabled=progress):
        feature_map = getattr(kernelmaps, candidate.name)(**candidate.settings)
        row = _map_row(data, candidate, feature_map)
        exact = getattr(feature_map, "kernel_", None)
        cheap = exact is not None and candidate.few_rows is None
        if cheap and candidate.kernel not in kernels_shown:
            rows.append(_exact_row(data, candidate.kernel, exact))
            kernels_shown.add(candidate.kernel)
        rows.append(row)
    return DemoResult("digits as histograms", len(data.y_test), rows, missing)


def _linear_row(data: Dataset) -> DemoRow:
    """The yardstick from below: a linear SVM on the values themselves."""
    return _linear_svm(data, "linear", "plain linear SVM", "linear", np.copy, np.copy)


def _map_row(data: Dataset, candidate: Candidate, feature_map: Any) -> DemoRow:
    """A linear SVM on a map; the map is fitted to the training rows alone."""
    feature_map.fit(data.X_train)  # numba compiles or loads its loops here, not in the timing
    feature_map.transform(data.X_train[:8])
    with warnings.catch_warnings():
        # Test values beyond the training range are clipped: a part of the error that is shown.
        warnings.simplefilter("ignore", OutOfDomainWarning)
        row = _linear_svm(
            data,
            candidate.kernel,
            candidate.label,
            "map",
            feature_map.fit_transform,
            feature_map.transform,
        )
        if not hasattr(feature_map, "kernel_"):  # a basis (splines, say) is its own kernel
            return row
        error = kernel_error(feature_map, data.X_test[: candidate.few_rows])
    return replace(row, error_max=error.max, error_rms=error.rms)


def _linear_svm(
    data: Dataset,
    kernel: str,
    method: str,
    kind: str,
    fit_features: Callable[[np.ndarray], np.ndarray],
    features: Callable[[np.ndarray], np.ndarray],
) -> DemoRow:
    from sklearn.svm import LinearSVC

    start = perf_counter()
    Z_train, Z_test = fit_features(data.X_train), features(data.X_test)
    mapped = perf_counter()
    # One penalty fits all only if all have one scale: mean k(x, x) = 1, as the kernels here have.
    scale = 1 / np.sqrt(np.mean(np.sum(Z_train**2, axis=1)))
    Z_train, Z_test = scale * Z_train, scale * Z_test
    scaled = perf_counter()
    model = LinearSVC(C=PENALTY, random_state=0).fit(Z_train, data.y_train)
    fitted = perf_counter()
    return DemoRow(
        kernel=kernel,
        method=method,
        kind=kind,
        columns=Z_train.shape[1],
        accuracy=model.score(Z_test, data.y_test),
        features_seconds=mapped - start,
        fit_seconds=fitted - scaled,
        features_bytes=Z_train.nbytes + Z_test.nbytes,
    )


def _exact_row(data: Dataset, kernel: str, exact: Kernel) -> DemoRow:
    """The yardstick from above: a kernel machine on exact Gram matrices."""
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import SVC

    exact(data.X_train[:8])
    start = perf_counter()
    K_train, K_test = exact(data.X_train), exact(data.X_test, data.X_train)
    mapped = perf_counter()
    # One against the rest, as LinearSVC does; SVC's own one against one is another classifier.
    machine = OneVsRestClassifier(SVC(kernel="precomputed", C=PENALTY))
    model = machine.fit(K_train, data.y_train)
    fitted = perf_counter()
    return DemoRow(
        kernel=kernel,
        method=f"exact {kernel} SVM",
        kind="exact",
        columns=None,
        accuracy=model.score(K_test, data.y_test),
        features_seconds=mapped - start,
        fit_seconds=fitted - mapped,
        features_bytes=K_train.nbytes + K_test.nbytes,
    )
