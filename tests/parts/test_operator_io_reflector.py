"""The operator's own watches: a list, then changes; a lost place is a new list, and trouble a pause."""

from __future__ import annotations

import asyncio
import json

from streams_operator.kube import reflector
from streams_operator.kube.api import NotThere, TryLater, connect, proxy_for
from streams_operator.kube.kinds import PARTS, POD
from streams_operator.kube.reflector import Reflectors
from streams_operator.model import Key
from streams_operator.names import LABEL_APPLICATION

KEY = Key("ns", "app")


def pod(version, name="app-0"):
    labels = {LABEL_APPLICATION: "app"}
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version), "labels": labels}
    }


class Server:
    """Pods are as the test has them; there is nothing of other kinds."""

    def __init__(self):
        self.pages_of_pods, self.streams, self.since, self.lists = [[]], asyncio.Queue(), [], 0
        self.whole = {}
        self.page_seconds = None

    async def pages(self, kind, namespace, labels):
        self.lists += kind is POD
        for page in self.pages_of_pods if kind is POD else [[]]:
            if self.page_seconds is not None:
                await asyncio.sleep(self.page_seconds)
            yield page, "10"

    async def watch(self, kind, namespace, labels, since, *, metadata_only):
        self.whole[kind.name] = not metadata_only
        if kind is not POD:
            await asyncio.Event().wait()
        self.since.append(since)
        for event in await self.streams.get():
            if isinstance(event, Exception):
                raise event
            yield event


class Sink:
    def __init__(self):
        self.lists = []

    def listed(self, kind, namespace, version, names):
        if kind is POD:
            self.lists.append((version, {name for each in names.values() for name in each}))


def run(scenario):
    async def main():
        server, sink, told = Server(), Sink(), []

        def take(kind, metadata, gone, whole):
            told.append((metadata["name"], metadata["resourceVersion"], gone, whole is not None))

        reflectors = Reflectors(server, (), take, sink)
        running = asyncio.create_task(reflectors.run())
        try:
            async with asyncio.timeout(20):
                await scenario(server, sink, told, reflectors)
        finally:
            running.cancel()

    asyncio.run(main())


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)


def test_a_list_page_by_page_then_each_change_from_there_on():
    async def scenario(server, sink, told, reflectors):
        server.pages_of_pods = [[pod(3)], [pod(4, "app-1")]]
        await reflectors.synced.wait()
        assert sink.lists == [("10", {"app-0", "app-1"})]
        bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "20"}}}
        server.streams.put_nowait(
            [{"type": "MODIFIED", "object": pod(12)}, {"type": "DELETED", "object": pod(13)}, bookmark]
        )
        await until(lambda: len(server.since) == 2)
        assert told[2:] == [("app-0", "12", False, True), ("app-0", "13", True, True)]
        assert server.since == ["10", "20"]
        assert server.lists == 1
        assert server.whole == {POD.name: True} | dict.fromkeys((kind.name for kind in PARTS), False)

    run(scenario)


def test_a_place_that_the_server_has_forgotten_is_a_new_list_and_trouble_is_not(monkeypatch):
    monkeypatch.setattr(reflector, "_PAUSES", (0.0,))

    async def scenario(server, sink, told, reflectors):
        server.streams.put_nowait([{"type": "MODIFIED", "object": pod(12)}, TryLater("broken off")])
        await until(lambda: len(server.since) == 2)
        # What came before the trouble need not come again.
        assert (server.since, server.lists) == (["10", "12"], 1)
        server.streams.put_nowait([NotThere("too old")])
        await until(lambda: len(server.since) == 3)
        assert (server.since, server.lists) == (["10", "12", "10"], 2)

    run(scenario)


def test_a_place_that_is_lost_again_and_again_is_told_once(monkeypatch, caplog):
    monkeypatch.setattr(reflector, "_PAUSES", (0.0,))

    async def scenario(server, sink, told, reflectors):
        for _ in range(3):
            server.streams.put_nowait([NotThere("too old")])
        await until(lambda: server.lists == 4)
        server.streams.put_nowait([{"type": "MODIFIED", "object": pod(12)}])
        await until(lambda: len(server.since) == 5)
        server.streams.put_nowait([NotThere("too old")])
        await until(lambda: server.lists == 5)

    run(scenario)
    assert [record.getMessage() for record in caplog.records] == ["the watch of pods is begun again: too old"]


def test_first_lists_are_waited_for_as_long_as_pages_come():
    async def scenario(server, sink, told, reflectors):
        server.page_seconds = 0.05
        server.pages_of_pods = [[pod(3, f"app-{number}")] for number in range(20)]
        await reflectors.first_lists(0.5)
        assert len(told) == 20, "all pages together took longer than the patience with one"
        assert reflectors.synced.is_set()

    run(scenario)


def test_a_first_list_that_does_not_come_keeps_nobody_for_longer_than_the_patience():
    async def scenario(server, sink, told, reflectors):
        server.page_seconds = 3600
        await reflectors.first_lists(0.2)
        assert not reflectors.synced.is_set()

    run(scenario)


def test_all_watches_can_be_begun_anew():
    async def scenario(server, sink, told, reflectors):
        await reflectors.synced.wait()
        reflectors.restart()
        await until(lambda: server.lists == 2)

    run(scenario)


def test_proxies_are_those_of_the_environment(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "10.0.0.1")
    assert proxy_for("https://api.example:6443") == "http://proxy:3128"
    assert proxy_for("https://10.0.0.1:6443") is None
    monkeypatch.delenv("HTTPS_PROXY")
    assert proxy_for("https://api.example:6443") is None


def test_a_request_does_not_look_for_proxies_again(monkeypatch, tmp_path):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    cluster = {"name": "c", "cluster": {"server": "https://api.example:6443"}}
    user = {"name": "u", "user": {"token": "t"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    document = {"current-context": "x", "clusters": [cluster], "users": [user], "contexts": [context]}
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **document}))

    async def scenario():
        api = await connect({"KUBECONFIG": str(file)}, watches=9)
        rest = api._client.rest_client
        session = rest._create_pool_manager()
        try:
            assert (session.trust_env, rest.proxy, rest.maxsize) == (False, "http://proxy:3128", 41)
        finally:
            await session.close()
            await api.close()

    asyncio.run(scenario())
