"""A small application of a sum for each user, for tests of a client's life."""

from __future__ import annotations

USERS = [f"u{number}" for number in range(20)]


def totals(name: str) -> str:
    """Sources, steps and sinks: orders of `name`-orders, summed in the store `totals`, go to `name`-totals."""
    value = 'format: json, schema: "amount BIGINT"'
    return f"""
sources: [{{name: orders, topic: {name}-orders, key: {{format: string}}, value: {{{value}}}}}]
steps: [{{name: totals, from: orders, aggregate: {{total: sum(amount)}}, store: totals}}]
sinks: [{{from: totals, topic: {name}-totals}}]
"""
