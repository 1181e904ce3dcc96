"""What the READMEs show comes from the code."""

from __future__ import annotations

from pathlib import Path

import yaml

from streams_runtime.states import diagrams

ROOT = Path(__file__).parents[2]


def _between(text: str, start: str, end: str) -> str:
    return text.split(start, 1)[1].split(end, 1)[0]


def test_the_readme_of_the_lifecycle_shows_the_state_tables_as_they_are() -> None:
    text = (ROOT / "runtime" / "streams_runtime" / "lifecycle" / "README.md").read_text()
    shown = _between(
        text, "<!-- states: printed by `python -m streams_runtime.states`; a test compares -->", "<!-- /states -->"
    )
    assert shown.strip() == diagrams()


def test_the_first_application_of_the_readme_is_the_example() -> None:
    shown = _between((ROOT / "README.md").read_text(), "```yaml resource\n", "```")
    assert yaml.safe_load(shown) == yaml.safe_load((ROOT / "examples" / "first.yaml").read_text())
