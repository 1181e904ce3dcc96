"""States that grow record by record, in whole columns: what a plain loop over each chain gives."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams_runtime.processors.prefix_fold import BEGIN, PrefixFold


def together(one: pa.Table, other: pa.Table) -> pa.Table:
    """Texts, in which an order shows."""
    return pa.table({"v": pc.binary_join_element_wise(one["v"], other["v"], "")})


@settings(max_examples=examples(150))
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(-5, 4)), max_size=30))
@example([(0, 0), (0, 1), (1, 2), (2, -1), (3, 4), (1, 0)])
def test_each_link_has_what_the_links_before_it_and_its_own_row_come_to(given: list[tuple[int, int]]) -> None:
    chains, expected, rows = PrefixFold(), [], "abcde"
    for back, row in given:
        before = len(expected) - back if 0 < back <= len(expected) else BEGIN
        expected.append(("" if before == BEGIN else expected[before]) + rows[row])
        assert chains.add(before, row) == len(expected) - 1
    assert chains.states(pa.table({"v": list(rows)}), together)["v"].to_pylist() == expected
    for link, text in enumerate(expected):
        assert "".join(rows[row] for row in chains.rows_of(link)) == text
    paths = chains.paths()
    assert [[chains.rows[link] for link in path] for path in paths] == [chains.rows_of(path[-1]) for path in paths]
    assert {link for path in paths for link in path} == {*range(len(given))}
    assert not {path[-1] for path in paths} & {*chains.before}
