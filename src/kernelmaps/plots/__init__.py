"""Plots: they take arrays, and compute what they draw before anything is drawn."""
