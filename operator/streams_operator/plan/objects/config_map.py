"""The ConfigMap with one version of the application: one a digest, and never changed."""

from __future__ import annotations

import base64
import gzip
import zlib
from typing import Any

from streams_operator import names
from streams_operator.model import Json
from streams_operator.plan.objects.identity import Identity

_PLAIN = 256 * 1024  # bytes; an object may have 1 MiB or so, and watches carry it whole


def config_map(identity: Identity, digest: str, document: bytes, existing: Json | None) -> dict[str, Any]:
    """The application in clear text, or compressed when it is long.

    `existing` keeps its bytes when they say the same: another zlib may compress to others, and it is immutable.
    """
    content: dict[str, Any] = {"data": {names.CONFIG_FILE: document.decode()}}
    if len(document) > _PLAIN:
        packed = base64.b64encode(gzip.compress(document, mtime=0)).decode()
        content = {"binaryData": {f"{names.CONFIG_FILE}.gz": _existing_bytes(existing, document) or packed}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": identity.metadata(names.config(identity.name, digest)),
        "immutable": True,
        **content,
    }


def document_in(config_map: Json) -> bytes | None:
    """The application that `config_map` made it from; None when it holds none that can be unpacked."""
    text = (config_map.get("data") or {}).get(names.CONFIG_FILE)
    return str(text).encode() if text is not None else _unpacked(_packed(config_map))


def _existing_bytes(existing: Json | None, document: bytes) -> str | None:
    packed = _packed(existing or {})
    return packed if packed is not None and _unpacked(packed) == document else None


def _packed(config_map: Json) -> str | None:
    packed = (config_map.get("binaryData") or {}).get(f"{names.CONFIG_FILE}.gz")
    return str(packed) if packed else None


def _unpacked(packed: str | None) -> bytes | None:
    try:
        return gzip.decompress(base64.b64decode(packed)) if packed is not None else None
    except (OSError, EOFError, ValueError, zlib.error):
        return None
