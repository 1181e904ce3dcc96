"""Changelogs between this project and real Kafka Streams: what one writes, the other restores to the same contents."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oracle_stores
import oracle_writing
import pytest
from clients import client, make_topics, run_until_done
from oracle_inputs import Input, events, orders, readings, write_input
from oracle_jvm import Key, Told, ask
from oracle_model import sums
from oracle_stores import FORMATS, PARTITIONS, Stores
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.state.window_store import SegmentedStore
from streams_runtime.topology.plan import Topology

# The first run on a machine fetches Kafka Streams through Maven.
pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]

EVENTS, READINGS = events(), readings()
FIRST, MORE = orders(500, seed=1), orders(300, seed=2)
TOTALS = """
sources:
  - {name: orders, topic: TOTALS-orders, key: {format: string}, value: {format: json, schema: "amount BIGINT"}}
steps:
  - {name: totals, from: orders, aggregate: {total: sum(amount), "n": count(*)}, store: totals}
"""
LEAST = {"counts": 8, "latest": 3, "tumbling": 100, "hopping": 50, "sessions": 100}
"""So many records are left in each store, at least."""


@dataclass(frozen=True)
class Place:
    """Where the tests of this file meet: brokers, a folder, and the ids of their applications."""

    bootstrap: str
    folder: Path
    totals: str
    theirs: str
    ours: str


@pytest.fixture(scope="module")
def place(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Place:
    ids = (f"oracle-{kind}-{uuid.uuid4().hex[:8]}" for kind in ("totals", "theirs", "ours"))
    made = Place(broker.bootstrap_servers, tmp_path_factory.mktemp("oracle"), *ids)
    inputs = [f"{application}-{name}" for application in (made.theirs, made.ours) for name in ("events", "readings")]
    make_topics(made.bootstrap, **dict.fromkeys([f"{made.totals}-orders", *inputs], PARTITIONS))
    return made


@pytest.fixture(scope="module")
def written_there(place: Place) -> Mapping[str, Told]:
    """What Kafka Streams had in its stores when it had processed all input, with everything in their changelogs."""
    write_input(place.bootstrap, f"{place.totals}-orders", FIRST, "string", "string")
    write_input(place.bootstrap, f"{place.theirs}-events", EVENTS, "string", "long")
    write_input(place.bootstrap, f"{place.theirs}-readings", READINGS, "long", "string")
    return ask("write", place.bootstrap, {"totals": place.totals, "stores": place.theirs}, place.folder)


@pytest.fixture(scope="module")
def restored_here(place: Place, written_there: Mapping[str, Told]) -> Iterator[tuple[Topology, Stores]]:
    """This project's stores, restored from those changelogs, which are as it would have made them."""
    topology = oracle_stores.planned(place.theirs)
    assert oracle_writing.set_up_topics(place.bootstrap, topology).created == ()
    with oracle_stores.opened(topology, place.folder / "theirs") as stores:
        oracle_stores.restore(place.bootstrap, place.theirs, stores)
        yield topology, stores


@pytest.fixture(scope="module")
def taken_over(place: Place, written_there: Mapping[str, Told]) -> dict[Key, Any]:
    """The store `totals` after a client of this project went on with Kafka Streams' application, and left it."""
    write_input(place.bootstrap, f"{place.totals}-orders", MORE, "string", "string")
    topology, once = TOTALS.replace("TOTALS", place.totals), {"guarantee": "exactly_once_v2"}
    with client(place.bootstrap, place.totals, topology, place.folder / "client", processing=once) as here:
        run_until_done(here, [f"{place.totals}-orders"])
        return {(key,): value for key, value in here.store(StoreQueryParameters("totals")).all()}


@pytest.fixture(scope="module")
def written_here(place: Place) -> Iterator[tuple[Topology, Stores, Mapping[str, int]]]:
    """This project's stores, with all that is in them in their changelogs, and the number of changes by store."""
    topology = oracle_stores.planned(place.ours)
    assert len(oracle_writing.set_up_topics(place.bootstrap, topology).created) == len(FORMATS)
    with oracle_stores.opened(topology, place.folder / "ours") as stores:
        # At the end come records whose windows have expired: they are in the changelog, and in no store.
        inputs = [*EVENTS, *EVENTS[:30]], [*READINGS, *READINGS[:30]]
        yield topology, stores, oracle_writing.write(place.bootstrap, stores, *inputs)


@pytest.fixture(scope="module")
def restored_there(place: Place, taken_over: object, written_here: object) -> Mapping[str, Told]:
    """What Kafka Streams has in its stores when it has restored both of this project's applications."""
    admin = Admin({"bootstrap.servers": place.bootstrap})
    eventually(lambda: not admin.group_members(place.totals), "the group has let its static member go")
    admin.close()
    return ask("read", place.bootstrap, {"totals": place.totals, "stores": place.ours}, place.folder)


def read(told: Told, store: str) -> dict[Key, Any]:
    """The values that the oracle told of a store; its JSON is text there."""
    values = told.values[store]
    in_json = FORMATS.get(store, ("string", "json"))[1] == "json"
    return {key: json.loads(value) if in_json else value for key, value in values.items()}


@pytest.mark.parametrize("store", FORMATS)
def test_a_store_restored_from_a_changelog_of_kafka_streams_holds_what_it_held_there(
    place: Place, written_there: Mapping[str, Told], restored_here: tuple[Topology, Stores], store: str
) -> None:
    told = written_there[place.theirs]
    assert len(told.values[store]) > LEAST[store]
    assert oracle_stores.contents(*restored_here, store) == read(told, store)
    if store != "sessions":  # the end of a session is its timestamp
        assert oracle_stores.times(*restored_here, store) == told.times[store]


@pytest.mark.parametrize("store", FORMATS)
def test_kafka_streams_restores_from_our_changelog_what_our_store_holds(
    place: Place,
    written_here: tuple[Topology, Stores, Mapping[str, int]],
    restored_there: Mapping[str, Told],
    store: str,
) -> None:
    topology, stores, changes = written_here
    told = restored_there[place.ours]
    assert told.restored[store] == changes[store]
    assert len(told.values[store]) > LEAST[store]
    # In the changelog alone, and left out by both: records that came when their windows had expired.
    for each in stores[store].values():
        assert not isinstance(each, SegmentedStore) or each.expired_records
    assert read(told, store) == oracle_stores.contents(topology, stores, store)
    if store != "sessions":
        assert told.times[store] == oracle_stores.times(topology, stores, store)


def test_a_client_takes_an_application_over_from_kafka_streams_and_gives_it_back(
    place: Place,
    written_there: Mapping[str, Told],
    taken_over: Mapping[Key, Any],
    restored_there: Mapping[str, Told],
) -> None:
    """Offsets, changelog and group go along, both ways and exactly once: nothing is missing, nothing counts twice."""
    assert read(written_there[place.totals], "totals") == in_store(FIRST)
    assert taken_over == in_store([*FIRST, *MORE])
    assert read(restored_there[place.totals], "totals") == taken_over
    latest = {(key,): max(each.time for each in [*FIRST, *MORE] if each.key == key) for (key,) in taken_over}
    assert restored_there[place.totals].times["totals"] == latest


def in_store(records: list[Input]) -> dict[Key, Any]:
    return {(key,): state for key, state in sums(records).items()}
