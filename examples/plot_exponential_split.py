"""
Error of exp-χ² features by stage
=================================

The exp-χ² kernel is approximated in two stages: an additive map, then random Fourier features. More
features only ever help the second. :func:`kernelmaps.kernel_error` tells the two errors apart, and
shows when to stop drawing features and take a better first stage instead.
"""

import matplotlib.pyplot as plt

import kernelmaps as km

X = km.datasets.load("digits").X_train[:200]

# %%
# A first stage of three columns, and one of ten, with more and more random features.

sizes = [100, 200, 400, 800, 1600]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, n_columns in zip(axes, (3, 10), strict=True):
    errors = [
        km.kernel_error(
            km.ExponentialMap(
                km.ChebyshevMap(n_columns), n_components=size, gamma="scale", random_state=0
            ),
            X,
        )
        for size in sizes
    ]
    ax.loglog(sizes, [e.rms for e in errors], "k", label="whole error")
    ax.loglog(sizes, [e.parts["random"].rms for e in errors], "--", label="random stage")
    ax.loglog(sizes, [e.parts["additive"].rms for e in errors], ":", label="additive stage")
    ax.set_title(f"ChebyshevMap({n_columns})")
    ax.set_xlabel("random features")
axes[0].set_ylabel("rms error of exp-χ²")
axes[0].legend()
plt.show()
