"""The totals of orders that tests of whole clients make, in whatever formats of a schema registry."""

from __future__ import annotations

import json
from collections.abc import Mapping


def totals_topology(prefix: str, orders: Mapping[str, str], totals: Mapping[str, str]) -> str:
    """Each user's total from the topic PREFIX-orders into PREFIX-totals; `orders` and `totals` are values' formats."""
    source = {"name": "orders", "topic": f"{prefix}-orders", "key": {"format": "string"}, "value": orders}
    steps = [
        {"name": "by-user", "from": "orders", "keyBy": "user"},
        {"name": "totals", "from": "by-user", "aggregate": {"total": "sum(amount)"}, "store": "totals"},
    ]
    sink = {"from": "totals", "topic": f"{prefix}-totals", "value": totals}
    return json.dumps({"sources": [source], "steps": steps, "sinks": [sink]})
