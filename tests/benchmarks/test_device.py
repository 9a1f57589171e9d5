"""The race on a GPU, as far as it runs without one."""

import json

import numpy as np

import kernelmaps as km
from benchmarks import device, render
from benchmarks.harness import RESULTS


def test_products_that_a_joint_map_stands_for():
    X = np.random.default_rng(0).random((20, 6))
    fourier = km.RandomFourierMap(n_components=40, random_state=0).fit(X)
    assert list(device.products(fourier.spec_, 6)) == [(6, 20)]  # cosines and sines in pairs
    compressive = km.CompressiveFourierMap(3, 40, random_state=0).fit(X)
    assert list(device.products(compressive.spec_, 6)) == [(6, 3), (3, 20)]
    landmarks = km.ExponentialMap(km.ChebyshevMap(10), 40, n_landmarks=4, random_state=0).fit(X)
    assert list(device.products(landmarks.spec_, 6)) == [(60, 4), (60, 18)]


def test_the_record_has_every_map_and_is_on_the_page():
    record = json.loads((RESULTS / "device.json").read_text("utf-8"))
    names = [row["what"] for row in record["rows"]]
    assert set(device.ADDITIVE) <= set(names)
    assert sum(name.startswith("StreamingRidge") for name in names) == 4
    section = render.gpu_section(record)
    assert record["gpu"] in section
    assert section in render.PAGE.read_text("utf-8")
