"""The validating webhook: at `kubectl apply`, the text that would stand in the condition InvalidSpec."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from streams_operator.model import Defaults
from streams_operator.plan.version.acceptance import cluster_mistakes
from streams_operator.reconcile.readings import Readings, read_resource
from streams_runtime.api import KIND

_LOGGER = logging.getLogger("streams_operator.webhook")
_LONGEST = 8 << 20  # bytes; etcd takes less
_PATH = "/validate"


def verdict(review: Mapping[str, Any], defaults: Defaults) -> Mapping[str, Any]:
    """The answer to an AdmissionReview: allowed, or refused with every mistake.

    Resources that are being deleted are let through, or a mistake would keep their finalizer. Raises KeyError for
    something that is no AdmissionReview.
    """
    request = review["request"]
    resource = request.get("object") or {}
    response: dict[str, Any] = {"uid": request["uid"], "allowed": True}
    asked = request.get("operation") in ("CREATE", "UPDATE") and resource.get("kind") == KIND
    if asked and "deletionTimestamp" not in resource.get("metadata", {}):
        reading = read_resource(resource)
        mistakes = reading.mistakes
        if reading.application is not None:
            mistakes = tuple(cluster_mistakes(reading.application, defaults))
        if mistakes:
            response["allowed"] = False
            response["status"] = {
                "code": 422,
                "reason": "Invalid",
                "message": "\n".join(map(str, mistakes)),
            }
    return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}


def webhook(defaults: Defaults) -> web.Application:
    """Serves `verdict` at /validate. Large resources are judged beside the loop, one after the other."""
    readings = Readings()

    async def answer(request: web.Request) -> web.Response:
        try:
            given = orjson.loads(await request.read())
            review = await readings.beside(given["request"].get("object") or {}, verdict, given, defaults)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise web.HTTPBadRequest(text=f"this is no AdmissionReview: {error!r}") from error
        return web.Response(body=orjson.dumps(review), content_type="application/json")

    async def close(_: web.Application) -> None:
        readings.close()

    app = web.Application(client_max_size=_LONGEST)
    app.on_cleanup.append(close)
    app.router.add_post(_PATH, answer)
    return app


def certificate(folder: Path) -> ssl.SSLContext:
    """TLS with the certificate in `folder`, read anew for each connection when its files have changed."""
    return _Renewed(folder).context


class _Renewed:
    """A context whose certificate follows its files: cert-manager and Kubernetes replace them in place."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = 0.0
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._load()
        self.context.sni_callback = self._follow

    def _follow(self, _socket: object, _name: object, _context: object) -> None:
        try:
            self._load()
        except (OSError, ssl.SSLError) as error:
            _LOGGER.warning("the webhook keeps its certificate, as the new one can't be read: %s", error)

    def _load(self) -> None:
        changed = (self._folder / "tls.crt").stat().st_mtime
        if changed != self._read:
            self.context.load_cert_chain(self._folder / "tls.crt", self._folder / "tls.key")
            self._read = changed
