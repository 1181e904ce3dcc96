"""Topologies made of step kinds behind each other, and records for them: every kind that the resource has.

A `Chain` is a list of kinds (`KINDS`, and `PROCESSED`: processors), each with what it takes and gives: a stream, a
table, windows, or a stream of windows. All kinds work on the columns `v BIGINT, g STRING` and keep both, so that any
can stand behind any other.
`steps_model` says what comes of such a topology; `topologies_played` runs it in the test driver.
"""

from __future__ import annotations

import itertools
import json
import random
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from processor_kinds import PROCESS_KINDS, UNORDERED, ProcessKind
from steps_model.folds import FOLDED, LARGEST, REDUCE, REDUCE_SESSIONS, TRAIL
from steps_model.items import Given

SCHEMA = "v BIGINT, g STRING"
STREAM, TABLE, WINDOWS, WINDOWED = "stream", "table", "windows", "stream of windows"
FORMATS = ("string", "long", "json", "bytes")


@dataclass
class Made:
    """A topology as it comes to be. `at` is the output that the next step takes; `key` is its keys' format."""

    key: str
    policy: Any = "fail"
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    sinks: list[dict[str, Any]] = field(default_factory=list)
    at: str = ""
    key_now: str = ""
    joined: int = 0
    """How many tables the chain has joined: a table is not joined with what comes of it."""

    def begin(self, what: str) -> None:
        """Begin a chain: at the stream `in`, or at the table `rows`."""
        self.key_now, self.joined = self.key, 0
        self.at = self.table(self.key, "rows") if what == TABLE else self.stream("in", self.key)

    def stream(self, name: str, key: str) -> str:
        """A source that is a stream."""
        of_json = {"schema": "g STRING"} if key == "json" else {}
        declared = {"name": name, "topic": name, "key": {"format": key} | of_json}
        self.sources.setdefault(name, declared | {"value": {"format": "json", "schema": SCHEMA}})
        return name

    def table(self, key: str, name: str) -> str:
        """A table by keys of this format: a source's; or a toTable's, since with such sources no record may be bad."""
        name = f"{name}_{key}"
        if self.policy == "fail":
            self.stream(name, key)
            self.sources[name]["table"] = {"store": f"{name}-store"}
            return name
        before = self.stream(f"{name}_in", key)
        if all(each["name"] != name for each in self.steps):
            self.steps.append({"name": name, "from": before, "toTable": {"store": f"{name}-store"}})
        return name

    def other_table(self, key: str) -> str:
        """A table that the chain has not met."""
        self.joined += 1
        return self.table(key, f"t{self.joined}")

    def global_table(self) -> str:
        """The global table by text."""
        self.stream("everywhere", "string")
        self.sources["everywhere"]["table"] = {"store": "everywhere-store", "global": True}
        return "everywhere"

    def step(self, at: str | None = None, **what: Any) -> str:
        """Add a step behind `at`, or behind what came last, and go on behind it."""
        name = f"s{len(self.steps)}"
        before = {} if "merge" in what else {"from": self.at if at is None else at}
        self.steps.append({"name": name} | before | what)
        self.at = name
        return name

    def keeping(self, **what: Any) -> str:
        """The same with a store of its own."""
        return self.step(**what, store=f"s{len(self.steps)}-store")

    def sink(self, at: str | None = None) -> None:
        """Write what came last."""
        name = self.at if at is None else at
        topic = f"out-{name.replace('.', '-')}"
        if all(each["topic"] != topic for each in self.sinks):
            self.sinks.append({"from": name, "topic": topic})

    @property
    def document(self) -> dict[str, Any]:
        """The application."""
        topology = {"sources": list(self.sources.values()), "steps": self.steps, "sinks": self.sinks}
        return {
            "apiVersion": "streamsoperator.io/v1alpha1",
            "kind": "StreamsApplication",
            "metadata": {"name": "app"},
            "spec": {"topology": topology, "processing": {"onDeserializationError": self.policy}},
        }


@dataclass(frozen=True)
class Kind:
    """A kind of step: what it may stand behind (others are refused), what it gives, and how it is added."""

    takes: tuple[str, ...]
    gives: Callable[[str], str]
    add: Callable[[Made], None]


SUMS = {"v": "sum(v)", "g": "max(g)", "n": "count(*)", "kinds": "count(distinct v)"}
LEAST = {"v": "min(v)", "g": "min(g)", "mean": "avg(v)", "spread": "stddev_samp(v)", "all": "count(v)"}
LEAST |= {"big": "count_if(v > 3)", "every": "bool_and(v > 1)", "odd": "bool_or(v % 2 = 1)", "pick": "any_value(v)"}
LEAST |= {"best": "max_by(v, v)", "some": "sum(v) FILTER (WHERE v > 1)", "few": "count(*) FILTER (WHERE v > 2)"}
LEAST |= {"kinds": "count(distinct v)", "pairs": "count(distinct v, g)", "top": "top(g, v, 2)"}
LEAST |= {"both": f"{LARGEST} FILTER (WHERE v > 1)"}
ENDS = {"v": "last(v)", "g": "first(g)", "list": "collect_list(v, 3)", "set": "collect_set(g, 2)"}
ENDS |= {
    "big": "last(v) FILTER (WHERE v > 2)",
    "least": "min_by(v, v)",
    "kinds": "count(distinct g) FILTER (WHERE v > 1)",
    "top": "top(v, v, 3) FILTER (WHERE v > 1)",
}
REDUCED = {"v": REDUCE, "g": "max(g)"}
REDUCED_SESSIONS = {"v": REDUCE_SESSIONS, "g": "max(g)"}
BY_CLASS = {"v": FOLDED, "g": "max(g)"}
BY_CLASS_SESSIONS = {"v": "sum(v)", "g": "max(g)", "trail": TRAIL}
APPROXIMATE = {"v": "approx_count_distinct(v)", "g": "max(g)", "p": "approx_percentile(v, 0.5)"}

TUMBLING = {"tumbling": {"size": "5s", "grace": "1s"}}
HOPPING = {"hopping": {"size": "6s", "advance": "2s", "grace": "2s", "offset": "1s"}}
SLIDING = {"sliding": {"timeDifference": "3s", "grace": "1h"}}
SESSION = {"session": {"gap": "1500ms", "grace": "1s"}}


def _aggregate(columns: Mapping[str, str], window: Mapping[str, Any] | None = None, closed: bool = False) -> Any:
    more = {} if window is None else {"window": window}
    final = {"suppress": "untilWindowCloses"} if closed else {}
    return lambda made: made.keeping(aggregate=columns, **more, **final)


def _split(made: Made) -> None:
    name = made.step(
        split=[{"name": "even", "where": "v % 2 = 0"}, {"name": "large", "where": "v > 5"}], default="rest"
    )
    made.sink(f"{name}.rest")
    made.at = f"{name}.even"


def _merge(made: Made) -> None:
    first = made.at
    other = made.step(where="v > 2")
    made.step(merge=[first, other])


def _key(text: str, format: str) -> Callable[[Made], None]:
    def add(made: Made) -> None:
        made.step(keyBy=text)
        made.key_now = format

    return add


def _with_table(kind: str) -> Callable[[Made], None]:
    def add(made: Made) -> None:
        table = made.other_table(made.key_now)
        made.step(join={"table": table, "type": kind, "select": _both(table)})

    return add


def _with_global(kind: str) -> Callable[[Made], None]:
    def add(made: Made) -> None:
        table = made.global_table()
        made.step(join={"table": table, "key": "g", "type": kind, "select": _both(table)})

    return add


def _with_stream(kind: str) -> Callable[[Made], None]:
    def add(made: Made) -> None:
        other = made.stream(f"o_{made.key_now}", made.key_now)
        within = {"before": "2s", "after": "3s"}
        select = _both(other) | {"g": f"coalesce(g, {other}.g)"}
        made.step(join={"stream": other, "type": kind, "within": within, "grace": "1s", "select": select})

    return add


def _with_itself(made: Made) -> None:
    first = made.at
    other = made.step(select={"v": "v * 2", "g": "g"})
    made.step(at=first, join={"stream": other, "within": "1s", "select": _both(other)})


def _table_with_itself(kind: str) -> Callable[[Made], None]:
    def add(made: Made) -> None:
        first = made.at
        other = made.step(where="v % 5 <> 0")
        made.step(at=first, join={"table": other, "type": kind, "select": _both(other)})

    return add


def _looked_up(made: Made) -> None:
    """A stream beside the table that the chain has come to."""
    table, stream = made.at, made.stream(f"q_{made.key_now}", made.key_now)
    made.step(at=stream, join={"table": table, "type": "left", "select": _both(table)})


def _foreign(kind: str) -> Callable[[Made], None]:
    def add(made: Made) -> None:
        table = made.other_table("string")
        made.keeping(join={"table": table, "key": "g", "type": kind, "select": _both(table)})

    return add


def _foreign_to(made: Made) -> None:
    """Rows of another table that name those which the chain has come to, if it has text for keys."""
    table, other = made.at, made.other_table("long")
    made.keeping(at=other, join={"table": table, "key": "g", "type": "left", "select": _both(table)})
    made.key_now = "long"


def _grouped(made: Made) -> None:
    columns = {"v": "sum(v)", "n": "count(*)", "known": "count(v)", "mean": "avg(v)"}
    columns |= {"some": "sum(v) FILTER (WHERE v > 1)", "big": "count_if(v > 3)", "few": "count(*) FILTER (WHERE v > 2)"}
    made.keeping(groupBy="g", aggregate=columns)
    made.step(select={"v": "v + n", "g": "concat('k', cast(v % 3 as string))", "mean": "mean", "some": "some"})
    made.key_now = "string"


def _processed(kind: ProcessKind) -> Callable[[Made], None]:
    def add(made: Made) -> None:
        name = made.step(process=kind.process(f"s{len(made.steps)}"))
        made.key_now = {None: made.key_now, "STRING": "string", "BIGINT": "long"}[kind.key]
        if kind.outputs:
            first, last = (f"{name}.{each}" for each in kind.outputs)
            other = made.step(at=last, select={"v": "v + 1", "g": "g"})
            made.step(merge=[first, other])

    return add


def _both(other: str) -> dict[str, str]:
    return {"v": f"coalesce(v, 0) + coalesce({other}.v, 0)", "w": f"{other}.v"}


_FLAT = (STREAM, WINDOWED)


def _same(before: str) -> str:
    return before


def _gives(what: str) -> Callable[[str], str]:
    return lambda _: what


def _to_stream(before: str) -> str:
    return WINDOWED if before == WINDOWS else STREAM


def _stateless(**what: Any) -> Callable[[Made], None]:
    return lambda made: void(made.step(**what))


def void(_: object) -> None:
    """Nothing."""


KINDS: Mapping[str, Kind] = {
    "where": Kind((*_FLAT, TABLE, WINDOWS), _same, _stateless(where="v % 3 <> 0")),
    "select": Kind((*_FLAT, TABLE, WINDOWS), _same, _stateless(select={"v": "v + 1", "g": "g"})),
    "select all": Kind((*_FLAT, TABLE, WINDOWS), _same, _stateless(select={"*": "*", "v": "v + 1"})),
    "flatMap": Kind(
        _FLAT,
        _same,
        lambda made: void(made.step(flatMap={"explode": "array(v, v + 10)", "as": f"e{len(made.steps)}"})),
    ),
    "split": Kind(_FLAT, _same, _split),
    "peek": Kind(_FLAT, _same, _stateless(peek={"metric": "seen", "value": "v"})),
    "headers": Kind(_FLAT, _same, _stateless(headers={"letter": "g"})),
    "merge": Kind(_FLAT, _same, _merge),
    "dedupe": Kind((STREAM,), _same, _stateless(dedupe={"within": "3s"})),
    "dedupe by": Kind((STREAM,), _same, _stateless(dedupe={"within": "3s", "by": "g"})),
    "keyBy text": Kind(_FLAT, _gives(STREAM), _key("concat('k', cast(v % 3 as string))", "string")),
    "keyBy number": Kind(_FLAT, _gives(STREAM), _key("v % 4", "long")),
    "keyBy struct": Kind(_FLAT, _gives(STREAM), _key("named_struct('g', g)", "json")),
    "repartition": Kind((STREAM,), _same, _stateless(repartition={})),
    "join table": Kind((STREAM, TABLE), _same, _with_table("inner")),
    "left join table": Kind((STREAM, TABLE), _same, _with_table("left")),
    "outer join table": Kind((TABLE,), _same, _with_table("outer")),
    "join of itself": Kind((TABLE, WINDOWS), _same, _table_with_itself("inner")),
    "outer join of itself": Kind((TABLE, WINDOWS), _same, _table_with_itself("outer")),
    "join global": Kind((STREAM,), _same, _with_global("inner")),
    "left join global": Kind((STREAM,), _same, _with_global("left")),
    "join stream": Kind((STREAM,), _same, _with_stream("inner")),
    "left join stream": Kind((STREAM,), _same, _with_stream("left")),
    "outer join stream": Kind((STREAM,), _same, _with_stream("outer")),
    "join with itself": Kind((STREAM,), _same, _with_itself),
    "toTable": Kind(
        (STREAM,), _gives(TABLE), lambda made: void(made.step(toTable={"store": f"s{len(made.steps)}-store"}))
    ),
    "sum": Kind((STREAM,), _gives(TABLE), _aggregate(SUMS)),
    "least": Kind((STREAM,), _gives(TABLE), _aggregate(LEAST)),
    "ends": Kind((STREAM,), _gives(TABLE), _aggregate(ENDS)),
    "reduce": Kind((STREAM,), _gives(TABLE), _aggregate(REDUCED)),
    "class": Kind((STREAM,), _gives(TABLE), _aggregate(BY_CLASS)),
    "approximate": Kind((STREAM,), _gives(TABLE), _aggregate(APPROXIMATE)),
    "tumbling": Kind((STREAM,), _gives(WINDOWS), _aggregate(SUMS, TUMBLING)),
    "tumbling closed": Kind((STREAM,), _gives(WINDOWS), _aggregate(LEAST, TUMBLING, closed=True)),
    "tumbling reduce": Kind((STREAM,), _gives(WINDOWS), _aggregate(REDUCED, TUMBLING)),
    "hopping": Kind((STREAM,), _gives(WINDOWS), _aggregate(ENDS, HOPPING)),
    "hopping closed": Kind((STREAM,), _gives(WINDOWS), _aggregate(SUMS, HOPPING, closed=True)),
    "sliding": Kind((STREAM,), _gives(WINDOWS), _aggregate(SUMS, SLIDING)),
    "sliding class": Kind((STREAM,), _gives(WINDOWS), _aggregate(BY_CLASS, SLIDING)),
    "session": Kind((STREAM,), _gives(WINDOWS), _aggregate(SUMS, SESSION)),
    "session closed": Kind((STREAM,), _gives(WINDOWS), _aggregate(ENDS, SESSION, closed=True)),
    "session reduce": Kind((STREAM,), _gives(WINDOWS), _aggregate(REDUCED_SESSIONS, SESSION)),
    "session class": Kind((STREAM,), _gives(WINDOWS), _aggregate(BY_CLASS_SESSIONS, SESSION)),
    "groupBy": Kind((TABLE,), _same, _grouped),
    "toStream": Kind((TABLE, WINDOWS), _to_stream, _stateless(toStream={})),
    "suppress": Kind((TABLE, WINDOWS), _to_stream, _stateless(toStream={"suppress": {"within": "2s"}})),
    "suppress few": Kind(
        (TABLE, WINDOWS),
        _to_stream,
        _stateless(toStream={"suppress": {"within": "9s", "buffer": {"records": 2, "full": "emitEarly"}}}),
    ),
    "look up": Kind((TABLE,), _gives(STREAM), _looked_up),
    "foreign key": Kind((TABLE,), _same, _foreign("inner")),
    "left foreign key": Kind((TABLE,), _same, _foreign("left")),
    "foreign key to": Kind((TABLE,), _same, _foreign_to),
}
PROCESSED: Mapping[str, Kind] = {
    name: Kind((STREAM,), _gives(STREAM), _processed(kind)) for name, kind in PROCESS_KINDS.items()
}
"""Processors, which histories of faults do not have."""
PAIRED: Mapping[str, Kind] = {**KINDS, **PROCESSED}
Place = tuple[str, str]
"""A kind of step, and what it stands behind."""
Pair = tuple[Place, str]
"""A kind of step, and what stands behind it."""
Chain = Sequence[str]

_IN_ORDER = ("ends", "reduce", "class", "tumbling reduce", "hopping", "sliding class")
_IN_ORDER_OF_SESSIONS = ("session closed", "session reduce", "session class")
_OF_ITSELF = ("join of itself", "outer join of itself")
_NOT_KEPT = (
    "where",
    "select",
    "select all",
    "join table",
    "left join table",
    "outer join table",
    "groupBy",
    *_OF_ITSELF,
)
REFUSED: Mapping[Pair, str] = {
    **{((("flatMap", STREAM)), name): "no order by their offsets" for name in (*_IN_ORDER, *_IN_ORDER_OF_SESSIONS)},
    **{
        ((before, STREAM), name): "no order by their offsets"
        for before in UNORDERED
        for name in (*_IN_ORDER, *_IN_ORDER_OF_SESSIONS)
    },
    **{((name, TABLE), "look up"): "whose rows no store keeps" for name in _NOT_KEPT},
    **{
        ((name, TABLE), other): "meet themselves"
        for name in _OF_ITSELF
        for other in ("groupBy", "foreign key", "left foreign key", "foreign key to")
    },
    **{
        ((closed, STREAM), name): "windows that have closed, each of which has one change only"
        for closed in ("tumbling closed", "hopping closed", "session closed")
        for name in ("suppress", "suppress few")
    },
    **{
        ((closed, STREAM), name): "has windows that have closed"
        for closed in ("tumbling closed", "hopping closed", "session closed")
        for name in _OF_ITSELF
    },
    (("foreign key to", TABLE), "foreign key to"): "'g' is STRING, and the key of 's0' is BIGINT",
}
"""Pairs that fit and can't be all the same, with the words by which they are refused."""

_LEADS: Mapping[str, tuple[str, ...]] = {
    STREAM: (),
    TABLE: (),
    WINDOWS: ("tumbling",),
    WINDOWED: ("tumbling", "toStream"),
}


def places() -> Iterator[Place]:
    """Every kind behind everything that it may stand behind."""
    return ((name, before) for name, kind in PAIRED.items() for before in kind.takes)


def led_to(before: str) -> tuple[str, ...]:
    """The kinds that lead from a source to such an input; that of a table is a source itself."""
    return _LEADS[before]


def add_chain(made: Made, begins: str, chain: Chain) -> None:
    """Add steps of these kinds behind each other, and a sink at the end. `begins`: at a stream, or at a table."""
    made.begin(begins)
    for name in chain:
        PAIRED[name].add(made)
    made.sink()


def made_of(chain: Chain, begins: str = STREAM, key: str = "string", policy: Any = "fail") -> dict[str, Any]:
    """An application of one chain."""
    made = Made(key, policy)
    add_chain(made, begins, chain)
    return made.document


def end_of(chain: Chain, begins: str) -> str:
    """What a chain gives in the end."""
    for name in chain:
        begins = PAIRED[name].gives(begins)
    return begins


def named_wrongly(chain: Chain) -> bool:
    """Whether rows name others by text that have no text for keys; some of these only Spark's analysis can refuse."""
    keyed = [name for name in chain if name.startswith(("keyBy", "groupBy")) or name == "foreign key to"]
    fit = ("keyBy text", "groupBy")
    return any(name == "foreign key to" and before not in fit for before, name in itertools.pairwise(keyed))


def pairs() -> Iterator[Pair]:
    """Every kind, behind everything that it may stand behind, with every kind that may stand behind it."""
    for name, before in places():
        gives = PAIRED[name].gives(before)
        yield from (((name, before), other) for other, kind in PAIRED.items() if gives in kind.takes)


def pairs_in(chain: Chain, begins: str) -> list[Pair]:
    """Those that a chain has."""
    found, before = [], begins
    for name, other in itertools.pairwise(chain):
        found.append(((name, before), other))
        before = PAIRED[name].gives(before)
    return found


def covering(
    source: random.Random,
    wanted: Iterable[Pair],
    most: int,
    refused: Callable[[Chain, str], bool],
    kinds: Mapping[str, Kind] = PAIRED,
) -> Iterator[tuple[str, Chain]]:
    """Chains of up to `most` steps, each with what it begins at, that have all of these pairs among them.

    They have no other kinds than `kinds`. `refused` says whether a chain is, as some are that put what is refused in
    pairs further apart. None of the pairs is refused by itself.
    """
    left = dict.fromkeys(wanted)
    while left:
        pair = source.choice(list(left))
        chain, begins = alone(pair)
        while len(chain) < most and (longer := _longer(chain, begins, left, source, kinds)) is not None:
            chain = longer
        least, _ = alone(pair)
        while len(chain) > len(least) and refused(chain, begins):
            chain = chain[:-1]
        for each in pairs_in(chain, begins):
            left.pop(each, None)
        yield begins, chain


def _longer(
    chain: Chain, begins: str, left: Mapping[Pair, None], source: random.Random, kinds: Mapping[str, Kind]
) -> Chain | None:
    """The chain with one kind more, one of these pairs if there is one; None where nothing can follow."""
    before, place = end_of(chain, begins), (chain[-1], end_of(chain[:-1], begins))
    nexts = [name for name, kind in kinds.items() if before in kind.takes and (place, name) not in REFUSED]
    wanted = [name for name in nexts if (place, name) in left]
    return (*chain, source.choice(wanted or nexts)) if nexts else None


def alone(pair: Pair) -> tuple[Chain, str]:
    """The shortest chain with a pair, and what it begins at."""
    (name, before), other = pair
    return (*led_to(before), name, other), TABLE if before == TABLE else STREAM


_BASE = 100_000
_KEYS: Mapping[str, Sequence[bytes]] = {
    "string": [b"a", b"b", b"k1", "ü".encode()],
    "long": [struct.pack(">q", number) for number in (0, 1, 3, -2)],
    "json": [json.dumps({"g": each}, separators=(",", ":")).encode() for each in "abc"],
    "bytes": [b"a", b"b\x00", b"\xff\xfe"],
}
_BAD_KEYS: Mapping[str, bytes] = {"long": b"abc", "json": b"{"}
_BAD_VALUES = (b"nope", b'{"v":', b'{"v":"text"}', b"[1]")


def records_for(document: Mapping[str, Any], source: random.Random, count: int) -> list[Given]:
    """Records of all topics that the application reads, in an order in which they may come.

    Times of a topic are out of order by up to four seconds; some are equal within a topic, and none between two.
    With a policy for them some records can't be read.
    """
    spec = document["spec"]
    bad = spec["processing"]["onDeserializationError"] != "fail"
    topics = list(spec["topology"]["sources"])
    now, found, last = _BASE, [], dict.fromkeys(range(len(topics)), _BASE)
    for _ in range(count):
        number = source.randrange(len(topics)) if source.random() < 0.6 else 0
        now += 100 * source.choice((0, 1, 3, 10, 30))
        back = 100 * source.randrange(40) if source.random() < 0.3 else 0
        time = now - back + number
        if source.random() < 0.1:
            time = last[number] + number if last[number] == _BASE else last[number]
        last[number] = time
        found.append(record_of(topics[number], time, source, bad))
    return found


def record_of(topic: Mapping[str, Any], time: int, source: random.Random, bad: bool) -> Given:
    """A record of a source's topic; `bad`: some can't be read."""
    keys = topic["key"]["format"]
    key: bytes | None = None if source.random() < 0.08 else source.choice(_KEYS[keys])
    value: bytes | None = None
    if source.random() > 0.12:
        columns = {"v": source.choice((None, *range(-9, 10))), "g": source.choice((None, *"aabc"))}
        value = json.dumps({name: each for name, each in columns.items() if source.random() < 0.9}).encode()
    if bad and source.random() < 0.15:
        if keys in _BAD_KEYS and source.random() < 0.4:
            key = _BAD_KEYS[keys]
        else:
            value = source.choice(_BAD_VALUES)
    headers = (("trace", b"1"), ("letter", None)) if source.random() < 0.2 else ()
    return Given(topic["topic"], key, value, time, headers)


def cuts_of(source: random.Random, count: int) -> list[int]:
    """Where batches begin: up to four places among so many records."""
    return sorted(source.randrange(1, count) for _ in range(source.randrange(1, 5))) if count > 1 else []
