"""Claims about NEXMark as a workload: who runs which query on what, and that only equal results count."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from string import Template
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import duckdb
import pytest
from bench_charts import COLOURS
from bench_data import Message
from bench_declared import Case, DeclarationError, Workload, load_contestants, load_workloads
from bench_end import committed
from bench_experiment import Ground
from bench_figures import Failed, Result, figures_of, ratios_of
from bench_flink import NEXMARK, connectors, script_of
from bench_nexmark import Nexmark, event_messages, inputs_of, key_of, require_rows, written_events
from bench_ours import NEXMARK as EXAMPLES
from bench_runs import Place
from bench_side import Launch
from bench_sides import SIDES
from bench_tables import left_out, tables
from bench_verify import WrongResultError
from full import _chosen
from nexmark.events import TOPICS, events
from nexmark_answers import SQL, TABLES
from rich.console import Console

CONTESTANTS = load_contestants()
(WORKLOAD,) = load_workloads(["nexmark"], CONTESTANTS)
CASES = {case.task: case for case in WORKLOAD.cases}
TOPICS_OF = {"people": "p", "auctions": "a", "bids": "b", "side": "s", "output": "out"}


class Broker:
    """A cluster in memory."""

    def __init__(self) -> None:
        self.held: dict[str, list[tuple[bytes | None, bytes | None]]] = {}

    def create(self, topic: str, partitions: int) -> None:
        self.held[topic] = []

    def fill(self, topics: Sequence[str], chunks: Iterable[list[Message]]) -> int:
        messages = [message for chunk in chunks for message in chunk]
        for topic in topics:
            self.held[topic] += [(each.key, each.value) for each in messages]
        return len(messages)

    def entries(self, topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
        return iter(self.held[topic])


def prepared(query: str, folder: Path, events: int = 2_000) -> tuple[Nexmark, Broker]:
    """The experiment of a query, as it is before the first turn."""
    broker = Broker()
    case = CASES[query].model_copy(update={"records": events})
    (folder / query).mkdir()
    ground = Ground(broker, case, "bench", folder / query, 1, CONTESTANTS, lambda _: None)  # type: ignore[arg-type, return-value]
    made = Nexmark(ground)
    made.prepare()
    return made, broker


def answer(folder: Path) -> list[bytes]:
    """DuckDB's rows, as JSON."""
    with duckdb.connect(folder / "answer.duckdb") as database:
        rows = database.execute("select to_json(answer) from answer").fetchall()
    return [row.encode() for (row,) in rows]


def test_every_query_is_a_case_of_its_name_and_each_side_runs_it_or_says_why_not() -> None:
    assert list(CASES) == [case.name for case in WORKLOAD.cases] == sorted(SQL, key=lambda name: int(name[1:]))
    for query, case in CASES.items():
        assert (EXAMPLES / f"{query}.yaml").is_file()
        assert (script_of(query) is None) == ("flink-sql" in case.why), query
        sides = {CONTESTANTS[name].side for name in WORKLOAD.taking_part(case)}
        assert sides | set(case.why) | set(WORKLOAD.why) == set(SIDES)
        assert not sides & set(case.why)
    assert {file.stem for file in NEXMARK.glob("q*.sql")} == {name for name, case in CASES.items() if not case.why}


def test_at_least_once_and_exactly_once_are_compared_with_themselves() -> None:
    assert len(WORKLOAD.ratios) == 2 * len(CASES)
    for name, ratio in WORKLOAD.ratios.items():
        who = [CONTESTANTS[each] for each in (*ratio.ours, *ratio.peers)]
        assert {each.exactly_once for each in who} == {f"nexmark_{ratio.case}_eos" in name}
        assert {each.side for each in who} == {"streams-operator", "flink-sql"}


@pytest.mark.parametrize("query", [query for query, case in CASES.items() if not case.why])
def test_a_script_ends_with_its_job_and_writes_the_columns_of_the_answer(query: str, tmp_path: Path) -> None:
    launch = Launch(CONTESTANTS["flink-sql"], query, "app", TOPICS_OF, Place(tmp_path, "broker:1"), until_end=True)
    script = Template(script_of(query) or "").substitute(TOPICS_OF, **connectors(launch))
    *made, job = re.split(r";\s*(?:\n|$)", script.strip().removesuffix(";"))
    assert job.lstrip().startswith(f"INSERT INTO {query}")
    sink = next(each for each in made if f"CREATE TABLE {query} (" in each)
    assert "'topic' = 'out'" in sink
    assert ("'connector' = 'upsert-kafka'" in sink) is ("PRIMARY KEY" in sink)
    prepared(query, tmp_path, 200)
    with duckdb.connect(tmp_path / "answer.duckdb") as database:
        columns = [each for each, *_ in database.execute("describe answer").fetchall()]
    listed = re.search(rf"CREATE TABLE {query} \((.*?)\)\s*WITH", sink, re.DOTALL)
    assert listed is not None
    found = re.findall(r"`?(\w+)`? (?:BIGINT|STRING|DOUBLE|DECIMAL\(\d+, \d\)|TIMESTAMP_LTZ\(3\))", listed[1])
    assert sorted(found) == sorted(columns)


def test_a_query_reads_what_its_file_reads_and_counts_these_events(tmp_path: Path) -> None:
    made, broker = prepared("q13", tmp_path, 500)
    assert [each.source for each in inputs_of("q13")] == ["bids", "side"]
    assert made.events == 460 == len(broker.held["bench-bids"])
    assert len(broker.held["bench-side"]) == 10_000
    assert set(broker.held) == {"bench-bids", "bench-side"}
    assert prepared("q3", tmp_path, 500)[0].events == 40


def test_cases_of_the_same_events_share_their_files(tmp_path: Path) -> None:
    first = written_events(tmp_path, CASES["q0"].model_copy(update={"records": 100}), 1)
    (first / "bids.jsonl").write_bytes(b"")
    assert written_events(tmp_path, CASES["q5"].model_copy(update={"records": 100}), 1) == first
    assert (first / "bids.jsonl").read_bytes() == b""
    for other in (("q0", 101, 1), ("q0", 100, 2), ("q15", 100, 1)):
        query, records, seed = other
        folder = written_events(tmp_path, CASES[query].model_copy(update={"records": records}), seed)
        assert (folder / "bids.jsonl").read_bytes()


def test_records_have_the_keys_and_times_of_their_events(tmp_path: Path) -> None:
    folder = written_events(tmp_path, Case(name="q", records=200, keys=1, gap_ms=1_500), 3)
    given = list(events(200, 3, gap=timedelta(seconds=1.5)))
    for topic, key in TOPICS.items():
        messages = [each for chunk in event_messages(folder / f"{topic}.jsonl", key) for each in chunk]
        wanted = [each for each in given if each.topic == topic]
        assert [json.loads(each.value) for each in messages] == [each.value for each in wanted]
        assert [each.key.decode() for each in messages] == [each.key for each in wanted]
        assert [each.timestamp for each in messages] == [round(each.time.timestamp() * 1000) for each in wanted]


@pytest.mark.parametrize("query", ["q1", "q9", "q17", "q22"])
def test_equal_rows_count_and_any_other_are_wrong_by_name(query: str, tmp_path: Path) -> None:
    made, broker = prepared(query, tmp_path)
    rows = answer(tmp_path)
    broker.held["out"] = [(None, row) for row in reversed(rows)]
    made.check("flink-sql, round 1", "out", ours=False)
    first = json.loads(rows[0])
    first["price" if "price" in first else "sum_price" if "sum_price" in first else "dir1"] = 1
    for wrong in (rows[1:], [*rows, rows[0]], [json.dumps(first).encode(), *rows[1:]]):
        broker.held["out"] = [(None, row) for row in wrong]
        with pytest.raises(WrongResultError, match=r"^flink-sql, round 1: \d+ rows are missing and \d+ are not right"):
            made.check("flink-sql, round 1", "out", ours=False)


def test_of_a_table_the_last_row_of_each_key_counts_and_a_deleted_one_does_not(tmp_path: Path) -> None:
    made, broker = prepared("q17", tmp_path)
    rows = answer(tmp_path)
    keyed = [(str(number).encode(), row) for number, row in enumerate(rows)]
    broker.held["out"] = [(b"0", rows[1]), (b"gone", rows[2]), *keyed, (b"gone", None)]
    for ours in (True, False):
        made.check("x", "out", ours)
    broker.held["out"] = [*keyed, (b"0", None)]
    for ours in (True, False):
        with pytest.raises(WrongResultError, match="1 rows are missing and 0 are not right"):
            made.check("x", "out", ours)


def test_of_this_projects_streams_every_row_counts_although_they_have_keys(tmp_path: Path) -> None:
    made, broker = prepared("q0", tmp_path)
    assert "q0" not in TABLES
    rows = answer(tmp_path)
    broker.held["out"] = [(b"1007", row) for row in rows]
    made.check("x", "out", ours=True)


def test_windows_of_the_clock_are_compared_by_what_they_sum_up_to(tmp_path: Path) -> None:
    made, broker = prepared("q12", tmp_path)
    bidders = [json.loads(row) for row in answer(tmp_path)]
    windows = [each | {"bid_count": 1} for each in bidders]
    windows += [each | {"bid_count": each["bid_count"] - 1} for each in bidders]
    broker.held["out"] = [(b"%d" % number, json.dumps(each).encode()) for number, each in enumerate(windows)]
    made.check("x", "out", ours=True)
    del broker.held["out"][0]
    with pytest.raises(WrongResultError):
        made.check("x", "out", ours=True)


def test_keys_of_this_project_are_numbers_where_its_query_groups_by_one() -> None:
    assert key_of("q4", (11).to_bytes(8, "big")) == 11
    assert key_of("q19", b"1007") == "1007"


def test_a_file_of_rows_is_compared_with_the_types_of_the_answer(tmp_path: Path) -> None:
    with duckdb.connect() as database:
        database.execute("create table answer as select 0.908 * 7 as price, timestamp '2026-04-01 00:00:00' as at")
        for time in ("2026-04-01T00:00:00Z", "2026-04-01T00:00:00.000Z", "2026-04-01T00:00:00"):
            (tmp_path / "rows").write_text(f'{{"at": "{time}", "price": 6.356}}\n')
            require_rows("x", "q1", database, tmp_path / "rows")
        (tmp_path / "rows").write_text('{"at": "2026-04-01T00:00:00Z", "price": 6.357}\n')
        with pytest.raises(WrongResultError):
            require_rows("x", "q1", database, tmp_path / "rows")


def test_an_application_is_through_when_what_it_writes_to_itself_does_not_grow_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = iter([{0: 5}, {0: 7}, {0: 7}, {0: 7}])
    waited: list[str] = []

    class Watch:
        def __init__(self, cluster: object, group: str, topic: str) -> None:
            self.topic = topic

        def wait(self, alive: object, limit_s: float) -> float:
            waited.append(self.topic)
            return float(len(waited))

    monkeypatch.setattr("bench_end.CommitWatch", Watch)
    names = ["app-by-user-repartition", "app-totals-changelog", "app2-x-repartition", "bids"]
    cluster: Any = SimpleNamespace(topics=lambda: names, end_offsets=lambda _: next(ends))
    assert committed(cluster, "app", ["bids"], lambda: None, 1.0) == 3.0
    assert waited == ["bids", "app-by-user-repartition", "app-by-user-repartition"]


def test_queries_are_chosen_by_name_and_unknown_ones_are_refused() -> None:
    (few,) = _chosen([WORKLOAD], 100, False, ["q5", "q0"])
    assert [(case.name, case.records) for case in few.cases] == [("q0", 100), ("q5", 100)]
    with pytest.raises(DeclarationError, match="no case q23 in the chosen workloads; there are q0, "):
        _chosen([WORKLOAD], None, False, ["q0", "q23"])


def test_a_line_of_the_table_has_figures_ratios_and_who_was_wrong() -> None:
    (few,) = _chosen([WORKLOAD], None, False, ["q1", "q12", "q4"])
    results = [
        Result("nexmark", "q1", name, 1, {"records_per_s": rate})
        for name, rate in (("streams-operator", 3_000.0), ("flink-sql", 1_000.0), ("flink-sql-tuned", 2_000.0))
    ]
    failures = [
        Failed("nexmark", "q4", "flink-sql", 1, "rows", wrong=True),
        Failed("nexmark", "q4", "streams-operator", 1, ""),
    ]
    figures = figures_of(results, failures)
    out = io.StringIO()
    (table,) = tables([few], CONTESTANTS, figures, failures)
    Console(width=150, file=out).print(table)
    lines = {line.split()[1][:-1]: line.split("│")[2:-1] for line in out.getvalue().splitlines() if "records" in line}
    assert [cell.strip() for cell in lines["q1"][:4]] == ["3,000", "1,000", "2,000", "1.50"]
    assert [cell.strip() for cell in lines["q4"][:4]] == ["failed", "wrong", "-", "-"]
    assert ratios_of([few], figures) == {"nexmark_q1_vs_flink_sql": 1.5}
    assert list(left_out([few])) == [f"takes no part: flink-sql in nexmark, q12: {CASES['q12'].why['flink-sql']}"]


def test_a_ratio_of_each_case_needs_no_case_and_another_one_does() -> None:
    content = WORKLOAD.model_dump(mode="json") | {"ratios": {"r": {"figure": "records_per_s", "ours": [], "peers": []}}}
    with pytest.raises(ValueError, match=r"ratios\.r\.case"):
        Workload.model_validate(content)


def test_every_side_has_a_colour() -> None:
    assert set(COLOURS) == set(SIDES)
