"""
A forecast from dates: trend, season and weekday
================================================

A column of dates becomes a trend and the parts that repeat within its range: the yearly cycle, the
weekday, the hour. The last year is held back and forecast; the dates are the only column.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import kernelmaps as km
from kernelmaps.inspection import ShapeFunctionDisplay

rng = np.random.default_rng(0)
day = pd.date_range("2018-01-01", "2024-12-31", freq="D")
t = np.arange(len(day))
births = 220 + 0.008 * t + 12 * np.cos(2 * np.pi * (day.day_of_year - 250) / 365.25)
births = births + np.where(day.day_of_week >= 5, -45, 0) + np.where(day.day_of_week == 0, -8, 0)
births = births + 10 * rng.normal(size=len(day))
table = pd.DataFrame({"day": day})
train, test = day.year < 2024, day.year == 2024

# %%
# Nothing has to be prepared. The trend goes on with the slope that it has at the end of the rows of
# ``fit``, and a warning says so. ``terms={"day": "trend"}`` would keep the trend alone:

model = km.AdditiveRegressor().fit(table[train], births[train])
print(model.term_names_)
print("R² of the next year:", round(model.score(table[test], births[test]), 3))

trend = km.AdditiveRegressor(terms={"day": "trend"}).fit(table[train], births[train])
print("R² of the trend alone:", round(trend.score(table[test], births[test]), 3))

# %%
# The parts with bands: smooth curves, of which the year's closes at its end, and a value for each
# day of the week:

ShapeFunctionDisplay.from_estimator(model).plot()

# %%
# Four weeks of the year that was held back, with intervals that hold 90 % of new days:

rows = table[test][100:128]
lower, upper = model.predict_interval(rows, level=0.9).T
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.fill_between(rows["day"], lower, upper, alpha=0.25, label="90 % interval")
axes.plot(rows["day"], model.predict(rows), label="forecast")
axes.plot(rows["day"], births[test][100:128], "k.", label="seen")
axes.legend()
axes.set_ylabel("births a day")
figure.autofmt_xdate()
plt.show()
