"""Additive models of tables: coded columns, penalised terms, strengths chosen from sums."""
