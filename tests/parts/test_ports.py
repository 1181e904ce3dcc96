"""Ports for servers that are stopped and started again."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from streams_runtime.kafka.broker import ports
from streams_runtime.kafka.broker.broker_config import HOST
from streams_runtime.kafka.broker.ports import free_ports

OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_no_outgoing_connection_is_ever_given_one() -> None:
    found = free_ports(200)
    assert len(set(found)) == 200
    lowest = int(OUTGOING.read_text().split()[0]) if OUTGOING.exists() else 32_768
    assert 1024 <= min(found) <= max(found) < lowest
    with ExitStack() as held:
        for each in found:
            held.enter_context(socket.socket()).bind((HOST, each))


def test_none_is_one_that_kubernetes_own_programs_listen_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_END", 11_000)
    assert all(port >= 11_000 for port in free_ports(20))


def test_a_port_that_is_taken_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        (port,) = free_ports(1)
        taken.bind((HOST, port))
        monkeypatch.setattr(ports, "_FIRST", port)
        monkeypatch.setattr(ports, "_END", port + 2)
        assert set(free_ports(1)) != {port}


@pytest.mark.parametrize("told", ["1024\t65535\n", "none\n", "", None])
def test_where_the_system_says_nothing_of_use_there_are_ports_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str | None
) -> None:
    file = tmp_path / "range"
    if told is not None:
        file.write_text(told)
    monkeypatch.setattr(ports, "_OUTGOING", file)
    assert len(set(free_ports(3))) == 3
