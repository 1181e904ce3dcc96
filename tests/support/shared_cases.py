"""Generated cases by the dozen: one example of hypothesis is as many cases as share one run of what is expensive.

    @settings(max_examples=EXAMPLES)
    @given(shared(st.tuples(records, cuts)))
    def test_it(cases): ...

A failure is made smaller as always: all but one case become the simplest, and that one is what fails.
"""

from __future__ import annotations

from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

CASES = 10
"""Cases of an example."""
EXAMPLES = 2
"""For `max_examples`: the first one is always of the simplest cases."""


def shared(case: st.SearchStrategy[T]) -> st.SearchStrategy[list[T]]:
    """So many of the cases as share a run."""
    return st.lists(case, min_size=CASES, max_size=CASES)
