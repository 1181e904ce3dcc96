"""Every metric that an alert or a dashboard of the chart names is in a catalogue, by the name that a query has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streams_operator import operator_catalogue
from streams_runtime.metrics import catalogue

FILES = Path(__file__).parents[2] / "charts" / "streams-operator" / "files"
_NAME = re.compile(r"\b(?:kafka_streams|streams_operator)_\w+")
_SUFFIXES = {"summary": ("_sum", "_count"), "histogram": ("_sum", "_count", "_bucket")}


def shown() -> set[str]:
    """The names of all series, of histograms and summaries with their suffixes."""
    found = set()
    for metric in (*catalogue.CATALOGUE, *operator_catalogue.CATALOGUE):
        found |= {f"{metric.shown}{suffix}" for suffix in _SUFFIXES.get(metric.kind, ("",))}
    return found


@pytest.mark.parametrize("file", ["alerts.yaml", "dashboards.yaml"])
def test_every_name_is_one_of_a_catalogue(file: str) -> None:
    named = set(_NAME.findall((FILES / file).read_text(encoding="utf-8")))
    assert len(named) > 10
    assert named - shown() == set()
