"""
Claims per year of insurance: counts with exposure
==================================================

Insurance policies run for different times, so that the number of claims has to be compared with the
time under risk. The Poisson loss with ``exposure=`` models claims per year:
log E[claims] = log(years) + f(age) + g(region) + … The data are simulated, and the true curve is
drawn beside the estimate.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import kernelmaps as km

rng = np.random.default_rng(0)
n = 20_000
policies = pd.DataFrame(
    {
        "age": rng.integers(18, 85, n),
        "power": rng.gamma(8, 12, n),
        "region": rng.choice(["coast", "city", "hills"], n, p=[0.3, 0.5, 0.2]),
    }
)
years = rng.uniform(0.05, 1.0, n)


def log_rate_of_age(age):
    return 1.1 * np.exp(-(age - 18) / 6) + 0.0006 * (age - 50) ** 2


log_rate = -2.6 + log_rate_of_age(policies["age"]) + 0.004 * policies["power"]
log_rate += policies["region"].map({"coast": -0.2, "city": 0.3, "hills": 0.0})
claims = rng.poisson(years * np.exp(log_rate))

# %%
# The model is fitted on claims and exposure, and predicts claims per year. Without the exposure,
# short policies would look safe:

model = km.AdditiveRegressor(loss="poisson").fit(policies, claims, exposure=years)
print(model.summary())
print("deviance explained:", round(model.score(policies, claims, exposure=years), 4))

# %%
# The estimated effect of the age with its band (95 %) beside the true one. Both are centred,
# since a constant can move between a curve and the intercept:

curve = {shape.name: shape for shape in model.shape_functions_}["age"]
truth = log_rate_of_age(curve.grid)
truth -= np.mean(log_rate_of_age(policies["age"]))

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
band = 1.96 * curve.errors
axes.fill_between(
    curve.grid, curve.values - band, curve.values + band, alpha=0.25, label="95 % band"
)
axes.plot(curve.grid, curve.values, label="estimate")
axes.plot(curve.grid, truth, "k--", linewidth=1, label="truth")
axes.set(xlabel="age", ylabel="effect on log claims per year")
axes.legend()
plt.show()
