"""The watch cache: what is news, what is known of own writes, and when the API server is asked all the same."""

from __future__ import annotations

import asyncio

import pytest

from streams_operator import names
from streams_operator.kube.api import NotThere, TryLater
from streams_operator.kube.cache import Cache
from streams_operator.kube.kinds import APPLICATION, PARTS, POD, kind_of
from streams_operator.model import KafkaWork, Key, Plan, PodSignal, Removal
from streams_operator.reconcile.reconciler import cannot_be_undone, requeue_delay

KEY = Key("ns", "app")
SERVICE = kind_of("Service")


def obj(name="app", version=1, uid="u", **more):
    labels = {names.LABEL_APPLICATION: "app"}
    metadata = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(version), "labels": labels}
    return {"metadata": {**metadata, "managedFields": ["much"]}, **more}


def pod(version=1, uid="p", phase="Running", name="app-0"):
    return obj(name, version, uid, status={"phase": phase})


class Server:
    def __init__(self):
        self.objects, self.version, self.asked, self.fails = {}, 100, [], False

    async def list(self, kind, namespace, labels):
        self.asked.append(kind.name)
        if self.fails:
            raise TryLater("no answer")
        return self.objects.get(kind.name, []), str(self.version)

    async def get(self, kind, namespace, name):
        self.asked.append(f"get {kind.name}")
        if kind.name not in self.objects:
            raise NotThere(name)
        return self.objects[kind.name][0]


class Watching:
    def __init__(self):
        self.server, self.news = Server(), []
        self.cache = Cache(self.server, lambda kind, key: self.news.append(kind.name))
        for kind in (POD, *PARTS):
            self.cache.listed(kind, None, "0", {})

    def tell(self, kind, found, gone=False, *, whole=True):
        self.cache.update(kind, KEY, found["metadata"], gone, found if whole else None)

    def parts(self):
        return asyncio.run(self.cache.parts(KEY))

    def phases(self):
        return [each.phase for each in asyncio.run(self.cache.pods(KEY))]


@pytest.fixture
def watching():
    return Watching()


def test_what_the_watches_brought_is_read_without_a_request(watching):
    watching.tell(SERVICE, obj(spec={"clusterIP": "None"}))
    watching.tell(POD, pod())
    watching.tell(APPLICATION, obj(spec={}))
    assert watching.parts()["Service", "app"]["spec"] == {"clusterIP": "None"}
    assert watching.phases() == ["Running"]
    resource = asyncio.run(watching.cache.resource(KEY))
    assert (resource["kind"], "managedFields" in resource["metadata"]) == ("StreamsApplication", False)
    assert watching.server.asked == []
    assert watching.news == ["Service", "Pod", "StreamsApplication"]


def test_an_own_write_is_known_and_is_no_news_when_it_comes_by_the_watch(watching):
    with watching.cache.writing(SERVICE, KEY, "app"):
        watching.cache.wrote(SERVICE, KEY, obj(version=5, spec={"a": 1}))
    watching.tell(SERVICE, obj(version=5), whole=False)
    watching.tell(SERVICE, obj(version=4), whole=False)
    assert watching.news == []
    assert watching.parts()["Service", "app"]["spec"] == {"a": 1}
    assert watching.server.asked == []


def test_a_watch_that_is_quicker_than_the_answer_to_the_write_is_no_news_either(watching):
    with watching.cache.writing(SERVICE, KEY, "app"):
        watching.tell(SERVICE, obj(version=5), whole=False)
        watching.cache.wrote(SERVICE, KEY, obj(version=5, spec={"a": 1}))
    assert (watching.news, watching.server.asked) == ([], [])


def test_what_another_one_wrote_during_an_own_write_is_news(watching):
    with watching.cache.writing(SERVICE, KEY, "app"):
        watching.tell(SERVICE, obj(version=6), whole=False)
        watching.cache.wrote(SERVICE, KEY, obj(version=5, spec={"a": 1}))
    assert watching.news == ["Service"]


def test_a_write_whose_answer_is_lost_is_news(watching):
    def write():
        with watching.cache.writing(SERVICE, KEY, "app"):
            watching.tell(SERVICE, obj(version=5), whole=False)
            raise TryLater("no answer")

    with pytest.raises(TryLater):
        write()
    assert watching.news == ["Service"]


def test_the_content_of_a_part_that_was_changed_by_others_is_asked_for_once(watching):
    watching.cache.wrote(SERVICE, KEY, obj(version=5, spec={"a": 1}))
    watching.tell(SERVICE, obj(version=6), whole=False)
    assert watching.news == ["Service"]
    watching.server.objects = {"Service": [obj(version=6, spec={"a": 2})]}
    for _ in range(2):
        assert watching.parts()["Service", "app"]["spec"] == {"a": 2}
    assert watching.server.asked == ["Service"]


def test_a_live_read_is_newer_than_what_the_watch_still_brings(watching):
    watching.tell(POD, pod(version=3))
    watching.server.objects = {"StreamsApplication": [obj(version=90)], "Pod": [pod(version=50, phase="Failed")]}
    assert asyncio.run(watching.cache.refresh(KEY))
    watching.tell(POD, pod(version=40))
    watching.tell(POD, pod(version=60, uid="other", name="app-1"))
    assert watching.phases() == ["Failed"]
    watching.tell(POD, pod(version=101, phase="Succeeded"))
    assert watching.phases() == ["Succeeded"]
    assert not asyncio.run(watching.cache.refresh(KEY)) or watching.phases() == ["Succeeded"]


def test_a_refresh_that_brings_nothing_new_says_so(watching):
    watching.tell(APPLICATION, obj(version=90))
    watching.tell(POD, pod(version=50))
    watching.server.objects = {"StreamsApplication": [obj(version=90)], "Pod": [pod(version=50)]}
    assert not asyncio.run(watching.cache.refresh(KEY))
    watching.server.objects["Pod"] = []
    assert asyncio.run(watching.cache.refresh(KEY))
    assert watching.phases() == []


def test_until_the_first_list_is_there_rounds_ask_for_themselves():
    server = Server()
    cache = Cache(server, lambda *_: None)
    server.objects = {"Pod": [pod()]}
    assert len(asyncio.run(cache.pods(KEY))) == 1
    assert asyncio.run(cache.parts(KEY)) == {}
    assert server.asked == ["Pod", *(kind.name for kind in PARTS)]
    cache.listed(POD, "another", "0", {})
    asyncio.run(cache.pods(KEY))
    assert server.asked.count("Pod") == 2
    cache.listed(POD, "ns", "0", {})
    asyncio.run(cache.pods(KEY))
    assert server.asked.count("Pod") == 2


def test_what_a_later_list_does_not_have_has_gone_unless_it_is_newer(watching):
    watching.tell(POD, pod(version=5))
    watching.tell(POD, pod(version=9, uid="q", name="app-1"))
    watching.news.clear()
    watching.cache.listed(POD, None, "7", {})
    assert watching.news == ["Pod"]
    assert [each.name for each in asyncio.run(watching.cache.pods(KEY))] == ["app-1"]


def test_a_successor_is_not_ended_by_the_end_of_the_one_before(watching):
    watching.tell(POD, pod(version=9, uid="new"))
    watching.tell(POD, pod(version=8, uid="old"), gone=True)
    assert watching.phases() == ["Running"]
    watching.tell(POD, pod(version=9, uid="new"), gone=True)
    assert watching.phases() == []


def test_what_a_watch_has_missed_is_asked_for_and_a_failed_answer_asks_again(watching):
    watching.tell(POD, pod(version=5))
    watching.cache.doubt(KEY, POD)
    watching.server.fails = True
    with pytest.raises(TryLater):
        watching.phases()
    watching.server.fails = False
    watching.server.objects = {"Pod": [pod(version=6, phase="Failed")]}
    assert watching.phases() == watching.phases() == ["Failed"]
    assert watching.server.asked == ["Pod", "Pod"]


def test_a_resource_that_has_gone_is_not_there_and_leaves_nothing(watching):
    watching.tell(APPLICATION, obj(version=5))
    watching.tell(APPLICATION, obj(version=6), gone=True)
    with pytest.raises(NotThere):
        asyncio.run(watching.cache.resource(KEY))
    watching.cache.forget(KEY)
    assert not any(watching.cache._objects.values())


@pytest.mark.parametrize(
    ("plan", "live"),
    [
        (Plan(apply=[{"kind": "Service"}, {"kind": "Pod"}], kafka=KafkaWork("setup")), False),
        (Plan(remove=[Removal("Pod", "app-0", "u")]), True),
        (Plan(signals=[PodSignal("app-0", "u", names.ANNOTATION_SHUTDOWN, "words")]), True),
        (Plan(finalizer=False), True),
        (Plan(kafka=KafkaWork("delete")), True),
        (Plan(kafka=KafkaWork("init", 3)), True),
    ],
)
def test_only_what_can_be_undone_goes_by_the_watches(plan, live):
    assert cannot_be_undone(plan) is live


@pytest.mark.parametrize(
    ("plan", "seconds"),
    [
        (Plan(), None),
        (Plan(requeue_after=60.0), 60.0),
        (Plan(requeue_after=60.0, status={}), 5.0),
        (Plan(requeue_after=2.0, status={}), 2.0),
        (Plan(apply=[{"kind": "Pod"}]), 5.0),
        (Plan(remove=[Removal("Pod", "app-0", "u")]), 5.0),
        (Plan(signals=[PodSignal("app-0", "u", names.ANNOTATION_SHUTDOWN, "words")]), 5.0),
    ],
)
def test_an_own_write_is_looked_at_again_though_it_is_no_news(plan, seconds):
    assert requeue_delay(plan) == seconds
