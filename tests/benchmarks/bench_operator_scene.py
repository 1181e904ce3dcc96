"""What the operator's benchmark runs in: an API server and its etcd, a broker, the played pods, one operator."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))

import aiohttp
import orjson
from bench_machine import TICKS, process_stats
from bench_operator_pods import connect
from bench_operator_requests import AuditLog, policy
from clients import make_topics
from kube_api_server import api_server
from kube_cluster import Cluster
from kube_fixtures import CRD
from operator_kit import OperatorProcess, resource
from waiting import eventually

from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker

_OPERATORS = "streams-operator"
_USER = f"system:serviceaccount:{_OPERATORS}:{_OPERATORS}"
_APPLICATIONS = "/apis/streamsoperator.io/v1alpha1/streamsapplications"
_APPLICATIONS_OF = "/apis/streamsoperator.io/v1alpha1/namespaces/{}/streamsapplications"
_QUICK = ("-XX:TieredStopAtLevel=1",)
"""A broker that has just started compiles itself for twenty seconds of a processor, which is none of the operator's."""
_A_NAMESPACE = 50
"""Applications in one namespace."""


@dataclass(slots=True)
class Seen:
    """An application as the benchmark's own watch has it."""

    generation: int = 0
    observed: int = 0
    state: str = ""
    ready: str = ""
    settled: bool = False  # no rolling change

    @property
    def runs(self) -> bool:
        """Whether it is RUNNING as its newest specification has it."""
        replicas, _, wanted = self.ready.partition("/")
        return self.state == "RUNNING" and self.observed == self.generation and replicas == wanted and self.settled


@dataclass(slots=True)
class Scene:
    """Everything beside the operator; the operator's processes come and go."""

    cluster: Cluster
    operators_cluster: Cluster
    bootstrap: str
    folder: Path
    audit: AuditLog
    pods: subprocess.Popen[bytes]
    seen: dict[tuple[str, str], Seen] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @contextmanager
    def operators(self, shards: int) -> Iterator[Sequence[OperatorProcess]]:
        """One operator for each share of all namespaces, ended in order."""
        processes: list[OperatorProcess] = []
        try:
            for shard in range(shards):
                log = self.folder / f"operator-{time.monotonic_ns()}.log"
                shares = {"shards": str(shards), "shard": str(shard)}
                processes.append(
                    OperatorProcess(
                        self.operators_cluster, _OPERATORS, log, namespaces="", lease_namespace=_OPERATORS, **shares
                    )
                )
            yield processes
            for process in processes:
                process.stop()
        finally:
            for process in processes:
                process.kill()

    async def watch(self) -> None:
        """Follow all applications, until cancelled."""
        async with connect(self.cluster.kubeconfig) as session:
            while True:
                async with session.get(_APPLICATIONS) as answer:
                    answer.raise_for_status()
                    found = orjson.loads(await answer.read())
                for each in found["items"] or ():
                    self._take("ADDED", each)
                await self._follow(session, found["metadata"]["resourceVersion"])

    async def _follow(self, session: aiohttp.ClientSession, since: str) -> None:
        async with session.get(_APPLICATIONS, params={"watch": "true", "resourceVersion": since}) as stream:
            stream.raise_for_status()
            async for line in stream.content:
                event = orjson.loads(line)
                if event["type"] == "ERROR":
                    return
                async with self.changed:
                    self._take(event["type"], event["object"])
                    self.changed.notify_all()

    async def until(self, condition: Callable[[], bool], what: str, seconds: float) -> float:
        """Wait for what the watch brings; returns the seconds. Raises TimeoutError with `what`."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds), self.changed:
                await self.changed.wait_for(condition)
        except TimeoutError:
            run = sum(each.runs for each in self.seen.values())
            raise TimeoutError(f"not within {seconds:g} s: {what}. {run} of {len(self.seen)} run") from None
        return time.monotonic() - began

    async def make(self, numbers: range) -> None:
        """Make applications."""
        await self._each(numbers, self._post)

    async def change(self, number: int, spec: dict[str, Any]) -> None:
        """Change one application's specification."""
        async with connect(self.cluster.kubeconfig) as session:
            namespace, name = place(number)
            path = f"{_APPLICATIONS_OF.format(namespace)}/{name}"
            content = {"Content-Type": "application/merge-patch+json"}
            async with session.patch(path, data=orjson.dumps({"spec": spec}), headers=content) as answer:
                answer.raise_for_status()
                changed = orjson.loads(await answer.read())
            # What is waited for next is this generation, whether or not the watch has brought it.
            self._take("MODIFIED", changed)

    async def _each(self, numbers: range, work: Callable[[aiohttp.ClientSession, int], Awaitable[None]]) -> None:
        left = list(reversed(numbers))

        async def some() -> None:
            while left:
                await work(session, left.pop())

        async with connect(self.cluster.kubeconfig) as session, asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(some())

    async def _post(self, session: aiohttp.ClientSession, number: int) -> None:
        namespace, name = place(number)
        body = resource(namespace, self.bootstrap, name, replicas=2)
        async with session.post(_APPLICATIONS_OF.format(namespace), json=body) as answer:
            answer.raise_for_status()

    def _take(self, type: str, found: dict[str, Any]) -> None:
        metadata, status = found["metadata"], found.get("status") or {}
        key = metadata["namespace"], metadata["name"]
        if type == "DELETED":
            self.seen.pop(key, None)
            return
        conditions = {each["type"]: each["reason"] for each in status.get("conditions") or ()}
        self.seen[key] = Seen(
            int(metadata.get("generation", 0)),
            int(status.get("observedGeneration", 0)),
            status.get("state", ""),
            status.get("ready", ""),
            conditions.get("Progressing") != "RollingOut",
        )


def place(number: int) -> tuple[str, str]:
    """Namespace and name of an application."""
    return f"team-{number // _A_NAMESPACE}", f"app-{number}"


@contextmanager
def scene(folder: Path, applications: int) -> Iterator[Scene]:
    """Start everything, with room for so many applications and one more.

    Raises EnvironmentException: a program is missing or does not come up.
    """
    log, rules = folder / "audit.log", folder / "audit-policy.json"
    rules.write_text(json.dumps(policy(_USER)))
    flags = [f"--audit-policy-file={rules}", f"--audit-log-path={log}", "--audit-log-maxsize=2000"]
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(folder / "broker", heap="512m", jvm_options=_QUICK))
        cluster = stack.enter_context(api_server(flags))
        _prepare(cluster, broker.bootstrap_servers, place(applications)[0])
        pods = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("bench_operator_pods.py"), cluster.kubeconfig],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        stack.callback(pods.wait)
        stack.callback(pods.terminate)
        token = cluster.kubectl("create", "token", _OPERATORS, f"--namespace={_OPERATORS}", "--duration=6h")
        own = cluster.folder / "operator"
        own.mkdir()
        operators = replace(cluster, folder=own, token=token.stdout.strip())
        yield Scene(cluster, operators, broker.bootstrap_servers, folder, AuditLog(log), pods)


def _prepare(cluster: Cluster, bootstrap: str, last_namespace: str) -> None:
    cluster.kubectl("apply", "--server-side", f"--filename={CRD}")
    eventually(
        lambda: cluster.is_established("streamsapplications.streamsoperator.io"), "the definition is established"
    )
    namespaces = [f"team-{number}" for number in range(int(last_namespace.removeprefix("team-")) + 1)]
    account = {"name": _OPERATORS, "namespace": _OPERATORS}
    cluster.apply(
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in (_OPERATORS, *namespaces)),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": _OPERATORS},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
    )
    make_topics(bootstrap, None, **{f"{name}-{way}": 1 for name in namespaces for way in ("in", "out")})


def cpu_seconds(pid: int | None = None) -> dict[str, float]:
    """Seconds of processors that the processes under this one have had so far, by command; with `pid` of one alone."""
    spent: dict[str, float] = {}
    fields_of = dict(process_stats())
    for process, fields in fields_of.items():
        if pid is not None and process != pid:
            continue
        above, found = process, False
        while above in fields_of and not found:
            found = above == os.getpid()
            above = int(fields_of[above][1])
        if found:
            name = Path(f"/proc/{process}/comm").read_text().strip()
            spent[name] = spent.get(name, 0.0) + sum(map(int, fields[11:13])) / TICKS
    return spent


def peak_mib(pid: int) -> float:
    """The most memory that a process had resident so far."""
    return _memory(pid, "VmHWM")


def resident_mib(pid: int) -> float:
    """The memory that a process has resident."""
    return _memory(pid, "VmRSS")


def _memory(pid: int, field: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{field}:")).split()[1]) / 1024
