"""Whatever a document looks like, reading it gives mistakes or an application, never a failure."""

from __future__ import annotations

import copy
from typing import Any

from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from streams_runtime.api import read_application

BASE: dict[str, Any] = {
    "apiVersion": "streamsoperator.io/v1alpha1",
    "kind": "StreamsApplication",
    "metadata": {"name": "shop"},
    "spec": {
        "kafka": {"bootstrapServers": "k:1", "config": {"a": 1}},
        "processing": {"commitInterval": "1s", "onDeserializationError": "fail"},
        "internalTopics": {"overrides": {"t-changelog": {"a": 1}}},
        "state": {"storage": {"size": "1Gi"}},
        "template": {"env": [{"name": "A"}], "tolerations": [{"operator": "Exists"}]},
        "topology": {
            "sources": [
                {
                    "name": "a",
                    "topic": "a",
                    "key": {"format": "string"},
                    "value": {"format": "json", "schema": "x INT"},
                    "timestamp": "_timestamp",
                },
                {"name": "u", "topic": "u", "value": {"format": "long"}, "table": {"store": "u"}},
            ],
            "steps": [
                {"name": "s", "from": "a", "where": "x > 1", "select": {"x": "x"}},
                {"name": "a2", "from": "a", "select": {"x": "x"}},
                {"name": "k", "from": "s", "keyBy": "x"},
                {"name": "m", "merge": ["a2", "s"]},
                {"name": "t", "from": "k", "aggregate": {"n": "sum(x)"}, "store": "t"},
            ],
            "sinks": [{"from": "t", "topic": "o", "key": {"format": "int"}, "value": {"format": "json"}}],
        },
    },
}

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | st.text(max_size=8)
    | st.sampled_from(["a", "s", "x", "sum(x)", "x +", "a INT", "(((", "`", "'", "count(*) over ()", "x.y.z", "->"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
NO_TEXTS = st.sampled_from([None, True, 7, 1.5])
"""Names that YAML gives to fields of which nobody quoted them."""


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, inner in items for found in ((*above, key), *places(inner, (*above, key)))]


@settings(max_examples=examples(80))
@given(st.data())
def test_reading_never_fails_whatever_stands_in_a_field(data: st.DataObject) -> None:
    document = copy.deepcopy(BASE)
    for _ in range(data.draw(st.integers(1, 3))):
        *above, last = data.draw(st.sampled_from(places(document)))
        target: Any = document
        for key in above:
            target = target[key]
        match data.draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                target[last] = data.draw(VALUES)
            case "remove":
                del target[last]
            case _ if isinstance(target, dict):
                target[data.draw(st.text(max_size=6) | NO_TEXTS)] = data.draw(VALUES)
        if not places(document):
            break
    reading = read_application(document)
    assert (reading.application is None) == bool(reading.mistakes)


def test_the_document_that_is_changed_is_valid_by_itself() -> None:
    assert read_application(BASE).mistakes == ()


@settings(max_examples=examples(50))
@given(st.text(max_size=40))
def test_reading_never_fails_whatever_the_text_is(text: str) -> None:
    reading = read_application(text)
    assert reading.application is None
    assert reading.mistakes
