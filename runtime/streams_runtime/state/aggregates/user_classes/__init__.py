"""Aggregates by a class of the user's own, in Python."""
