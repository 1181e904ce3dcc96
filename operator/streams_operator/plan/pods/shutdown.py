"""SHUTDOWN_APPLICATION: which pods get a signal that another one asked for the end of all (KIP-671).

A request stands for as long as the client that made it is in ERROR under the version and the restartNonce that it had.
It is about the pods of that version that answer to the same number: those that a new version or a new number brings are
never signaled.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from streams_operator.model import PodSignal
from streams_operator.names import ANNOTATION_SHUTDOWN
from streams_operator.plan.pods.instances import Instance
from streams_operator.plan.pods.standing import Standing
from streams_operator.plan.status.message_texts import clipped

_LENGTH = 2000  # bytes of the exception's text, as in the pod's own condition
_SIGNALED_STANDINGS = (Standing.NEW, Standing.LIVE)


def requester(instances: Sequence[Instance], digest: str | None, nonce: int) -> Instance | None:
    """The first whose request is about pods of this version and this restartNonce."""
    return next(
        (each for each in instances if _requests_shutdown(each) and (each.digest, each.nonce) == (digest, nonce)), None
    )


def shutdown_signals(instances: Sequence[Instance]) -> tuple[PodSignal, ...]:
    """Whom to signal now: those that run, or are about to, and have no signal yet."""
    found = []
    for each in instances:
        asker = requester(instances, each.digest, each.nonce)
        if asker is None or asker is each or each.pod is None or each.pod.shutdown_signaled:
            continue
        if each.standing in _SIGNALED_STANDINGS:
            found.append(PodSignal(each.pod.name, each.pod.uid, ANNOTATION_SHUTDOWN, signal_text(asker)))
    return tuple(found)


def signal_text(asker: Instance) -> str:
    """What a pod reads in its shutdown file (streams_runtime.cli.process.shutdown_request)."""
    kind, message = asker.error or ("", "")
    content = {"instance": asker.name, "class": kind, "message": clipped(message, _LENGTH)}
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode()


def _requests_shutdown(instance: Instance) -> bool:
    return instance.shutdown_requested and instance.error is not None
