"""The file by which a process with a client learns that its application is paused, or goes on (KIP-834).

Whoever hosts the instances writes it: in a pod the kubelet, from an annotation.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streams_runtime.client import StreamsClient

PAUSE_FILE = "paused"
"""Its name, beside the file of a requested shutdown."""
_PAUSED = b"true"


class PauseFile:
    """Reads the file while the client runs. None as `file`, or a file that is not there: nobody writes one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.paused: bool | None = None
        """What was passed on last; None: the client was never paused."""

    def pass_on(self, client: StreamsClient) -> bool:
        """Pause or resume the client as the file says; whether that is news. Call it often, and before the start."""
        paused = self._says_paused()
        if paused is None or paused == bool(self.paused):
            return False
        if paused:
            client.pause()
        else:
            client.resume()
        self.paused = paused
        return True

    def _says_paused(self) -> bool | None:
        try:
            return None if self._file is None else self._file.read_bytes().strip() == _PAUSED
        except OSError:
            return None
