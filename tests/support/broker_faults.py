"""A cluster of three brokers to which everything happens that can happen to brokers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]
from relays import CLIENTS, Link, Relays
from replica_order import put_first
from waiting import eventually

from streams_runtime.kafka.broker.broker_cluster import EmbeddedCluster
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client.librdkafka_errors import QuietLog

_PATIENCE = 120.0  # seconds; JVMs start, on machines that have other things to do
_QUESTION = 5.0  # seconds
_LOOK = 0.2  # seconds between two looks at brokers that have enough to do


class Cluster:
    """Three brokers, each a controller too, with three replicas of each topic; what is done to them can be undone.

    Use it in `with`: whatever state they are in, nothing of them is left at the end. Brokers have the numbers 1 to 3.
    """

    def __init__(self, folder: Path, config: Mapping[str, str] | None = None, relayed: bool = False) -> None:
        """`relayed` puts relays before all listeners, which `cut` and `isolate` need."""
        self._resources = ExitStack()
        self._folder, self._config = folder, config
        self._relays = Relays() if relayed else None
        self._brokers: EmbeddedCluster | None = None
        self._paused: set[int] = set()

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find the brokers."""
        return self._embedded.bootstrap_servers

    @property
    def numbers(self) -> tuple[int, ...]:
        """All brokers, running or not."""
        return tuple(self._embedded.brokers)

    @property
    def controller(self) -> int:
        """The leader of the controllers, by what the latest of them has noted."""

        def notes() -> Iterator[tuple[int, int]]:
            for number in self.numbers:
                file = self.broker(number).data_dir / "kafka" / "__cluster_metadata-0" / "quorum-state"
                with suppress(FileNotFoundError, json.JSONDecodeError):
                    note = json.loads(file.read_text())
                    yield note["leaderEpoch"], note["leaderId"]

        found: list[int] = []

        def elected() -> bool:
            # -1: an election is under way.
            found[:] = [max(notes(), default=(0, -1))[1]]
            return found[0] > 0

        eventually(elected, "the controllers have a leader", _PATIENCE)
        return found[0]

    def broker(self, number: int) -> EmbeddedBroker:
        """The broker itself."""
        return self._embedded.brokers[number]

    def kill(self, number: int) -> None:
        """SIGKILL, and nothing else."""
        self.resume(number)
        self.broker(number).kill()

    def stop(self, number: int) -> None:
        """SIGTERM: the broker hands its partitions over first."""
        self.resume(number)
        self.broker(number).stop()

    def start(self, number: int) -> None:
        """Start one that was killed or stopped; returns when it answers, not yet when its replicas are in sync."""
        self.broker(number).start()

    def restart(self, number: int) -> None:
        """Stop in order, and start."""
        self.stop(number)
        self.start(number)

    def rolling_restart(self, between: Callable[[int], object] = lambda _: None) -> None:
        """Restart one after the other, each once all replicas are in sync, as an update of a cluster does."""
        for number in self.numbers:
            self.wait_until_in_sync()
            self.restart(number)
            between(number)
        self.wait_until_in_sync()

    def pause(self, number: int) -> None:
        """SIGSTOP: connections stay open, and nothing answers."""
        self._signal(number, signal.SIGSTOP)
        self._paused.add(number)

    def resume(self, number: int) -> None:
        """SIGCONT; nothing happens to one that runs."""
        if number in self._paused:
            self._signal(number, signal.SIGCONT)
            self._paused.discard(number)

    def isolate(self, number: int, clients: bool = False, state: Link = Link.SILENT) -> None:
        """Cut a broker off from the others, in both directions; with `clients` from these too."""
        others = [each for each in self.numbers if each != number]
        links = [(number, other) for other in others] + [(other, number) for other in others]
        self.cut(*links, *([(CLIENTS, number)] if clients else []), state=state)

    def cut(self, *links: tuple[int, int], state: Link = Link.SILENT) -> None:
        """Cut links, each from a broker, or CLIENTS, to a broker."""
        assert self._relays is not None, "this cluster was made without relays"
        self._relays.set(state, *links)

    def heal(self) -> None:
        """Undo all that was done: links are open, and every broker runs."""
        if self._relays is not None:
            self._relays.heal()
        for number in self.numbers:
            self.resume(number)
        self._embedded.start()

    def leaders(self, topic: str) -> dict[int, int]:
        """The leader of each partition; -1: none at present."""
        found = self._metadata().topics[topic].partitions
        return {number: each.leader for number, each in found.items()}

    def move_leaders(self, topic: str) -> None:
        """Give each partition of the topic another leader: of its replicas the next one that is in sync."""
        for number, partition in self._metadata().topics[topic].partitions.items():
            others = [each for each in partition.replicas if each != partition.leader]
            able = [each for each in others if each in partition.isrs]
            assert able, f"no other replica of {topic}-{number} is in sync"
            put_first(
                self.bootstrap_servers, topic, number, [able[0], *(r for r in partition.replicas if r != able[0])]
            )

    def wait_until_in_sync(self) -> None:
        """Wait until every replica of every topic is in sync."""
        behind: list[str] = ["not asked yet"]

        def in_sync() -> bool:
            try:
                topics = self._metadata().topics.values()
            except KafkaException as failure:
                behind[:] = [str(failure)]
                return False
            behind[:] = [
                f"{topic.topic}-{number}: {each.isrs} of {each.replicas}"
                for topic in topics
                for number, each in topic.partitions.items()
                if len(each.isrs) < len(each.replicas) or each.leader < 0
            ]
            return not behind

        eventually(in_sync, lambda: f"all replicas are in sync; {', '.join(behind[:5])}", _PATIENCE, _LOOK)

    def __enter__(self) -> Self:
        with ExitStack() as resources:
            if self._relays is not None:
                resources.enter_context(self._relays)
                made = EmbeddedCluster(self._folder, config=self._config, advertise=self._relays.advertise)
                self._relays.processes = lambda: {
                    each.pid: number for number, each in made.brokers.items() if each.pid is not None
                }
            else:
                made = EmbeddedCluster(self._folder, config=self._config)
            self._brokers = made
            resources.callback(made.kill)
            made.start()
            self._admin = AdminClient({"bootstrap.servers": made.bootstrap_servers}, logger=QuietLog())
            self._resources = resources.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    @property
    def _embedded(self) -> EmbeddedCluster:
        assert self._brokers is not None, "the cluster was not started"
        return self._brokers

    def _metadata(self) -> Any:
        return self._admin.list_topics(timeout=_QUESTION)

    def _signal(self, number: int, what: signal.Signals) -> None:
        pid = self.broker(number).pid
        if pid is not None:
            os.kill(pid, what)
