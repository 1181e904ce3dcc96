"""The guide's example of rows that expire: by stream time, late records, tombstones and new records included."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from streams_runtime.testing import START, Record, TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

EXAMPLE = Path(__file__).parents[2] / "examples" / "expiring.yaml"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def carts() -> Iterator[TopologyTestDriver]:
    with TopologyTestDriver(EXAMPLE) as made:
        yield made


def pipe(driver: TopologyTestDriver, key: str | None, items: int | None, minutes: int) -> None:
    value = None if items is None else {"items": items, "euros": 1.0}
    driver.input_topic("carts").pipe_all([Record(key, value, START + minutes * MINUTE)])


def there(driver: TopologyTestDriver) -> dict[str, int]:
    return {each.key: each.value["items"] for each in driver.store("open-carts").all()}


def touched(driver: TopologyTestDriver) -> set[str]:
    return {each.key for each in driver.store("touched").all()}


def test_rows_go_an_hour_after_their_last_record_and_come_back_with_the_next(carts: TopologyTestDriver) -> None:
    pipe(carts, "ada", 1, 0)
    pipe(carts, "bob", 2, 0)
    pipe(carts, "ada", 3, 30)
    pipe(carts, None, 9, 59)
    assert there(carts) == {"ada": 3, "bob": 2}
    pipe(carts, "cy", 4, 60)  # the punctuation behind it is an hour behind bob's record
    assert there(carts) == {"ada": 3, "cy": 4}
    pipe(carts, "ada", 5, 20)  # late: what it was touched at last stays
    pipe(carts, "cy", None, 89)
    assert (there(carts), touched(carts)) == ({"ada": 5}, {"ada"})
    pipe(carts, "bob", 6, 90)
    assert (there(carts), touched(carts)) == ({"bob": 6}, {"bob"})
    written = carts.output_topic("open-carts").read_all()
    assert [each.key for each in written if each.value is None] == ["bob", "cy", "ada"]


def test_a_backlog_in_one_batch_leaves_what_single_records_leave(carts: TopologyTestDriver) -> None:
    given = [("ada", 0), ("bob", 25), ("ada", 50), ("cy", 75), ("bob", 100), ("dan", 125)]
    with carts.batch():
        for number, (key, at) in enumerate(given):
            pipe(carts, key, number, at)
    # At 125 ada, of 50, is older than an hour, and cy, of 75, is not.
    assert there(carts) == {"cy": 3, "bob": 4, "dan": 5}
    with TopologyTestDriver(EXAMPLE) as single:
        for number, (key, at) in enumerate(given):
            pipe(single, key, number, at)
        assert there(single) == there(carts)
