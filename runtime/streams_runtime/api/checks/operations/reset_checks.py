"""Checks of a reset: its sources are sources whose offsets a group has, and its partitions are numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.api.steps.topology_spec import SourceSpec
from streams_runtime.errors import Mistake

_PARTITION = re.compile(r"0|[1-9][0-9]{0,8}")
AT = "spec.reset"


def reset_mistakes(reset: ResetSpec, sources: Iterable[SourceSpec]) -> Iterator[Mistake]:
    """Everything about a reset that can be said without asking the brokers."""
    known = {source.name: source for source in sources}
    yield from _named_twice(reset, known)
    for index, name in enumerate(reset.sources):
        path = under(f"{AT}.sources", index)
        yield from _source(name, path, known)
        if name in reset.sources[:index]:
            yield Mistake(path, f"{name!r} is named twice", "name it once")
    for name, offsets in (reset.to.offsets or {}).items():
        path = under(f"{AT}.to.offsets", name)
        yield from _source(name, path, known)
        if name in known and known[name].topic_pattern is not None:
            found = f"{name!r} reads several topics, by the pattern {known[name].topic_pattern!r}"
            yield Mistake(path, found, "go to earliest, latest or a time, which all of its topics have")
        if reset.sources and name not in reset.sources:
            yield Mistake(path, f"{name!r} is not among {AT}.sources", "name it there too, or leave its offsets out")
        if not offsets:
            yield Mistake(path, "names no partition", "give at least one, as in {0: 120} with its number in quotes")
        for partition in offsets:
            if not _PARTITION.fullmatch(partition):
                yield Mistake(
                    under(path, partition), f"{partition!r} is no partition", "give its number in quotes, such as '0'"
                )


def _named_twice(reset: ResetSpec, known: Mapping[str, SourceSpec]) -> Iterator[Mistake]:
    """Two sources of one topic have its offsets together."""
    fields = {name: under(f"{AT}.sources", index) for index, name in enumerate(reset.sources)}
    fields |= {name: under(f"{AT}.to.offsets", name) for name in reset.to.offsets or {}}
    first: dict[str, str] = {}
    for name, field in fields.items():
        topic = known[name].topic if name in known else None
        if topic is not None and first.setdefault(topic, name) != name:
            found = f"{name!r} reads the topic {topic!r}, as {first[topic]!r} does, and both are named"
            yield Mistake(field, found, "name one of the two: a topic's offsets are set once")


def _source(name: str, path: str, known: Mapping[str, SourceSpec]) -> Iterator[Mistake]:
    source = known.get(name)
    if source is None:
        choices = [each.name for each in known.values() if not _is_global(each)]
        yield Mistake(path, f"{name!r} is no source of this application", suggestion(name, choices))
    elif _is_global(source):
        found = f"{name!r} is a global table, which every instance reads in full and no group has offsets of"
        yield Mistake(path, found, "leave it out")


def _is_global(source: SourceSpec) -> bool:
    return source.table is not None and source.table.global_
