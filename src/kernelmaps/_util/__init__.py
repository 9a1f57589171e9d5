"""Helpers that every part may import, and that import next to nothing."""
