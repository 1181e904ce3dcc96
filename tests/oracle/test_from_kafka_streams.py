"""The pages for users of Kafka Streams have every method and setting of the jar beside which tests run, no others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache

import pytest
from from_kafka_streams import method_rows, setting_rows
from oracle_driver import driver_built

from streams_runtime.jvm.jars import KAFKA_VERSION
from streams_runtime.jvm.java import find_java

pytestmark = pytest.mark.oracle
DSL = (
    "KStream",
    "KTable",
    "KGroupedStream",
    "KGroupedTable",
    "CogroupedKStream",
    "TimeWindowedKStream",
    "SessionWindowedKStream",
    "TimeWindowedCogroupedKStream",
    "SessionWindowedCogroupedKStream",
)
_INTERFACE = re.compile(r"^public interface [\w.]+\.(\w+)<")
_METHOD = re.compile(r"^  public .*?(\w+)\(")
_SETTING = re.compile(r'^  public static final java\.lang\.String \w+_CONFIG = "([^"]+)";$', re.MULTILINE)


def disassembled(*classes: str) -> str:
    """What javap says of classes of Kafka Streams' jar."""
    beside = os.pathsep.join([str(find_java().parent), os.environ["PATH"]])
    javap = shutil.which("javap", path=beside)
    assert javap is not None, "no javap beside Java or on the PATH: install a JDK"
    jar = driver_built().libs / f"kafka-streams-{KAFKA_VERSION}.jar"
    command = [
        javap,
        "-public",
        "-constants",
        "-cp",
        str(jar),
        *(f"org.apache.kafka.streams.{each}" for each in classes),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


@cache
def methods() -> Mapping[str, frozenset[str]]:
    """The names of the public methods of each interface of the DSL."""
    found: dict[str, set[str]] = {}
    for line in disassembled(*(f"kstream.{each}" for each in DSL)).splitlines():
        if begun := _INTERFACE.match(line):
            names = found.setdefault(begun[1], set())
        elif method := _METHOD.match(line):
            names.add(method[1])
    return {kind: frozenset(names) for kind, names in found.items()}


def test_the_jar_has_the_interfaces_and_methods_that_everybody_knows() -> None:
    assert {*methods()} == {*DSL}
    assert {"filter", "mapValues", "groupByKey", "process"} <= methods()["KStream"]
    assert methods()["KGroupedTable"] == {"count", "reduce", "aggregate"}


@pytest.mark.parametrize("kind", DSL)
def test_the_page_has_a_row_for_each_method_and_no_other(kind: str) -> None:
    rows = [row.method for row in method_rows() if row.kind == kind]
    assert sorted(rows) == sorted(methods()[kind])


def test_the_page_has_no_other_interfaces() -> None:
    assert {row.kind for row in method_rows()} == {*DSL}


def test_the_page_has_a_row_for_each_setting_and_no_other() -> None:
    settings = _SETTING.findall(disassembled("StreamsConfig"))
    assert sorted(row.setting for row in setting_rows()) == sorted(settings)
    assert "application.id" in settings
