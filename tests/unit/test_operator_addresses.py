"""The brokers' addresses, from the operator's namespace."""

from __future__ import annotations

import pytest

from streams_operator.brokers.broker_addresses import servers_from


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("kafka:9092", "kafka.shop.svc:9092"),
        ("a:1, b:2", "a.shop.svc:1,b.shop.svc:2"),
        ("kafka.other:9092", "kafka.other:9092"),
        ("broker.example.com:9093,kafka:9092", "broker.example.com:9093,kafka.shop.svc:9092"),
        ("10.0.0.7:9092", "10.0.0.7:9092"),
        ("[::1]:9092", "[::1]:9092"),
        ("localhost:9092", "localhost:9092"),
        ("kafka", "kafka"),
    ],
)
def test_a_name_without_a_dot_is_a_service_of_the_applications_namespace(servers: str, expected: str) -> None:
    assert servers_from("shop", servers) == expected
