"""Claims about `make bench`: what its files declare, who runs when, what many rounds come to, what is right."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import orjson
import pytest
from bench_backlog import require_store
from bench_charts import draw
from bench_data import START_MS, Orders, changelog_messages, make_orders, order_messages, padding, unique_orders
from bench_declared import Case, Contestant, DeclarationError, Workload, load_contestants, load_workloads
from bench_figures import Failed, Result, Spread, figures_of, percentile, ratios_of, spread
from bench_machine import Usage
from bench_memory import PeakMemory, processes, proportional, trees
from bench_plan import turns
from bench_queries import History, require_answered, require_answers
from bench_runs import Place
from bench_side import Launch, PrintingClient, Seen
from bench_sides import SIDES, described
from bench_soak import require_bounded, thirds
from bench_tables import busy_warning, failures_told, tables
from bench_tasks import (
    WINDOW_MS,
    Columns,
    joined_totals,
    last_totals,
    last_windows,
    number_of,
    require_same,
    totals,
    user_messages,
    windows,
)
from bench_verify import WrongResultError
from rich.console import Console

CONTESTANTS = {
    "ours": Contestant(title="this project", side="streams-operator"),
    "a": Contestant(title="peer a", side="kafka-streams"),
    "b": Contestant(title="peer b", side="kafka-streams"),
}


def workload(better: str = "more") -> Workload:
    return Workload.model_validate(
        {
            "name": "w",
            "title": "work",
            "experiment": "backlog",
            "cases": [
                {"name": "base", "records": 2_000, "keys": 100},
                {"name": "large", "records": 10_000, "keys": 100},
            ],
            "contestants": ["ours", "a", "b"],
            "measures": [{"figure": "f", "title": "figure", "unit": "u", "better": better}],
            "ratios": {"w_vs_peers": {"figure": "f", "case": "base", "ours": ["ours"], "peers": ["a", "b"]}},
        }
    )


def result(contestant: str, round_: int, value: float, others: float = 0.0) -> Result:
    return Result("w", "base", contestant, round_, {"f": value}, processors=Usage(others, 0.0))


def test_every_workload_and_contestant_is_declared_rightly() -> None:
    contestants = load_contestants()
    workloads = load_workloads([], contestants)
    ratios = [name for each in workloads for name in each.ratios]
    assert len(ratios) == len(set(ratios))
    assert {"catch_up_vs_kafka_streams_default", "catch_up_vs_kafka_streams_tuned"} <= set(ratios)
    assert {"catch_up_eos_vs_kafka_streams_eos", "restore_vs_kafka_streams"} <= set(ratios)
    assert {each.side for each in contestants.values()} == set(SIDES)
    for each in workloads:
        sides = {contestants[name].side for name in each.contestants}
        assert sides | set(each.why) == set(SIDES), f"{each.name} does not say why a side is missing"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"ratios": {"r": {"figure": "g", "case": "base", "ours": ["ours"], "peers": ["a"]}}}, "g is not among"),
        ({"ratios": {"r": {"figure": "f", "case": "no", "ours": ["ours"], "peers": ["a"]}}}, "no case 'no'"),
        ({"ratios": {"r": {"figure": "f", "case": "base", "ours": ["x"], "peers": ["a"]}}}, "x is not among"),
        ({"chart": "g"}, "chart: g"),
        ({"colour": "red"}, "colour"),
        ({"cases": []}, "cases"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_workload_that_does_not_fit_is_refused_by_its_path(
    change: dict[str, object], told: str, tmp_path: Path
) -> None:
    content = {**workload().model_dump(mode="json", exclude={"name"}), **change}
    (tmp_path / "w.yaml").write_bytes(orjson.dumps(content))
    with pytest.raises(DeclarationError, match=told):
        load_workloads(["w"], CONTESTANTS, tmp_path)


def test_unknown_workloads_and_contestants_are_refused_with_those_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_bytes(orjson.dumps(workload().model_dump(mode="json", exclude={"name"})))
    with pytest.raises(DeclarationError, match="no workload v; there are w"):
        load_workloads(["v"], CONTESTANTS, tmp_path)
    with pytest.raises(DeclarationError, match="no contestant ours"):
        load_workloads(["w"], {"a": CONTESTANTS["a"], "b": CONTESTANTS["b"]}, tmp_path)


def test_contestants_alternate_and_another_one_is_first_in_each_round() -> None:
    planned = list(turns(workload(), workload().cases[0], 3))
    assert [each.contestant for each in planned] == ["ours", "a", "b", "a", "b", "ours", "b", "ours", "a"]
    assert [each.round for each in planned] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert [each.contestant for each in turns(workload(), workload().cases[0], 1, ["b"])] == ["b"]
    assert list(turns(workload(), workload().cases[0], 2, ["nobody"])) == []


def test_other_numbers_of_records_keep_the_cases_proportions() -> None:
    small = workload().resized(200, optional=False)
    assert [(case.records, case.keys) for case in small.cases] == [(200, 10), (1_000, 10)]
    assert workload().resized(None, optional=False) == workload()
    optional = Case(name="more", records=1, keys=1, optional=True)
    longer = workload().model_copy(update={"cases": (*workload().cases, optional)})
    assert len(longer.resized(None, optional=False).cases) == 2
    assert len(longer.resized(None, optional=True).cases) == 3
    assert [case.name for case in longer.resized(None, False, ["more"]).cases] == ["more"]


def test_the_median_counts_and_the_spread_is_told() -> None:
    assert spread([5.0, 1.0, 3.0]) == Spread(3.0, 1.0, 5.0, 3)
    assert spread([5.0, 1.0, 3.0]).width == pytest.approx(4 / 3)


def test_the_ratio_is_that_of_the_best_medians() -> None:
    results = [result("ours", number, value) for number, value in enumerate((30.0, 60.0, 90.0))]
    results += [result("a", 1, 20.0), result("b", 1, 10.0)]
    assert ratios_of([workload()], figures_of(results)) == {"w_vs_peers": 3.0}


def test_where_less_is_better_the_ratio_is_turned_round() -> None:
    results = [result("ours", 1, 5.0), result("a", 1, 20.0), result("b", 1, 10.0)]
    assert ratios_of([workload("less")], figures_of(results)) == {"w_vs_peers": 2.0}


def test_who_has_given_a_wrong_result_has_no_figure_and_is_named() -> None:
    results = [result("ours", 1, 30.0), result("a", 1, 20.0), result("b", 1, 10.0)]
    failures = [Failed("w", "base", "a", 2, "sums differ\nmore")]
    figures = figures_of(results, failures)
    assert ("w", "base", "a", "f") not in figures
    assert ratios_of([workload()], figures) == {"w_vs_peers": 3.0}
    assert list(failures_told(failures)) == ["does not count: a in w, base, round 2: sums differ"]
    everybody = [*failures, Failed("w", "base", "b", 1, "sums differ")]
    assert ratios_of([workload()], figures_of(results, everybody)) == {}


def test_tables_have_median_spread_and_ratio_and_leave_out_cases_that_were_not_measured() -> None:
    results = [result("ours", 1, 3_000.0), result("a", 1, 1_000.0), result("a", 2, 2_000.0)]
    (table,) = tables([workload()], CONTESTANTS, figures_of(results))
    out = io.StringIO()
    Console(width=120, file=out).print(table)
    text = out.getvalue()
    assert all(word in text for word in ("base, 2,000 records", "1,500", "1,000 to 2,000", "2.00"))


def test_a_machine_that_was_busy_with_other_things_is_told() -> None:
    assert list(busy_warning([result("a", 1, 1.0, others=0.02)])) == []
    assert "40%" in next(busy_warning([result("a", 1, 1.0, others=0.4)]))


@pytest.mark.parametrize(("share", "expected"), [(0.5, 500), (0.99, 990), (0.999, 999), (1.0, 1000), (0.0001, 1)])
def test_a_percentile_is_a_value_that_was_measured(share: float, expected: int) -> None:
    assert percentile(list(range(1000, 0, -1)), share) == expected


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="measure longer"):
        percentile([], 0.5)


def test_memory_is_that_of_the_whole_tree() -> None:
    found = {1: (0, 5), 10: (1, 100), 11: (10, 20), 12: (11, 3), 20: (1, 1_000)}
    assert trees([10, 20, 99], found) == [{10: 100, 11: 20, 12: 3}, {20: 1_000}, {}]


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc elsewhere")
def test_this_process_is_found_with_its_size() -> None:
    parent, size = processes()[os.getpid()]
    assert parent == os.getppid()
    assert size > 10_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc elsewhere")
def test_pages_that_two_processes_share_count_once() -> None:
    code = "import os, sys; block = b'x' * 2**26; os.fork() and print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as forked:
        assert forked.stdout is not None
        assert forked.stdout.readline() == b"ready\n"
        with PeakMemory([forked.pid]) as memory:
            pass
        assert forked.stdin is not None
        forked.stdin.close()
    assert memory.peaks_mib[0] > 2 * 64
    assert 64 < memory.proportional_mib[0] < memory.peaks_mib[0] - 64


def test_a_process_that_has_ended_has_the_size_that_it_had() -> None:
    assert proportional(2**22 + 1, 17) == 17


def test_totals_are_those_of_the_last_values_of_either_side() -> None:
    orders = Orders(np.array([4, 1, 4, 4]), np.array([10, 5, -2, 1]))
    expected = totals(orders, 5)
    assert expected.sums.tolist() == [0, 5, 0, 0, 11]
    for values in ((b'{"total": 5, "n": 1}', b'{"total":11,"n":2}'), (b"5,1", b"11,2")):
        found = last_totals(iter([(b"u4", b"10,1"), (b"u1", values[0]), (b"u4", values[1])]), 5)
        require_same("sink", expected, found)
    with pytest.raises(WrongResultError, match=r"1 of 5 keys differ. u4: expected \(11, 2\), found \(10, 1\)"):
        require_same("sink", expected, last_totals(iter([(b"u4", b"10,1"), (b"u1", b"5,1")]), 5))


@pytest.mark.parametrize("key", [b"u5", b"x", b"u", b"", b"u-1"])
def test_a_key_that_the_data_do_not_have_is_a_wrong_result(key: bytes) -> None:
    with pytest.raises(WrongResultError, match="not one of the data"):
        number_of(key, 5)


def test_windows_are_those_of_the_records_times_and_are_read_from_keys_and_values_alike() -> None:
    orders = make_orders(3_000, 7, seed=3, refused_share=0.1)
    wide = Orders(np.tile(orders.users, 500)[:1_200_000], np.tile(orders.amounts, 500)[:1_200_000])
    expected = windows(wide)
    counted: dict[tuple[int, int], int] = {}
    for number, (user, amount) in enumerate(zip(wide.users.tolist(), wide.amounts.tolist(), strict=True)):
        if amount >= 0:
            key = (user, (START_MS + number) // WINDOW_MS * WINDOW_MS)
            counted[key] = counted.get(key, 0) + 1
    assert expected == counted
    assert len({start for _, start in expected}) == 3
    in_keys = [(b"u%d" % u + s.to_bytes(8, "big"), b'{"n":%d}' % n) for (u, s), n in expected.items()]
    in_values = [(b"u%d" % u, b'{"start":%d,"n":%d}' % (s, n)) for (u, s), n in expected.items()]
    assert last_windows(iter(in_keys), 7) == last_windows(iter(in_values), 7) == expected


def test_joined_orders_need_their_users_tier() -> None:
    tiers = {message.key: orjson.loads(message.value)["tier"] for chunk in user_messages(9, 4) for message in chunk}
    assert tiers == {b"u0": 0, b"u2": 2, b"u4": 4, b"u6": 6, b"u8": 1}
    found = joined_totals(iter([(b"u8", b'{"amount":3,"tier":1}'), (b"u8", b'{"amount":4,"tier":1}')]), 9)
    assert (found.sums[8], found.counts[8]) == (7, 2)
    with pytest.raises(WrongResultError, match="expected tier 1, found 2"):
        joined_totals(iter([(b"u8", b'{"amount":3,"tier":2}')]), 9)


@pytest.mark.parametrize("pad", [0, 1_000])
def test_a_padded_changelog_has_longer_values_and_the_same_totals(pad: int) -> None:
    orders = make_orders(500, 20, seed=7, refused_share=0.0)
    plain = [message.value for chunk in changelog_messages(orders) for message in chunk]
    padded = [message.value for chunk in changelog_messages(orders, pad=pad) for message in chunk]
    assert {len(each) - len(other) for each, other in zip(padded, plain, strict=True)} == {pad}
    assert [orjson.loads(value)["total"] for value in padded] == [orjson.loads(value)["total"] for value in plain]
    assert pad == 0 or padding(pad)(1) != padding(pad)(2)


def test_unique_orders_are_one_of_each_user() -> None:
    orders = unique_orders(2_500)
    assert totals(orders, 2_500).counts.tolist() == [1] * 2_500


def answer(body: str, prefix: str = "", status: int = 200) -> dict[str, object]:
    return {"prefix": prefix, "ms": 1.0, "status": status, "body": body}


def test_an_answer_is_right_when_the_key_has_had_that_total_since_the_backlog() -> None:
    history = History(Orders(np.array([1, 1, 2, 1, 3]), np.array([5, 6, 7, 8, 9])), backlog=3)
    right = ['{"key":"u1","value":{"total":11,"n":2}}', '{"key":"u1","value":{"total":19,"n":3}}']
    right += ['{"key":"u3","value":null}', '{"key":"u9","value":null}']
    require_answers("x", history, map(answer, right))
    whole = right[0] + '\n{"key":"u10","value":null}\n{"complete":{"records":2}}'
    require_answers("x", history, [answer(whole, "u1")])
    for body in ('{"key":"u1","value":{"total":5,"n":1}}', '{"key":"u1","value":{"total":12,"n":2}}'):
        with pytest.raises(WrongResultError, match="u1 differ"):
            require_answers("x", history, [answer(body)])
    with pytest.raises(WrongResultError, match="u2 differ"):
        require_answers("x", history, [answer('{"key":"u2","value":null}')])
    with pytest.raises(WrongResultError, match="not whole"):
        require_answers("x", history, [answer('{"complete":{"records":0}}', "u1")])


def test_all_that_is_asked_has_to_be_answered() -> None:
    case = Case(name="base", records=1, keys=1, queries=1, scans=0, seconds=2)
    require_answered("x", case, [answer("{}"), answer("{}")])
    with pytest.raises(WrongResultError, match="1 of 2 queries had no answer: TimeoutError"):
        require_answered("x", case, [answer("{}"), answer("TimeoutError", status=0)])
    with pytest.raises(WrongResultError, match="answer 503"):
        require_answered("x", case, [answer("later", status=503), answer("{}")])
    with pytest.raises(WrongResultError, match="1 answers have come, not all"):
        require_answered("x", case, [answer("{}")])


def test_memory_is_bounded_when_it_has_not_grown_since_it_settled() -> None:
    settled = thirds([100.0, 900.0, 1000.0, 1001.0, 1002.0, 1040.0, 1045.0, 1050.0, 1060.0])
    assert settled == {"middle_mib": 1002.0, "last_mib": 1050.0, "growth_percent": pytest.approx(4.79, abs=0.01)}
    require_bounded("x", settled)
    with pytest.raises(WrongResultError, match=r"grown by 6\.0 %, from 1,000 MiB in the middle third to 1,060 MiB"):
        require_bounded("x", thirds([0.0, 1000.0, 1060.0]))


def test_a_part_of_the_orders_is_written_as_in_the_whole() -> None:
    orders = make_orders(1_000, 10, 1, 0.01)
    whole = [message for chunk in order_messages(orders, chunk=300) for message in chunk]
    rest = Orders(orders.users[400:], orders.amounts[400:])
    assert [message for chunk in order_messages(rest, chunk=300, first=400) for message in chunk] == whole[400:]


def test_what_an_instance_says_of_itself_is_read_alike_on_every_side() -> None:
    seen = described(
        {
            "transitions": [
                {"state": "CREATED", "at": 1.0},
                {"state": "RUNNING", "at": 2.0},
                {"state": "RUNNING", "at": 9.0},
            ],
            "restoration": [
                {"started_at": 1.2, "ended_at": 1.5, "restored": 10},
                {"started_at": 1.1, "ended_at": 1.4, "restored": 5},
            ],
            "counters": {"records_processed": 7},
            "lag": [],
        }
    )
    assert dict(seen.moments) == {"created": 1.0, "running": 2.0, "restore_start": 1.1, "restore_end": 1.5}
    assert (seen.processed, seen.restored, seen.behind) == (7, 15, False)


class Answering(BaseHTTPRequestHandler):
    """A store over HTTP, whose answers come from the server in turn; the last one is repeated."""

    def do_GET(self) -> None:
        answers = self.server.answers  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answers.pop(0) if len(answers) > 1 else answers[0])

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def answering(*answers: bytes) -> Iterator[Any]:
    """A client whose store answers so."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        server.answers = list(answers)  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield SimpleNamespace(url=lambda: f"http://127.0.0.1:{server.server_port}", seen=Seen)
        finally:
            server.shutdown()
            thread.join()


def entries(*totals: tuple[int, int, int]) -> bytes:
    lines = b"".join(b'{"key":"u%d","value":{"total":%d,"n":%d}}\n' % each for each in totals)
    return lines + b'{"complete":{"records":%d}}\n' % len(totals)


def test_a_store_whose_answer_was_cut_off_is_asked_again() -> None:
    expected = Columns(np.array([4, 9]), np.array([1, 2]))
    whole = entries((0, 4, 1))
    with answering(b"", whole[:30], whole) as one, answering(entries((1, 9, 2))) as other:
        require_store("a", [one, other], expected)


def test_an_instance_that_has_no_store_is_not_waited_for_when_the_others_have_every_key() -> None:
    expected = Columns(np.array([4, 9]), np.array([1, 2]))
    with answering(b"") as idle, answering(entries((0, 4, 1), (1, 9, 2))) as one:
        require_store("a", [idle, one], expected)
    with (
        answering(b"") as idle,
        answering(entries((0, 5, 1), (1, 9, 2))) as one,
        pytest.raises(WrongResultError, match="1 of 2 keys differ"),
    ):
        require_store("a", [idle, one], expected)


def test_a_key_that_two_stores_have_is_told() -> None:
    expected = Columns(np.array([4, 9]), np.array([1, 2]))
    with (
        answering(entries((0, 4, 1), (1, 9, 2))) as one,
        answering(entries((1, 9, 2))) as other,
        pytest.raises(WrongResultError, match="u1 is in two stores"),
    ):
        require_store("a", [one, other], expected)


@pytest.mark.parametrize(("lags", "behind"), [([0, 0], False), ([0, 3], True), ([0, None], True)])
def test_stores_are_asked_only_when_nothing_is_left_in_any_partition(lags: list[int | None], behind: bool) -> None:
    lag = [{"lag": each} for each in lags]
    empty: dict[str, object] = {"transitions": [], "restoration": [], "counters": {"records_processed": 0}}
    assert described({**empty, "lag": lag}).behind is behind


def test_the_last_whole_line_of_a_peer_counts(tmp_path: Path) -> None:
    class Silent:
        output = tmp_path / "log"

        def require_alive(self) -> None:
            pass

    client = PrintingClient(Silent())  # type: ignore[arg-type]
    Silent.output.write_bytes(b"")
    assert client.seen().processed == 0
    line = b'{"processed":%d,"restored":0,"moments":{"running":2500}}'
    Silent.output.write_bytes(line % 1 + b"\n" + line % 2 + b"\nwarning\n" + (line % 3)[:-4])
    assert client.seen().processed == 2
    assert client.seen().moments == {"running": 2.5}


@pytest.mark.parametrize("over", [None, "instances", "records"])
def test_a_chart_has_its_contestants_and_the_same_bytes_for_the_same_figures(over: str | None, tmp_path: Path) -> None:
    drawn = workload().model_copy(update={"chart": "f", "over": over})
    figures = figures_of([result("ours", 1, 3_000.0), result("a", 1, 1_000.0)])
    (first,) = draw(tmp_path / "first", [drawn], CONTESTANTS, figures)
    (second,) = draw(tmp_path / "second", [drawn], CONTESTANTS, figures)
    assert first.read_bytes() == second.read_bytes()
    assert all(f">{word}<" in first.read_text() for word in ("this project", "peer a"))
    assert draw(tmp_path, [workload()], CONTESTANTS, figures) == []


def test_a_start_empties_the_state_folder_unless_it_is_to_be_kept_and_nothing_else_does(tmp_path: Path) -> None:
    launch = Launch(CONTESTANTS["ours"], "totals", "app", {}, Place(tmp_path, "broker"))
    launch.made().state.mkdir()
    kept = replace(launch, keep_state=True)
    assert (launch.own, kept.made()) == (kept.own, launch.own)
    assert launch.own.state.is_dir()
    assert not launch.made().state.exists()
