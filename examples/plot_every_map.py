"""
Error of every map, as heat maps
================================

The difference between the inner products of each map and its kernel. For additive maps the axes are
two values of one feature; for joint maps, which act on whole rows, a point is a pair of rows. At
the end, the basis functions of the maps that have no given kernel.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelmaps as km
from kernelmaps.inspection import kernel_error_grid

digits = km.datasets.load("digits")
X = digits.X_train[:300]

# %%
# Additive maps of the χ² kernel
# ------------------------------
# About five columns per feature. The pictures have scales of their own: see their colour bars.

additive = {
    "HomogeneousMap": km.HomogeneousMap(kernel="chi2", n_components=5),
    "DesignedMap": km.DesignedMap(kernel="chi2", n_components=5),
    "AnchorMap": km.AnchorMap(kernel="chi2", n_anchors=40, rank=5),
    "ChebyshevMap": km.ChebyshevMap(n_components=5),
    "SeriesMap": km.SeriesMap(n_components=5),
}
pixel = X[:, [int(np.argmax(X.max(axis=0)))]]  # additive maps treat features alike: one shows it
top = float(pixel.max())
figure, axes = plt.subplots(1, 5, figsize=(16, 3.2), layout="constrained")
for ax, (name, feature_map) in zip(axes, additive.items()):
    fitted = feature_map.fit(pixel)
    error = kernel_error_grid(fitted, domain=(0.0, top), n_points=80).error
    shades = {"cmap": "RdBu_r", "vmin": -np.abs(error).max(), "vmax": np.abs(error).max()}
    image = ax.imshow(error, origin="lower", extent=(0, top, 0, top), **shades)
    figure.colorbar(image, ax=ax, shrink=0.7, format="%.0e")
    ax.set(title=name, xlabel="x", ylabel="y" if ax is axes[0] else "")

# %%
# Joint maps
# ----------
# Each point is a pair of digits: the exact kernel value, and what 512 columns make of it.

gaussian = km.kernels.Gaussian(sigma=0.15)
joint = {
    "RandomFourierMap": km.RandomFourierMap(kernel=gaussian, n_components=512, random_state=0),
    "CompressiveFourierMap": km.CompressiveFourierMap(
        kernel=gaussian, n_measurements=32, n_components=512, random_state=0
    ),
    "ExponentialMap": km.ExponentialMap(gamma=2.0, n_components=512, random_state=0),
}
figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
rows = X[:60]
pairs = np.triu_indices(len(rows), 1)
for ax, (name, feature_map) in zip(axes, joint.items()):
    Z = feature_map.fit_transform(rows)
    exact = feature_map.kernel_(rows)[pairs]
    ax.plot(exact, (Z @ Z.T)[pairs], ".", ms=2, alpha=0.4)
    ends = [exact.min(), exact.max()]
    ax.plot(ends, ends, color="black", lw=0.8)
    ax.set(title=name, xlabel="exact", ylabel="map" if ax is axes[0] else "")

# %%
# Functions of one feature
# ------------------------
# The columns of the maps that additive models are built on: a model is a sum of these.

bases = {
    "SplineMap": km.SplineMap(n_bases=8, degree=3),
    "TrigonometricMap": km.TrigonometricMap(n_bases=4),
    "HermiteMap": km.HermiteMap(n_bases=4),
}
values = np.linspace(0.0, 1.0, 300)[:, None]
figure, axes = plt.subplots(1, 3, figsize=(13, 3.2), layout="constrained")
for ax, (name, feature_map) in zip(axes, bases.items()):
    columns = feature_map.fit(values).transform(values)
    ax.plot(values, columns.toarray() if hasattr(columns, "toarray") else columns)
    ax.set(title=name, xlabel="value of the feature")

plt.show()
