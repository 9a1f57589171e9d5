"""Generalised additive models: coded columns, penalised terms, smoothness estimated by REML."""
