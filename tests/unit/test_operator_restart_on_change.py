"""`spec.restartOnChange`: which Secrets and ConfigMaps it follows, and which pods are replaced when one changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pytest
from operator_world import NAME, World, application_of, resource

from streams_operator import names
from streams_operator.kube.api import Api, NotThere, Refused, TryLater
from streams_operator.kube.kinds import Kind
from streams_operator.kube.pod_state import pod_state
from streams_operator.model import Key
from streams_operator.plan import followed
from streams_operator.reconcile.inputs import Inputs, digest

KEY = Key("shop", NAME)
KAFKA, CODE = "Secret/kafka-login", "ConfigMap/code"
MOUNTS: dict[str, Any] = {
    "kafka": {
        "bootstrapServers": "kafka:9092",
        "secretRef": {"name": "kafka-login"},
        "schemaRegistry": {"url": "http://registry:8081", "secretRef": {"name": "registry-login"}},
    },
    "code": {"configMap": "code"},
    "queries": {"access": {"token": {"secretRef": {"name": "token", "key": "token"}}}},
    "template": {
        "volumes": [
            {"name": "s", "secret": {"secretName": "own-secret"}},
            {"name": "c", "configMap": {"name": "own-map"}},
            {
                "name": "p",
                "projected": {
                    "sources": [{"secret": {"name": "in-projected"}}, {"configMap": {"name": "map-in-projected"}}, "?"]
                },
            },
            {"name": "e", "emptyDir": {}},
        ],
        "env": [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "in-variable", "key": "k"}}},
            {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "map-in-variable", "key": "k"}}},
            {"name": "C", "value": "plain"},
        ],
    },
}
SECRETS = {"kafka-login", "registry-login", "own-secret", "in-projected", "in-variable"}
MAPS = {"code", "own-map", "map-in-projected", "map-in-variable"}


@pytest.fixture
def world() -> World:
    """Three pods that run, made with one Secret and one ConfigMap."""
    found = World({"replicas": 3, "restartOnChange": ["secrets", "code"]})
    found.inputs = {KAFKA: "1", CODE: "1"}
    found.settle()
    return found


def removals(world: World, first: int = 0) -> list[str]:
    return [event.message for event in world.events[first:] if event.reason == "PodRemoved"]


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ([], set()),
        (["secrets"], {("Secret", name) for name in SECRETS}),
        (["code"], {("ConfigMap", name) for name in MAPS}),
        (["code", "secrets"], {("Secret", name) for name in SECRETS} | {("ConfigMap", name) for name in MAPS}),
    ],
)
def test_what_is_followed_is_what_pods_read_at_their_start(asked: list[str], wanted: set[tuple[str, str]]) -> None:
    found = followed(application_of(resource({**MOUNTS, "restartOnChange": asked})))
    assert set(found) == wanted
    assert len(found) == len(wanted)


def test_pods_are_replaced_one_by_one_when_a_secret_changes_and_then_left_alone(world: World) -> None:
    told, before = len(world.events), {pod.uid for pod in world.pods.values()}
    world.inputs[KAFKA] = "2"
    world.settle()  # which claims that it is one at a time, from the highest on
    assert not before & {pod.uid for pod in world.pods.values()}
    assert removals(world, told) == [
        f"removed orders-{number}: replaced by one with the changed {KAFKA}; {number} of the old left"
        for number in (2, 1, 0)
    ]
    written = world.writes
    world.settle()
    assert world.writes == written
    assert world.condition("Progressing") == ("False", "Settled")


def test_status_says_that_pods_are_being_replaced(world: World) -> None:
    world.inputs[CODE] = "2"
    world.reconcile()
    assert world.condition("Progressing") == ("True", "RollingOut")
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_pods_in_error_wait_for_a_person_all_the_same(world: World) -> None:
    world.fail("orders-1")
    world.settle()
    kept = world.pods["orders-1"].uid
    world.inputs[KAFKA] = "2"
    world.settle()
    assert world.pods["orders-1"].uid == kept
    assert world.pods["orders-2"].inputs[KAFKA] == "1", "the rest waits, as in any rolling change"
    world.change(restartNonce=1)
    world.settle()
    assert {pod.inputs[KAFKA] for pod in world.pods.values()} == {"2"}


def test_what_has_gone_is_no_change_and_what_comes_again_under_other_content_is_one(world: World) -> None:
    before = {pod.uid for pod in world.pods.values()}
    del world.inputs[KAFKA]  # pods could not be made without it
    world.settle()
    assert {pod.uid for pod in world.pods.values()} == before
    world.inputs[KAFKA] = "2"
    world.settle()
    assert not before & {pod.uid for pod in world.pods.values()}


def test_pods_that_were_made_without_it_are_replaced_once() -> None:
    world = World({"replicas": 2})
    world.settle()
    before = world.digest
    world.change(restartOnChange=["secrets"])
    world.inputs = {KAFKA: "1"}
    told = len(world.events)
    world.settle()
    assert world.digest == before, "it is no new version"
    assert len(removals(world, told)) == 2


class Served(Api):
    """An API server with these objects, or what it answers instead."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        self.objects = dict(objects)
        self.asked: list[str] = []

    async def get(self, kind: Kind, namespace: str, name: str) -> Any:
        assert namespace == KEY.namespace
        self.asked.append(f"{kind.name}/{name}")
        found = self.objects.get(f"{kind.name}/{name}", NotThere(name))
        if isinstance(found, Exception):
            raise found
        return found


def content(uid: str = "u", **data: str) -> dict[str, Any]:
    return {"metadata": {"uid": uid}, "data": data}


def look(api: Api, times: int = 1) -> Sequence[Mapping[str, str]]:
    refs = followed(application_of(resource({**MOUNTS, "template": {}, "restartOnChange": ["secrets", "code"]})))

    async def looks() -> list[Mapping[str, str]]:
        inputs = Inputs(api)
        return [await inputs.of(KEY, refs) for _ in range(times)]

    return asyncio.run(looks())


def test_a_digest_is_of_the_content_and_of_whose_it_is() -> None:
    plain = content(user="a", password="b")
    assert digest(plain) == digest({**plain, "data": {"password": "b", "user": "a"}})
    assert digest(plain) == digest({**plain, "metadata": {"uid": "u", "labels": {"a": "b"}, "resourceVersion": "7"}})
    others = [content("v", user="a", password="b"), content(user="a", password="c"), content(user="a")]
    binary = {"metadata": {"uid": "u"}, "binaryData": {"user": "a", "password": "b"}}
    assert len({digest(each) for each in (plain, *others, binary)}) == 5


def test_what_is_not_there_or_may_not_be_read_is_left_out_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    api = Served({CODE: content(), KAFKA: Refused("GET secrets: forbidden")})
    (found,) = look(api)
    assert found == {CODE: digest(content())}
    assert set(api.asked) == {KAFKA, CODE, "Secret/registry-login"}
    (line,) = caplog.messages
    assert line == "shop: spec.restartOnChange can't follow Secret/kafka-login: GET secrets: forbidden"


def test_rounds_that_follow_each_other_ask_once() -> None:
    api = Served({CODE: content()})
    assert len(set(map(str, look(api, times=5)))) == 1
    assert len(api.asked) == 3


def test_applications_of_a_namespace_share_a_look() -> None:
    api = Served({CODE: content()})
    refs = followed(application_of(resource({**MOUNTS, "template": {}, "restartOnChange": ["code"]})))

    async def looks() -> list[Mapping[str, str]]:
        inputs = Inputs(api)
        return [await inputs.of(Key("shop", name), refs) for name in ("a", "b")]

    first, second = asyncio.run(looks())
    assert first == second == {CODE: digest(content())}
    assert api.asked == [CODE]


def test_a_server_that_is_away_is_no_answer() -> None:
    with pytest.raises(TryLater):
        look(Served({CODE: TryLater("no answer")}))


def test_an_application_that_follows_nothing_asks_for_nothing() -> None:
    api = Served({})
    assert followed(application_of(resource(MOUNTS))) == ()
    assert asyncio.run(Inputs(api).of(KEY, ())) == {}
    assert api.asked == []


@pytest.mark.parametrize("text", [None, "", "{", "[]", "7", '{"a": 1}', '{"Secret/a": "1", "b": null}'])
def test_any_annotation_is_read(text: str | None) -> None:
    annotations = {} if text is None else {names.ANNOTATION_INPUTS: text}
    pod = {"metadata": {"name": "orders-0", "uid": "u", "annotations": annotations}}
    found = pod_state(pod, NAME).inputs
    expected = {"": {}, "{": {}, "[]": {}, "7": {}, '{"a": 1}': {"a": "1"}}.get(text or "", {"Secret/a": "1"})
    assert found == expected
    assert orjson.dumps(found)
