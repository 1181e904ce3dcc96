"""The names under which instances and threads are known to brokers: no two of them share one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.api.reading import legal_names
from streams_runtime.api.reading.legal_names import PART_PATTERN
from streams_runtime.errors import ConfigException
from streams_runtime.kafka.consumer.group_consumer import Membership
from streams_runtime.processing import thread_producer
from streams_runtime.processing.thread_producer import Output
from streams_runtime.settings import InstanceSettings

APPLICATIONS = st.from_regex(PART_PATTERN, fullmatch=True) | st.text("ab-", min_size=1, max_size=6).map("x{}x".format)
MEMBERS = st.text("ab-.:_", min_size=1, max_size=6)


def used(group: str, member: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The transactional id that a thread's producer is made with."""
    made: list[str] = []

    def producer(_properties: Any, _client: str, name: str, *_: Any) -> Any:
        made.append(name)
        return SimpleNamespace()

    class Producer:
        def __new__(cls, *arguments: Any) -> Any:
            return producer(*arguments)

    monkeypatch.setattr(thread_producer, "TransactionalProducer", Producer)
    Output({}, Membership(group, member, member), True, lambda: False).make_ready()
    return made[0]


def test_applications_whose_names_run_into_each_other_have_transactional_ids_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`a` with the instance `b-c`, and `a-b` with the instance `c`: each would fence the other for ever."""
    first, second = used("a", "b-c-1", monkeypatch), used("a-b", "c-1", monkeypatch)
    assert first != second
    assert first.startswith("a-")
    assert second.startswith("a-b-"), "what access lists give by prefix"


@given(APPLICATIONS, MEMBERS, APPLICATIONS, MEMBERS)
def test_a_transactional_id_says_whose_it_is(application: str, member: str, other: str, others: str) -> None:
    name = legal_names.transactional_id(application, member)
    assert name.startswith(f"{application}-")
    assert (name == legal_names.transactional_id(other, others)) == ((application, member) == (other, others))


@pytest.mark.parametrize("instance", ["", "a|b", "a b", "a/b", "x" * 250])
def test_an_instance_has_a_name_that_client_ids_and_brokers_can_hold(instance: str, tmp_path: Path) -> None:
    """Client ids are `instance|address|thread`: others find its address in there."""
    with pytest.raises(ConfigException, match="letters, digits"):
        InstanceSettings(instance, "b:1", tmp_path)
    assert InstanceSettings("orders-0.eu_1", "b:1", tmp_path).instance == "orders-0.eu_1"
