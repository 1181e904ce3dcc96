"""Writes orders at a steady rate, in a process of its own: `python paced.py --help`. Prints how far it fell behind."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import orjson
import typer
from bench_data import Orders, make_orders, order_messages, unique_orders
from bench_tasks import REFUSED_SHARE
from confluent_kafka import Producer

FLUSH_S = 30.0


def main(
    bootstrap_servers: Annotated[str, typer.Option()],
    topic: Annotated[str, typer.Option()],
    records: Annotated[int, typer.Option(help="Orders in all, of which the first are left out.")],
    keys: Annotated[int, typer.Option(help="Users; 0: each order has another one, and none is refused.")],
    seed: Annotated[int, typer.Option()],
    first: Annotated[int, typer.Option(help="Number of the first order to write.")],
    rate: Annotated[float, typer.Option(help="Orders a second.")],
    begin: Annotated[float, typer.Option(help="When the first is due, seconds since the epoch.")],
) -> None:
    """Write order `first` at `begin`, and each next one `1 / rate` seconds later."""
    orders = unique_orders(records) if keys == 0 else make_orders(records, keys, seed, REFUSED_SHARE)
    wanted = Orders(orders.users[first:], orders.amounts[first:])
    messages = [message for chunk in order_messages(wanted, first=first) for message in chunk]
    # The client's own guide for latency: send at once.
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "partitioner": "murmur2_random",
            "linger.ms": 0,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    behind = 0.0
    for number, message in enumerate(messages):
        due = begin + number / rate
        while (left := due - time.time()) > 0:
            producer.poll(0)
            time.sleep(min(left, 0.001) if left < 0.002 else left - 0.001)
        behind = max(behind, -left)
        producer.produce(topic, message.value, message.key, timestamp=message.timestamp)
    left_over = producer.flush(FLUSH_S)
    sys.stdout.write(orjson.dumps({"behind_s": behind}).decode() + "\n")
    if left_over:
        sys.exit(f"{left_over} records were not taken by the broker")


if __name__ == "__main__":
    typer.run(main)
