"""
Accuracy and time of maps on one data set, compared
===================================================

Two functions answer two questions about your data: which is the smallest map of a kernel for a
given error (``choose``), and which kernel and map predict best for their cost (``compare``)?
"""

import matplotlib.pyplot as plt

import kernelmaps as km

X, y = km.datasets.make_histograms(400, 24, 2, n_counts=30, concentration=1.0, random_state=0)

# %%
# ``choose`` measures maps of growing size on pairs of rows that they have not seen, and takes the
# one with the fewest columns whose bound holds. The bound lies above the largest error seen, as it
# is meant for pairs to come.

choice = km.choose(X, "chi2", max_error=0.01, families=["HomogeneousMap", "SeriesMap"])
print(choice)

# %%
# All candidates, and the tolerance that they were held to.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
everyone = [choice.evidence, *choice.rejected]
for name in sorted({item.candidate.name for item in everyone}):
    own = sorted(
        (item for item in everyone if item.candidate.name == name), key=lambda i: i.columns
    )
    columns = [item.columns for item in own]
    (line,) = axes.plot(columns, [item.bound for item in own], "o-", label=f"{name}: bound")
    axes.plot(columns, [item.max for item in own], ":", color=line.get_color())
axes.axhline(0.01, color="0.6", linewidth=1)
axes.plot(choice.evidence.columns, choice.evidence.bound, "ks", markersize=10, fillstyle="none")
axes.set(yscale="log", xlabel="columns", ylabel="error on held-out pairs (dotted: largest seen)")
axes.legend()

# %%
# ``compare`` cross-validates linear models on maps beside yardsticks. Its result is a frame, with a
# table, a Pareto front, and a report: ``result.report("out.html")``.

result = km.compare(X, y, maps=["HomogeneousMap"], kernels=["chi2", "intersection"], sizes=[3, 5])
print(result.pareto()[["score", "seconds"]])

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for kind, rows in result.frame.groupby("kind"):
    axes.scatter(rows["seconds"], rows["score"], label=kind)
axes.set(xscale="log", xlabel="seconds to train", ylabel="accuracy")
axes.legend()
