"""
A rare class: fraud in one of 90 payments
=========================================

With one positive row in 90, accuracy says nothing: "never" is right 98.9 % of the time. Average
precision looks at the top of the ranking. The probabilities of the additive model are calibrated,
so that a threshold follows from costs; weights are not needed.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, precision_recall_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelmaps as km

rng = np.random.default_rng(0)
n = 60_000
payments = pd.DataFrame(
    {
        "amount": rng.lognormal(3.5, 1.2, n),
        "hour": rng.uniform(0, 24, n),
        "account_age": rng.exponential(900, n),
    }
)
score = -7.0 + 4.0 * np.exp(-0.5 * ((payments["hour"] - 3) / 1.5) ** 2)
score += 2.5 * np.exp(-payments["account_age"] / 60)
score += 0.8 * np.log(payments["amount"] / 30).clip(0)
fraud = rng.random(n) < 1 / (1 + np.exp(-score))
train, test = slice(0, 40_000), slice(40_000, None)
print(f"{fraud.mean():.2%} of the payments")

# %%
# A linear model cannot express that fraud happens between two and four in the morning:

additive = km.AdditiveClassifier().fit(payments[train], fraud[train])
linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(payments[train], fraud[train])
p = {
    "additive": additive.predict_proba(payments[test])[:, 1],
    "linear": linear.predict_proba(payments[test])[:, 1],
}
for name, value in p.items():
    print(f"{name}: average precision {average_precision_score(fraud[test], value):.3f}")

# %%
# Precision against recall, and how often payments of a predicted probability are fraud:

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for name, value in p.items():
    precision, recall, _ = precision_recall_curve(fraud[test], value)
    left.plot(recall, precision, label=name)
    share, mean = calibration_curve(fraud[test], value, n_bins=8, strategy="quantile")
    right.loglog(mean, np.maximum(share, 1e-4), "o-", markersize=4, label=name)
left.set(xlabel="recall", ylabel="precision", title="ranking")
right.plot([1e-4, 0.5], [1e-4, 0.5], color="black", linewidth=0.8)
right.set(xlabel="predicted probability", ylabel="share of fraud", title="calibration")
left.legend()
plt.show()
