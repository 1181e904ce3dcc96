"""Internal topics that are deleted behind the application's back: noticed while RUNNING, seen to as at a rebalance."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, send
from topic_apps import TopicApp, delete
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.errors import InvalidStateStoreException, MissingInternalTopicException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState
from streams_runtime.topics.application_topics import ApplicationTopics

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

KINDS = ["repartition", "changelog"]


@pytest.fixture
def admin(broker: Any) -> Iterator[Admin]:
    found = Admin(client_properties(broker.bootstrap_servers, {}))
    yield found
    found.close()


def prepared(admin: Admin, prefix: str, setup: str) -> TopicApp:
    app = TopicApp(prefix, admin.address, setup=setup)
    app.make_users_topics(admin)
    ApplicationTopics(app.resource).init()
    return app


def running(app: TopicApp, admin: Admin, state: Path, instance: str = "i-0") -> Any:
    setup = {"setup": app.resource.spec.internal_topics.setup}
    return client(
        admin.address, app.resource.application_id, str(app.topology_spec), state, instance, internalTopics=setup
    )


def counted(made: StreamsClient) -> dict[str, int]:
    """The store's counts; none while it can't be asked."""
    assert made.state is not ClientState.ERROR, made.error
    if made.state is not ClientState.RUNNING:
        return {}
    try:
        with made.store(StoreQueryParameters("totals")).all() as entries:
            return {user: value["n"] for user, value in entries}
    except InvalidStateStoreException:
        # The client runs what it has; the group has not given out yet what was made again.
        return {}


def order(admin: Admin, app: TopicApp, *users: str) -> None:
    send(admin.address, app.source, [(None, {"user": user, "amount": 1.0}) for user in users])


@pytest.mark.parametrize("records", ["idle", "busy"])
@pytest.mark.parametrize("kind", KINDS)
def test_in_manual_mode_it_ends_every_client_in_error_and_the_topic_is_not_made_again(
    admin: Admin, namespace: str, tmp_path: Path, kind: str, records: str
) -> None:
    app = prepared(admin, namespace, "manual")
    lost = getattr(app, kind)
    with (
        running(app, admin, tmp_path / "0", "i-0") as first,
        running(app, admin, tmp_path / "1", "i-1") as second,
    ):
        both = (first, second)
        for made in both:
            made.start()
        order(admin, app, "ada", "bob", "ada")
        eventually(lambda: counted(first) | counted(second) == {"ada": 2, "bob": 1}, "the orders are counted")
        delete(admin, [lost])
        if records == "busy":
            order(admin, app, *"abcdefgh")
        for made in both:
            assert made.wait_for(ClientState.ERROR, timeout=90), made.state
            assert isinstance(made.error, MissingInternalTopicException), made.error
            assert lost in str(made.error)
            assert [state for state, _ in made.transitions][-2:] == [ClientState.PENDING_ERROR, ClientState.ERROR]
    assert app.present(admin) == {*app.internal} - {lost}


@pytest.mark.parametrize("records", ["idle", "busy"])
@pytest.mark.parametrize("kind", KINDS)
def test_in_automatic_mode_it_is_made_again_with_a_warning_and_the_application_goes_on(
    admin: Admin, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, records: str
) -> None:
    app = prepared(admin, namespace, "automatic")
    lost = getattr(app, kind)
    with running(app, admin, tmp_path) as made:
        made.start()
        order(admin, app, "ada", "bob", "ada")
        eventually(lambda: counted(made) == {"ada": 2, "bob": 1}, "the orders are counted")
        caplog.set_level(logging.WARNING)
        delete(admin, [lost])
        if records == "busy":
            order(admin, app, *"abcdefgh")
        eventually(lambda: app.present(admin) == {*app.internal}, f"{lost} is made again")
        eventually(
            lambda: any("made again" in each.getMessage() and lost in each.getMessage() for each in caplog.records),
            "a warning says so",
        )
        order(admin, app, "ada", "cid")
        # What lay in a deleted repartition topic is lost; all that came later is not, in either partition.
        eventually(lambda: counted(made).items() >= {"ada": 3, "cid": 1}.items(), "later orders are counted")
        if records == "busy" and kind == "changelog":
            eventually(lambda: counted(made).keys() >= set("abcdefgh"), "orders of the outage are counted")
    assert {user: value["n"] for user, value in last_values(admin.address, app.sink).items()}["ada"] == 3


@pytest.fixture
def creating(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker that makes topics for whoever asks for one."""
    with EmbeddedBroker(tmp_path / "broker", config={"auto.create.topics.enable": "true"}) as running_broker:
        yield running_broker


@pytest.mark.parametrize("kind", KINDS)
def test_a_broker_that_makes_topics_by_itself_is_given_no_occasion_to_make_an_internal_one(
    creating: EmbeddedBroker, namespace: str, tmp_path: Path, kind: str
) -> None:
    admin = Admin(client_properties(creating.bootstrap_servers, {}))
    app = prepared(admin, namespace, "manual")
    lost = getattr(app, kind)
    with running(app, admin, tmp_path / "state") as made:
        made.start()
        order(admin, app, "ada")
        eventually(lambda: counted(made) == {"ada": 1}, "the order is counted")
        delete(admin, [lost])
        order(admin, app, *"abcdefgh")
        assert made.wait_for(ClientState.ERROR, timeout=90)
        assert isinstance(made.error, MissingInternalTopicException), made.error
    assert app.present(admin) == {*app.internal} - {lost}
