"""
Nyström maps: uniform, k-means and pivoted landmarks
====================================================

A Nyström map is exact at its landmarks. Centres of clusters cover the data more evenly than rows at
random, and randomly pivoted Cholesky finds rows that are far from all others.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelmaps as km

rng = np.random.default_rng(0)
cloud = rng.normal(size=(900, 2)) * [1.0, 0.3]
ring = 3.0 * np.stack([np.cos(rng.random(40) * 6.28), np.sin(rng.random(40) * 6.28)], axis=1)
X = np.concatenate([cloud, ring])

# %%
# Twenty landmarks of each kind, and what the map leaves out of the kernel at every point.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharex=True, sharey=True, layout="constrained")
for ax, landmarks in zip(axes, ("uniform", "kmeans", "rpcholesky"), strict=True):
    feature_map = km.NystroemMap(
        km.kernels.Gaussian(0.6), 20, landmarks=landmarks, random_state=0
    ).fit(X)
    points = ax.scatter(*X.T, c=feature_map.residuals(X), s=6, vmin=0, vmax=1)
    ax.plot(*feature_map.landmarks_.T, "k+", markersize=8)
    ax.set_title(f"{landmarks}: {feature_map.residual_:.1%} left out")
figure.colorbar(points, ax=axes, label="k(x, x) − ‖φ(x)‖²")
plt.show()

# %%
# The share that is left out falls quickly with the number of landmarks. More landmarks than columns
# come close to the best map of that size.

sizes = [5, 10, 20, 40, 80]
for label, factor in (("as many landmarks as columns", 1), ("eight times as many", 8)):
    shares = [
        km.NystroemMap(
            km.kernels.Gaussian(0.6), size, n_landmarks=factor * size, random_state=0
        ).fit(X).residual_
        for size in sizes
    ]  # fmt: skip
    plt.semilogy(sizes, shares, "o-", label=label)
plt.xlabel("columns")
plt.ylabel("share of the kernel that is left out")
plt.legend()
plt.show()
