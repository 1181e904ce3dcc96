"""What the READMEs show comes from the code."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from streams_runtime.states import diagrams

ROOT = Path(__file__).parents[2]


def _between(text: str, start: str, end: str) -> str:
    return text.split(start, 1)[1].split(end, 1)[0]


def test_the_runtimes_readme_shows_the_state_tables_as_they_are() -> None:
    text = (ROOT / "runtime" / "README.md").read_text()
    shown = _between(
        text, "<!-- states: printed by `python -m streams_runtime.states`; a test compares -->", "<!-- /states -->"
    )
    assert shown.strip() == diagrams()


@pytest.mark.parametrize("name", ["test_first.py", "smoothing.py"])
def test_the_runtimes_readme_shows_the_examples_in_python_as_they_are(name: str) -> None:
    text = (ROOT / "runtime" / "README.md").read_text()
    begin = f"<!-- example: examples/{name}; a test compares -->\n```python\n"
    assert _between(text, begin, "```\n<!-- /example -->") == (ROOT / "examples" / name).read_text()


def test_the_first_application_of_the_readme_is_the_example() -> None:
    shown = _between((ROOT / "README.md").read_text(), "```yaml\n", "```")
    assert yaml.safe_load(shown) == yaml.safe_load((ROOT / "examples" / "first.yaml").read_text())
