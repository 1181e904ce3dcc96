"""Aggregates, windowed or not: batches of rows into stored states, and the changes that are passed on."""
