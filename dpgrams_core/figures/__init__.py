"""Figures from arrays and releases: pure functions, each with its sentence and its table."""
