"""The benchmark's work on quixstreams: one process, until SIGTERM. Its packages come from the folder `--packages`."""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

WINDOW, GRACE = timedelta(minutes=10), timedelta(minutes=1)
"""As in topologies/windowed.yaml."""


def main() -> None:
    """Run until SIGTERM; then commit, close and print the last line."""
    arguments = _arguments()
    sys.path[:0] = [arguments.packages, str(Path(__file__).parents[1])]
    from printed import Printed
    from quixstreams import Application

    printed = Printed()
    printed.mark("created")

    def processed(topic: str, _partition: int, _offset: int) -> None:
        if topic == arguments.orders:
            printed.seen()

    app = Application(
        broker_address=arguments.bootstrap_servers,
        consumer_group=arguments.application_id,
        auto_offset_reset="earliest",
        state_dir=arguments.state_dir,
        processing_guarantee="exactly-once" if arguments.guarantee == "exactly_once_v2" else "at-least-once",
        on_message_processed=processed,
        loglevel="WARNING",
    )
    output = app.topic(arguments.output, key_serializer="bytes", value_serializer="json")
    TASKS[arguments.task](app, arguments).to_topic(output)
    printed.start()
    app.run()
    printed.mark("closed")
    printed.line()


def totals(app: Any, arguments: argparse.Namespace) -> Any:
    """Sum and count per key."""

    def add(order: dict[str, Any], state: Any) -> dict[str, int]:
        so_far = state.get("totals") or {"total": 0, "n": 0}
        added = {"total": so_far["total"] + order["amount"], "n": so_far["n"] + 1}
        state.set("totals", added)
        return added

    return accepted(app, arguments).apply(add, stateful=True)


def windowed(app: Any, arguments: argparse.Namespace) -> Any:
    """Count per key and window."""
    counted = accepted(app, arguments).tumbling_window(WINDOW, grace_ms=GRACE).count().current()
    return counted.apply(lambda window: {"start": window["start"], "n": window["value"]})


def joined(app: Any, arguments: argparse.Namespace) -> Any:
    """Orders with the tier of their user."""
    users = app.dataframe(app.topic(arguments.users, key_deserializer="bytes", value_deserializer="json"))
    return accepted(app, arguments).join_asof(
        users, on_merge=lambda order, user: {"amount": order["amount"], "tier": user["tier"]}
    )


def accepted(app: Any, arguments: argparse.Namespace) -> Any:
    """The orders that are not refused."""
    orders = app.dataframe(app.topic(arguments.orders, key_deserializer="bytes", value_deserializer="json"))
    return orders.filter(lambda order: order["amount"] >= 0)


TASKS = {"totals": totals, "windowed": windowed, "joined": joined}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", required=True)
    parser.add_argument("--task", choices=TASKS, required=True)
    for name in ("bootstrap-servers", "application-id", "state-dir", "orders", "output"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--users")
    parser.add_argument("--guarantee", choices=("at_least_once", "exactly_once_v2"), required=True)
    parser.add_argument("--until-end", action="store_true", help="makes no difference here")
    return parser.parse_args()


if __name__ == "__main__":
    main()
