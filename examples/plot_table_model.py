"""
A model of a table that can be read
===================================

Columns of text, numbers with gaps, and a pair that matters: an additive regressor takes the table
as it is, chooses how smooth each curve is, and can be drawn. The rents here are made up, so that
what is found can be compared with what was put in.
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
# Main effects alone cannot say that a high floor is worth more with a lift than without. With
# ``interactions="auto"`` the pair is found:

plain = km.AdditiveRegressor().fit(flats[train], rent[train])
model = km.AdditiveRegressor(interactions="auto").fit(flats[train], rent[train])
print("R² without pairs:", round(plain.score(flats[test], rent[test]), 3))
print("R² with pairs:   ", round(model.score(flats[test], rent[test]), 3))
print(model.summary())

# %%
# Each panel is what a column adds to the rent, with a band of about 95 %, and the density of the
# data below it.

ShapeFunctionDisplay.from_estimator(model, columns=3)

# %%
# The pair shows what is beyond the functions of its two columns: without a lift, each floor costs.

PairFunctionDisplay.from_estimator(model).plot()

# %%
# One flat, explained: the rent is the intercept plus the bars.

model.explain(flats.iloc[[2000]]).plot()

# %%
# ``km.model_report(model, "rent.html", X=flats[test], y=rent[test])`` puts all of this on one HTML
# page.

plt.show()
