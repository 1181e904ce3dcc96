"""Work at the brokers: in turn for each application, beside the others', and never in the loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from streams_operator.brokers.broker_slots import cluster_of
from streams_operator.brokers.broker_work import Brokers, BrokerState, fingerprint
from streams_operator.model import InitResult, KafkaWork, Key, ResetAnswer
from streams_runtime.api import parse_application
from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.errors import (
    BrokerNotAvailableException,
    MissingInternalTopicException,
    MissingSourceTopicException,
)
from streams_runtime.topics.application_topics import InitOutcome, TopicsReport
from streams_runtime.topics.reset.reset_plan import OffsetMove, ResetOutlook, ResetPlan

CHECK, SETUP, DELETE = KafkaWork("check"), KafkaWork("setup"), KafkaWork("delete")
READY = TopicsReport(("a",), (), 2)
OUTLOOK = ResetOutlook(ResetPlan(("a",), ()))
RESET = ResetSpec.model_validate({"nonce": 1, "to": "earliest"})
REHEARSE = KafkaWork("reset-check", 1, "r", RESET)


def application(name="app", bootstrap="kafka:9092", **spec):
    topology = {
        "sources": [{"name": "in", "topic": "in", "key": {"format": "string"}, "value": {"format": "string"}}],
        "sinks": [{"from": "in", "topic": "out"}],
    }
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": name},
        "spec": {"kafka": {"bootstrapServers": bootstrap}, "topology": topology, **spec},
    }
    return parse_application(document)


class Cluster:
    """Answers by bootstrap servers; what is an Event is waited for first, what is an exception is raised."""

    def __init__(self):
        self.answers = {}
        self.calls = []
        self.secrets = []
        self.closed = 0

    def open(self, application, secret, deadline):
        self.secrets.append(secret)
        return _Topics(self, application)


class _Topics:
    def __init__(self, cluster, application):
        self._cluster, self._application = cluster, application

    def _do(self, what, otherwise):
        self._cluster.calls.append((self._application.name, what, threading.current_thread()))
        given = self._cluster.answers.get((self._application.spec.kafka.bootstrap_servers, what), otherwise)
        if isinstance(given, threading.Event):
            given.wait(20)
            given = otherwise
        if isinstance(given, Exception):
            raise given
        return given

    def check(self):
        return self._do("check", READY)

    def setup(self):
        return self._do("setup", READY)

    def init(self, parameters):
        return self._do("init", InitOutcome(("a",), (), 2))

    def delete(self):
        return self._do("delete", ("a",))

    def rehearse_reset(self, reset, now):
        return self._do("rehearse_reset", OUTLOOK)

    def reset_topics(self):
        return self._do("reset_topics", READY)

    def reset_offsets(self, moves):
        return self._do(("reset_offsets", moves), None)

    def close(self):
        self._cluster.closed += 1


@pytest.fixture
def cluster():
    return Cluster()


def run(cluster, scenario, **options):
    async def main():
        answers: asyncio.Queue = asyncio.Queue()
        brokers = Brokers(
            lambda key, work, seen: answers.put_nowait((key.name, work.kind, seen)),
            cluster.open,
            lambda: 7.0,
            **options,
        )
        async with asyncio.timeout(20):
            await scenario(brokers, answers)

    asyncio.run(main())


def ask(brokers, given, work, uid="u", namespace="ns", secret=None):
    brokers.ask(Key(namespace, given.name), uid, given, secret, work)


def seen(brokers, given, uid="u"):
    return brokers.state(Key("ns", given.name), uid, given)


def test_an_answer_is_told_and_remembered_and_the_loop_never_waits(cluster):
    async def scenario(brokers, answers):
        given = application()
        ask(brokers, given, SETUP)
        assert seen(brokers, given) == BrokerState()
        assert (await answers.get())[:2] == ("app", "setup")
        topics = seen(brokers, given).topics
        assert (topics.ready, topics.existing, topics.tasks, topics.checked_at) == (True, ("a",), 2, 7.0)
        assert cluster.calls[0][2] is not threading.main_thread()
        assert cluster.closed == 1

    run(cluster, scenario)


def test_fifty_applications_on_a_dead_cluster_do_not_delay_one_on_another(cluster):
    dead = cluster.answers["dead:1", "check"] = threading.Event()

    async def scenario(brokers, answers):
        for number in range(50):
            ask(brokers, application(f"dead-{number}", "dead:1"), CHECK)
        ask(brokers, application("alive"), CHECK)
        assert (await answers.get())[0] == "alive"
        assert sum(name != "alive" for name, _, _ in cluster.calls) <= 4
        dead.set()
        for _ in range(50):
            await answers.get()

    run(cluster, scenario)


@pytest.mark.parametrize("other", [{"namespace": "shop"}, {"secret": {"sasl.password": "right"}}])
def test_a_dead_cluster_holds_up_no_other_one_of_the_same_short_name_or_with_other_credentials(cluster, other):
    dead = threading.Event()

    async def scenario(brokers, answers):
        cluster.answers["kafka:9092", "check"] = dead
        for number in range(8):
            ask(brokers, application(f"dead-{number}"), CHECK)
        while len(cluster.calls) < 4:
            await asyncio.sleep(0.001)
        cluster.answers.clear()
        ask(brokers, application("alive"), CHECK, **other)
        assert (await answers.get())[0] == "alive"
        dead.set()
        for _ in range(8):
            await answers.get()

    run(cluster, scenario)


def test_a_namespace_whose_clusters_are_all_dead_holds_up_no_other_one(cluster):
    dead = threading.Event()

    async def scenario(brokers, answers):
        for number in range(40):
            cluster.answers[f"dead-{number}:1", "check"] = dead
            ask(brokers, application(f"dead-{number}", f"dead-{number}:1"), CHECK)
        while len(cluster.calls) < 16:
            await asyncio.sleep(0.001)
        ask(brokers, application("alive"), CHECK, namespace="shop")
        assert (await answers.get())[0] == "alive"
        assert len(cluster.calls) == 17, "sixteen at once, and the other namespace's one"
        dead.set()
        for _ in range(40):
            await answers.get()

    run(cluster, scenario)


def test_a_cluster_is_known_by_where_it_is_and_by_what_clients_present():
    def key(servers, namespace="ns", secret=None, **config):
        given = application(kafka={"bootstrapServers": servers, "config": config})
        return cluster_of(namespace, given, secret)

    same = key("kafka:9092,other.ns.svc:9092")
    assert same == key("other:9092, KAFKA:9092") == key("kafka.ns.svc:9092,other:9092,kafka:9092")
    others = [
        key("kafka:9092"),
        key("kafka:9092", "shop"),
        key("kafka:9092", secret={"sasl.password": "a"}),
        key("kafka:9092", secret={"sasl.password": "b"}),
        key("kafka:9092", **{"sasl.username": "a"}),
    ]
    assert len({same, *others}) == 6
    assert "sasl" not in "".join(others)


def test_one_application_has_one_piece_of_work_at_a_time_and_the_newest_next(cluster):
    gate = cluster.answers["kafka:9092", "check"] = threading.Event()

    async def scenario(brokers, answers):
        given = application()
        for work in (CHECK, CHECK, SETUP, DELETE):
            ask(brokers, given, work)
        while not cluster.calls:
            await asyncio.sleep(0.001)
        assert [what for _, what, _ in cluster.calls] == ["check"]
        gate.set()
        assert [(await answers.get())[1] for _ in range(2)] == ["check", "delete"]
        assert [what for _, what, _ in cluster.calls] == ["check", "delete"]
        assert seen(brokers, given).topics_deleted

    run(cluster, scenario)


def test_a_thread_that_never_ends_is_given_up(cluster):
    gate = cluster.answers["kafka:9092", "check"] = threading.Event()

    async def scenario(brokers, answers):
        given = application()
        ask(brokers, given, CHECK)
        await answers.get()
        assert seen(brokers, given).topics.failure[0] == "BrokerNotAvailable"
        gate.set()

    run(cluster, scenario, overdue=0.01)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MissingSourceTopicException("x"), "MissingSourceTopics"),
        (BrokerNotAvailableException("x"), "BrokerNotAvailable"),
        (ValueError("x"), "InternalError"),
    ],
)
def test_a_failure_is_a_reason_and_keeps_what_was_known(cluster, error, reason):
    async def scenario(brokers, answers):
        given = application()
        ask(brokers, given, CHECK)
        await answers.get()
        cluster.answers["kafka:9092", "check"] = error
        ask(brokers, given, CHECK)
        await answers.get()
        topics = seen(brokers, given).topics
        assert (topics.ready, topics.existing, topics.failure[0]) == (False, ("a",), reason)

    run(cluster, scenario)


def test_the_same_dead_broker_again_is_told_in_the_same_words(cluster):
    async def scenario(brokers, answers):
        given = application()
        for text in ("after 3 ms", "after 5 ms"):
            cluster.answers["kafka:9092", "check"] = BrokerNotAvailableException(text)
            ask(brokers, given, CHECK)
            await answers.get()
            assert seen(brokers, given).topics.failure == ("BrokerNotAvailable", "after 3 ms")

    run(cluster, scenario)


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (InitOutcome(("a", "b"), (), 2), InitResult(4, "Created", "created a, b")),
        (InitOutcome((), ("a",), 2), InitResult(4, "AlreadySetUp", "")),
        (MissingInternalTopicException("b is gone"), InitResult(4, "MissingInternalTopics", "b is gone")),
    ],
)
def test_an_explicit_init_has_a_result_and_a_fresh_look(cluster, answer, result):
    cluster.answers["kafka:9092", "init"] = answer

    async def scenario(brokers, answers):
        given = application()
        ask(brokers, given, KafkaWork("init", 4))
        await answers.get()
        assert seen(brokers, given).init == result
        assert seen(brokers, given).topics.ready

    run(cluster, scenario)


def test_answers_for_another_spec_or_another_resource_of_the_name_do_not_count(cluster):
    async def scenario(brokers, answers):
        ask(brokers, application(), CHECK)
        await answers.get()
        assert seen(brokers, application(bootstrap="other:1")).topics is None
        assert seen(brokers, application(), uid="another") == BrokerState()
        assert seen(brokers, application(replicas=5)).topics is not None

    run(cluster, scenario)


def test_what_is_forgotten_is_not_told(cluster):
    gate = cluster.answers["kafka:9092", "check"] = threading.Event()

    async def scenario(brokers, answers):
        given = application()
        ask(brokers, given, CHECK)
        while not cluster.calls:
            await asyncio.sleep(0.001)
        brokers.forget(Key("ns", "app"))
        gate.set()
        ask(brokers, application("other"), CHECK)
        assert (await answers.get())[0] == "other"
        assert answers.empty()

    run(cluster, scenario)


def test_the_fingerprint_is_of_what_topics_depend_on():
    init = {"setup": "manual", "init": {"nonce": 3}, "deletionPolicy": "Delete"}
    manual = fingerprint(application(internalTopics={"setup": "manual"}))
    assert fingerprint(application(internalTopics=init)) == manual
    assert fingerprint(application()) != manual
    assert fingerprint(application(internalTopics={"replicationFactor": 3})) != fingerprint(application())


def test_each_step_of_a_reset_is_answered_by_its_kind_and_request(cluster):
    moves = (OffsetMove("in", "id", (), ((0, 7),)),)

    async def scenario(brokers, answers):
        given = application()
        ask(brokers, given, REHEARSE)
        await answers.get()
        assert seen(brokers, given) == BrokerState(reset=ResetAnswer("reset-check", "r", 7.0, OUTLOOK))
        ask(brokers, given, KafkaWork("reset-topics", 1, "r"))
        await answers.get()
        found = seen(brokers, given)
        assert found.reset == ResetAnswer("reset-topics", "r", 7.0)
        assert (found.topics.ready, found.topics.existing) == (True, ("a",)), "what was made anew is known to be there"
        ask(brokers, given, KafkaWork("reset-offsets", 1, "r", moves=moves))
        await answers.get()
        assert seen(brokers, given).reset == ResetAnswer("reset-offsets", "r", 7.0)
        assert cluster.calls[-1][1] == ("reset_offsets", moves)

    run(cluster, scenario)


def test_what_a_reset_would_do_is_about_one_topology_and_what_it_has_done_stays_done(cluster):
    async def scenario(brokers, answers):
        given, other = application(), application(internalTopics={"replicationFactor": 3})
        ask(brokers, given, REHEARSE)
        await answers.get()
        assert seen(brokers, other).reset is None
        ask(brokers, given, KafkaWork("reset-topics", 1, "r"))
        await answers.get()
        assert seen(brokers, other).reset == seen(brokers, given).reset is not None
        assert seen(brokers, other).topics is None

    run(cluster, scenario)


def test_a_step_that_fails_is_no_word_about_the_topics_and_the_same_failure_keeps_its_text(cluster):
    async def scenario(brokers, answers):
        given = application()
        ask(brokers, given, CHECK)
        await answers.get()
        for text in ("no answer in 1 s", "no answer in 2 s"):
            cluster.answers["kafka:9092", "rehearse_reset"] = BrokerNotAvailableException(text)
            ask(brokers, given, REHEARSE)
            await answers.get()
            assert seen(brokers, given).reset.failure == ("BrokerNotAvailable", "no answer in 1 s")
        assert seen(brokers, given).topics.ready
        brokers.refuse(Key("ns", "app"), "u", given, ("KafkaSecret", "there is none"), REHEARSE)
        assert seen(brokers, given).reset.failure == ("KafkaSecret", "there is none")

    run(cluster, scenario)
