"""How many examples a generated test tries: what it says, or fewer where a run is to be quick."""

from __future__ import annotations

import os

_VARIABLE = "STREAMSAPP_TEST_EXAMPLES"


def examples(whole: int) -> int:
    """For `max_examples`: `whole`, or what STREAMSAPP_TEST_EXAMPLES says if that is less. `make test` tries all."""
    return min(whole, int(os.environ.get(_VARIABLE, whole)))
