"""What an instance is told besides the application's file: who it is, where it listens, where its state lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Peers = Callable[[str], str | None]
"""The URL of the other instance of this name, or None where nobody vouches for one. Callers send tokens there, so it
may not rest on what members of the group say of themselves. Must not block for long.
"""


def no_peers(_: str) -> None:
    """Vouches for no other instance."""


@dataclass(frozen=True, slots=True)
class InstanceSettings:
    """Settings of one streams client.

    `instance` is its static name in the group (the pod's name); `host` and `port` where it listens for queries
    (port 0: a free one); `advertised` the host:port that other instances and users reach it by, if that differs.
    `peers` knows the other instances; what it does not vouch for counts as an owner of no partition.
    `poll_seconds` is Kafka Streams' poll.ms: the longest wait for records of the restore consumer.
    """

    instance: str
    bootstrap_servers: str
    state_dir: Path
    host: str = "127.0.0.1"
    port: int = 0
    advertised: str | None = None
    poll_seconds: float = 0.1
    peers: Peers = no_peers
