"""Classes of Spark's JVM, as Python mentions them: each static method is asked for once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.java_gateway import JavaClass, JavaMember
from py4j.protocol import Py4JError

from streams_runtime.pipeline.spark.spark_session import remembering


class Jvm:
    """Plays the JVM's side of a gateway."""

    def __init__(self) -> None:
        self.converters: list[Any] = []
        self.gateway_property = SimpleNamespace(pool=None)
        self.asked: list[str] = []
        self.called: list[str] = []

    def send_command(self, command: str, *_: Any) -> str:
        kind, *parts = command.split("\n")
        if kind == "c":
            self.called.append("|".join(parts[:2]))
            return "!yi7"
        self.asked.append(name := parts[2])
        return {"method": "ym", "FIELD": f"yi{len(self.asked)}"}.get(name, "x")


@pytest.fixture
def jvm() -> Jvm:
    return Jvm()


def test_a_method_is_asked_for_once_and_called_each_time(jvm: Jvm) -> None:
    found = remembering(JavaClass("a.Functions", jvm))
    assert isinstance(found, JavaClass)
    assert isinstance(found.method, JavaMember)
    assert found.method is found.method
    assert jvm.asked == ["method"]
    assert found.method.target_id == JavaClass("a.Functions", jvm).method.target_id


def test_a_field_is_read_each_time_and_what_is_not_there_is_refused_each_time(jvm: Jvm) -> None:
    found = remembering(JavaClass("a.Functions", jvm))
    assert [found.FIELD, found.FIELD] == [1, 2]
    for _ in range(2):
        with pytest.raises(Py4JError, match=r"a\.Functions\.absent does not exist"):
            _ = found.absent
