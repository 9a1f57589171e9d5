"""
Gaussian-process regression on a stream
=======================================

Ridge regression on random Fourier features is Gaussian-process regression whose cost grows linearly
with the number of rows: the sums that the fit needs hold the whole posterior. Below, rows come in
chunks; the smoothing parameter and the noise are those of largest marginal likelihood. Between the
rows, where nothing is known, the standard deviation of :math:`f` grows. The noise is skewed, which
the model does not know: its 90 % intervals cover 93 % of new rows. Conformal intervals, from the
residuals of rows that were not fitted, need no distribution, and cover 90 %.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelmaps as km

rng = np.random.default_rng(0)


def chunk(n):
    """Rows with a gap between 2 and 4, and targets with skewed noise."""
    x = rng.choice([0.0, 4.0], n) + 2 * rng.random(n)
    return x[:, None], np.sin(2 * x) + 0.2 * (rng.exponential(size=n) - 1)


chunks = [chunk(200) for _ in range(5)]
feature_map = km.RandomFourierMap(n_components=200, sigma=0.7, random_state=0)
model = km.StreamingRidge("evidence", feature_map).fit(chunks)
print(f"alpha {model.alpha_:.3g}, noise {np.sqrt(model.noise_variance_):.3f} (0.2 is true)")

grid = np.linspace(-0.5, 6.5, 400)[:, None]
mean, std = model.predict(grid, return_std=True)
rows, targets = (np.concatenate(part) for part in zip(*chunks))
scores = model.conformity_scores(*chunk(1000))
by_model = model.predict_interval(grid, level=0.9)
by_rows = model.predict_interval(grid, level=0.9, conformity_scores=scores)

fresh, fresh_targets = chunk(20_000)
for words, given in (("model", None), ("conformal", scores)):
    low, high = model.predict_interval(fresh, level=0.9, conformity_scores=given).T
    inside = np.mean((low <= fresh_targets) & (fresh_targets <= high))
    print(f"{words}: {inside:.1%} of new rows lie in their 90 % interval")

figure, axes = plt.subplots(figsize=(7, 3.5))
axes.plot(rows[:, 0], targets, ".", ms=2, color="0.7", label="rows")
axes.plot(grid, mean, label="mean")
axes.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, alpha=0.3, label="mean ± 2 std")
axes.plot(grid, by_model, color="C1", lw=0.8, label=["90 % interval, model", None])
axes.plot(grid, by_rows, color="C2", lw=0.8, ls="--", label=["90 % interval, conformal", None])
axes.set(xlabel="x", ylabel="y", ylim=(-3, 3))
axes.legend(fontsize=7, ncols=2)
figure.tight_layout()
