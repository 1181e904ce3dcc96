"""Steps that make a table of a stream, and a stream of a table."""

from __future__ import annotations

from pydantic import Field

from streams_runtime.api.spec.spec_model import Model


class ToTableSpec(Model):
    """Keeps the last value of each key of a stream."""

    store: str = Field(
        description="Name of the key-value store that holds the table. No default: a made-up name changes when steps"
        " are added."
    )


class ToStreamSpec(Model):
    """Takes a table's changes as records; nothing is to be said about it: {}."""
