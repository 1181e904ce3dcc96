"""What an instance is told besides the application's file: who it is, where it listens, where its state lies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from streams_runtime.errors import ConfigException

_TAG_KEY = re.compile(r"[A-Za-z0-9._/-]{1,317}")  # of a label in Kubernetes: a domain's name, /, and a name
_TAG_VALUE = re.compile(r"[A-Za-z0-9._-]{1,63}")
_INSTANCE = re.compile(r"[A-Za-z0-9._-]{1,249}")  # Kafka's rule for group.instance.id

Peers = Callable[[str], str | None]
"""The URL of the other instance of this name, or None where nobody vouches for one. Callers send tokens there, so it
may not rest on what members of the group say of themselves. Must not block for long.
"""


def no_peers(_: str) -> None:
    """Vouches for no other instance."""


LastWords = Callable[[str], Mapping[str, str | None] | None]
"""The termination message (`state`, `class`, `message`) of the other instance of this name, if it has ended and whoever
hosts both can read it. Must not block for long.
"""


def no_last_words(_: str) -> None:
    """Knows of no other instance how it ended."""


@dataclass(frozen=True, slots=True)
class InstanceSettings:
    """Settings of one streams client that are not in the resource: who it is, where it listens, where its state lies.

    `instance` is its static name in the group (the pod's name), of letters, digits, `.`, `_` and `-`, at most 249.
    `host` and `port` are where it listens for queries (port 0: a free one); `advertised` is the host:port that other
    instances and users reach it by, if that differs. `peers` knows the other instances: one that it does not vouch for
    counts as an owner of no partition. `last_words` are those of instances that have ended, for people. `client_tags`
    are Kafka Streams' client.tag.*: where the instance is, by the keys of spec.processing.rackAwareAssignmentTags.
    """

    instance: str
    bootstrap_servers: str
    state_dir: Path
    host: str = "127.0.0.1"
    port: int = 0
    advertised: str | None = None
    peers: Peers = no_peers
    last_words: LastWords = no_last_words
    client_tags: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ConfigException for an instance's name or a tag that brokers or client ids can't hold."""
        if not _INSTANCE.fullmatch(self.instance):
            raise ConfigException(
                f"found {self.instance!r} as the instance's name: use letters, digits, . _ and -, at most 249 of them"
            )
        for key, value in self.client_tags.items():
            if not _TAG_KEY.fullmatch(key):
                raise ConfigException(f"found {key!r} as a tag's key: write it as a label's, such as zone")
            if not _TAG_VALUE.fullmatch(value):
                raise ConfigException(
                    f"found {value!r} as the value of the tag {key}: use letters, digits, . _ and -, 1 to 63 of them"
                )
