"""The examples in Python that the guides show are the files that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streams_runtime.builder.resolve_python import read_file

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "runtime" / "guide"
_SHOWN = re.compile(
    r"<!-- example: (?P<file>\S+); a test compares -->\n```python[^\n]*\n(?P<code>.*?)```\n<!-- /example -->", re.DOTALL
)


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("testing.md", "examples/test_first.py"),
        ("aggregates.md", "examples/smoothing.py"),
        ("expiring-rows.md", "examples/expiring.py"),
    ],
)
def test_a_guide_shows_an_example_as_its_file_has_it(page: str, file: str) -> None:
    shown = {match["file"]: match["code"] for match in _SHOWN.finditer((GUIDE / page).read_text())}
    assert shown == {file: (ROOT / file).read_text()}


def test_the_topology_in_python_of_the_guide_can_be_built(tmp_path: Path) -> None:
    code = (GUIDE / "python.md").read_text().partition("```python\n")[2].partition("```")[0]
    (tmp_path / "guided.py").write_text(code)
    file = tmp_path / "guided.yaml"
    file.write_text(
        "apiVersion: streamsoperator.io/v1alpha1\nkind: StreamsApplication\nmetadata: {name: guided}\n"
        "spec: {topology: {python: 'guided:build'}}\n"
    )
    reading = read_file(file)
    assert reading.application is not None, reading.reported
    topology = reading.application.spec.topology
    assert [each.name for each in topology.steps][-1] == "per-hour"
    assert [each.topic for each in topology.sinks] == ["flights-enriched", "flights-per-hour"]
