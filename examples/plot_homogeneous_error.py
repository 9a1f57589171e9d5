"""
Error of homogeneous maps by number of columns
==============================================

A homogeneous map samples the spectrum of its kernel at a few frequencies. How well that works
depends on how fast the spectrum falls: exponentially for χ² and Jensen-Shannon, only
quadratically for the intersection, whose signature has a kink.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelmaps as km

# %%
# The error of a map is the error of its signature: a function of the ratio of two values. Values
# from 1 to 255 have log-ratios up to log 255 ≈ 5.5.

values = np.arange(1.0, 256.0)[:, None]
ratios = np.log(values[:, 0])
kernels = {"chi2": "χ²", "jensen_shannon": "Jensen-Shannon", "intersection": "intersection"}

figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), sharex=True, layout="constrained")
for ax, (name, label) in zip(axes, kernels.items()):
    exact = getattr(km.kernels, name)
    ax.plot(ratios, exact.signature(ratios), color="0.7", linewidth=5, label="exact")
    for n_components in (3, 5, 7):
        feature_map = km.HomogeneousMap(kernel=name, n_components=n_components).fit(values)
        one_against_all = feature_map.transform(values[:1]) @ feature_map.transform(values).T
        # k(1, y) = sqrt(y) times the signature of log y
        ax.plot(ratios, one_against_all[0] / np.sqrt(values[:, 0]), label=f"{n_components} columns")
    ax.set(title=label, xlabel="log(y / x)")
axes[0].set_ylabel("signature")
axes[0].legend(frameon=False)

# %%
# The largest error over all pairs, relative to the largest value. It falls geometrically for smooth
# signatures, though not at every step: some sizes have no use for their last columns.

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
sizes = range(1, 12, 2)
for name, label in kernels.items():
    errors = []
    for n_components in sizes:
        feature_map = km.HomogeneousMap(kernel=name, n_components=n_components).fit(values)
        errors.append(km.kernel_error(feature_map, values).max / 255)
    ax.semilogy(sizes, errors, "o-", label=label)
ax.set(xlabel="columns per feature", ylabel="largest error / 255", title="Values 1, …, 255")
ax.legend(frameon=False)
ax.grid(color="0.9")
plt.show()
