"""
Error of designed maps beside the best possible with five columns
=================================================================

A map of D columns per feature can be a classical Fourier series, the best cosines, or a table.
A lower bound holds for all maps of that size, and the best table of the χ² kernel reaches it.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelmaps as km

# %%
# The best map of five cosine columns for values from 1 to 255. Its weighted error touches its
# maximum six times with alternating sign: no small change of frequencies and weights can help.

design = km.design_map("chi2", n_components=5, domain=(1, 255))
print(design.summary())

lag = np.linspace(0, np.log(255), 500)
series = km.HomogeneousMap("chi2", 7).fit(np.arange(1.0, 256)[:, None])
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for label, frequencies, weights in (
    ("best cosines, 5 columns", design.frequencies, design.weights),
    ("Fourier series, 7 columns", series.frequencies_, series.weights_),
):
    miss = np.cos(np.outer(lag, frequencies)) @ weights - km.kernels.chi2.signature(lag)
    ax.plot(lag, 255 * np.exp(-lag / 2) * miss, label=label)
ax.axhline(0, color="0.8", zorder=0)
ax.set(xlabel="log(y / x)", ylabel="error of k(x, 255)", title="Equioscillation")
ax.legend(frameon=False)

# %%
# Size against error. The grey area is out of reach for every map, whatever its formula.

sizes = np.arange(1, 7)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, name in zip(axes, ("chi2", "intersection")):
    cosines = [km.design_map(name, int(d)) for d in sizes]
    tables = [km.design_map(name, int(d), method="minimax") for d in sizes]
    bound = [t.certificate.lower_bound for t in tables]
    ax.semilogy(sizes, [d.max_error for d in cosines], "o-", label="best cosines")
    ax.semilogy(sizes, [d.max_error for d in tables], "s-", label="best table")
    ax.fill_between(sizes, bound, 1e-6, color="0.85", label="no map")
    ax.set(title=name, xlabel="columns per feature", ylim=(1e-3, 60))
axes[0].set_ylabel("largest error on [1, 255]")
axes[0].legend(frameon=False)
plt.show()
