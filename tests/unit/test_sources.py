"""How ranges of offsets are divided among Spark's tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import OffsetRange
from streams_runtime.pipeline.record_reader import parts_of

RANGES = st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**6)), min_size=1, max_size=30).map(
    lambda sizes: [
        OffsetRange(TopicPartition("t", number), start, start + size) for number, (start, size) in enumerate(sizes)
    ]
)


@given(ranges=RANGES, count=st.integers(1, 9))
def test_parts_are_all_of_the_ranges_in_order_and_about_as_large_as_each_other(
    ranges: list[OffsetRange], count: int
) -> None:
    parts = parts_of(ranges, count)
    rows = [(number, *where) for part in parts for number, where in part.items()]
    # Put together again, what was cut, they are the ranges.
    together: dict[int, tuple[int, int]] = {}
    for number, start, end in rows:
        assert start < end
        first, last = together.get(number, (start, start))
        assert last == start
        together[number] = (first, end)
    assert together == {each.partition.partition: (each.start, each.end) for each in ranges}
    assert list(together) == sorted(together)
    assert len(parts) <= count
    size = sum(each.end - each.start for each in ranges) / count
    assert all(sum(end - start for start, end in part.values()) <= 1.25 * size + 2 for part in parts)


def test_a_partition_is_not_cut_for_the_sake_of_a_tenth() -> None:
    ranges = [OffsetRange(TopicPartition("t", number), 0, size) for number, size in enumerate((105, 95, 100, 100))]
    assert parts_of(ranges, 4) == [{number: (0, size)} for number, size in enumerate((105, 95, 100, 100))]
    assert parts_of(ranges[:1], 2) == [{0: (0, 53)}, {0: (53, 105)}]
