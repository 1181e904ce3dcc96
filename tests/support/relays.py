"""What stands between the brokers of a cluster, and between them and their clients, and can be cut like a network.

Every listener of every broker is found at a relay's port. A relay knows which process connects, so a link is one from a
broker, or from the clients, to another broker: it can go in one direction only, as a partition in a real network can.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from streams_runtime.kafka.broker.broker_config import HOST, Ports

CLIENTS = 0
"""The source of connections of whoever is no broker."""

_CHUNK = 64 * 1024
_START = 30.0  # seconds that the loop has for what it is asked
_LOOPBACK = "0100007F"  # as /proc/net/tcp writes it


class Link(Enum):
    """What becomes of what is sent over a link."""

    OPEN = "open"
    SILENT = "silent"
    """It is held, and nobody hears of it: packets are lost on the way. It arrives late when the link is open again."""
    REFUSED = "refused"
    """Connections are reset, and so are new ones."""


class Relays:
    """The relays of a cluster; use it in `with`, and give `advertise` to EmbeddedCluster."""

    def __init__(self) -> None:
        self.processes: Callable[[], Mapping[int, int]] = dict
        """The process ids of the brokers at present, and which broker each is."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relays")
        self._links: dict[tuple[int, int], Link] = {}
        self._changed = asyncio.Condition()
        self._connections: dict[asyncio.Task[None], tuple[int, int]] = {}
        self._servers: list[asyncio.Server] = []

    def advertise(self, node: int, ports: Ports) -> Ports:
        """Where the node is found: relays before its listeners."""
        return Ports(
            *(self._call(self._serve(node, port)) for port in (ports.clients, ports.brokers, ports.controllers))
        )

    def set(self, state: Link, *links: tuple[int, int]) -> None:
        """Change these links, each from a source to a broker; what goes back the same way is part of it."""
        self._call(self._set(state, links))

    def heal(self) -> None:
        """Open all links."""
        self.set(Link.OPEN, *self._links)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START)

    async def _serve(self, target: int, port: int) -> int:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._connected(target, port, reader, writer)

        server = await asyncio.start_server(accept, HOST, 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _set(self, state: Link, links: tuple[tuple[int, int], ...]) -> None:
        async with self._changed:
            self._links |= dict.fromkeys(links, state)
            self._changed.notify_all()
        if state is Link.REFUSED:
            for task, link in list(self._connections.items()):
                if link in links:
                    task.cancel()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(
        self, target: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        link = self._source(writer), target
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = link
        back: asyncio.StreamWriter | None = None
        try:
            with suppress(OSError, asyncio.CancelledError):
                if not await self._passes(link):
                    return
                from_broker, back = await asyncio.open_connection(HOST, port)
                ways = [asyncio.create_task(self._pump(link, *way)) for way in ((reader, back), (from_broker, writer))]
                try:
                    # A Kafka connection of which one side is closed is of no more use to the other.
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)
        finally:
            del self._connections[task]
            for each in (writer, back):
                if each is not None and self._links.get(link) is Link.REFUSED:
                    _reset(each)
                elif each is not None:
                    each.close()

    async def _pump(self, link: tuple[int, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            if not await self._passes(link):
                return
            writer.write(data)
            await writer.drain()
        await self._passes(link)

    async def _passes(self, link: tuple[int, int]) -> bool:
        """Wait while the link is silent; whether it is open then."""
        if self._links.get(link, Link.OPEN) is Link.SILENT:
            async with self._changed:
                await self._changed.wait_for(lambda: self._links[link] is not Link.SILENT)
        return self._links.get(link, Link.OPEN) is Link.OPEN

    def _source(self, writer: asyncio.StreamWriter) -> int:
        here, there = (writer.get_extra_info(name)[1] for name in ("sockname", "peername"))
        inode = _inode(there, here)
        for pid, node in self.processes().items():
            if inode is not None and _has_socket(pid, inode):
                return node
        return CLIENTS


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection so that the other side hears of it as an error."""
    found = writer.get_extra_info("socket")
    with suppress(OSError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _inode(local: int, remote: int) -> str | None:
    """The kernel's number of the socket at the other end of a connection of this machine; None when it is gone."""
    # JVMs' sockets are those of IPv6, with the address of IPv4 at the end.
    ends = re.compile(rf"{_LOOPBACK}:{local:04X} \w*{_LOOPBACK}:{remote:04X} ")
    for table in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):
            for line in Path("/proc/net", table).read_text().splitlines():
                if ends.search(line):
                    return line.split()[9]
    return None


def _has_socket(pid: int, inode: str) -> bool:
    with suppress(FileNotFoundError), os.scandir(f"/proc/{pid}/fd") as files:
        for file in files:
            with suppress(FileNotFoundError):
                if os.readlink(file.path) == f"socket:[{inode}]":
                    return True
    return False
