r"""
Do two samples have the same distribution?
==========================================

The maximum mean discrepancy is the distance between the mean feature vectors of two samples,

.. math:: \mathrm{MMD} = \Bigl\lVert \frac1n \sum_i φ(x_i) - \frac1m \sum_j φ(y_j) \Bigr\rVert .

Sums of mapped rows are all that it needs: they take one pass over the rows, and sums of parts add
up.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelmaps as km

rng = np.random.default_rng(0)
feature_map = km.RandomFourierMap(km.kernels.Gaussian(1.0), 100, random_state=0).fit(
    np.zeros((1, 1))
)


def normal(n):
    return rng.normal(size=(n, 1))


def laplace(n):
    return rng.laplace(scale=np.sqrt(0.5), size=(n, 1))  # variance 1, too


# %%
# Of 20,000 rows each, mapped in blocks: the sums are all that is kept. A normal and a Laplace
# distribution with the same mean and variance differ; two normal samples do not.


def mean_features(draw, n_rows, block=10_000):
    """Mean of φ, from the sums of blocks."""
    return (
        sum(feature_map.transform(draw(block)).sum(axis=0) for _ in range(n_rows // block)) / n_rows
    )


means = {"normal": mean_features(normal, 20_000), "Laplace": mean_features(laplace, 20_000)}
again = mean_features(normal, 20_000)
for name, mean in means.items():
    print(f"normal and {name}: MMD = {np.linalg.norm(again - mean):.4f}")

# %%
# How large may it be by chance? Under permutations of all rows the two samples are exchangeable:
# their distances are a sample of the null distribution. The features stay as they are, and every
# permutation costs one product with a matrix of signs.


def permuted(Z, n, count):
    """Squared discrepancies of the first n rows against the others: as given, then permuted."""
    signs = np.where(np.arange(len(Z)) < n, 1 / n, -1 / (len(Z) - n))
    signs = np.vstack([signs, [rng.permutation(signs) for _ in range(count)]])
    return np.sum((signs @ Z) ** 2, axis=1)


n, exact = 300, km.kernels.Gaussian(1.0)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for name, draw, color in (("normal", normal, "C0"), ("Laplace", laplace, "C1")):
    rows = np.concatenate([normal(n), draw(n)])
    found = permuted(feature_map.transform(rows), n, 1000)
    K = exact(rows)
    truth = K[:n, :n].mean() + K[n:, n:].mean() - 2 * K[:n, n:].mean()
    axes[0].hist(found[1:], bins=40, color=color, alpha=0.4, label=f"{name}, permuted")
    axes[0].axvline(found[0], color=color, label=f"{name}: p = {np.mean(found >= found[0]):.3f}")
    print(f"normal and {name}: MMD² = {found[0]:.5f}, by all pairs {truth:.5f}")
axes[0].set(xlabel="MMD² of 300 and 300 rows", ylabel="permutations")

# %%
# Share of tests that reject at the level of 5 %, by the number of rows. For two normal samples it
# is the level itself, whatever the number of rows and columns.

sizes, trials = [50, 100, 200, 400], 40
for name, draw, color in (("normal", normal, "C0"), ("Laplace", laplace, "C1")):
    shares = []
    for n in sizes:
        rejected = 0
        for _ in range(trials):
            Z = feature_map.transform(np.concatenate([normal(n), draw(n)]))
            found = permuted(Z, n, 99)
            rejected += int(np.sum(found >= found[0]) <= 5)  # of 100 values, its own among them
        shares.append(rejected / trials)
    axes[1].plot(sizes, shares, "o-", color=color, label=f"normal and {name}")
    print(f"normal and {name}, rejected of {trials}:", dict(zip(sizes, shares)))
axes[1].axhline(0.05, color="0.5", linestyle=":")
axes[1].set(xlabel="rows of each sample", ylabel="share of tests that reject", ylim=(0, 1))
for ax in axes:
    ax.legend(frameon=False)
plt.show()
