"""
A GAM of rents: curves, categories and a pair
=============================================

``AdditiveRegressor`` is a generalised additive model (GAM). It takes a table with text and missing
values as it is, estimates the smoothness of each curve, and can be drawn. The rents here are
simulated, so that the curves can be compared with those behind the data.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import kernelmaps as km
from kernelmaps.inspection import PairFunctionDisplay, ShapeFunctionDisplay

rng = np.random.default_rng(0)
n = 3000
flats = pd.DataFrame(
    {
        "area": rng.gamma(6.0, 12.0, n),
        "district": rng.choice(["north", "south", "harbour", "old town"], n),
        "built": np.where(rng.random(n) < 0.1, np.nan, rng.integers(1880, 2024, n)),
        "floor": rng.integers(0, 9, n),
        "lift": rng.choice(["yes", "no"], n),
    }
)
rent = 200 + 60 * np.sqrt(flats["area"]) + 0.02 * (flats["built"].fillna(1930) - 1950) ** 2
rent += flats["district"].map({"north": -40, "south": 0, "harbour": 90, "old town": 120})
rent += np.where(flats["lift"] == "no", -20 * flats["floor"], 10 * flats["floor"])
rent += 40 * rng.normal(size=n)
train, test = slice(0, 2000), slice(2000, None)

# %%
# A sum of functions of single columns cannot express that a high floor is worth more with a lift
# than without. ``interactions="auto"`` looks for such pairs of columns:

plain = km.AdditiveRegressor().fit(flats[train], rent[train])
model = km.AdditiveRegressor(interactions="auto").fit(flats[train], rent[train])
print("R² without pairs:", round(plain.score(flats[test], rent[test]), 3))
print("R² with pairs:   ", round(model.score(flats[test], rent[test]), 3))
print(model.summary())

# %%
# Each panel shows what a column adds to the rent, with a band of about 95 % and the density of the
# data below it.

ShapeFunctionDisplay.from_estimator(model, columns=3)

# %%
# The heat map of a pair shows what it adds to the functions of its two columns: without a lift,
# high floors lower the rent.

PairFunctionDisplay.from_estimator(model).plot()

# %%
# One flat, explained: the rent is the intercept plus the bars.

model.explain(flats.iloc[[2000]]).plot()

# %%
# ``km.model_report(model, "rent.html", X=flats[test], y=rent[test])`` puts all of this on one HTML
# page.

plt.show()
