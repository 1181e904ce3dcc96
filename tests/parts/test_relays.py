"""Relays between brokers: who connects, and what becomes of bytes on a link that is cut."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest
from relays import CLIENTS, Link, Relays

from streams_runtime.kafka.broker.broker_config import Ports

DEADLINE = 30.0
SHORTLY = 0.2  # seconds in which what is held would have come
TARGET, OTHER = 2, 3
ASKS = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.sendall(b"who")
    connection.settimeout(30)
    print(connection.recv(10).decode())
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        found.settimeout(DEADLINE)
        yield found


@pytest.fixture
def relays() -> Iterator[Relays]:
    with Relays() as running:
        yield running


def port_of(relays: Relays, listener: socket.socket) -> int:
    port = listener.getsockname()[1]
    return relays.advertise(TARGET, Ports(port, port, port)).clients


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), DEADLINE)


def test_what_is_held_on_a_silent_link_arrives_when_it_is_open_again(relays, listener):
    with closing(connect(port_of(relays, listener))) as client:
        client.sendall(b"one")
        server, _ = listener.accept()
        with closing(server):
            server.settimeout(DEADLINE)
            assert server.recv(10) == b"one"
            relays.set(Link.SILENT, (CLIENTS, TARGET))
            client.sendall(b"two")
            server.sendall(b"back")
            for each in (server, client):
                each.settimeout(SHORTLY)
                with pytest.raises(TimeoutError):
                    each.recv(10)
                each.settimeout(DEADLINE)
            relays.heal()
            assert server.recv(10) == b"two"
            assert client.recv(10) == b"back"


def test_a_refused_link_closes_connections_and_new_ones_until_it_is_healed(relays, listener):
    port = port_of(relays, listener)
    with closing(connect(port)) as client:
        client.sendall(b"one")
        server, _ = listener.accept()
        with closing(server):
            assert server.recv(10) == b"one"
            relays.set(Link.REFUSED, (CLIENTS, TARGET))
            with pytest.raises(ConnectionResetError):
                client.recv(10)
    with closing(connect(port)) as client, pytest.raises(ConnectionResetError):
        client.recv(10)
    relays.heal()
    with closing(connect(port)) as client:
        client.sendall(b"again")
        server, _ = listener.accept()
        with closing(server):
            assert server.recv(10) == b"again"


def test_a_link_is_that_of_the_process_that_connects(relays, listener):
    port = port_of(relays, listener)
    with subprocess.Popen([sys.executable, "-c", ASKS, str(port)], stdout=subprocess.PIPE, text=True) as broker:
        relays.processes = lambda: {broker.pid: OTHER, os.getppid(): 1}
        relays.set(Link.SILENT, (CLIENTS, TARGET))
        server, _ = listener.accept()
        with closing(server):
            assert server.recv(10) == b"who"
            server.sendall(b"a broker")
            assert broker.communicate(timeout=DEADLINE)[0] == "a broker\n"
    with closing(connect(port)) as client:
        client.sendall(b"one")
        listener.settimeout(SHORTLY)
        with pytest.raises(TimeoutError):
            listener.accept()
