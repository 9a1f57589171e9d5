r"""
Sets of descriptors: match kernels
==================================

An image is often described by a set of local descriptors, and two sets are compared by all pairs of
their members:

.. math:: K(S, T) = \sum_{s \in S} \sum_{t \in T} w_s w_t\, k(s, t).

With a feature map of :math:`k` this is an inner product of two sums, :math:`\sum_s w_s φ(s)` and
:math:`\sum_t w_t φ(t)`: a set of any size becomes one row, and no pair of descriptors is visited.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

import kernelmaps as km

digits = km.datasets.load("digits")
X, y = digits.X_train[:80], digits.y_train[:80]
X_test, y_test = digits.X_test[:50], digits.y_test[:50]

# %%
# A descriptor of each pixel where the image has a gradient: its place, in units of two pixels, and
# the direction of the gradient. Its weight is the length of the gradient.


def descriptors(images):
    """Rows (y, x, cos θ, sin θ) of all images one below the other, weights, starts of images."""
    down, right = np.gradient(images.reshape(-1, 8, 8), axis=(1, 2))
    length = np.hypot(down, right)
    image, row, column = np.nonzero(length > 0.1 * length.max())
    weight = length[image, row, column]
    sine, cosine = down[image, row, column] / weight, right[image, row, column] / weight
    rows = np.stack([row / 2, column / 2, cosine, sine], axis=1)
    return rows, weight, np.searchsorted(image, np.arange(len(images)))


rows, weights, starts = descriptors(X)
rows_test, weights_test, starts_test = descriptors(X_test)
print(f"{len(rows)} descriptors of {len(X)} images")

# %%
# The exact match kernel needs the kernel of all pairs of descriptors, 22 million values here. It
# is scaled so that every set has length one.

kernel = km.kernels.Gaussian(0.7)


def exact_sums(rows, weights, starts, others, other_weights, other_starts):
    """Σ_s Σ_t w_s w_t k(s, t) of all pairs of sets, some rows at a time."""
    ends = np.append(starts[1:], len(rows))
    return np.stack(
        [
            np.add.reduceat(weights[a:b] @ kernel(rows[a:b], others) * other_weights, other_starts)
            for a, b in zip(starts, ends)
        ]
    )


K = exact_sums(rows, weights, starts, rows, weights, starts)
K_test = exact_sums(rows_test, weights_test, starts_test, rows, weights, starts)
length = np.sqrt(np.diag(K))
own = [
    weights_test[a:b] @ kernel(rows_test[a:b]) @ weights_test[a:b]
    for a, b in zip(starts_test, np.append(starts_test[1:], len(rows_test)))
]
K = K / np.outer(length, length)
K_test = K_test / np.outer(np.sqrt(own), length)
exact_accuracy = SVC(kernel="precomputed", C=1000).fit(K, y).score(K_test, y_test)

# %%
# Sums of mapped descriptors: one pass over the descriptors, and a row of D numbers for each set.


def sums_of(feature_map, rows, weights, starts):
    """Σ_s w_s φ(s) of every set, of length one."""
    sums = np.add.reduceat(feature_map.transform(rows) * weights[:, None], starts, axis=0)
    return sums / np.linalg.norm(sums, axis=1, keepdims=True)


sizes = [16, 64, 256]
makers = {
    "random Fourier": lambda D: km.RandomFourierMap(kernel, D, random_state=0),
    "orthogonal": lambda D: km.RandomFourierMap(kernel, D, sampling="orthogonal", random_state=0),
    "Nyström": lambda D: km.NystroemMap(kernel, D, random_state=0),
}
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for name, make in makers.items():
    errors, accuracies = [], []
    for size in sizes:
        feature_map = make(size).fit(rows)
        Z = sums_of(feature_map, rows, weights, starts)
        Z_test = sums_of(feature_map, rows_test, weights_test, starts_test)
        errors.append(np.sqrt(np.mean((Z_test @ Z.T - K_test) ** 2)))
        model = SVC(kernel="linear", C=1000).fit(Z, y)
        accuracies.append(model.score(Z_test, y_test))
    axes[0].loglog(sizes, errors, "o-", label=name)
    axes[1].semilogx(sizes, accuracies, "o-", label=name)
    print(f"{name:15}", *(f"{e:.4f} / {a:.1%}" for e, a in zip(errors, accuracies)))
print(f"exact: {exact_accuracy:.1%}")
axes[1].axhline(exact_accuracy, color="0.5", label="exact match kernel")
axes[0].set(xlabel="columns D", ylabel="root mean square error of K(S, T)")
axes[1].set(xlabel="columns D", ylabel="test accuracy")
for ax in axes:
    ax.legend(frameon=False)
    ax.grid(color="0.9")
plt.show()
