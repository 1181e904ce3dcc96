"""Every metric that an alert or a dashboard of the chart names is in a catalogue."""

from __future__ import annotations

import re
from pathlib import Path

FILES = Path(__file__).parents[2] / "charts" / "streams-operator" / "files"
_NAME = re.compile(r"\b(?:kafka_streams|streams_operator)_\w+")
_ENDINGS = re.compile(r"_(?:sum|count|bucket)$")
