"""
PCA and ridge regression from one pass over the rows
====================================================

A fold over chunks keeps only sums. From them follow the ridge models of all strengths and all PCA
sizes, and their held-out errors, without reading a row again.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelmaps as km

# %%
# Rows arrive in chunks; nothing else of them is kept.

rng = np.random.default_rng(0)


def chunks(n_chunks=20, rows=500):
    for _ in range(n_chunks):
        X = rng.normal(size=(rows, 5))
        yield X, np.sin(X @ [1.0, 2.0, 0.0, 0.0, -1.0]) + 0.5 * rng.normal(size=rows)


# %%
# Random Fourier features, 400 columns; the errors of four folds come from the same pass.

alphas, sizes = np.logspace(-3, 3, 13), [25, 50, 100, 200, 400]
model = km.StreamingRidge(
    alpha=alphas,
    feature_map=km.RandomFourierMap(n_components=400, sigma=1.5, random_state=0),
    n_components=sizes,
    validation=4,
).fit(chunks())

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
errors = model.cv_results_["mean_squared_error"]
for size, row in zip(sizes, errors, strict=True):
    axes.semilogx(alphas, row, ".-", label=f"{size} components")
axes.plot(model.alpha_, errors.min(), "ko", fillstyle="none", ms=10)
axes.axhline(0.25, color="0.6", ls=":", lw=1)
axes.set(xlabel="alpha", ylabel="held-out mean squared error", ylim=(0.2, 0.7))
axes.annotate("noise", (alphas[0], 0.25), va="bottom", color="0.4")
axes.legend(frameon=False)
plt.show()
