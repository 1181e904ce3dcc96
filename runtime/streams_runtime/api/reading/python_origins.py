"""Mistakes in parts of a resource that stand in no file: they are told with the call that made the part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from streams_runtime.errors import Mistake

_PART = re.compile(r"spec\.topology\.(?:(?:sources|steps|sinks)\[\d+\]|functions\.\w+)")


def retold(mistakes: Iterable[Mistake], origins: Mapping[str, str]) -> tuple[Mistake, ...]:
    """The mistakes with every part of the topology as `origins` has it, by the part's path."""

    def known(text: str) -> str:
        return _PART.sub(lambda match: origins.get(match[0], match[0]), text)

    return tuple(Mistake(known(each.path), known(each.found), known(each.remedy)) for each in mistakes)
