"""The file by which a process with a client learns that another instance requested the application's shutdown.

Whoever hosts the instances writes it (a pod's annotation through the kubelet, or `streamsapp run`); empty or absent, it
says nothing.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from streams_runtime.errors import ShutdownRequestedException
from streams_runtime.states import ClientState

if TYPE_CHECKING:
    from streams_runtime.client import StreamsClient

_GOING = (ClientState.REBALANCING, ClientState.RUNNING)


def encode_request(instance: str, kind: str, message: str) -> bytes:
    """The file's content: which instance requested it, and the class and the text of its exception."""
    return orjson.dumps({"instance": instance, "class": kind, "message": message})


def decode_request(content: bytes) -> ShutdownRequestedException | None:
    """The request in the file; None: none. A text that is not JSON, which a person wrote, is the reason by itself."""
    if not content.strip():
        return None
    with contextlib.suppress(orjson.JSONDecodeError):
        document = orjson.loads(content)
        if isinstance(document, dict):
            instance, kind, message = (str(document.get(each) or "") for each in ("instance", "class", "message"))
            return ShutdownRequestedException(instance, kind, message or "no reason was given")
    return ShutdownRequestedException("", "", content.decode(errors="replace").strip())


class ShutdownRequestFile:
    """Reads the file while the client runs. None as `file`: nobody writes one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def pass_on(self, client: StreamsClient) -> None:
        """Pass a request in the file to the client, unless it is ending already; call it often."""
        if self._file is None or client.state not in _GOING:
            return
        with contextlib.suppress(OSError):
            request = decode_request(self._file.read_bytes())
            if request is not None:
                client.shut_down_with_application(request)
