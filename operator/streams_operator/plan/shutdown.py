"""SHUTDOWN_APPLICATION: which pods to tell that another one asked for the end of all (KIP-671).

A request stands for as long as the client that made it is in ERROR under the version and the restartNonce that it had.
It is about the pods of that version that answer to the same number: those that a new version or a new number brings are
never told.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from streams_operator.model import Telling
from streams_operator.plan.instances import Instance
from streams_operator.plan.standing import Standing
from streams_operator.plan.words import clipped

_LENGTH = 2000  # bytes of the exception's text, as in the pod's own condition
_CAN_BE_TOLD = (Standing.NEW, Standing.LIVE)


def asking(instances: Sequence[Instance], digest: str | None, nonce: int) -> Instance | None:
    """The first whose request is about pods of this version and this restartNonce."""
    return next((each for each in instances if _asks(each) and (each.digest, each.nonce) == (digest, nonce)), None)


def tellings(instances: Sequence[Instance]) -> tuple[Telling, ...]:
    """Whom to tell now: those that run, or are about to, and were not told yet."""
    found = []
    for each in instances:
        asker = asking(instances, each.digest, each.nonce)
        if asker is None or asker is each or each.pod is None or each.standing not in _CAN_BE_TOLD or each.pod.told:
            continue
        found.append(Telling(each.pod.name, each.pod.uid, words(asker)))
    return tuple(found)


def words(asker: Instance) -> str:
    """What a pod reads in its told file (streams_runtime.cli.told)."""
    kind, message = asker.error or ("", "")
    content = {"instance": asker.name, "class": kind, "message": clipped(message, _LENGTH)}
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode()


def _asks(instance: Instance) -> bool:
    return instance.shutdown_requested and instance.error is not None
