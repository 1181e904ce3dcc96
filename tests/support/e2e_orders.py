"""Orders by user in a cluster: an application, its records, and what has to come of them."""

from __future__ import annotations

from typing import Any

from clients import following_values, send
from e2e_kit import PATIENCE
from waiting import eventually


def totals(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    """Orders by user; topics have the namespace's name, which no other test has."""
    schema = {"format": "json", "schema": "amount BIGINT"}
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": name},
        "spec": {
            "applicationId": namespace,
            "replicas": 2,
            "kafka": {"bootstrapServers": "kafka:9092"},
            "topology": {
                "sources": [
                    {"name": "orders", "topic": f"{namespace}-orders", "key": {"format": "string"}, "value": schema}
                ],
                "steps": [
                    {"name": "totals", "from": "orders", "aggregate": {"total": "sum(amount)"}, "store": "totals"}
                ],
                "sinks": [{"from": "totals", "topic": f"{namespace}-totals"}],
            },
            **spec,
        },
    }


def orders(address: str, namespace: str, users: int, amount: int) -> None:
    send(address, f"{namespace}-orders", [(f"u{number}", {"amount": amount}) for number in range(users)])


def expect(address: str, namespace: str, users: int, total: int) -> None:
    wanted = {f"u{number}": {"total": total} for number in range(users)}
    values = following_values(address, f"{namespace}-totals", committed=True)
    eventually(lambda: values() == wanted, f"each total is {total}", PATIENCE)
