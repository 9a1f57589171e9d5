"""
Accuracy of compressive random features by number of measurements
=================================================================

A compressive camera takes few random measurements of an image. Random Fourier features of the
measurements are nearly as good as those of the image itself, and much cheaper.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import kernelmaps as km

digits = km.datasets.load("digits")
X, y, X_test, y_test = digits.X_train, digits.y_train, digits.X_test, digits.y_test

# %%
# How many coefficients hold 99 % of the energy of a digit? At 8×8 pixels, strokes are about as
# sparse as anything else; larger images are sparser in a basis. The map does not need to know it.

for basis in (None, "dct", "haar"):
    print(basis, km.effective_sparsity(X, basis, shape=(8, 8)))

# %%
# Accuracy of a linear classifier on 300 features, against the number of measurements.

measurements = [2, 4, 8, 16, 32, 64]
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
curves = {
    "measurements alone": lambda m, s: km.RandomOrthoprojector(m, random_state=s),
    "compressive features": lambda m, s: km.CompressiveFourierMap(m, 300, random_state=s),
}
for label, make in curves.items():
    scores = [
        np.mean(
            [
                make_pipeline(make(m, s), RidgeClassifier(1e-3)).fit(X, y).score(X_test, y_test)
                for s in range(2)
            ]
        )
        for m in measurements
    ]
    ax.semilogx(measurements, scores, "o-", base=2, label=label)
typical = make_pipeline(km.RandomFourierMap("gaussian", 300, random_state=0), RidgeClassifier(1e-3))
ax.axhline(typical.fit(X, y).score(X_test, y_test), color="0.5", label="features of all 64 pixels")
ax.set(xlabel="measurements m", ylabel="test accuracy")
ax.legend(frameon=False)
ax.grid(color="0.9")
plt.show()
