"""Classes that made topologies process records by, over real stores, beside the model that says what comes of them.

In whole topologies, with Spark: integration/test_composed_processors.py.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, cast

import pyarrow as pa
import pytest
from processor_kinds import PICKY_KINDS, PROCESS_KINDS
from processor_kit import MICROSECONDS, Harness, Read
from shared_cases import batches
from state_kit import memory_folder
from steps_model import Given, Model, Written
from steps_model.expressions import holds
from steps_model.formats import read_key, read_value
from steps_model.processors import FailedError
from topologies_made import SCHEMA, Made, cuts_of, records_for

from streams_runtime.api import parse_application
from streams_runtime.batch.columns import BRANCH
from streams_runtime.batch.stage import StageInput
from streams_runtime.errors import UserCodeException
from streams_runtime.processors.user_processors.process_records import apply
from streams_runtime.processors.user_processors.record_batches import HEADERS_TYPE
from streams_runtime.state.open_store import open_store
from streams_runtime.state.store import KeyValueStore
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.nodes.process_node import ProcessNode

EVERY = {**PROCESS_KINDS, **PICKY_KINDS}
WHERE = "coalesce(v, 1) <> 5"


def application(kind: str, key: str) -> dict[str, Any]:
    """A process step behind one that leaves records out, and a sink of each output."""
    made = Made(key)
    made.begin("stream")
    made.step(where=WHERE)
    name = made.step(process=EVERY[kind].process("s1"))
    for output in EVERY[kind].outputs or (None,):
        made.sink(name if output is None else f"{name}.{output}")
    return made.document


def read_of(at: int, given: Given, key: str) -> tuple[Read, Any, Any]:
    """Where a record is, and its key and value."""
    own, value = read_key(key, given.key), read_value(SCHEMA, given.value)
    reaches = holds(WHERE, value or {})
    return Read("in", 0, at, given.time, reaches=reaches), own, value


def rows_of(records: Sequence[tuple[Given, Read, Any, Any]], key: str) -> pa.Table:
    """What Spark gives of those that reach the step."""
    some = [each for each in records if each[1].reaches]
    headers = [[{"key": name, "value": data} for name, data in given.headers] or None for given, *_ in some]
    kinds = {"string": pa.string(), "long": pa.int64(), "bytes": pa.binary(), "json": pa.struct([("g", pa.string())])}
    keys = [json.loads(own) if key == "json" and own is not None else own for _, _, own, _ in some]
    return pa.table(
        {
            "_key": pa.array(keys, kinds[key]),
            "_timestamp": pa.array([read.time * 1000 for _, read, _, _ in some], MICROSECONDS),
            "_topic": pa.array([read.topic for _, read, _, _ in some], pa.string()),
            "_partition": pa.array([0] * len(some), pa.int32()),
            "_offset": pa.array([read.offset for _, read, _, _ in some], pa.int64()),
            "_headers": pa.array(headers, HEADERS_TYPE),
            "_null": pa.array([value is None for *_, value in some], pa.bool_()),
            "v": pa.array([value and value["v"] for *_, value in some], pa.int64()),
            "g": pa.array([value and value["g"] for *_, value in some], pa.string()),
        }
    )


def written(row: dict[str, Any]) -> Written:
    key = json.dumps(row["_key"], separators=(",", ":")) if isinstance(row["_key"], dict) else row["_key"]
    headers = tuple((each["key"], each["value"]) for each in row["_headers"] or ())
    value = None if row["_null"] else {"v": row["v"], "g": row["g"]}
    return Written(key, value, round(row["_timestamp"].timestamp() * 1000), headers)


def sinks_of(made: Harness, document: dict[str, Any], outputs: Sequence[str]) -> dict[str, list[Written]]:
    """What goes to each sink of what was forwarded."""
    topics = [each["topic"] for each in document["spec"]["topology"]["sinks"]]
    found: dict[str, list[Written]] = {topic: [] for topic in topics}
    for row in made.rows:
        to = row.get(BRANCH) if outputs else None
        for topic in topics if to is None else [topics[to]]:
            found[topic].append(written(row))
    return found


@pytest.mark.parametrize("key", ["string", "json", "bytes", "long"])
@pytest.mark.parametrize("kind", PROCESS_KINDS)
def test_a_class_forwards_what_its_model_says_wherever_batches_end(kind: str, key: str) -> None:
    document = application(kind, key)
    (sub,) = build_topology(parse_application(document)).subtopologies
    node = next(each for each in sub.nodes if isinstance(each, ProcessNode))
    for seed in range(6 if key == "string" else 1):
        source, count = random.Random(seed), 120
        records, cuts = records_for(document, source, count), cuts_of(source, count)
        model = Model(document)
        model.feed(records)
        with memory_folder() as folder, ExitStack() as undo:
            opened = {each.name: open_store(each, 0, folder / each.name) for each in sub.stores}
            for store in opened.values():
                undo.callback(store.close)
            made = Harness(sub, node, {0: cast(dict[str, KeyValueStore], opened)})
            undo.callback(made.restart)
            given = [(each, *read_of(at, each, key)) for at, each in enumerate(records)]
            for first, end in batches(count, cuts):
                run(made, given[first:end], key)
            assert sinks_of(made, document, EVERY[kind].outputs) == model.sinks, f"seed {seed}"


def run(made: Harness, records: Sequence[tuple[Given, Read, Any, Any]], key: str) -> None:
    """One batch, committed."""
    rows = rows_of(records, key)
    applied = apply(StageInput(made.node, rows), made.context([read for _, read, _, _ in records]))
    for store, updates in applied.updates:
        store.write(updates, None)
    assert applied.rows is not None
    made.rows += applied.rows.to_pylist()


def test_the_model_is_as_if_a_record_over_which_a_processor_fails_had_not_been_there() -> None:
    document = application("process picks", "string")
    source = random.Random(3)
    records = records_for(document, source, 200)
    with pytest.raises(FailedError):
        Model(document).feed(records)
    document["spec"]["processing"]["onProcessingError"] = "continue"
    model = Model(document)
    model.feed(records)
    bad = [each for each in records if (read_value(SCHEMA, each.value) or {}).get("v") in (4, 9, -1)]
    clean = Model(document)
    clean.feed([each for each in records if each not in bad])
    assert model.failed == len(bad) > 5
    assert (model.sinks, model.rows("s1-kept")) == (clean.sinks, clean.rows("s1-kept"))


def test_a_picky_class_fails_over_the_records_over_which_its_model_does() -> None:
    for kind in PICKY_KINDS:
        document = application(kind, "string")
        (sub,) = build_topology(parse_application(document)).subtopologies
        node = next(each for each in sub.nodes if isinstance(each, ProcessNode))
        for v in (None, *range(-9, 10)):
            if v == 5:
                continue
            records = [Given("in", b"a", json.dumps({"v": v}).encode(), 7)]
            with memory_folder() as folder, ExitStack() as undo:
                opened = {each.name: open_store(each, 0, folder / each.name) for each in sub.stores}
                for store in opened.values():
                    undo.callback(store.close)
                made = Harness(sub, node, {0: cast(dict[str, KeyValueStore], opened)})
                undo.callback(made.restart)
                model_fails = product_fails = False
                try:
                    Model(document).feed(records)
                except FailedError:
                    model_fails = True
                try:
                    run(made, [(records[0], *read_of(0, records[0], "string"))], "string")
                except UserCodeException:
                    product_fails = True
                assert (v, product_fails) == (v, model_fails)
