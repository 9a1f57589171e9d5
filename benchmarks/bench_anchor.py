"""Anchor maps: encoding beside a memory copy, training on codes beside VZ and LIBLINEAR."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.svm import LinearSVC

import kernelmaps as km

from .harness import Bench

SHAPE = (20000, 784)
DIGITS = 5000


def encoding_rows(bench: Bench) -> None:
    """How many copies of the input an encoding costs: the copy reads and writes 4 bytes a value."""
    X = np.random.default_rng(0).random(SHAPE, dtype=np.float32)
    kinds = [
        ("40 even anchors", {}),
        ("40 even anchors, interpolated", {"n_neighbors": 2}),
        ("40 k-means anchors", {"anchors": "kmeans"}),
        ("40 logarithmic anchors", {"anchors": "log"}),
    ]
    for words, options in kinds:
        # Fitted to some rows (k-means of 784 columns takes its time), and to the whole range.
        feature_map = km.AnchorMap("chi2", 40, **options).fit(X[:500])
        feature_map.domain_ = (np.zeros(SHAPE[1]), np.ones(SHAPE[1]))
        bench.race(
            f"encode float32 20000×784, {words}",
            partial(feature_map.encode, X),
            X.copy,
            peer="numpy copy of the input",
            at_least=1 / 3,
            repeats=15,
        )


def training_rows(bench: Bench) -> None:
    """Mapping and training on MNIST, C chosen beforehand on held-out rows (reproduce_annfm)."""
    if not bench.data:
        print("  (training on MNIST needs --data)")
        return
    data = km.datasets.load("mnist", folder=bench.data)
    rows = np.random.default_rng(0).permutation(len(data.y_train))[:DIGITS]
    X, y = np.float32(data.X_train[rows]) / 255, data.y_train[rows]
    test = np.float32(data.X_test) / 255
    C = 10 / float(km.kernels.chi2.diag(X).mean())
    anchors = km.AnchorMap("chi2", 40, feature_range=(0, None), out_of_domain="extrapolate")
    vz = km.HomogeneousMap("chi2", 3)

    def ours() -> km.AdditiveClassifier:
        codes = anchors.fit(X).encode(X)
        model = km.AdditiveClassifier(anchors, C=C, random_state=0)
        return model.fit(codes, y)

    def theirs() -> LinearSVC:
        return LinearSVC(C=C).fit(vz.fit_transform(X), y)

    accuracy = 100 * ours().score(test, data.y_test)
    other = 100 * theirs().score(vz.transform(test), data.y_test)
    bench.race(
        f"χ², {DIGITS} digits: encode with 40 anchors, train on codes",
        ours,
        theirs,
        peer="HomogeneousMap 3-D + sklearn LinearSVC",
        at_least=2.0,
        repeats=3,
        note=f"accuracy {accuracy:.2f} % against {other:.2f} %",
    )
    stored = anchors.encode(X).nbytes + anchors.spec_.nbytes
    bench.measure(
        "bytes per value of the stored training set, tables included",
        stored / X.size,
        "bytes",
        at_most=1.5,
        note=f"VZ 3-D in float32: {vz.transform(X[:1]).nbytes / X.shape[1]:g}; the tables are "
        f"{anchors.spec_.nbytes / 1e6:.2f} MB, whatever the number of rows",
    )


def run(bench: Bench) -> None:
    encoding_rows(bench)
    training_rows(bench)
