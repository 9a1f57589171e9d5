"""Evaluation of maps: error, accuracy and cost; comparison, choice and reports."""
