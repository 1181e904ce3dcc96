"""When an object is applied again."""

from __future__ import annotations

from typing import Any

import pytest

from streams_operator.plan import differs

SAME: list[tuple[Any, Any]] = [
    ({"a": 1}, {"a": 1, "added": "by the server"}),
    ({"a": {"b": "x"}}, {"a": {"b": "x", "c": "y"}}),
    ({"l": [{"a": 1}]}, {"l": [{"a": 1, "default": True}]}),
    ({"rules": []}, {"rules": None}),
    ({"rules": []}, {}),
    ({"emptyDir": {}}, {}),
    ({"ownerReferences": [{"uid": "u", "name": "n"}]}, {"ownerReferences": [{"uid": "v"}, {"uid": "u", "name": "n"}]}),
    ({"finalizers": ["a"]}, {"finalizers": ["b", "a"]}),
    (
        {"ports": [{"port": 1, "protocol": "TCP"}]},
        {"ports": [{"port": 2, "protocol": "TCP"}, {"port": 1, "protocol": "TCP", "nodePort": 7}]},
    ),
]
OTHER: list[tuple[Any, Any]] = [
    ({"a": 1}, None),
    ({"a": 1}, {}),
    ({"a": 1}, {"a": 2}),
    ({"a": True}, {"a": 1}),
    ({"a": "1Gi"}, {"a": "1024Mi"}),
    ({"a": {"b": 1}}, {"a": "b"}),
    ({"l": [1, 2]}, {"l": [2, 1]}),
    ({"l": [1]}, {"l": [1, 2]}),
    ({"l": []}, {"l": [1]}),
    ({"ownerReferences": [{"uid": "u"}]}, {"ownerReferences": [{"uid": "v"}]}),
    ({"ownerReferences": [{"uid": "u", "controller": True}]}, {"ownerReferences": [{"uid": "u"}]}),
    ({"finalizers": ["a"]}, {"finalizers": ["b"]}),
]


@pytest.mark.parametrize(("desired", "existing"), SAME)
def test_what_is_there_already_is_not_applied(desired: Any, existing: Any) -> None:
    assert not differs(desired, existing)


@pytest.mark.parametrize(("desired", "existing"), OTHER)
def test_what_is_other_is_applied(desired: Any, existing: Any) -> None:
    assert differs(desired, existing)
