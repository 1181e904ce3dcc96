"""Spark's part of each kind of step."""
