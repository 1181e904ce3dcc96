"""The termination message, which Kubernetes keeps with the container."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import orjson

from streams_runtime.kubernetes.pod_conditions import bounded

TERMINATION_BYTES = 4096
"""What Kubernetes keeps of a termination message: the end of the file, so a longer one would lose its beginning."""

_LOGGER = logging.getLogger("streams_runtime.pod")


def termination_message(document: Mapping[str, str | None], note: str = "") -> bytes:
    """The document as JSON, short enough for Kubernetes to keep it whole: of a long message its beginning."""
    text = "; ".join(part for part in (document.get("message"), note) if part)
    message = orjson.dumps({**document, "message": text})
    length = min(len(text), TERMINATION_BYTES)
    while len(message) > TERMINATION_BYTES:
        length -= 100
        message = orjson.dumps({**document, "message": bounded(text, length)})
    return message


def write_termination(file: Path, document: Mapping[str, str | None], note: str = "") -> None:
    """Write the termination message in place: the file is a mount of its own, which can't be replaced."""
    try:
        file.write_bytes(termination_message(document, note))
    except OSError as error:
        _LOGGER.warning("no termination message: %s can't be written: %s", file, error.strerror)
