"""Stores with damaged files in a running client: set aside, restored, and the others untouched."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, make_topics, run_until_done, send, until_done, until_running
from waiting import eventually

from streams_runtime.errors import TaskCorruptedException
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = pytest.mark.integration

USERS = 3000


def totals(prefix: str) -> str:
    return f"""
sources:
  - {{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {{format: json, schema: "amount BIGINT"}}}}
steps: [{{name: totals, from: orders, aggregate: {{total: sum(amount), n: count(*)}}, store: totals}}]
sinks: [{{from: totals, topic: {prefix}-totals}}]
"""


def largest_sst(store: Path) -> Path:
    return max(store.glob("*.sst"), key=lambda file: file.stat().st_size)


@pytest.mark.usefixtures("spark")
def test_damaged_files_found_at_the_start_by_a_query_and_by_a_batch_are_set_aside_and_restored(
    broker: Any, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    make_topics(bootstrap, **{orders: 3, f"{namespace}-totals": 1})
    topology = totals(namespace)
    with client(bootstrap, namespace, topology, tmp_path) as made:
        for number in range(3):
            send(bootstrap, orders, [(f"u{number}-{i}", {"amount": i}) for i in range(USERS)], number)
        run_until_done(made, [orders])

    root = tmp_path / namespace
    stores = [root / f"0_{number}" / "rocksdb" / "totals" for number in range(3)]
    os.truncate(largest_sst(stores[0]), 1000)  # shows when the store is opened
    for store in stores[1:]:  # shows when its blocks are read
        data = bytearray(largest_sst(store).read_bytes())
        for at in range(len(data) // 4):
            data[at] ^= 0xFF
        largest_sst(store).write_bytes(data)
    caplog.set_level(logging.WARNING, "streams_runtime")
    with client(bootstrap, namespace, topology, tmp_path) as made:
        run_until_done(made, [orders])

        def quarantined() -> int:
            assert made.state is not ClientState.ERROR, made.error
            return made.describe()["counters"]["quarantined_stores"]  # type: ignore[index, no-any-return]

        def restored() -> dict[int, int]:
            rows = made.describe()["restoration"]
            return {row["partition"]: row["restored"] for row in rows if row["ended_at"]}  # type: ignore[attr-defined]

        assert quarantined() == 1
        assert restored() == {0: USERS}

        second = made.store(StoreQueryParameters("totals", partition=1))
        with pytest.raises(TaskCorruptedException), second.all() as entries:
            list(entries)
        eventually(lambda: quarantined() == 2 and len(restored()) == 2, "the second is set aside and restored")
        assert restored() == {0: USERS, 1: USERS}
        until_running(made, 30)

        send(bootstrap, orders, [(f"u2-{i}", {"amount": 1}) for i in range(USERS)], 2)
        eventually(lambda: quarantined() == 3 and len(restored()) == 3, "the third is set aside and restored")
        until_done(made, [orders])
        assert restored() == {0: USERS, 1: USERS, 2: USERS}
        with made.store(StoreQueryParameters("totals")).all() as entries:
            found = {key: (value["total"], value["n"]) for key, value in entries}
        assert found == {
            f"u{number}-{i}": (i + 1, 2) if number == 2 else (i, 1) for number in range(3) for i in range(USERS)
        }
        sunk = last_values(bootstrap, f"{namespace}-totals")
        assert {key: (value["total"], value["n"]) for key, value in sunk.items()} == found
    places = sorted((root / "quarantine").iterdir())
    assert [place.name.rpartition("Z-")[2] for place in places] == [f"0_{number}-totals" for number in range(3)]
    assert all(any(str(place) in record.getMessage() for record in caplog.records) for place in places)
