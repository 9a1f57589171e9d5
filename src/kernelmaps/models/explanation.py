"""Explanation of one prediction: what each term adds to the score of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Explanation:
    """What each term adds to the score of one row, the largest first.

    Attributes
    ----------
    names : list of str
        Terms.
    shown : list of str
        The row's values of their columns.
    values, errors : ndarray of shape (n_terms,)
        Contributions and, where the model knows them, standard errors.
    intercept, score : float
        ``intercept + values.sum() == score``.
    output : str
        What the score is of: the class, or the prediction.
    """

    names: list[str]
    shown: list[str]
    values: np.ndarray
    intercept: float
    score: float
    output: str = "score"
    errors: np.ndarray | None = None

    def __str__(self) -> str:
        order = np.argsort(-np.abs(self.values), kind="stable")
        width = max([len(name) for name in self.names] + [9])
        value_width = max([len(text) for text in self.shown] + [0])
        lines = [
            f"{self.output}: {self.score:.6g}",
            f"  {'intercept'.ljust(width)}  {''.ljust(value_width)}  {self.intercept:+.4g}",
        ]
        for k in order:
            name, text = self.names[k].ljust(width), self.shown[k].ljust(value_width)
            error = "" if self.errors is None else f"  (se {self.errors[k]:.2g})"
            lines.append(f"  {name}  {text}  {self.values[k]:+.4g}{error}")
        return "\n".join(lines)

    def largest(self, n_terms: int) -> list[tuple[str, float, float]]:
        """Return the terms with the largest contributions, and the sum of the others.

        Parameters
        ----------
        n_terms : int
            How many.

        Returns
        -------
        list of (str, float, float)
            The term and the row's value, the contribution, and twice its standard error (NaN where
            that is not known).
        """
        order = np.argsort(-np.abs(self.values), kind="stable")
        errors = np.full(len(order), np.nan) if self.errors is None else self.errors
        contributions = [
            (f"{self.names[k]} = {self.shown[k]}", float(self.values[k]), float(2 * errors[k]))
            for k in order[:n_terms]
        ]
        remaining = order[n_terms:]
        if len(remaining):
            more = "1 more term" if len(remaining) == 1 else f"{len(remaining)} more terms"
            contributions.append((more, float(self.values[remaining].sum()), np.nan))
        return contributions

    def plot(self, ax: Any = None, *, n_terms: int = 15) -> Any:
        """Draw the largest contributions as bars; needs matplotlib."""
        import matplotlib.pyplot as plt

        labels, values, bands = zip(*reversed(self.largest(n_terms)), strict=True)
        if ax is None:
            _, ax = plt.subplots(figsize=(6, 0.3 * len(labels) + 1.2), layout="constrained")
        colors = ["#d1495b" if value < 0 else "#2a6f97" for value in values]
        ax.barh(
            range(len(labels)), values, color=colors, xerr=bands,
            error_kw={"ecolor": "0.4", "lw": 1},
        )  # fmt: skip
        ax.set_yticks(range(len(labels)), labels, fontsize=8)
        ax.axvline(0, color="0.5", lw=0.7)
        what = "prediction" if self.output == "prediction" else f"score of {self.output}"
        title = f"{what} {self.score:.4g} = intercept {self.intercept:.4g} + bars"
        ax.set_title(title, fontsize=9, loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        return ax
