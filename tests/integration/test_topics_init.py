"""KIP-698's init() on a real broker: each row of its table, all or nothing, several clients at once."""

from __future__ import annotations

import itertools
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from clients import client
from topic_apps import TopicApp, delete
from waiting import DEADLINE

from streams_runtime.api import parse_application
from streams_runtime.client import StreamsClient
from streams_runtime.errors import (
    BrokerNotAvailableException,
    ConfigException,
    IllegalStateException,
    MisconfiguredInternalTopicException,
    MissingInternalTopicException,
    MissingSourceTopicException,
    TopologyException,
)
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.types import TopicSpec
from streams_runtime.settings import InstanceSettings
from streams_runtime.states import ClientState
from streams_runtime.topics.application_topics import ApplicationTopics
from streams_runtime.topics.setup_policy import InitParameters

pytestmark = pytest.mark.integration

ALL = tuple(InitParameters(*each) for each in itertools.product([False, True], repeat=2))


@pytest.fixture
def app(broker: Any, namespace: str, admin: Admin) -> TopicApp:
    """Its users' topics are there, its internal topics are not."""
    made = TopicApp(namespace, broker.bootstrap_servers, setup="manual")
    made.make_users_topics(admin)
    return made


def streams_client(app: TopicApp, state: Path, instance: str = "i-0") -> StreamsClient:
    address = app.resource.spec.kafka.bootstrap_servers
    assert address is not None
    return StreamsClient(app.resource, InstanceSettings(f"{app.source}-{instance}", address, state))


@pytest.mark.parametrize("parameters", ALL)
def test_with_no_internal_topic_there_init_makes_all_and_a_second_init_nothing(
    app: TopicApp, admin: Admin, parameters: InitParameters
) -> None:
    topics = ApplicationTopics(app.resource)
    first = topics.init(parameters)
    assert (first.result, first.created, first.existing, first.tasks) == ("Created", app.internal, (), 6)
    assert app.present(admin) == set(app.internal)
    second = topics.init(parameters)
    assert (second.result, second.created, second.existing) == ("AlreadySetUp", (), app.internal)


@pytest.mark.parametrize("parameters", ALL)
@pytest.mark.parametrize("kind", ["repartition", "changelog"])
def test_of_an_incomplete_set_init_makes_the_kinds_that_are_enabled_and_else_nothing(
    app: TopicApp, admin: Admin, kind: str, parameters: InitParameters
) -> None:
    topics = ApplicationTopics(app.resource)
    topics.init()
    lost = getattr(app, kind)
    delete(admin, [lost])
    if getattr(parameters, f"setup_{kind}_topics_if_incomplete_enabled"):
        rehearsed = topics.rehearse(parameters)
        assert app.present(admin) == {*app.internal} - {lost}
        assert rehearsed.created == topics.init(parameters).created == (lost,)
        assert app.present(admin) == {*app.internal}
        return
    for call in (topics.rehearse, topics.init):
        with pytest.raises(MissingInternalTopicException, match=f"{lost}.*--setup-{kind}-topics-if-incomplete"):
            call(parameters)
        assert app.present(admin) == {*app.internal} - {lost}


def test_when_one_of_two_missing_kinds_is_not_enabled_nothing_is_made(broker: Any, namespace: str) -> None:
    """Three internal topics: one is left, and of the missing ones only the changelog would be allowed."""
    app = TopicApp(namespace, broker.bootstrap_servers)
    app.document["spec"]["topology"]["steps"] += [
        {"name": "by-amount", "from": "orders", "keyBy": "cast(amount as string)"},
        {"name": "amounts", "from": "by-amount", "aggregate": {"n": "count(*)"}, "store": "amounts"},
    ]
    app.document["spec"]["internalTopics"] = {"setup": "manual"}
    admin = Admin(client_properties(broker.bootstrap_servers, {}))
    app.make_users_topics(admin)
    topics = ApplicationTopics(parse_application(app.document))
    made = topics.init().created
    assert len(made) == 4
    lost = [app.repartition, f"{namespace}-amounts-changelog"]
    delete(admin, lost)
    only_changelogs = InitParameters().enable_setup_changelog_topics_if_incomplete()
    with pytest.raises(MissingInternalTopicException) as caught:
        topics.init(only_changelogs)
    assert all(name in str(caught.value) for name in lost)
    assert set(topics.check().missing) == set(lost)
    outcome = topics.init(InitParameters().enable_setup_internal_topics_if_incomplete())
    assert set(outcome.created) == set(lost)


def test_init_names_the_three_kinds_of_unfit_topics_by_three_exceptions(
    broker: Any, namespace: str, admin: Admin
) -> None:
    app = TopicApp(namespace, broker.bootstrap_servers, setup="manual")
    topics = ApplicationTopics(app.resource)
    with pytest.raises(MissingSourceTopicException, match=rf"{app.source} \(spec\.topology\.sources\[0\]\.topic\)"):
        topics.init()
    admin.create_topics([TopicSpec(app.source, 3)])
    with pytest.raises(TopologyException, match=app.sink):
        topics.init()
    admin.create_topics([TopicSpec(app.sink, 1)])
    admin.create_topics([TopicSpec(app.changelog, 2, -1, {"cleanup.policy": "delete"})])
    with pytest.raises(MisconfiguredInternalTopicException) as caught:
        topics.init(InitParameters().enable_setup_internal_topics_if_incomplete())
    assert f"{app.changelog} has 2 partitions and needs 3" in str(caught.value)
    assert "cleanup.policy=delete" in str(caught.value)
    assert app.present(admin) == {app.changelog}


def test_when_the_broker_refuses_one_topic_init_leaves_none(broker: Any, namespace: str, admin: Admin) -> None:
    app = TopicApp(
        namespace, broker.bootstrap_servers, setup="manual", overrides={"totals-changelog": {"segment.bytes": 1}}
    )
    app.make_users_topics(admin)
    topics = ApplicationTopics(app.resource)
    for call in (topics.rehearse, topics.init):
        with pytest.raises(ConfigException, match=rf"{app.changelog}.*segment\.bytes"):
            call()
    assert app.present(admin) == set()


def test_concurrent_inits_of_several_clients_all_succeed(app: TopicApp, admin: Admin, tmp_path: Path) -> None:
    together = threading.Barrier(4)

    def init(made: StreamsClient) -> ClientState:
        together.wait(DEADLINE)
        made.init()
        made.close()
        return made.state

    for _ in range(3):
        clients = [streams_client(app, tmp_path, f"i-{number}") for number in range(4)]
        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(init, clients)) == {ClientState.NOT_RUNNING}
        assert app.present(admin) == set(app.internal)
        delete(admin, app.internal)


def test_concurrent_inits_each_tell_what_they_made_and_together_that_is_all(app: TopicApp) -> None:
    clients = [ApplicationTopics(app.resource) for _ in range(4)]
    with ThreadPoolExecutor(len(clients)) as pool:
        outcomes = list(pool.map(ApplicationTopics.init, clients))
    made = [name for outcome in outcomes for name in outcome.created]
    assert sorted(made) == sorted(app.internal)


def test_a_client_s_init_is_for_created_only(app: TopicApp, tmp_path: Path) -> None:
    made = streams_client(app, tmp_path)
    made.init()
    assert made.state is ClientState.CREATED
    made.close(30)
    with pytest.raises(IllegalStateException, match=r"CREATED.*NOT_RUNNING"):
        made.init()


def test_a_client_s_init_raises_for_an_incomplete_set_and_stays_created(
    app: TopicApp, admin: Admin, tmp_path: Path
) -> None:
    made = streams_client(app, tmp_path)
    made.init()
    delete(admin, [app.changelog])
    with pytest.raises(MissingInternalTopicException, match=app.changelog):
        made.init()
    assert made.state is ClientState.CREATED
    made.init(InitParameters().enable_setup_changelog_topics_if_incomplete())
    assert app.present(admin) == set(app.internal)
    made.close(30)


def test_init_with_automatic_set_up_is_allowed_and_harmless(broker: Any, namespace: str, admin: Admin) -> None:
    app = TopicApp(namespace, broker.bootstrap_servers)
    app.make_users_topics(admin)
    topics = ApplicationTopics(app.resource)
    assert topics.init().created == app.internal
    assert topics.setup().created == ()


@pytest.mark.parametrize("there", [(), ("repartition",), ("changelog",)])
def test_a_rebalance_with_manual_set_up_makes_nothing_and_ends_the_client_in_error(
    broker: Any, admin: Admin, app: TopicApp, tmp_path: Path, there: tuple[str, ...]
) -> None:
    ApplicationTopics(app.resource).init()
    lost = {*app.internal} - {getattr(app, kind) for kind in there}
    delete(admin, lost)
    id_, topology = app.resource.application_id, str(app.topology_spec)
    with client(broker.bootstrap_servers, id_, topology, tmp_path, internalTopics={"setup": "manual"}) as made:
        made.start()
        assert made.wait_for(ClientState.ERROR, timeout=60)
        assert isinstance(made.error, MissingInternalTopicException)
        assert all(name in str(made.error) for name in lost)
        assert [state for state, _ in made.transitions] == [
            ClientState.CREATED,
            ClientState.REBALANCING,
            ClientState.PENDING_ERROR,
            ClientState.ERROR,
        ]
    assert app.present(admin) == {*app.internal} - lost


def test_a_check_tells_what_is_there_and_makes_nothing(app: TopicApp, admin: Admin) -> None:
    topics = ApplicationTopics(app.resource)
    report = topics.check()
    assert (report.existing, report.missing, report.tasks, report.ready) == ((), app.internal, 6, False)
    assert app.present(admin) == set()
    topics.setup()
    delete(admin, [app.changelog])
    report = topics.check()
    assert (report.existing, report.missing) == ((app.repartition,), (app.changelog,))


def test_a_set_up_makes_what_is_missing_whatever_is_there(app: TopicApp, admin: Admin) -> None:
    topics = ApplicationTopics(app.resource)
    assert topics.setup().created == app.internal
    delete(admin, [app.changelog])
    report = topics.setup()
    assert (report.created, report.existing, report.missing) == ((app.changelog,), app.internal, ())


def test_a_deletion_takes_the_internal_topics_and_no_other(app: TopicApp, broker: Any, admin: Admin) -> None:
    other = TopicApp(f"{app.resource.application_id}-other", broker.bootstrap_servers)
    other.make_users_topics(admin)
    ApplicationTopics(other.resource).setup()
    topics = ApplicationTopics(app.resource)
    topics.setup()
    # The source may be gone before.
    delete(admin, [app.source])
    assert topics.delete() == app.internal
    assert app.present(admin) == set()
    assert topics.delete() == ()
    assert other.present(admin) == set(other.internal)
    assert set(admin.describe_topics([app.sink, other.source], config=False)) == {app.sink, other.source}
    topics.close()
    topics.close()


@pytest.mark.timeout(80)
def test_every_call_on_brokers_that_accept_and_never_answer_ends_by_its_deadline(namespace: str) -> None:
    """With the 30 s that a question has elsewhere, the five of them would take longer than the test may."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        topics = ApplicationTopics(TopicApp(namespace, f"127.0.0.1:{silent.getsockname()[1]}").resource, deadline=3)
        for call in (topics.check, topics.setup, topics.init, topics.rehearse, topics.delete):
            with pytest.raises(BrokerNotAvailableException):
                call()
