"""What an instance is told besides the application's file: who it is, where it listens, where its state lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class InstanceSettings:
    """Settings of one streams client.

    `instance` is its static name in the group (the pod's name); `host` and `port` where it listens for queries
    (port 0: a free one); `advertised` the host:port that other instances and users reach it by, if that differs.
    """

    instance: str
    bootstrap_servers: str
    state_dir: Path
    host: str = "127.0.0.1"
    port: int = 0
    advertised: str | None = None
