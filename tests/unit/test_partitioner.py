"""Keys are placed as the Java client places them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.kafka.producer.partitioner import murmur2, partition_for

# From Kafka's own UtilsTest.
KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "expected"), KNOWN.items())
def test_murmur2_gives_the_values_of_kafkas_own_test(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected


def test_a_negative_hash_is_made_positive_by_dropping_its_sign_bit_not_by_negation() -> None:
    assert partition_for(b"21", 1000) == (-973932308 & 0x7FFFFFFF) % 1000
    assert partition_for(b"21", 1000) != 973932308 % 1000


@given(st.binary(max_size=64), st.integers(min_value=1, max_value=2000))
def test_every_key_has_a_partition_that_exists(key: bytes, partitions: int) -> None:
    assert 0 <= partition_for(key, partitions) < partitions


@given(st.binary(max_size=64))
def test_the_hash_is_a_signed_32_bit_number(key: bytes) -> None:
    assert -(1 << 31) <= murmur2(key) < 1 << 31
