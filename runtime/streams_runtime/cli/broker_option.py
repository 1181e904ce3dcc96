"""The option that names the brokers, and how long a command waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from streams_runtime.kafka.admin.kafka_admin import Admin

LOCAL_BROKER = "localhost:9092"
PATIENCE = 60.0
"""Seconds that the brokers have to answer before a command gives up; a person waits in front of it."""


def bootstrap_option(text: str = "The brokers.") -> Any:
    """`--bootstrap-servers`, or else the variable STREAMSAPP_BOOTSTRAP_SERVERS; `text` is its help."""
    return typer.Option(metavar="HOST:PORT", envvar="STREAMSAPP_BOOTSTRAP_SERVERS", help=text)


def wait_for_broker(admin: Admin) -> None:
    """Wait until a broker answers, and report each failed attempt on stderr.

    Raises:
        BrokerNotAvailableException: none answered within PATIENCE. Check the address and the brokers.
    """
    admin.wait_for_broker(lambda attempt: typer.echo(attempt, err=True), timeout=PATIENCE)
