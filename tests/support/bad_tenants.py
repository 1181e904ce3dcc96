"""Six tenants that a good one should not notice: what each does to an operator, for as long as a block lasts."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http import HTTPStatus
from typing import Any

import httpx
from kube_cluster import Cluster
from kube_reads import connection
from operator_kit import resource

from streams_operator import names

_APPLICATIONS = "/apis/streamsoperator.io/v1alpha1/namespaces/{}/streamsapplications"
_CLUSTERS = 8  # applications whose brokers are away
_OBJECTS = 1500
_LARGE = 900_000  # bytes of a specification
_PATIENCE = 90.0  # seconds for a request; the API server itself gives up after 60
_BUSY = {
    HTTPStatus.CONFLICT,  # also the answer to a merge patch that others' writes have overtaken five times
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}


class Tenant:
    """A namespace, and the requests of who lives there; `many`: applications that it makes where it makes many."""

    def __init__(self, http: httpx.Client, namespace: str, bootstrap: str, many: int = 0) -> None:
        self._http, self.namespace, self.bootstrap, self.many = http, namespace, bootstrap, many

    def make(self, *documents: Mapping[str, Any], path: str = _APPLICATIONS) -> None:
        """Make objects, applications unless `path` says otherwise."""
        for each in documents:
            self._http.post(path.format(self.namespace), json=each).raise_for_status()

    def application(self, name: str, **spec: Any) -> Mapping[str, Any]:
        """A small one."""
        return resource(self.namespace, self.bootstrap, name, **spec)

    def change(self, name: str, **spec: Any) -> int:
        """Change an application's specification; its generation since."""
        answer = self._http.patch(
            self._path(name), json={"spec": spec}, headers={"Content-Type": "application/merge-patch+json"}
        )
        return int(answer.raise_for_status().json()["metadata"]["generation"])

    def get(self, name: str) -> Mapping[str, Any]:
        """An application as it is now."""
        found: Mapping[str, Any] = self._http.get(self._path(name)).raise_for_status().json()
        return found

    def _path(self, name: str) -> str:
        return f"{_APPLICATIONS.format(self.namespace)}/{name}"


Kind = Callable[[Tenant], AbstractContextManager[None]]


@contextmanager
def dead_brokers(tenant: Tenant) -> Iterator[None]:
    """Nobody listens where its applications look for brokers."""
    tenant.make(*(tenant.application(f"app-{at}", kafka=_at("127.0.0.1:1")) for at in range(_CLUSTERS)))
    yield


@contextmanager
def silent_brokers(tenant: Tenant) -> Iterator[None]:
    """Its brokers take connections and answer nothing."""
    ended = threading.Event()

    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            ended.wait()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Silent) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        at = _at(f"127.0.0.1:{server.server_address[1]}")
        tenant.make(*(tenant.application(f"app-{number}", kafka=at) for number in range(_CLUSTERS)))
        try:
            yield
        finally:
            ended.set()
            server.shutdown()


@contextmanager
def large_specification(tenant: Tenant) -> Iterator[None]:
    """A specification of nearly a megabyte, which is changed again and again, so that it is read again and again."""
    topology = tenant.application("app")["spec"]["topology"]
    padding = "n" + " + n" * 50
    steps: list[dict[str, Any]] = []
    size = 0
    while size < _LARGE:
        before = steps[-1]["name"] if steps else "in"
        steps.append({"name": f"step-{len(steps)}", "from": before, "where": f"{padding} > {len(steps)}"})
        size += len(str(steps[-1]))
    large = {**topology, "steps": [*steps, {**topology["steps"][0], "from": steps[-1]["name"]}]}
    tenant.make(tenant.application("app", topology=large))
    with _again_and_again(lambda turn: tenant.change("app", processing={"maxBatchRecords": 1000 + turn}), 1.0):
        yield


@contextmanager
def endless_list(tenant: Tenant) -> Iterator[None]:
    """It has put the label of its application on more objects than anybody wants to read."""
    tenant.make(tenant.application("app"))
    labels = {names.LABEL_APPLICATION: "app"}
    maps = ({"metadata": {"name": f"map-{at}", "labels": labels}, "data": {"a": "x" * 1000}} for at in range(_OBJECTS))
    tenant.make(*maps, path="/api/v1/namespaces/{}/configmaps")
    yield


@contextmanager
def endless_changes(tenant: Tenant) -> Iterator[None]:
    """It changes its application as fast as the API server takes it."""
    tenant.make(tenant.application("app"))
    with _again_and_again(lambda turn: tenant.change("app", replicas=turn % 4), 0.0):
        yield


@contextmanager
def many_applications(tenant: Tenant) -> Iterator[None]:
    """It makes many applications at once."""
    tenant.make(*(tenant.application(f"app-{at}") for at in range(tenant.many)))
    yield


KINDS: tuple[Kind, ...] = (
    dead_brokers,
    silent_brokers,
    large_specification,
    endless_list,
    endless_changes,
    many_applications,
)


def namespace_of(kind: Kind, prefix: str) -> str:
    """Where a bad tenant lives."""
    return f"{prefix}{kind.__name__.replace('_', '-')}"


def make_homes(cluster: Cluster, prefix: str, *kinds: Kind) -> list[str]:
    """Make the namespaces of bad tenants; their names."""
    homes = [namespace_of(kind, prefix) for kind in kinds]
    if homes:
        cluster.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}} for home in homes))
    return homes


@contextmanager
def bad_tenants(
    cluster: Cluster,
    prefix: str,
    bootstrap: str,
    *kinds: Kind,
    many: int = 200,
) -> Iterator[None]:
    """These live beside everybody else, each in a namespace of its own, which is there."""
    with ExitStack() as stack:
        for kind in kinds:
            http = stack.enter_context(connection(cluster.endpoint, cluster.token, _PATIENCE))
            stack.enter_context(kind(Tenant(http, namespace_of(kind, prefix), bootstrap, many)))
        yield


@contextmanager
def _again_and_again(deed: Callable[[int], None], pause: float) -> Iterator[None]:
    """What an API server that has too much to do, or a write of somebody else, keeps from being done is left undone."""
    ended = threading.Event()
    done = 0

    def go_on() -> None:
        nonlocal done
        turn = 0
        while not ended.wait(pause):
            try:
                deed(turn)
                done += 1
            except httpx.TimeoutException:
                pass
            except httpx.HTTPStatusError as e:
                if e.response.status_code not in _BUSY:
                    raise
            turn += 1

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
        assert thread.is_alive(), "the changes have failed"
        assert done, "nothing was changed"
    finally:
        ended.set()
        thread.join(30)


def _at(address: str) -> dict[str, str]:
    return {"bootstrapServers": address}
