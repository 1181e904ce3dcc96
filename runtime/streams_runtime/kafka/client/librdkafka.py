"""librdkafka's own C interface (rdkafka.h), of the copy that confluent_kafka brings: what reading in columns needs.

confluent_kafka makes a Python object of every message, which costs more than all that a bulk load does with it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import cimpl

from streams_runtime.errors import StreamsException
from streams_runtime.kafka.types import TopicPartition

_POINTER, _TEXT, _INT, _INT32, _INT64, _SIZE = (
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.c_int,
    ctypes.c_int32,
    ctypes.c_int64,
    ctypes.c_size_t,
)
_CONSUMER = 1  # rd_kafka_type_t
_REASON_BYTES = 512
_CLIENTS = (cimpl.Consumer, cimpl.Producer, cimpl._AdminClientImpl)
# Symbols of the libraries that the binding is linked with are found by way of it, wherever they lie.
_waiting = ctypes.CDLL(cimpl.__file__)
# Calls that never wait keep the interpreter's lock: giving it back and taking it would cost more than most of them.
_short = ctypes.PyDLL(cimpl.__file__)


class Message(ctypes.Structure):
    """rd_kafka_message_t: all of it that is public."""

    _fields_ = (
        ("err", _INT32),
        ("topic", _POINTER),
        ("partition", _INT32),
        ("payload", _POINTER),
        ("len", _SIZE),
        ("key", _POINTER),
        ("key_len", _SIZE),
        ("offset", _INT64),
        ("private", _POINTER),
    )


def _function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    found = library[f"rd_kafka_{name}"]
    found.restype, found.argtypes = result, arguments
    return found


_conf_new = _function(_short, "conf_new", _POINTER)
_conf_set = _function(_short, "conf_set", _INT, _POINTER, _TEXT, _TEXT, _TEXT, _SIZE)
_conf_destroy = _function(_short, "conf_destroy", None, _POINTER)
_conf_set_log_cb = _function(_short, "conf_set_log_cb", None, _POINTER, _POINTER)
_new = _function(_waiting, "new", _POINTER, _INT, _POINTER, _TEXT, _SIZE)
_poll_set_consumer = _function(_waiting, "poll_set_consumer", _INT, _POINTER)
_queue_get_consumer = _function(_short, "queue_get_consumer", _POINTER, _POINTER)
_queue_destroy = _function(_waiting, "queue_destroy", None, _POINTER)
_destroy = _function(_waiting, "destroy", None, _POINTER)
_list_new = _function(_short, "topic_partition_list_new", _POINTER, _INT)
_list_add = _function(_short, "topic_partition_list_add", _POINTER, _POINTER, _TEXT, _INT32)
_list_set_offset = _function(_short, "topic_partition_list_set_offset", _INT, _POINTER, _TEXT, _INT32, _INT64)
_list_destroy = _function(_short, "topic_partition_list_destroy", None, _POINTER)
_incremental_assign = _function(_waiting, "incremental_assign", _POINTER, _POINTER, _POINTER)
_incremental_unassign = _function(_waiting, "incremental_unassign", _POINTER, _POINTER, _POINTER)
_error_string = _function(_short, "error_string", _TEXT, _POINTER)
_error_destroy = _function(_short, "error_destroy", None, _POINTER)
_consume_batch_queue = _function(_waiting, "consume_batch_queue", ctypes.c_ssize_t, _POINTER, _INT, _POINTER, _SIZE)
_topic_name = _function(_short, "topic_name", _TEXT, _POINTER)
_controllerid = _function(_short, "controllerid", _INT32, _POINTER, _INT)
_brokers_add = _function(_waiting, "brokers_add", _INT, _POINTER, _TEXT)

message_destroy = _function(_short, "message_destroy", None, _POINTER)
"""Free one message, by its address, and what it refers to."""
_message_headers = _function(_short, "message_headers", _INT, _POINTER, _POINTER)
_header_get_all = _function(_short, "header_get_all", _INT, _POINTER, _SIZE, _POINTER, _POINTER, _POINTER)
_message_errstr = _function(_short, "message_errstr", _TEXT, _POINTER)
message_timestamp = _function(_short, "message_timestamp", _INT64, _POINTER, _POINTER)
"""A message's time (ms since 1970), by its address; the second argument is None."""


def message_headers(message: int) -> list[tuple[str, bytes | None]] | None:
    """A copy of a message's headers, by its address, in their order; None where it has none."""
    headers, name, value, size = _POINTER(), _TEXT(), _POINTER(), _SIZE()
    if _message_headers(message, ctypes.byref(headers)):
        return None
    at = ctypes.byref(name), ctypes.byref(value), ctypes.byref(size)
    found: list[tuple[str, bytes | None]] = []
    while not _header_get_all(headers, len(found), *at):
        content = None if value.value is None else ctypes.string_at(value.value, size.value)
        found.append(((name.value or b"").decode(), content))
    return found


def message_reason(message: int) -> str:
    """What a message that is an error says, by its address."""
    return str(_message_errstr(message).decode(errors="replace"))


def topic_name(topic: int) -> str:
    """The name of a message's topic, by its address."""
    return str(_topic_name(topic).decode())


def remind(client: object, address: str) -> None:
    """Tell one of confluent_kafka's clients its bootstrap servers again, if it knows no broker any more.

    While a cluster counts all of its brokers as gone (its only one stood still, a rolling update), it answers with none
    of them. librdkafka then drops all that it knew, and may never connect again, without an error (its issue 5301).
    Telling it what it knows changes nothing.
    """
    handle = _handle_of(client)
    if handle is not None:
        _remind(handle, address)


def _remind(handle: int, address: str) -> None:
    # Brokers that are alive name one of them as the controller; without an answer so far there is none either.
    if _controllerid(handle, 0) < 0:
        _brokers_add(handle, address.encode())


def _handle_of(client: object) -> int | None:
    """The rd_kafka_t of a client: the first field of each of the binding's clients. None: it is closed, or no such."""
    if not isinstance(client, _CLIENTS):
        return None
    return _POINTER.from_address(id(client) + object.__basicsize__).value


class Handle:
    """A consumer that is assigned partitions one by one, and belongs to no group. One thread uses it."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Raises StreamsException: librdkafka refuses the properties, and says why."""
        reason = ctypes.create_string_buffer(_REASON_BYTES)
        conf = _conf_new()
        for name, value in properties.items():
            if _conf_set(conf, name.encode(), value.encode(), reason, _REASON_BYTES):
                _conf_destroy(conf)
                raise StreamsException(f"the Kafka client refuses {name}: {reason.value.decode()}")
        _conf_set_log_cb(conf, None)  # stderr otherwise; what matters comes out of the calls
        self._address = properties["bootstrap.servers"]
        self._client: int | None = _new(_CONSUMER, conf, reason, _REASON_BYTES)
        if self._client is None:
            _conf_destroy(conf)
            raise StreamsException(f"the Kafka client does not start: {reason.value.decode()}")
        _poll_set_consumer(self._client)
        self._queue = _queue_get_consumer(self._client)

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read these partitions as well, from the given offsets. Raises StreamsException when that is refused."""
        self._change(_incremental_assign, offsets.items())

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions no more. Raises StreamsException when that is refused."""
        self._change(_incremental_unassign, ((each, 0) for each in partitions))

    def consume(self, into: int, limit: int, wait: float) -> int:
        """Put the addresses of up to `limit` messages at `into`; waits up to `wait` seconds until there are as many.

        Returns how many there are; whoever calls frees each. Some have an error in place of a record.
        """
        if self._client is not None:
            _remind(self._client, self._address)
        return int(_consume_batch_queue(self._queue, int(wait * 1000), into, limit))

    def close(self) -> None:
        """Free everything. May be called twice."""
        client, self._client = self._client, None
        if client is not None:
            _queue_destroy(self._queue)
            _destroy(client)

    def _change(self, change: Any, offsets: Iterable[tuple[TopicPartition, int]]) -> None:
        listed = _list_new(0)
        try:
            for each, offset in offsets:
                _list_add(listed, each.topic.encode(), each.partition)
                _list_set_offset(listed, each.topic.encode(), each.partition, offset)
            error = change(self._client, listed)
        finally:
            _list_destroy(listed)
        if error is not None:
            reason = _error_string(error).decode()
            _error_destroy(error)
            raise StreamsException(f"the Kafka client does not take the partitions: {reason}")
