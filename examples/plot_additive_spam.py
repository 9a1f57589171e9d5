"""
Shape functions of a spam filter
================================

An additive support vector machine is as easy to train as a linear one, but the effect of each word
may depend on how often it occurs. And because the score is a sum of one function for each word,
what was learned can be plotted.

The messages are synthetic; they resemble the *spambase* ones, mails received in one office of
Hewlett-Packard.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import kernelmaps as km
from kernelmaps.inspection import ShapeFunctionDisplay

rng = np.random.default_rng(0)
labels = rng.random(3000) < 0.4
names = ["george", "hp", "meeting", "free", "money", "remove", "!", "$"]
spam = np.array([0.0, 0.1, 0.1, 0.9, 0.7, 0.6, 1.0, 0.8])
ham = np.array([1.2, 1.0, 0.6, 0.2, 0.1, 0.05, 0.3, 0.1])
rows = rng.gamma(0.6, np.where(labels[:, None], spam, ham) + 1e-6)
X, y, X_test, y_test = rows[:2000], labels[:2000], rows[2000:], labels[2000:]

# %%
# Frequencies are skewed: most are zero, a few are large. The logarithm spreads them out. First a
# linear classifier, then an additive one on cubic splines. Of several values of C,
# ``AdditiveSVC`` chooses one by cross-validation, with warm starts from each to the next.

X, X_test = np.log1p(X), np.log1p(X_test)
scaler = StandardScaler().fit(X)
linear = LinearSVC(C=0.1, random_state=0).fit(scaler.transform(X), y)
splines = km.SplineMap(n_bases=10, out_of_domain="extrapolate")
model = km.AdditiveSVC(splines, C=[0.01, 0.03, 0.1, 0.3], cv=3).fit(X, y)
print(f"linear:   test accuracy {linear.score(scaler.transform(X_test), y_test):.1%}")
print(f"additive: test accuracy {model.score(X_test, y_test):.1%}, C = {model.C_:g}")

# %%
# The eight functions that matter most, all on one scale. Values above zero speak for spam. The bars
# show where the data are. *george* and *hp* are the recipient and the company: whoever writes them
# knows the recipient. A single mention is enough, and more of them add little, which a straight
# line cannot express.

ShapeFunctionDisplay.from_estimator(model, n_features=8, names=names)
plt.show()

# %%
# The score of one message is the sum of its terms, so every decision comes with its reasons.

terms = model.eval_terms(X_test)
scores = model.decision_function(X_test)
clearest = int(np.argmax(scores))
order = np.argsort(-np.abs(terms[clearest]))[:6]
assert np.allclose(terms.sum(axis=1) + model.intercept_, scores, atol=1e-4)

figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
colors = np.where(terms[clearest, order] > 0, "#d1495b", "#2a6f97")
ax.barh([names[j] for j in order], terms[clearest, order], color=colors)
ax.invert_yaxis()
ax.axvline(0, color="0.4", lw=0.8)
ax.spines[["top", "right"]].set_visible(False)
ax.set(title=f"The clearest case of spam: score {scores[clearest]:.2f}", xlabel="part of the score")
plt.show()

# %%
# Scores of the squared hinge loss are no log odds; scikit-learn makes them probabilities.

calibrated = CalibratedClassifierCV(model.set_params(C=model.C_), cv=3).fit(X, y)
likely = calibrated.predict_proba(X_test)[:, 1]
assert ((likely > 0.5) == (likely.round() == 1)).all()
print(f"of {np.sum(likely > 0.99)} messages that are spam with more than 99 %, "
      f"{np.mean(y_test[likely > 0.99] == model.classes_[1]):.1%} are")  # fmt: skip
