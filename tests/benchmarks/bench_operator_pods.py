"""The pods of the operator's benchmark, played in a process of their own so that its cost is seen apart.

One watch of metadata; each new pod gets the status of one that runs and is restored. It has no address, so that nobody
asks it for figures.
"""

from __future__ import annotations

import asyncio
import http
import json
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from kube_reads import trust
from operator_kit import running_status

from streams_operator import names

_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_AT_ONCE = 8
_ASKED = 90.0  # seconds in which a request is made again
_PATCH = {"Content-Type": "application/strategic-merge-patch+json"}


class Pods:
    """Answers to all pods with the application's label, in every namespace."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._answered: set[str] = set()

    async def run(self) -> None:
        """Until cancelled. Raises aiohttp.ClientError, ValueError: the API server does not answer as one does."""
        async with asyncio.TaskGroup() as group:
            while True:
                query = {"labelSelector": names.LABEL_APPLICATION}
                async with self._session.get(
                    "/api/v1/pods", params=query, headers={"Accept": _METADATA_LIST}
                ) as answer:
                    answer.raise_for_status()
                    found = orjson.loads(await answer.read())
                for pod in found["items"] or ():
                    group.create_task(self._one(pod["metadata"]))
                await self._watch(group, found["metadata"]["resourceVersion"])

    async def _watch(self, group: asyncio.TaskGroup, since: str) -> None:
        query = {"labelSelector": names.LABEL_APPLICATION, "watch": "true", "resourceVersion": since}
        async with self._session.get("/api/v1/pods", params=query, headers={"Accept": _METADATA}) as stream:
            async for line in stream.content:
                event = orjson.loads(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] != "DELETED":
                    group.create_task(self._one(event["object"]["metadata"]))

    async def _one(self, metadata: dict[str, Any]) -> None:
        uid, path = metadata["uid"], f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        gone = "deletionTimestamp" in metadata
        if (uid in self._answered) is not gone:
            return
        async with self._places:
            if gone:
                self._answered.discard(uid)
                body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
                async with self._session.delete(path, json=body) as answer:
                    await answer.read()
                return
            self._answered.add(uid)
            body = {"metadata": {"uid": uid}, "status": running_status("RUNNING")}
            async with self._session.patch(f"{path}/status", data=orjson.dumps(body), headers=_PATCH) as answer:
                await answer.read()


async def _main(kubeconfig: Path) -> None:
    async with connect(kubeconfig) as session:
        await Pods(session).run()


def connect(kubeconfig: Path) -> aiohttp.ClientSession:
    """A session by one of the tests' kubeconfigs. Close it; needs a running loop."""
    document = json.loads(kubeconfig.read_text())
    endpoint, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    return aiohttp.ClientSession(
        endpoint["server"],
        connector=aiohttp.TCPConnector(ssl=trust(endpoint)),
        headers={"Authorization": f"Bearer {user['token']}"},
        timeout=aiohttp.ClientTimeout(),
        read_bufsize=1 << 22,
        middlewares=(_until_it_has_time,),
    )


async def _until_it_has_time(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Ask again what the API server refuses with 429, as it does while a new definition's watches are not there yet."""
    end = time.monotonic() + _ASKED
    while True:
        answer = await handler(request)
        if answer.status != http.HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() > end:
            return answer
        answer.release()
        await asyncio.sleep(float(answer.headers.get("Retry-After", "1")))


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
