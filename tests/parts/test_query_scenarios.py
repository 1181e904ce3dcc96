"""What becomes of queries over a client's life: rebalances, standbys, threads that die. On real stores."""

from __future__ import annotations

from typing import Any

import pytest
from query_stage import (
    KEY_VALUE,
    SPECS,
    STORES,
    WINDOW,
    WINDOW_STARTS,
    Place,
    QueryStage,
    counts,
    key_in,
    sessions,
    windows,
)

from streams_runtime.errors import (
    InvalidStateStorePartitionException,
    StateStoreMigratedException,
    StateStoreNotAvailableException,
    StreamsNotStartedException,
    StreamsRebalancingException,
)
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters, open_store
from streams_runtime.states import ClientState

CONTENTS: dict[str, Any] = dict(zip(STORES, (counts(), windows(), sessions()), strict=True))


def opened(stage: QueryStage, store: str, partition: int | None = None, stale: bool = False) -> Any:
    return open_store(stage, StoreQueryParameters(store, SPECS[store].kind, partition, stale))


def everything(handle: Any) -> list[Any]:
    with handle.fetch(None, None) if not hasattr(handle, "all") else handle.all() as records:
        return list(records)


@pytest.mark.parametrize("store", STORES)
def test_a_client_answers_from_its_start_to_its_end_as_its_state_says(stage: QueryStage, store: str) -> None:
    stage.put_all(Place.ELSEWHERE)
    stage.state = ClientState.CREATED
    with pytest.raises(StreamsNotStartedException):
        opened(stage, store)
    stage.state = ClientState.REBALANCING
    stage.put_all(Place.RESTORING)
    with pytest.raises(StreamsRebalancingException):
        opened(stage, store)
    stage.put_all(Place.ACTIVE)
    stage.state = ClientState.RUNNING
    handle = opened(stage, store)
    assert everything(handle) == CONTENTS[store]
    stage.state = ClientState.PENDING_SHUTDOWN
    stage.put_all(Place.ELSEWHERE)
    for state in (ClientState.PENDING_SHUTDOWN, ClientState.NOT_RUNNING):
        stage.state = state
        with pytest.raises(StateStoreNotAvailableException):
            everything(handle)
        with pytest.raises(StateStoreNotAvailableException):
            opened(stage, store)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("not_ready", [Place.RESTORING, Place.ASSIGNED])
def test_a_store_is_not_there_until_all_of_its_local_partitions_are(
    stage: QueryStage, store: str, not_ready: Place
) -> None:
    """A thread may be RUNNING a moment before its newest task is restored: no shorter answer is given meanwhile."""
    stage.put(1, not_ready)
    with pytest.raises(StreamsRebalancingException, match="still restoring partition 1"):
        opened(stage, store)
    assert everything(opened(stage, store, partition=0))
    stage.put(1, Place.ACTIVE)
    assert everything(opened(stage, store)) == CONTENTS[store]


@pytest.mark.parametrize("store", STORES)
def test_only_active_partitions_are_read_unless_stale_ones_are_asked_for(stage: QueryStage, store: str) -> None:
    stage.put(1, Place.STANDBY)
    assert 0 < len(everything(opened(stage, store))) < len(CONTENTS[store])
    with pytest.raises(InvalidStateStorePartitionException, match="partition 1 is not on this instance"):
        opened(stage, store, partition=1)
    assert everything(opened(stage, store, stale=True)) == CONTENTS[store]
    assert everything(opened(stage, store, partition=1, stale=True))


@pytest.mark.parametrize("store", STORES)
def test_a_standby_can_be_queried_during_a_rebalance_and_before_and_after_its_promotion(
    stage: QueryStage, store: str
) -> None:
    stage.put_all(Place.STANDBY)
    handle = opened(stage, store, stale=True)
    stage.state = ClientState.REBALANCING
    assert everything(handle) == CONTENTS[store]
    with pytest.raises(StreamsRebalancingException):
        opened(stage, store)
    # It becomes the active task: closed and opened again, then brought up to date, without being restored anew.
    stage.put_all(Place.ELSEWHERE)
    stage.put_all(Place.RESTORING)
    with pytest.raises(StreamsRebalancingException):
        everything(handle)
    assert everything(opened(stage, store, stale=True)) == CONTENTS[store]
    stage.put_all(Place.ACTIVE)
    stage.state = ClientState.RUNNING
    with pytest.raises(StateStoreMigratedException):
        everything(handle)
    assert everything(opened(stage, store)) == CONTENTS[store]


@pytest.mark.parametrize("stale", [False, True])
def test_queries_go_on_after_a_thread_has_died_and_another_has_its_tasks(stage: QueryStage, stale: bool) -> None:
    handle = opened(stage, WINDOW, stale=stale)
    stage.state = ClientState.REBALANCING
    stage.put(1, Place.ASSIGNED)
    with pytest.raises(StreamsRebalancingException):
        everything(handle)
    stage.put(1, Place.ACTIVE)
    stage.state = ClientState.RUNNING
    # The partition that the dead thread had was closed with it; those of the other thread never left.
    with pytest.raises(StateStoreMigratedException, match="partition 1"):
        everything(handle)
    assert handle.fetch(key_in(0), WINDOW_STARTS[0]) is not None
    assert everything(opened(stage, WINDOW, stale=stale)) == CONTENTS[WINDOW]


def test_a_store_that_moves_away_in_mid_iteration_is_never_a_shorter_answer(stage: QueryStage) -> None:
    handle = opened(stage, KEY_VALUE)
    records = handle.all()
    seen = [records.next()]
    stage.put(1, Place.ELSEWHERE)
    with pytest.raises(StateStoreMigratedException):
        seen.extend(records)
    assert len(seen) == 1
