"""Judging maps: their error, their accuracy, their cost; choosing between them; reporting it."""
