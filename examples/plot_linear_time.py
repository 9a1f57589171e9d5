"""
Training time of an exact χ² SVM and of a map with a linear SVM
===============================================================

A kernel machine needs the Gram matrix of all pairs of rows. A linear machine on an explicit map
needs each row once. The two learn the same function, up to the error of the map.
"""

from time import perf_counter

import matplotlib.pyplot as plt
from sklearn.svm import SVC, LinearSVC

import kernelmaps as km

# %%
# Two classes of histograms, each row 100 counts in 32 bins.

X, y = km.datasets.make_histograms(2500, 32, 2, n_counts=100, concentration=30.0, random_state=0)
X_test, y_test = X[2000:], y[2000:]
feature_map = km.HomogeneousMap(kernel="chi2", n_components=5).fit(X[:10])


def exact(n):
    """Fit an exact χ² machine; return its accuracy."""
    model = SVC(kernel="precomputed", C=10).fit(km.kernels.chi2(X[:n]), y[:n])
    return model.score(km.kernels.chi2(X_test, X[:n]), y_test)


def mapped(n):
    """Fit a linear machine on the map; return its accuracy."""
    model = LinearSVC(C=10).fit(feature_map.transform(X[:n]), y[:n])
    return model.score(feature_map.transform(X_test), y_test)


# %%
# Time grows with the square of the number of rows on one side, in proportion to it on the other.

sizes = [250, 500, 1000, 2000]
figure, (time_axes, accuracy_axes) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for label, side in (("exact χ² SVM", exact), ("linear SVM on 5-column map", mapped)):
    side(100)  # the first call loads compiled loops
    seconds, accuracy = [], []
    for n in sizes:
        start = perf_counter()
        accuracy.append(side(n))
        seconds.append(perf_counter() - start)
    time_axes.loglog(sizes, seconds, "o-", label=label)
    accuracy_axes.semilogx(sizes, accuracy, "o-", label=label)
time_axes.set(xlabel="training rows", ylabel="seconds to train and test")
accuracy_axes.set(xlabel="training rows", ylabel="accuracy on 500 rows")
time_axes.legend(frameon=False)
for axes in (time_axes, accuracy_axes):
    axes.set_xticks(sizes, sizes, minor=False)
    axes.minorticks_off()
    axes.grid(color="0.9")
plt.show()
