"""What an analysis has found out, kept in the state folder: read back as it was, and never trusted otherwise."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_kit import memory_folder
from totals_application import totals

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.pipeline.formats.json_read import JsonReader
from streams_runtime.pipeline.pushdown.after_join import AfterJoin
from streams_runtime.pipeline.pushdown.arrow_plans import Aggregate, Plan, RowPlan
from streams_runtime.pipeline.pushdown.partial_columns import Stage
from streams_runtime.pipeline.pushdown.scan_stages import answered_here
from streams_runtime.pipeline.pushdown.scanned_records import Formats
from streams_runtime.pipeline.pushdown.taken_over import ToAggregate
from streams_runtime.pipeline.without_spark import findings_file
from streams_runtime.pipeline.without_spark.early_runner import EarlyRunner, SparkNeeded, is_done_early
from streams_runtime.pipeline.without_spark.findings import Findings
from streams_runtime.pipeline.without_spark.findings_document import document_of, findings_of
from streams_runtime.pipeline.without_spark.findings_file import FindingsFile, identity_of, is_keepable
from streams_runtime.pipeline.without_spark.value_codec import decoded, encoded
from streams_runtime.processing.batch_processor import BatchProcessor
from streams_runtime.processing.batch_work import Counters
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.testing.mock_producer import MockProducer
from streams_runtime.testing.topology_runner import running_tasks, store
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.source_and_sink_nodes import SourceNode
from streams_runtime.topology.partition_counts import partition_counts
from streams_runtime.topology.plan import TaskId, Topology


def application(name: str = "app", topology: str | None = None, **spec: Any) -> StreamsApplication:
    import yaml

    declared = yaml.safe_load(totals(name) if topology is None else topology)
    return parse_application(
        {
            "apiVersion": "streamsoperator.io/v1alpha1",
            "kind": "StreamsApplication",
            "metadata": {"name": name},
            "spec": {"topology": declared, **spec},
        }
    )


APPLICATION = application()
TOPOLOGY = build_topology(APPLICATION)
READER = JsonReader(pa.schema([("amount", pa.int64())]))
PLAN = Plan(
    RowPlan(
        (pc.field("amount") > 3) & pc.field("_key").is_valid(),
        {name: pc.field(name) for name in ("_partition", "_key", "_timestamp")} | {"total": pc.field("amount")},
        frozenset({"_partition", "_key", "_timestamp", "amount"}),
    ),
    (Aggregate("total", "sum", pc.field("amount"), pa.int64()),),
)


def findings(topology: Topology = TOPOLOGY) -> Findings:
    """Those of the sum for each user, as Spark's analysis would give them."""
    node, source = topology.node("totals"), topology.node("orders")
    assert isinstance(node, AggregateNode)
    assert isinstance(source, SourceNode)
    given = pa.schema([("_partition", pa.int32()), ("_key", pa.string()), ("total", pa.int64()), ("_time", pa.int64())])
    state = AggregateState(node.aggregates)
    state.bind(given)
    over = ToAggregate(source, node, Stage(PLAN, Formats("string", READER)), given, ["total"])
    return Findings({"totals": "string"}, {}, {"totals": state}, {"sink-app-totals": "json"}, {0: [over]}, {0: {}})


def same(one: Findings, other: Findings | None) -> bool:
    """Whether they have the same document, which has all of them."""
    return other is not None and orjson.dumps(document_of(one)) == orjson.dumps(document_of(other))


def records(*amounts: int | None) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [None] * len(amounts) for name in RAW_SCHEMA.names}
    columns |= {
        "key": [b"k%d" % (number % 2) for number in range(len(amounts))],
        "value": [None if each is None else orjson.dumps({"amount": each}) for each in amounts],
        "topic": ["app-orders"] * len(amounts),
        "partition": [0] * len(amounts),
        "offset": list(range(len(amounts))),
        "timestamp": [1000] * len(amounts),
    }
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in RAW_SCHEMA})


def test_what_is_read_back_computes_the_same() -> None:
    made = findings()
    read = findings_of(orjson.loads(orjson.dumps(document_of(made))), TOPOLOGY)
    assert same(made, read)
    (over,), (kept,) = made.first_stages[0], read.first_stages[0]
    assert (kept.source, kept.node) == (over.source, over.node)
    batch = records(5, 1, 7, None, 9)
    assert answered_here(kept.stage, batch).made.equals(answered_here(over.stage, batch).made)
    assert read.aggregate("totals").finish_value(b'{"total":12}') == {"total": 12}
    assert read.key_serde("totals").encode("ada") == b"ada"


EXPRESSIONS = st.recursive(
    st.one_of(
        st.sampled_from([pc.field("a"), pc.field("s"), pc.field("x", "y")]),
        st.one_of(st.integers(-(2**63), 2**63 - 1), st.booleans(), st.text(), st.floats(allow_nan=False)).map(
            pc.scalar
        ),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda both: both[0] == both[1]),
        st.tuples(inner, inner).map(lambda both: both[0] & ~both[1]),
        inner.map(lambda each: each.is_null()),
        inner.map(lambda each: each.cast(pa.timestamp("us", tz="UTC"))),
        inner.map(lambda each: each.isin([1, 2, 3])),
        st.lists(inner, min_size=1, max_size=3).map(lambda all_: pc.coalesce(*all_)),
    ),
    max_leaves=8,
)
TYPES = st.recursive(
    st.sampled_from([pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.timestamp("us", tz="UTC")]),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        st.lists(inner, min_size=1, max_size=3).map(lambda all_: pa.struct([(f"f{n}", k) for n, k in enumerate(all_)])),
    ),
    max_leaves=4,
)


@given(st.dictionaries(st.text(), EXPRESSIONS, max_size=3), EXPRESSIONS, st.lists(TYPES, min_size=1, max_size=3))
def test_any_plan_and_schema_comes_back_as_it_was(
    columns: dict[str, pc.Expression], kept: pc.Expression, types: list[pa.DataType]
) -> None:
    schema = pa.schema([(f"c{number}", kind) for number, kind in enumerate(types)])
    plan = RowPlan(kept, columns, frozenset(columns))
    joined = AfterJoin("t", JsonReader(schema), [(TOPOLOGY.nodes[-1], plan)])  # type: ignore[list-item]
    back = decoded(orjson.loads(orjson.dumps(encoded(joined))), TOPOLOGY)
    assert isinstance(back, AfterJoin)
    ((sink, again),) = back.sinks
    assert (back.table, back.json, sink) == ("t", joined.json, TOPOLOGY.nodes[-1])
    assert again.kept.equals(kept)
    assert list(again.columns) == list(columns), "the order of columns is that of the record"
    assert all(again.columns[name].equals(each) for name, each in columns.items())
    assert again.reads == plan.reads


def test_a_file_is_used_by_the_same_topology_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    made = findings()
    FindingsFile(tmp_path, APPLICATION, TOPOLOGY).write(made)
    assert same(made, FindingsFile(tmp_path, APPLICATION, TOPOLOGY).read())
    assert not caplog.records
    changed = application(topology=totals("app").replace("sum(amount)", "sum(amount + 1)"))
    configured = application(spark={"config": {"spark.sql.ansi.enabled": "false"}})
    for other in (changed, configured):
        assert FindingsFile(tmp_path, other, build_topology(other)).read() is None
        assert "of another topology, version or setting" in caplog.records[-1].message
        assert caplog.records[-1].levelno == logging.DEBUG
    assert [each.name for each in tmp_path.iterdir()] == ["analysis.json"], "nothing is left beside it"


@pytest.mark.parametrize("what", ["version", "_sources"])
def test_another_build_does_not_use_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    FindingsFile(tmp_path, APPLICATION, TOPOLOGY).write(findings())
    monkeypatch.setattr(findings_file, what, lambda *_: "another")
    assert FindingsFile(tmp_path, APPLICATION, TOPOLOGY).read() is None


def test_what_it_rests_on_is_the_same_in_every_process() -> None:
    assert identity_of(APPLICATION, TOPOLOGY) == identity_of(application(), build_topology(application()))


@given(st.data())
def test_a_damaged_file_is_whole_or_none(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("kept")
    made, kept = findings(), FindingsFile(folder, APPLICATION, TOPOLOGY)
    kept.write(made)
    path = folder / "analysis.json"
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    else:
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    path.write_bytes(content)
    read = kept.read()
    assert read is None or same(made, read)


def rewritten(folder: Path, change: Any) -> None:
    """The file with another document in it, whose checksum fits."""
    path = folder / "analysis.json"
    kept = orjson.loads(path.read_bytes())
    text = orjson.dumps(change(orjson.loads(kept["findings"]))).decode()
    path.write_bytes(orjson.dumps(kept | {"findings": text, "checksum": findings_file._checksum(text)}))


@pytest.mark.parametrize(
    "change",
    [
        lambda _: [],
        lambda _: None,
        lambda document: document | {"aggregates": {"orders": {"ofDoubles": [], "given": ""}}},
        lambda document: document | {"firstStages": {"0": [{"class": "Popen", "args": ["touch", "/tmp/x"]}]}},
        lambda document: document | {"firstStages": {"0": [{"class": "node", "name": "gone"}]}},
        lambda document: document | {"firstStages": {"0": [{"class": "expression", "bytes": "AAAA"}]}},
        lambda document: document | {"firstStages": {"x": []}},
        lambda document: {name: each for name, each in document.items() if name != "keys"},
    ],
)
def test_a_foreign_document_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture, change: Any) -> None:
    caplog.set_level(logging.DEBUG)
    kept = FindingsFile(tmp_path, APPLICATION, TOPOLOGY)
    kept.write(findings())
    rewritten(tmp_path, change)
    assert kept.read() is None
    assert "can't be read, and is not used" in caplog.text


def test_what_is_no_file_of_ours_is_not_used_and_nothing_is_told_of_no_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    kept = FindingsFile(tmp_path, APPLICATION, TOPOLOGY)
    assert (kept.read(), caplog.text) == (None, "")
    for content in (b"", b"[1]", b"{}", b"\xff" * 100, b"[" * 100_000):
        (tmp_path / "analysis.json").write_bytes(content)
        assert kept.read() is None
    (tmp_path / "analysis.json").unlink()
    (tmp_path / "analysis.json").mkdir()
    assert kept.read() is None


def test_a_file_that_can_not_be_written_leaves_the_old_one_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made, kept = findings(), FindingsFile(tmp_path, APPLICATION, TOPOLOGY)
    kept.write(made)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(findings_file.os, "fsync", full)
        kept.write(Findings({}, {}, {}, {}, {}, {}))
    assert "No space left on device" in caplog.text
    assert same(made, kept.read())
    FindingsFile(tmp_path / "gone", APPLICATION, TOPOLOGY).write(made)
    assert "gone" in caplog.text


PYTHON = "python('shop.stats:Summary', amount)"
NOT_KEPT: dict[str, Any] = {
    "an aggregate in Python": {"topology": totals("app").replace("sum(amount)", f'"{PYTHON}"')},
    "jars of the user's": {"spark": {"config": {"spark.jars": "/x.jar"}}},
    "extensions": {"spark": {"config": {"spark.sql.extensions": "a.B"}}},
    "a schema registry": {"kafka": {"bootstrapServers": "b:9", "schemaRegistry": {"url": "http://r:1"}}},
    "a function": {"topology": totals("app") + "functions: {f: {python: 'shop.stats:f', returns: BIGINT}}"},
}


@pytest.mark.parametrize("what", NOT_KEPT)
def test_of_what_others_may_change_nothing_is_kept(what: str) -> None:
    found = application(**NOT_KEPT[what])
    assert not is_keepable(found, build_topology(found))
    assert is_keepable(APPLICATION, TOPOLOGY)


def test_a_batch_is_done_by_them_alone_stores_and_topics_included() -> None:
    """Spark is asked for nothing: there is none."""
    made = findings_of(orjson.loads(orjson.dumps(document_of(findings()))), TOPOLOGY)
    sub = TOPOLOGY.subtopologies[0]
    assert is_done_early(sub, made)

    def no_spark() -> Any:
        raise AssertionError("Spark is asked")

    producer = MockProducer()
    processor = BatchProcessor({0: EarlyRunner(made, sub, no_spark)}, ErrorPolicy("fail"), Counters())
    with ExitStack() as stack:
        directory = StateDirectory(stack.enter_context(memory_folder()), "app", "test")
        counts = partition_counts(TOPOLOGY, {"app-orders": 1})
        tasks = running_tasks(stack, sub, [TaskId(0, 0)], counts, directory)
        where = (OffsetRange(TopicPartition("app-orders", 0), 0, 3),)
        for _ in range(2):
            batch = BatchInput(where, records(5, 1, 7))
            outcome = processor.apply(sub, tasks, batch, processor.compute(sub, batch), producer)  # type: ignore[arg-type]
            store(outcome, lambda _: 100)
        sent = [(each.topic, each.key, each.value) for each in producer.records if each.topic == "app-totals"]
    # Of 5, 1 and 7 those above 3 count, which have the key k0; k1's is null.
    values = [orjson.loads(value or b"")["total"] for _, key, value in sent if key == b"k0"]
    assert values == [12, 24]
    with pytest.raises(SparkNeeded):
        processor.compute(sub, BatchInput(where))


def test_a_record_that_only_spark_can_judge_leaves_the_batch_to_it() -> None:
    sub = TOPOLOGY.subtopologies[0]
    runner = EarlyRunner(findings(), sub, lambda: pytest.fail("Spark is waited for"))
    where = (OffsetRange(TopicPartition("app-orders", 0), 0, 2),)
    whole = records(5, 1)
    runner.run(BatchInput(where, whole))
    broken = whole.set_column(whole.column_names.index("value"), "value", pa.array([b'{"amount":5}', b"{"]))
    with pytest.raises(SparkNeeded):
        runner.run(BatchInput(where, broken))


def test_a_file_that_says_something_else_under_an_old_checksum_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    kept = FindingsFile(tmp_path, APPLICATION, TOPOLOGY)
    kept.write(findings())
    path = tmp_path / "analysis.json"
    path.write_bytes(path.read_bytes().replace(rb"\"function\":\"sum\"", rb"\"function\":\"max\""))
    assert kept.read() is None
    assert "is damaged" in caplog.text
