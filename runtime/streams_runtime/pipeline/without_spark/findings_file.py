"""Findings in the state folder, so that a restart need not wait for Spark's analysis to answer queries and to begin.

A file is used if this very build wrote it for this very topology and for these settings of Spark. Any other one is
ignored, and written anew once Spark has analysed the topology. It holds JSON and Arrow's own formats (value_codec):
reading it runs no code that it names.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from streams_runtime.api import StreamsApplication
from streams_runtime.api.sql.python_aggregates import PYTHON
from streams_runtime.pipeline.without_spark.findings import Findings
from streams_runtime.pipeline.without_spark.findings_document import document_of, findings_of
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.plan import Topology

_LOGGER = logging.getLogger("streams_runtime.pipeline")
_NAME = "analysis.json"
_PACKAGE = Path(__file__).parents[2]  # the runtime's
_FORMAT = 1
# Settings that give Spark code of others, by which an expression may come to mean something else.
_CODE = ("spark.jars", "spark.sql.extensions", "spark.sql.catalog", "spark.plugins", "spark.driver.extraClassPath")


def is_keepable(application: StreamsApplication, topology: Topology) -> bool:
    """Whether the topology and Spark's settings say all that an analysis rests on.

    Not with code of the user's, nor with a schema registry, which may answer otherwise the next time.
    """
    nodes = (node for node in topology.nodes if isinstance(node, AggregateNode))
    has_code = topology.functions or any(each.function == PYTHON for node in nodes for each in node.aggregates)
    has_more = any(name.startswith(_CODE) for name in application.spec.spark.config)
    return not has_code and not has_more and application.spec.kafka.schema_registry is None


def identity_of(application: StreamsApplication, topology: Topology) -> str:
    """What an analysis rests on, in one word: the plan, Spark's settings, and what analyses and reads it."""
    versions = {name: version(name) for name in ("streams-operator", "pyspark", "pyarrow")}
    whole = [_FORMAT, versions, _sources(), _plain(topology), _plain(application.spec.spark.config)]
    return sha256(orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)).hexdigest()


class FindingsFile:
    """The file of one application in `folder`, which this process owns whenever the file is read or written."""

    def __init__(self, folder: Path, application: StreamsApplication, topology: Topology) -> None:
        self._path = folder / _NAME
        self._application = application
        self._topology = topology

    def read(self) -> Findings | None:
        """What is kept for this topology; None: nothing, or nothing that can be used. Raises nothing."""
        try:
            kept = orjson.loads(self._path.read_bytes())
            if kept["identity"] != self._identity:
                _LOGGER.debug("%s is of another topology, version or setting of Spark, and not used", self._path)
                return None
            if kept["checksum"] != _checksum(kept["findings"]):
                _LOGGER.debug("%s is damaged, and not used", self._path)
                return None
            return findings_of(orjson.loads(kept["findings"]), self._topology)
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever it holds, the analysis is made anew
            _LOGGER.debug("%s can't be read, and is not used: %s: %s", self._path, type(error).__name__, error)
            return None

    def write(self, findings: Findings) -> None:
        """Keep the findings, all of them or as it was before; a failure is logged. Raises nothing."""
        beside = self._path.with_suffix(".new")
        try:
            text = orjson.dumps(document_of(findings)).decode()
            kept = {"identity": self._identity, "checksum": _checksum(text), "findings": text}
            with beside.open("wb") as file:
                file.write(orjson.dumps(kept))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except (OSError, TypeError) as error:
            _LOGGER.warning(
                "%s can't be written: %s. The next start waits for Spark before it answers queries", self._path, error
            )

    @property
    def _identity(self) -> str:
        return identity_of(self._application, self._topology)


def _checksum(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _sources() -> list[int]:
    """When this build's modules were written and how large they are: two builds may have one version."""
    found = [each.stat() for each in _PACKAGE.rglob("*.py")]
    return [len(found), sum(each.st_size for each in found), max((each.st_mtime_ns for each in found), default=0)]


def _plain(value: Any) -> Any:
    """A value of dataclasses as JSON, the same for equal values."""
    if is_dataclass(value):
        return [type(value).__name__, {each.name: _plain(getattr(value, each.name)) for each in fields(value)}]
    match value:
        case Mapping():
            return [[str(name), _plain(value[name])] for name in sorted(value, key=str)]
        case frozenset() | set():
            return sorted((_plain(each) for each in value), key=repr)
        case tuple() | list():
            return [_plain(each) for each in value]
        case _:
            return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
