"""Days by the clock of a time zone, where clocks are set: in sinks, stores and expressions, and over a restart."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, run_until_done, send, until_done
from topology_drivers import Made, document
from zone_days import local

from streams_runtime.builder import StreamsBuilder, tumbling
from streams_runtime.builder import json as json_values
from streams_runtime.client import StreamsClient
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.query.wire.windowed_keys import Window

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

CLICKS = {
    "name": "clicks",
    "topic": "clicks",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "n BIGINT"},
}
DAYS = {"tumbling": {"size": "1d", "timezone": "Europe/Berlin"}, "retention": "3650d"}
HOURS = "timestampdiff(HOUR, _window_start, _window_end)"
COUNT = {"from": "clicks", "aggregate": {"n": "count(*)"}, "window": DAYS}


def berlin(text: str) -> datetime:
    return datetime.fromtimestamp(local("Europe/Berlin", text) / 1000, UTC)


SATURDAY, SUNDAY, MONDAY, TUESDAY = (berlin(f"2024-{each}") for each in ("03-30", "03-31", "04-01", "04-02"))
SPRING = Window(SUNDAY, MONDAY)
"""The day of 23 hours."""


def test_a_day_of_23_hours_ends_where_the_next_begins_in_sinks_stores_and_expressions(made: Made) -> None:
    per_day = {**COUNT, "name": "per-day", "store": "per-day"}
    ends = {"name": "ends", "from": "per-day", "select": {"n": "n", "hours": HOURS}}
    driver = made(document([CLICKS], [per_day, ends], {"days": "per-day", "ends": "ends"}))
    for at in (berlin("2024-03-30T23:59"), SUNDAY, berlin("2024-03-31T23:59"), MONDAY):
        driver.input_topic("clicks").pipe("ada", {"n": 1}, timestamp=at)
    found = [(each.key.window, each.value["n"]) for each in driver.output_topic("days").read_all()]
    assert found == [
        (Window(SATURDAY, SUNDAY), 1),
        (SPRING, 1),
        (SPRING, 2),
        (Window(MONDAY, TUESDAY), 1),
    ]
    assert [each.value["hours"] for each in driver.output_topic("ends").read_all()] == [24, 23, 23, 24]
    with driver.store("per-day").all() as stored:
        assert {key.window: value["n"] for key, value in stored} == {
            Window(SATURDAY, SUNDAY): 1,
            SPRING: 2,
            Window(MONDAY, TUESDAY): 1,
        }


def test_closed_days_and_their_changes_that_wait_have_the_ends_of_the_zone(made: Made) -> None:
    final = {**COUNT, "name": "final", "store": "final", "suppress": "untilWindowCloses"}
    per_day = {**COUNT, "name": "per-day", "store": "per-day"}
    waiting = {"name": "waiting", "from": "per-day", "toStream": {"suppress": {"within": "1h"}}}
    shown = [
        {"name": name, "from": of, "select": {"n": "n", "hours": HOURS}}
        for name, of in (("final-shown", "final"), ("waiting-shown", "waiting"))
    ]
    driver = made(
        document([CLICKS], [final, per_day, waiting, *shown], {"final": "final-shown", "waiting": "waiting-shown"})
    )
    clicks, closed = driver.input_topic("clicks"), driver.output_topic("final")
    clicks.pipe("ada", {"n": 1}, timestamp=berlin("2024-03-31T12:00"))
    clicks.pipe("bob", {"n": 1}, timestamp=berlin("2024-03-31T23:59:59.999"))
    assert closed.empty
    clicks.pipe("ada", {"n": 1}, timestamp=MONDAY)
    assert [(each.key.key, each.key.window, each.value) for each in closed.read_all()] == [
        (name, SPRING, {"n": 1, "hours": 23}) for name in ("ada", "bob")
    ]
    clicks.pipe("bob", {"n": 1}, timestamp=berlin("2024-03-31T13:00"))
    assert driver.counters.late_records == 2, "the day has closed, for each of the two"
    clicks.pipe("bob", {"n": 1}, timestamp=berlin("2024-04-01T12:00"))
    waited = driver.output_topic("waiting").read_all()
    assert [(each.key.window, each.value["hours"]) for each in waited if each.key.key == "bob"] == [(SPRING, 23)]


def test_the_builder_and_an_hour_that_comes_twice(made: Made) -> None:
    builder = StreamsBuilder()
    clicks = builder.stream("clicks", key="string", value=json_values("n BIGINT"))
    days = tumbling("1d", timezone="America/Havana")
    clicks.group_by_key().windowed_by(days, retention="9d").count(store="per-day").to("days")
    driver = made(builder)
    first_midnight, twice = local("America/Havana", "2022-11-06"), 3_600_000
    for moment in (first_midnight - 1, first_midnight, first_midnight + twice, first_midnight + 25 * twice):
        driver.input_topic("clicks").pipe("ada", {"n": 1}, timestamp=moment)
    found = [(each.key.window, each.value["count"]) for each in driver.output_topic("days").read_all()]
    lengths = [(window.end - window.start).total_seconds() / 3600 for window, _ in found]
    assert lengths == [24, 25, 25, 24]
    assert [count for _, count in found] == [1, 1, 2, 1]


def topology(prefix: str) -> str:
    source = {**CLICKS, "topic": f"{prefix}-clicks", "timestamp": "at"}
    source["value"] = {"format": "json", "schema": "at BIGINT"}
    final = {**COUNT, "name": "final", "store": "final", "suppress": "untilWindowCloses"}
    steps = [{**COUNT, "name": "per-day", "store": "per-day"}, final]
    return json.dumps({"sources": [source], "steps": steps, "sinks": [{"from": "final", "topic": f"{prefix}-final"}]})


def at(text: str) -> dict[str, int]:
    return {"at": local("Europe/Berlin", text)}


def counted(made: StreamsClient, key: str) -> list[tuple[Window, int]]:
    store: Any = made.store(StoreQueryParameters("per-day", type="window"))
    with store.fetch(key, key, berlin("2025-10-20"), berlin("2025-10-30")) as found:
        return [(windowed.window, value["n"]) for windowed, value in found]


def test_days_are_the_same_after_the_store_was_lost_on_the_day_of_25_hours(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, clicks, final = broker.bootstrap_servers, f"{namespace}-clicks", f"{namespace}-final"
    make_topics(bootstrap, **{clicks: 2, final: 2})
    saturday, sunday, monday, tuesday = (berlin(f"2025-10-{day}") for day in (25, 26, 27, 28))
    send(bootstrap, clicks, [("ada", at("2025-10-25T23:00")), ("ada", at("2025-10-26T00:00"))])
    with client(bootstrap, namespace, topology(namespace), tmp_path / "first") as made:
        run_until_done(made, [clicks])
    send(bootstrap, clicks, [("ada", at("2025-10-26T23:59:59")), ("ada", at("2025-10-26T03:30"))])
    with client(bootstrap, namespace, topology(namespace), tmp_path / "second") as made:
        run_until_done(made, [clicks])
        assert counted(made, "ada") == [(Window(saturday, sunday), 1), (Window(sunday, monday), 3)]
        send(bootstrap, clicks, [("ada", at("2025-10-27T00:00")), ("ada", at("2025-10-26T23:00"))])
        until_done(made, [clicks])
        assert counted(made, "ada")[1:] == [(Window(sunday, monday), 3), (Window(monday, tuesday), 1)]
        assert made.describe()["counters"]["late_records"] == 2  # type: ignore[index]
    closed = [(message.key(), json.loads(message.value())) for message in read(bootstrap, final)]
    starts = [round(day.timestamp() * 1000).to_bytes(8, "big") for day in (saturday, sunday)]
    assert closed == [(b"ada" + start, {"n": n}) for start, n in zip(starts, (1, 3), strict=True)]
