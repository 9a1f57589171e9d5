"""Files that were tampered with: refused, or of use; never the end of the process."""

import os

import numpy as np
import pytest
from fitted_examples import fitted_map, fitted_map_of_the_plane, fitted_model, rows

import kernelmaps as km
from benchmarks import attack_files
from benchmarks.attack_files import summary
from kernelmaps._util import storage
from kernelmaps.exceptions import FileFormatError

COUNT = 150


@pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")
def test_mutants_are_refused_or_work(seed):
    """In workers with a limit of memory; a mutant that ends one is named."""
    actual = attack_files.run(COUNT, seed)
    bad = [item for item in actual if item[2] not in ("refused", "works")]
    assert bad == []
    counts = summary(actual)
    assert sum(counts.values()) == COUNT
    assert counts["refused"] > COUNT / 2
    assert counts["works"] > COUNT / 20  # the mutants are not all so wild that nothing is tested


def test_a_file_that_once_wrote_to_an_address_of_its_choice(tmp_path):
    path = tmp_path / "hermite.kmap"
    km.save(km.HermiteMap(n_bases=2).fit([[0.0], [1.0]]), path)
    header, arrays = storage.read(path)
    kind = header.pop("kind")
    prefix = next(name for name in arrays if name.endswith("['first']")).removesuffix("['first']")
    wild = {"width": [2], "column": [0, 2], "first": [10**9], "coef": [1.0, 2.0]}
    for name, value in wild.items():
        arrays[f"{prefix}['{name}']"] = np.array(value, arrays[f"{prefix}['{name}']"].dtype)
    storage.write(path, kind, header, arrays)
    with pytest.raises(FileFormatError, match="spec of family 'piecewise'"):
        km.load(path)


def tampered(model, path, change):
    """Save a model, change the entries and arrays of its file, and load it."""
    km.save(model, path)
    header, arrays = storage.read(path)
    kind, arrays = header.pop("kind"), {name: array.copy() for name, array in arrays.items()}
    change(header["model"]["state"], arrays)
    storage.write(path, kind, header, arrays)
    return km.load(path)


def shorter_anchors(state, arrays):
    name = next(name for name in arrays if "anchors_" in name)
    arrays[name] = arrays[name][:-1]


def two_domains_of_one_feature(state, arrays):
    for name in [name for name in arrays if "domain_" in name]:
        arrays[name] = np.append(arrays[name], 1.0)


def far_band(state, arrays):
    """2³¹ − 1 and the width of the band is negative in 32 bits."""
    (name,) = (name for name in arrays if "band_first" in name)
    arrays[name][-1] = 2**31 - 1


def huge_weights(state, arrays):
    arrays["AdditiveSVR.predictor_.weights"][:] = 1e308


@pytest.mark.parametrize(
    ("make", "change", "reason"),
    [
        (lambda: fitted_map("AnchorMap"), shorter_anchors, "fit the bins of the map"),
        (lambda: fitted_map("AnchorMap"), lambda s, a: s.pop("kernel_"), "'kernel_' is missing"),
        (fitted_map_of_the_plane, two_domains_of_one_feature, "'domain_' must have the shape"),
        (
            lambda: fitted_map("HomogeneousMap"),
            lambda s, a: s["certificate_"]["state"].clear(),
            "lacks 'bound'",
        ),
        (
            lambda: fitted_model("StreamingPCA"),
            lambda s, a: s["features"]["state"].clear(),
            "lacks 'parts'",
        ),
        (lambda: km.SplineMap(n_jobs=1).fit(rows()), far_band, "reaches beyond the last column"),
        (lambda: fitted_model("AdditiveSVR"), huge_weights, "overflow in a sum"),
        (lambda: fitted_model("AdditiveRegressor"), lambda s, a: s.pop("n_rows"), "lacks 'n_rows'"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_files_that_once_loaded_and_failed_later(make, change, reason, tmp_path):
    with pytest.raises(FileFormatError, match=reason):
        tampered(make(), tmp_path / "x.kmap", change)


def test_a_designed_map_from_a_file_bounds_rows(tmp_path):
    """The bound needs the exponent of the kernel; the design itself is not in the file."""
    fitted = fitted_map("DesignedMap")
    km.save(fitted, tmp_path / "x.kmap")
    loaded = km.load(tmp_path / "x.kmap")
    assert loaded.row_certificate(rows()) == fitted.row_certificate(rows())


def test_sums_that_cannot_be_solved_are_refused_in_words():
    model = fitted_model("StreamingRidge")
    model.stats_.H[...] -= 2 * np.diag(np.diag(model.stats_.H))
    with pytest.raises(ValueError, match="not those of any rows"):
        model.refit(alpha=0.1)
