"""Instances as the page sees them: real stores and real HTTP over states that are written by hand."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from query_stage import PARTITIONS, Place, QueryStage, query_stage

from streams_runtime.api.reading.load import parse_application
from streams_runtime.query.page.topology_document import topology_document
from streams_runtime.query.server.access import OPEN, QueryGuard
from streams_runtime.query.server.query_server import QueryServer
from streams_runtime.query.stores.views import KnownInstance, Owner
from streams_runtime.states import ClientState
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.plan import Topology

State = dict[str, Any]
EVIL = '<img src=x onerror="window.attacked=1"><script>window.attacked=1</script>\'"&amp;'
"""Does something where a page takes text for HTML."""

ORDERS = """\
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {name: orders}
spec:
  replicas: 2
  kafka: {bootstrapServers: "kafka:9092"}
  topology:
    sources:
      - {name: orders, topic: orders, key: {format: string}, timestamp: ts,
         value: {format: json, schema: "user STRING, amount DOUBLE, ts TIMESTAMP"}}
      - {name: people, topic: people, key: {format: string}, value: {format: json, schema: "country STRING"},
         table: {store: people}}
      - {name: countries, topic: countries, key: {format: string}, value: {format: json, schema: "title STRING"},
         table: {store: countries, global: true}}
    steps:
      - {name: paid, from: orders, where: "amount > 0 and user is not null"}
      - {name: by-user, from: paid, keyBy: user}
      - {name: with-country, from: by-user, join: {table: people, type: left, select: {country: people.country}}}
      - {name: counts, from: by-user, aggregate: {n: count(*)}, store: counts}
      - {name: per-minute, from: by-user, window: {tumbling: {size: 1m, grace: 10s}, retention: 1h},
         aggregate: {n: count(*)}, store: per-minute}
      - {name: visits, from: by-user, window: {session: {gap: 5m, grace: 1m}}, aggregate: {n: count(*)}, store: visits}
      - {name: titled, from: with-country, join: {table: countries, key: country, select: {title: countries.title}}}
    sinks:
      - {from: titled, topic: orders-with-country}
      - {from: counts, topic: orders-by-user}
      - {from: per-minute, topic: orders-per-minute}
"""


def topology_of(text: str) -> Topology:
    """Of a StreamsApplication as YAML."""
    return build_topology(parse_application(text))


def lag_row(topic: str, partition: int, position: int, lag: int | None) -> State:
    """One row of `lag`."""
    end = None if lag is None else position + lag
    return {"topic": topic, "partition": partition, "position": position, "committed": position, "end": end, "lag": lag}


def restoration_row(store: str, partition: int, done: int, all: int, rate: float | None, ended: bool = False) -> State:
    """One row of `restoration`; it began ten seconds ago."""
    now, left = time.time(), 0 if ended else all - done
    return {
        "store": store,
        "topic": f"orders-{store}-changelog",
        "partition": partition,
        "start": 0,
        "position": done,
        "end": all,
        "restored": done,
        "started_at": now - 10,
        "ended_at": now if ended else None,
        "remaining": left,
        "rate": rate,
        "eta_seconds": 0.0 if not left else None if rate is None else left / rate,
    }


def problem_row(message: str, level: str = "warning", **more: Any) -> State:
    """One row of `problems`."""
    row = {"at": time.time(), "level": level, "where": "orders-0-StreamThread-1", "message": message}
    return {**row, "class": None, "remedy": None, "times": 1, **more}


def calm(instance: str, partitions: Sequence[int]) -> State:
    """The state of an instance that runs, caught up."""
    return {
        "application_id": "orders",
        "instance": instance,
        "state": "RUNNING",
        "paused": False,
        "spark_ready": True,
        "url": "",
        "pid": 7,
        "transitions": [],
        "threads": [{"name": f"{instance}-StreamThread-1", "state": "RUNNING"}],
        "global_thread": None,
        "tasks": [
            {
                "id": f"{sub}_{partition}",
                "type": "active",
                "state": "RUNNING",
                "thread": f"{instance}-StreamThread-1",
                "partitions": [],
            }
            for sub in (0, 1)
            for partition in partitions
        ],
        "standbys": [],
        "restoration": [],
        "snapshots": None,
        "warm_up": None,
        "restoration_in_all": {"stores": 0, "remaining": 0, "rate": None, "eta_seconds": 0.0},
        "rates": {"restore": 0.0, "update": 0.0, "restore_ratio": 0.0, "update_ratio": 0.0},
        "lag": [
            lag_row(topic, each, 1000, 0) for topic in ("orders", "orders-by-user-repartition") for each in partitions
        ],
        "counters": {
            "records_processed": 5000,
            "batches": 9,
            "records_dropped": 0,
            "late_records": 0,
            "deserialization_errors": 0,
            "processing_errors": 0,
            "production_errors": 0,
            "dead_letters": 0,
            "restored_records": 0,
            "updated_records": 0,
            "quarantined_stores": 0,
        },
        "peeks": [],
        "dropped": [],
        "problems": [],
        "error": None,
    }


class PageInstance:
    """A Queryable: stores of a QueryStage, a state that can be set, and instances that can be named."""

    def __init__(self, name: str, stage: QueryStage, topology: Topology) -> None:
        self.name = name
        self.stage = stage
        self.topology_document: Mapping[str, Any] = topology_document(topology)
        self.known: list[KnownInstance] = []
        self.described: State = {}
        self.moves: Callable[[State, float], None] = lambda _state, _seconds: None
        """Called with a copy of the state, and how long ago it was set."""
        self._since = time.monotonic()

    def set(self, described: State, moves: Callable[[State, float], None] | None = None) -> None:
        """What `/state` answers from here on."""
        self.described, self.moves, self._since = described, moves or (lambda _state, _seconds: None), time.monotonic()
        self.stage.state = ClientState(described["state"])

    def describe(self) -> State:
        state = copy.deepcopy(self.described) | {"url": self.url}
        self.moves(state, time.monotonic() - self._since)
        return state

    def instances(self) -> list[KnownInstance]:
        return self.known

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stage, name)


class PageStage:
    """The application ORDERS as two instances with real servers: the first has partitions 0 and 2, the second 1."""

    def __init__(self, stages: Sequence[QueryStage], guard: QueryGuard = OPEN) -> None:
        topology = topology_of(ORDERS)
        names = ("orders-0", "orders-1")
        self.first, self.second = (
            PageInstance(name, stage, topology) for name, stage in zip(names, stages, strict=True)
        )
        self._servers = [QueryServer(each, "127.0.0.1", 0, grace=0, guard=guard) for each in (self.first, self.second)]  # type: ignore[arg-type]
        for each, server in zip((self.first, self.second), self._servers, strict=True):
            each.stage.url = f"http://127.0.0.1:{server.start()}"

    @property
    def url(self) -> str:
        """Of the first instance."""
        return self.first.stage.url

    def reset(self) -> None:
        """Both run, caught up, each knows the other."""
        owners = {0: self.first, 1: self.second, 2: self.first}
        for each, partitions in ((self.first, (0, 2)), (self.second, (1,))):
            each.stage.reset()
            for partition in range(PARTITIONS):
                each.stage.put(partition, Place.ACTIVE if partition in partitions else Place.ELSEWHERE)
            each.stage.known_owners = {number: Owner(one.name, one.stage.url) for number, one in owners.items()}
            each.known = [KnownInstance(one.name, one.stage.url, True) for one in (self.first, self.second)]
            each.set(calm(each.name, partitions))

    def stop(self) -> None:
        """Stop both servers."""
        for server in self._servers:
            server.stop()


@contextmanager
def page_stage(guard: QueryGuard = OPEN) -> Iterator[PageStage]:
    """Two running instances; stopped at the end."""
    with ExitStack() as opened:
        stages = [opened.enter_context(query_stage()) for _ in range(2)]
        stage = PageStage(stages, guard)
        opened.callback(stage.stop)
        stage.reset()
        yield stage
