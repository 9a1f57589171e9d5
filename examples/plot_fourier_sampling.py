"""
Error of random Fourier features by sampling scheme
===================================================

Random Fourier features average cosines over frequencies that are drawn from the spectrum of a
kernel. They need not be drawn independently: orthogonal directions and Walsh-Hadamard matrices
cover the spectrum more evenly, and the error falls.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelmaps as km

# %%
# Frequencies of a Gaussian kernel in two dimensions: independent draws leave holes and clumps.

figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), sharex=True, sharey=True, layout="constrained")
for ax, sampling in zip(axes, ("iid", "orthogonal"), strict=True):
    fitted = km.RandomFourierMap("gaussian", 256, sampling=sampling, random_state=0).fit(
        np.zeros((1, 2))
    )
    ax.plot(*fitted.spec_.arrays["matrix"], ".", markersize=3)
    ax.set(title=sampling, xlabel="first coordinate")
axes[0].set_ylabel("second coordinate")

# %%
# The error at equal size, for data with 16 features: mean of 5 seeds, the paired form. All lines
# fall as one over the root of the number of columns, from different heights.

X = 0.5 * np.random.default_rng(0).normal(size=(100, 16))
sizes = [64, 128, 256, 512, 1024]
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for sampling in ("iid", "structured", "orthogonal"):
    errors = []
    for size in sizes:
        maps = [
            km.RandomFourierMap(
                km.kernels.Gaussian(), size, sampling=sampling, form="paired", random_state=s
            )
            for s in range(5)
        ]
        errors.append(np.mean([km.kernel_error(m.fit(X), X).rms for m in maps]))
    ax.loglog(sizes, errors, "o-", label=sampling)
ax.loglog(sizes, errors[0] * np.sqrt(sizes[0] / np.array(sizes)), ":", color="0.5", label="1/√D")
ax.set(xlabel="columns D", ylabel="rms error of the kernel")
ax.legend(frameon=False)
ax.grid(color="0.9", which="both")
plt.show()
