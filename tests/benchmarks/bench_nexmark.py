"""NEXMark's queries as backlogs: what each contestant has written is compared with DuckDB before its figure counts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import duckdb
import orjson
from bench_data import Message
from bench_declared import Case
from bench_end import worked_off
from bench_experiment import Ground, Outcome, memory_figures, started
from bench_kafka import Cluster
from bench_ours import application_of
from bench_plan import Turn
from bench_sides import OursClient
from bench_verify import WrongResultError
from nexmark.events import START, TOPICS, events
from nexmark_answers import SQL, TABLES, sql_rows

SIDE_ROWS = 10_000
"""The side input of q13 has a row for each number that an auction's can leave, so that every bid meets one."""
_CHUNK = 100_000
_FOUND: Mapping[str, str] = {"q12": "select bidder, sum(bid_count)::bigint as bid_count from found group by bidder"}
"""What is compared, where that is not what was written: where windows of the clock begin is nobody's fault."""


@dataclass(frozen=True, slots=True)
class Input:
    """A topic that a query reads: its name in the files of examples/nexmark, and its columns with their types."""

    source: str
    columns: Mapping[str, str]


def inputs_of(query: str) -> tuple[Input, ...]:
    """What the query's application reads."""
    made = []
    for source in application_of(query)["spec"]["topology"]["sources"]:
        fields = (each.strip().split(" ") for each in source["value"]["schema"].split(","))
        made.append(Input(source["name"], {name: kind.replace("STRING", "VARCHAR") for name, kind in fields}))
    return tuple(made)


def written_events(folder: Path, case: Case, seed: int) -> Path:
    """A folder in `folder` with a file of JSON lines for each topic, made for the first case that has such events."""
    made = folder / f"events-{case.records}-{case.gap_ms}-{seed}"
    if not made.is_dir():
        partial = made.with_suffix(".partial")
        partial.mkdir()
        files = {topic: (partial / f"{topic}.jsonl").open("wb") for topic in TOPICS}
        for event in events(case.records, seed, timedelta(milliseconds=case.gap_ms)):
            files[event.topic].write(orjson.dumps(event.value) + b"\n")
        for file in files.values():
            file.close()
        partial.rename(made)
    return made


def event_messages(file: Path, key: str) -> Iterator[list[Message]]:
    """The records of a file of events, in chunks, with their own times."""
    chunk = []
    with file.open("rb") as lines:
        for line in lines:
            value = orjson.loads(line)
            chunk.append(Message(str(value[key]).encode(), line.rstrip(), _milliseconds(value["dateTime"])))
            if len(chunk) == _CHUNK:
                yield chunk
                chunk = []
    yield chunk


def side_messages() -> list[Message]:
    """The side input, from before the first event."""
    at = round(START.timestamp() * 1000) - 1
    return [Message(b"%d" % each, b'{"value":"side-%d"}' % each, at) for each in range(SIDE_ROWS)]


def _milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@dataclass(slots=True)
class Nexmark:
    """One query: every contestant reads the same topics, with a group and an output topic of its own each round."""

    ground: Ground
    topics: dict[str, str] = field(default_factory=dict)
    events: int = 0
    """How many of them the query reads."""

    def prepare(self) -> None:
        """Fill the topics that the query reads, and have DuckDB answer it."""
        ground, case = self.ground, self.ground.case
        inputs, files = inputs_of(case.task), written_events(ground.folder.parent, case, ground.seed)
        # A script of Flink's names all topics; those that its query does not read are never there.
        self.topics = {topic: f"{ground.prefix}-{topic}" for topic in TOPICS}
        for each in inputs:
            topic = self.topics.setdefault(each.source, f"{ground.prefix}-{each.source}")
            ground.cluster.create(topic, case.partitions)
            if each.source in TOPICS:
                chunks = event_messages(files / f"{each.source}.jsonl", TOPICS[each.source])
                self.events += ground.cluster.fill([topic], chunks)
            else:
                ground.cluster.fill([topic], [side_messages()])
        self._answer(inputs, files)

    def run(self, turn: Turn) -> Outcome:
        """From the start until everything is committed and it has closed."""
        ground = self.ground
        output = ground.output(turn)
        launch = ground.launch(turn, {**self.topics, "output": output}, until_end=True)
        inputs = [self.topics[each.source] for each in inputs_of(turn.case.task) if each.source in TOPICS]
        side = ground.sides(turn.contestant)
        with started(side, [launch]) as (clients, memory):
            work = worked_off(ground.cluster, launch, clients, inputs, self.events, turn.case.limit_s)
            last = [client.stop() for client in clients]
        self.check(f"{turn.contestant}, round {turn.round}", output, isinstance(clients[0], OursClient))
        figures = {
            "records_per_s": self.events / work.seconds,
            "records_per_s_from_start": self.events / work.from_start(last, clients),
            **memory_figures(memory, turn.case.partitions),
        }
        return Outcome(figures, {"seconds": work.seconds})

    def check(self, what: str, output: str, ours: bool) -> None:
        """Compare what is in the output topic with DuckDB's answer. Raises WrongResultError with the first rows."""
        query, found = self.ground.case.task, self.ground.folder / f"{output}.jsonl"
        with found.open("wb") as file:
            for row in rows_in(self.ground.cluster, query, output, ours):
                file.write(row + b"\n")
        with duckdb.connect(self._answers) as database:
            require_rows(what, query, database, found)
        found.unlink()

    @property
    def _answers(self) -> Path:
        """Of one query at a time: all of them together would take gigabytes."""
        return self.ground.folder.parent / "answer.duckdb"

    def _answer(self, inputs: Sequence[Input], files: Path) -> None:
        self._answers.unlink(missing_ok=True)
        with duckdb.connect(self._answers) as database:
            for each in inputs:
                if each.source in TOPICS:
                    lines = _lines(files / f"{each.source}.jsonl", each.columns)
                    database.execute(f"create view {each.source} as from {lines}")
            numbers = f"range({SIDE_ROWS}) numbers(key)"
            database.execute(f"create view side as select key, 'side-' || key as value from {numbers}")
            database.execute(f"create table answer as {SQL[self.ground.case.task]}")


def rows_in(cluster: Cluster, query: str, topic: str, ours: bool) -> Iterator[bytes]:
    """The rows that a topic holds in the end, as JSON.

    This project's files write a table as records of keys, of which the last ones count, and some rows in lists. In
    Flink's a record with a key is a row of a table, and one without is a row of a stream.
    """
    last: dict[bytes, bytes | None] = {}
    for key, value in cluster.entries(topic):
        if key is not None and (not ours or query in TABLES):
            last[key] = value
        elif value is not None:
            yield value
    for key, value in last.items():
        if value is not None and ours:
            yield from map(orjson.dumps, sql_rows(query, key_of(query, key), orjson.loads(value)))
        elif value is not None:
            yield value


def key_of(query: str, key: bytes) -> Any:
    """A key of this project's topics: numbers are eight bytes long, all else is text."""
    return int.from_bytes(key, "big") if query in {"q4", "q5", "q6"} else key.decode(errors="replace")


def require_rows(what: str, query: str, database: duckdb.DuckDBPyConnection, found: Path) -> None:
    """Raise WrongResultError unless the file's rows are those of the table `answer`, as often as there."""
    columns = {name: str(kind) for name, kind, *_ in database.execute("describe answer").fetchall()}
    database.execute(f"create or replace view found as from {_lines(found, columns)}")
    made = _FOUND.get(query, "from found")
    missing, stray = f"from answer except all {made}", f"{made} except all from answer"
    counts = [database.execute(f"select count(*) from ({each})").fetchone() for each in (missing, stray)]
    (lacks,), (more,) = counts
    if lacks or more:
        first = [database.execute(f"from ({each}) limit 1").fetchall() for each in (missing, stray)]
        raise WrongResultError(f"{what}: {lacks:,} rows are missing and {more:,} are not right: {first}")


def _lines(file: Path, columns: Mapping[str, str]) -> str:
    return f"read_json('{file}', format = 'newline_delimited', columns = {dict(columns)})"
