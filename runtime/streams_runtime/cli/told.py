"""The told file: how a process with a client is told that another instance asked for the application's shutdown.

Whoever hosts the instances writes it (a pod's annotation through the kubelet, or `streamsapp run`); empty or absent, it
says nothing.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import orjson

from streams_runtime.client import StreamsClient
from streams_runtime.errors import ShutdownRequestedException
from streams_runtime.states import ClientState

_GOING = (ClientState.REBALANCING, ClientState.RUNNING)


def words(instance: str, kind: str, message: str) -> bytes:
    """What stands in the file: who asked, and the class and the text of its exception."""
    return orjson.dumps({"instance": instance, "class": kind, "message": message})


def request_in(content: bytes) -> ShutdownRequestedException | None:
    """What the file says; None: nothing. Words of a person, which are not JSON, are the reason by themselves."""
    if not content.strip():
        return None
    with contextlib.suppress(orjson.JSONDecodeError):
        said = orjson.loads(content)
        if isinstance(said, dict):
            instance, kind, message = (str(said.get(each) or "") for each in ("instance", "class", "message"))
            return ShutdownRequestedException(instance, kind, message or "no reason was given")
    return ShutdownRequestedException("", "", content.decode(errors="replace").strip())


class ToldFile:
    """Looked at often, while the client runs. None as `file`: nobody writes one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def pass_on(self, client: StreamsClient) -> None:
        """Tell the client what the file says, if it says something and the client is not ending already."""
        if self._file is None or client.state not in _GOING:
            return
        with contextlib.suppress(OSError):
            request = request_in(self._file.read_bytes())
            if request is not None:
                client.shut_down_with_application(request)
