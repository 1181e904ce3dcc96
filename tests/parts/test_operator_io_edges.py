"""The operator's other edges: settings, pods' accounts, events, watches, the API server's errors, secrets."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime

import pytest
from aiohttp import web

from streams_operator.kube.api import Conflict, NotThere, Refused, TryLater, _error
from streams_operator.kube.event_recorder import EventRecorder
from streams_operator.kube.kinds import APPLICATION, POD, kind_of
from streams_operator.kube.watched import Watched, owner
from streams_operator.model import Event, InstanceAccount, Key, PodState
from streams_operator.names import LABEL_APPLICATION
from streams_operator.operator_settings import SettingError, read_settings
from streams_operator.plan.version.kafka_secret import properties
from streams_operator.reconcile.accounts import Accounts, account, state_url
from streams_operator.shards import Shard
from streams_runtime.api.spec.template_spec import ResourcesSpec

KEY = Key("ns", "app")


def test_settings_come_from_the_environment_and_empty_ones_are_defaults(tmp_path):
    for file in ("tls.crt", "tls.key"):
        (tmp_path / file).touch()
    given = {
        "RUNTIME_IMAGE": "image:1",
        "IMAGE_PULL_POLICY": "",
        "NAMESPACES": "a, b,a",
        "DELETE_DEADLINE": "30",
        "EXECUTORS_AS_PODS": "true",
        "ROLLOUT_MAX_APPLICATIONS": "7",
        "RUN_AS_USER": "cluster",
        "RESOURCES": '{"requests": {"cpu": 1, "memory": "1Gi"}}',
        "WEBHOOK_PORT": "9443",
        "WEBHOOK_CERTIFICATE": str(tmp_path),
        "LOG_LEVEL": "debug",
    }
    settings = read_settings({f"STREAMS_OPERATOR_{name}": value for name, value in given.items()})
    assert (settings.defaults.image, settings.defaults.image_pull_policy) == ("image:1", "IfNotPresent")
    assert settings.defaults.executors_as_pods
    assert settings.rollout_at_a_time == 7
    assert settings.defaults.run_as_user is None
    assert settings.defaults.resources == ResourcesSpec(requests={"cpu": "1", "memory": "1Gi"})
    assert (settings.namespaces, settings.defaults.delete_deadline, settings.log_level) == (("a", "b"), 30.0, "DEBUG")
    assert (settings.webhook_port, settings.webhook_certificate) == (9443, tmp_path)
    assert (settings.metrics_port, settings.health_port) == (8080, 8081)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RUNTIME_IMAGE", ""),
        ("DELETE_DEADLINE", "soon"),
        ("DELETE_DEADLINE", "-1"),
        ("METRICS_PORT", "70000"),
        ("HEALTH_PORT", "http"),
        ("LOG_LEVEL", "LOUD"),
        ("LOG_FORMAT", "xml"),
        ("IMAGE_PULL_POLICY", "Sometimes"),
        ("EXECUTORS_AS_PODS", "yes"),
        ("ROLLOUT_MAX_APPLICATIONS", "-1"),
        ("ROLLOUT_MAX_APPLICATIONS", "2147483648"),
        ("RUN_AS_USER", "root"),
        ("RUN_AS_USER", "0"),
        ("RESOURCES", "1Gi"),
        ("RESOURCES", '{"requests": {"memory": "much"}}'),
        ("WEBHOOK_PORT", "9443"),
        ("SHARDS", "0"),
        ("SHARDS", "many"),
        ("SHARDS", "65"),
        ("SHARD", "1"),
        ("SHARD", "-1"),
    ],
)
def test_a_setting_that_can_not_be_used_is_named(name, value):
    given = {"STREAMS_OPERATOR_RUNTIME_IMAGE": "image:1", f"STREAMS_OPERATOR_{name}": value}
    with pytest.raises(SettingError, match=f"STREAMS_OPERATOR_{name}"):
        read_settings(given)


def test_a_shard_needs_its_number():
    given = {"STREAMS_OPERATOR_RUNTIME_IMAGE": "image:1", "STREAMS_OPERATOR_SHARDS": "4"}
    with pytest.raises(SettingError, match="STREAMS_OPERATOR_SHARD is not set"):
        read_settings(given)
    assert read_settings({**given, "STREAMS_OPERATOR_SHARD": "3"}).shard == Shard(3, 4)


def test_each_namespace_is_in_one_shard_and_stays_there():
    namespaces = [f"team-{number}" for number in range(400)]
    shares = [[name for name in namespaces if Shard(number, 4).has(name)] for number in range(4)]
    assert sorted(name for share in shares for name in share) == sorted(namespaces)
    assert all(70 < len(share) < 130 for share in shares)
    # Another number here would have two replicas of different versions act for one namespace.
    assert [number for number in range(4) if Shard(number, 4).has("shop")] == [1]
    assert all(Shard().has(name) for name in namespaces)


def test_a_shard_has_a_lease_of_its_own():
    assert [Shard(1, 4).lease("operator"), Shard().lease("operator")] == ["operator-1", "operator"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, NotThere) for status in (404, 410)),
        *((status, TryLater) for status in (401, 429, 500, 503)),
        *((status, Refused) for status in (400, 403, 422)),
        (409, Conflict),
    ],
)
def test_errors_of_the_api_server_are_named_for_what_to_do(status, kind):
    error = _error("GET /x", status, "3", json.dumps({"message": "because"}).encode())
    assert type(error) is kind
    assert "because" in str(error)
    if isinstance(error, TryLater):
        assert error.after == 3.0


def test_an_answer_of_something_before_the_server_is_no_surprise():
    assert "<html>" in str(_error("GET /x", 502, None, b"<html>bad gateway"))


def test_paths_of_kinds():
    assert APPLICATION.path("ns", "app", "status") == (
        "/apis/streamsoperator.io/v1alpha1/namespaces/ns/streamsapplications/app/status"
    )
    assert POD.path("ns") == "/api/v1/namespaces/ns/pods"
    assert kind_of("Role").path(None) == "/apis/rbac.authorization.k8s.io/v1/roles"


STATE = {
    "tasks": [{"id": "0_0"}, {"id": "0_1"}],
    "lag": [{"lag": 3}, {"lag": 4}],
    "restoration": [
        {"position": 10, "end": 100, "ended_at": None},
        {"position": 50, "end": 50, "ended_at": 3.0},
    ],
}


def test_an_account_is_read_from_what_a_pod_says():
    assert account(STATE) == InstanceAccount(("0_0", "0_1"), 7, 90)
    assert account({**STATE, "lag": [{"lag": 3}, {"lag": None}]}).lag is None
    assert account({**STATE, "lag": []}).lag is None


def pod(name="app-0", **fields):
    given = {"state": "RUNNING", "phase": "Running", "ip": "10.0.0.1", **fields}
    return PodState(name=name, uid="u", ordinal=0, created_at=0.0, **given)


def test_only_pods_that_can_answer_are_asked():
    assert state_url(pod()) == "http://10.0.0.1:8080/state/figures"
    assert state_url(pod(ip="fd00::1")) == "http://[fd00::1]:8080/state/figures"
    assert state_url(pod(tls=True)) == "https://10.0.0.1:8080/state/figures"
    for silent in (pod(ip=None), pod(deleting=True), pod(state=None), pod(state="ERROR"), pod(phase="Failed")):
        assert state_url(silent) is None


def test_a_pod_that_does_not_answer_leaves_its_figures_out_and_delays_nobody():
    async def scenario():
        hold = asyncio.Event()

        async def answer(request):
            if request.path == "/slow":
                await hold.wait()
            return web.json_response(STATE if request.path in ("/good", "/slow") else {"something": "else"})

        app = web.Application()
        app.router.add_get("/{path}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        changed = asyncio.Event()
        accounts = Accounts(lambda key: changed.set(), lambda pod: f"http://127.0.0.1:{port}/{pod.name}")
        assert set(await accounts.of(KEY, [pod("good"), pod("odd")])) == {"good"}
        other = Key("ns", "other")
        assert await accounts.of(other, [pod("slow"), pod("good")]) == {}
        assert not changed.is_set()
        hold.set()
        async with asyncio.timeout(20):
            await changed.wait()
        assert set(await accounts.of(other, [pod("slow"), pod("good")])) == {"good", "slow"}
        await accounts.close()
        await runner.cleanup()

    asyncio.run(scenario())


class EventServer:
    def __init__(self):
        self.events = {}

    async def create(self, kind, obj, *, election=False):
        name = obj["metadata"]["name"]
        if name in self.events:
            raise Conflict(name)
        self.events[name] = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "1"}}

    async def get(self, kind, namespace, name):
        return self.events[name]

    async def merge(self, kind, namespace, name, change):
        self.events[name].update({field: value for field, value in change.items() if field != "metadata"})


RESOURCE = {"metadata": {"name": "app", "namespace": "ns", "uid": "u", "resourceVersion": "5"}}
ONE, TWO = Event("Normal", "One", "one"), Event("Warning", "Two", "two" * 1000)


def told(server, *rounds):
    async def scenario():
        events = EventRecorder(server, "operator-0", lambda: datetime(2026, 3, 1, tzinfo=UTC))
        for happenings in rounds:
            await events.record(KEY, RESOURCE, happenings)

    asyncio.run(scenario())
    return sorted((event["reason"], event["count"]) for event in server.events.values())


def test_what_goes_on_is_one_event_and_what_comes_again_is_counted():
    assert told(EventServer(), [ONE], [ONE], [ONE, TWO]) == [("One", 1), ("Two", 1)]
    assert told(EventServer(), [ONE], [], [ONE]) == [("One", 2)]


def test_another_replica_that_says_the_same_meets_the_event_there_is():
    server = EventServer()
    told(server, [ONE])
    assert told(server, [ONE]) == [("One", 2)]


def test_an_event_is_about_the_resource_and_no_longer_than_allowed():
    server = EventServer()
    told(server, [TWO])
    event = next(iter(server.events.values()))
    assert len(event["message"]) == 1024
    assert event["involvedObject"]["uid"] == "u"
    assert event["involvedObject"]["kind"] == "StreamsApplication"


class Lister:
    def __init__(self):
        self.listed = {APPLICATION.name: [], POD.name: []}

    async def pages(self, kind, namespace, labels, *, metadata_only):
        yield [{"metadata": each} for each in self.listed[kind.name]], "1"


def metadata(uid, version, name="app"):
    return {
        "uid": uid,
        "resourceVersion": version,
        "namespace": "ns",
        "name": name,
        "labels": {LABEL_APPLICATION: "app"},
    }


class Watching:
    def __init__(self):
        self.server, self.now, self.missed, self.renewed = Lister(), 0.0, [], 0
        self.watched = Watched(
            self.server, (), lambda kind, key: self.missed.append((kind.name, key)), self._renew, clock=lambda: self.now
        )

    def _renew(self):
        self.renewed += 1

    def compare(self, after=0.0):
        self.now += after
        asyncio.run(self.watched.compare())


@pytest.fixture
def watching():
    return Watching()


def test_a_watch_that_tells_all_is_alive_for_ever(watching):
    for version in range(20):
        watching.server.listed[APPLICATION.name] = [metadata("u", str(version))]
        watching.watched.update(APPLICATION, metadata("u", str(version)), KEY, gone=False)
        watching.compare(20)
    assert watching.watched.alive
    assert watching.watched.begun
    assert (watching.missed, watching.renewed) == ([], 0)
    assert list(watching.watched.keys) == [KEY]


def test_a_missed_change_wakes_its_application_then_renews_the_watches_then_fails(watching):
    watching.compare()
    watching.server.listed[POD.name] = [metadata("p", "9", "app-0")]
    watching.compare(20)
    assert watching.missed == [("Pod", KEY)]
    assert (watching.renewed, watching.watched.alive) == (0, True)
    watching.compare(30)
    assert (watching.renewed, watching.watched.alive) == (1, True)
    watching.compare(100)
    assert not watching.watched.alive
    watching.watched.update(POD, metadata("p", "9", "app-0"), KEY, gone=False)
    watching.compare(20)
    assert watching.watched.alive


def test_many_objects_are_compared_less_often(watching):
    assert watching.watched.interval == 20.0
    watching.server.listed[POD.name] = [metadata(f"p{number}", "1", f"app-{number}") for number in range(3000)]
    for each in watching.server.listed[POD.name]:
        watching.watched.update(POD, each, KEY, gone=False)
    watching.compare()
    assert watching.watched.interval == 120.0
    watching.server.listed[POD.name][0] = metadata("p0", "2", "app-0")
    watching.compare()
    assert watching.watched.interval == 20.0, "what was missed is looked for again soon"
    watching.watched.update(POD, metadata("p0", "2", "app-0"), KEY, gone=False)
    watching.compare()
    assert watching.watched.interval == 120.0


def test_a_first_list_that_is_still_coming_is_not_missed(watching):
    listed = [metadata(f"p{number}", "1", f"app-{number}") for number in range(100)]
    watching.server.listed[POD.name] = listed
    for each in listed:
        watching.watched.update(POD, each, KEY, gone=False)
        watching.compare(4)
        assert (watching.missed, watching.renewed, watching.watched.alive) == ([], 0, True)
    assert watching.watched.begun


def test_a_first_list_that_has_stopped_coming_is_missed(watching):
    watching.server.listed[POD.name] = [metadata("p", "1", "app-0")]
    watching.compare(4)
    assert watching.missed == []
    watching.compare(4)
    assert watching.missed == [("Pod", KEY)]
    watching.compare(30)
    assert watching.renewed == 1
    watching.compare(120)
    assert not watching.watched.alive


def test_another_shard_s_objects_are_not_missed(watching):
    other = 1 - next(number for number in range(2) if Shard(number, 2).has("ns"))
    watching.watched._shard = Shard(other, 2)
    watching.compare()
    watching.server.listed[POD.name] = [metadata("p", "9", "app-0")]
    watching.compare(20)
    assert (watching.missed, watching.watched.begun) == ([], True)


def test_an_end_that_no_watch_tells_any_more_is_noticed(watching):
    watching.watched.update(POD, metadata("p", "9", "app-0"), KEY, gone=False)
    watching.compare(20)
    watching.compare(20)
    assert watching.missed == [("Pod", KEY)]
    assert watching.watched.alive


def test_objects_belong_to_applications_by_their_label():
    assert owner(POD, metadata("p", "1", "app-0")) == KEY
    assert owner(APPLICATION, {"namespace": "ns", "name": "app"}) == KEY
    assert owner(POD, {"namespace": "ns", "name": "x"}) is None


def test_a_secret_s_keys_are_client_properties():
    encode = {name: base64.b64encode(text.encode()).decode() for name, text in {"a": "1", "b": "two\n"}.items()}
    assert properties({"data": encode}) == {"a": "1", "b": "two"}
    assert properties({}) == {}
