"""
Exact kernels and their anchor maps as heat maps
================================================

An anchor map replaces a kernel by its values on a grid of anchors. The picture repeats Figure 2 of
the paper (four kernels on [0, 1], exact above, 100 anchors below), and adds what it does not show:
the error, and how interpolation between two anchors changes it.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelmaps as km

names = {
    "hellinger": "Hellinger",
    "chi2": "χ²",
    "intersection": "intersection",
    "jensen_shannon": "Jensen-Shannon",
}
x = np.linspace(0, 1, 201)[:, None]


def kernel_of(name, n_anchors, **options):
    Z = km.AnchorMap(name, n_anchors, energy=1, **options).fit_transform(x)
    return Z @ Z.T


# %%
# With 100 anchors the eye cannot tell the rows apart.

figure, axes = plt.subplots(2, 4, figsize=(11, 5.6), sharex=True, sharey=True, layout="constrained")
for column, (name, label) in zip(axes.T, names.items()):
    for ax, values in zip(column, (getattr(km.kernels, name)(x), kernel_of(name, 100))):
        image = ax.imshow(values, origin="lower", extent=(0, 1, 0, 1), vmin=0, vmax=1)
    column[0].set_title(label)
axes[0, 0].set_ylabel("exact")
axes[1, 0].set_ylabel("100 anchors")
figure.colorbar(image, ax=axes, shrink=0.8)

# %%
# The errors differ, and not only in size. The nearest of 20 anchors errs by a sawtooth in both
# directions; interpolation errs where a kernel bends: on the diagonal of the intersection, near 0
# for Hellinger and Jensen-Shannon.

figure, axes = plt.subplots(2, 4, figsize=(11, 5.6), sharex=True, sharey=True, layout="constrained")
for column, (name, label) in zip(axes.T, names.items()):
    exact = getattr(km.kernels, name)(x)
    for ax, k in zip(column, (1, 2)):
        error = kernel_of(name, 20, n_neighbors=k) - exact
        image = ax.imshow(
            error, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu", vmin=-0.05, vmax=0.05
        )
        ax.set_title(f"{label}: {np.abs(error).max():.3f}")
axes[0, 0].set_ylabel("nearest of 20 anchors")
axes[1, 0].set_ylabel("between two of 20")
figure.suptitle("error, with its largest magnitude")
figure.colorbar(image, ax=axes, shrink=0.8)

# %%
# More anchors help the one in proportion, the other in proportion to the square.

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
sizes = np.array([10, 20, 40, 80])
for index, (name, label) in enumerate(names.items()):
    for k, style in ((1, "o-"), (2, "s--")):
        errors = []
        for n in sizes:
            gap = kernel_of(name, int(n), n_neighbors=k) - getattr(km.kernels, name)(x)
            errors.append(np.sqrt(np.mean(gap**2)))
        ax.loglog(sizes, errors, style, color=f"C{index}", label=label if k == 1 else None)
ax.set(xlabel="anchors", ylabel="rms error", title="nearest anchor (solid), interpolated (dashed)")
ax.legend(frameon=False)
ax.grid(color="0.9")
plt.show()
